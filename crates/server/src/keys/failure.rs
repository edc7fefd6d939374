//! Why there is no key.

use std::fmt;

use oncebox_verify::BadKey;

const PACE: &str = "pace";
const BUSY: &str = "busy";
const NOT_IN_SET: &str = "not_in_set";

/// Why a key cannot be had now. That is nothing the sender of a request is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFailure {
    code: &'static str,
    detail: String,
}

impl KeyFailure {
    /// A failure of this kind.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// A stable word for logs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the request names a key that its provider did not have a moment ago. Forgers do.
    pub fn is_unknown_key(&self) -> bool {
        self.code == NOT_IN_SET
    }

    /// Whether the sender was turned away before anybody was asked.
    pub(super) fn is_crowded(&self) -> bool {
        [PACE, BUSY].contains(&self.code)
    }

    pub(super) fn not_https() -> Self {
        Self::new("url", "it is no URL of https")
    }

    pub(super) fn broken_off() -> Self {
        Self::new("broken_off", "whoever fetched it has gone")
    }

    pub(super) fn too_often() -> Self {
        Self::new(PACE, "this source asks for more places than anybody needs")
    }

    pub(super) fn too_many() -> Self {
        Self::new(BUSY, "too many places are being asked at the same time")
    }

    pub(super) fn in_vain() -> Self {
        let detail = "this address has named too many keys that are not there; behind a proxy, is \
                      `trusted_proxies` set?";
        Self::new("in_vain", detail)
    }

    pub(super) fn not_in_set() -> Self {
        let detail = "the set of the provider had no such key when it was fetched a moment ago; \
                      is this the provider's key, and the URL of the set the right one?";
        Self::new(NOT_IN_SET, detail)
    }
}

impl fmt::Display for KeyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<BadKey> for KeyFailure {
    fn from(bad: BadKey) -> Self {
        Self::new(bad.code(), bad.to_string())
    }
}
