//! The outcome of a request, noted for its source; and requests that were not believed, kept where
//! the source asks for that.
//!
//! Nothing in them is verified. They are marked by where they are: in a table of their own,
//! which nothing is ever delivered from.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderName;
use http::request::Parts;
use oncebox::limits::REJECTED_BODY;
use oncebox::receipt::{ReceiptId, encode_headers};
use oncebox::store::{Rejected, RejectionNote};
use oncebox_verify::{catalogue, pairing_secret};

use super::record::{hide, kept_headers};
use super::verdict::Verdict;
use super::{Note, request, url};
use crate::activity::Seen;
use crate::capture;
use crate::source::Source;
use crate::state::Inbox;

/// Notes the outcome of a request, and keeps the request if its source keeps rejected ones.
pub(super) fn note(
    inbox: &Inbox,
    note: &Note,
    parts: &Parts,
    verdict: &Verdict,
    hint: Option<&str>,
) {
    let Some(source) = &note.source else { return };
    let at = inbox.clock.now();
    let (outcome, reason) = (verdict.outcome(), verdict.reason());
    inbox.activity.note(source, &Seen { at, secret: note.secret, outcome, reason, hint });
    if let (true, Some(reason)) = (verdict.is_doubt() && source.keep_rejected > 0, reason) {
        let hint = hint.map(str::to_owned);
        let rejection = RejectionNote { at, reason: reason.to_owned(), hint };
        let Note { body, announced, .. } = note;
        let request = Request { source, parts, body: body.as_ref(), announced: *announced };
        inbox.activity.keep(Rejected {
            id: inbox.mint.mint(at),
            sender: note.sender.to_string(),
            ..request.kept(rejection)
        });
    }
}

/// A request that was not believed.
struct Request<'a> {
    source: &'a Source,
    parts: &'a Parts,
    /// What was received of its body.
    body: Option<&'a Bytes>,
    /// The length that it announced.
    announced: Option<u64>,
}

impl Request<'_> {
    /// What is kept of it: no credential, and no more of the body than its beginning.
    fn kept(&self, rejection: RejectionNote) -> Rejected {
        let Self { source, parts, body, announced } = *self;
        let whole = body.map_or(&[][..], |body| body);
        // A credential in the body cannot be taken out of it without changing it.
        let has_credential = source.provider.has_credential_in_body() || self.tells_secret(whole);
        let shown = match has_credential {
            true => &[][..],
            false => &whole[..whole.len().min(REJECTED_BODY)],
        };
        Rejected {
            id: ReceiptId::from_bytes([0; 16]),
            source: source.number,
            rejection,
            sender: String::new(),
            method: parts.method.to_string(),
            url: self.url(),
            headers: self.headers(),
            body: shown.to_vec(),
            body_bytes: body.map_or(announced.unwrap_or(0), |body| body.len() as u64),
            keep: source.keep_rejected,
        }
    }

    /// Whether some provider would tell a secret by this body. Which one sent it is not known.
    fn tells_secret(&self, body: &[u8]) -> bool {
        let Self { source, parts, .. } = self;
        let url = self.url();
        let request = request(parts, &url, body);
        let mut providers = catalogue::ALL.iter().copied().chain([&source.provider]);
        providers.any(|provider| {
            let is_inside = provider.pairing.is_some_and(|pairing| pairing.secret.is_in_body());
            is_inside && pairing_secret(provider, &request).is_some()
        })
    }

    /// Its headers. Who sent it is not known, so what any provider sends a credential in may hold
    /// one, but for what the source itself reads.
    fn headers(&self) -> Vec<u8> {
        let Self { source, parts, .. } = self;
        let mut kept = kept_headers(source, &parts.headers);
        let is_read = |name: &&HeaderName| source.provider.reads_header(name.as_str());
        hide(source, &mut kept, capture::credentials().iter().filter(|name| !is_read(name)));
        encode_headers(&kept).to_vec()
    }

    /// Where it was sent to, credentials as fingerprints.
    fn url(&self) -> String {
        let Self { source, parts, .. } = self;
        let url = url(parts, source.public_url.as_deref(), source.signs_url);
        let names: Vec<&str> = source.provider.credential_parameters().collect();
        let print = |value: &str| {
            let print = source.fingerprint(value.as_bytes());
            String::from_utf8_lossy(print.as_bytes()).into_owned()
        };
        without_credentials(&url, &names, print).into_owned()
    }
}

/// A URL in whose query the values of these parameters are fingerprints.
fn without_credentials<'a>(
    url: &'a str,
    names: &[&str],
    print: impl Fn(&str) -> String,
) -> Cow<'a, str> {
    let Some((path, query)) = url.split_once('?').filter(|_| !names.is_empty()) else {
        return Cow::Borrowed(url);
    };
    let parameter = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if names.contains(&name) => {
            format!("{name}={}", print(value))
        }
        _ => parameter.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(parameter).collect();
    Cow::Owned(format!("{path}?{}", query.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_in_the_query_is_kept_as_a_fingerprint() {
        let url = "/in/a?x=1&token=secret&y";
        let kept = |url, names| without_credentials(url, names, |value| format!("({value})"));
        assert_eq!(kept(url, &["token"]), "/in/a?x=1&token=(secret)&y");
        assert_eq!(kept(url, &[]), url);
        assert_eq!(kept("/in/a", &["token"]), "/in/a");
    }
}
