//! Secrets of the form that each entry takes.

use std::sync::{Arc, Mutex};

use oncebox_verify::{
    Algorithm, BadSecret, KeyForm, KeyPair, Keyring, Part, Provider, Scheme, Secret, Settings,
    Signature, generate_pair, made_up_secret,
};

/// What a sender signs with, and what its receiver checks that with.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    signs: (Secret, Settings),
    checks: (Secret, Settings),
    other: (Secret, Settings),
}

impl Keys {
    /// Those of the first scheme of an entry; none where nobody should sign that way any more.
    pub(crate) fn of(provider: &'static Provider) -> Option<Keys> {
        let scheme = &provider.schemes[0];
        if signs_with_pair(scheme) {
            let [ours, other] = &*pairs(provider)?;
            let signature = scheme.signature();
            if signature.is_some_and(|signature| signature.signed.contains(&Part::Secret)) {
                return Some(Keys::beside(provider, ours));
            }
            let with = |secret: &str| (Secret::new(secret), settings(provider));
            let (signs, checks) = (with(ours.private_pem()), with(&ours.public));
            return Some(Keys { signs, checks, other: with(other.private_pem()) });
        }
        let with = |random| Some((made_up_secret(provider, &random)?, settings(provider)));
        let (ours, other) = (with([4; 32])?, with([5; 32])?);
        Some(Keys { signs: ours.clone(), checks: ours, other })
    }

    /// PayPal's secret is an id that is signed, and one key signs for all ids.
    fn beside(provider: &Provider, pair: &KeyPair) -> Keys {
        let with = |secret: &str, key: &str| {
            let mut settings = settings(provider);
            settings.insert("public_key".to_owned(), key.to_owned());
            (Secret::new(secret), settings)
        };
        Keys {
            signs: with("sample-webhook-1", pair.private_pem()),
            checks: with("sample-webhook-1", &pair.public),
            other: with("sample-webhook-2", pair.private_pem()),
        }
    }

    /// A keyring of the same settings with another secret, which may not fit.
    pub(crate) fn with_secret(
        &self,
        provider: &Provider,
        secret: Secret,
    ) -> Result<Keyring, BadSecret> {
        Keyring::with_settings(provider, vec![secret], self.checks.1.clone())
    }

    pub(crate) fn signing(&self, provider: &Provider) -> Keyring {
        keyring(provider, std::slice::from_ref(&self.signs))
    }

    pub(crate) fn checking(&self, provider: &Provider) -> Keyring {
        keyring(provider, std::slice::from_ref(&self.checks))
    }

    /// For a sender whose key is another than ours.
    pub(crate) fn foreign(&self, provider: &Provider) -> Keyring {
        keyring(provider, std::slice::from_ref(&self.other))
    }

    /// For a receiver that takes the keys of both senders.
    pub(crate) fn both(&self, provider: &Provider) -> Keyring {
        keyring(provider, &[self.checks.clone(), self.other.clone()])
    }
}

fn signs_with_pair(scheme: &Scheme) -> bool {
    match scheme {
        // Those of `whsk_` are known; their entries take a shared secret too.
        Scheme::Signature(signature) => {
            signature.algorithm.is_asymmetric() && signature.key != KeyForm::Whpk
        }
        Scheme::Jws(jws) => !jws.algorithms[0].is_hmac(),
        Scheme::Special(_) => ["sns", "ebay", "http-message-signatures"].contains(&scheme.name()),
        _ => false,
    }
}

/// Two key pairs of the kind that the entry signs with. Making one takes a while with RSA, so
/// entries of one kind share them.
fn pairs(provider: &Provider) -> Option<Arc<[KeyPair; 2]>> {
    static MADE: Mutex<Vec<Arc<[KeyPair; 2]>>> = Mutex::new(Vec::new());
    let is_outdated = |signature: &Signature| signature.algorithm == Algorithm::RsaSha1;
    if provider.schemes[0].signature().is_some_and(is_outdated) {
        return None;
    }
    let fits = |pairs: &&Arc<[KeyPair; 2]>| {
        let private = vec![Secret::new(pairs[0].private_pem())];
        Keyring::with_settings(provider, private, settings(provider)).is_ok()
    };
    let mut made = MADE.lock().unwrap();
    if let Some(pairs) = made.iter().find(fits) {
        return Some(pairs.clone());
    }
    let pairs = Arc::new([generate_pair(provider)?, generate_pair(provider)?]);
    made.push(pairs.clone());
    Some(pairs)
}

fn keyring(provider: &Provider, secrets: &[(Secret, Settings)]) -> Keyring {
    let settings = secrets[0].1.clone();
    let secrets = secrets.iter().map(|(secret, _)| secret.clone()).collect();
    Keyring::with_settings(provider, secrets, settings)
        .unwrap_or_else(|bad| panic!("{}: {bad}", provider.name))
}

/// Something for everything that the entry needs to be told.
fn settings(provider: &Provider) -> Settings {
    let needed = provider.settings.iter().filter(|setting| setting.needed);
    needed.map(|setting| (setting.key.to_string(), sample_of(provider, &setting.key))).collect()
}

fn sample_of(provider: &Provider, key: &str) -> String {
    match key {
        "topic_arn" if provider.name == "aws-ses" => {
            "arn:aws:sns:us-east-1:123456789012:ses".to_owned()
        }
        "topic_arn" => "arn:aws:sns:us-east-1:123456789012:orders".to_owned(),
        "audience" => "https://example.com/in/sample".to_owned(),
        "service_account" => "pusher@project.iam.gserviceaccount.com".to_owned(),
        key => format!("sample-{key}"),
    }
}
