//! A store that does nothing: the ceiling that `oncebox bench` measures the others against.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    Act, Acted, ArrivalCount, AttemptRow, AuditRow, BreakerNote, BreakerRow, Claim, Claims,
    DayStep, DeliveryFilter, DeliveryFlow, DeliveryRow, Desk, EffectConflict, EffectFilter,
    EffectTally, ExpireRange, ExpireStep, Finish, Health, Keys, Ledger, Paired, PairedNo,
    PairedSecret, Pairing, Pairings, PublishedKey, Queue, Receipt, ReceiptFilter, ReceiptSummary,
    Repeat, ReplayCandidate, Rescued, RouteView, Span, Standing, Store, StoreError, SweepCursor,
    SweepStep, Tally, Unblocked, Upkeep,
};
use crate::delivery::{DeliveryId, Ending, Lease, Payload};
use crate::effect::{
    Begun, Effect, EffectActed, EffectName, Message, OnUnknown, Sent, Settled, Under, Verdict,
};
use crate::identity::IdentityKey;
use crate::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo};
use crate::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::retention::Keep;
use crate::route::RouteRules;
use crate::sealed::Sealed;
use crate::token::{Token, TokenId};

mod people;

/// Accepts everything and keeps nothing. Never reachable through a store URL.
#[derive(Debug, Default)]
pub struct NothingStore;

#[async_trait]
impl Store for NothingStore {
    fn mint(&self) -> Arc<ReceiptMint> {
        Arc::default()
    }

    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        Ok(vec![Recorded::Accepted; batch.len()])
    }

    fn writers(&self) -> usize {
        1
    }

    async fn add_repeats(&self, _: Vec<Repeat>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn add_stored(&self, _: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        Ok(Vec::new())
    }

    async fn register_source(&self, _: &str, _: Option<&str>) -> Result<SourceNo, StoreError> {
        Ok(SourceNo(1))
    }

    async fn register_route(
        &self,
        _: &str,
        _: Option<&str>,
        _: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        Ok(RouteNo(1))
    }

    async fn assign_service(&self, _: RouteNo, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn register_destination(&self, _: &str, _: &RouteRules) -> Result<RouteNo, StoreError> {
        Ok(RouteNo(1))
    }

    async fn register_secret(
        &self,
        _: SourceNo,
        _: &str,
        _: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        Ok(SecretNo(1))
    }

    async fn require_strongest(&self, _: SourceNo) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn requiring_strongest(&self) -> Result<Vec<SourceNo>, StoreError> {
        Ok(Vec::new())
    }

    async fn remember(
        &self,
        _: SourceNo,
        _: Vec<IdentityKey>,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        Ok(None)
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        Ok(Vec::new())
    }

    async fn receipts(&self, _: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        Ok(Vec::new())
    }

    async fn receipt(&self, _: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        Ok(None)
    }

    async fn identity(&self, _: SourceNo, _: &str) -> Result<Option<ReceiptId>, StoreError> {
        Ok(None)
    }

    async fn expire_receipts(&self, _: &ExpireRange) -> Result<ExpireStep, StoreError> {
        Ok(ExpireStep { next: None, removed: 0 })
    }

    async fn expire_days(&self, range: &ExpireRange) -> Result<DayStep, StoreError> {
        Ok(DayStep { removed: 0, floor: Some(range.before) })
    }

    async fn expire_identities(
        &self,
        _: SweepCursor,
        _: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        Ok(SweepStep { next: None, removed: 0 })
    }

    async fn health(&self) -> Result<Health, StoreError> {
        Ok(Health::default())
    }

    async fn close(&self) {}
}

#[async_trait]
impl Queue for NothingStore {
    fn due(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    async fn claim(&self, _: &Claim) -> Result<Claims, StoreError> {
        Ok(Claims::default())
    }

    async fn payloads(&self, _: &[ReceiptId]) -> Result<Vec<Payload>, StoreError> {
        Ok(Vec::new())
    }

    async fn extend(
        &self,
        leases: &[(DeliveryId, Lease)],
        _: Duration,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        Ok(vec![Some(Timestamp::MAX); leases.len()])
    }

    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<Finish>, StoreError> {
        Ok(vec![Finish::Done; endings.len()])
    }

    async fn were_ended(&self, endings: &[Ending]) -> Result<Vec<bool>, StoreError> {
        Ok(vec![false; endings.len()])
    }

    async fn rescue(&self, _: usize) -> Result<Rescued, StoreError> {
        Ok(Rescued::default())
    }

    async fn release_unblocked(&self, _: usize) -> Result<Unblocked, StoreError> {
        Ok(Unblocked::default())
    }

    async fn fill_lanes(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn hasten(&self, _: DeliveryId, _: Duration) -> Result<Option<Standing>, StoreError> {
        Ok(None)
    }

    async fn standing(&self, _: DeliveryId) -> Result<Option<Standing>, StoreError> {
        Ok(None)
    }

    async fn tell_breakers(&self, _: &str, _: &[BreakerNote]) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Desk for NothingStore {
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError> {
        Ok(Vec::new())
    }

    async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn pause_route(&self, _: &str, _: bool, _: &Act) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn deliveries(&self, _: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn attempts(&self, _: ReceiptId) -> Result<Vec<AttemptRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn tally(&self) -> Result<Vec<Tally>, StoreError> {
        Ok(Vec::new())
    }

    async fn discard(&self, _: DeliveryId, _: &Act) -> Result<Acted, StoreError> {
        Ok(Acted::NotFound)
    }

    async fn release(&self, _: DeliveryId, _: &Act) -> Result<Acted, StoreError> {
        Ok(Acted::NotFound)
    }

    async fn create_replay(&self, _: &Replay, _: &Act) -> Result<(), StoreError> {
        Ok(())
    }

    async fn replays(&self, _: usize) -> Result<Vec<Replay>, StoreError> {
        Ok(Vec::new())
    }

    async fn replay(&self, _: ReplayId) -> Result<Option<Replay>, StoreError> {
        Ok(None)
    }

    async fn take_replay(
        &self,
        _: Option<ReplayId>,
        _: Duration,
    ) -> Result<Option<Replay>, StoreError> {
        Ok(None)
    }

    async fn replay_page(
        &self,
        _: &ReplayFilter,
        _: Option<DeliveryId>,
        _: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        Ok(Vec::new())
    }

    async fn step_replay(&self, _: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError> {
        Ok(None)
    }

    async fn cancel_replay(&self, _: ReplayId, _: &Act) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn create_token(&self, _: &Token, _: &Act) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(Vec::new())
    }

    async fn token(&self, _: &TokenId) -> Result<Option<Token>, StoreError> {
        Ok(None)
    }

    async fn revoke_token(&self, _: &TokenId, _: &Act) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn note_act(&self, _: &Act, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn audit(&self, _: Option<i64>, _: usize) -> Result<Vec<AuditRow>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Ledger for NothingStore {
    async fn begin_effect(
        &self,
        _: Under,
        _: &EffectName,
        _: OnUnknown,
    ) -> Result<Begun, StoreError> {
        Ok(Begun::LeaseLost)
    }

    async fn complete_effect(
        &self,
        _: Under,
        _: &EffectName,
        _: Option<&str>,
    ) -> Result<Settled, StoreError> {
        Ok(Settled::NotBegun)
    }

    async fn abandon_effect(&self, _: Under, _: &EffectName) -> Result<Settled, StoreError> {
        Ok(Settled::NotBegun)
    }

    async fn advance(&self, _: Under, _: &str, _: i64) -> Result<Option<bool>, StoreError> {
        Ok(None)
    }

    async fn send(&self, _: Under, _: &Message) -> Result<Sent, StoreError> {
        Ok(Sent::LeaseLost)
    }

    async fn effects(&self, _: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        Ok(Vec::new())
    }

    async fn effect(&self, _: &str) -> Result<Option<Effect>, StoreError> {
        Ok(None)
    }

    async fn effect_conflicts(&self, _: &str, _: usize) -> Result<Vec<EffectConflict>, StoreError> {
        Ok(Vec::new())
    }

    async fn settle_effect(
        &self,
        _: &str,
        _: &Verdict,
        _: &Act,
    ) -> Result<EffectActed, StoreError> {
        Ok(EffectActed::NotFound)
    }

    async fn forget_effect(&self, _: &str, _: &Act) -> Result<EffectActed, StoreError> {
        Ok(EffectActed::NotFound)
    }

    async fn tally_effects(&self) -> Result<Vec<EffectTally>, StoreError> {
        Ok(Vec::new())
    }

    async fn count_conflicts(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn expire_effects(&self, _: SweepCursor, _: Timestamp) -> Result<SweepStep, StoreError> {
        Ok(SweepStep { next: None, removed: 0 })
    }
}

#[async_trait]
impl Pairings for NothingStore {
    async fn open_pairing(
        &self,
        _: SourceNo,
        _: Duration,
        act: &Act,
    ) -> Result<Pairing, StoreError> {
        Ok(Pairing { opened_at: act.at, until: act.at, is_open: false, paired: None })
    }

    async fn close_pairing(&self, _: SourceNo, _: &Act) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn pairing(&self, _: SourceNo) -> Result<Option<Pairing>, StoreError> {
        Ok(None)
    }

    async fn pair(&self, _: SourceNo, _: &Sealed, _: Timestamp) -> Result<Paired, StoreError> {
        Ok(Paired::Closed)
    }

    async fn paired_secrets(&self, _: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_paired_secret(
        &self,
        _: SourceNo,
        _: PairedNo,
        _: &Act,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl Keys for NothingStore {
    async fn fingerprint_key(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        Ok(fresh)
    }

    async fn keep_published_key(&self, _: &PublishedKey) -> Result<(), StoreError> {
        Ok(())
    }

    async fn published_keys(&self) -> Result<Vec<PublishedKey>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Upkeep for NothingStore {
    async fn lead(&self, _: &str, _: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn resign(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tell_windows(&self, _: &HashMap<String, Keep>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn windows(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
        Ok(Vec::new())
    }

    async fn make_ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn fold(&self, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn arrival_counts(
        &self,
        _: Span,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<Vec<ArrivalCount>, StoreError> {
        Ok(Vec::new())
    }

    async fn delivery_flows(
        &self,
        _: Span,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<Vec<DeliveryFlow>, StoreError> {
        Ok(Vec::new())
    }
}
