//! What must be refused of every entry, made from its vectors: a changed body, signature or time,
//! another secret, and headers that are missing, empty, doubled or garbage.

use http::{HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    Draft, Keyring, Place, Provider, Rejection, Scheme, Trust, guard_digest, identify, verify,
};

use crate::vector::{Vector, vectors};

/// A vector that verifies, taken apart.
pub(crate) struct Genuine {
    vector: Vector,
    pub(crate) provider: &'static Provider,
    pub(crate) keyring: Keyring,
    pub(crate) draft: Draft,
    pub(crate) now: Timestamp,
}

impl Genuine {
    pub(crate) fn all() -> Vec<Genuine> {
        let valid = |v: &Vector| v.kind == "signature" && v.expect == "valid";
        vectors().into_iter().filter(valid).filter_map(Genuine::of).collect()
    }

    fn of(vector: Vector) -> Option<Genuine> {
        let provider = vector.provider()?;
        let keyring = vector.keyring(provider).ok()?;
        let draft = Draft {
            method: vector.method.clone().unwrap_or_else(|| "POST".to_owned()),
            url: vector.url.clone().unwrap_or_else(|| "/".to_owned()),
            headers: vector.headers(),
            body: vector.body(),
        };
        let now = Timestamp::from_second(vector.now).unwrap();
        Some(Genuine { vector, provider, keyring, draft, now })
    }

    fn check(&self, draft: &Draft) -> Result<usize, Rejection> {
        verify(self.provider, &self.keyring, &draft.request(), self.now).map(|v| v.secret)
    }

    #[track_caller]
    fn refuse(&self, draft: &Draft, what: &str) -> Rejection {
        match self.check(draft) {
            Ok(_) => {
                panic!("{} ({}): accepted {what}: {draft:?}", self.vector.id, self.provider.name)
            }
            Err(rejection) => rejection,
        }
    }

    /// The scheme that decided.
    fn scheme(&self) -> &'static Scheme {
        let decided = verify(self.provider, &self.keyring, &self.draft.request(), self.now);
        let name = decided.unwrap().scheme;
        self.provider.schemes.iter().find(|scheme| scheme.name() == name).unwrap()
    }

    /// Whether the signature covers what makes the event the same.
    fn signs_id(&self) -> bool {
        let event = identify(self.provider, &self.draft.request());
        event.is_ok_and(|event| event.trust == Trust::Signed)
    }

    /// The headers that hold the proof.
    fn proof_headers(&self) -> Vec<String> {
        let schemes = self.provider.schemes.iter();
        let named = schemes.flat_map(|scheme| match scheme.signature().map(|s| &s.place) {
            Some(Place::AnyOf(names)) => names.iter().map(|name| name.to_lowercase()).collect(),
            _ => scheme.header().map(str::to_lowercase).into_iter().collect::<Vec<_>>(),
        });
        named.filter(|name| self.draft.headers.contains_key(name)).collect()
    }

    fn with_header(&self, name: &str, value: &str) -> Draft {
        let mut draft = self.draft.clone();
        let name: HeaderName = name.parse().unwrap();
        draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
        draft
    }
}

/// Whether several signatures may be sent, so that one more does no harm.
fn takes_several(scheme: &Scheme) -> bool {
    let place = scheme.signature().map(|signature| &signature.place);
    matches!(place, Some(Place::Repeated(_)))
}

/// Where a signature covers less than the body, what it covers stands for the event: a changed
/// body is known by its guard or by its signed id, and never a new event of its own. A token covers
/// nothing, and its entry says so.
#[test]
fn a_changed_body_is_refused_or_known() {
    for genuine in Genuine::all() {
        let body = &genuine.draft.body;
        let step = (body.len() / 200).max(1);
        let guard = guard_digest(genuine.provider, &genuine.draft.request());
        for place in (0..body.len()).step_by(step) {
            let mut forged = genuine.draft.clone();
            forged.body[place] ^= 1;
            if genuine.scheme().covers_body() {
                genuine.refuse(&forged, "a flipped bit in the body");
            } else if genuine.check(&forged).is_ok() {
                let name = &genuine.provider.name;
                let known = guard.is_some() || genuine.signs_id();
                let token = matches!(genuine.scheme(), Scheme::Token(_));
                assert!(known || token, "{name}: neither covered nor guarded");
            }
        }
    }
}

#[test]
fn a_changed_signature_is_refused() {
    for genuine in Genuine::all() {
        let names = genuine.proof_headers();
        // Of two keys that sign side by side, each is enough.
        let side_by_side =
            |scheme: &Scheme| matches!(scheme.signature().map(|s| &s.place), Some(Place::AnyOf(_)));
        if names.len() > 1 && side_by_side(genuine.scheme()) {
            continue;
        }
        // eBay's header also names a key, and that name is not signed.
        if genuine.provider.name == "ebay" {
            continue;
        }
        for name in names {
            let value = genuine.draft.headers[&name].to_str().unwrap().to_owned();
            let [token] = signatures_in(&value)[..] else { continue };
            let start = value.find(token).unwrap();
            for place in start..start + token.len() {
                let old = value.as_bytes()[place];
                let new = if old.eq_ignore_ascii_case(&b'a') { 'b' } else { 'a' };
                let forged = format!("{}{new}{}", &value[..place], &value[place + 1..]);
                genuine.refuse(&genuine.with_header(&name, &forged), "a changed signature");
            }
            for end in start..start + token.len() {
                genuine.refuse(&genuine.with_header(&name, &value[..end]), "a prefix");
            }
            let longer = format!("{}{token}A{}", &value[..start], &value[start + token.len()..]);
            genuine.refuse(&genuine.with_header(&name, &longer), "a longer signature");
        }
    }
}

/// What looks like signatures in a header.
fn signatures_in(value: &str) -> Vec<&str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    let after_label = |text: &'_ str| text.rfind([',', '=']).filter(|at| at + 2 < text.len());
    let mut found = Vec::new();
    for run in value.split(|c| !inside(c)) {
        let bare = run.trim_end_matches('=');
        let start = after_label(bare).map_or(0, |at| at + 1);
        if run.len() - start >= 20 {
            found.push(&run[start..]);
        }
    }
    found
}

#[test]
fn the_proof_must_be_there_once() {
    for genuine in Genuine::all() {
        // Further schemes may be present beside the one that decides.
        let [name] = &genuine.proof_headers()[..] else { continue };
        let mut missing = genuine.draft.clone();
        missing.headers.remove(name);
        genuine.refuse(&missing, "no proof");
        for garbage in
            ["", " ", "=", ",", "null", "{}", "v1=", "v1,", "sha256=", "Bearer ", "a.b.c"]
        {
            genuine.refuse(&genuine.with_header(name, garbage), "garbage");
        }
        let long = "a".repeat(9000);
        genuine.refuse(&genuine.with_header(name, &long), "a long header");
        if !takes_several(genuine.scheme()) {
            let mut repeated = genuine.draft.clone();
            let value = genuine.draft.headers[name].clone();
            repeated.headers.append(name.parse::<HeaderName>().unwrap(), value);
            genuine.refuse(&repeated, "a repeated header");
        }
    }
}

#[test]
fn another_secret_is_refused() {
    for genuine in Genuine::all() {
        let others = genuine.vector.other_secrets();
        if others.is_empty() {
            continue;
        }
        let settings = genuine.vector.settings();
        // A key that cannot be read any more is refused even earlier.
        let Ok(keyring) = Keyring::with_settings(genuine.provider, others, settings) else {
            continue;
        };
        let verdict = verify(genuine.provider, &keyring, &genuine.draft.request(), genuine.now);
        assert!(verdict.is_err(), "{}: another secret", genuine.vector.id);
    }
}

#[test]
fn an_old_request_is_refused_where_a_time_is_signed() {
    for genuine in Genuine::all() {
        if !genuine.scheme().signs_timestamp() {
            continue;
        }
        let later = genuine.now + SignedDuration::from_hours(72);
        let verdict = verify(genuine.provider, &genuine.keyring, &genuine.draft.request(), later);
        let rejection = verdict.expect_err(&genuine.vector.id);
        assert!(rejection.is_about_time(), "{}: {rejection}", genuine.vector.id);
    }
}

/// Every byte of every header, one at a time: nothing panics, and a header that decides does so.
#[test]
fn a_signed_time_and_id_cannot_be_changed() {
    for genuine in Genuine::all() {
        let Some(signature) = genuine.scheme().signature() else { continue };
        let mut signed: Vec<String> = Vec::new();
        if let Some(Place::Header(name)) = signature.timestamp.as_ref().map(|stamp| &stamp.place) {
            signed.push(name.to_lowercase());
        }
        for part in signature.signed.iter() {
            if let oncebox_verify::Part::Header(name) = part {
                signed.push(name.to_lowercase());
            }
        }
        for name in signed {
            let value = genuine.draft.headers[&name].to_str().unwrap().to_owned();
            for (place, old) in value.char_indices() {
                let new = if old == '1' { '2' } else { '1' };
                let forged = format!("{}{new}{}", &value[..place], &value[place + 1..]);
                genuine.refuse(&genuine.with_header(&name, &forged), "a changed header");
            }
        }
    }
}
