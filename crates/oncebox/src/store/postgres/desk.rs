//! What operators see and do.

use std::time::Duration;

use async_trait::async_trait;

use super::{PostgresStore, acts, lists, pages, replays, tokens};
use crate::delivery::DeliveryId;
use crate::receipt::ReceiptId;
use crate::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::store::{
    Act, Acted, AttemptRow, AuditRow, BreakerRow, DeliveryFilter, DeliveryRow, Desk,
    ReplayCandidate, RouteView, StoreError, Tally,
};
use crate::token::{Token, TokenId};

#[async_trait]
impl Desk for PostgresStore {
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError> {
        self.general.read(async |client| lists::routes(client).await).await
    }

    async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        self.general.read(async |client| lists::breakers(client).await).await
    }

    async fn pause_route(&self, name: &str, paused: bool, act: &Act) -> Result<bool, StoreError> {
        acts::pause_route(self, name, paused, act).await
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        self.general.read(async |client| lists::deliveries(client, filter).await).await
    }

    async fn attempts(&self, receipt: ReceiptId) -> Result<Vec<AttemptRow>, StoreError> {
        self.general.read(async |client| lists::attempts(client, receipt).await).await
    }

    async fn tally(&self) -> Result<Vec<Tally>, StoreError> {
        self.general.read(async |client| lists::tally(client).await).await
    }

    async fn discard(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        acts::discard(self, delivery, act).await
    }

    async fn release(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        acts::release(self, delivery, act).await
    }

    async fn create_replay(&self, replay: &Replay, act: &Act) -> Result<(), StoreError> {
        self.general.write(async |client| replays::create(client, replay, act).await).await
    }

    async fn replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError> {
        self.general.read(async |client| replays::list(client, limit).await).await
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        self.general.read(async |client| replays::find(client, id).await).await
    }

    async fn take_replay(
        &self,
        id: Option<ReplayId>,
        lease: Duration,
    ) -> Result<Option<Replay>, StoreError> {
        self.general.write(async |client| replays::take(client, id, lease).await).await
    }

    async fn replay_page(
        &self,
        filter: &ReplayFilter,
        after: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        self.general.read(async |client| pages::page(client, filter, after, limit).await).await
    }

    async fn step_replay(&self, step: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError> {
        replays::step(self, step).await
    }

    async fn cancel_replay(&self, id: ReplayId, act: &Act) -> Result<bool, StoreError> {
        self.general.write(async |client| replays::cancel(client, id, act).await).await
    }

    async fn create_token(&self, token: &Token, act: &Act) -> Result<(), StoreError> {
        self.general.write(async |client| tokens::create(client, token, act).await).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.general.read(async |client| tokens::list(client).await).await
    }

    async fn token(&self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        self.general.read(async |client| tokens::find(client, id).await).await
    }

    async fn revoke_token(&self, id: &TokenId, act: &Act) -> Result<bool, StoreError> {
        self.general.write(async |client| tokens::revoke(client, id, act).await).await
    }

    async fn note_act(&self, act: &Act, what: &str, subject: &str) -> Result<(), StoreError> {
        self.general.write(async |client| acts::note_alone(client, act, what, subject).await).await
    }

    async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.general.read(async |client| lists::audit(client, before, limit).await).await
    }
}
