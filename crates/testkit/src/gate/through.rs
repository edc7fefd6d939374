//! A gate lets operators through, and workers too unless they are made to fail.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use oncebox::delivery::{DeliveryId, Ending, Lease, Payload};
use oncebox::effect::{
    Begun, Effect, EffectActed, EffectName, Message, OnUnknown, Sent, Settled, Under, Verdict,
};
use oncebox::receipt::{ReceiptId, SourceNo};
use oncebox::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use oncebox::retention::Keep;
use oncebox::sealed::Sealed;
use oncebox::store::{
    Act, Acted, ArrivalCount, AttemptRow, AuditRow, BreakerNote, BreakerRow, Claim, Claims,
    DeliveryFilter, DeliveryFlow, DeliveryRow, Desk, EffectConflict, EffectFilter, EffectTally,
    Finish, Keys, Ledger, Paired, PairedNo, PairedSecret, Pairing, Pairings, PublishedKey, Queue,
    ReplayCandidate, Rescued, RouteView, Span, Standing, StoreError, SweepCursor, SweepStep, Tally,
    Unblocked, Upkeep,
};
use oncebox::token::{Token, TokenId};
use tokio::sync::watch;

use super::{Gate, Moment};

mod people;

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
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        self.inner.extend(leases, by).await
    }

    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<Finish>, StoreError> {
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

    async fn were_ended(&self, endings: &[Ending]) -> Result<Vec<bool>, StoreError> {
        self.inner.were_ended(endings).await
    }

    async fn rescue(&self, limit: usize) -> Result<Rescued, StoreError> {
        self.inner.rescue(limit).await
    }

    async fn release_unblocked(&self, limit: usize) -> Result<Unblocked, StoreError> {
        let unblocked = self.inner.release_unblocked(limit).await;
        self.looks.send_modify(|looks| *looks += 1);
        unblocked
    }

    async fn fill_lanes(&self) -> Result<bool, StoreError> {
        self.inner.fill_lanes().await
    }

    async fn hasten(
        &self,
        delivery: DeliveryId,
        apart: Duration,
    ) -> Result<Option<Standing>, StoreError> {
        self.inner.hasten(delivery, apart).await
    }

    async fn tell_breakers(&self, worker: &str, notes: &[BreakerNote]) -> Result<(), StoreError> {
        self.inner.tell_breakers(worker, notes).await
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

    async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        self.inner.breakers().await
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

    async fn tally(&self) -> Result<Vec<Tally>, StoreError> {
        self.inner.tally().await
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

#[async_trait]
impl Ledger for Gate {
    async fn begin_effect(
        &self,
        under: Under,
        name: &EffectName,
        on_unknown: OnUnknown,
    ) -> Result<Begun, StoreError> {
        self.inner.begin_effect(under, name, on_unknown).await
    }

    async fn complete_effect(
        &self,
        under: Under,
        name: &EffectName,
        result: Option<&str>,
    ) -> Result<Settled, StoreError> {
        self.inner.complete_effect(under, name, result).await
    }

    async fn abandon_effect(&self, under: Under, name: &EffectName) -> Result<Settled, StoreError> {
        self.inner.abandon_effect(under, name).await
    }

    async fn advance(
        &self,
        under: Under,
        object: &str,
        version: i64,
    ) -> Result<Option<bool>, StoreError> {
        self.inner.advance(under, object, version).await
    }

    async fn send(&self, under: Under, message: &Message) -> Result<Sent, StoreError> {
        self.inner.send(under, message).await
    }

    async fn effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.inner.effects(filter).await
    }

    async fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.inner.effect(key).await
    }

    async fn effect_conflicts(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Vec<EffectConflict>, StoreError> {
        self.inner.effect_conflicts(key, limit).await
    }

    async fn settle_effect(
        &self,
        key: &str,
        verdict: &Verdict,
        act: &Act,
    ) -> Result<EffectActed, StoreError> {
        self.inner.settle_effect(key, verdict, act).await
    }

    async fn forget_effect(&self, key: &str, act: &Act) -> Result<EffectActed, StoreError> {
        self.inner.forget_effect(key, act).await
    }

    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError> {
        self.inner.tally_effects().await
    }

    async fn count_conflicts(&self) -> Result<u64, StoreError> {
        self.inner.count_conflicts().await
    }

    async fn expire_effects(
        &self,
        from: SweepCursor,
        done_before: Timestamp,
    ) -> Result<SweepStep, StoreError> {
        self.inner.expire_effects(from, done_before).await
    }
}

#[async_trait]
impl Pairings for Gate {
    async fn open_pairing(
        &self,
        source: SourceNo,
        open_for: Duration,
        act: &Act,
    ) -> Result<Pairing, StoreError> {
        self.inner.open_pairing(source, open_for, act).await
    }

    async fn close_pairing(&self, source: SourceNo, act: &Act) -> Result<bool, StoreError> {
        self.inner.close_pairing(source, act).await
    }

    async fn pairing(&self, source: SourceNo) -> Result<Option<Pairing>, StoreError> {
        self.pass().await;
        self.inner.pairing(source).await
    }

    async fn pair(
        &self,
        source: SourceNo,
        secret: &Sealed,
        at: Timestamp,
    ) -> Result<Paired, StoreError> {
        self.inner.pair(source, secret, at).await
    }

    async fn paired_secrets(&self, source: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
        self.inner.paired_secrets(source).await
    }

    async fn remove_paired_secret(
        &self,
        source: SourceNo,
        no: PairedNo,
        act: &Act,
    ) -> Result<bool, StoreError> {
        self.inner.remove_paired_secret(source, no, act).await
    }
}

#[async_trait]
impl Keys for Gate {
    async fn fingerprint_key(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.inner.fingerprint_key(fresh).await
    }

    async fn keep_published_key(&self, key: &PublishedKey) -> Result<(), StoreError> {
        self.inner.keep_published_key(key).await
    }

    async fn published_keys(&self) -> Result<Vec<PublishedKey>, StoreError> {
        self.inner.published_keys().await
    }
}

#[async_trait]
impl Upkeep for Gate {
    async fn lead(&self, who: &str, lasting: Duration) -> Result<bool, StoreError> {
        self.inner.lead(who, lasting).await
    }

    async fn resign(&self, who: &str) -> Result<(), StoreError> {
        self.inner.resign(who).await
    }

    async fn tell_windows(&self, windows: &HashMap<String, Keep>) -> Result<(), StoreError> {
        self.inner.tell_windows(windows).await
    }

    async fn windows(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
        self.inner.windows().await
    }

    async fn make_ready(&self) -> Result<(), StoreError> {
        self.inner.make_ready().await
    }

    async fn fold(&self, now: Timestamp) -> Result<(), StoreError> {
        self.inner.fold(now).await
    }

    async fn arrival_counts(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ArrivalCount>, StoreError> {
        self.inner.arrival_counts(span, since, until).await
    }

    async fn delivery_flows(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryFlow>, StoreError> {
        self.inner.delivery_flows(span, since, until).await
    }
}
