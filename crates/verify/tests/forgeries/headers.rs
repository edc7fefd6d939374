//! Headers and parameters that are missing, empty, doubled or no text.

use http::{HeaderName, HeaderValue};
use oncebox_verify::{Part, Place, Rejection, Scheme, Signature, Token, TokenPlace};

use crate::case::{Case, cases, check_at, draft, none, now, played, refuse, signed};
use crate::proof::{proof_header, with_header};

/// The headers without which the sample proves nothing.
fn needed_headers(case: &Case) -> Vec<String> {
    let mut names: Vec<String> = proof_header(case).into_iter().collect();
    if let Some(layout) = case.scheme.signature() {
        if let Some(Place::Header(name)) = layout.timestamp.as_ref().map(|stamp| &stamp.place) {
            names.push(name.to_lowercase());
        }
        names.extend(layout.signed.iter().filter_map(|part| match part {
            Part::Header(name) => Some(name.to_lowercase()),
            _ => None,
        }));
    }
    names
}

/// Whether several signatures may be sent in headers of one name.
fn is_repeated(case: &Case) -> bool {
    let place = case.scheme.signature().map(|signature| &signature.place);
    matches!(place, Some(Place::Repeated(_)))
}

#[test]
fn needed_headers_are_there_once() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let draft = signed(case);
        for name in needed_headers(case) {
            let header: HeaderName = name.parse().unwrap();
            let mut missing = draft.clone();
            missing.headers.remove(&name);
            let empty = with_header(&draft, &name, "");
            let mut repeated = draft.clone();
            repeated.headers.append(&header, draft.headers[&name].clone());
            let mut not_text = draft.clone();
            let bytes = HeaderValue::from_bytes(b"v1,\xff\xfe").unwrap();
            not_text.headers.insert(&header, bytes);
            let long = with_header(&draft, &name, &"a".repeat(4097));
            let may_repeat = is_repeated(case) && Some(&name) == proof_header(case).as_ref();
            // A dictionary may come in several lines, and has no label twice.
            let is_dictionary = case.name == "http-message-signatures";
            let twice = if is_dictionary { "malformed_header" } else { "repeated_header" };
            for (what, forged, codes) in [
                ("missing", missing, ["missing_header", "missing_timestamp"]),
                ("empty", empty, ["missing_header", "missing_timestamp"]),
                ("repeated", repeated, [twice; 2]),
                ("not text", not_text, ["malformed_header"; 2]),
                ("too long", long, ["malformed_header"; 2]),
            ] {
                let code = check_at(case, &forged, now()).map_err(|rejection| rejection.code());
                if what == "repeated" && may_repeat {
                    assert_eq!(code, Ok(0), "{}", case.name);
                } else if !code.is_err_and(|code| codes.contains(&code)) {
                    wrong.push(format!("{}: {name} {what}: {code:?}", case.name));
                }
            }
        }
    }
    none(&wrong);
}

/// A proof that is not in a header is missed by its name too.
#[test]
fn a_missing_parameter_is_named() {
    let mut seen = 0;
    for case in &played() {
        let name = match case.scheme {
            Scheme::Signature(Signature { place: Place::Query(name), .. })
            | Scheme::Token(Token { place: TokenPlace::Query(name), .. }) => name,
            _ => continue,
        };
        let rejection = refuse(case, &draft(case), "no proof");
        let expected = Rejection::MissingHeader { name: name.clone() };
        assert_eq!(rejection, expected, "{}", case.name);
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}
