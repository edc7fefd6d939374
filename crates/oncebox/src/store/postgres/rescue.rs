//! What looks after deliveries that nobody looks after: leases that ran out, and deliveries held
//! for something that is not in their way any more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Object;
use uuid::Uuid;

use super::connect::{execute, failure, query};
use super::guards::{Candidate, free_of, judge_all};
use super::locks::{self, Guard, Left};
use super::names::milliseconds;
use super::{PostgresStore, lists};
use crate::delivery::{DeliveryId, Judgement, State};
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{Rescued, StoreError, Unblocked};

/// Takes deliveries whose lease ran out away from their workers.
pub(super) async fn rescue(store: &PostgresStore, limit: usize) -> Result<Rescued, StoreError> {
    let now = Instant::now();
    let back = store.rescues.how_far_back(now);
    let outcome = store.working.write(async |client| rescue_on(client, limit, back).await).await;
    let (rescued, all) = outcome?;
    if all {
        store.rescues.note(now, back);
    }
    if rescued != Rescued::default() {
        store.wake.everywhere();
    }
    Ok(rescued)
}

/// How far rescues have come: as claims do, they pass over what has not been vacuumed.
#[derive(Default)]
pub(super) struct Rescues {
    last: Mutex<Last>,
}

#[derive(Clone, Copy, Default)]
struct Last {
    /// The last rescue that left nothing.
    any: Option<Instant>,
    /// The last of those that looked at everything.
    of_everything: Option<Instant>,
}

impl Rescues {
    /// How long ago a lease may have run out that nobody has looked at; none if any time ago.
    fn how_far_back(&self, now: Instant) -> Option<Duration> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let everything = last.of_everything?;
        if now.duration_since(everything) >= limits::RESCUE_EVERYTHING {
            return None;
        }
        Some(now.duration_since(last.any?) + limits::RESCUE_MARGIN)
    }

    fn note(&self, now: Instant, back: Option<Duration>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.any = Some(now);
        if back.is_none() {
            last.of_everything = Some(now);
        }
    }
}

/// Rescues up to `limit`, and says whether that was all.
async fn rescue_on(
    client: &mut Object,
    limit: usize,
    back: Option<Duration>,
) -> Result<(Rescued, bool), StoreError> {
    const ANY_TIME: Duration = Duration::from_secs(1_000_000_000);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let back = milliseconds(back.unwrap_or(ANY_TIME));
    let sql = include_str!("sql/find_expired_leases.sql");
    let rows = query(client, sql, &[&most, &back]).await?;
    let all = rows.len() < limit;
    if rows.is_empty() {
        return Ok((Rescued::default(), all));
    }
    let lost: Vec<Lost> = rows.iter().map(|row| (Guard::read(row), row.get(7))).collect();
    match take_away(client, &lost, Wait::Usual).await {
        Err(StoreError::Unavailable(reason)) if lost.len() > 1 => {
            let (rescued, left) = take_away_apart(client, &lost, reason).await?;
            Ok((rescued, all && left == 0))
        }
        outcome => Ok((outcome?, all)),
    }
}

/// A delivery whose lease ran out, and that lease.
type Lost = (Guard, i64);

/// How long to wait for what somebody has locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Usual,
    Hardly,
}

/// Rescues one by one. Somebody holds what one of them shares with others, and a transaction of
/// another program may do so for as long as it likes: that one is left for now. Says how many are.
async fn take_away_apart(
    client: &mut Object,
    lost: &[Lost],
    reason: String,
) -> Result<(Rescued, usize), StoreError> {
    let mut rescued = Rescued::default();
    let mut left = 0;
    for one in lost.chunks(1) {
        match take_away(client, one, Wait::Hardly).await {
            Ok(more) => {
                rescued.retrying.extend(more.retrying);
                rescued.dead.extend(more.dead);
            }
            Err(StoreError::Unavailable(_)) => left += 1,
            Err(error) => return Err(error),
        }
    }
    match left == lost.len() {
        true => Err(StoreError::Unavailable(reason)),
        false => Ok((rescued, left)),
    }
}

/// Takes deliveries away from their workers, and lets go what waited for them.
async fn take_away(client: &mut Object, lost: &[Lost], wait: Wait) -> Result<Rescued, StoreError> {
    let guards = || lost.iter().map(|(guard, _)| guard);
    let (receipts, routes) = locks::keys(guards().map(|guard| guard.delivery));
    let epochs: Vec<i64> = lost.iter().map(|(_, epoch)| *epoch).collect();
    let transaction = client.transaction().await.map_err(failure)?;
    if wait == Wait::Hardly {
        transaction.batch_execute("SET LOCAL lock_timeout = 100").await.map_err(failure)?;
    }
    locks::lock(&transaction, guards()).await?;
    let sql = include_str!("sql/rescue_deliveries.sql");
    let rows = query(&transaction, sql, &[&receipts, &routes, &epochs]).await?;
    let mut rescued = Rescued::default();
    for row in &rows {
        match State::of(row.get(2)) {
            Some(State::Dead) => rescued.dead.push(locks::delivery(row)),
            _ => rescued.retrying.push(locks::delivery(row)),
        }
    }
    let left = |delivery: &DeliveryId| match delivery {
        dead if rescued.dead.contains(dead) => Some(Left::Dead),
        lost if rescued.retrying.contains(lost) => Some(Left::ForNow),
        _ => None,
    };
    let changed: Vec<(&Guard, Left)> =
        guards().filter_map(|guard| Some((guard, left(&guard.delivery)?))).collect();
    locks::release_lanes(&transaction, changed.iter().map(|(guard, _)| *guard)).await?;
    locks::release_operations(&transaction, changed.iter().copied()).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(rescued)
}

/// Lets go held deliveries that nothing is in the way of any more. Each call looks at the next
/// `limit` of them, and begins again after the last.
pub(super) async fn release_unblocked(
    store: &PostgresStore,
    limit: usize,
) -> Result<Unblocked, StoreError> {
    let mut last = store.last_held.lock().await;
    let after = *last;
    let outcome = store.working.write(async |client| release_on(client, after, limit).await).await;
    let (released, next) = outcome?;
    *last = next;
    drop(last);
    if released > 0 {
        store.wake.everywhere();
    }
    Ok(Unblocked { released, more: next.is_some() })
}

async fn release_on(
    client: &mut Object,
    after: Option<DeliveryId>,
    limit: usize,
) -> Result<(usize, Option<DeliveryId>), StoreError> {
    let rules = lists::routes(client).await?;
    let rules: HashMap<RouteNo, _> =
        rules.into_iter().map(|route| (route.route, route.rules)).collect();
    let route = after.map_or(0, |delivery| delivery.route.0);
    let receipt = after.map_or(Uuid::nil(), |delivery| delivery.receipt.as_uuid());
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = include_str!("sql/find_held.sql");
    let rows = query(client, sql, &[&route, &receipt, &most]).await?;
    let last = rows.last().map(locks::delivery).filter(|_| rows.len() >= limit);
    if rows.is_empty() {
        return Ok((0, None));
    }
    let candidates = rows.iter().map(Candidate::read).collect();
    let transaction = client.transaction().await.map_err(failure)?;
    // What another transaction has locked is looked at in the next round.
    let candidates = free_of(&transaction, candidates, &rules).await?;
    let judged = judge_all(&transaction, candidates, &[State::Held], &rules).await?;
    let free = judged
        .iter()
        .filter(|(_, judgement)| !matches!(judgement, Judgement::Hold(_)))
        .map(|(candidate, _)| candidate.guard.delivery);
    let (receipts, routes) = locks::keys(free);
    let sql = include_str!("sql/release_deliveries.sql");
    let released = execute(&transaction, sql, &[&receipts, &routes]).await?;
    transaction.commit().await.map_err(failure)?;
    Ok((usize::try_from(released).unwrap_or(usize::MAX), last))
}
