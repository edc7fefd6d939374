//! Credentials that are sent as they are.

use super::Text;

/// A credential sent as it is. It proves who sent a request, not what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub place: TokenPlace,
    /// How it is written there.
    pub kind: TokenKind,
    /// Whether a `whsec_` secret, which is a signing key, is refused as a token.
    pub refuse_whsec: bool,
}

/// Where a credential is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPlace {
    /// A header.
    Header(Text),
    /// A parameter of the query, which is a part of the URL that the provider was given.
    Query(Text),
    /// A JSON pointer into the body.
    Json(Text),
    /// A JSON pointer into each item of a batch: every item must have it.
    Item(Text),
}

/// How a credential is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// The value is the token.
    Plain,
    /// `Bearer`, then the token.
    Bearer,
    /// `Basic`, then the base64 of `user:password`.
    Basic,
}
