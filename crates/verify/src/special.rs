//! Schemes that need code: what is signed is put together in a way that no list of parts tells.
//!
//! Each is one file with the same few functions; this one hands out to them.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::fetched::{FetchedKey, WantedKey};
use crate::mac::Key;
use crate::provider::{Algorithm, Field};
use crate::rejection::Rejection;
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};

pub(crate) mod twilio;

/// A scheme that needs code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// Twilio's hash over the URL and the sorted form parameters.
    Twilio,
}

/// What a scheme may look at.
pub(crate) struct Trial<'t> {
    /// The keys it made of the secrets, with the number of each secret.
    pub(crate) keys: &'t [(usize, Key)],
    /// What the source says beside its secrets.
    pub(crate) keyring: &'t Keyring,
    /// What was fetched for this request, where something was.
    pub(crate) fetched: Option<&'t FetchedKey>,
    pub(crate) request: &'t Request<'t>,
    pub(crate) received_at: Timestamp,
}

/// Which secret matched, and when the request was signed.
pub(crate) type Proof = (usize, Option<Timestamp>);

impl Special {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Special::Twilio => "twilio",
        }
    }

    /// The header whose presence means that this scheme decides; none if the proof is elsewhere.
    pub(crate) fn header(self) -> Option<&'static str> {
        match self {
            Special::Twilio => Some(twilio::SIGNATURE),
        }
    }

    pub(crate) fn signs_timestamp(self) -> bool {
        match self {
            Special::Twilio => false,
        }
    }

    pub(crate) fn signs_url(self) -> bool {
        match self {
            Special::Twilio => true,
        }
    }

    pub(crate) fn fetches_keys(self) -> bool {
        match self {
            Special::Twilio => false,
        }
    }

    /// Whether it is checked with a public key.
    pub(crate) fn takes_public_key(self) -> bool {
        match self {
            Special::Twilio => false,
        }
    }

    pub(crate) fn covers_body(self) -> bool {
        match self {
            Special::Twilio => false,
        }
    }

    /// Whether the signature covers what `field` reads.
    ///
    /// Twilio's covers the characters of a form and not where a name or value ends:
    /// `MessageStatus=sent` verifies as `MessageStatus=se&nt=` too. So it covers no field of
    /// a form.
    pub(crate) fn covers(self, field: &Field) -> bool {
        match self {
            Special::Twilio => matches!(field, Field::Json(_)),
        }
    }

    /// Whether bodies that differ in their bytes have one signature.
    pub(crate) fn respells_body(self) -> bool {
        match self {
            Special::Twilio => true,
        }
    }

    /// The key of a secret whose text is neither empty nor untrimmed; none if such a secret
    /// belongs to another scheme.
    pub(crate) fn key(self, _number: usize, text: &str) -> Result<Option<Key>, BadSecret> {
        match self {
            Special::Twilio => Ok(Some(Key::Several(vec![
                Key::hmac(Algorithm::HmacSha1, text.as_bytes()),
                Key::hmac(Algorithm::HmacSha256, text.as_bytes()),
            ]))),
        }
    }

    /// What must be fetched to check the request.
    pub(crate) fn wanted_key(
        self,
        _number: usize,
        _keyring: &Keyring,
        _request: &Request<'_>,
    ) -> Result<Option<WantedKey>, Rejection> {
        match self {
            Special::Twilio => Ok(None),
        }
    }

    pub(crate) fn verify(self, trial: &Trial<'_>) -> Result<Proof, Rejection> {
        match self {
            Special::Twilio => Ok((twilio::verify(trial.keys, trial.request)?, None)),
        }
    }

    /// Signs as the provider would; none if the draft lacks what is signed.
    pub(crate) fn sign(self, key: &Key, draft: &mut Draft, _at: Timestamp) -> Option<()> {
        match self {
            Special::Twilio => twilio::sign(key, draft),
        }
    }

    /// The content as it is signed, where bytes may differ under one signature.
    pub(crate) fn content(self, request: &Request<'_>) -> Option<Vec<u8>> {
        match self {
            Special::Twilio => twilio::form_text(request),
        }
    }

    /// All that is signed, exactly as it is signed.
    pub(crate) fn signed_text(self, request: &Request<'_>) -> Option<Cow<'static, [u8]>> {
        match self {
            Special::Twilio => twilio::signed_text(request).map(Cow::Owned),
        }
    }
}
