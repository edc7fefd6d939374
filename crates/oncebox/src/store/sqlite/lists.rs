//! Lists and counts of deliveries, for operators.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::claim::counts;
use super::connection::failure;
use super::guards::receipt_if_any;
use super::read::{glob, mark};
use super::rows::{
    duration_if_any, halves, reason_if_any, receipt_id, rules, state, time, time_if_any,
};
use crate::delivery::{DeliveryId, Reason, State};
use crate::receipt::{ReceiptId, RouteNo};
use crate::store::{
    AttemptRow, AuditRow, Behind, BreakerRow, DeliveryFilter, DeliveryRow, RouteView, StoreError,
    Tally,
};

pub(super) fn routes(connection: &Connection) -> Result<Vec<RouteView>, StoreError> {
    let list = || -> rusqlite::Result<Vec<RouteView>> {
        let mut statement = connection.prepare_cached(include_str!("sql/list_routes.sql"))?;
        let rows = statement.query_map([], |row| {
            Ok(RouteView {
                route: RouteNo(row.get(0)?),
                name: row.get(1)?,
                born_as: row.get(2)?,
                paused_at: time_if_any(row, 3)?,
                filling: row.get(16)?,
                rules: rules(row, 4)?,
            })
        })?;
        rows.collect()
    };
    list().map_err(failure)
}

/// Open and finished deliveries, newest first.
pub(super) fn deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let list = || -> rusqlite::Result<Vec<DeliveryRow>> {
        let mut rows = Vec::new();
        if filter.state.is_none_or(|state| !state.is_finished()) {
            let sql = include_str!("sql/list_open_deliveries.sql");
            rows.extend(list_deliveries(connection, filter, sql)?);
        }
        if filter.state.is_none_or(State::is_finished) {
            let sql = include_str!("sql/list_finished_deliveries.sql");
            rows.extend(list_deliveries(connection, filter, sql)?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.delivery));
        rows.truncate(filter.limit);
        for row in rows.iter_mut().filter(|row| row.is_behind_another()) {
            row.behind = behind(connection, row.delivery)?;
        }
        Ok(rows)
    };
    list().map_err(failure)
}

/// The delivery that a held one waits for.
fn behind(connection: &Connection, held: DeliveryId) -> rusqlite::Result<Option<Behind>> {
    let mut statement = connection.prepare_cached(include_str!("sql/find_behind.sql"))?;
    let values = params![halves(held.receipt).0, held.route.0];
    let found = statement.query_row(values, |row| {
        Ok(Behind { receipt: receipt_id(row, 0)?, event_id: row.get(2)?, state: state(row, 3)? })
    });
    found.optional()
}

fn list_deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
    sql: &str,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let (from, to) = match filter.receipt {
        Some(receipt) => (halves(receipt).0, halves(receipt).0.saturating_add(1)),
        None => span(filter.since, filter.until),
    };
    // One bound on each side: of two SQLite would search by one and read past the other. Routes
    // are numbered from 1.
    let before = filter.before.map(|last| (halves(last.receipt).0, last.route.0));
    let before = before.map_or((to, 0), |before| before.min((to, 0)));
    let values = params![
        before.0,
        before.1,
        from,
        filter.receipt.map(|receipt| halves(receipt).1),
        filter.route,
        filter.source,
        filter.event_type.as_deref().map(glob),
        filter.state.map(State::as_str),
        filter.reason.map(Reason::as_str),
        filter.event_id_prefix,
        filter.object,
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    connection.prepare_cached(sql)?.query_map(values, delivery)?.collect()
}

/// Breakers that are not closed and that a worker has reported since then.
pub(super) fn breakers(db: &Connection, since: i64) -> rusqlite::Result<Vec<BreakerRow>> {
    let mut statement = db.prepare_cached(include_str!("sql/list_breakers.sql"))?;
    let rows = statement.query_map([since], |row| {
        Ok(BreakerRow {
            route: RouteNo(row.get(0)?),
            worker: row.get(1)?,
            state: row.get(2)?,
            reason: row.get(3)?,
            next_probe_at: time_if_any(row, 4)?,
            told_at: time(row, 5)?,
        })
    })?;
    rows.collect()
}

/// The receipts of a span of time, by the first half of their ids; the end is not included.
pub(super) fn span(since: Option<Timestamp>, until: Option<Timestamp>) -> (i64, i64) {
    let head = |time| halves(ReceiptId::floor(time)).0;
    (since.map_or(0, head), until.map_or(i64::MAX, head))
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    Ok(DeliveryRow {
        delivery: DeliveryId { receipt: receipt_id(row, 0)?, route: RouteNo(row.get(2)?) },
        route: row.get(3)?,
        paused: row.get(4)?,
        source: row.get(5)?,
        event_id: row.get(6)?,
        event_type: row.get(7)?,
        object: row.get(8)?,
        version: row.get(9)?,
        received_at: time(row, 10)?,
        state: state(row, 11)?,
        reason: reason_if_any(row, 12)?,
        counts: counts(row, 13, 30)?,
        replays: row.get(17)?,
        due_at: time_if_any(row, 18)?,
        lease_until: time_if_any(row, 19)?,
        worker: row.get(20)?,
        finished_at: time_if_any(row, 21)?,
        detail: row.get(22)?,
        summary: row.get(23)?,
        first: receipt_if_any(row, 24)?,
        waits_for: row.get(26)?,
        behind: None,
        mark: mark(row, 27)?,
    })
}

pub(super) fn attempts(
    connection: &Connection,
    receipt: ReceiptId,
) -> Result<Vec<AttemptRow>, StoreError> {
    let list = || -> rusqlite::Result<Vec<AttemptRow>> {
        let (head, tail) = halves(receipt);
        let mut statement = connection.prepare_cached(include_str!("sql/list_attempts.sql"))?;
        let rows = statement.query_map(params![head, tail], |row| {
            Ok(AttemptRow {
                route: row.get(0)?,
                number: row.get(1)?,
                replays: row.get(2)?,
                ended_at: time(row, 3)?,
                took: duration_if_any(row, 4)?,
                outcome: row.get(5)?,
                status: row.get(6)?,
                detail: row.get(7)?,
            })
        })?;
        rows.collect()
    };
    list().map_err(failure)
}

pub(super) fn tally(connection: &Connection) -> rusqlite::Result<Vec<Tally>> {
    let mut statement = connection.prepare_cached(include_str!("sql/tally.sql"))?;
    let rows = statement.query_map([], |row| {
        Ok(Tally {
            route: RouteNo(row.get(0)?),
            state: state(row, 1)?,
            reason: reason_if_any(row, 2)?,
            count: row.get::<_, i64>(3)?.unsigned_abs(),
            oldest: time_if_any(row, 4)?,
        })
    })?;
    rows.collect()
}

pub(super) fn audit(
    connection: &Connection,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<AuditRow>, StoreError> {
    let list = || -> rusqlite::Result<Vec<AuditRow>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(include_str!("sql/list_audit.sql"))?;
        let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], |row| {
            Ok(AuditRow {
                no: row.get(0)?,
                at: time(row, 1)?,
                who: row.get(2)?,
                via: row.get(3)?,
                act: row.get(4)?,
                subject: row.get(5)?,
                why: row.get(6)?,
            })
        })?;
        rows.collect()
    };
    list().map_err(failure)
}
