//! Why there is no key.

use std::fmt;

use oncebox_verify::BadKey;

/// Why a key cannot be had now. That is nothing the sender of a request is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFailure {
    code: &'static str,
    detail: String,
    is_askers: bool,
}

impl KeyFailure {
    /// A failure of this kind.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), is_askers: false }
    }

    /// A stable word for logs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether something was fetched in vain because of this very request.
    pub fn is_askers(&self) -> bool {
        self.is_askers
    }

    pub(super) fn caused_by_asker(self, is_askers: bool) -> Self {
        Self { is_askers, ..self }
    }

    pub(super) fn not_https() -> Self {
        Self::new("url", "it is no URL of https")
    }

    pub(super) fn broken_off() -> Self {
        Self::new("broken_off", "whoever fetched it has gone")
    }

    pub(super) fn too_often() -> Self {
        Self::new("pace", "this source asks for more places than anybody needs")
    }

    pub(super) fn too_many() -> Self {
        Self::new("busy", "too many places are being asked at the same time")
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
