//! What the head of a request decides. A request that is refused before its body is read is never
//! an authentic event, a question or a pairing: for every entry, all its proofs, questions and
//! pairings are walked.

use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{
    Draft, Head, Keyring, Place, Provider, QUESTION_BYTES_MAX, Request, SampleEvent, Scheme,
    Settings, Special, TokenPlace, catalogue, head, sample, sign_with, verify,
};

use crate::keys::Keys;
use crate::vector::vectors;

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

/// A request without any header, by this method.
fn bare(provider: &Provider, keyring: &Keyring, method: &str) -> Head {
    let headers = HeaderMap::new();
    head(provider, keyring, &Request { method, url: "/in/x", headers: &headers, body: b"" })
}

fn signed(provider: &Provider, keys: &Keys) -> Draft {
    let event = SampleEvent { id: "evt_0001", event_type: "", at: now(), object: None };
    let draft = sample(provider, &event);
    sign_with(provider, &keys.signing(provider), draft, now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

/// The head alone, as it is judged before the body comes.
fn judged(provider: &Provider, keyring: &Keyring, draft: &Draft) -> Head {
    head(provider, keyring, &Request { body: b"", ..draft.request() })
}

/// Whether a proof of the entry may be in the body.
fn proves_in_body(provider: &Provider) -> bool {
    provider.schemes.iter().any(|scheme| match scheme {
        Scheme::Signature(signature) => {
            matches!(signature.place, Place::Form(_) | Place::Json(_) | Place::Item(_))
        }
        Scheme::Token(token) => matches!(token.place, TokenPlace::Json(_) | TokenPlace::Item(_)),
        Scheme::Jws(jws) => jws.header.is_none(),
        Scheme::Special(special) => matches!(special, Special::Braintree | Special::Sns),
        _ => true,
    })
}

/// Whether an unsigned question of the entry, or a secret that it tells, comes by this method.
fn asks_by(provider: &Provider, method: &str) -> bool {
    let mut open = provider.handshakes.iter().filter(|asked| !asked.signed);
    open.any(|asked| asked.methods.iter().any(|known| known == method))
        || (provider.pairing.is_some() && method == "POST")
}

#[test]
fn no_signed_sample_is_refused_by_its_head() {
    for provider in catalogue::ALL.iter().copied() {
        let Some(keys) = Keys::of(provider) else { continue };
        let keyring = keys.checking(provider);
        let mut draft = signed(provider, &keys);
        assert_eq!(judged(provider, &keyring, &draft), Head::Promising, "{}", provider.name);
        let signed = provider.handshakes.iter().filter(|asked| asked.signed);
        for method in signed.flat_map(|asked| asked.methods.iter()) {
            draft.method = method.to_string();
            let judged = judged(provider, &keyring, &draft);
            assert_eq!(judged, Head::Promising, "{}: {method}", provider.name);
        }
    }
}

/// Requests of official SDKs and documents, with every scheme that providers use.
#[test]
fn no_recorded_request_is_refused_by_its_head() {
    let (mut promising, mut questions, mut refused) = (0, 0, 0);
    for vector in vectors() {
        let Some(provider) = vector.provider() else { continue };
        let (headers, body) = (vector.headers(), vector.body());
        let request = Request {
            method: vector.method.as_deref().unwrap_or("POST"),
            url: vector.url.as_deref().unwrap_or("/"),
            headers: &headers,
            body: b"",
        };
        let mut asked = provider.handshakes.iter().flat_map(|asked| asked.methods.iter());
        if request.method != "POST" && !asked.any(|method| method == request.method) {
            // The server does not take it by this method, signed or not.
            continue;
        }
        let is_question = vector.kind == "challenge" && vector.expect != "invalid";
        let id = &vector.id;
        let keyring = match is_question {
            true => vector.asked_keyring(provider).or_else(|_| vector.keyring(provider)),
            false => vector.keyring(provider),
        };
        // What names a secret of the wrong form is no request.
        let Ok(keyring) = keyring else { continue };
        match head(provider, &keyring, &request) {
            Head::Promising => promising += 1,
            Head::Question(_) if is_question => {
                assert!(body.len() <= QUESTION_BYTES_MAX, "{id}");
                questions += 1;
            }
            Head::Question(rejection) | Head::Hopeless(rejection) => {
                assert!(!is_question, "{id}: {rejection}");
                assert_ne!(vector.expect, "valid", "{id}: {rejection}");
                let whole = Request { body: &body, ..request };
                let at = Timestamp::from_second(vector.now).unwrap();
                let verified = verify(provider, &keyring, &whole, at);
                assert_eq!(verified.map_err(|found| found.code()), Err(rejection.code()), "{id}");
                refused += 1;
            }
        }
    }
    println!("{promising} promising, {questions} questions, {refused} refused");
    assert!(promising > 200 && questions > 10 && refused > 3);
}

/// An empty head is refused where nothing of the entry could come with one, and only there.
#[test]
fn an_empty_head_is_refused_only_where_nothing_comes_with_one() {
    let (mut refused, mut in_body, mut asking) = (0, 0, 0);
    for provider in catalogue::ALL.iter().copied() {
        let Some(keys) = Keys::of(provider) else { continue };
        let (keyring, name) = (keys.checking(provider), &provider.name);
        let open = provider.handshakes.iter().filter(|asked| !asked.signed);
        for method in open.flat_map(|asked| asked.methods.iter()) {
            let judged = bare(provider, &keyring, method);
            assert!(!matches!(judged, Head::Hopeless(_)), "{name}: {method} asks");
        }
        let judged = bare(provider, &keyring, "POST");
        match (proves_in_body(provider), asks_by(provider, "POST")) {
            (true, _) => {
                assert_eq!(judged, Head::Promising, "{name}");
                in_body += 1;
            }
            (false, true) => {
                assert!(matches!(judged, Head::Question(_)), "{name}: {judged:?}");
                asking += 1;
            }
            (false, false) => {
                assert!(matches!(judged, Head::Hopeless(_)), "{name}: {judged:?}");
                let draft = signed(provider, &keys);
                let headers = HeaderMap::new();
                let url = draft.url.split('?').next().unwrap();
                let unsigned = Request { headers: &headers, url, ..draft.request() };
                assert!(verify(provider, &keyring, &unsigned, now()).is_err(), "{name}");
                refused += 1;
            }
        }
    }
    println!("{refused} refused, {in_body} proved in the body, {asking} asking by POST");
    assert!(refused > 150 && in_body > 10 && asking > 3);
}

/// A source that tells its secret in a handshake may be about to learn it: its keyring is empty,
/// and its events are read all the same.
#[test]
fn events_of_a_source_without_its_secret_yet_are_read() {
    let mut paired = 0;
    for provider in catalogue::ALL.iter().filter(|provider| provider.pairing.is_some()) {
        let Some(keys) = Keys::of(provider) else { continue };
        let empty = Keyring::unpaired(provider, Settings::default()).unwrap();
        let judged = judged(provider, &empty, &signed(provider, &keys));
        assert_eq!(judged, Head::Promising, "{}", provider.name);
        paired += 1;
    }
    assert!(paired >= 2, "{paired} entries tell their secret");
}
