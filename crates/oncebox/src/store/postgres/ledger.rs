//! The effect ledger.

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
        effects::list(&self.connection().await?, filter).await
    }

    async fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.working.read(async |client| effects::find(client, key).await).await
    }

    async fn effect_conflicts(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Vec<EffectConflict>, StoreError> {
        effects::conflicts(&self.connection().await?, key, limit).await
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
        effects::tally(&self.connection().await?).await
    }

    async fn expire_effects(
        &self,
        from: SweepCursor,
        done_before: Timestamp,
    ) -> Result<SweepStep, StoreError> {
        settle::expire(&self.connection().await?, &from, done_before).await
    }
}
