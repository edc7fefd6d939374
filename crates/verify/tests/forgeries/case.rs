//! What is forged: every entry with its secrets, what is signed with them, and its verdict.

use std::ops::Deref;

use jiff::Timestamp;
use oncebox_verify::{
    Draft, KeyForm, Keyring, Provider, Rejection, SampleEvent, Scheme, Secret, catalogue, sample,
    sign_with, verify,
};

use crate::keys::Keys;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const PRIVATE: &str = "whsk_3+wiRzd38N2uqY10BFwirpApqOO3Wqj8zpQaop5bBzs=";
pub(crate) const PUBLIC: &str = "whpk_0MtEY8IYrd5Q6CsPVUQ/aDVBsLqKUsNHfLtjDA18R2o=";
const OTHER_PRIVATE: &str = "whsk_2SmKENGwc1g33EvYXaxkGw887yekfl1TpU8vP1svz/o=";
pub(crate) const ID: &str = "evt_0001";

/// An entry of the catalogue and one kind of secret that it takes.
pub(crate) struct Case {
    pub(crate) provider: &'static Provider,
    pub(crate) scheme: &'static Scheme,
    /// What the sender signs with.
    pub(crate) signs: Keyring,
    /// What we check that with.
    pub(crate) checks: Keyring,
    /// What somebody else signs with.
    pub(crate) foreign: Keyring,
}

impl Deref for Case {
    type Target = Provider;

    fn deref(&self) -> &Provider {
        self.provider
    }
}

/// Every entry, once for each kind of secret.
pub(crate) fn cases() -> Vec<Case> {
    played().into_iter().chain(pairs()).collect()
}

/// Every entry with the secret of its first scheme. RSA with SHA-1, as Travis CI uses it, is
/// signed by nobody else any more, so that entry has only its vectors.
pub(crate) fn played() -> Vec<Case> {
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
pub(crate) fn pairs() -> Vec<Case> {
    let paired = |provider: &&'static Provider| {
        let scheme = provider.schemes.iter().find(|scheme| is_pair(scheme))?;
        let keyring = |key: &str| Keyring::new(provider, vec![Secret::new(key)]).unwrap();
        let (signs, checks, foreign) = (keyring(PRIVATE), keyring(PUBLIC), keyring(OTHER_PRIVATE));
        Some(Case { provider, scheme, signs, checks, foreign })
    };
    catalogue::ALL.iter().filter_map(paired).collect()
}

pub(crate) fn is_pair(scheme: &Scheme) -> bool {
    scheme.signature().is_some_and(|signature| signature.key == KeyForm::Whpk)
}

/// An entry of the catalogue with [`SECRET`].
pub(crate) fn case(name: &str) -> Case {
    let provider = catalogue::find(name).unwrap();
    let keyring = || Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    let (signs, checks, foreign) = (keyring(), keyring(), keyring());
    Case { provider, scheme: &provider.schemes[0], signs, checks, foreign }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

pub(crate) fn draft(provider: &Provider) -> Draft {
    sample(provider, &SampleEvent { id: ID, event_type: "", at: now(), object: None })
}

pub(crate) fn signed(case: &Case) -> Draft {
    signed_by(case, &case.signs)
}

pub(crate) fn signed_with(provider: &Provider, secret: &str) -> Draft {
    signed_by(provider, &Keyring::new(provider, vec![Secret::new(secret)]).unwrap())
}

pub(crate) fn signed_by(provider: &Provider, keyring: &Keyring) -> Draft {
    sign_with(provider, keyring, draft(provider), now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

pub(crate) fn check_at(case: &Case, draft: &Draft, at: Timestamp) -> Result<usize, Rejection> {
    verify(case, &case.checks, &draft.request(), at).map(|verified| verified.secret)
}

#[track_caller]
pub(crate) fn refuse(case: &Case, draft: &Draft, what: &str) -> Rejection {
    match check_at(case, draft, now()) {
        Ok(_) => panic!("{}: accepted {what}: {draft:?}", case.name),
        Err(rejection) => rejection,
    }
}

/// All that is wrong with the catalogue at once.
#[track_caller]
pub(crate) fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
