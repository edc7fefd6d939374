//! Certificates: where one may come from, and what it must say.

use jiff::Timestamp;

use crate::fetched::{BadKey, WantedKey};
use crate::provider::CertificateAt;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;

/// The roots that a chain of certificates may lead to.
#[derive(Debug, Default)]
pub struct Roots {}

/// A certificate whose key checks signatures.
#[derive(Debug)]
pub(crate) struct Certificate {
    not_after: Timestamp,
}

impl Certificate {
    pub(crate) fn not_after(&self) -> Timestamp {
        self.not_after
    }
}

/// The certificate to fetch; none where the source has one, or the key.
pub(crate) fn wanted(
    _at: &CertificateAt,
    _number: usize,
    _keyring: &Keyring,
    _request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    Ok(None)
}

/// Reads a certificate that was fetched; it must lead to one of `roots` where those are given.
pub(crate) fn parse_fetched(
    _bytes: &[u8],
    _subject_end: &str,
    _roots: Option<&Roots>,
    _now: Timestamp,
) -> Result<Certificate, BadKey> {
    Err(BadKey::Unreadable)
}
