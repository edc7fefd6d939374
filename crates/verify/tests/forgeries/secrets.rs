//! Secrets: each kind counts only in its own place, and a public key is none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use oncebox_verify::{
    BadSecret, CannotSign, Draft, Keyring, Rejection, SampleEvent, Scheme, Secret, Trust,
    catalogue, generate_pair, identify, sample, sign, verify,
};
use sha2::Sha256;

use crate::case::{
    ID, PRIVATE, PUBLIC, SECRET, case, cases, is_pair, none, now, pairs, played, refuse, signed,
    signed_by, signed_with,
};
use crate::keys::Keys;
use crate::proof::{proof_header, with_header};

/// That the second of two secrets counts too is in `catalogue/samples.rs`.
#[test]
fn another_secret_is_refused_as_such() {
    for case in &cases() {
        let code = refuse(case, &signed_by(case, &case.foreign), "another secret").code();
        assert!(["signature_mismatch", "wrong_token"].contains(&code), "{}: {code}", case.name);
    }
}

/// Each kind of GitLab secret counts only in its own place.
#[test]
fn a_gitlab_signing_token_is_no_password() {
    let gitlab = &case("gitlab");
    let signed = signed_with(gitlab, SECRET);
    let mut bare = signed.clone();
    bare.headers.remove("webhook-signature");
    refuse(gitlab, &with_header(&bare, "x-gitlab-token", SECRET), "a signing token as a token");

    // With both kinds configured, a wrong signature is not saved by the right token.
    let secrets = vec![Secret::new(SECRET), Secret::new("glsecret-123")];
    let keyring = Keyring::new(gitlab, secrets).unwrap();
    let both = with_header(&signed, "x-gitlab-token", "glsecret-123");
    assert_eq!(verify(gitlab, &keyring, &both.request(), now()).unwrap().secret, 0);
    let wrong = Draft { body: b"{}".to_vec(), ..both };
    assert_eq!(
        verify(gitlab, &keyring, &wrong.request(), now()),
        Err(Rejection::SignatureMismatch { tried: 1 })
    );
    let only_token = with_header(&bare, "x-gitlab-token", "glsecret-123");
    assert_eq!(verify(gitlab, &keyring, &only_token.request(), now()).unwrap().secret, 1);
    assert_eq!(identify(gitlab, &only_token.request()).unwrap().trust, Trust::Digest);
}

/// What a sender of `v1` makes of the public key, which everyone may know.
#[test]
fn a_public_key_is_never_a_shared_secret() {
    let encoded = PUBLIC.strip_prefix("whpk_").unwrap();
    let decoded = STANDARD.decode(encoded).unwrap();
    let keys = [PUBLIC.as_bytes(), encoded.as_bytes(), &decoded];
    for case in &pairs() {
        let genuine = signed(case);
        let name = proof_header(case).unwrap();
        let secrets = vec![Secret::new(PUBLIC), Secret::new(SECRET)];
        let both = Keyring::new(case, secrets).unwrap();
        for key in keys {
            let seconds = now().as_second().to_string();
            let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            let mac = mac.chain_update(format!("{ID}.{seconds}.")).chain_update(&genuine.body);
            let mac = STANDARD.encode(mac.finalize().into_bytes());
            let forged = with_header(&genuine, &name, &format!("v1,{mac}"));
            assert_eq!(refuse(case, &forged, "a MAC").code(), "no_known_scheme");
            let rejection = verify(case, &both, &forged.request(), now()).unwrap_err();
            assert_eq!(rejection.code(), "signature_mismatch");
            let forged = with_header(&genuine, &name, &format!("v1a,{mac}"));
            assert_eq!(refuse(case, &forged, "a MAC as v1a").code(), "malformed_signature");
        }
        // A right signature under the label of the other kind.
        let value = genuine.headers[&name].to_str().unwrap().replace("v1a,", "v1,");
        let relabelled = with_header(&genuine, &name, &value);
        assert_eq!(refuse(case, &relabelled, "v1a as v1").code(), "no_known_scheme");
    }
}

/// Entries without public keys refuse them, also where any text may be a secret.
#[test]
fn public_keys_fit_only_where_they_are_meant() {
    let mut wrong = Vec::new();
    let pair = generate_pair(catalogue::find("sendgrid").unwrap()).unwrap();
    for case in &played() {
        // PayPal's secret is no key at all but an id that is signed.
        if case.name == "paypal" {
            continue;
        }
        let keys = Keys::of(case.provider).unwrap();
        let mut refuse = |key: &str, exactly: bool| match keys.with_secret(case, Secret::new(key)) {
            Err(BadSecret::NotShared { number: 0 }) => {}
            Err(_) if !exactly => {}
            Err(bad) => wrong.push(format!("{}: {bad}", case.name)),
            Ok(_) => wrong.push(format!("{}: accepted {}", case.name, &key[..20])),
        };
        let is_shared = !case.schemes.iter().any(takes_key);
        if !case.schemes.iter().any(is_pair) {
            for key in [PUBLIC.to_owned(), PRIVATE.to_owned(), format!("v1a,{PUBLIC}")] {
                refuse(&key, is_shared);
            }
        }
        if is_shared {
            refuse(&pair.public, true);
            refuse(pair.private_pem(), true);
        }
    }
    none(&wrong);
}

/// Whether some key of a pair fits.
fn takes_key(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Signature(signature) => signature.algorithm.is_asymmetric(),
        Scheme::Jws(jws) => jws.algorithms.iter().any(|algorithm| !algorithm.is_hmac()),
        Scheme::Special(_) => ["sns", "ebay", "http-message-signatures"].contains(&scheme.name()),
        _ => false,
    }
}

#[test]
fn a_public_key_cannot_sign() {
    let svix = &case("svix");
    let event = SampleEvent { id: ID, event_type: "", at: now(), object: None };
    let signed = sign(svix, &Secret::new(PUBLIC), sample(svix, &event), now());
    assert_eq!(signed.unwrap_err(), CannotSign::PublicKey);
}
