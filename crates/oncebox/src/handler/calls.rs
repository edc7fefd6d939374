//! Calls to the outside: begun before, completed after, unknown where the second never came.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::warn;

use super::Failure;
use super::failure::Open;
use super::verbs::{key_of, read_result, write_result};
use crate::effect::{Begun, EffectName, EffectState, Evidence, OnUnknown, Settled, Under};
use crate::limits;
use crate::store::{Ledger, StoreError};
use crate::worker::Backoff;

/// Calls to the outside under the lease of a delivery. They are no part of the handler's
/// transaction: each is begun in the ledger before it is made and completed after, so that a
/// retry finds its result instead of making it again.
///
/// Where a call was begun and never completed, nobody knows whether it happened, and
/// [`OnUnknown`] says what then: make it again, under the same idempotency key, or hold the
/// delivery until a person has found out.
///
/// ```
/// use oncebox::effect::OnUnknown;
/// use oncebox::handler::{Calls, Failure};
///
/// # async fn refund(_key: &str, _charge: &str) -> std::io::Result<String> { Ok(String::new()) }
/// async fn refund_once(calls: &Calls, charge: String) -> Result<String, Failure> {
///     let key = format!("refund:{charge}");
///     calls.once(&key, OnUnknown::Retry, |call| async move {
///         // The other side takes the key, so that a second call does nothing.
///         Ok(refund(&call.key, &charge).await?)
///     }).await
/// }
/// ```
#[derive(Clone)]
pub struct Calls {
    ledger: Arc<dyn Ledger>,
    under: Under,
}

/// A call that is to be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its key in the ledger: the idempotency key to make it with.
    pub key: String,
    /// How often it was begun before without an answer: so often it may have happened already.
    pub unknowns: u32,
    /// What an earlier attempt said of it, too late to count.
    pub evidence: Option<Evidence>,
}

impl Calls {
    pub(super) fn new(ledger: Arc<dyn Ledger>, under: Under) -> Self {
        Self { ledger, under }
    }

    /// Makes a call once for the business, under a key such as `refund:ch_1`; returns its result,
    /// or the recorded one if it was made before, by whichever delivery.
    ///
    /// Where another delivery is just making it, this one is snoozed and looks again later; return
    /// the failure that says so. It spends no attempt until the route's snoozes are spent.
    ///
    /// A call that fails is taken to be of unknown outcome, unless it says that it certainly did
    /// not happen: [`Failure::not_done`].
    pub async fn once<T, F>(
        &self,
        key: impl AsRef<str>,
        on_unknown: OnUnknown,
        make: impl FnOnce(Call) -> F,
    ) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, Failure>>,
    {
        let name = EffectName::Key(key_of("the key of the call", key.as_ref())?);
        self.make(&name, on_unknown, make).await
    }

    /// As [`Self::once`], for a step of this delivery.
    pub async fn step<T, F>(
        &self,
        name: impl AsRef<str>,
        on_unknown: OnUnknown,
        make: impl FnOnce(Call) -> F,
    ) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, Failure>>,
    {
        let name = EffectName::Step(key_of("the name of the step", name.as_ref())?);
        self.make(&name, on_unknown, make).await
    }

    async fn make<T, F>(
        &self,
        name: &EffectName,
        on_unknown: OnUnknown,
        make: impl FnOnce(Call) -> F,
    ) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, Failure>>,
    {
        let call = match self.begin(name, on_unknown).await? {
            Begun::Yours { key, unknowns, evidence } => Call { key, unknowns, evidence },
            Begun::Done(effect) => return read_result("the call", effect.result.as_deref()),
            Begun::Busy(effect) => {
                return Err(Failure::busy(format!(
                    "another delivery is just making the call `{}`; it is tried again later",
                    effect.key
                )));
            }
            Begun::Parked(effect) => return Err(Failure::parked(&effect.key)),
            Begun::LeaseLost => return Err(Failure::lease_lost()),
        };
        match make(call).await {
            Ok(value) => self.completed(name, value).await,
            Err(failure) if failure.is_not_done() => {
                self.abandon(name).await;
                Err(failure)
            }
            // Nobody knows whether it happened: the ledger says so once this attempt has ended.
            Err(failure) => Err(failure),
        }
    }

    /// Has the delivery wait for an effect that somebody else has begun: if nobody knows what came
    /// of it, until a person has found out. None if somebody is at it, or not any more.
    pub(super) async fn wait_for(&self, open: &Open) -> Result<Option<Failure>, StoreError> {
        let effect = self.ledger.effect(&open.key).await?;
        if effect.is_none_or(|effect| effect.state != EffectState::Unknown) {
            return Ok(None);
        }
        Ok(match self.begin(&open.name, OnUnknown::Ask).await? {
            Begun::Parked(effect) => Some(Failure::parked(&effect.key)),
            Begun::LeaseLost => Some(Failure::lease_lost()),
            Begun::Yours { .. } => {
                // Somebody has said just now that it did not happen. Nor does it here.
                self.abandon(&open.name).await;
                None
            }
            Begun::Done(_) | Begun::Busy(_) => None,
        })
    }

    /// Begins; said again under the same lease it is the caller's again.
    async fn begin(&self, name: &EffectName, on_unknown: OnUnknown) -> Result<Begun, StoreError> {
        self.surely(|| self.ledger.begin_effect(self.under, name, on_unknown)).await
    }

    async fn completed<T: Serialize>(&self, name: &EffectName, value: T) -> Result<T, Failure> {
        // It happened, and that is written down even if its result cannot be.
        let (json, value) = match write_result(&value) {
            Ok(json) => (Some(json), Ok(value)),
            Err(failure) => (None, Err(failure)),
        };
        let complete = || self.ledger.complete_effect(self.under, name, json.as_deref());
        match self.surely(complete).await? {
            Settled::Done => value,
            // What it came to is kept as evidence, or was decided without us.
            Settled::Late | Settled::NotBegun => Err(Failure::lease_lost()),
        }
    }

    async fn abandon(&self, name: &EffectName) {
        let abandoned = self.surely(|| self.ledger.abandon_effect(self.under, name)).await;
        if let Err(error) = abandoned {
            let delivery = self.under.delivery;
            warn!(%delivery, %error, "a call that did not happen will be taken for unknown");
        }
    }

    /// Asks again if there is no answer; each of these may be said twice.
    async fn surely<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut backoff = Backoff::new();
        for _ in 0..limits::RECHECKS {
            match ask().await {
                Err(StoreError::UnknownOutcome(_) | StoreError::Unavailable(_)) => {}
                answer => return answer,
            }
            tokio::time::sleep(backoff.pause()).await;
        }
        ask().await
    }
}
