//! HTTP message signatures as senders write them, and what a source may say of them.

use http::HeaderValue;
use jiff::Timestamp;
use oncebox_verify::custom::with_fields;
use oncebox_verify::{
    Draft, Head, Keyring, Provider, SampleEvent, Secret, Settings, Trust, catalogue, head,
    identify, sample, sign_with, verify,
};

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

fn entry() -> &'static Provider {
    catalogue::find("http-message-signatures").unwrap()
}

/// The entry and the keyring of a source that says this.
fn source(said: &[(&str, &str)]) -> Result<(Provider, Keyring), String> {
    let settings: Settings =
        said.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let provider = with_fields(entry(), |key| settings.get(key).cloned());
    let provider = provider.map_err(|error| error.to_string())?;
    let secret = Secret::new("a shared secret that is long enough for it");
    let keyring = Keyring::with_settings(&provider, vec![secret], settings).unwrap();
    Ok((provider, keyring))
}

fn signed(provider: &Provider, keyring: &Keyring, more: &[(&'static str, &str)]) -> Draft {
    let event = SampleEvent { id: "evt_1", event_type: "a.b", at: now(), object: None };
    let mut draft = sample(provider, &event);
    for (name, value) in more {
        draft.headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    sign_with(provider, keyring, draft, now()).unwrap()
}

fn code(provider: &Provider, keyring: &Keyring, draft: &Draft) -> &'static str {
    match verify(provider, keyring, &draft.request(), now()) {
        Ok(_) => "ok",
        Err(rejection) => rejection.code(),
    }
}

/// Adds a line of a header before the one that is there.
fn with_line(mut draft: Draft, name: &'static str, line: &str) -> Draft {
    let old = draft.headers.remove(name).unwrap();
    draft.headers.append(name, HeaderValue::from_str(line).unwrap());
    draft.headers.append(name, old);
    draft
}

/// A dictionary of structured fields may come in several lines.
#[test]
fn headers_may_come_in_several_lines() {
    let (provider, keyring) = source(&[]).unwrap();
    let draft = signed(&provider, &keyring, &[]);
    let draft = with_line(draft, "signature", "other=:AAAA:");
    let draft = with_line(draft, "signature-input", r#"other=("@method");created=1"#);
    assert_eq!(head(&provider, &keyring, &draft.request()), Head::Promising);
    assert_eq!(code(&provider, &keyring, &draft), "ok");
    let twice = draft.headers["signature"].to_str().unwrap().to_owned();
    let twice = with_line(draft.clone(), "signature", &twice);
    assert_eq!(code(&provider, &keyring, &twice), "malformed_header", "one label twice");
    let unlike = "sha-512=:AAAA:";
    let unlike = with_line(draft, "content-digest", unlike);
    assert_eq!(code(&provider, &keyring, &unlike), "body_hash_mismatch");
}

/// A signature of another kind beside ours, such as a proxy adds, does no harm.
#[test]
fn what_cannot_be_read_is_skipped_while_another_remains() {
    let (provider, keyring) = source(&[]).unwrap();
    let draft = signed(&provider, &keyring, &[]);
    for other in [
        r#"proxy=("@query-param";name="a, b");created=1"#,
        r#"proxy=("a";sf "b\"\\");created=1;unknown=?1"#,
    ] {
        let both = with_line(draft.clone(), "signature-input", other);
        let both = with_line(both, "signature", "proxy=:AAAA:");
        assert_eq!(code(&provider, &keyring, &both), "ok", "{other}");
        let mut alone = draft.clone();
        alone.headers.insert("signature-input", HeaderValue::from_str(other).unwrap());
        assert_eq!(code(&provider, &keyring, &alone), "malformed_header", "{other}");
    }
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    for (key, text) in [
        ("tolerance", "10m"),
        ("tolerance", "0"),
        ("tolerance", "86401"),
        ("tolerance", "999999999"),
        ("covered", "@methods"),
        ("covered", "@query-param"),
        ("covered", "a:b"),
    ] {
        let error = source(&[(key, text)]).unwrap_err();
        assert!(error.starts_with(&format!("{key}: ")), "{text}: {error}");
    }
    assert!(source(&[("tolerance", "86400"), ("covered", "@method, x-a @target-uri")]).is_ok());
}

/// Names of headers have any case in a configuration.
#[test]
fn what_must_be_covered_is_read_in_any_case() {
    let (provider, keyring) = source(&[("covered", "@Method Idempotency-Key")]).unwrap();
    let draft = signed(&provider, &keyring, &[("idempotency-key", "1")]);
    assert_eq!(code(&provider, &keyring, &draft), "ok");
    let (plain, signs) = source(&[]).unwrap();
    let draft = signed(&plain, &signs, &[("idempotency-key", "1")]);
    assert_eq!(code(&provider, &keyring, &draft), "not_covered");
}

/// Otherwise a captured request could be sent again under any other id.
#[test]
fn a_header_that_is_the_identity_must_be_covered() {
    let said = [("event_id", "header:Idempotency-Key"), ("event_type", "header:x-kind")];
    let (provider, keyring) = source(&said).unwrap();
    let headers = [("idempotency-key", "evt_1"), ("x-kind", "a.b")];
    let draft = signed(&provider, &keyring, &headers);
    assert_eq!(code(&provider, &keyring, &draft), "ok");
    let event = identify(&provider, &draft.request()).unwrap();
    assert_eq!((&*event.id, event.trust), ("evt_1", Trust::Signed));
    let (plain, signs) = source(&[]).unwrap();
    let uncovered = signed(&plain, &signs, &headers);
    assert_eq!(code(&provider, &keyring, &uncovered), "not_covered");
}
