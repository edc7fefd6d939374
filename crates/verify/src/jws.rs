//! JSON Web Signatures: reading one, checking it, making one.

use crate::fetched::WantedKey;
use crate::mac::Key;
use crate::provider::Jws;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{BadSecret, Keyring};
use crate::special::{Proof, Trial};

/// The key of a secret; none if such a secret belongs to another scheme.
pub(crate) fn key(_jws: &Jws, _number: usize, _text: &str) -> Result<Option<Key>, BadSecret> {
    Ok(None)
}

/// The key set that must be fetched; asked only where the source has no key.
pub(crate) fn wanted(
    _jws: &Jws,
    _keyring: &Keyring,
    _request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    Ok(None)
}

pub(crate) fn verify(_jws: &Jws, _trial: &Trial<'_>) -> Result<Proof, Rejection> {
    Err(Rejection::NoSecret)
}
