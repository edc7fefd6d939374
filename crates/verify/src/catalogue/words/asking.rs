//! Short words for the questions of providers.

use super::{Field, Handshake, List, Piece, Said, Text, Wants, list, text};

pub(in crate::catalogue) const GET: List<Text> = list(items![text("GET")]);
pub(in crate::catalogue) const HEAD: List<Text> = list(items![text("HEAD")]);
pub(in crate::catalogue) const POST: List<Text> = list(items![text("POST")]);
pub(in crate::catalogue) const OPTIONS: List<Text> = list(items![text("OPTIONS")]);

/// The challenge as plain text.
pub(in crate::catalogue) const ECHO: Said = Said::Text(list(&[Piece::Challenge]));

/// An unsigned question that is answered with 200 and nothing else.
pub(in crate::catalogue) const fn asks(methods: List<Text>, wants: Wants) -> Handshake {
    Handshake {
        methods,
        wants,
        signed: false,
        token: None,
        challenge: None,
        status: 200,
        headers: list(&[]),
        says: Said::Nothing,
    }
}

impl Handshake {
    pub(in crate::catalogue) const fn signed(mut self) -> Handshake {
        self.signed = true;
        self
    }

    pub(in crate::catalogue) const fn status(mut self, status: u16) -> Handshake {
        self.status = status;
        self
    }

    pub(in crate::catalogue) const fn challenge(mut self, field: Field) -> Handshake {
        std::mem::forget(self.challenge.replace(field));
        self
    }

    /// A field that must be what the source says under `key`.
    pub(in crate::catalogue) const fn token(
        mut self,
        field: Field,
        key: &'static str,
    ) -> Handshake {
        std::mem::forget(self.token.replace((field, text(key))));
        self
    }

    pub(in crate::catalogue) const fn headers(mut self, headers: List<(Text, Piece)>) -> Handshake {
        std::mem::forget(std::mem::replace(&mut self.headers, headers));
        self
    }

    pub(in crate::catalogue) const fn says(mut self, says: Said) -> Handshake {
        std::mem::forget(std::mem::replace(&mut self.says, says));
        self
    }
}
