//! The effect ledger.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::Connection;

use super::connection::try_in_transaction;
use super::{SqliteStore, begun, effects, settle, verbs};
use crate::effect::{
    Begun, Effect, EffectActed, EffectName, Message, OnUnknown, Sent, Settled, Under, Verdict,
};
use crate::limits;
use crate::store::{
    Act, EffectConflict, EffectFilter, EffectTally, Ledger, StoreError, SweepCursor, SweepStep,
};

#[async_trait]
impl Ledger for SqliteStore {
    async fn begin_effect(
        &self,
        under: Under,
        name: &EffectName,
        on_unknown: OnUnknown,
    ) -> Result<Begun, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let (name, clock) = (name.clone(), self.clock.clone());
        let begin = move |db: &mut Connection| begun::begin(db, &clock, under, &name, on_unknown);
        let (begun, due) = self.writer.run(begin).await?;
        if due {
            self.announce();
        }
        Ok(begun)
    }

    async fn complete_effect(
        &self,
        under: Under,
        name: &EffectName,
        result: Option<&str>,
    ) -> Result<Settled, StoreError> {
        let (name, result) = (name.clone(), result.map(str::to_owned));
        let clock = self.clock.clone();
        let complete =
            move |db: &mut Connection| begun::complete(db, &clock, under, &name, result.as_deref());
        let (settled, due) = self.writer.run(complete).await?;
        if due {
            self.announce();
        }
        Ok(settled)
    }

    async fn abandon_effect(&self, under: Under, name: &EffectName) -> Result<Settled, StoreError> {
        let (name, clock) = (name.clone(), self.clock.clone());
        self.writer.run(move |db| begun::abandon(db, &clock, under, &name)).await
    }

    async fn advance(
        &self,
        under: Under,
        object: &str,
        version: i64,
    ) -> Result<Option<bool>, StoreError> {
        let (object, clock) = (object.to_owned(), self.clock.clone());
        let advance = move |db: &mut Connection| {
            try_in_transaction(db, |db| verbs::advance(db, &clock, under, &object, version))
        };
        self.writer.run(advance).await
    }

    async fn send(&self, under: Under, message: &Message) -> Result<Sent, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let (message, clock, mint) = (message.clone(), self.clock.clone(), self.mint.clone());
        let send = move |db: &mut Connection| {
            try_in_transaction(db, |db| verbs::send(db, &clock, &mint, under, &message))
        };
        let sent = self.writer.run(send).await?;
        if matches!(sent, Sent::New(_)) {
            self.announce();
        }
        Ok(sent)
    }

    async fn effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        let (filter, now) = (filter.clone(), self.clock.lease_time());
        self.readers.run(move |db| effects::list(db, &filter, now)).await
    }

    async fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        let (key, now) = (key.to_owned(), self.clock.lease_time());
        self.look_ups.run(move |db| effects::effect(db, &key, now)).await
    }

    async fn effect_conflicts(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Vec<EffectConflict>, StoreError> {
        let key = key.to_owned();
        self.readers.run(move |db| effects::conflicts(db, &key, limit)).await
    }

    async fn settle_effect(
        &self,
        key: &str,
        verdict: &Verdict,
        act: &Act,
    ) -> Result<EffectActed, StoreError> {
        let (key, verdict, act) = (key.to_owned(), verdict.clone(), act.clone());
        let clock = self.clock.clone();
        let acted =
            self.writer.run(move |db| settle::settle(db, &clock, &key, &verdict, &act)).await?;
        self.announce_released(acted);
        Ok(acted)
    }

    async fn forget_effect(&self, key: &str, act: &Act) -> Result<EffectActed, StoreError> {
        let (key, act, clock) = (key.to_owned(), act.clone(), self.clock.clone());
        let acted = self.writer.run(move |db| settle::forget(db, &clock, &key, &act)).await?;
        self.announce_released(acted);
        Ok(acted)
    }

    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError> {
        let now = self.clock.lease_time();
        self.readers.run(move |db| effects::tally(db, now)).await
    }

    async fn count_conflicts(&self) -> Result<u64, StoreError> {
        self.readers.run(effects::count_conflicts).await
    }

    async fn expire_effects(
        &self,
        from: SweepCursor,
        done_before: Timestamp,
    ) -> Result<SweepStep, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let seen = self.readers.run(move |db| settle::sweep(db, &from, done_before)).await?;
        let mut removed = 0;
        // In slices, so that a commit of new events waits for one of them at most.
        for slice in seen.expired.chunks(limits::EXPIRE_ROWS as usize) {
            let slice = slice.to_vec();
            removed += self.writer.run(move |db| settle::remove(db, &slice)).await?;
        }
        Ok(SweepStep { next: seen.next, removed })
    }
}

impl SqliteStore {
    fn announce_released(&self, acted: EffectActed) {
        if matches!(acted, EffectActed::Done { released: 1.. }) {
            self.announce();
        }
    }
}
