//! The effect ledger.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::effect::{
    Begun, Effect, EffectActed, EffectName, Message, OnUnknown, Sent, Settled, Under, Verdict,
};
use crate::store::{
    Act, EffectConflict, EffectFilter, EffectTally, Ledger, StoreError, SweepCursor, SweepStep,
};

use super::PostgresStore;

#[async_trait]
impl Ledger for PostgresStore {
    async fn begin_effect(
        &self,
        _: Under,
        _: &EffectName,
        _: OnUnknown,
    ) -> Result<Begun, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn complete_effect(
        &self,
        _: Under,
        _: &EffectName,
        _: Option<&str>,
    ) -> Result<Settled, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn abandon_effect(&self, _: Under, _: &EffectName) -> Result<Settled, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn advance(&self, _: Under, _: &str, _: i64) -> Result<Option<bool>, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn send(&self, _: Under, _: &Message) -> Result<Sent, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn effects(&self, _: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn effect(&self, _: &str) -> Result<Option<Effect>, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn effect_conflicts(&self, _: &str, _: usize) -> Result<Vec<EffectConflict>, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn settle_effect(
        &self,
        _: &str,
        _: &Verdict,
        _: &Act,
    ) -> Result<EffectActed, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn forget_effect(&self, _: &str, _: &Act) -> Result<EffectActed, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }

    async fn expire_effects(&self, _: SweepCursor, _: Timestamp) -> Result<SweepStep, StoreError> {
        Err(StoreError::Unavailable("the ledger is being built".into()))
    }
}
