//! Secrets that a provider sets in a handshake.
//!
//! Whoever knows the URL of such a source can send a handshake. So a secret is taken only in a
//! window that an operator opened, only one in each, and none that is there is ever replaced by
//! one: removing is for operators.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Act, StoreError};
use crate::limits;
use crate::receipt::SourceNo;
use crate::sealed::Sealed;

/// The side of a store that handshakes and those who allow them use. Windows run on the store's
/// clock.
#[async_trait]
pub trait Pairings: Send + Sync + 'static {
    /// Opens the window of a source for that long, at most
    /// [`PAIRING_LONGEST`](crate::limits::PAIRING_LONGEST), instead of any it had. Audited as
    /// `source.pair`.
    async fn open_pairing(
        &self,
        source: SourceNo,
        open_for: Duration,
        act: &Act,
    ) -> Result<Pairing, StoreError>;

    /// Closes the window of a source; false if none is open. Audited as `source.unpair`.
    async fn close_pairing(&self, source: SourceNo, act: &Act) -> Result<bool, StoreError>;

    /// The last window of a source that was not closed by hand, whether it is open or not.
    async fn pairing(&self, source: SourceNo) -> Result<Option<Pairing>, StoreError>;

    /// Takes the secret of a handshake, if the window is open, and closes the window with it: one
    /// transaction, in which one of several at once wins. A provider that repeats the very same
    /// handshake before the window would have ended is told the same again. Anything else changes
    /// nothing. Audited as `secret.paired`, as done by the handshake.
    async fn pair(
        &self,
        source: SourceNo,
        secret: &Sealed,
        at: Timestamp,
    ) -> Result<Paired, StoreError>;

    /// The secrets that a source was given by handshakes, oldest first: at most
    /// [`PAIRED_SECRETS`](crate::limits::PAIRED_SECRETS).
    async fn paired_secrets(&self, source: SourceNo) -> Result<Vec<PairedSecret>, StoreError>;

    /// Removes such a secret; false if there is none of that number. Audited as `secret.remove`.
    async fn remove_paired_secret(
        &self,
        source: SourceNo,
        no: PairedNo,
        act: &Act,
    ) -> Result<bool, StoreError>;
}

/// The number of a secret among those that a source was given by handshakes. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairedNo(pub i16);

/// A window in which a source takes a secret from its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it ends, if no secret comes before.
    pub until: Timestamp,
    /// Whether it would take a secret now.
    pub is_open: bool,
    /// The secret it has taken.
    pub paired: Option<PairedNo>,
}

/// What a handshake came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paired {
    /// The secret was kept just now, and the window is closed.
    New(PairedNo),
    /// The source has this very secret: the provider repeats its handshake.
    Already(PairedNo),
    /// No window is open, or it was used for another secret. Nothing was changed.
    Closed,
    /// The source has as many secrets as it may. Nothing was changed.
    Full,
}

/// A secret that came in a handshake, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairedSecret {
    /// Its number.
    pub no: PairedNo,
    /// Tells it from others in lists; see
    /// [`Secret::fingerprint`](oncebox_verify::Secret::fingerprint).
    pub fingerprint: String,
    /// The secret, which only its [`SealingKey`](crate::sealed::SealingKey) opens.
    pub sealed: Vec<u8>,
    /// When it came.
    pub paired_at: Timestamp,
}

/// A window as it is kept.
pub(super) struct Window {
    pub(super) opened_at: Timestamp,
    pub(super) until: Timestamp,
    /// Whether its end is still to come, by the store's clock.
    pub(super) runs: bool,
    pub(super) paired: Option<PairedNo>,
    /// The last number that a secret of the source was given.
    pub(super) last: PairedNo,
}

impl Window {
    pub(super) fn pairing(&self) -> Pairing {
        Pairing {
            opened_at: self.opened_at,
            until: self.until,
            is_open: self.runs && self.paired.is_none(),
            paired: self.paired,
        }
    }
}

/// Decides about a handshake: the number that its secret gets, or what to tell instead. `known` is
/// the number of the same secret, if the source has it, and `kept` how many it has.
pub(super) fn answer(
    window: Option<&Window>,
    known: Option<i16>,
    kept: i64,
) -> Result<PairedNo, Paired> {
    let Some(window) = window.filter(|window| window.runs) else { return Err(Paired::Closed) };
    let is_full = usize::try_from(kept).is_ok_and(|kept| kept >= limits::PAIRED_SECRETS)
        || window.last.0 == i16::MAX;
    match (window.paired, known.map(PairedNo)) {
        (Some(paired), Some(known)) if paired == known => Err(Paired::Already(known)),
        (Some(_), _) => Err(Paired::Closed),
        // A secret that is there already takes nothing away from the one that is waited for.
        (None, Some(known)) => Err(Paired::Already(known)),
        (None, None) if is_full => Err(Paired::Full),
        (None, None) => Ok(PairedNo(window.last.0 + 1)),
    }
}

/// Who the audit names for a secret that came in a handshake.
pub(super) fn by_handshake(at: Timestamp) -> Act {
    Act { who: "handshake".into(), via: "handshake", why: None, at }
}
