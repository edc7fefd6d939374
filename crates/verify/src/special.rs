//! Schemes that need code: what is signed is put together in a way that no list of parts tells.
//!
//! Each is one file with the same few functions; this one hands out to them.

use std::borrow::Cow;

use jiff::Timestamp;
use sha1::{Digest as _, Sha1};

use crate::fetched::{FetchedKey, WantedKey};
use crate::mac::Key;
use crate::provider::{Algorithm, Field, Provider};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};
use crate::sign::CannotSign;
use crate::verify::header;

pub(crate) mod braintree;
pub(crate) mod contentful;
pub(crate) mod ebay;
pub(crate) mod hook0;
pub(crate) mod http_message;
pub(crate) mod mandrill;
pub(crate) mod mercadopago;
pub(crate) mod plivo;
pub(crate) mod sns;
pub(crate) mod twilio;

/// A scheme that needs code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// Twilio's hash over the URL and the sorted form parameters.
    Twilio,
    /// Plivo's hash over the URL, the sorted query, the sorted form and a nonce.
    Plivo,
    /// Mandrill's hash over the URL and the sorted form parameters.
    Mandrill,
    /// Contentful's hash over a canonical request.
    Contentful,
    /// Mercado Pago's hash over the ids of an object and of the request, and a time.
    MercadoPago,
    /// Braintree's hash over a payload in a form, beside the name of the key.
    Braintree,
    /// Hook0's hash over a time, perhaps some headers, and the body.
    Hook0,
    /// Amazon SNS's signature over some values of the JSON that it is in.
    Sns,
    /// eBay's signature, inside JSON in a header.
    Ebay,
    /// An HTTP message signature (RFC 9421).
    HttpMessage,
}

/// What a scheme may look at.
pub(crate) struct Trial<'t> {
    pub(crate) provider: &'t Provider,
    /// The keys it made of the secrets, with the number of each secret.
    pub(crate) keys: &'t [(usize, Key)],
    /// What the source says beside its secrets.
    pub(crate) keyring: &'t Keyring,
    /// What was fetched for this request, where something was.
    pub(crate) fetched: Option<&'t FetchedKey>,
    pub(crate) request: &'t Request<'t>,
    pub(crate) received_at: Timestamp,
}

/// What a scheme signs with.
pub(crate) struct Signer<'s> {
    pub(crate) provider: &'s Provider,
    pub(crate) key: &'s Key,
    /// What the source says beside its secrets.
    pub(crate) keyring: &'s Keyring,
}

/// How many fields a form that is signed field by field may have.
const FIELDS_MAX: usize = 10_000;

/// The decoded fields of a form or a query.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Decodes the fields of a form or a query. Anyone may send one, so their number is bounded before
/// they are held.
pub(crate) fn form_pairs(form: &[u8]) -> Result<Pairs<'_>, Rejection> {
    let pairs: Pairs<'_> = form_urlencoded::parse(form).take(FIELDS_MAX + 1).collect();
    match pairs.len() > FIELDS_MAX {
        true => Err(Rejection::TooManyFields { limit: FIELDS_MAX }),
        false => Ok(pairs),
    }
}

/// Which secret matched, and when the request was signed.
pub(crate) type Proof = (usize, Option<Timestamp>);

impl Special {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Special::Twilio => "twilio",
            Special::Plivo => "plivo",
            Special::Mandrill => "mandrill",
            Special::Contentful => "contentful",
            Special::MercadoPago => "mercadopago",
            Special::Braintree => "braintree",
            Special::Hook0 => "hook0",
            Special::Sns => "sns",
            Special::Ebay => "ebay",
            Special::HttpMessage => "http-message-signatures",
        }
    }

    /// The header whose presence means that this scheme decides; none if the proof is elsewhere.
    pub(crate) fn header(self) -> Option<&'static str> {
        match self {
            Special::Twilio => Some(twilio::SIGNATURE),
            Special::Plivo => Some(plivo::SIGNATURE),
            Special::Mandrill => Some(mandrill::SIGNATURE),
            Special::Contentful => Some(contentful::SIGNATURE),
            Special::MercadoPago => Some(mercadopago::SIGNATURE),
            Special::Braintree => None,
            Special::Hook0 => Some(hook0::SIGNATURE),
            Special::Sns => None,
            Special::Ebay => Some(ebay::SIGNATURE),
            Special::HttpMessage => Some(http_message::SIGNATURE),
        }
    }

    pub(crate) fn signs_timestamp(self) -> bool {
        match self {
            Special::Contentful | Special::Hook0 | Special::HttpMessage => true,
            Special::Twilio
            | Special::Plivo
            | Special::Mandrill
            | Special::MercadoPago
            | Special::Braintree
            | Special::Sns
            | Special::Ebay => false,
        }
    }

    pub(crate) fn signs_url(self) -> bool {
        match self {
            Special::Twilio
            | Special::Plivo
            | Special::Mandrill
            | Special::Contentful
            | Special::HttpMessage => true,
            Special::MercadoPago
            | Special::Braintree
            | Special::Hook0
            | Special::Sns
            | Special::Ebay => false,
        }
    }

    pub(crate) fn fetches_keys(self) -> bool {
        self == Special::Sns
    }

    /// Whether it is checked with a public key.
    pub(crate) fn takes_public_key(self) -> bool {
        matches!(self, Special::Sns | Special::Ebay | Special::HttpMessage)
    }

    pub(crate) fn covers_body(self) -> bool {
        match self {
            Special::Contentful | Special::Hook0 | Special::Ebay | Special::HttpMessage => true,
            Special::Twilio
            | Special::Plivo
            | Special::Mandrill
            | Special::MercadoPago
            | Special::Braintree
            | Special::Sns => false,
        }
    }

    /// Whether the signature covers what `field` reads.
    ///
    /// Twilio's covers the characters of a form and not where a name or value ends:
    /// `MessageStatus=sent` verifies as `MessageStatus=se&nt=` too. So it covers no field of
    /// a form; nor does Plivo's. Mandrill's leaves no such room to the JSON inside its form.
    /// Which headers Contentful and Hook0 sign differs from request to request. A message signature
    /// must cover the headers that are read.
    pub(crate) fn covers(self, field: &Field) -> bool {
        match self {
            Special::Twilio | Special::Mandrill => {
                field.is_in_body() && !matches!(field, Field::Form(_))
            }
            Special::Plivo => false,
            Special::Contentful | Special::Hook0 | Special::Ebay => field.is_in_body(),
            Special::HttpMessage => field.is_in_body() || matches!(field, Field::Header(_)),
            Special::Sns => sns::covers(field),
            Special::MercadoPago => {
                matches!(field, Field::Query(name) if name == mercadopago::OBJECT)
            }
            Special::Braintree => matches!(field, Field::Xml(_) | Field::Item(_)),
        }
    }

    /// Whether bodies that differ in their bytes have one signature.
    pub(crate) fn respells_body(self) -> bool {
        match self {
            Special::Twilio
            | Special::Plivo
            | Special::Mandrill
            | Special::Braintree
            | Special::Sns => true,
            Special::Contentful
            | Special::MercadoPago
            | Special::Hook0
            | Special::Ebay
            | Special::HttpMessage => false,
        }
    }

    /// Whether a header beside that of the signature is needed to check it.
    pub(crate) fn reads_header(self, name: &str) -> bool {
        let needed: &[&str] = match self {
            Special::HttpMessage => &http_message::BESIDE,
            _ => &[],
        };
        needed.iter().any(|needed| needed.eq_ignore_ascii_case(name))
    }

    /// Whether forms are signed field by field.
    pub(crate) fn reads_forms(self) -> bool {
        match self {
            Special::Twilio | Special::Plivo | Special::Mandrill | Special::Braintree => true,
            Special::Contentful
            | Special::MercadoPago
            | Special::Hook0
            | Special::Sns
            | Special::Ebay
            | Special::HttpMessage => false,
        }
    }

    /// The key of a secret whose text is neither empty nor untrimmed; none if such a secret
    /// belongs to another scheme.
    pub(crate) fn key(self, number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
        Ok(Some(match self {
            Special::Twilio => Key::Several(vec![
                Key::hmac(Algorithm::HmacSha1, text.as_bytes()),
                Key::hmac(Algorithm::HmacSha256, text.as_bytes()),
            ]),
            Special::Sns => return sns::key(number, text),
            Special::Ebay => return ebay::key(number, text),
            Special::HttpMessage => return http_message::key(number, text),
            Special::Mandrill => Key::hmac(Algorithm::HmacSha1, text.as_bytes()),
            Special::Braintree => Key::hmac(Algorithm::HmacSha1, &Sha1::digest(text)),
            Special::Plivo | Special::Contentful | Special::MercadoPago | Special::Hook0 => {
                Key::hmac(Algorithm::HmacSha256, text.as_bytes())
            }
        }))
    }

    /// Whether a source that has a key itself may leave out a setting that others need.
    pub(crate) fn excuses(self, setting: &str, has_key: bool) -> bool {
        self == Special::Sns && sns::excuses(setting, has_key)
    }

    /// What must be fetched to check the request.
    pub(crate) fn wanted_key(
        self,
        number: usize,
        keyring: &Keyring,
        request: &Request<'_>,
    ) -> Result<Option<WantedKey>, Rejection> {
        match self {
            Special::Sns => sns::wanted_key(number, keyring, request),
            _ => Ok(None),
        }
    }

    pub(crate) fn verify(self, trial: &Trial<'_>) -> Result<Proof, Rejection> {
        match self {
            Special::Twilio => Ok((twilio::verify(trial.keys, trial.request)?, None)),
            Special::Plivo => Ok((plivo::verify(trial)?, None)),
            Special::Mandrill => Ok((mandrill::verify(trial)?, None)),
            Special::Contentful => contentful::verify(trial),
            Special::MercadoPago => mercadopago::verify(trial),
            Special::Braintree => Ok((braintree::verify(trial)?, None)),
            Special::Hook0 => hook0::verify(trial),
            Special::Sns => sns::verify(trial),
            Special::Ebay => Ok((ebay::verify(trial.keys, trial.request)?, None)),
            Special::HttpMessage => http_message::verify(trial),
        }
    }

    /// Checks the header of the signature before the body is read.
    pub(crate) fn check_head(self, request: &Request<'_>) -> Result<(), Rejection> {
        match (self, self.header()) {
            (Special::HttpMessage, _) => http_message::check_head(request),
            (_, Some(name)) => header(request.headers, name).map(drop),
            (_, None) => Ok(()),
        }
    }

    /// Signs as the provider would.
    pub(crate) fn sign(
        self,
        signer: &Signer<'_>,
        draft: &mut Draft,
        at: Timestamp,
    ) -> Result<(), CannotSign> {
        let key = signer.key;
        let done = match self {
            Special::Twilio => twilio::sign(key, draft),
            Special::Plivo => plivo::sign(key, draft),
            Special::Mandrill => mandrill::sign(key, draft),
            Special::Contentful => contentful::sign(key, draft, at),
            Special::MercadoPago => mercadopago::sign(key, draft, at),
            Special::Braintree => braintree::sign(signer, draft),
            Special::Hook0 => hook0::sign(key, draft, at),
            Special::Sns => sns::sign(key, draft, at),
            Special::Ebay => ebay::sign(key, draft),
            Special::HttpMessage => return http_message::sign(signer, draft, at),
        };
        done.ok_or_else(|| match self.takes_public_key() {
            true => CannotSign::PublicKey,
            false => CannotSign::Incomplete("the URL or the form".to_owned()),
        })
    }

    /// The content as it is signed, where bytes may differ under one signature.
    pub(crate) fn content(self, request: &Request<'_>) -> Option<Vec<u8>> {
        match self {
            Special::Twilio => twilio::form_text(request),
            Special::Plivo => plivo::content(request),
            Special::Mandrill => mandrill::content(request).ok(),
            Special::Braintree => braintree::content(request),
            Special::Sns => sns::signed_text(request),
            Special::Contentful
            | Special::MercadoPago
            | Special::Hook0
            | Special::Ebay
            | Special::HttpMessage => None,
        }
    }

    /// All that is signed, exactly as it is signed.
    pub(crate) fn signed_text(self, request: &Request<'_>) -> Option<Cow<'static, [u8]>> {
        match self {
            Special::Twilio => twilio::signed_text(request).map(Cow::Owned),
            Special::Plivo => plivo::signed_text(request).map(Cow::Owned),
            Special::Mandrill => mandrill::signed_text(request).ok().map(Cow::Owned),
            Special::MercadoPago => mercadopago::signed_text(request).map(Cow::Owned),
            Special::Braintree => braintree::content(request).map(Cow::Owned),
            Special::Sns => sns::signed_text(request).map(Cow::Owned),
            Special::Contentful | Special::Hook0 | Special::Ebay | Special::HttpMessage => None,
        }
    }
}
