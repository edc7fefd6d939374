//! The effect ledger: what handlers outside a transaction of the store use, and what operators see
//! of it.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Act, StoreError, SweepCursor, SweepStep};
use crate::effect::{
    Begun, Effect, EffectActed, EffectKind, EffectName, EffectState, Message, OUTBOX, OnUnknown,
    Sent, Settled, Under, Verdict,
};
use crate::receipt::ReceiptId;

/// Effects of callers that cannot share a transaction with the store; each call is one of its own.
/// Those that can use the verbs inside it: see [`handler`](crate::handler).
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Begins an effect under a lease. Said again under the same lease it is the caller's again.
    async fn begin_effect(
        &self,
        under: Under,
        name: &EffectName,
        on_unknown: OnUnknown,
    ) -> Result<Begun, StoreError>;

    /// Says that an effect the caller began happened.
    async fn complete_effect(
        &self,
        under: Under,
        name: &EffectName,
        result: Option<&str>,
    ) -> Result<Settled, StoreError>;

    /// Says that an effect the caller began did not happen. What was unknown before is so again.
    async fn abandon_effect(&self, under: Under, name: &EffectName) -> Result<Settled, StoreError>;

    /// Moves the watermark of an object forward on the delivery's route and source. False if it
    /// is past that version already; none if the lease is not good any more.
    async fn advance(
        &self,
        under: Under,
        object: &str,
        version: i64,
    ) -> Result<Option<bool>, StoreError>;

    /// Writes an outbox message.
    async fn send(&self, under: Under, message: &Message) -> Result<Sent, StoreError>;

    /// Effects, in the order of their keys.
    async fn effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError>;

    /// One effect.
    async fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError>;

    /// The other deliveries that found an effect done, oldest first, at most `limit`.
    async fn effect_conflicts(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Vec<EffectConflict>, StoreError>;

    /// Writes down what a person found out about an effect that is unknown, and lets go the
    /// deliveries that were held for it.
    async fn settle_effect(
        &self,
        key: &str,
        verdict: &Verdict,
        act: &Act,
    ) -> Result<EffectActed, StoreError>;

    /// Forgets an effect, so that it may happen again: the only way to that. Not while somebody
    /// is at it. A message that was sent is forgotten as a key, not taken back.
    async fn forget_effect(&self, key: &str, act: &Act) -> Result<EffectActed, StoreError>;

    /// How many effects are started and unknown, and since when the oldest is; those that are
    /// done are not counted: there may be very many.
    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError>;

    /// How many conflicts were ever noted, of all effects: deliveries that found one done by
    /// another. Not fewer when some of them expire.
    async fn count_conflicts(&self) -> Result<u64, StoreError>;

    /// Looks at the next [`SWEEP_ROWS`](crate::limits::SWEEP_ROWS) effects and forgets those that
    /// were done before a time, unless the delivery that did them is open.
    async fn expire_effects(
        &self,
        from: SweepCursor,
        done_before: Timestamp,
    ) -> Result<SweepStep, StoreError>;
}

/// Which effects to list.
#[derive(Clone, Debug, Default)]
pub struct EffectFilter {
    /// Only of this kind.
    pub kind: Option<EffectKind>,
    /// Only in this state.
    pub state: Option<EffectState>,
    /// Only keys that begin so.
    pub prefix: Option<String>,
    /// Only those of this receipt's deliveries.
    pub receipt: Option<ReceiptId>,
    /// Only after this key: the last of the page before.
    pub after: Option<String>,
    /// How many at most.
    pub limit: usize,
}

impl EffectFilter {
    /// What the keys it is about begin with, and the first text past all of those, if there is one.
    pub(crate) fn span(&self) -> (&str, Option<String>) {
        let prefix = match (&self.prefix, self.kind) {
            (Some(prefix), _) => prefix,
            (None, Some(EffectKind::Message)) => OUTBOX,
            (None, _) => "",
        };
        (prefix, past(prefix))
    }
}

/// The first text after all that begin with a prefix, by their bytes; none if that is every text.
fn past(prefix: &str) -> Option<String> {
    let mut past = prefix.to_owned();
    while let Some(last) = past.pop() {
        // Surrogates are no characters, and are stepped over.
        if let Some(next) = (last..=char::MAX).nth(1) {
            past.push(next);
            return Some(past);
        }
    }
    None
}

/// A delivery that found an effect done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectConflict {
    /// Its receipt.
    pub receipt: ReceiptId,
    /// The name of its route.
    pub route: String,
    /// When it first did.
    pub at: Timestamp,
    /// Whether it had another payload, where the effect is a message.
    pub differs: bool,
}

/// How many effects are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectTally {
    /// The state.
    pub state: EffectState,
    /// How many.
    pub count: u64,
    /// Since when the oldest of them is.
    pub oldest: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_text() {
        assert_eq!(past("a").as_deref(), Some("b"));
        assert_eq!(past("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(past("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(past("\u{7f}").as_deref(), Some("\u{80}"));
        assert_eq!(past(""), None);
        assert_eq!(past("\u{10ffff}"), None);
    }
}
