//! Claims: in one statement where nothing guards a route, judged one by one where something does.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tracing::warn;
use uuid::Uuid;

use super::connect::query;
use super::guards::Way;
use super::names::milliseconds;
use super::{PostgresStore, guards, lists, locks, read, unheard};
use crate::delivery::{Claimed, Counts, Lease, idempotency_key};
use crate::limits;
use crate::receipt::{RouteNo, SourceNo};
use crate::store::{Claim, Claims, Pick, StoreError, Wanted};

pub(super) async fn claim(store: &PostgresStore, claim: &Claim) -> Result<Claims, StoreError> {
    let wanted = claim.wanted.iter().copied().filter(|wanted| wanted.most > 0);
    let (picky, wanted): (Vec<_>, Vec<_>) = wanted.partition(|wanted| wanted.pick != Pick::Due);
    let (guarded, plain): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|wanted| wanted.rules.is_guarded());
    let mut claims = Claims::default();
    let mut failed = None;
    for (wanted, way) in [(guarded, Way::Straight), (picky, Way::Unfailed)] {
        if wanted.is_empty() {
            continue;
        }
        let claim = unheard::signed(claim);
        let outcome = guards::claim(store, &claim, &wanted, way).await;
        unheard::undo(store, &claim, &outcome);
        match outcome {
            Ok(more) => claims.add(more),
            // The other routes do not wait for what somebody holds.
            Err(error) => failed = Some(error),
        }
    }
    if !plain.is_empty() {
        let claim = unheard::signed(claim);
        let outcome = claim_plain(store, &claim, &plain).await;
        unheard::undo(store, &claim, &outcome);
        match outcome {
            Ok(plain) => claims.add(plain),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        // What was claimed is under leases by now, and its worker has to hear of it.
        Some(error) if !claims.claimed.is_empty() => warn!(%error, "part of a claim failed"),
        Some(error) => return Err(error),
        None => {}
    }
    look_behind(store);
    Ok(claims)
}

async fn claim_plain(
    store: &PostgresStore,
    claim: &Claim,
    wanted: &[Wanted],
) -> Result<Claims, StoreError> {
    let asked = Asked::of(wanted, &store.floors);
    let leases: Vec<i64> = wanted.iter().map(|w| milliseconds(w.lease_in(claim))).collect();
    let sql = include_str!("sql/claim.sql");
    let values: [&(dyn ToSql + Sync); 5] =
        [&asked.route, &asked.most, &asked.floor, &leases, &claim.worker];
    let mut rows = store.working.write(async |client| query(client, sql, &values).await).await?;
    let mut came = Came::default();
    for row in &rows {
        came.at = Some(row.get(16));
        came.paused = row.get::<_, Option<Vec<i16>>>(17).unwrap_or_default();
        if row.get::<_, Option<Uuid>>(0).is_some() {
            came.took(RouteNo(row.get(1)), row.get(14), row.get(15));
        }
    }
    came.note(wanted, &asked, &store.floors);
    rows.retain(|row| row.get::<_, Option<Uuid>>(0).is_some());
    let claimed = read_claimed(store, &rows).await?;
    Ok(Claims { claimed, alone: came.alone(), ..Claims::default() })
}

/// Deliveries as both statements that give leases return them, with what is told of their
/// receipts. They are under leases by now: if that cannot be read, they are given back as after an
/// answer that was lost.
pub(super) async fn read_claimed(
    store: &PostgresStore,
    leased: &[Row],
) -> Result<Vec<Claimed>, StoreError> {
    if leased.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = leased.iter().map(|row| row.get(0)).collect();
    let sql = include_str!("sql/find_claimed.sql");
    let told = store.daily.read(async |client| query(client, sql, &[&ids]).await).await;
    let told = told.map_err(|error| StoreError::UnknownOutcome(error.to_string()))?;
    let told: HashMap<Uuid, &Row> = told.iter().map(|row| (row.get(0), row)).collect();
    let claimed = leased.iter().filter_map(|row| Some(claimed(row, told.get(&row.get(0))?)));
    Ok(claimed.collect())
}

fn claimed(leased: &Row, told: &Row) -> Claimed {
    let count = |column: usize| u32::try_from(leased.get::<_, i32>(column)).unwrap_or(0);
    let event_id: String = told.get(1);
    Claimed {
        delivery: locks::delivery(leased),
        lease: Lease(leased.get(2)),
        lease_until: leased.get("lease_until"),
        source: SourceNo(leased.get(3)),
        source_name: leased.get(4),
        key: idempotency_key(leased.get(5), &event_id, leased.get(6), told.get(9)),
        event_id,
        event_type: told.get(2),
        object: told.get(3),
        version: told.get(4),
        received_at: told.get(5),
        bytes: usize::try_from(told.get::<_, i32>(6)).unwrap_or(0),
        counts: Counts {
            attempts: count(7),
            failures: count(8),
            crashes: count(9),
            snoozes: count(10),
            tried: lists::duration(leased.get(13)),
        },
        replays: count(11),
        guarded: leased.get(12),
        mark: read::mark(told, 7),
    }
}

/// How far the claims on each route have come.
///
/// What was claimed stays in the index of due deliveries until it is vacuumed, and nothing is
/// vacuumed while somebody holds an old snapshot. Claims therefore start where the last one came
/// to, less a margin for commits that took their time.
#[derive(Default)]
pub(super) struct Floors {
    routes: Mutex<HashMap<RouteNo, Timestamp>>,
    /// When it was last seen to that nothing was left behind.
    looked_behind: Mutex<Option<Instant>>,
}

impl Floors {
    fn of(&self, route: RouteNo) -> Timestamp {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.get(&route).copied().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Moves the floor of a route, unless it was moved since it was read.
    fn set(&self, route: RouteNo, seen: Timestamp, floor: Timestamp) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let current = routes.entry(route).or_insert(Timestamp::UNIX_EPOCH);
        if *current == seen {
            *current = floor;
        }
    }

    fn lower(&self, route: RouteNo, floor: Timestamp) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = routes.get_mut(&route) {
            *current = floor.min(*current);
        }
    }

    fn all(&self) -> (Vec<i16>, Vec<Timestamp>) {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(route, floor)| (route.0, less_margin(*floor))).unzip()
    }

    /// Whether it is time to look behind.
    fn begin_look(&self) -> bool {
        let mut looked = self.looked_behind.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = looked.is_none_or(|at| now.duration_since(at) >= limits::CLAIM_EVERYTHING);
        if due {
            *looked = Some(now);
        }
        due
    }
}

/// Where a claim starts.
fn less_margin(floor: Timestamp) -> Timestamp {
    floor.checked_sub(limits::CLAIM_MARGIN).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The parameters of a claim.
pub(super) struct Asked {
    pub(super) route: Vec<i16>,
    pub(super) most: Vec<i64>,
    pub(super) floor: Vec<Timestamp>,
    seen: Vec<Timestamp>,
}

impl Asked {
    pub(super) fn of(wanted: &[Wanted], floors: &Floors) -> Self {
        let seen: Vec<_> = wanted.iter().map(|wanted| floors.of(wanted.route)).collect();
        Self {
            route: wanted.iter().map(|wanted| wanted.route.0).collect(),
            most: wanted.iter().map(|w| i64::try_from(w.most).unwrap_or(i64::MAX)).collect(),
            floor: seen.iter().copied().map(less_margin).collect(),
            seen,
        }
    }
}

/// Where a claim has come to.
#[derive(Default)]
pub(super) struct Came {
    pub(super) at: Option<Timestamp>,
    pub(super) paused: Vec<i16>,
    routes: HashMap<RouteNo, Taken>,
}

#[derive(Default)]
struct Taken {
    count: usize,
    latest: Option<Timestamp>,
    alone: bool,
}

impl Came {
    pub(super) fn took(&mut self, route: RouteNo, due_at: Timestamp, alone: bool) {
        let taken = self.routes.entry(route).or_default();
        taken.count += 1;
        taken.alone |= alone;
        taken.latest = taken.latest.max(Some(due_at));
    }

    /// Whether as much of a route was taken as was wanted, or suspects were taken apart: there may
    /// be more.
    pub(super) fn is_full(&self, wanted: &Wanted) -> bool {
        let taken = self.routes.get(&wanted.route);
        taken.is_some_and(|taken| taken.alone || taken.count >= wanted.most)
    }

    /// Whether one suspect was taken, and nothing else of its route.
    pub(super) fn is_sole(&self, route: RouteNo) -> bool {
        self.routes.get(&route).is_some_and(|taken| taken.alone && taken.count == 1)
    }

    /// The routes of which suspects were taken apart.
    pub(super) fn alone(&self) -> Vec<RouteNo> {
        let alone = self.routes.iter().filter(|(_, taken)| taken.alone);
        alone.map(|(route, _)| *route).collect()
    }

    /// Moves the floors of the routes that were looked at.
    pub(super) fn note(&self, wanted: &[Wanted], asked: &Asked, floors: &Floors) {
        let Some(at) = self.at else { return };
        for (wanted, seen) in wanted.iter().zip(&asked.seen) {
            let taken = self.routes.get(&wanted.route);
            // Nothing was looked through.
            if self.paused.contains(&wanted.route.0) || taken.is_some_and(|taken| taken.alone) {
                continue;
            }
            let latest = taken.and_then(|taken| taken.latest).unwrap_or(at);
            let floor = if self.is_full(wanted) { latest } else { at };
            floors.set(wanted.route, *seen, floor.max(*seen));
        }
    }
}

/// Now and then sees to it that claims have not gone past anything: what was committed long after
/// it was due, or what a claim had locked that was then rolled back. Beside the claims, because it
/// walks over everything they need not.
fn look_behind(store: &PostgresStore) {
    if !store.floors.begin_look() {
        return;
    }
    let (general, floors, wake) = (store.general.clone(), store.floors.clone(), store.wake.clone());
    tokio::spawn(async move {
        let (routes, heights) = floors.all();
        let sql = include_str!("sql/find_left_behind.sql");
        let values: [&(dyn ToSql + Sync); 2] = [&routes, &heights];
        match general.read(async |client| query(client, sql, &values).await).await {
            Ok(rows) if !rows.is_empty() => {
                for row in rows {
                    floors.lower(RouteNo(row.get(0)), row.get(1));
                }
                wake.here();
            }
            Ok(_) => {}
            Err(error) => warn!(%error, "cannot look for deliveries that claims have passed"),
        }
    });
}
