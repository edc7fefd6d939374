//! Why a request is not believed.

use crate::provider::Text;

/// Why a request was not accepted as coming from its provider.
///
/// The sender is told only `401`; the reason is for the operator. Every variant
/// says what to check, and none carries a secret or a computed signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The header is absent or empty.
    #[error("no header `{name}`")]
    MissingHeader {
        /// The header.
        name: Text,
    },
    /// The header is there more than once.
    #[error("header `{name}` is repeated")]
    RepeatedHeader {
        /// The header.
        name: Text,
    },
    /// The header is too long or not plain ASCII text.
    #[error("header `{name}` is {why}")]
    MalformedHeader {
        /// The header.
        name: Text,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No signature could be decoded to the right length.
    #[error("the signature is not {expected}")]
    MalformedSignature {
        /// What it should be.
        expected: &'static str,
    },
    /// The signature lacks its prefix.
    #[error("the signature does not start with `{prefix}`")]
    BadPrefix {
        /// The prefix.
        prefix: Text,
    },
    /// The list holds no signature of the version we know.
    #[error("no `{label}` signature among those sent")]
    NoKnownScheme {
        /// The label or prefix looked for.
        label: Text,
    },
    /// More signatures than anyone sends.
    #[error("more than {limit} signatures")]
    TooManySignatures {
        /// The limit.
        limit: usize,
    },
    /// A form of more fields than anyone sends.
    #[error("a form of more than {limit} fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// Well-formed, but not made with our secrets over this request.
    #[error("the signature matches no configured secret ({tried} tried)")]
    SignatureMismatch {
        /// How many secrets were tried.
        tried: usize,
    },
    /// There is no timestamp.
    #[error("no timestamp in `{place}`")]
    MissingTimestamp {
        /// Where it should be.
        place: Text,
    },
    /// The timestamp cannot be read, or there are two.
    #[error("the timestamp in `{place}` cannot be read")]
    BadTimestamp {
        /// Where it is.
        place: Text,
    },
    /// Signed too long ago: a late delivery, a replay, or our clock is ahead.
    #[error("signed {age_secs} s ago; the limit is {limit_secs} s")]
    TimestampTooOld {
        /// How long ago.
        age_secs: u64,
        /// The limit.
        limit_secs: u32,
    },
    /// Signed in the future: the sender's clock is ahead or ours behind.
    #[error("signed {ahead_secs} s in the future; the limit is {limit_secs} s")]
    TimestampTooNew {
        /// How far ahead.
        ahead_secs: u64,
        /// The limit.
        limit_secs: u32,
    },
    /// The signature covers a hash of the body, and the body has another.
    #[error("the body does not have the hash that was signed")]
    BodyHashMismatch,
    /// The signature should cover a hash of the body, and none was sent.
    #[error("no `{name}` for a body that the signature does not cover otherwise")]
    MissingBodyHash {
        /// Where the hash should be.
        name: &'static str,
    },
    /// The token or the credentials are not ours.
    #[error("the token matches no configured secret ({tried} tried)")]
    WrongToken {
        /// How many secrets were tried.
        tried: usize,
    },
    /// The signature leaves out a part of the request that the source wants covered.
    #[error("the signature does not cover `{component}`")]
    NotCovered {
        /// The part.
        component: Text,
    },
    /// The request is proved in a weaker way than the source requires.
    #[error("the request is proved in a weaker way than `{needed}`, which this source requires")]
    WeakerScheme {
        /// The word for the way that is required.
        needed: Text,
    },
    /// The request names an algorithm we do not accept.
    #[error("`{name}` names an algorithm that is not accepted")]
    UnknownAlgorithm {
        /// The header or the field.
        name: Text,
    },
    /// The signature is in the body, and the body cannot be read.
    #[error("the body, which holds the signature, cannot be read")]
    UnreadableBody,
    /// The request names a certificate that is not where the provider keeps its own.
    #[error("the certificate is not at a place of the provider")]
    UntrustedCertificateUrl,
    /// The certificate is expired, or not valid yet.
    #[error("the certificate is not valid at this time")]
    CertificateNotValid,
    /// The message is of a topic that is not the source's.
    #[error("the message is of another topic")]
    WrongTopic,
    /// The key must be fetched from the provider, and was not.
    #[error("the key of the provider is not at hand")]
    KeyNotFetched,
    /// The token is none that we read.
    #[error("the token is not accepted: {why}")]
    BadToken {
        /// What is wrong with it.
        why: &'static str,
    },
    /// No key is known under the id that the token names.
    #[error("no key of the id that the token names")]
    UnknownKey,
    /// The token is over.
    #[error("the token expired {ago_secs} s ago")]
    TokenExpired {
        /// How long ago.
        ago_secs: u64,
    },
    /// The token has not begun.
    #[error("the token begins in {ahead_secs} s")]
    TokenNotYetValid {
        /// How far ahead.
        ahead_secs: u64,
    },
    /// The token is for somebody else.
    #[error("the token is for another audience")]
    BadAudience,
    /// The token is from somebody else.
    #[error("the token is from another issuer")]
    BadIssuer,
    /// The token is about somebody or something else.
    #[error("the token is about another subject")]
    BadSubject,
    /// The token says something else than it must.
    #[error("the claim `{name}` of the token is not what it must be")]
    BadClaim {
        /// The claim.
        name: Text,
    },
    /// The token leaves out what it must say.
    #[error("the token has no claim `{name}`")]
    MissingClaim {
        /// The claim.
        name: Text,
    },
    /// The signature covers a hash of the URL, and ours has another.
    #[error("the URL does not have the hash that was signed")]
    UrlHashMismatch,
    /// The source does not say what the token must say.
    #[error("`{key}` is not set, and the token is checked against it")]
    NoSetting {
        /// The key of the setting.
        key: Text,
    },
    /// The keyring holds no key for the provider's schemes.
    #[error("no secret is configured for this kind of signature")]
    NoSecret,
    /// The provider tells its secret in a handshake, and none has come yet.
    #[error("the source was never paired with its provider")]
    NotPaired,
    /// A handshake tells a secret, and no operator waits for one.
    #[error("a handshake outside a pairing window")]
    PairingClosed,
    /// A handshake tells a secret, and the source has as many as it may.
    #[error("a handshake, and the source has as many secrets as it may")]
    PairingFull,
}

const WEAKER: &str = "was the stronger proof removed on the way? if the provider sends no \
                      other, set `scheme` of the source, whose words `oncebox providers NAME` lists";

const WRONG_PROVIDER: &str = "is this source set to the right provider?";

const LATE: &str = "a replay or a delayed delivery; if every request says this, our clock is ahead";

const EARLY: &str = "if every request says this, our clock is behind: check time synchronisation";

const OTHERS_TOKEN: &str = "compare the settings of the source with those at the provider; \
                            anybody can get such tokens for themselves";

const UNEXPECTED: &str = "if you are making the webhook just now, run `oncebox sources pair NAME` \
                          first and make it again; if not, somebody tries to give this source a \
                          secret of their own";

impl Rejection {
    /// Every code there is, for the labels of a metric.
    pub const CODES: &[&str] = &[
        "missing_header",
        "repeated_header",
        "malformed_header",
        "malformed_signature",
        "bad_prefix",
        "no_known_scheme",
        "too_many_signatures",
        "too_many_fields",
        "signature_mismatch",
        "missing_timestamp",
        "bad_timestamp",
        "timestamp_too_old",
        "timestamp_too_new",
        "body_hash_mismatch",
        "missing_body_hash",
        "wrong_token",
        "not_covered",
        "weaker_scheme",
        "unknown_algorithm",
        "unreadable_body",
        "untrusted_certificate_url",
        "certificate_not_valid",
        "key_not_fetched",
        "wrong_topic",
        "bad_token",
        "unknown_key",
        "token_expired",
        "token_not_yet_valid",
        "bad_audience",
        "bad_issuer",
        "bad_subject",
        "bad_claim",
        "missing_claim",
        "url_hash_mismatch",
        "no_setting",
        "no_secret",
        "not_paired",
        "pairing_closed",
        "pairing_full",
    ];

    /// A stable name for logs, metrics and the console. Never renamed.
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::MissingHeader { .. } => "missing_header",
            Rejection::RepeatedHeader { .. } => "repeated_header",
            Rejection::MalformedHeader { .. } => "malformed_header",
            Rejection::MalformedSignature { .. } => "malformed_signature",
            Rejection::BadPrefix { .. } => "bad_prefix",
            Rejection::NoKnownScheme { .. } => "no_known_scheme",
            Rejection::TooManySignatures { .. } => "too_many_signatures",
            Rejection::TooManyFields { .. } => "too_many_fields",
            Rejection::SignatureMismatch { .. } => "signature_mismatch",
            Rejection::MissingTimestamp { .. } => "missing_timestamp",
            Rejection::BadTimestamp { .. } => "bad_timestamp",
            Rejection::TimestampTooOld { .. } => "timestamp_too_old",
            Rejection::TimestampTooNew { .. } => "timestamp_too_new",
            Rejection::BodyHashMismatch => "body_hash_mismatch",
            Rejection::MissingBodyHash { .. } => "missing_body_hash",
            Rejection::WrongToken { .. } => "wrong_token",
            Rejection::NotCovered { .. } => "not_covered",
            Rejection::WeakerScheme { .. } => "weaker_scheme",
            Rejection::UnknownAlgorithm { .. } => "unknown_algorithm",
            Rejection::UnreadableBody => "unreadable_body",
            Rejection::UntrustedCertificateUrl => "untrusted_certificate_url",
            Rejection::CertificateNotValid => "certificate_not_valid",
            Rejection::KeyNotFetched => "key_not_fetched",
            Rejection::WrongTopic => "wrong_topic",
            Rejection::BadToken { .. } => "bad_token",
            Rejection::UnknownKey => "unknown_key",
            Rejection::TokenExpired { .. } => "token_expired",
            Rejection::TokenNotYetValid { .. } => "token_not_yet_valid",
            Rejection::BadAudience => "bad_audience",
            Rejection::BadIssuer => "bad_issuer",
            Rejection::BadSubject => "bad_subject",
            Rejection::BadClaim { .. } => "bad_claim",
            Rejection::MissingClaim { .. } => "missing_claim",
            Rejection::UrlHashMismatch => "url_hash_mismatch",
            Rejection::NoSetting { .. } => "no_setting",
            Rejection::NoSecret => "no_secret",
            Rejection::NotPaired => "not_paired",
            Rejection::PairingClosed => "pairing_closed",
            Rejection::PairingFull => "pairing_full",
        }
    }

    /// What the operator should check. There is no arm for the rest: whoever adds a rejection says
    /// what to do about it.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::MissingHeader { .. } => {
                "is a secret set at the provider, and does a proxy drop headers?"
            }
            Self::RepeatedHeader { .. } => {
                "a proxy or an attacker added a second one; let each arrive once"
            }
            Self::MalformedHeader { .. } => "no provider sends such a value; who did?",
            Self::MalformedSignature { .. } => {
                "the value was cut or re-encoded on the way, or another provider sent it"
            }
            Self::BadPrefix { .. } | Self::NoKnownScheme { .. } => {
                "is this source set to the right provider? it may sign with another version"
            }
            Self::TooManySignatures { .. } | Self::TooManyFields { .. } => {
                "no provider sends so many; who did?"
            }
            Self::SignatureMismatch { .. } => {
                "compare the secret with the provider's (live or test? rotated?), and make sure \
                 that nothing before Oncebox changes the body"
            }
            Self::MissingTimestamp { .. } | Self::BadTimestamp { .. } => WRONG_PROVIDER,
            Self::UnreadableBody | Self::BadToken { .. } => WRONG_PROVIDER,
            Self::TimestampTooOld { .. } | Self::TokenExpired { .. } => LATE,
            Self::TimestampTooNew { .. } | Self::TokenNotYetValid { .. } => EARLY,
            Self::BodyHashMismatch => "something before Oncebox changes the body",
            Self::MissingBodyHash { .. } => {
                "a proxy dropped the query, or changed the content type of a form"
            }
            Self::WrongToken { .. } => "compare the token with the one set at the provider",
            Self::NotCovered { .. } => {
                "let the sender sign it too; what is not covered can be changed on the way"
            }
            Self::WeakerScheme { .. } => WEAKER,
            Self::UnknownAlgorithm { .. } => {
                "choose an algorithm at the provider that its page here names, and a key that fits"
            }
            Self::UntrustedCertificateUrl => {
                "somebody wants their own certificate to be believed; the provider never sends this"
            }
            Self::CertificateNotValid => {
                "if every request says this, our clock is wrong: check time synchronisation"
            }
            Self::KeyNotFetched => {
                "give the provider's key to the source, or let Oncebox reach the provider"
            }
            Self::WrongTopic => "compare `topic_arn` of the source with the topic",
            Self::UnknownKey => {
                "the provider changed its keys, or another account, region or test mode sent this"
            }
            Self::BadAudience | Self::BadIssuer | Self::BadSubject => OTHERS_TOKEN,
            Self::BadClaim { .. } | Self::MissingClaim { .. } => {
                "compare the settings of the source with those at the provider"
            }
            Self::UrlHashMismatch => {
                "is `public_url` of the source the URL that the provider was given?"
            }
            Self::NoSetting { .. } => "add it to the source",
            Self::NoSecret => "add the secret of this kind of signature to the source",
            Self::NotPaired => {
                "run `oncebox sources pair NAME`, then make the webhook at the provider"
            }
            Self::PairingClosed => UNEXPECTED,
            Self::PairingFull => {
                "remove one that is no longer used: `oncebox sources forget NAME NUMBER`"
            }
        };
        hint.to_owned()
    }

    /// Whether the signature is right and only its time is not. Our own clock may
    /// be the one that is wrong.
    pub fn is_about_time(&self) -> bool {
        matches!(
            self,
            Rejection::TimestampTooOld { .. }
                | Rejection::TimestampTooNew { .. }
                | Rejection::TokenExpired { .. }
                | Rejection::TokenNotYetValid { .. }
        )
    }
}
