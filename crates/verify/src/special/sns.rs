//! Amazon SNS: an RSA signature inside the JSON, over some of its values, made with the key of a
//! certificate that the message names.
//!
//! What is signed is `name\nvalue\n` for each value. Only the message itself may hold line
//! breaks: with one in another value the same text could be read as other values.
//!
//! All customers of AWS share the key. The signature says that SNS sent a message, and only its
//! topic says for whom: a source must name its own.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::asymmetric::Pair;
use crate::certificate::{self, is_at};
use crate::fetched::{WantedForm, WantedKey};
use crate::look::{Raw, look};
use crate::mac::{Key, Tag, expectation};
use crate::provider::{
    Algorithm, CertificateAt, Encoding, Field, Provider, Scheme, Text, TimeFormat,
};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};
use crate::sign::put;
use crate::special::{Proof, Special, Trial};
use crate::time;

/// The setting that names the topics, separated by white space or commas.
const TOPIC: &str = "topic_arn";

/// The setting that may ask for the second version of signatures.
const VERSION: &str = "signature_version";

/// Where a certificate of a sample would be.
const SAMPLE_URL: &str = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0000.pem";

/// The longest URL that confirms a subscription.
const URL_BYTES_MAX: usize = 2048;

const HOSTS: &[Text] =
    &[Cow::Borrowed("sns.*.amazonaws.com"), Cow::Borrowed("sns.*.amazonaws.com.cn")];

static PLACE: CertificateAt = CertificateAt {
    url: Field::Json(Cow::Borrowed("/SigningCertURL")),
    hosts: Cow::Borrowed(HOSTS),
    path_end: Cow::Borrowed(".pem"),
    subject_end: Cow::Borrowed(".amazonaws.com"),
    chained: false,
};

/// Every value of a message that is read, as a pointer.
const VALUES: [&str; 11] = [
    "/Message",
    "/MessageId",
    "/Signature",
    "/SignatureVersion",
    "/SigningCertURL",
    "/Subject",
    "/SubscribeURL",
    "/Timestamp",
    "/Token",
    "/TopicArn",
    "/Type",
];

const NOTIFICATION: &[&str] = &["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"];
const CONFIRMATION: &[&str] =
    &["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];

/// Whether a field is read from what is signed. A value that only some types have is signed
/// wherever it matters.
pub(crate) fn covers(field: &Field) -> bool {
    let is_signed = |pointer: &str| {
        let name = pointer.strip_prefix('/');
        name.is_some_and(|name| NOTIFICATION.contains(&name) || CONFIRMATION.contains(&name))
    };
    match field {
        Field::Json(pointer) => is_signed(pointer),
        Field::Within(pointer, _) => is_signed(pointer),
        _ => false,
    }
}

/// A public key of the operator's, for both versions.
pub(crate) fn key(number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
    let pair =
        |algorithm| Pair::decode(algorithm, number, text).map(|pair| Key::Pair(Arc::new(pair)));
    Ok(Some(Key::Several(vec![pair(Algorithm::RsaSha1)?, pair(Algorithm::RsaSha256)?])))
}

/// Whether a source may leave the setting out: it has a key itself, so that it looks into captures
/// or is tried out.
pub(crate) fn excuses(setting: &str, has_key: bool) -> bool {
    setting == TOPIC && has_key
}

pub(crate) fn wanted_key(
    number: usize,
    keyring: &Keyring,
    request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    let url = Values::read(request)?.place()?;
    let has_key = keyring.keys(number).iter().any(|(_, key)| key.is_pair());
    if has_key || keyring.certificate(&url).is_some() {
        return Ok(None);
    }
    let china = host(&url).is_some_and(|host| host.ends_with(".cn"));
    let end = if china { ".amazonaws.com.cn" } else { ".amazonaws.com" };
    let form = WantedForm::Certificate { subject_end: Cow::Borrowed(end), chained: false };
    Ok(Some(WantedKey { url: url.into_owned(), kid: None, form }))
}

fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.strip_suffix(":443").unwrap_or(authority))
}

/// The region in a host of SNS, such as `eu-central-1`.
fn region(url: &str) -> Option<&str> {
    let region = host(url)?.split('.').nth(1)?;
    let mut parts = region.split('-');
    let letters = |part: &str| part.chars().all(|c| c.is_ascii_lowercase());
    let area = parts.next().filter(|area| area.len() == 2 && letters(area));
    let number = parts.next_back()?;
    let is_number = number.len() <= 2 && number.chars().all(|c| c.is_ascii_digit());
    let mut between = parts.peekable();
    let is_named =
        between.peek().is_some() && between.all(|part| !part.is_empty() && letters(part));
    (area.is_some() && is_named && is_number && !number.is_empty()).then_some(region)
}

pub(crate) fn verify(trial: &Trial<'_>) -> Result<Proof, Rejection> {
    let values = Values::read(trial.request)?;
    let text = values.signed_text().ok_or(Rejection::UnreadableBody)?;
    let url = values.place()?;
    let algorithm = match (&*values.text("SignatureVersion")?, trial.keyring.setting(VERSION)) {
        ("1", None | Some("1")) => Algorithm::RsaSha1,
        ("2", _) => Algorithm::RsaSha256,
        _ => return Err(Rejection::UnknownAlgorithm { name: Cow::Borrowed("SignatureVersion") }),
    };
    let expected = expectation(Encoding::Base64, None);
    let given = Tag::decode(&values.text("Signature")?, Encoding::Base64, None)
        .ok_or(Rejection::MalformedSignature { expected })?;
    let pairs = certificate::keys(algorithm, &url, trial)?;
    let made = pairs.iter().find(|(_, pair)| pair.verifies(&text, given.as_bytes()));
    let (number, _) = made.ok_or(Rejection::SignatureMismatch { tried: pairs.len() })?;
    let topic = values.text("TopicArn")?;
    if let Some(topics) = trial.keyring.setting(TOPIC) {
        let mut topics = topics.split([',', ' ', '\n']).map(str::trim);
        if !topics.any(|known| known == topic) {
            return Err(Rejection::WrongTopic);
        }
    }
    let signed_at = time::parse(&values.text("Timestamp")?, TimeFormat::Iso8601);
    Ok((*number, signed_at))
}

/// The values of a message, found in one pass: it may be large.
struct Values<'a> {
    found: Vec<Option<Raw<'a>>>,
    body_len: usize,
}

impl<'a> Values<'a> {
    fn read(request: &Request<'a>) -> Result<Values<'a>, Rejection> {
        let found = look(request.body, &VALUES).map_err(|_| Rejection::UnreadableBody)?;
        Ok(Values { found, body_len: request.body.len() })
    }

    fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let is_named = |pointer: &&str| pointer.strip_prefix('/') == Some(name);
        self.found.get(VALUES.iter().position(is_named)?).copied().flatten()
    }

    fn text(&self, name: &str) -> Result<Cow<'a, str>, Rejection> {
        self.raw(name).and_then(Raw::text).ok_or(Rejection::UnreadableBody)
    }

    /// The URL of the certificate, which is in a region. Other services of AWS serve what their
    /// customers want under hosts of the same form: `sns.s3-us-west-2.amazonaws.com` is a bucket.
    fn place(&self) -> Result<Cow<'a, str>, Rejection> {
        let untrusted = || Rejection::UntrustedCertificateUrl;
        let url = self.raw("SigningCertURL").and_then(Raw::text).ok_or_else(untrusted)?;
        let url = certificate::trusted(&PLACE, url)?;
        if region(&url).is_some() { Ok(url) } else { Err(untrusted()) }
    }

    /// All that is signed; none if the body has not got it.
    fn signed_text(&self) -> Option<Vec<u8>> {
        let names = match &*self.text("Type").ok()? {
            "Notification" => NOTIFICATION,
            "SubscriptionConfirmation" | "UnsubscribeConfirmation" => CONFIRMATION,
            _ => return None,
        };
        let mut text = Vec::with_capacity(self.body_len);
        for name in names {
            let Some(raw) = self.raw(name).filter(|raw| !raw.is_null()) else {
                if *name == "Subject" {
                    continue;
                }
                return None;
            };
            let value = raw.text()?;
            if *name != "Message" && value.contains(['\n', '\r']) {
                return None;
            }
            for piece in [name.as_bytes(), b"\n", value.as_bytes(), b"\n"] {
                text.extend_from_slice(piece);
            }
        }
        Some(text)
    }
}

/// All that is signed; none if the body has not got it.
pub(crate) fn signed_text(request: &Request<'_>) -> Option<Vec<u8>> {
    Values::read(request).ok()?.signed_text()
}

/// Signs as SNS does, in the second version.
pub(crate) fn sign(key: &Key, draft: &mut Draft, at: Timestamp) -> Option<()> {
    let mut body: Value = serde_json::from_slice(&draft.body).ok().filter(Value::is_object)?;
    let mut fill = |name: &str, value: &str| {
        if body.get(name).is_none() {
            put(&mut body, &format!("/{name}"), Value::from(value));
        }
    };
    fill("Type", "Notification");
    fill("Message", "{}");
    fill("MessageId", "00000000-0000-4000-8000-000000000000");
    fill("TopicArn", "arn:aws:sns:us-east-1:123456789012:sample");
    fill("Timestamp", &time::print(at, TimeFormat::Iso8601));
    put(&mut body, "/SignatureVersion", Value::from("2"));
    put(&mut body, "/SigningCertURL", Value::from(SAMPLE_URL));
    draft.body = body.to_string().into_bytes();
    let text = signed_text(&draft.request())?;
    let signature = key.pair(Algorithm::RsaSha256)?.sign(&text)?;
    let written = Tag::new(&signature).encode(Encoding::Base64);
    put(&mut body, "/Signature", Value::from(written));
    draft.body = body.to_string().into_bytes();
    Some(())
}

/// The URL that confirms a subscription of Amazon SNS, where the request asks for that. Call it,
/// once, without following redirects, only for a request that was verified, and only where the
/// operator wants subscriptions to be confirmed.
///
/// The URL is checked to be one of SNS, in the region of the topic, and to confirm and nothing
/// else.
pub fn subscription_url(provider: &Provider, request: &Request<'_>) -> Option<String> {
    if !provider.schemes.contains(&Scheme::Special(Special::Sns)) {
        return None;
    }
    let values = Values::read(request).ok()?;
    if values.text("Type").ok()? != "SubscriptionConfirmation" {
        return None;
    }
    let url = values.text("SubscribeURL").ok()?;
    let (place, query) = url.split_once('?')?;
    let topic = values.text("TopicArn").ok()?;
    let same_region = topic.split(':').nth(3) == Some(region(place)?);
    let mut actions = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "Action");
    let confirms = matches!((actions.next(), actions.next()), (Some((_, action)), None)
        if action == "ConfirmSubscription");
    let is_sound = url.len() <= URL_BYTES_MAX && url.chars().all(|c| c.is_ascii_graphic());
    let is_root =
        place.ends_with('/') && is_at(place, HOSTS, "") && place.matches('/').count() == 3;
    (is_sound && is_root && same_region && confirms).then(|| url.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::LOOKS;
    use crate::{SampleEvent, catalogue, generate_pair, sample, sign, verify, wanted_key};

    /// A message may be large, and each look goes over all of it.
    #[test]
    fn a_message_is_looked_at_once_in_each_step() {
        let provider = catalogue::find("aws-sns").unwrap();
        let secret = generate_pair(provider).unwrap().private;
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let event = SampleEvent { id: "1", event_type: "", at, object: None };
        let draft = sign(provider, &secret, sample(provider, &event), at).unwrap();
        let keyring = Keyring::new(provider, vec![secret]).unwrap();
        let looks = |step: &dyn Fn() -> bool| {
            LOOKS.set(0);
            assert!(step());
            LOOKS.get()
        };
        let request = draft.request();
        assert_eq!(looks(&|| wanted_key(provider, &keyring, &request) == Ok(None)), 1);
        assert_eq!(looks(&|| verify(provider, &keyring, &request, at).is_ok()), 1);
        assert_eq!(looks(&|| subscription_url(provider, &request).is_none()), 1);
    }

    #[test]
    fn a_region_is_no_bucket() {
        for (host, expected) in [
            ("sns.us-east-1.amazonaws.com", Some("us-east-1")),
            ("sns.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("sns.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("sns.eu-central-1.amazonaws.com:443", Some("eu-central-1")),
            ("sns.s3.amazonaws.com", None),
            ("sns.s3-us-west-2.amazonaws.com", None),
            ("sns.us-east.amazonaws.com", None),
            ("sns.us--1.amazonaws.com", None),
            ("sns.us-1.amazonaws.com", None),
            ("sns.US-EAST-1.amazonaws.com", None),
            ("sns", None),
        ] {
            assert_eq!(region(&format!("https://{host}/a.pem")), expected, "{host}");
        }
    }
}
