//! `oncebox verify` over captures: right ones, and the ways they go wrong.

use std::fs;

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use oncebox::clock::{Clock, SystemClock};
use oncebox_verify::Draft;

use crate::bed::{Run, SECRET, noon, oncebox_in, signed, wire};

const AT: &str = "1760000000";

/// Checks a capture as the provider's, with the canary as the secret.
fn verify(provider: &str, capture: &[u8], more: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("capture.http"), capture).unwrap();
    let mut args = vec!["verify", "--provider", provider, "--secret", "env:CANARY", "--at", AT];
    args.extend(more);
    args.push("capture.http");
    oncebox_in(dir.path(), &args, b"")
}

fn stripe() -> Draft {
    signed("stripe", SECRET, noon())
}

fn set(draft: &mut Draft, name: &'static str, value: &str) {
    draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
}

#[test]
fn a_right_capture_is_identified() {
    verify("stripe", &wire(&stripe()), &[])
        .exits(0)
        .prints("✓ signature")
        .prints("verified: it comes from Stripe")
        .prints("event id   evt_1 (signed)")
        .prints("type       invoice.paid")
        .prints("object     in_sample")
        .prints("fingerprint");

    let run = verify("stripe", &wire(&stripe()), &["--json"]).exits(0);
    let json = &run.json()[0];
    assert_eq!(json["verified"], true, "{run}");
    assert_eq!(json["event_id"], "evt_1", "{run}");
    assert_eq!(json["trust"], "signed", "{run}");
    assert_eq!(json["rejection"], serde_json::Value::Null, "{run}");
}

#[test]
fn a_capture_may_have_bare_line_feeds_and_come_by_stdin() {
    let text = String::from_utf8(wire(&stripe())).unwrap().replace("\r\n", "\n");
    let args = ["verify", "--provider", "stripe", "--secret", SECRET, "--at", AT, "-"];
    oncebox_in(tempfile::tempdir().unwrap().path(), &args, text.as_bytes()).exits(0);
}

#[test]
fn several_secrets_are_tried() {
    verify("stripe", &wire(&stripe()), &["--secret", "whsec_another_0123456789"]).exits(0);
    let other = signed("stripe", "whsec_another_0123456789", noon());
    verify("stripe", &wire(&other), &["--secret", "whsec_another_0123456789"])
        .exits(0)
        .prints("number 2");
}

#[test]
fn a_wrong_secret_is_told_without_telling_it() {
    let other = signed("stripe", "whsec_another_0123456789", noon());
    let run = verify("stripe", &wire(&other), &[]).exits(4).prints("✗ signature").prints("→ ");
    assert!(!run.stdout.contains("another_0123456789"), "{run}");
    let json = verify("stripe", &wire(&other), &["--json"]).exits(4).json();
    assert_eq!(json[0]["rejection"], "signature_mismatch");
}

#[test]
fn a_newline_of_the_editor_is_recognised() {
    let mut draft = stripe();
    let length = draft.body.len().to_string();
    draft.body.push(b'\n');
    // Without a length, nothing says that the newline was not sent.
    verify("stripe", &wire(&draft), &[]).exits(4).prints("✗ signature").prints("line break");
    set(&mut draft, "content-length", &length);
    verify("stripe", &wire(&draft), &[])
        .exits(0)
        .tells("a trailing newline was added by the editor");
}

#[test]
fn a_capture_that_was_cut_is_told() {
    let mut draft = stripe();
    let length = draft.body.len().to_string();
    set(&mut draft, "content-length", &length);
    draft.body.truncate(100);
    verify("stripe", &wire(&draft), &[]).exits(4).tells("only 100 are in the capture");
}

#[test]
fn a_body_that_was_parsed_and_written_again_is_rejected_with_advice() {
    let mut draft = stripe();
    let value: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
    draft.body = serde_json::to_vec_pretty(&value).unwrap();
    verify("stripe", &wire(&draft), &[]).exits(4).prints("✗ signature").prints("→ ");
}

#[test]
fn an_old_capture_needs_the_time_it_was_received() {
    let old = noon().checked_sub(SignedDuration::from_hours(1)).unwrap();
    let capture = wire(&signed("stripe", SECRET, old));
    verify("stripe", &capture, &[]).exits(4).prints("✗ timestamp");

    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c"), &capture).unwrap();
    let args = ["verify", "--provider", "stripe", "--secret", "env:CANARY", "c"];
    oncebox_in(dir.path(), &args, b"").exits(4).prints("--at TIME");
    for at in ["2025-10-09T08:53:20Z", "2025-10-09 08:53:20Z"] {
        let args = ["verify", "--provider", "stripe", "--secret", "env:CANARY", "--at", at, "c"];
        fs::write(dir.path().join("c"), wire(&stripe())).unwrap();
        oncebox_in(dir.path(), &args, b"").exits(0);
    }
}

#[test]
fn a_capture_from_the_future_is_not_called_old() {
    let soon = SystemClock.now().checked_add(SignedDuration::from_hours(1)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c"), wire(&signed("stripe", SECRET, soon))).unwrap();
    let args = ["verify", "--provider", "stripe", "--secret", "env:CANARY", "c"];
    let run = oncebox_in(dir.path(), &args, b"").exits(4).prints("✗ timestamp");
    assert!(!run.stdout.contains("an old capture"), "{run}");
}

#[test]
fn a_credential_that_was_not_kept_is_recognised() {
    let mut draft = signed("token", SECRET, noon());
    verify("token", &wire(&draft), &[]).exits(0);
    set(&mut draft, "x-webhook-token", "fingerprint:0123abcd");
    verify("token", &wire(&draft), &[]).exits(4).prints("holds a fingerprint");
}

#[test]
fn a_signature_under_another_header_is_missing() {
    let mut draft = stripe();
    let value = draft.headers.remove("stripe-signature").unwrap();
    draft.headers.insert("x-signature", value);
    verify("stripe", &wire(&draft), &[]).exits(4).prints("✗ header").prints("stripe-signature");
}

#[test]
fn a_time_in_milliseconds_is_rejected_where_seconds_are_signed() {
    let far = Timestamp::from_second(noon().as_millisecond() / 10).unwrap();
    let draft = signed("stripe", SECRET, far);
    verify("stripe", &wire(&draft), &[]).exits(4).prints("✗ timestamp");
}

#[test]
fn a_generic_source_takes_its_keys_from_the_command_line() {
    let mut draft = signed("hmac", SECRET, noon());
    let value = draft.headers.remove("x-webhook-signature").unwrap();
    draft.headers.insert("x-sig", value);
    verify("hmac", &wire(&draft), &["--set", "signature_header=X-Sig"]).exits(0);
    verify("hmac", &wire(&draft), &["--set", "no_such_key=1"]).exits(2).tells("no_such_key");
    verify("hmac", &wire(&draft), &["--set", "algorithm=md5"]).exits(2).tells("algorithm");
    verify("stripe", &wire(&draft), &["--set", "signature_header=x"]).exits(2);
    verify("hmac", &wire(&draft), &["--set", "nonsense"]).exits(2);
}

#[test]
fn the_url_is_given_where_it_is_signed() {
    let draft = signed("twilio", SECRET, noon());
    let url = draft.url.clone();
    verify("twilio", &wire(&draft), &["--url", &url]).exits(0);
    verify("twilio", &wire(&draft), &["--set", &format!("public_url={url}")]).exits(0);
    verify("twilio", &wire(&draft), &["--url", "https://example.com/else"]).exits(4);
}

#[test]
fn what_is_missing_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c"), wire(&stripe())).unwrap();
    let run = |args: &[&str]| oncebox_in(dir.path(), args, b"");
    run(&["verify", "c"]).exits(2).tells("--provider stripe");
    run(&["verify", "--provider", "stripe", "c"]).exits(2).tells("--secret");
    run(&["verify", "--provider", "strip", "--secret", "x", "c"]).exits(3).tells("stripe");
    run(&["verify", "--provider", "stripe", "--secret", "env:NO_SUCH", "c"])
        .exits(2)
        .tells("NO_SUCH");
    run(&["verify", "--provider", "svix", "--secret", "!!", "c"]).exits(2).tells("base64");
    run(&["verify", "--provider", "stripe", "--secret", "x", "none"]).exits(2);
    run(&["verify", "--source", "stripe", "c"]).exits(78);
    fs::write(dir.path().join("c"), "{\"id\":\"evt_1\"}\n").unwrap();
    run(&["verify", "--provider", "stripe", "--secret", "x", "c"]).exits(2).tells("request line");
}

#[test]
fn a_source_of_the_configuration_stands_for_provider_and_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[sources.shop]\nprovider = \"stripe\"\nsecrets = [\"env:CANARY\"]\n";
    fs::write(dir.path().join("oncebox.toml"), config).unwrap();
    fs::write(dir.path().join("c"), wire(&stripe())).unwrap();
    let run = |args: &[&str]| oncebox_in(dir.path(), args, b"");
    run(&["verify", "--source", "shop", "--at", AT, "c"]).exits(0);
    run(&["verify", "--source", "shp", "--at", AT, "c"]).exits(3).tells("shop");
    run(&["verify", "--source", "shop", "--provider", "stripe", "c"]).exits(2);
}

#[test]
fn hostile_text_in_a_verified_event_is_spelled_out() {
    let mut draft = stripe();
    let text = String::from_utf8(draft.body).unwrap();
    draft.body = text.replace("invoice.paid", "a\u{202e}b").into_bytes();
    let secret = oncebox_verify::Secret::new(SECRET);
    let provider = crate::bed::provider("stripe");
    let draft = oncebox_verify::sign(provider, &secret, draft, noon()).unwrap();
    let run = verify("stripe", &wire(&draft), &[]).prints("\\u{202e}");
    assert!(!run.stdout.contains('\u{202e}'), "{run}");
}
