//! The ends of attempts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

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
pub(super) struct Ended {
    now: HashSet<End>,
    /// Ended the same way before: the answer to that was lost.
    before: HashSet<End>,
    /// Whether anything was let go.
    released: bool,
}

impl Ended {
    /// Of an attempt that is ended twice in a batch the second comes after the first.
    fn take(&mut self, end: End) -> Finish {
        if self.now.remove(&end) {
            self.before.insert(end);
            return Finish::Done;
        }
        if self.before.contains(&end) { Finish::Before } else { Finish::Lost }
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
    if outcome.as_ref().is_err_and(is_locked) {
        // Those that were ended may have let others go.
        store.wake.everywhere();
    }
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

/// Ends attempts, and lets go what waited for them.
pub(super) async fn end_all(client: &mut Object, endings: &[Ending]) -> Result<Ended, StoreError> {
    let guarded = endings.iter().any(|ending| ending.guarded);
    let (mut now, mut released) = match guarded {
        true => end_guarded_and_rest(client, endings).await?,
        false => (end(client, endings).await?, false),
    };
    let plain = endings.iter().filter(|e| !e.guarded && !now.contains(&end_of(e)));
    // Their route may have come to guard them since they were claimed.
    let late: Vec<Ending> = plain.map(|e| Ending { guarded: true, ..e.clone() }).collect();
    if !late.is_empty() {
        let (more, let_go) = end_guarded(client, &late, None).await?;
        now.extend(more);
        released |= let_go;
    }
    let missing = endings.iter().filter(|ending| !now.contains(&end_of(ending)));
    let before = find_ended(client, missing).await?;
    Ok(Ended { now, before, released })
}

/// As [`end_guarded`]. If somebody holds what one of the deliveries shares, the others are ended
/// all the same; told again with the rest, they are known for what they are.
async fn end_guarded_and_rest(
    client: &mut Object,
    endings: &[Ending],
) -> Result<(HashSet<End>, bool), StoreError> {
    let outcome = end_guarded(client, endings, None).await;
    let Err(error @ StoreError::Unavailable(_)) = &outcome else { return outcome };
    let (guarded, rest): (Vec<_>, Vec<_>) = endings.iter().cloned().partition(|e| e.guarded);
    end(client, &rest).await?;
    if is_locked(error) {
        for ending in &guarded {
            let alone = std::slice::from_ref(ending);
            match end_guarded(client, alone, Some(POSTGRES_CLAIM_WAIT)).await {
                Err(error) if !is_locked(&error) => return Err(error),
                _ => {}
            }
        }
    }
    outcome
}

/// Ends attempts of deliveries that share something with others, and lets go what waited.
async fn end_guarded(
    client: &mut Object,
    endings: &[Ending],
    wait: Option<Duration>,
) -> Result<(HashSet<End>, bool), StoreError> {
    let guarded = endings.iter().filter(|ending| ending.guarded);
    let guards = locks::find(client, guarded.map(|ending| ending.delivery)).await?;
    let transaction = client.transaction().await.map_err(failure)?;
    if let Some(wait) = wait {
        locks::wait_for(&transaction, wait).await?;
    }
    locks::lock(&transaction, guards.iter()).await?;
    let ended = end(&transaction, endings).await?;
    let next: HashMap<DeliveryId, Next> = endings
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

/// Ends attempts, each lease once: whatever else a batch says of it comes too late.
async fn end(client: &impl GenericClient, endings: &[Ending]) -> Result<HashSet<End>, StoreError> {
    let mut seen = HashSet::with_capacity(endings.len());
    let firsts: Vec<&Ending> =
        endings.iter().filter(|ending| seen.insert((ending.delivery, ending.lease))).collect();
    let mut good = try_to_end(client, &firsts).await?;
    // A lease that was being extended meanwhile is good all the same.
    let rest: Vec<&Ending> =
        firsts.into_iter().filter(|ending| !good.contains(&end_of(ending))).collect();
    if !rest.is_empty() {
        good.extend(try_to_end(client, &rest).await?);
    }
    Ok(good)
}

async fn try_to_end(
    client: &impl GenericClient,
    endings: &[&Ending],
) -> Result<HashSet<End>, StoreError> {
    let columns = Columns::of(endings);
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
struct Columns {
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
}

impl Columns {
    fn of(endings: &[&Ending]) -> Self {
        let mut columns = Self::default();
        endings.iter().for_each(|ending| columns.push(ending));
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
    fn values(&self) -> [&(dyn ToSql + Sync); 10] {
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
        ]
    }
}
