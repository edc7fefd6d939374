//! What operators see and do.

use std::time::Duration;

use async_trait::async_trait;

use super::SqliteStore;
use crate::delivery::DeliveryId;
use crate::receipt::{Arrival, ReceiptId};
use crate::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::store::{
    Act, Acted, AttemptRow, AuditRow, DeliveryFilter, DeliveryRow, Desk, KeptAside,
    ReplayCandidate, RouteView, StoreError, Tally,
};
use crate::token::{Token, TokenId};

#[async_trait]
impl Desk for SqliteStore {
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn pause_route(&self, _: &str, _: bool, _: &Act) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn deliveries(&self, _: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn attempts(&self, _: ReceiptId) -> Result<Vec<AttemptRow>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn tally(&self, _: bool) -> Result<Vec<Tally>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn discard(&self, _: DeliveryId, _: &Act) -> Result<Acted, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn release(&self, _: DeliveryId, _: &Act) -> Result<Acted, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn create_replay(&self, _: &Replay, _: &Act) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn replays(&self, _: usize) -> Result<Vec<Replay>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn replay(&self, _: ReplayId) -> Result<Option<Replay>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn take_replay(
        &self,
        _: Option<ReplayId>,
        _: Duration,
    ) -> Result<Option<Replay>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn replay_page(
        &self,
        _: &ReplayFilter,
        _: Option<DeliveryId>,
        _: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn step_replay(&self, _: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn cancel_replay(&self, _: ReplayId, _: &Act) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn odd_arrival(&self, _: ReceiptId) -> Result<Option<KeptAside>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn promote(&self, _: Arrival, _: &Act) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn create_token(&self, _: &Token, _: &Act) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn token(&self, _: &TokenId) -> Result<Option<Token>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn revoke_token(&self, _: &TokenId, _: &Act) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn audit(&self, _: Option<i64>, _: usize) -> Result<Vec<AuditRow>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }
}
