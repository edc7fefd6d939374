//! Signatures: whole, in one form, and of the algorithm that the entry names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncebox_verify::{Algorithm, Encoding, Scheme, Signature};

use crate::case::{cases, check_at, none, now, pairs, played, refuse, signed_by};
use crate::keys::Keys;
use crate::proof::with_proofs;

#[test]
fn only_the_whole_signature_is_accepted() {
    let mut wrong = Vec::new();
    let forge = |right: &str, tails: &[&str]| {
        let changed = right.char_indices().map(|(place, old)| {
            let new = if old.eq_ignore_ascii_case(&'a') { "b" } else { "a" };
            format!("{}{new}{}", &right[..place], &right[place + 1..])
        });
        let prefixes = (0..right.len()).map(|end| right[..end].to_owned());
        let longer = tails.iter().map(|tail| format!("{right}{tail}"));
        let garbage = ["v1,", "v1=", "sha256=", "v0=", ",", "=", " ", "t=,v1=", "{}", "null"];
        let twice = [format!("{right}{}", &right[right.len() - 8..])];
        let fixed = garbage.iter().map(|&text| text.to_owned());
        changed.chain(prefixes).chain(longer).chain(fixed).chain(twice).collect::<Vec<_>>()
    };
    for case in &cases() {
        // eBay's also names a key, and Infisical's a time beside the one in the body; neither is
        // signed.
        if ["ebay", "infisical"].contains(&case.name.as_ref()) {
            continue;
        }
        // Padding of base64 for URLs counts for nothing.
        let encoding = case.scheme.signature().map(|signature| signature.encoding);
        let tails: &[&str] = match encoding {
            Some(Encoding::Base64Url) => &["0", "00", "AAAA", "x"],
            _ => &["0", "00", "=", "==", "AAAA", "x"],
        };
        for forged in with_proofs(case, |right| forge(right, tails)) {
            if check_at(case, &forged, now()).is_ok() {
                wrong.push(format!("{}: {} {:?}", case.name, forged.url, forged.headers));
            }
        }
    }
    none(&wrong);
}

/// The signature says how it was made, and only the entry is believed.
#[test]
fn another_algorithm_is_refused() {
    let mut wrong = Vec::new();
    const HASHES: [Algorithm; 5] = [
        Algorithm::HmacSha1,
        Algorithm::HmacSha256,
        Algorithm::HmacSha512,
        Algorithm::Sha1,
        Algorithm::Sha256,
    ];
    for case in &played() {
        let Some(hash) = case.scheme.signature() else { continue };
        if hash.algorithm.is_asymmetric() {
            continue;
        }
        // Some entries have a scheme for each of two.
        let is_ours = |algorithm: &Algorithm| {
            let mut schemes = case.schemes.iter().filter_map(Scheme::signature);
            schemes.any(|signature| signature.algorithm == *algorithm)
        };
        for algorithm in HASHES.into_iter().filter(|other| !is_ours(other)) {
            let mut weaker = case.provider.clone();
            let scheme = Scheme::Signature(Signature { algorithm, ..hash.clone() });
            weaker.schemes = vec![scheme].into();
            let signs = Keys::of(case.provider).unwrap().signing(&weaker);
            if check_at(case, &signed_by(&weaker, &signs), now()).is_ok() {
                wrong.push(format!("{}: {}", case.name, algorithm.name()));
            }
        }
    }
    none(&wrong);
}

/// Adding the order of the group to half of a signature must not make a second one.
#[test]
fn a_signature_has_one_form() {
    const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    let order = hex::decode(ORDER).unwrap();
    for case in &pairs() {
        for forged in with_proofs(case, |right| {
            let mut bytes = STANDARD.decode(right.strip_prefix("v1a,").unwrap()).unwrap();
            let mut carry = 0;
            for (byte, add) in bytes[32..].iter_mut().zip(&order) {
                carry += u16::from(*byte) + u16::from(*add);
                *byte = carry.to_le_bytes()[0];
                carry >>= 8;
            }
            vec![format!("v1a,{}", STANDARD.encode(bytes))]
        }) {
            assert_eq!(refuse(case, &forged, "a second form").code(), "signature_mismatch");
        }
    }
}

/// Hex inside base64 is in lower case, as it is elsewhere.
#[test]
fn hex_inside_base64_has_one_form() {
    let all = played();
    let solidgate = all.iter().find(|case| case.name == "solidgate").unwrap();
    for forged in with_proofs(solidgate, |right| {
        let digits = String::from_utf8(STANDARD.decode(right).unwrap()).unwrap();
        vec![STANDARD.encode(digits.to_uppercase())]
    }) {
        assert_eq!(refuse(solidgate, &forged, "upper case").code(), "malformed_signature");
    }
}
