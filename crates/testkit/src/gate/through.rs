//! A gate lets operators through, and workers too unless they are made to fail.

use std::time::Duration;

use async_trait::async_trait;
use oncebox::delivery::{DeliveryId, Ending, Lease, Payload};
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use oncebox::store::{
    Act, Acted, AttemptRow, AuditRow, Claim, Claims, DeliveryFilter, DeliveryRow, Desk, KeptAside,
    Queue, ReplayCandidate, Rescued, RouteView, Standing, StoreError, Tally, Unblocked,
};
use oncebox::token::{Token, TokenId};
use tokio::sync::watch;

use super::{Gate, Moment};

#[async_trait]
impl Queue for Gate {
    fn due(&self) -> watch::Receiver<u64> {
        self.inner.due()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claims, StoreError> {
        let mut closed = self.claims_closed.subscribe();
        self.claims_held.send_modify(|held| *held += 1);
        let _ = closed.wait_for(|closed| !*closed).await;
        self.claims_held.send_modify(|held| *held -= 1);
        let failure = self.claims.lock().expect("no panic").pop_front();
        match failure {
            Some(failure) => Err(failure),
            None => self.inner.claim(claim).await,
        }
    }

    async fn payloads(&self, receipts: &[ReceiptId]) -> Result<Vec<Payload>, StoreError> {
        self.inner.payloads(receipts).await
    }

    async fn extend(
        &self,
        leases: &[(DeliveryId, Lease)],
        by: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.inner.extend(leases, by).await
    }

    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<bool>, StoreError> {
        let failure = self.endings.lock().expect("no panic").pop_front();
        match failure {
            None => self.inner.finish(endings).await,
            Some(failure) => {
                if self.moment == Moment::After {
                    self.inner.finish(endings).await?;
                }
                Err(failure)
            }
        }
    }

    async fn rescue(&self, limit: usize) -> Result<Rescued, StoreError> {
        self.inner.rescue(limit).await
    }

    async fn release_unblocked(&self, limit: usize) -> Result<Unblocked, StoreError> {
        let unblocked = self.inner.release_unblocked(limit).await;
        self.looks.send_modify(|looks| *looks += 1);
        unblocked
    }

    async fn hasten(
        &self,
        delivery: DeliveryId,
        apart: Duration,
    ) -> Result<Option<Standing>, StoreError> {
        self.inner.hasten(delivery, apart).await
    }

    async fn standing(&self, delivery: DeliveryId) -> Result<Option<Standing>, StoreError> {
        self.inner.standing(delivery).await
    }
}

#[async_trait]
impl Desk for Gate {
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError> {
        self.inner.routes().await
    }

    async fn pause_route(&self, name: &str, paused: bool, act: &Act) -> Result<bool, StoreError> {
        self.inner.pause_route(name, paused, act).await
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        self.inner.deliveries(filter).await
    }

    async fn attempts(&self, receipt: ReceiptId) -> Result<Vec<AttemptRow>, StoreError> {
        self.inner.attempts(receipt).await
    }

    async fn tally(&self, processed: bool) -> Result<Vec<Tally>, StoreError> {
        let failure = self.counts.lock().expect("no panic").clone().filter(|_| processed);
        match failure {
            Some(failure) => Err(failure),
            None => self.inner.tally(processed).await,
        }
    }

    async fn discard(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        self.inner.discard(delivery, act).await
    }

    async fn release(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        self.inner.release(delivery, act).await
    }

    async fn create_replay(&self, replay: &Replay, act: &Act) -> Result<(), StoreError> {
        self.inner.create_replay(replay, act).await
    }

    async fn replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError> {
        self.inner.replays(limit).await
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        self.inner.replay(id).await
    }

    async fn take_replay(
        &self,
        id: Option<ReplayId>,
        lease: Duration,
    ) -> Result<Option<Replay>, StoreError> {
        self.inner.take_replay(id, lease).await
    }

    async fn replay_page(
        &self,
        filter: &ReplayFilter,
        after: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        self.inner.replay_page(filter, after, limit).await
    }

    async fn step_replay(&self, step: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError> {
        self.inner.step_replay(step).await
    }

    async fn cancel_replay(&self, id: ReplayId, act: &Act) -> Result<bool, StoreError> {
        self.inner.cancel_replay(id, act).await
    }

    async fn odd_arrival(&self, id: ReceiptId) -> Result<Option<KeptAside>, StoreError> {
        self.inner.odd_arrival(id).await
    }

    async fn promote(&self, arrival: Arrival, act: &Act) -> Result<bool, StoreError> {
        self.inner.promote(arrival, act).await
    }

    async fn create_token(&self, token: &Token, act: &Act) -> Result<(), StoreError> {
        self.inner.create_token(token, act).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.inner.tokens().await
    }

    async fn token(&self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        self.inner.token(id).await
    }

    async fn revoke_token(&self, id: &TokenId, act: &Act) -> Result<bool, StoreError> {
        self.inner.revoke_token(id, act).await
    }

    async fn note_act(&self, act: &Act, what: &str, subject: &str) -> Result<(), StoreError> {
        self.inner.note_act(act, what, subject).await
    }

    async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.inner.audit(before, limit).await
    }
}
