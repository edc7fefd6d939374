//! Claims on routes that ask for order, freshness or one of each operation.
//!
//! What due deliveries share with others is locked, then they are; then, in a snapshot that has
//! what the last holder of those locks did, each is judged.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{Object, Transaction};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::claim::{Asked, Came, read_claimed};
use super::connect::{execute, failure, is_locked, query};
use super::locks::{self, Guard, Left};
use super::names::milliseconds;
use crate::delivery::{DeliveryId, Facts, Judgement, Reason, State, judge};
use crate::limits::PROBE_ROWS;
use crate::receipt::{ReceiptId, RouteNo, SourceNo};
use crate::route::RouteRules;
use crate::store::{Claim, Claims, Pick, StoreError, Wanted};

/// Claims what may run of guarded routes, and moves the rest out of the way. Somebody may take its
/// time with what it has locked, as a handler that has moved a watermark does: then those behind it
/// are left for now.
pub(super) async fn claim(
    store: &PostgresStore,
    claim: &Claim,
    wanted: &[Wanted],
    way: Way,
) -> Result<Claims, StoreError> {
    let by = async |way| {
        store.working.write(async |client| claim_on(store, client, claim, wanted, way).await).await
    };
    match by(way).await {
        Err(error) if is_locked(&error) && way == Way::Straight => by(Way::Around).await,
        // What is to be tried first is left for now, and nothing instead of it.
        Err(error) if is_locked(&error) && wanted.len() == 1 => Ok(Claims::default()),
        Err(error) if is_locked(&error) => {
            let mut claims = Claims::default();
            for one in wanted.chunks(1) {
                claims.add(Box::pin(self::claim(store, claim, one, way)).await?);
            }
            Ok(claims)
        }
        outcome => outcome,
    }
}

/// How candidates are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The oldest that are due.
    Straight,
    /// Those that never failed first.
    Unfailed,
    /// The oldest of which nobody holds what they share with others.
    Around,
}

async fn claim_on(
    store: &PostgresStore,
    client: &mut Object,
    claim: &Claim,
    wanted: &[Wanted],
    way: Way,
) -> Result<Claims, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let asked = Asked::of(wanted, &store.floors);
    let (set, rows) = tokio::join!(
        locks::wait_for(&transaction, store.claim_wait),
        find_candidates(&transaction, wanted, &asked, way)
    );
    set?;
    let mut came = Came::default();
    let mut candidates = Vec::new();
    for row in &rows? {
        came.at = Some(row.get(12));
        came.paused = row.get::<_, Option<Vec<i16>>>(13).unwrap_or_default();
        if row.get::<_, Option<Uuid>>(0).is_some() {
            came.took(RouteNo(row.get(1)), row.get(10), row.get(11));
            candidates.push(Candidate::read(row));
        }
    }
    let rules: HashMap<RouteNo, RouteRules> =
        wanted.iter().map(|wanted| (wanted.route, wanted.rules)).collect();
    if way == Way::Unfailed {
        candidates = free_of(&transaction, candidates, &rules).await?;
        let mut left: HashMap<RouteNo, usize> = wanted.iter().map(|w| (w.route, w.most)).collect();
        candidates.retain(|candidate| {
            let left = left.entry(candidate.guard.delivery.route).or_default();
            std::mem::replace(left, left.saturating_sub(1)) > 0
        });
    }
    let found = candidates.len();
    let due = [State::Received, State::Retrying];
    let judged = judge_all(&transaction, candidates, &due, &rules).await?;
    let terms = Terms { claim, wanted, came: &came };
    let (set, leased) = tokio::join!(
        locks::wait_for(&transaction, store.connector.lock_wait()),
        apply(&transaction, &judged, &terms)
    );
    set?;
    let leased = leased?;
    let released = release_behind(&transaction, &judged).await?;
    transaction.commit().await.map_err(failure)?;
    if way == Way::Straight {
        came.note(wanted, &asked, &store.floors);
    }

    let claimed = read_claimed(store, &leased).await?;
    let mut claims = Claims { claimed, alone: came.alone(), ..Claims::default() };
    for (candidate, judgement) in &judged {
        match judgement {
            Judgement::Run => {}
            Judgement::Hold(reason) => claims.held.push((candidate.guard.delivery, *reason)),
            Judgement::Skip(reason, _) => claims.skipped.push((candidate.guard.delivery, *reason)),
        }
    }
    if released {
        store.wake.everywhere();
    } else if claims.claimed.len() < found && wanted.iter().any(|w| came.is_full(w)) {
        // What was taken may not have been all, and less of it runs than was wanted.
        store.wake.here();
    }
    Ok(claims)
}

async fn find_candidates(
    transaction: &Transaction<'_>,
    wanted: &[Wanted],
    asked: &Asked,
    way: Way,
) -> Result<Vec<Row>, StoreError> {
    match way {
        Way::Unfailed => {
            let only: Vec<bool> = wanted.iter().map(|w| w.pick == Pick::OnlyUnfailed).collect();
            let sql = include_str!("sql/find_unfailed.sql");
            // Some more than are wanted: what another transaction has locked is passed over.
            let most: Vec<i64> = asked.most.iter().map(|most| most.saturating_mul(2) + 8).collect();
            query(transaction, sql, &[&asked.route, &most, &only, &PROBE_ROWS]).await
        }
        Way::Straight => {
            let sql = include_str!("sql/find_candidates.sql");
            query(transaction, sql, &[&asked.route, &asked.most, &asked.floor]).await
        }
        Way::Around => {
            let sql = include_str!("sql/find_free_candidates.sql");
            query(transaction, sql, &[&asked.route, &asked.most]).await
        }
    }
}

/// A delivery that may be claimed or let go, with what the decision goes by.
pub(super) struct Candidate {
    pub(super) guard: Guard,
    ignores_stale: bool,
    ignores_order: bool,
    epoch: i64,
}

impl Candidate {
    /// From the columns of `find_candidates.sql` and `find_held.sql`.
    pub(super) fn read(row: &Row) -> Self {
        Self {
            guard: Guard::read(row),
            ignores_stale: row.get(7),
            ignores_order: row.get(8),
            epoch: row.get(9),
        }
    }

    fn by_rules(self, rules: &RouteRules) -> Self {
        Self { guard: guard_by_rules(self.guard, rules), ..self }
    }

    fn lane(&self) -> Option<(RouteNo, SourceNo, &str)> {
        Some((self.guard.delivery.route, self.guard.source, self.guard.lane.as_deref()?))
    }

    fn operation(&self) -> Option<(RouteNo, Uuid)> {
        Some((self.guard.delivery.route, self.guard.operation?))
    }

    fn facts(&self, row: &Row) -> Facts {
        Facts {
            receipt: Some(self.guard.delivery.receipt),
            laned: self.guard.lane.is_some(),
            version: self.guard.version(),
            applied: row.get(1),
            in_flight: row.get(2),
            earlier_open: row.get(3),
            earlier_dead: row.get(4),
            same_processed: row.get::<_, Option<Uuid>>(5).map(ReceiptId::from),
            same_open: row.get(6),
            same_dead: row.get(7),
            ignores_stale: self.ignores_stale,
            ignores_order: self.ignores_order,
        }
    }
}

/// Those candidates of which no other transaction holds what they share with others, in their
/// order. That is locked.
pub(super) async fn free_of(
    transaction: &Transaction<'_>,
    candidates: Vec<Candidate>,
    rules: &HashMap<RouteNo, RouteRules>,
) -> Result<Vec<Candidate>, StoreError> {
    let guards: Vec<Guard> = candidates
        .iter()
        .map(|candidate| {
            let rules = rules.get(&candidate.guard.delivery.route).copied().unwrap_or_default();
            guard_by_rules(candidate.guard.clone(), &rules)
        })
        .collect();
    let busy = locks::lock_free(transaction, &guards).await?;
    Ok(candidates.into_iter().filter(|it| !busy.contains(&it.guard.delivery)).collect())
}

/// A guard without what its route does not guard, or not any more.
fn guard_by_rules(mut guard: Guard, rules: &RouteRules) -> Guard {
    guard.lane.take_if(|_| !rules.needs_lanes());
    guard.operation.take_if(|_| rules.same_operation.is_none());
    guard
}

/// Locks what candidates share with others, then those that are still in one of the states, and
/// judges each, in the order of their lanes: once one of a lane runs, those after it wait.
pub(super) async fn judge_all(
    transaction: &Transaction<'_>,
    candidates: Vec<Candidate>,
    states: &[State],
    rules: &HashMap<RouteNo, RouteRules>,
) -> Result<Vec<(Candidate, Judgement)>, StoreError> {
    let none = RouteRules::default();
    let rules = |candidate: &Candidate| rules.get(&candidate.guard.delivery.route).unwrap_or(&none);
    let mut candidates: Vec<Candidate> = candidates
        .into_iter()
        .map(|candidate| {
            let rules = rules(&candidate);
            candidate.by_rules(rules)
        })
        .collect();
    candidates.sort_by(|a, b| {
        let key = |c: &Candidate| (c.guard.place, c.guard.delivery.receipt);
        a.lane().cmp(&b.lane()).then_with(|| key(a).cmp(&key(b)))
    });
    locks::lock(transaction, candidates.iter().map(|candidate| &candidate.guard)).await?;
    lock_candidates(transaction, &mut candidates, states).await?;
    let facts = find_facts(transaction, &candidates, rules).await?;
    let mut running = Running::default();
    let mut judged = Vec::with_capacity(candidates.len());
    for (candidate, mut facts) in candidates.into_iter().zip(facts) {
        let rules = rules(&candidate);
        running.add_to(&mut facts, &candidate, rules);
        let judgement = judge(rules, &facts);
        if judgement == Judgement::Run {
            running.note(&candidate);
        }
        judged.push((candidate, judgement));
    }
    Ok(judged)
}

/// Locks candidates, and leaves out those that are not what they were.
async fn lock_candidates(
    transaction: &Transaction<'_>,
    candidates: &mut Vec<Candidate>,
    states: &[State],
) -> Result<(), StoreError> {
    let (receipts, routes) = locks::keys(candidates.iter().map(|c| c.guard.delivery));
    let epochs: Vec<i64> = candidates.iter().map(|candidate| candidate.epoch).collect();
    let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    let sql = include_str!("sql/lock_candidates.sql");
    let rows = query(transaction, sql, &[&receipts, &routes, &epochs, &states]).await?;
    let locked: HashSet<DeliveryId> = rows.iter().map(locks::delivery).collect();
    candidates.retain(|candidate| locked.contains(&candidate.guard.delivery));
    Ok(())
}

/// What a batch has let run so far.
#[derive(Default)]
struct Running {
    lanes: HashSet<(RouteNo, SourceNo, String)>,
    operations: HashMap<(RouteNo, Uuid), Vec<Timestamp>>,
}

impl Running {
    fn add_to(&self, facts: &mut Facts, candidate: &Candidate, rules: &RouteRules) {
        if let Some((route, source, lane)) = candidate.lane() {
            facts.in_flight |= self.lanes.contains(&(route, source, lane.to_owned()));
        }
        let reach = rules.same_operation.and_then(|reach| SignedDuration::try_from(reach).ok());
        if let (Some(operation), Some(reach)) = (candidate.operation(), reach) {
            let others = self.operations.get(&operation).map_or(&[][..], Vec::as_slice);
            let is_near =
                |other: &Timestamp| other.duration_since(candidate.guard.created_at).abs() <= reach;
            facts.same_open |= others.iter().any(is_near);
        }
    }

    fn note(&mut self, candidate: &Candidate) {
        if let Some((route, source, lane)) = candidate.lane() {
            self.lanes.insert((route, source, lane.to_owned()));
        }
        if let Some(operation) = candidate.operation() {
            self.operations.entry(operation).or_default().push(candidate.guard.created_at);
        }
    }
}

/// The facts of each candidate, in their order.
async fn find_facts<'a>(
    transaction: &Transaction<'_>,
    candidates: &[Candidate],
    rules: impl Fn(&Candidate) -> &'a RouteRules,
) -> Result<Vec<Facts>, StoreError> {
    let (receipts, routes) = locks::keys(candidates.iter().map(|c| c.guard.delivery));
    let sources: Vec<i16> = candidates.iter().map(|c| c.guard.source.0).collect();
    let lanes: Vec<Option<&str>> = candidates.iter().map(|c| c.guard.lane.as_deref()).collect();
    let places: Vec<i64> = candidates.iter().map(|c| c.guard.place).collect();
    let operations: Vec<Option<Uuid>> = candidates.iter().map(|c| c.guard.operation).collect();
    let created: Vec<Timestamp> = candidates.iter().map(|c| c.guard.created_at).collect();
    let reach = |c| rules(c).same_operation.map_or(0, milliseconds);
    let reach: Vec<i64> = candidates.iter().map(reach).collect();
    let hold_for = |c| rules(c).holds_followers_for().map(milliseconds);
    let hold_for: Vec<Option<i64>> = candidates.iter().map(hold_for).collect();
    let (from, to) = within_reach(&created, &reach);
    let values: [&(dyn ToSql + Sync); 11] = [
        &receipts,
        &routes,
        &sources,
        &lanes,
        &places,
        &operations,
        &created,
        &reach,
        &from,
        &to,
        &hold_for,
    ];
    let rows = query(transaction, include_str!("sql/find_facts.sql"), &values).await?;
    let mut facts = vec![Facts::default(); candidates.len()];
    for row in &rows {
        let n = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
        if let (Some(fact), Some(candidate)) = (facts.get_mut(n), candidates.get(n)) {
            *fact = candidate.facts(row);
        }
    }
    Ok(facts)
}

/// Between which ids receipts lie that came within reach of any of these times. Clocks differ: a
/// day more to both sides costs nothing.
fn within_reach(created: &[Timestamp], reach: &[i64]) -> (Uuid, Uuid) {
    let longest = reach.iter().copied().max().unwrap_or(0);
    let margin = SignedDuration::from_millis(longest) + SignedDuration::from_hours(24);
    let (first, last) = (created.iter().min(), created.iter().max());
    let from = first.and_then(|first| first.checked_sub(margin).ok());
    let to = last.and_then(|last| last.checked_add(margin).ok());
    let floor = |time: Option<Timestamp>, otherwise: Uuid| {
        time.map_or(otherwise, |time| ReceiptId::floor(time).as_uuid())
    };
    (floor(from, Uuid::nil()), floor(to, Uuid::max()))
}

/// What leases are given by.
struct Terms<'a> {
    claim: &'a Claim,
    wanted: &'a [Wanted],
    came: &'a Came,
}

impl Terms<'_> {
    fn lease(&self, route: RouteNo) -> i64 {
        let wanted = self.wanted.iter().find(|wanted| wanted.route == route);
        milliseconds(wanted.map_or(self.claim.lease, |wanted| wanted.lease_in(self.claim)))
    }
}

/// Does to the candidates what was judged, and returns those under leases.
async fn apply(
    transaction: &Transaction<'_>,
    judged: &[(Candidate, Judgement)],
    terms: &Terms<'_>,
) -> Result<Vec<Row>, StoreError> {
    let mut run: Vec<DeliveryId> = Vec::new();
    let mut hold: Vec<(DeliveryId, Reason)> = Vec::new();
    let mut skips = Skips::default();
    for (candidate, judgement) in judged {
        let delivery = candidate.guard.delivery;
        match judgement {
            Judgement::Run => run.push(delivery),
            Judgement::Hold(reason) => hold.push((delivery, *reason)),
            Judgement::Skip(reason, first) => skips.push(delivery, *reason, *first),
        }
    }
    if !hold.is_empty() {
        let (receipts, routes) = locks::keys(hold.iter().map(|(delivery, _)| *delivery));
        let reasons: Vec<&str> = hold.iter().map(|(_, reason)| reason.as_str()).collect();
        let sql = include_str!("sql/hold_deliveries.sql");
        execute(transaction, sql, &[&receipts, &routes, &reasons]).await?;
    }
    skips.write(transaction).await?;
    if run.is_empty() {
        return Ok(Vec::new());
    }
    let leases: Vec<i64> = run.iter().map(|delivery| terms.lease(delivery.route)).collect();
    let sole: Vec<bool> = run.iter().map(|it| terms.came.is_sole(it.route)).collect();
    let (receipts, routes) = locks::keys(run);
    let values: [&(dyn ToSql + Sync); 5] =
        [&receipts, &routes, &leases, &terms.claim.worker, &sole];
    query(transaction, include_str!("sql/lease_deliveries.sql"), &values).await
}

/// Deliveries that are finished without being delivered.
#[derive(Default)]
pub(super) struct Skips {
    receipt: Vec<Uuid>,
    route: Vec<i16>,
    reason: Vec<&'static str>,
    first: Vec<Option<Uuid>>,
}

impl Skips {
    pub(super) fn push(&mut self, delivery: DeliveryId, reason: Reason, first: Option<ReceiptId>) {
        self.receipt.push(delivery.receipt.as_uuid());
        self.route.push(delivery.route.0);
        self.reason.push(reason.as_str());
        self.first.push(first.map(|first| first.as_uuid()));
    }

    pub(super) async fn write(self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        if self.receipt.is_empty() {
            return Ok(());
        }
        let sql = include_str!("sql/skip_deliveries.sql");
        execute(transaction, sql, &[&self.receipt, &self.route, &self.reason, &self.first])
            .await
            .map(drop)
    }
}

/// Lets go what waited for deliveries that were skipped, or that wait for their operation
/// themselves.
async fn release_behind(
    transaction: &Transaction<'_>,
    judged: &[(Candidate, Judgement)],
) -> Result<bool, StoreError> {
    let are = |wanted: fn(&Judgement) -> bool| {
        judged.iter().filter(move |(_, judgement)| wanted(judgement)).map(|(c, _)| &c.guard)
    };
    let left_lane = are(|judgement| {
        matches!(judgement, Judgement::Skip(..) | Judgement::Hold(Reason::SameOperation))
    });
    let from_lanes = locks::release_lanes(transaction, left_lane).await?;
    let gone = are(|judgement| matches!(judgement, Judgement::Skip(..)));
    let gone = gone.map(|guard| (guard, Left::ForGood));
    let from_operations = locks::release_operations(transaction, gone).await?;
    Ok(from_lanes || from_operations)
}
