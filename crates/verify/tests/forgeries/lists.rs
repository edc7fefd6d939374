//! Lists of signatures: one that is right is enough, and each is read strictly.

use jiff::SignedDuration;
use oncebox_verify::{Keyring, Secret, verify};

use crate::case::{PRIVATE, PUBLIC, SECRET, case, check_at, now, refuse, signed_with};
use crate::proof::with_header;

#[test]
fn lists_are_read_strictly() {
    let stripe = &case("stripe");
    let draft = signed_with(stripe, SECRET);
    let right = draft.headers["stripe-signature"].to_str().unwrap();
    let set = |value: &str| with_header(&draft, "stripe-signature", value);
    let signature = right.split_once(",v1=").unwrap().1;
    let zeros = "0".repeat(64);

    let rolled = format!("t=1760000000,v1={zeros},v0=x,v1={signature}");
    assert_eq!(check_at(stripe, &set(&rolled), now()), Ok(0));
    let two_times = format!("t=1760000000,{right}");
    assert_eq!(refuse(stripe, &set(&two_times), "two times").code(), "bad_timestamp");
    let no_time = format!("v1={signature}");
    assert_eq!(refuse(stripe, &set(&no_time), "no time").code(), "missing_timestamp");
    let no_v1 = format!("t=1760000000,v0={signature}");
    assert_eq!(refuse(stripe, &set(&no_v1), "no v1").code(), "no_known_scheme");
    let many = format!("{right}{}", format!(",v1={signature}").repeat(8));
    assert_eq!(refuse(stripe, &set(&many), "nine").code(), "too_many_signatures");
    let upper = format!("t=1760000000,v1={}", signature.to_uppercase());
    assert_eq!(refuse(stripe, &set(&upper), "upper case").code(), "malformed_signature");
}

#[test]
fn supabase_joins_signatures_by_comma_and_space() {
    let supabase = &case("supabase-auth-hooks");
    let draft = signed_with(supabase, SECRET);
    let right = draft.headers["webhook-signature"].to_str().unwrap();
    let zeros = format!("v1,{}=", "A".repeat(43));
    for value in [format!("{zeros}, {right}"), format!("{right}, {zeros}")] {
        assert_eq!(
            check_at(supabase, &with_header(&draft, "webhook-signature", &value), now()),
            Ok(0)
        );
    }
}

/// A sender that changes from one kind to the other sends both for a while.
#[test]
fn one_right_signature_in_a_list_is_enough() {
    let standard = &case("standard-webhooks");
    let secrets = || vec![Secret::new(SECRET), Secret::new(PUBLIC)];
    let keyring = Keyring::new(standard, secrets()).unwrap();
    let by_secret = signed_with(standard, SECRET);
    let by_key = signed_with(standard, PRIVATE);
    let check = |value: &str| {
        let draft = with_header(&by_secret, "webhook-signature", value);
        let verified = verify(standard, &keyring, &draft.request(), now());
        verified.map(|verified| (verified.secret, verified.scheme)).map_err(|r| r.code())
    };
    let (mac, signature) = (&by_secret.headers["webhook-signature"], "webhook-signature");
    let (mac, signature) = (mac.to_str().unwrap(), by_key.headers[signature].to_str().unwrap());
    let zeros = format!("v1,{}=", "A".repeat(43));
    let wrong = format!("v1a,{}==", "A".repeat(86));

    assert_eq!(check(mac), Ok((0, "hmac-sha256")));
    assert_eq!(check(signature), Ok((1, "ed25519")));
    assert_eq!(check(&format!("{zeros} {signature}")), Ok((1, "ed25519")));
    assert_eq!(check(&format!("{wrong} {mac}")), Ok((0, "hmac-sha256")));
    assert_eq!(check(&format!("{wrong} {zeros}")), Err("signature_mismatch"));
    assert_eq!(check(&wrong), Err("signature_mismatch"));
    assert_eq!(check("v2,abc"), Err("no_known_scheme"));

    // An old signature is old, whatever else is in the list.
    let both = with_header(&by_secret, "webhook-signature", &format!("{mac} {wrong}"));
    let late = now() + SignedDuration::from_secs(301);
    let rejection = verify(standard, &keyring, &both.request(), late).unwrap_err();
    assert_eq!(rejection.code(), "timestamp_too_old");
}

/// Each field would be held before anything is verified, and no provider sends that many.
#[test]
fn a_form_of_too_many_fields_is_refused() {
    for name in ["twilio", "plivo", "mandrill"] {
        let provider = &case(name);
        let code = |fields: usize| {
            let mut draft = signed_with(provider, SECRET);
            let form = "application/x-www-form-urlencoded";
            draft.headers.insert("content-type", form.parse().unwrap());
            draft.body = "a=1&".repeat(fields).into_bytes();
            refuse(provider, &draft, name).code()
        };
        assert_eq!(code(10_000), "signature_mismatch", "{name}");
        assert_eq!(code(10_001), "too_many_fields", "{name}");
    }
}
