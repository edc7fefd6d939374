//! `provider = "capture"`: a source that keeps whatever is sent to it, to find out how somebody
//! signs. Nothing of it is verified, and everything says so.

use std::sync::LazyLock;

use http::HeaderName;
use oncebox_verify::{Provider, catalogue};

use crate::config::{Period, RetentionOverride, Size};

/// What a source of this kind calls its provider.
pub const NAME: &str = "capture";

/// Bytes of a body, however much others may send: anybody can.
pub const BODY_MAX: usize = 1 << 20;

/// Bytes that such a source keeps, unless it says otherwise.
pub const QUOTA: Size = Size(64 << 20);

/// How long it keeps them, unless it says otherwise.
pub const RETENTION: RetentionOverride =
    RetentionOverride { payloads: Some(Period::days(1)), identities: Some(Period::days(1)) };

/// The header under which a receipt keeps that nothing was verified. It goes with a push, too.
pub const TRUST_HEADER: &str = "oncebox-trust";

/// What it says then.
pub const UNVERIFIED: &str = "unverified";

/// The header under which a capture keeps its method and its URL, such as `PUT /in/bin?a=1`.
pub const REQUEST_HEADER: &str = "oncebox-request";

/// How the names of our own headers begin, stored and sent.
pub const OURS: &str = "oncebox-";

/// Headers in which some provider of the catalogue sends a credential. Whose requests come here is
/// not known, so each of them may hold one.
pub fn credentials() -> &'static [HeaderName] {
    static ALL: LazyLock<Vec<HeaderName>> = LazyLock::new(|| {
        let headers = catalogue::ALL.iter().flat_map(|provider| provider.credential_headers());
        let mut names: Vec<_> =
            headers.filter_map(|header| HeaderName::from_bytes(header.as_bytes()).ok()).collect();
        names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        names.dedup();
        names
    });
    &ALL
}

/// Stands in for a provider: it proves nothing, and names nothing.
pub fn entry() -> Provider {
    let mut entry = catalogue::find("token").expect("the catalogue has it").clone();
    entry.name = NAME.into();
    entry.title = "Anybody".into();
    entry.schemes = Default::default();
    entry.settings = Default::default();
    entry.batches = Default::default();
    entry.identity = Default::default();
    entry.event_type = Default::default();
    entry.object = Default::default();
    entry.version = Default::default();
    entry.volatile = Default::default();
    entry.odd_words = Default::default();
    entry.handshakes = Default::default();
    entry.pairing = None;
    entry.answer = None;
    entry
}

/// Whether a provider is this one.
pub fn is_capture(provider: &Provider) -> bool {
    provider.name == NAME
}

/// What is kept of a request in its headers that is no header: how it was sent, and that nobody
/// verified it. None of an ordinary receipt.
pub fn request_line(headers: &[(String, Vec<u8>)]) -> Option<(&str, &str)> {
    let is_marked =
        headers.iter().any(|(name, value)| name == TRUST_HEADER && value == UNVERIFIED.as_bytes());
    let line = headers.iter().find(|(name, _)| is_marked && name == REQUEST_HEADER)?;
    std::str::from_utf8(&line.1).ok()?.split_once(' ')
}
