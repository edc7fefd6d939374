//! What operators see and do.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use super::{SqliteStore, acts, lists, tokens};
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
        self.readers.run(lists::routes).await
    }

    async fn pause_route(&self, name: &str, paused: bool, act: &Act) -> Result<bool, StoreError> {
        let (name, act, clock) = (name.to_owned(), act.clone(), self.clock.clone());
        let pause = move |db: &mut Connection| acts::pause_route(db, &clock, &name, paused, &act);
        let done = self.writer.run(pause).await?;
        if done && !paused {
            self.announce();
        }
        Ok(done)
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<DeliveryRow>, StoreError> {
        let filter = filter.clone();
        self.readers.run(move |db| lists::deliveries(db, &filter)).await
    }

    async fn attempts(&self, receipt: ReceiptId) -> Result<Vec<AttemptRow>, StoreError> {
        self.readers.run(move |db| lists::attempts(db, receipt)).await
    }

    async fn tally(&self, processed: bool) -> Result<Vec<Tally>, StoreError> {
        self.readers.run(move |db| lists::tally(db, processed)).await
    }

    async fn discard(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        let (act, clock) = (act.clone(), self.clock.clone());
        let (acted, due) =
            self.writer.run(move |db| acts::discard(db, &clock, delivery, &act)).await?;
        if due {
            self.announce();
        }
        Ok(acted)
    }

    async fn release(&self, delivery: DeliveryId, act: &Act) -> Result<Acted, StoreError> {
        let (act, clock) = (act.clone(), self.clock.clone());
        let acted = self.writer.run(move |db| acts::release(db, &clock, delivery, &act)).await?;
        if acted == Acted::Done {
            self.announce();
        }
        Ok(acted)
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

    async fn create_token(&self, token: &Token, act: &Act) -> Result<(), StoreError> {
        let (token, act) = (token.clone(), act.clone());
        self.writer.run(move |db| tokens::create(db, &token, &act)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.readers.run(tokens::list).await
    }

    async fn token(&self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        let id = id.clone();
        self.readers.run(move |db| tokens::find(db, &id)).await
    }

    async fn revoke_token(&self, id: &TokenId, act: &Act) -> Result<bool, StoreError> {
        let (id, act) = (id.clone(), act.clone());
        self.writer.run(move |db| tokens::revoke(db, &id, &act)).await
    }

    async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.run(move |db| lists::audit(db, before, limit)).await
    }
}
