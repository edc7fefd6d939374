//! Secrets and settings that are made up, for trying a provider out without an account there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::generate::{generate_pair, has_pair};
use crate::provider::{KeyForm, Part, Provider, Scheme, TokenKind};
use crate::secret::{Secret, Settings};

/// What a source of a provider needs, made up.
#[derive(Clone, Debug)]
pub struct MadeUp {
    /// A secret of the form that the provider's first scheme takes, or a private key, which signs
    /// and checks.
    pub secret: Secret,
    /// Something for every setting that is needed.
    pub settings: Settings,
}

/// Makes up what a source of `provider` needs from random bytes. None where nobody should sign
/// like the provider any more.
///
/// ```
/// use oncebox_verify::{Keyring, SampleEvent, catalogue, made_up, sample, sign_with, verify};
///
/// let now = "2026-01-02T03:04:05Z".parse()?;
/// let adyen = catalogue::find("adyen").unwrap();
/// let made_up = made_up(adyen, &[7; 32]).unwrap();
/// let keyring = Keyring::with_settings(adyen, vec![made_up.secret], made_up.settings)?;
/// let event = SampleEvent { id: "1", event_type: "", at: now, object: None };
/// let draft = sign_with(adyen, &keyring, sample(adyen, &event), now)?;
/// assert!(verify(adyen, &keyring, &draft.request(), now).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn made_up(provider: &Provider, random: &[u8; 32]) -> Option<MadeUp> {
    let mut settings = needed_settings(provider);
    let secret = match (made_up_secret(provider, random), generate_pair(provider)) {
        // The secret is signed itself, and the key stands beside it.
        (Some(secret), Some(pair)) => {
            settings.insert("public_key".to_owned(), pair.private.expose().to_owned());
            secret
        }
        (Some(secret), None) => secret,
        (None, pair) => pair?.private,
    };
    Some(MadeUp { secret, settings })
}

/// Makes up a secret of the form that the provider's first scheme takes. None where a source has
/// nothing secret, because the provider signs with a private key.
///
/// ```
/// use oncebox_verify::{Keyring, catalogue, made_up_secret};
///
/// let stripe = catalogue::find("stripe").unwrap();
/// let secret = made_up_secret(stripe, &[7; 32]).unwrap();
/// assert!(Keyring::new(stripe, vec![secret]).is_ok());
/// assert!(made_up_secret(catalogue::find("discord").unwrap(), &[7; 32]).is_none());
/// ```
pub fn made_up_secret(provider: &Provider, random: &[u8; 32]) -> Option<Secret> {
    let hex = hex::encode(random);
    Some(match provider.schemes.first()? {
        Scheme::Signature(signature) if signature.algorithm.is_asymmetric() => {
            return signature.signed.contains(&Part::Secret).then(|| Secret::new(hex));
        }
        scheme if has_pair(scheme) => return None,
        Scheme::Signature(signature) => match signature.key {
            KeyForm::Base64 => Secret::new(STANDARD.encode(random)),
            KeyForm::Whsec | KeyForm::WhsecOnly | KeyForm::WhsecOrText => {
                Secret::new(format!("whsec_{}", STANDARD.encode(random)))
            }
            _ => Secret::new(hex),
        },
        Scheme::Token(token) if token.kind == TokenKind::Basic => {
            Secret::new(format!("oncebox:{hex}"))
        }
        // Contentful's have 64 characters, as these do.
        _ => Secret::new(hex),
    })
}

/// Something for every setting that the provider needs. What a sample is checked against is what
/// the sample says.
fn needed_settings(provider: &Provider) -> Settings {
    let needed = provider.settings.iter().filter(|setting| setting.needed);
    needed
        .map(|setting| {
            let value = match setting.key.as_ref() {
                "topic_arn" => sample_topic(provider),
                key => format!("sample-{}", key.replace('_', "-")),
            };
            (setting.key.to_string(), value)
        })
        .collect()
}

/// The topic that the sample of SNS is of.
fn sample_topic(provider: &Provider) -> String {
    let named = crate::fields::fields(provider.sample.body.as_bytes(), &["/TopicArn"]);
    let named =
        named.and_then(|values| values.first().map(|text| text.trim_matches('"').to_owned()));
    named.unwrap_or_else(|| provider.sample.object.to_string())
}
