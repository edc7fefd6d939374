//! Deliveries on their way.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{SqliteStore, claim, finish, lanes, release, rescue};
use crate::delivery::{DeliveryId, Ending, Lease, Payload};
use crate::receipt::ReceiptId;
use crate::store::{
    BreakerNote, Claim, Claims, Finish, Queue, Rescued, Standing, StoreError, Unblocked,
};

#[async_trait]
impl Queue for SqliteStore {
    fn due(&self) -> watch::Receiver<u64> {
        self.due.subscribe()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claims, StoreError> {
        self.writer.refuse_when_log_is_pinned()?;
        let (claim, clock) = (claim.clone(), self.clock.clone());
        let outcome = self.writer.run(move |db| claim::claim(db, &clock, &claim)).await?;
        if outcome.more {
            self.announce();
        }
        Ok(outcome.claims)
    }

    async fn payloads(&self, receipts: &[ReceiptId]) -> Result<Vec<Payload>, StoreError> {
        let receipts = receipts.to_vec();
        self.look_ups.run(move |db| claim::payloads(db, &receipts)).await
    }

    async fn extend(
        &self,
        leases: &[(DeliveryId, Lease)],
        by: Duration,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let (leases, clock) = (leases.to_vec(), self.clock.clone());
        self.writer.run(move |db| claim::extend(db, &clock, &leases, by)).await
    }

    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<Finish>, StoreError> {
        let clock = self.clock.clone();
        let finished = self.writer.run(move |db| finish::finish(db, &clock, &endings)).await?;
        if finished.due {
            self.announce();
        }
        Ok(finished.each)
    }

    async fn were_ended(&self, endings: &[Ending]) -> Result<Vec<bool>, StoreError> {
        let endings = endings.to_vec();
        self.look_ups.run(move |db| finish::were_ended(db, &endings)).await
    }

    async fn rescue(&self, limit: usize) -> Result<Rescued, StoreError> {
        let clock = self.clock.clone();
        let rescued = self.writer.run(move |db| rescue::rescue(db, &clock, limit)).await?;
        if rescued != Rescued::default() {
            self.announce();
        }
        Ok(rescued)
    }

    async fn release_unblocked(&self, limit: usize) -> Result<Unblocked, StoreError> {
        let (clock, round) = (self.clock.clone(), self.round.clone());
        let unblocked =
            self.writer.run(move |db| release::unblocked(db, &clock, &round, limit)).await?;
        if unblocked.released > 0 {
            self.announce();
        }
        Ok(unblocked)
    }

    async fn fill_lanes(&self) -> Result<bool, StoreError> {
        let filled = self.writer.run(|db| lanes::fill(db, None)).await?;
        if filled == lanes::Filled::Route {
            self.announce();
        }
        Ok(filled != lanes::Filled::Nothing)
    }

    async fn hasten(
        &self,
        delivery: DeliveryId,
        apart: Duration,
    ) -> Result<Option<Standing>, StoreError> {
        let clock = self.clock.clone();
        let (standing, hastened) =
            self.writer.run(move |db| rescue::hasten(db, &clock, delivery, apart)).await?;
        if hastened {
            self.announce();
        }
        Ok(standing)
    }

    async fn standing(&self, delivery: DeliveryId) -> Result<Option<Standing>, StoreError> {
        self.look_ups.run(move |db| rescue::standing(db, delivery)).await
    }

    async fn tell_breakers(&self, worker: &str, notes: &[BreakerNote]) -> Result<(), StoreError> {
        let (clock, worker, notes) = (self.clock.clone(), worker.to_owned(), notes.to_vec());
        self.writer.run(move |db| rescue::tell_breakers(db, &clock, &worker, &notes)).await
    }
}
