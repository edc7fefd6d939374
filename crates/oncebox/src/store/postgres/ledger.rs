//! The effect ledger. Its reads are on the connections of workers, too: those go along indexes,
//! however large the planner believes a ledger to be.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PostgresStore, begun, effects, settle, verbs};
use crate::effect::{
    Begun, Effect, EffectActed, EffectName, Message, OnUnknown, Sent, Settled, Under, Verdict,
};
use crate::store::{
    Act, EffectConflict, EffectFilter, EffectTally, Ledger, StoreError, SweepCursor, SweepStep,
};

#[async_trait]
impl Ledger for PostgresStore {
    async fn begin_effect(
        &self,
        under: Under,
        name: &EffectName,
        on_unknown: OnUnknown,
    ) -> Result<Begun, StoreError> {
        begun::begin(self, under, name, on_unknown).await
    }

    async fn complete_effect(
        &self,
        under: Under,
        name: &EffectName,
        result: Option<&str>,
    ) -> Result<Settled, StoreError> {
        begun::complete(self, under, name, result).await
    }

    async fn abandon_effect(&self, under: Under, name: &EffectName) -> Result<Settled, StoreError> {
        begun::abandon(self, under, name).await
    }

    async fn advance(
        &self,
        under: Under,
        object: &str,
        version: i64,
    ) -> Result<Option<bool>, StoreError> {
        verbs::advance(self, under, object, version).await
    }

    async fn send(&self, under: Under, message: &Message) -> Result<Sent, StoreError> {
        verbs::send(self, under, message).await
    }

    async fn effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.working.read(async |client| effects::list(client, filter).await).await
    }

    async fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.working.read(async |client| effects::find(client, key).await).await
    }

    async fn effect_conflicts(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Vec<EffectConflict>, StoreError> {
        self.working.read(async |client| effects::conflicts(client, key, limit).await).await
    }

    async fn settle_effect(
        &self,
        key: &str,
        verdict: &Verdict,
        act: &Act,
    ) -> Result<EffectActed, StoreError> {
        settle::settle(self, key, verdict, act).await
    }

    async fn forget_effect(&self, key: &str, act: &Act) -> Result<EffectActed, StoreError> {
        settle::forget(self, key, act).await
    }

    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError> {
        self.working.read(async |client| effects::tally(client).await).await
    }

    async fn count_conflicts(&self) -> Result<u64, StoreError> {
        self.general.read(async |client| effects::count_conflicts(client).await).await
    }

    async fn expire_effects(
        &self,
        from: SweepCursor,
        done_before: Timestamp,
    ) -> Result<SweepStep, StoreError> {
        self.working.write(async |client| settle::expire(client, &from, done_before).await).await
    }
}
