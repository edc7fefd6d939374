//! Forgeries made from a genuine request of every entry. A new entry gets them free.
//!
//! What can be made of a vector instead is in `catalogue/negatives.rs`.

use std::ops::Deref;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    Algorithm, BadSecret, CannotSign, Draft, Encoding, Field, Identity, KeyForm, Keyring, Part,
    Place, Provider, Rejection, SampleEvent, Scheme, Secret, Signature, TimeFormat, Token,
    TokenPlace, Trust, TypeRule, catalogue, events, generate_pair, identify, sample, sign,
    sign_with, verify,
};
use sha2::Sha256;

use crate::keys::Keys;

#[expect(dead_code, reason = "other tests ask for more kinds of keyrings")]
mod keys;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PRIVATE: &str = "whsk_3+wiRzd38N2uqY10BFwirpApqOO3Wqj8zpQaop5bBzs=";
const PUBLIC: &str = "whpk_0MtEY8IYrd5Q6CsPVUQ/aDVBsLqKUsNHfLtjDA18R2o=";
const OTHER_PRIVATE: &str = "whsk_2SmKENGwc1g33EvYXaxkGw887yekfl1TpU8vP1svz/o=";
const ID: &str = "evt_0001";

/// An entry of the catalogue and one kind of secret that it takes.
struct Case {
    provider: &'static Provider,
    scheme: &'static Scheme,
    /// What the sender signs with.
    signs: Keyring,
    /// What we check that with.
    checks: Keyring,
    /// What somebody else signs with.
    foreign: Keyring,
}

impl Deref for Case {
    type Target = Provider;

    fn deref(&self) -> &Provider {
        self.provider
    }
}

/// Every entry with the secret of its first scheme. RSA with SHA-1, as Travis CI uses it, is
/// signed by nobody else any more, so that entry has only its vectors.
fn played() -> Vec<Case> {
    let keyed = |provider: &&'static Provider| {
        let keys = Keys::of(provider)?;
        Some(Case {
            provider,
            scheme: &provider.schemes[0],
            signs: keys.signing(provider),
            checks: keys.checking(provider),
            foreign: keys.foreign(provider),
        })
    };
    catalogue::ALL.iter().filter_map(keyed).collect()
}

/// Every entry that also takes the key pairs of Standard Webhooks.
fn pairs() -> Vec<Case> {
    let paired = |provider: &&'static Provider| {
        let scheme = provider.schemes.iter().find(|scheme| is_pair(scheme))?;
        let keyring = |key: &str| Keyring::new(provider, vec![Secret::new(key)]).unwrap();
        let (signs, checks, foreign) = (keyring(PRIVATE), keyring(PUBLIC), keyring(OTHER_PRIVATE));
        Some(Case { provider, scheme, signs, checks, foreign })
    };
    catalogue::ALL.iter().filter_map(paired).collect()
}

fn is_pair(scheme: &Scheme) -> bool {
    scheme.signature().is_some_and(|signature| signature.key == KeyForm::Whpk)
}

/// Whether some key of a pair fits.
fn takes_key(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Signature(signature) => signature.algorithm.is_asymmetric(),
        Scheme::Jws(jws) => jws.algorithms.iter().any(|algorithm| !algorithm.is_hmac()),
        Scheme::Special(_) => ["sns", "ebay"].contains(&scheme.name()),
        _ => false,
    }
}

/// Every entry, once for each kind of secret.
fn cases() -> Vec<Case> {
    played().into_iter().chain(pairs()).collect()
}

/// An entry of the catalogue with [`SECRET`].
fn case(name: &str) -> Case {
    let provider = catalogue::find(name).unwrap();
    let keyring = || Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    let (signs, checks, foreign) = (keyring(), keyring(), keyring());
    Case { provider, scheme: &provider.schemes[0], signs, checks, foreign }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn draft(provider: &Provider) -> Draft {
    sample(provider, &SampleEvent { id: ID, event_type: "", at: now(), object: None })
}

fn signed_by(provider: &Provider, keyring: &Keyring) -> Draft {
    sign_with(provider, keyring, draft(provider), now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

fn signed(case: &Case) -> Draft {
    signed_by(case, &case.signs)
}

fn signed_with(provider: &Provider, secret: &str) -> Draft {
    signed_by(provider, &Keyring::new(provider, vec![Secret::new(secret)]).unwrap())
}

fn check_at(case: &Case, draft: &Draft, at: Timestamp) -> Result<usize, Rejection> {
    verify(case, &case.checks, &draft.request(), at).map(|verified| verified.secret)
}

#[track_caller]
fn refuse(case: &Case, draft: &Draft, what: &str) -> Rejection {
    match check_at(case, draft, now()) {
        Ok(_) => panic!("{}: accepted {what}: {draft:?}", case.name),
        Err(rejection) => rejection,
    }
}

/// All that is wrong with the catalogue at once.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The header of the proof the sample carries; none where it is elsewhere.
fn proof_header(case: &Case) -> Option<String> {
    match case.scheme.signature().map(|signature| &signature.place) {
        Some(Place::Numbered(before)) => Some(format!("{before}1").to_lowercase()),
        _ => case.scheme.header().map(str::to_lowercase),
    }
}

fn with_header(draft: &Draft, name: &str, value: &str) -> Draft {
    let mut draft = draft.clone();
    let name: HeaderName = name.parse().unwrap();
    draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
    draft
}

/// The same draft with other proofs in place of the right one.
fn with_proofs(case: &Case, forge: impl Fn(&str) -> Vec<String>) -> Vec<Draft> {
    let draft = signed(case);
    let Some(name) = proof_header(case) else { return with_proofs_elsewhere(case, &draft, forge) };
    let right = draft.headers[&name].to_str().unwrap().to_owned();
    forge(&right).iter().map(|forged| with_header(&draft, &name, forged)).collect()
}

/// A proof in the body or the query: the longest text that signing brought in.
fn with_proofs_elsewhere(
    case: &Case,
    draft: &Draft,
    forge: impl Fn(&str) -> Vec<String>,
) -> Vec<Draft> {
    let text = |draft: &Draft| format!("{} {}", draft.url, String::from_utf8_lossy(&draft.body));
    let (before, after) = (text(&self::draft(case)), text(draft));
    let inside = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    let new = after.split(|c| !inside(c)).filter(|run| !before.contains(run));
    let right = new.max_by_key(|run| run.len()).unwrap();
    let with = |forged: &String| {
        let (url, body) = (draft.url.replace(right, forged), text(draft).replace(right, forged));
        let body = body.as_bytes()[url.len() + 1..].to_vec();
        Draft { url, body, ..draft.clone() }
    };
    forge(right).iter().map(with).collect()
}

/// Whether several signatures may be sent in headers of one name.
fn is_repeated(case: &Case) -> bool {
    let place = case.scheme.signature().map(|signature| &signature.place);
    matches!(place, Some(Place::Repeated(_)))
}

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

#[test]
fn every_case_is_genuine() {
    for case in &cases() {
        let verified = verify(case, &case.checks, &signed(case).request(), now());
        let decided = verified.map(|verified| (verified.secret, verified.scheme));
        assert_eq!(decided, Ok((0, case.scheme.name())), "{}", case.name);
    }
}

#[test]
fn a_sample_may_have_any_type() {
    let mut wrong = Vec::new();
    for case in &played() {
        // Where nothing names the type, or only with a fixed beginning, there is no choice; nor
        // where it is the key under which the object is.
        let is_key = |rule: &TypeRule| matches!(rule.first, Field::KeyBeside(_));
        let is_free = |rule: &TypeRule| rule.text.is_empty() && !is_key(rule);
        if !case.event_type.iter().any(is_free) {
            continue;
        }
        let event = SampleEvent { id: ID, event_type: "some.thing", at: now(), object: None };
        let draft = sample(case, &event);
        // SNS signs no types but its own; a token that is the body must be signed to be read.
        let draft = sign_with(case, &case.signs, draft.clone(), now()).unwrap_or(draft);
        let request = draft.request();
        let read = events(case, &request).unwrap();
        if read[0].event.event_type != "some.thing" {
            wrong.push(format!("{}: {}", case.name, read[0].event.event_type));
        }
    }
    none(&wrong);
}

/// Where nothing is signed, the entry says so.
#[test]
fn a_body_of_another_length_is_refused() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let draft = signed(case);
        if !case.scheme.covers_body() {
            // What a signature leaves out is guarded, which `negatives.rs` sees to. A token
            // covers nothing, and the operator must know.
            let words = ["signed", "body", "not what was sent", "not the content"];
            let warns = words.iter().any(|words| case.notes.contains(words));
            if matches!(case.scheme, Scheme::Token(_)) && !warns {
                wrong.push(format!("{}: {}", case.name, case.notes));
            }
            continue;
        }
        for body in [b"".as_slice(), &draft.body[1..], &[&draft.body, b"\n".as_slice()].concat()] {
            refuse(case, &Draft { body: body.to_vec(), ..draft.clone() }, "another length");
        }
    }
    none(&wrong);
}

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
            for (what, forged, codes) in [
                ("missing", missing, ["missing_header", "missing_timestamp"]),
                ("empty", empty, ["missing_header", "missing_timestamp"]),
                ("repeated", repeated, ["repeated_header"; 2]),
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

/// That the second of two secrets counts too is in `catalogue/samples.rs`.
#[test]
fn another_secret_is_refused_as_such() {
    for case in &cases() {
        let code = refuse(case, &signed_by(case, &case.foreign), "another secret").code();
        assert!(["signature_mismatch", "wrong_token"].contains(&code), "{}: {code}", case.name);
    }
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

#[test]
fn the_window_is_inclusive_and_has_two_sides() {
    for case in &cases() {
        let stamp = case.scheme.signature().and_then(|layout| layout.timestamp.as_ref());
        let Some(stamp) = stamp.filter(|stamp| stamp.format != TimeFormat::Nonce) else { continue };
        let draft = signed(case);
        let Some(limit) = stamp.tolerance_secs.map(i64::from) else { continue };
        let at = |secs: i64| now() + SignedDuration::from_secs(secs);
        let code = |secs| check_at(case, &draft, at(secs)).map_err(|r| r.code());
        assert_eq!(code(limit), Ok(0), "{}", case.name);
        assert_eq!(code(-limit), Ok(0), "{}", case.name);
        assert_eq!(code(limit + 1), Err("timestamp_too_old"), "{}", case.name);
        assert_eq!(code(-limit - 1), Err("timestamp_too_new"), "{}", case.name);
    }
}

#[test]
fn a_signed_id_cannot_be_changed() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let draft = signed(case);
        let request = draft.request();
        let is_signed = events(case, &request).unwrap()[0].event.trust == Trust::Signed;
        let forged = match case.identity.first() {
            Some(Identity::Field(Field::Header(name))) => with_header(&draft, name, "evt_0002"),
            Some(Identity::Field(Field::Query(_))) => {
                Draft { url: draft.url.replace(ID, "evt_0002"), ..draft.clone() }
            }
            _ => continue,
        };
        // Contentful signs the headers it lists, so none is taken for signed.
        let is_listed = case.name == "contentful";
        if check_at(case, &forged, now()).is_err() != (is_signed || is_listed) {
            wrong.push(format!("{}: is it signed? {is_signed}", case.name));
        }
    }
    none(&wrong);
}

/// An id under Svix's names means nothing beside a signature under the standard's.
#[test]
fn an_id_of_the_other_family_is_not_believed() {
    let svix = &case("svix");
    let standard = &case("standard-webhooks");
    let draft = with_header(&signed_with(standard, SECRET), "svix-id", "evt_0002");
    assert_eq!(check_at(svix, &draft, now()), Ok(0));
    let event = identify(svix, &draft.request()).unwrap();
    assert_eq!((event.id.as_ref(), event.trust), (ID, Trust::Signed));
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

#[test]
fn twilio_covers_every_kind_of_body() {
    let twilio = &case("twilio");
    let form = signed_with(twilio, SECRET);
    // A form passed off as something else is covered by nothing.
    let disguised = with_header(&form, "content-type", "application/json");
    assert_eq!(refuse(twilio, &disguised, "a disguised form").code(), "missing_body_hash");
    let weaker =
        with_header(&form, "x-twilio-webhooks-signature-settings", "key=k,algorithm=HMAC_MD5");
    assert_eq!(refuse(twilio, &weaker, "MD5").code(), "unknown_algorithm");

    let mut json = form.clone();
    json.headers.insert("content-type", HeaderValue::from_static("application/json"));
    json.body = br#"{"a":1}"#.to_vec();
    let mut json = sign(twilio, &Secret::new(SECRET), json, now()).unwrap();
    assert!(json.url.contains("?bodySHA256="));
    assert_eq!(check_at(twilio, &json, now()), Ok(0));
    json.body = br#"{"a":2}"#.to_vec();
    assert_eq!(refuse(twilio, &json, "another body").code(), "body_hash_mismatch");

    // Twilio signs the URL with or without its default port.
    let port = Draft { url: form.url.replace("example.com", "example.com:443"), ..form };
    assert_eq!(check_at(twilio, &port, now()), Ok(0));
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

#[test]
fn a_public_key_cannot_sign() {
    let svix = &case("svix");
    let event = SampleEvent { id: ID, event_type: "", at: now(), object: None };
    let signed = sign(svix, &Secret::new(PUBLIC), sample(svix, &event), now());
    assert_eq!(signed.unwrap_err(), CannotSign::PublicKey);
}
