//! Secrets that cannot be printed, and the keys made of them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::certificate::{self, Certificate};
use crate::ed25519::is_key;
use crate::mac::Key;
use crate::pem::is_pem;
use crate::provider::{Choice, Provider, SCHEME, Scheme, Text, Unsaid};

mod keys;

use keys::{accepted_schemes, fetches_any, is_excused, keep_accepted, key, pin};

/// A secret shared with a provider, or the key that its signatures are checked with.
/// It is wiped when dropped and never printed.
///
/// ```
/// use oncebox_verify::Secret;
///
/// let secret = Secret::new("whsec_abc");
/// assert_eq!(format!("{secret:?}"), "Secret(..redacted..)");
/// assert_eq!(secret.fingerprint().len(), 4);
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text of a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Four hex digits that tell the secrets of one source apart.
    ///
    /// They are 16 bits of a hash, so one wrong guess in 65,536 fits by chance: out of a billion
    /// guesses some 15,000 remain, out of a handful only the right one. Two secrets may share a
    /// fingerprint, which then names either. To know whether two secrets are the same, use
    /// [`is_same`](Secret::is_same).
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::new().chain_update("oncebox secret\0").chain_update(self.expose());
        hex::encode(&digest.finalize()[..2])
    }

    /// Whether both are the same secret, compared by their hashes so that the time taken
    /// tells nothing.
    pub fn is_same(&self, other: &Secret) -> bool {
        Sha256::digest(self.expose()) == Sha256::digest(other.expose())
    }

    /// A secret of Standard Webhooks whose key is the characters of this one. None if it is
    /// written as one already, rightly or wrongly.
    ///
    /// ```
    /// use oncebox_verify::Secret;
    ///
    /// let written = Secret::new("whsec_b3VyIG93biB3b3Jkcw==");
    /// assert!(Secret::new("our own words").as_whsec().unwrap().is_same(&written));
    /// assert!(written.as_whsec().is_none());
    /// ```
    pub fn as_whsec(&self) -> Option<Secret> {
        let is_written =
            ["whsec_", "whsk_", "whpk_"].iter().any(|begin| self.expose().starts_with(begin));
        let key = || STANDARD.encode(self.expose());
        (!is_written).then(|| Secret::new(format!("whsec_{}", key())))
    }

    /// The value of a header that shows this secret, after a word such as `Bearer `. None if a
    /// header cannot hold it. The value is marked as sensitive: it is sent, and never printed.
    ///
    /// ```
    /// use oncebox_verify::Secret;
    ///
    /// let value = Secret::new("sk_live_1").to_header("Bearer ").unwrap();
    /// assert_eq!(value.as_bytes(), b"Bearer sk_live_1");
    /// assert_eq!(format!("{value:?}"), "Sensitive");
    /// assert!(Secret::new("two\nlines").to_header("").is_none());
    /// ```
    pub fn to_header(&self, before: &str) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!("{before}{}", self.expose()));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The text itself: to be sealed, or shown to whom it belongs. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..redacted..)")
    }
}

/// The settings that are public keys of the provider. What the operator pins is neither fetched
/// nor asked for a chain.
const PINNED: [&str; 2] = ["public_key", "jwk"];

/// The setting that has certificates of the provider by their URLs.
const CERTIFICATES: &str = "certificates";

/// What a source says beside its secrets, by key.
pub type Settings = BTreeMap<String, String>;

/// The secrets of one source, decoded and keyed once for its provider.
///
/// ```
/// use oncebox_verify::{Keyring, Secret, catalogue};
///
/// let svix = catalogue::find("svix").unwrap();
/// let error = Keyring::new(svix, vec![Secret::new("not base64!")]).unwrap_err();
/// assert_eq!(error.code(), "not_base64");
/// ```
pub struct Keyring {
    secrets: Vec<Secret>,
    settings: Settings,
    /// What the operator pinned, by URL.
    certificates: BTreeMap<String, Certificate>,
    /// One row per scheme of the provider, one key per secret that fits it. Rows of schemes that
    /// the source does not accept are empty.
    keys: Vec<Vec<(usize, Key)>>,
    /// The schemes that the source accepts, in the order they are tried.
    accepted: Vec<usize>,
}

impl Keyring {
    /// Decodes `secrets` as the provider's schemes want them, newest first.
    pub fn new(provider: &Provider, secrets: Vec<Secret>) -> Result<Keyring, BadSecret> {
        Keyring::with_settings(provider, secrets, Settings::new())
    }

    /// The same for a provider that needs to know more of a source, such as PayPal the id of the
    /// webhook.
    pub fn with_settings(
        provider: &Provider,
        secrets: Vec<Secret>,
        settings: Settings,
    ) -> Result<Keyring, BadSecret> {
        let is_said = |key: &str| settings.get(key).is_some_and(|text| !text.is_empty());
        // Elsewhere such a setting is something else: Braintree's names a key.
        let takes_keys = provider.schemes.iter().any(Scheme::takes_public_key);
        let is_pinned = |key: &&str| takes_keys && is_said(key);
        let pinned: Vec<&'static str> = PINNED.iter().copied().filter(is_pinned).collect();
        let has_keys = !pinned.is_empty() && !provider.signs_secret();
        let fetches = fetches_any(provider, &settings)?;
        if secrets.is_empty() && !has_keys && !fetches {
            return Err(BadSecret::None);
        }
        Keyring::decode(provider, secrets, settings, &pinned)
    }

    /// The keyring of a source that waits for its provider to tell the secret. It believes
    /// nothing.
    ///
    /// ```
    /// use oncebox_verify::{Keyring, Secret, Settings, catalogue};
    ///
    /// let asana = catalogue::find("asana").unwrap();
    /// let unpaired = Keyring::unpaired(asana, Settings::new()).unwrap();
    /// assert_eq!(unpaired.len(), 0);
    /// assert_eq!(unpaired.with_more(asana, [Secret::new("told by Asana")])?.len(), 1);
    ///
    /// let stripe = catalogue::find("stripe").unwrap();
    /// assert!(Keyring::unpaired(stripe, Settings::new()).is_err());
    /// # Ok::<(), oncebox_verify::BadSecret>(())
    /// ```
    pub fn unpaired(provider: &Provider, settings: Settings) -> Result<Keyring, BadSecret> {
        match provider.pairing {
            Some(_) => Keyring::decode(provider, Vec::new(), settings, &[]),
            None => Err(BadSecret::None),
        }
    }

    /// A keyring with nothing on it. It believes nobody.
    pub fn none() -> Keyring {
        let (secrets, settings, certificates, keys, accepted) = Default::default();
        Keyring { secrets, settings, certificates, keys, accepted }
    }

    /// The same keyring for a source that accepts the strongest way to prove a request and no
    /// other.
    ///
    /// ```
    /// use oncebox_verify::{Keyring, Secret, catalogue};
    ///
    /// let gitlab = catalogue::find("gitlab").unwrap();
    /// let keyring = Keyring::new(gitlab, vec![Secret::new("whsec_c2FtcGxlIHNlY3JldA==")])?;
    /// assert!(keyring.learns(gitlab));
    /// assert!(!keyring.with_strongest(gitlab)?.learns(gitlab));
    /// # Ok::<(), oncebox_verify::BadSecret>(())
    /// ```
    pub fn with_strongest(&self, provider: &Provider) -> Result<Keyring, BadSecret> {
        let mut settings = self.settings.clone();
        if let Some(choice) = provider.choice {
            settings.insert(SCHEME.to_owned(), choice.strongest().to_owned());
        }
        Keyring::with_settings(provider, self.secrets.clone(), settings)
    }

    /// Whether the first request that is proved by the strongest way makes that way required.
    pub fn learns(&self, provider: &Provider) -> bool {
        let is_learned = |choice: &Choice| choice.unsaid == Unsaid::Learned;
        provider.choice.is_some_and(is_learned) && self.setting(SCHEME).is_none()
    }

    /// The way to prove a request that the source accepts alone, where it is one of several.
    pub(crate) fn way(&self, provider: &Provider) -> Option<&'static str> {
        let choice = provider.choice?;
        let way = choice.way_of(*self.accepted.first()?)?;
        self.accepted.iter().all(|number| choice.way_of(*number) == Some(way)).then_some(way)
    }

    /// The schemes that the source accepts, in the order they are tried.
    pub(crate) fn accepted(&self) -> &[usize] {
        &self.accepted
    }

    /// Whether it has a key for any scheme.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys.iter().any(|row| !row.is_empty())
    }

    /// The same keyring with more secrets, after those it has.
    pub fn with_more(
        &self,
        provider: &Provider,
        more: impl IntoIterator<Item = Secret>,
    ) -> Result<Keyring, BadSecret> {
        let secrets: Vec<Secret> = self.secrets.iter().cloned().chain(more).collect();
        match secrets.is_empty() {
            true => Keyring::unpaired(provider, self.settings.clone()),
            false => Keyring::with_settings(provider, secrets, self.settings.clone()),
        }
    }

    /// The same keyring with only this secret.
    pub fn with_only(&self, provider: &Provider, secret: Secret) -> Result<Keyring, BadSecret> {
        Keyring::with_settings(provider, vec![secret], self.settings.clone())
    }

    fn decode(
        provider: &Provider,
        secrets: Vec<Secret>,
        settings: Settings,
        pinned: &[&'static str],
    ) -> Result<Keyring, BadSecret> {
        let is_said = |key: &str| settings.get(key).is_some_and(|text| !text.is_empty());
        let has_key = !secrets.is_empty() || !pinned.is_empty() || is_said(CERTIFICATES);
        if let Some(setting) = provider.settings.iter().find(|setting| {
            setting.needed && !is_said(&setting.key) && !is_excused(provider, setting, has_key)
        }) {
            return Err(BadSecret::NoSetting { key: setting.key.clone() });
        }
        let accepted = accepted_schemes(provider, &settings)?;
        let mut keys: Vec<Vec<(usize, Key)>> = provider.schemes.iter().map(|_| vec![]).collect();
        for (number, secret) in secrets.iter().enumerate() {
            let is_half = is_key(secret.expose()) || is_pem(secret.expose());
            let mut fits = Err(match is_half {
                true => BadSecret::NotShared { number },
                false => BadSecret::Unfit { number },
            });
            for (scheme, row) in provider.schemes.iter().zip(&mut keys) {
                match key(scheme, number, secret) {
                    Ok(Some(key)) => {
                        row.push((number, key));
                        fits = Ok(());
                    }
                    Ok(None) => {}
                    // A secret that cannot be decoded is an error even if it would do
                    // for another scheme: silence would hide a slip of the pen.
                    Err(error) => return Err(error),
                }
            }
            fits?;
        }
        for (key, number) in pinned.iter().zip(secrets.len()..) {
            pin(provider, key, number, settings.get(*key).map_or("", |text| text), &mut keys)?;
        }
        keep_accepted(provider, &accepted, &mut keys, !secrets.is_empty())?;
        let certificates = match settings.get(CERTIFICATES).filter(|text| !text.is_empty()) {
            Some(text) => certificate::pinned(text)
                .ok_or(BadSecret::BadSetting { key: Text::Borrowed(CERTIFICATES) })?,
            None => BTreeMap::new(),
        };
        Ok(Keyring { secrets, settings, certificates, keys, accepted })
    }

    /// How many secrets there are.
    #[expect(clippy::len_without_is_empty, reason = "what has no secret may have other keys")]
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// The secrets, in the order given.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What the source says under `key`, where it says anything.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The certificate that the operator pinned for a URL.
    pub(crate) fn certificate(&self, url: &str) -> Option<&Certificate> {
        self.certificates.get(url)
    }

    pub(crate) fn keys(&self, scheme: usize) -> &[(usize, Key)] {
        self.keys.get(scheme).map_or(&[], Vec::as_slice)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keyring({} secrets)", self.secrets.len())
    }
}

/// Why a secret cannot be used. It says which one, counted from 0, never what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSecret {
    /// There is no secret at all.
    #[error("no secret")]
    None,
    /// A secret is empty or only white space.
    #[error("secret {} is empty", number + 1)]
    Empty {
        /// Which one.
        number: usize,
    },
    /// White space or a quote at the ends, which a copy often brings along.
    #[error("secret {} begins or ends with white space", number + 1)]
    Untrimmed {
        /// Which one.
        number: usize,
    },
    /// The scheme needs base64.
    #[error("secret {} is not base64", number + 1)]
    NotBase64 {
        /// Which one.
        number: usize,
    },
    /// The scheme needs hex digits.
    #[error("secret {} is not hex", number + 1)]
    NotHex {
        /// Which one.
        number: usize,
    },
    /// Basic authentication needs `user:password`.
    #[error("secret {} has no colon", number + 1)]
    NoColon {
        /// Which one.
        number: usize,
    },
    /// Half of a key pair, where a shared secret is needed.
    #[error("secret {} is a public or private key, not a shared secret", number + 1)]
    NotShared {
        /// Which one.
        number: usize,
    },
    /// After `whpk_` or `whsk_` there is no Ed25519 key, or one that anyone can sign for.
    #[error("secret {} is not an Ed25519 key", number + 1)]
    NotKey {
        /// Which one.
        number: usize,
    },
    /// Not the public key that the provider signs for, or one that is too weak.
    #[error("secret {} is not {expected}", number + 1)]
    NotPublicKey {
        /// Which one.
        number: usize,
        /// What it should be.
        expected: &'static str,
    },
    /// The provider needs to know more of the source.
    #[error("`{key}` is not set")]
    NoSetting {
        /// The key of the setting.
        key: Text,
    },
    /// What the source says under a key cannot be used.
    #[error("`{key}` cannot be read")]
    BadSetting {
        /// The key of the setting.
        key: Text,
    },
    /// The source chooses a way to prove requests that the provider does not have.
    #[error("`scheme` is `{said}`, which is no way to prove requests of this provider")]
    UnknownScheme {
        /// What the source says.
        said: String,
        /// What it may say.
        known: String,
    },
    /// No scheme of the provider uses such a secret.
    #[error("secret {} fits no scheme of this provider", number + 1)]
    Unfit {
        /// Which one.
        number: usize,
    },
}

impl BadSecret {
    /// A stable name for logs and error messages. Never renamed.
    pub fn code(&self) -> &'static str {
        match self {
            BadSecret::None => "no_secret",
            BadSecret::Empty { .. } => "empty",
            BadSecret::Untrimmed { .. } => "untrimmed",
            BadSecret::NotBase64 { .. } => "not_base64",
            BadSecret::NotHex { .. } => "not_hex",
            BadSecret::NoColon { .. } => "no_colon",
            BadSecret::NotShared { .. } => "not_shared",
            BadSecret::NotKey { .. } => "not_key",
            BadSecret::NotPublicKey { .. } => "not_public_key",
            BadSecret::NoSetting { .. } => "no_setting",
            BadSecret::BadSetting { .. } => "bad_setting",
            BadSecret::UnknownScheme { .. } => "unknown_scheme",
            BadSecret::Unfit { .. } => "unfit",
        }
    }

    /// What the operator should do.
    pub fn hint(&self) -> String {
        let hint = match self {
            BadSecret::None | BadSecret::Empty { .. } => {
                "an empty secret would let anyone sign; copy it from the provider"
            }
            BadSecret::Untrimmed { .. } => "remove the white space around it",
            BadSecret::NotBase64 { .. } => {
                "copy it whole, with its `whsec_` if it has one; it is base64 text"
            }
            BadSecret::NotHex { .. } => "it consists of pairs of the digits 0-9 and a-f",
            BadSecret::NoColon { .. } => "write it as `user:password`",
            BadSecret::NotShared { .. } => {
                "this provider signs with a shared secret; use that, not a key of a pair"
            }
            BadSecret::NotKey { .. } => {
                "copy it whole: 32 bytes in base64 after `whpk_`, or 32 or 64 after `whsk_`"
            }
            BadSecret::BadSetting { .. } => {
                "copy it whole; the provider's page says of which kind the key is"
            }
            BadSecret::NotPublicKey { .. } => {
                "copy the provider's public key whole: PEM, a certificate, base64 or a JWK"
            }
            BadSecret::NoSetting { .. } => "the provider cannot be verified without it",
            BadSecret::UnknownScheme { known, .. } => return format!("write one of: {known}"),
            BadSecret::Unfit { .. } => {
                "is it the secret of another provider, or for another `scheme` of this one?"
            }
        };
        hint.to_owned()
    }

    /// Which secret it is about, counted from 0.
    pub fn number(&self) -> Option<usize> {
        match self {
            BadSecret::None
            | BadSecret::NoSetting { .. }
            | BadSecret::BadSetting { .. }
            | BadSecret::UnknownScheme { .. } => None,
            BadSecret::Empty { number }
            | BadSecret::Untrimmed { number }
            | BadSecret::NotBase64 { number }
            | BadSecret::NotHex { number }
            | BadSecret::NoColon { number }
            | BadSecret::NotShared { number }
            | BadSecret::NotKey { number }
            | BadSecret::NotPublicKey { number, .. }
            | BadSecret::Unfit { number } => Some(*number),
        }
    }
}
