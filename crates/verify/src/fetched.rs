//! Keys that the provider serves: which one a request needs, and what was fetched.
//!
//! Nothing is fetched here. Whoever receives requests asks [`wanted_key`] first, fetches what it
//! names, without following redirects and within limits of time and size, keeps what
//! [`FetchedKey::parse`] made of it, and hands that to [`verify_with`](crate::verify_with).

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::certificate::{self, Certificate, Roots};
use crate::jwk::{self, JwsKey};
use crate::jws;
use crate::provider::{KeyForm, Provider, Scheme, Text};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::verify::{accepted, can_check, is_present};

/// The largest answer of a key server that is read.
pub const FETCHED_BYTES_MAX: usize = 256 * 1024;

/// How many keys of one set are read.
const KEYS_MAX: usize = 64;

/// A certificate or a set of keys that must be fetched before a request can be checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WantedKey {
    /// Where it is: `https`, the usual port, and a host that the entry or the source names.
    /// What was fetched may be kept under it.
    pub url: String,
    /// Which key of a set made the signature, where the request says that.
    pub kid: Option<String>,
    /// What is served there.
    pub form: WantedForm,
}

/// What is served under a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WantedForm {
    /// A certificate in PEM, perhaps with others that lead to a root.
    Certificate {
        /// What the name of its subject must end with.
        subject_end: Text,
        /// Whether it must lead to a root.
        chained: bool,
    },
    /// A JSON Web Key Set.
    KeySet,
}

/// A certificate or a set of keys that was fetched and found good.
#[derive(Debug)]
pub struct FetchedKey {
    url: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Certificate(Certificate),
    KeySet(Vec<SetKey>),
}

/// One key of a set; none where it is of a kind, or for a use, that is not ours.
#[derive(Debug, Deserialize)]
struct SetKey {
    kid: Option<String>,
    #[serde(skip)]
    key: Option<JwsKey>,
}

#[derive(Deserialize)]
struct KeySet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl FetchedKey {
    /// Reads what was served for `wanted`: PEM, dates at `now`, subject and chain of a
    /// certificate; the keys of a set.
    pub fn parse(
        wanted: &WantedKey,
        bytes: &[u8],
        roots: &Roots,
        now: Timestamp,
    ) -> Result<FetchedKey, BadKey> {
        if bytes.len() > FETCHED_BYTES_MAX {
            return Err(BadKey::TooLarge);
        }
        let content = match &wanted.form {
            WantedForm::Certificate { subject_end, chained } => {
                let roots = chained.then_some(roots);
                Content::Certificate(certificate::parse_fetched(bytes, subject_end, roots, now)?)
            }
            WantedForm::KeySet => Content::KeySet(key_set(bytes)?),
        };
        Ok(FetchedKey { url: wanted.url.clone(), content })
    }

    /// Whether it has what is wanted. A set that lacks a key may be older than the key: fetch
    /// it again, but not for every request that says so.
    pub fn has(&self, wanted: &WantedKey) -> bool {
        let has_key = match (&self.content, &wanted.kid) {
            (Content::KeySet(keys), Some(kid)) => keys.iter().any(|key| key.is(kid)),
            _ => true,
        };
        self.url == wanted.url && has_key
    }

    /// When it ends to be good; none where it does not say.
    pub fn not_after(&self) -> Option<Timestamp> {
        match &self.content {
            Content::Certificate(certificate) => Some(certificate.not_after()),
            Content::KeySet(_) => None,
        }
    }

    /// The certificate that was served under `url`.
    pub(crate) fn certificate(&self, url: &str) -> Option<&Certificate> {
        match &self.content {
            Content::Certificate(certificate) if self.url == url => Some(certificate),
            _ => None,
        }
    }

    /// The keys of a set that was served under `url`: the one of that `kid`, or all where the
    /// request names none. None for one that checks no signatures.
    pub(crate) fn jwks<'a>(
        &'a self,
        url: &str,
        kid: Option<&'a str>,
    ) -> impl Iterator<Item = Option<&'a JwsKey>> {
        let keys = match &self.content {
            Content::KeySet(keys) if self.url == url => keys.as_slice(),
            _ => &[],
        };
        let fits = move |key: &&SetKey| kid.is_none_or(|kid| key.is(kid));
        keys.iter().filter(fits).map(|key| key.key.as_ref())
    }
}

impl SetKey {
    fn is(&self, kid: &str) -> bool {
        self.kid.as_deref() == Some(kid)
    }
}

fn key_set(bytes: &[u8]) -> Result<Vec<SetKey>, BadKey> {
    let set: KeySet<'_> = serde_json::from_slice(bytes).map_err(|_| BadKey::Unreadable)?;
    if set.keys.is_empty() || set.keys.len() > KEYS_MAX {
        return Err(BadKey::Unreadable);
    }
    let read = |raw: &RawValue| {
        let key: SetKey = serde_json::from_str(raw.get()).map_err(|_| BadKey::Unreadable)?;
        Ok(SetKey { key: jwk::read_served(raw.get()), ..key })
    };
    set.keys.into_iter().map(read).collect()
}

/// Why what was fetched is no key to trust. The sender is at fault for none of these: its server
/// is, or whoever stands in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadKey {
    /// More bytes than any key has.
    #[error("more than {FETCHED_BYTES_MAX} bytes")]
    TooLarge,
    /// Neither a certificate nor a key set.
    #[error("not what is served there: no certificate in PEM, or no key set")]
    Unreadable,
    /// The time of the certificate is over.
    #[error("the certificate is expired")]
    Expired,
    /// The time of the certificate has not begun.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// The certificate is somebody else's.
    #[error("the certificate is not the provider's")]
    WrongSubject,
    /// The certificate does not lead to a root that is trusted.
    #[error("the certificate leads to no root that is trusted")]
    Unchained,
}

impl BadKey {
    /// A stable name for logs and metrics. Never renamed.
    pub fn code(&self) -> &'static str {
        match self {
            BadKey::TooLarge => "key_too_large",
            BadKey::Unreadable => "key_unreadable",
            BadKey::Expired => "certificate_expired",
            BadKey::NotYetValid => "certificate_not_yet_valid",
            BadKey::WrongSubject => "certificate_wrong_subject",
            BadKey::Unchained => "certificate_unchained",
        }
    }
}

/// Which certificate or key set must be fetched before this request can be checked. None where
/// nothing must: the source has the key, or the scheme needs none.
///
/// A rejection means that the request names a place which is not the provider's, or no place;
/// nothing may be fetched for it.
pub fn wanted_key(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    for (number, scheme) in accepted(provider, keyring) {
        let has_keys = !keyring.keys(number).is_empty();
        if !is_present(scheme, request) || !can_check(keyring, number, scheme) {
            continue;
        }
        // The first that is present decides, as it does when the request is verified.
        return match scheme {
            Scheme::Signature(signature) => match &signature.key {
                KeyForm::Certificate(at) => certificate::wanted(at, number, keyring, request),
                _ => Ok(None),
            },
            Scheme::Token(_) => Ok(None),
            Scheme::Jws(_) if has_keys => Ok(None),
            Scheme::Jws(jws) => jws::wanted(jws, keyring, request),
            Scheme::Special(special) => special.wanted_key(number, keyring, request),
        };
    }
    Ok(None)
}
