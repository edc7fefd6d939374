//! Answering what a provider asks before it sends events, or between them.

use std::borrow::Cow;

use crate::look::look;
use crate::provider::{Field, Handshake, Piece, Provider, Said, Wants};
use crate::request::{Reply, Request};

/// The longest text that is sent back.
const ECHO_BYTES_MAX: usize = 1024;

/// The answer to a handshake, if the request is one. Call it only for a request that
/// was verified.
pub fn handshake(provider: &Provider, request: &Request<'_>) -> Option<Reply> {
    provider.handshakes.iter().find_map(|handshake| answer(handshake, request))
}

fn answer(handshake: &Handshake, request: &Request<'_>) -> Option<Reply> {
    if !handshake.methods.iter().any(|method| method == request.method) {
        return None;
    }
    match &handshake.wants {
        Wants::Method => {}
        Wants::Has(field) => drop(read(field, request)?),
        Wants::Is(field, text) => drop(read(field, request).filter(|found| found == text)?),
        Wants::EmptyBody => request.body.is_empty().then_some(())?,
    }
    let challenge = match &handshake.challenge {
        Some(field) => read(field, request).filter(|text| text.len() <= ECHO_BYTES_MAX)?,
        None => Cow::Borrowed(""),
    };
    let body = match &handshake.says {
        Said::Text(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Challenge => challenge.to_string(),
                Piece::Text(text) => text.to_string(),
                _ => String::new(),
            })
            .collect(),
        _ => String::new(),
    };
    Some(Reply { status: handshake.status, content_type: "text/plain", headers: vec![], body })
}

fn read<'a>(field: &Field, request: &Request<'a>) -> Option<Cow<'a, str>> {
    match field {
        Field::Json(pointer) => look(request.body, &[pointer]).ok()?.first().copied()??.text(),
        _ => None,
    }
}
