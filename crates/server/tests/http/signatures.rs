//! Requests that are not believed: always the same answer, never a trace in the store.

use http::HeaderValue;
use oncebox_verify::Draft;

use crate::bed::{Bed, GITHUB, STRIPE, wire};

const HEADER: &str = "stripe-signature";

/// The draft with another signature header.
fn with(draft: &Draft, value: &str) -> Draft {
    let mut draft = draft.clone();
    draft.headers.insert(HEADER, HeaderValue::from_str(value).unwrap());
    draft
}

fn signature(draft: &Draft) -> String {
    draft.headers[HEADER].to_str().unwrap().to_owned()
}

/// A bed on which many failures in a row are all answered 401.
async fn bed() -> Bed {
    Bed::with("[limits]\nfailed_signatures_per_minute = 1000000").await
}

#[tokio::test]
async fn a_changed_byte_anywhere_is_rejected() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    for at in (0..event.body.len()).step_by(7).chain([event.body.len() - 1]) {
        let mut tampered = event.clone();
        tampered.body[at] ^= 1;
        bed.post("stripe", &tampered).await.assert_rejected(&format!("byte {at} changed"));
    }
    let mut longer = event.clone();
    longer.body.push(b' ');
    bed.post("stripe", &longer).await.assert_rejected("a byte added");
    bed.assert_untouched("a tampered body").await;
}

#[tokio::test]
async fn every_prefix_and_extension_of_a_signature_is_rejected() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    let whole = signature(&event);
    let mut stream = bed.connect().await;
    for length in 0..whole.len() {
        let request = wire("/in/stripe", &with(&event, &whole[..length]));
        tokio::io::AsyncWriteExt::write_all(&mut stream, &request).await.unwrap();
        let answer = crate::bed::Answer::read(&mut stream).await.unwrap();
        answer.assert_rejected(&whole[..length]);
    }
    for more in ["0", "00", "f", "g", "=", "%00", &"a".repeat(64)] {
        let answer = bed.post("stripe", &with(&event, &format!("{whole}{more}"))).await;
        answer.assert_rejected(more);
    }
    bed.assert_untouched("part of a signature").await;
    assert_eq!(bed.post("stripe", &event).await.status, 202);
}

#[tokio::test]
async fn missing_and_repeated_headers_are_rejected() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    let whole = signature(&event);
    let mut missing = event.clone();
    missing.headers.remove(HEADER);
    bed.post("stripe", &missing).await.assert_rejected("no signature");

    let mut repeated = event.clone();
    repeated.headers.append(HEADER, HeaderValue::from_str(&whole).unwrap());
    bed.post("stripe", &repeated).await.assert_rejected("the same signature twice");

    let mut repeated = event.clone();
    repeated.headers.append(HEADER, HeaderValue::from_static("t=1,v1=00"));
    bed.post("stripe", &repeated).await.assert_rejected("two signatures");

    let (time, rest) = whole.split_once(',').unwrap();
    bed.post("stripe", &with(&event, rest)).await.assert_rejected("no time");
    bed.post("stripe", &with(&event, time)).await.assert_rejected("only a time");
    bed.post("stripe", &with(&event, "")).await.assert_rejected("an empty header");
    bed.post("stripe", &with(&event, &format!("{time},{whole}")))
        .await
        .assert_rejected("two times");
    bed.assert_untouched("a missing or repeated header").await;
}

#[tokio::test]
async fn the_secret_of_another_source_opens_nothing() {
    let bed = bed().await;
    let wrong = bed.signed("stripe", "whsec_canary_unknown_secret", "evt_1");
    bed.post("stripe", &wrong).await.assert_rejected("a wrong secret");
    let other = bed.event("evt_1");
    bed.post("stripe-other", &other).await.assert_rejected("the secret of another source");
    let github = bed.signed("github", GITHUB, "evt_1");
    bed.post("stripe", &github).await.assert_rejected("another provider");
    let mixed = bed.signed("stripe", GITHUB, "evt_1");
    bed.post("stripe", &mixed).await.assert_rejected("the secret of another provider");
    bed.assert_untouched("another secret").await;
}

#[tokio::test]
async fn signatures_of_another_time_are_rejected() {
    let bed = bed().await;
    for seconds in [-3600, 3600, -301, 301] {
        let event = bed.signed_at("stripe", STRIPE, "evt_1", seconds);
        bed.post("stripe", &event).await.assert_rejected(&format!("signed {seconds} s from now"));
    }
    bed.assert_untouched("a signature of another time").await;
    for seconds in [-299, 299] {
        let id = format!("evt_{seconds}");
        let event = bed.signed_at("stripe", STRIPE, &id, seconds);
        assert_eq!(bed.post("stripe", &event).await.status, 202, "{seconds}");
    }
    let reasons = r#"oncebox_rejections_total{source="stripe",reason="timestamp_too_old"}"#;
    assert_eq!(bed.metric(reasons).await, 2.0);
}

/// An event that is a day old when it is captured cannot be replayed, nor after a restart.
#[tokio::test]
async fn a_captured_event_is_a_duplicate_and_later_too_old() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    assert_eq!(bed.post("stripe", &event).await.status, 202);
    assert_eq!(bed.post("stripe", &event).await.status, 200);
    let bed = bed.restarted_after(86_400).await;
    bed.post("stripe", &event).await.assert_rejected("a captured event");
}

#[tokio::test]
async fn failures_are_limited_and_valid_requests_never() {
    let bed = Bed::with("[limits]\nfailed_signatures_per_minute = 3").await;
    let mut forged = bed.event("evt_0");
    forged.body.push(b' ');
    for _ in 0..3 {
        bed.post("stripe", &forged).await.assert_rejected("a failure within the limit");
    }
    for number in 0..3 {
        let answer = bed.post("stripe", &forged).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.body, r#"{"error":"too_many_failed_signatures"}"#);
        let after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&after), "{after}");
        let valid = bed.event(&format!("evt_{number}"));
        assert_eq!(bed.post("stripe", &valid).await.status, 202);
    }
    assert_eq!(bed.stored().await.len(), 3);
}

/// Behind a trusted proxy the limit is per sender, and a sender cannot choose who it is.
#[tokio::test]
async fn the_limit_follows_the_sender_behind_a_proxy() {
    let bed = Bed::with(
        "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
         [limits]\nfailed_signatures_per_minute = 1",
    )
    .await;
    let forged = |forwarded: &str| {
        let mut event = bed.signed("stripe", "whsec_canary_unknown_secret", "evt_1");
        event.headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        event
    };
    for (forwarded, status) in [
        ("192.0.2.1", 401),
        ("192.0.2.1", 429),
        ("192.0.2.2", 401),
        ("198.51.100.1, 192.0.2.2", 429),
        ("2001:db8::1", 401),
        ("2001:db8::2", 429),
    ] {
        assert_eq!(bed.post("stripe", &forged(forwarded)).await.status, status, "{forwarded}");
    }
}

#[tokio::test]
async fn an_unknown_source_is_not_found() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    for path in [
        "/in/nobody",
        "/in/",
        "/in",
        "/",
        "/in/stripe/",
        "/in/stripe/x",
        "/IN/stripe",
        "/in/Stripe",
        "/livez",
        "/metrics",
        "/readyz",
    ] {
        let answer = bed.raw(&wire(path, &event)).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (404, r#"{"error":"not_found"}"#),
            "{path}"
        );
    }
    bed.assert_untouched("an unknown source").await;
    assert_eq!(
        bed.metric(r#"oncebox_received_total{source="unknown",outcome="rejected"}"#).await,
        11.0
    );
}

/// While our own clock is suspect, being too old is not the sender's fault.
#[tokio::test]
async fn a_suspect_clock_asks_to_come_back() {
    let bed = bed().await;
    let event = bed.event("evt_1");
    bed.clock.advance_secs(600);
    bed.post("stripe", &event).await.assert_unavailable("too old by a clock that jumped");

    bed.server.inbox.watch_clock().await;
    bed.post("stripe", &event).await.assert_unavailable("too old by a suspect clock");
    let forged = bed.signed("stripe", "whsec_canary_unknown_secret", "evt_1");
    bed.post("stripe", &forged).await.assert_rejected("a forgery, whatever the time");
    assert!(bed.metric("oncebox_clock_skew_seconds").await > 590.0);
    let ready = bed.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("clock is suspect"), "{}", ready.body);

    bed.clock.advance_secs(-600);
    bed.server.inbox.watch_clock().await;
    assert_eq!(bed.post("stripe", &event).await.status, 202);
}
