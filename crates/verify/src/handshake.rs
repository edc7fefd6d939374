//! Answering what a provider asks before it sends events.

use crate::look::look;
use crate::provider::{Handshake, Provider};
use crate::request::{Reply, Request};

/// The longest text that is sent back.
const ECHO_BYTES_MAX: usize = 1024;

/// The answer to a handshake, if the request is one. Call it only for a request that
/// was verified.
pub fn handshake(provider: &Provider, request: &Request<'_>) -> Option<Reply> {
    let Handshake::EchoJson { when, is, echo } = provider.handshake.as_ref()?;
    let found = look(request.body, &[when, echo]).ok()?;
    let told = found.first().copied().flatten()?.text()?;
    if told != *is {
        return None;
    }
    let echo = found.get(1).copied().flatten()?.text()?;
    (echo.len() <= ECHO_BYTES_MAX).then(|| Reply {
        status: 200,
        content_type: "text/plain",
        body: echo.into_owned(),
    })
}
