//! The ends of attempts.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{GenericClient, Object, Transaction};
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{execute, failure, is_locked, query};
use super::locks::{self, Guard, Left};
use super::names::milliseconds;
use crate::delivery::{DeliveryId, Ending, Lease, Next};
use crate::limits::POSTGRES_CLAIM_WAIT;
use crate::store::{Finish, StoreError, words};

/// An end of an attempt: a lease, and where its delivery goes.
type End = (DeliveryId, Lease, &'static str);

fn end_of(ending: &Ending) -> End {
    (ending.delivery, ending.lease, ending.next.as_str())
}

/// What came of endings.
#[derive(Default)]
pub(super) struct Ended {
    now: HashSet<End>,
    /// Ended the same way before: the answer to that was lost.
    before: HashSet<End>,
    /// Left for now: another transaction has locked what they need.
    locked: HashSet<(DeliveryId, Lease)>,
    /// Whether anything was let go.
    released: bool,
}

impl Ended {
    /// Of an attempt that is ended twice in a batch the second comes after the first.
    fn take(&mut self, end: End) -> Finish {
        let (delivery, lease, _) = end;
        if self.now.remove(&end) {
            self.before.insert(end);
            return Finish::Done;
        }
        match self.before.contains(&end) {
            true => Finish::Before,
            false if self.locked.contains(&(delivery, lease)) => Finish::Locked,
            false => Finish::Lost,
        }
    }

    /// Whether something was left for now.
    pub(super) fn is_partial(&self) -> bool {
        !self.locked.is_empty()
    }

    fn add(&mut self, (now, released): (HashSet<End>, bool)) {
        self.now.extend(now);
        self.released |= released;
    }
}

/// Ends attempts; says what came of each.
pub(super) async fn finish(
    store: &PostgresStore,
    endings: &[Ending],
) -> Result<Vec<Finish>, StoreError> {
    if endings.is_empty() {
        return Ok(Vec::new());
    }
    let outcome = store.working.write(async |client| end_all(client, endings).await).await;
    let mut ended = outcome?;
    if ended.released || endings.iter().any(|ending| is_due_at_once(ending.next)) {
        store.wake.everywhere();
    }
    Ok(endings.iter().map(|ending| ended.take(end_of(ending))).collect())
}

/// Whether attempts were ended just so.
pub(super) async fn were_ended(
    store: &PostgresStore,
    endings: &[Ending],
) -> Result<Vec<bool>, StoreError> {
    let ended = store.daily.read(async |client| find_ended(client, endings.iter()).await).await?;
    Ok(endings.iter().map(|ending| ended.contains(&end_of(ending))).collect())
}

fn is_due_at_once(next: Next) -> bool {
    match next {
        Next::Return => true,
        Next::Retry(pause) | Next::Snooze(pause) => pause.is_zero(),
        Next::Processed | Next::Stale | Next::Dead | Next::Damaged => false,
    }
}

/// Ends attempts, and lets go what waited for them. None waits for another: those that share
/// nothing with others come first, and what another transaction has locked is left.
pub(super) async fn end_all(client: &mut Object, endings: &[Ending]) -> Result<Ended, StoreError> {
    let mut ended = Ended::default();
    let (guarded, plain): (Vec<_>, Vec<_>) = endings.iter().cloned().partition(|e| e.guarded);
    if !plain.is_empty() {
        ended.add((end(client, &plain, &[]).await?, false));
    }
    // Their route may have come to guard them since they were claimed.
    let late = plain.into_iter().filter(|e| !ended.now.contains(&end_of(e)));
    let late: Vec<Ending> = late.map(|e| Ending { guarded: true, ..e }).collect();
    for guarded in [guarded, late].into_iter().filter(|endings| !endings.is_empty()) {
        match end_guarded(client, &guarded).await {
            Ok(more) => ended.add(more),
            Err(error) if is_locked(&error) => end_apart(client, &guarded, &mut ended).await?,
            Err(error) => return Err(error),
        }
    }
    let missing = || endings.iter().filter(|ending| !ended.now.contains(&end_of(ending)));
    let before = find_ended(client, missing()).await?;
    let undone = missing().filter(|ending| !before.contains(&end_of(ending)));
    let locked = find_locked(client, undone).await?;
    Ok(Ended { before, locked, ..ended })
}

/// Ends attempts one by one, hardly waiting for each, since one of them needs a locked row
/// beside its lane and its operation.
async fn end_apart(
    client: &mut Object,
    endings: &[Ending],
    ended: &mut Ended,
) -> Result<(), StoreError> {
    for ending in endings {
        match end_guarded(client, std::slice::from_ref(ending)).await {
            Ok(more) => ended.add(more),
            Err(error) if is_locked(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends attempts of deliveries that share something with others, and lets go what waited. Those
/// whose lane or operation is locked are left out.
async fn end_guarded(
    client: &mut Object,
    endings: &[Ending],
) -> Result<(HashSet<End>, bool), StoreError> {
    let guards = locks::find(client, endings.iter().map(|ending| ending.delivery)).await?;
    let transaction = client.transaction().await.map_err(failure)?;
    locks::wait_for(&transaction, POSTGRES_CLAIM_WAIT).await?;
    let busy = locks::lock_free(&transaction, &guards).await?;
    let free: Vec<Ending> =
        endings.iter().filter(|ending| !busy.contains(&ending.delivery)).cloned().collect();
    let ended = end(&transaction, &free, &guards).await?;
    let next: HashMap<DeliveryId, Next> = free
        .iter()
        .filter(|ending| ended.contains(&end_of(ending)))
        .map(|ending| (ending.delivery, ending.next))
        .collect();
    let changed: Vec<(&Guard, Next)> =
        guards.iter().filter_map(|guard| Some((guard, *next.get(&guard.delivery)?))).collect();
    let processed = changed.iter().filter(|(_, next)| *next == Next::Processed);
    remember(&transaction, processed.map(|(guard, _)| *guard)).await?;
    let from_lanes = locks::release_lanes(&transaction, changed.iter().map(|(g, _)| *g)).await?;
    let left = changed.iter().map(|(guard, next)| (*guard, left(*next)));
    let from_operations = locks::release_operations(&transaction, left).await?;
    transaction.commit().await.map_err(failure)?;
    Ok((ended, from_lanes || from_operations))
}

fn left(next: Next) -> Left {
    match next {
        Next::Processed | Next::Stale => Left::ForGood,
        Next::Dead => Left::Dead,
        Next::Retry(_) | Next::Snooze(_) | Next::Return | Next::Damaged => Left::ForNow,
    }
}

/// Ends attempts, each lease once: whatever else a batch says of it comes too late. `guards` are
/// what they share with others, and it is locked.
async fn end(
    client: &impl GenericClient,
    endings: &[Ending],
    guards: &[Guard],
) -> Result<HashSet<End>, StoreError> {
    let lanes = guards.iter().map(|guard| (guard.delivery, guard.lane.as_deref())).collect();
    let mut seen = HashSet::with_capacity(endings.len());
    let firsts: Vec<&Ending> =
        endings.iter().filter(|ending| seen.insert((ending.delivery, ending.lease))).collect();
    if firsts.is_empty() {
        return Ok(HashSet::new());
    }
    let mut good = try_to_end(client, &firsts, &lanes).await?;
    // A lease that was being extended meanwhile is good all the same.
    let rest: Vec<&Ending> =
        firsts.into_iter().filter(|ending| !good.contains(&end_of(ending))).collect();
    if !rest.is_empty() {
        good.extend(try_to_end(client, &rest, &lanes).await?);
    }
    Ok(good)
}

async fn try_to_end(
    client: &impl GenericClient,
    endings: &[&Ending],
    lanes: &HashMap<DeliveryId, Option<&str>>,
) -> Result<HashSet<End>, StoreError> {
    let columns = Columns::of(endings, lanes);
    let rows = query(client, include_str!("sql/finish.sql"), &columns.values()).await?;
    let good: HashSet<(DeliveryId, Lease)> =
        rows.iter().map(|row| (locks::delivery(row), Lease(row.get(2)))).collect();
    let good = endings.iter().filter(|ending| good.contains(&(ending.delivery, ending.lease)));
    Ok(good.map(|ending| end_of(ending)).collect())
}

/// Attempts that were ended by a commit whose outcome was unknown.
async fn find_ended<'a>(
    client: &Object,
    missing: impl Iterator<Item = &'a Ending>,
) -> Result<HashSet<End>, StoreError> {
    let missing: Vec<End> = missing.map(end_of).collect();
    if missing.is_empty() {
        return Ok(HashSet::new());
    }
    let (receipts, routes) = locks::keys(missing.iter().map(|(delivery, ..)| *delivery));
    let leases: Vec<i64> = missing.iter().map(|(_, lease, _)| lease.0).collect();
    let next: Vec<&str> = missing.iter().map(|(.., next)| *next).collect();
    let sql = include_str!("sql/find_ended.sql");
    let rows = query(client, sql, &[&receipts, &routes, &leases, &next]).await?;
    let place = |row: &Row| usize::try_from(row.get::<_, i64>(0) - 1).ok();
    Ok(rows.iter().filter_map(|row| missing.get(place(row)?).copied()).collect())
}

/// Attempts that are still under a good lease, though they could not be ended.
async fn find_locked<'a>(
    client: &Object,
    undone: impl Iterator<Item = &'a Ending>,
) -> Result<HashSet<(DeliveryId, Lease)>, StoreError> {
    let undone: Vec<(DeliveryId, Lease)> = undone.map(|it| (it.delivery, it.lease)).collect();
    if undone.is_empty() {
        return Ok(HashSet::new());
    }
    let (receipts, routes) = locks::keys(undone.iter().map(|(delivery, _)| *delivery));
    let leases: Vec<i64> = undone.iter().map(|(_, lease)| lease.0).collect();
    let sql = include_str!("sql/find_locked.sql");
    let rows = query(client, sql, &[&receipts, &routes, &leases]).await?;
    let place = |row: &Row| usize::try_from(row.get::<_, i64>(0) - 1).ok();
    Ok(rows.iter().filter_map(|row| undone.get(place(row)?).copied()).collect())
}

/// Moves watermarks and remembers operations.
async fn remember<'a>(
    transaction: &Transaction<'_>,
    processed: impl Iterator<Item = &'a Guard> + Clone,
) -> Result<(), StoreError> {
    let (mut routes, mut sources, mut lanes, mut versions) = (vec![], vec![], vec![], vec![]);
    for guard in processed.clone() {
        if let (Some(lane), Some(version)) = (&guard.lane, guard.version()) {
            routes.push(guard.delivery.route.0);
            sources.push(guard.source.0);
            lanes.push(lane.as_str());
            versions.push(version);
        }
    }
    if !routes.is_empty() {
        let sql = include_str!("sql/move_watermark.sql");
        execute(transaction, sql, &[&routes, &sources, &lanes, &versions]).await?;
    }
    let of_operations = processed.filter(|guard| guard.operation.is_some());
    let (receipts, routes) = locks::keys(of_operations.clone().map(|guard| guard.delivery));
    if !routes.is_empty() {
        let keys: Vec<Option<Uuid>> = of_operations.clone().map(|guard| guard.operation).collect();
        let times: Vec<Timestamp> = of_operations.map(|guard| guard.created_at).collect();
        let sql = include_str!("sql/remember_operation.sql");
        execute(transaction, sql, &[&routes, &keys, &receipts, &times]).await?;
    }
    Ok(())
}

/// Endings turned on their side: one array per column.
#[derive(Default)]
struct Columns<'a> {
    receipt: Vec<Uuid>,
    route: Vec<i16>,
    lease: Vec<i64>,
    next: Vec<&'static str>,
    pause: Vec<i64>,
    took: Vec<i32>,
    status: Vec<Option<i16>>,
    detail: Vec<Option<String>>,
    summary: Vec<Option<String>>,
    guarded: Vec<bool>,
    lane: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(endings: &[&Ending], lanes: &HashMap<DeliveryId, Option<&'a str>>) -> Self {
        let mut columns = Self::default();
        for ending in endings {
            columns.push(ending);
            columns.lane.push(lanes.get(&ending.delivery).copied().flatten());
        }
        columns
    }

    fn push(&mut self, ending: &Ending) {
        let pause = match ending.next {
            Next::Retry(pause) | Next::Snooze(pause) => milliseconds(pause),
            Next::Processed | Next::Stale | Next::Dead | Next::Return | Next::Damaged => 0,
        };
        self.receipt.push(ending.delivery.receipt.as_uuid());
        self.route.push(ending.delivery.route.0);
        self.lease.push(ending.lease.0);
        self.next.push(ending.next.as_str());
        self.pause.push(pause);
        self.took.push(i32::try_from(ending.took.as_millis()).unwrap_or(i32::MAX));
        self.status.push(ending.status.and_then(|status| i16::try_from(status).ok()));
        self.detail.push(ending.detail.as_deref().map(words::short));
        self.summary.push(ending.summary.as_deref().map(words::short));
        self.guarded.push(ending.guarded);
    }

    /// The parameters of `finish.sql`, in its order.
    fn values(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.receipt,
            &self.route,
            &self.lease,
            &self.next,
            &self.pause,
            &self.took,
            &self.status,
            &self.detail,
            &self.summary,
            &self.guarded,
            &self.lane,
        ]
    }
}
