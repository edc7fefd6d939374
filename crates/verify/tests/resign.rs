//! Signing afresh: which proofs are made, and that nothing else changes. The tests of the server
//! walk the whole catalogue.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{
    CannotResign, Draft, Keyring, Provider, Secret, Settings, can_resign, catalogue, query_names,
    resign, shows_secret, sign, verify,
};

const OLD: &str = "canary-of-the-source";
const NEW: &str = "canary-of-the-route";
const URL: &str = "https://app.example.com/hook";

fn then() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_790_172_800).unwrap()
}

fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

fn draft(headers: &[(&'static str, &str)], body: &str) -> Draft {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    Draft { method: "POST".into(), url: URL.into(), headers: map, body: body.into() }
}

fn keyring(provider: &Provider, secret: &str) -> Keyring {
    Keyring::new(provider, vec![Secret::new(secret)]).unwrap()
}

/// The request signed with the new secret, which verifies.
fn fresh(provider: &Provider, secret: &str, came: Draft) -> Draft {
    let keyring = keyring(provider, secret);
    let fresh = resign(provider, &keyring, came, "/in/it", now()).unwrap();
    verify(provider, &keyring, &fresh.request(), now()).unwrap();
    fresh
}

fn names(draft: &Draft) -> Vec<&str> {
    let mut names: Vec<&str> = draft.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

/// Svix may use either set of names: a handler finds the one that the provider sends.
#[test]
fn the_proofs_that_came_are_made_anew() {
    let svix = find("svix");
    let secret = "whsec_Y2FuYXJ5LW9mLXRoZS1yb3V0ZQ==";
    let came = [("webhook-id", "msg_1"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,a")];
    let fresh_names = fresh(svix, secret, draft(&came, "{}"));
    assert_eq!(names(&fresh_names), ["webhook-id", "webhook-signature", "webhook-timestamp"]);
    assert_eq!(fresh_names.headers["webhook-timestamp"], "1790172800");
    let came = [("svix-id", "msg_1"), ("svix-timestamp", "1"), ("svix-signature", "v1a,a")];
    let fresh_names = fresh(svix, secret, draft(&came, "{}"));
    assert_eq!(names(&fresh_names), ["svix-id", "svix-signature", "svix-timestamp"]);

    let hubspot = find("hubspot");
    let body = r#"[{"eventId":1}]"#;
    let came = [
        ("x-hubspot-signature-v3", "old"),
        ("x-hubspot-request-timestamp", "1"),
        ("x-hubspot-signature", "old"),
        ("x-hubspot-signature-version", "v1"),
    ];
    let both = fresh(hubspot, NEW, draft(&came, body));
    assert_eq!(names(&both).len(), 4);
    let mut v1 = draft(&[], body);
    v1.headers.insert("x-hubspot-signature", both.headers["x-hubspot-signature"].clone());
    let settings = Settings::from([("scheme".to_owned(), "v1".to_owned())]);
    let first = Keyring::with_settings(hubspot, vec![Secret::new(NEW)], settings).unwrap();
    verify(hubspot, &first, &v1.request(), now()).expect("the first version");
}

/// The sender chooses what is covered, and under which label and key.
#[test]
fn a_message_signature_covers_what_it_covered() {
    let came = [
        ("signature-input", r#"theirs=("@method" "content-digest");created=1;keyid="k1""#),
        ("signature", "theirs=:AAAA:"),
        ("content-digest", "sha-256=:AAAA:"),
    ];
    let fresh = fresh(find("http-message-signatures"), NEW, draft(&came, "{}"));
    let input = fresh.headers["signature-input"].to_str().unwrap();
    let expected = r#"theirs=("@method" "content-digest");created=1790172800;keyid="k1""#;
    assert!(input.starts_with(expected), "{input}");
}

/// A push leaves out headers about the way of the request, such as its length: what was covered of
/// them cannot be covered again.
#[test]
fn a_message_signature_leaves_out_what_is_not_sent_on() {
    let covered = r#"("content-length" "@method" "x-gone" "content-digest")"#;
    let came = [
        ("signature-input", &*format!("sig1={covered};created=1")),
        ("signature", "sig1=:AAAA:"),
        ("content-digest", "sha-256=:AAAA:"),
    ];
    let fresh = fresh(find("http-message-signatures"), NEW, draft(&came, "{}"));
    let input = fresh.headers["signature-input"].to_str().unwrap();
    assert!(input.starts_with(r#"sig1=("@method" "content-digest");created="#), "{input}");
}

/// Of several secrets, the first that is shared signs: a public key beside it cannot.
#[test]
fn the_shared_secret_among_public_keys_signs() {
    let provider = find("http-message-signatures");
    let public = r#"{"kty":"OKP","crv":"Ed25519","kid":"theirs","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let set = |secret: &str| {
        let key = URL_SAFE_NO_PAD.encode(secret);
        format!(r#"{{"keys":[{public},{{"kty":"oct","kid":"ours","k":"{key}"}}]}}"#)
    };
    let shared = "a shared secret that is long enough for it";
    for secrets in [vec![public.to_owned(), shared.to_owned()], vec![set(shared)]] {
        let secrets = secrets.into_iter().map(Secret::new).collect();
        let keyring = Keyring::new(provider, secrets).unwrap();
        assert_eq!(can_resign(provider, &keyring), Ok(()));
        let fresh = resign(provider, &keyring, draft(&[], "{}"), "/in/it", now()).unwrap();
        verify(provider, &keyring, &fresh.request(), now()).unwrap();
    }
    let alone = Keyring::new(provider, vec![Secret::new(public)]).unwrap();
    assert_eq!(can_resign(provider, &alone), Err(CannotResign::PublicKey));
}

/// A handler finds the pair of its own public key by name, as Braintree's SDK does.
#[test]
fn a_pair_keeps_the_name_of_its_key() {
    let braintree = find("braintree");
    let came = "bt_payload=PGE%2B&bt_signature=first_key%7Cab%26second_key%7Ccd";
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let pairs = |settings: Settings| {
        let keyring = Keyring::with_settings(braintree, vec![Secret::new(NEW)], settings).unwrap();
        let fresh = resign(braintree, &keyring, draft(&form, came), "/in/it", now()).unwrap();
        verify(braintree, &keyring, &fresh.request(), now()).unwrap();
        let text = String::from_utf8(fresh.body).unwrap();
        let (payload, pairs) = text.split_once("&bt_signature=").unwrap();
        assert_eq!(payload, "bt_payload=PGE%2B");
        let pairs = pairs.split("%26").map(|pair| pair.split_once("%7C").unwrap().0.to_owned());
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(pairs(Settings::new()), ["first_key", "second_key"]);
    let said = Settings::from([("public_key".to_owned(), "second_key".to_owned())]);
    assert_eq!(pairs(said), ["second_key"]);
}

/// GitHub and Meta send a proof by SHA-1 too, which the entry does not read. Left as it came it
/// would be one by another secret.
#[test]
fn proofs_that_the_entry_does_not_read_are_removed() {
    let came = [("x-hub-signature", "sha1=old"), ("x-hub-signature-256", "sha256=old")];
    for name in ["github", "meta"] {
        let fresh = fresh(find(name), NEW, draft(&came, r#"{"entry":[]}"#));
        assert_eq!(names(&fresh), ["x-hub-signature-256"], "{name}");
    }
}

/// A token that proves and a signature beside it: the one that came decides.
#[test]
fn a_credential_is_replaced_and_never_left_as_its_fingerprint() {
    let buildkite = find("buildkite");
    let token = fresh(buildkite, NEW, draft(&[("x-buildkite-token", "sha256:ab")], "{}"));
    assert_eq!(token.headers["x-buildkite-token"], NEW);
    let came = [("x-buildkite-signature", "timestamp=1,signature=ab")];
    let signed = fresh(buildkite, NEW, draft(&came, "{}"));
    assert_eq!(names(&signed), ["x-buildkite-signature"]);
    assert!(shows_secret(buildkite, &keyring(buildkite, NEW)));
    assert!(!shows_secret(find("stripe"), &keyring(find("stripe"), NEW)));
    // None came in a header, so it came by the query.
    let cloudevents = find("cloudevents");
    let query = fresh(cloudevents, NEW, draft(&[], "{}"));
    assert_eq!(query.url, format!("{URL}?access_token={NEW}"));
    assert_eq!(query_names(cloudevents), ["access_token"]);
}

/// Everything around a proof inside the body stays as it is written, numbers and spaces included.
#[test]
fn a_proof_inside_the_body_is_replaced_alone() {
    let body = r#"{ "passcode" : "old", "amount": 1.00, "b":[ ] }"#;
    let figma = fresh(find("figma"), NEW, draft(&[], body));
    let expected = body.replace("\"old\"", &format!("{NEW:?}"));
    assert_eq!(String::from_utf8(figma.body).unwrap(), expected);

    let body = r#"{"value": [{"clientState":"old","id":1.0}, {"id":2e0,"clientState":"old"}]}"#;
    let graph = fresh(find("microsoft-graph"), NEW, draft(&[], body));
    let expected = body.replace("\"old\"", &format!("{NEW:?}"));
    assert_eq!(String::from_utf8(graph.body).unwrap(), expected);

    let form = [("content-type", "application/x-www-form-urlencoded")];
    let opennode = draft(&form, "id=1%20&hashed_order=old&status=paid");
    let opennode = fresh(find("opennode"), NEW, opennode);
    let text = String::from_utf8(opennode.body).unwrap();
    assert!(text.starts_with("id=1%20&status=paid&hashed_order="), "{text}");
}

/// A handler reads more of a token than its proof, such as the account that it is for.
#[test]
fn other_claims_of_a_token_stay() {
    let vonage = find("vonage");
    let mut came = draft(&[], "{}");
    came = sign(vonage, &Secret::new(OLD), came, then()).unwrap();
    let token = came.headers["authorization"].to_str().unwrap().to_owned();
    let [head, claims, tag] = <[&str; 3]>::try_from(token.split('.').collect::<Vec<_>>()).unwrap();
    let mut claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    claims["api_key"] = "abc".into();
    claims["exp"] = 5.into();
    let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
    let value = HeaderValue::from_str(&format!("{head}.{claims}.{tag}")).unwrap();
    came.headers.insert("authorization", value);
    let fresh = fresh(vonage, NEW, came);
    let token = fresh.headers["authorization"].to_str().unwrap();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["api_key"], "abc");
    assert_eq!(claims["iat"], now().as_second());
    assert!(claims["exp"].as_i64().unwrap() > now().as_second());
}

/// What a provider says in the query is a part of the event, and travels along.
#[test]
fn parameters_of_the_event_are_added_to_the_url() {
    let provider = find("mercadopago");
    let keyring = keyring(provider, NEW);
    let came = draft(&[("x-request-id", "1"), ("x-signature", "ts=1,v1=old")], "{}");
    let came_to = "https://us.example.com/in/mp?data.id=A%205&type=payment&ours=1";
    let fresh = resign(provider, &keyring, came, came_to, now()).unwrap();
    assert_eq!(fresh.url, format!("{URL}?data.id=A+5&type=payment"));
    verify(provider, &keyring, &fresh.request(), now()).unwrap();
}

#[test]
fn what_cannot_be_signed_says_why() {
    let told = |name: &str, secret: &str| {
        let provider = find(name);
        let settings: Settings = provider
            .settings
            .iter()
            .filter(|setting| setting.needed)
            .map(|setting| (setting.key.to_string(), "x".to_owned()))
            .collect();
        let keyring = Keyring::with_settings(provider, vec![Secret::new(secret)], settings);
        can_resign(provider, &keyring.unwrap())
    };
    assert_eq!(told("stripe", NEW), Ok(()));
    for name in ["mailgun", "linear", "plain", "infisical", "dropbox-sign"] {
        assert_eq!(told(name, NEW), Err(CannotResign::TimedBody), "{name}");
    }
    for (name, secret) in [("paypal", NEW), ("discord", &"ab".repeat(32))] {
        assert_eq!(told(name, secret), Err(CannotResign::PublicKey), "{name}");
    }
    // The private key could sign, and the consumer would need the public one of ours.
    let private = format!("whsk_{}", STANDARD.encode([7; 32]));
    assert_eq!(told("standard-webhooks", &private), Err(CannotResign::PublicKey));
}
