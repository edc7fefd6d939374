//! What deliveries of one object or one operation do to each other.
//!
//! The writer is alone, so what is read here stays true until its transaction ends.

use rusqlite::{Connection, Params, Row, params};

use super::connection::run;
use super::rows::{halves, milliseconds, whole};
use crate::delivery::{DeliveryId, Facts, State};
use crate::receipt::{ReceiptId, RouteNo};
use crate::route::RouteRules;

/// What the guards go by of a delivery.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) delivery: DeliveryId,
    pub(super) source: i16,
    pub(super) created_at: i64,
    pub(super) lane: Option<String>,
    pub(super) place: i64,
    pub(super) operation: Option<[u8; 16]>,
}

impl Guarded {
    /// Reads five columns: source, created_at, lane, place and operation.
    pub(super) fn read(
        delivery: DeliveryId,
        row: &Row<'_>,
        first: usize,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            delivery,
            source: row.get(first)?,
            created_at: row.get(first + 1)?,
            lane: row.get(first + 2)?,
            place: row.get(first + 3)?,
            operation: row.get(first + 4)?,
        })
    }

    /// Whether others may have to wait for it.
    pub(super) fn is_guarded(&self) -> bool {
        self.lane.is_some() || self.operation.is_some()
    }

    /// The provider's ordering value; the lowest place stands for none.
    fn version(&self) -> Option<i64> {
        (self.place != i64::MIN).then_some(self.place)
    }

    fn route(&self) -> RouteNo {
        self.delivery.route
    }

    fn head(&self) -> i64 {
        halves(self.delivery.receipt).0
    }
}

/// Gathers what is in the way of a candidate.
pub(super) fn facts(
    transaction: &Connection,
    rules: &RouteRules,
    candidate: &Guarded,
    ignores: Ignores,
    now: i64,
) -> rusqlite::Result<Facts> {
    let lane = candidate.lane.as_ref().filter(|_| rules.needs_lanes());
    let operation = candidate.operation.filter(|_| rules.same_operation.is_some());
    let mut facts = Facts {
        receipt: Some(candidate.delivery.receipt),
        laned: lane.is_some(),
        version: candidate.version(),
        ignores_stale: ignores.stale,
        ignores_order: ignores.order,
        ..Facts::default()
    };
    if lane.is_none() && operation.is_none() {
        return Ok(facts);
    }
    let values = params![
        candidate.route().0,
        candidate.head(),
        candidate.source,
        lane,
        candidate.place,
        operation,
        candidate.created_at,
        rules.same_operation.map(milliseconds),
        rules.holds_followers_for().map(|hold_for| now.saturating_sub(milliseconds(hold_for))),
    ];
    transaction.prepare_cached(include_str!("sql/find_facts.sql"))?.query_row(values, |row| {
        facts.applied = row.get(0)?;
        facts.in_flight = row.get(1)?;
        facts.earlier_open = row.get(2)?;
        facts.earlier_dead = row.get(3)?;
        facts.same_processed = receipt_if_any(row, 4)?;
        facts.same_open = row.get(6)?;
        facts.same_dead = row.get(7)?;
        Ok(())
    })?;
    Ok(facts)
}

/// What an operator lets a delivery pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ignores {
    pub(super) stale: bool,
    pub(super) order: bool,
}

/// A receipt id in two columns, if there is one.
pub(super) fn receipt_if_any(row: &Row<'_>, head: usize) -> rusqlite::Result<Option<ReceiptId>> {
    let halves = (row.get::<_, Option<i64>>(head)?, row.get::<_, Option<i64>>(head + 1)?);
    Ok(halves.0.zip(halves.1).map(|(head, tail)| whole(head, tail)))
}

/// Remembers what was processed: the newest version of the object, and the operation.
pub(super) fn remember(
    transaction: &Connection,
    processed: &Guarded,
    today: i32,
) -> rusqlite::Result<()> {
    let route = processed.route().0;
    if let (Some(lane), Some(version)) = (&processed.lane, processed.version()) {
        let values = params![route, processed.source, lane, version, today];
        run(transaction, include_str!("sql/move_watermark.sql"), values)?;
    }
    if let Some(operation) = processed.operation {
        let (head, tail) = halves(processed.delivery.receipt);
        let values = params![route, operation, head, tail, processed.created_at, today];
        run(transaction, include_str!("sql/remember_operation.sql"), values)?;
    }
    Ok(())
}

/// Lets go what waited for a delivery that is now in `state`. Says how many.
pub(super) fn release(
    transaction: &Connection,
    ended: &Guarded,
    state: State,
    now: i64,
) -> rusqlite::Result<usize> {
    let mut released = release_lane(transaction, ended, now)?;
    if let Some(operation) = ended.operation {
        let (over, dead) = (state.is_finished(), state == State::Dead);
        let values = params![ended.route().0, operation, ended.head(), over, dead];
        let sql = include_str!("sql/find_operation_waiting.sql");
        released += release_found(transaction, ended.route(), sql, values, now)?;
    }
    Ok(released)
}

/// Lets go what is next of an object that a delivery was in the way of. Says how many.
pub(super) fn release_lane(
    transaction: &Connection,
    ended: &Guarded,
    now: i64,
) -> rusqlite::Result<usize> {
    let Some(lane) = &ended.lane else { return Ok(0) };
    let route = ended.route();
    let values = params![route.0, ended.source, lane, now];
    let head = run(transaction, include_str!("sql/release_lane_head.sql"), values)?;
    let sql = include_str!("sql/find_lane_passing.sql");
    let values = params![route.0, ended.source, lane];
    Ok(head + release_found(transaction, route, sql, values, now)?)
}

/// Most often there is none, and looking is cheaper than an update that might change many.
fn release_found(
    transaction: &Connection,
    route: RouteNo,
    sql: &str,
    values: impl Params,
    now: i64,
) -> rusqlite::Result<usize> {
    let mut statement = transaction.prepare_cached(sql)?;
    let found: Vec<i64> =
        statement.query_map(values, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for head in &found {
        release_one(transaction, *head, route, now)?;
    }
    Ok(found.len())
}

/// Makes a held delivery due now, to be judged again.
pub(super) fn release_one(
    transaction: &Connection,
    head: i64,
    route: RouteNo,
    now: i64,
) -> rusqlite::Result<()> {
    let values = params![head, route.0, now];
    run(transaction, include_str!("sql/release_delivery.sql"), values).map(drop)
}
