//! The headers of a push: ours, and the provider's own as far as they do not get in the way. An
//! outbox message has no provider, and headers of its own.

use std::borrow::Cow;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT,
    FORWARDED, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::delivery::Claimed;
use oncebox::effect::OUTBOX;
use oncebox::receipt::{Mark, Oddity, decode_headers};
use oncebox_verify::Provider;

use crate::capture::{OURS, REQUEST_HEADER, TRUST_HEADER, request_line};
use crate::public::SIGNED_URL_HEADER;

/// The delivery whose handler wrote a message, as it is stored and sent.
const CAUSE: &str = "oncebox-cause";

/// What becomes of headers of the provider that are called like one of ours.
const ORIGINAL: &str = "oncebox-original-";

/// Headers of ours that do not begin like it. They are ours also where we do not send them:
/// otherwise a provider's signature would stand beside an id it does not cover.
const ALSO_OURS: [&str; 4] =
    ["webhook-id", "webhook-timestamp", "webhook-signature", IDEMPOTENCY_KEY];

/// What those of Standard Webhooks begin with.
const WEBHOOK: &str = "webhook-";

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Headers that were about the connection to us, how we are to answer, or the way here.
const ABOUT_THE_WAY: [HeaderName; 11] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HOST,
    CONTENT_LENGTH,
    EXPECT,
    ACCEPT_ENCODING,
    FORWARDED,
    VIA,
];

/// The headers of a push, without its signature.
pub(super) fn compose(delivery: &Claimed, stored: &[u8]) -> HeaderMap {
    match delivery.source_name.strip_prefix(OUTBOX) {
        Some(destination) => of_message(delivery, destination, stored),
        None => of_event(None, delivery, stored),
    }
}

/// The headers of a push that is signed as the provider would, with the proofs that came, which
/// are yet to be replaced.
pub(super) fn compose_as(provider: &Provider, delivery: &Claimed, stored: &[u8]) -> HeaderMap {
    of_event(Some(provider), delivery, stored)
}

fn of_event(provider: Option<&Provider>, delivery: &Claimed, stored: &[u8]) -> HeaderMap {
    let reads = |name: &str| provider.is_some_and(|provider| provider.reads_header(name));
    let mut headers = HeaderMap::with_capacity(24);
    let theirs = decode_headers(stored);
    let named = hop_by_hop(&theirs);
    let is_marked = request_line(&theirs).is_some();
    for (name, value) in &theirs {
        let is_credential = name == AUTHORIZATION.as_str() && reads(name);
        if is_dropped(name) && !is_credential || named.iter().any(|hop| hop == name) {
            continue;
        }
        // What is signed afresh is signed for another URL.
        if provider.is_some() && name == SIGNED_URL_HEADER {
            continue;
        }
        let is_theirs = provider.is_some() && name.starts_with(WEBHOOK) || reads(name);
        let is_ours = name.starts_with(OURS) || ALSO_OURS.contains(&name.as_str()) && !is_theirs;
        // Where the signature covers the URL, the consumer cannot check it without. And whoever
        // gets what nobody verified has to know it, and how it was sent.
        let is_told = name == SIGNED_URL_HEADER || is_marked && of_capture(name);
        let name = match is_ours && !is_told {
            true => Cow::Owned(format!("{ORIGINAL}{name}")),
            false => Cow::Borrowed(name.as_str()),
        };
        // What came in as a header is one; should a store have been meddled with, it is left out.
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            let _ = headers.try_append(name, value);
        }
    }
    if let Some(first) = headers.get(CONTENT_TYPE).cloned() {
        headers.insert(CONTENT_TYPE, first);
    }
    if provider.is_none() {
        headers.insert("webhook-id", legal(&delivery.key));
    }
    if !reads(IDEMPOTENCY_KEY) {
        headers.insert(IDEMPOTENCY_KEY, legal(&delivery.key));
    }
    add_ours(&mut headers, delivery);
    headers
}

fn of_capture(name: &str) -> bool {
    [TRUST_HEADER, REQUEST_HEADER].contains(&name)
}

fn add_ours(headers: &mut HeaderMap, delivery: &Claimed) {
    let mut set = |name: &'static str, value: &str| {
        headers.insert(HeaderName::from_static(name), legal(value));
    };
    set("oncebox-source", &delivery.source_name);
    set("oncebox-event-id", &delivery.event_id);
    set("oncebox-event-type", &delivery.event_type);
    if let Some(object) = &delivery.object {
        set("oncebox-object-id", object);
    }
    if let Some(version) = delivery.version {
        set("oncebox-object-version", &version.to_string());
    }
    if let Some(Mark { oddity, first: Some(first) }) = delivery.mark {
        let name = match oddity {
            Oddity::Twin => "oncebox-twin-of",
            Oddity::Conflict | Oddity::Defect => "oncebox-conflict-with",
        };
        set(name, &first.to_string());
    }
    set("oncebox-received-at", &delivery.received_at.to_string());
    set("oncebox-attempt", &delivery.counts.attempts.to_string());
    if delivery.replays > 0 {
        set("oncebox-replay", &delivery.replays.to_string());
    }
}

/// The headers of an outbox message. Its sender chose the key, which may have any character in it;
/// the id that is signed has none that could be taken for the end of it.
fn of_message(delivery: &Claimed, destination: &str, stored: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    for (name, value) in decode_headers(stored) {
        let name = match name.as_str() {
            name if name == CONTENT_TYPE.as_str() => CONTENT_TYPE,
            CAUSE => HeaderName::from_static(CAUSE),
            _ => continue,
        };
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.insert(name, value);
        }
    }
    let mut set = |name: &'static str, value: &str| {
        headers.insert(HeaderName::from_static(name), legal(value));
    };
    set("webhook-id", &delivery.delivery.receipt.to_string());
    set("idempotency-key", &delivery.key);
    set("oncebox-destination", destination);
    if let Some(group) = &delivery.object {
        set("oncebox-group", group);
    }
    if let Some(sequence) = delivery.version {
        set("oncebox-sequence", &sequence.to_string());
    }
    set("oncebox-attempt", &delivery.counts.attempts.to_string());
    if delivery.replays > 0 {
        set("oncebox-replay", &delivery.replays.to_string());
    }
    headers
}

/// The names that `Connection` says are about this connection only.
fn hop_by_hop(headers: &[(String, Vec<u8>)]) -> Vec<String> {
    let connection = headers.iter().filter(|(name, _)| name == CONNECTION.as_str());
    let values = connection.map(|(_, value)| String::from_utf8_lossy(value).to_lowercase());
    values.flat_map(|value| split(&value)).collect()
}

fn split(value: &str) -> Vec<String> {
    value.split(',').map(|name| name.trim().to_owned()).collect()
}

fn is_dropped(name: &str) -> bool {
    ABOUT_THE_WAY.iter().any(|dropped| dropped == name)
        || name == AUTHORIZATION.as_str()
        || name == COOKIE.as_str()
        || name == "keep-alive"
        || name == "x-real-ip"
        || name.starts_with("proxy-")
        || name.starts_with("x-forwarded-")
}

/// A value of ours as a header can hold it: what is not printable ASCII is percent-encoded, and
/// so is the percent sign, so that it can be read back.
fn legal(text: &str) -> HeaderValue {
    let ends = [0, text.len().saturating_sub(1)];
    let plain = |at: usize, byte: u8| match byte {
        b'%' => false,
        // White space at the ends would be taken off.
        b' ' => !ends.contains(&at),
        byte => byte.is_ascii_graphic(),
    };
    let mut value = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        match plain(at, byte) {
            true => value.push(char::from(byte)),
            false => value.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(value).expect("printable ASCII is a header value")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use oncebox::delivery::{Counts, DeliveryId, Lease};
    use oncebox::receipt::{ReceiptId, RouteNo, SourceNo};

    use super::*;

    fn claimed() -> Claimed {
        Claimed {
            delivery: DeliveryId { receipt: ReceiptId::from_bytes([1; 16]), route: RouteNo(1) },
            lease: Lease(1),
            lease_until: Timestamp::UNIX_EPOCH,
            source: SourceNo(1),
            source_name: "stripe".into(),
            event_id: "evt_1".into(),
            event_type: "invoice.paid".into(),
            object: None,
            version: None,
            received_at: Timestamp::UNIX_EPOCH,
            bytes: 0,
            counts: Counts { attempts: 2, ..Counts::default() },
            replays: 0,
            guarded: false,
            mark: None,
            key: "ob_key".into(),
        }
    }

    fn shown(delivery: &Claimed, stored: &str) -> String {
        let headers = compose(delivery, stored.as_bytes());
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
        };
        let mut lines: Vec<_> = headers.iter().map(line).collect();
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn the_providers_headers_come_along_and_ours_win() {
        let stored = "content-type: application/json\nstripe-signature: t=1,v1=ab\n\
                      webhook-id: theirs\nwebhook-signature: v1,theirs\noncebox-replay: 9\n\
                      host: us\nconnection: keep-alive, X-Hop\nx-hop: 1\n\
                      authorization: fingerprint:ab\ncookie: fingerprint:cd\n\
                      proxy-authorization: x\ncontent-length: 3\nte: x\n\
                      x-forwarded-for: 1.2.3.4\naccept-encoding: gzip\nuser-agent: Stripe/1.0\n";
        insta::assert_snapshot!(shown(&claimed(), stored), @"
        content-type: application/json
        idempotency-key: ob_key
        oncebox-attempt: 2
        oncebox-event-id: evt_1
        oncebox-event-type: invoice.paid
        oncebox-original-oncebox-replay: 9
        oncebox-original-webhook-id: theirs
        oncebox-original-webhook-signature: v1,theirs
        oncebox-received-at: 1970-01-01T00:00:00Z
        oncebox-source: stripe
        stripe-signature: t=1,v1=ab
        user-agent: Stripe/1.0
        webhook-id: ob_key
        ");
    }

    /// Signing replaces what came: until then it tells which proofs the provider sends.
    #[test]
    fn a_push_as_the_provider_has_no_webhook_headers_of_ours() {
        let headers = |provider: &str, stored: &str| {
            let provider = oncebox_verify::catalogue::find(provider).unwrap();
            let headers = compose_as(provider, &claimed(), stored.as_bytes());
            let mut names: Vec<String> = headers.keys().map(ToString::to_string).collect();
            names.retain(|name| !name.starts_with("oncebox-"));
            names.sort();
            names
        };
        let stored = "webhook-id: theirs\nwebhook-timestamp: 1\nauthorization: sha256:ab\n\
                      oncebox-signed-url: https://us/in/x\ncookie: sha256:cd\nhost: us\n";
        assert_eq!(
            headers("openai", stored),
            ["idempotency-key", "webhook-id", "webhook-timestamp"]
        );
        assert_eq!(
            headers("auth0", stored),
            ["authorization", "idempotency-key", "webhook-id", "webhook-timestamp"]
        );
        assert_eq!(headers("stripe", ""), ["idempotency-key"]);
    }

    #[test]
    fn whatever_an_event_says_makes_a_legal_header() {
        let odd = Claimed {
            event_id: " 50%\r\nx-evil: 1 é".into(),
            object: Some("in_1".into()),
            version: Some(-7),
            replays: 3,
            mark: Some(Mark { oddity: Oddity::Twin, first: Some(ReceiptId::from_bytes([2; 16])) }),
            ..claimed()
        };
        insta::assert_snapshot!(shown(&odd, "no header\n\u{1}: x\nx: a\u{7f}b\n"), @"
        idempotency-key: ob_key
        oncebox-attempt: 2
        oncebox-event-id: %2050%25%0D%0Ax-evil: 1 %C3%A9
        oncebox-event-type: invoice.paid
        oncebox-object-id: in_1
        oncebox-object-version: -7
        oncebox-received-at: 1970-01-01T00:00:00Z
        oncebox-replay: 3
        oncebox-source: stripe
        oncebox-twin-of: 02020202-0202-0202-0202-020202020202
        webhook-id: ob_key
        ");
    }

    #[test]
    fn a_message_has_headers_of_its_own() {
        let message = Claimed {
            source_name: "outbox/mailer".into(),
            event_id: "receipt-email:in_1 \u{e9}".into(),
            event_type: "message".into(),
            object: Some("cus_1".into()),
            version: Some(4),
            key: "receipt-email:in_1 \u{e9}".into(),
            ..claimed()
        };
        let cause = "01010101-0101-0101-0101-010101010101.3";
        let stored =
            format!("content-type: text/plain\noncebox-cause: {cause}\nx-other: 1\nhost: a\n");
        insta::assert_snapshot!(shown(&message, &stored), @"
        content-type: text/plain
        idempotency-key: receipt-email:in_1 %C3%A9
        oncebox-attempt: 2
        oncebox-cause: 01010101-0101-0101-0101-010101010101.3
        oncebox-destination: mailer
        oncebox-group: cus_1
        oncebox-sequence: 4
        webhook-id: 01010101-0101-0101-0101-010101010101
        ");
    }
}
