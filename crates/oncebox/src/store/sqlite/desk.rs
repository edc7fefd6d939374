//! What operators see and do.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use super::connection::failure;
use super::rows::milliseconds;
use super::{SqliteStore, acts, lists, pages, replays, tokens};
use crate::delivery::DeliveryId;
use crate::limits::BREAKERS_SHOWN;
use crate::receipt::ReceiptId;
use crate::replay::{Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::store::{
    Act, Acted, AttemptRow, AuditRow, BreakerRow, DeliveryFilter, DeliveryRow, Desk,
    ReplayCandidate, RouteView, StoreError, Tally,
};
use crate::token::{Token, TokenId};

#[async_trait]
impl Desk for SqliteStore {
    async fn routes(&self) -> Result<Vec<RouteView>, StoreError> {
        self.readers.run(lists::routes).await
    }

    async fn breakers(&self) -> Result<Vec<BreakerRow>, StoreError> {
        let since = self.clock.now().saturating_sub(milliseconds(BREAKERS_SHOWN));
        self.readers.run(move |db| lists::breakers(db, since).map_err(failure)).await
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

    async fn tally(&self) -> Result<Vec<Tally>, StoreError> {
        self.readers.run(|db| lists::tally(db).map_err(failure)).await
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

    async fn create_replay(&self, replay: &Replay, act: &Act) -> Result<(), StoreError> {
        let (replay, act) = (replay.clone(), act.clone());
        self.writer.run(move |db| replays::create(db, &replay, &act)).await
    }

    async fn replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError> {
        self.readers.run(move |db| replays::list(db, limit)).await
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        self.readers.run(move |db| replays::find(db, id)).await
    }

    async fn take_replay(
        &self,
        id: Option<ReplayId>,
        lease: Duration,
    ) -> Result<Option<Replay>, StoreError> {
        let clock = self.clock.clone();
        self.writer.run(move |db| replays::take(db, &clock, id, lease)).await
    }

    async fn replay_page(
        &self,
        filter: &ReplayFilter,
        after: Option<DeliveryId>,
        limit: usize,
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        let filter = filter.clone();
        self.readers.run(move |db| pages::page(db, &filter, after, limit)).await
    }

    async fn step_replay(&self, step: &ReplayStep) -> Result<Option<Vec<Reopened>>, StoreError> {
        let (step, clock) = (step.clone(), self.clock.clone());
        let reopened = self.writer.run(move |db| replays::step(db, &clock, &step)).await?;
        if reopened.as_ref().is_some_and(|all| all.contains(&Reopened::Opened)) {
            self.announce();
        }
        Ok(reopened)
    }

    async fn cancel_replay(&self, id: ReplayId, act: &Act) -> Result<bool, StoreError> {
        let act = act.clone();
        self.writer.run(move |db| replays::cancel(db, id, &act)).await
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
        self.look_ups.run(move |db| tokens::find(db, &id)).await
    }

    async fn revoke_token(&self, id: &TokenId, act: &Act) -> Result<bool, StoreError> {
        let (id, act) = (id.clone(), act.clone());
        self.writer.run(move |db| tokens::revoke(db, &id, &act)).await
    }

    async fn note_act(&self, act: &Act, what: &str, subject: &str) -> Result<(), StoreError> {
        let (act, what, subject) = (act.clone(), what.to_owned(), subject.to_owned());
        self.writer.run(move |db| acts::note_alone(db, &act, &what, &subject)).await
    }

    async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.run(move |db| lists::audit(db, before, limit)).await
    }
}
