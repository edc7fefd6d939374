//! Which deliveries a replay is about, page by page.

use rusqlite::{Connection, Row, params};

use super::connection::failure;
use super::lists::span;
use super::read::glob;
use super::rows::{halves, reason_if_any, receipt_id, state_if_any};
use crate::delivery::{DeliveryId, State};
use crate::receipt::{RouteNo, SourceNo};
use crate::replay::ReplayFilter;
use crate::store::{ReplayCandidate, StoreError};

/// The next candidates in the order of receipt and route.
pub(super) fn page(
    connection: &Connection,
    filter: &ReplayFilter,
    after: Option<DeliveryId>,
    limit: usize,
) -> Result<Vec<ReplayCandidate>, StoreError> {
    let after = after.map_or((0, 0), |last| (halves(last.receipt).0, last.route.0));
    let read = || -> rusqlite::Result<Vec<ReplayCandidate>> {
        if filter.receipts.is_empty() {
            let (from, to) = span(filter.since, filter.until);
            return stretch(connection, filter, Stretch { after, to, limit }.starting_at(from));
        }
        named(connection, filter, after, limit)
    };
    read().map_err(failure)
}

/// Receipts that are named are looked up one by one, however far apart they are.
fn named(
    connection: &Connection,
    filter: &ReplayFilter,
    after: (i64, i16),
    limit: usize,
) -> rusqlite::Result<Vec<ReplayCandidate>> {
    let mut receipts = filter.receipts.clone();
    receipts.sort_unstable();
    receipts.dedup();
    let (from, to) = span(filter.since, filter.until);
    let mut found = Vec::new();
    for receipt in receipts {
        let head = halves(receipt).0;
        if head < after.0 || head < from || head >= to {
            continue;
        }
        let rest = limit - found.len();
        if rest == 0 {
            break;
        }
        let one = Stretch { after, to: head.saturating_add(1), limit: rest }.starting_at(head);
        let mut here = stretch(connection, filter, one)?;
        here.retain(|candidate| candidate.delivery.receipt == receipt);
        found.extend(here);
    }
    Ok(found)
}

/// A stretch of deliveries by receipt and route: after one of them, before a receipt.
#[derive(Clone, Copy)]
struct Stretch {
    after: (i64, i16),
    to: i64,
    limit: usize,
}

impl Stretch {
    /// One lower bound: of two SQLite would search by one and read past the other.
    fn starting_at(self, head: i64) -> Self {
        Self { after: self.after.max((head.saturating_sub(1), i16::MAX)), ..self }
    }
}

fn stretch(
    connection: &Connection,
    filter: &ReplayFilter,
    stretch: Stretch,
) -> rusqlite::Result<Vec<ReplayCandidate>> {
    let mut found = Vec::new();
    // What no route took has no deliveries.
    if !filter.unrouted && filter.state.is_none_or(|state| !state.is_finished()) {
        let sql = include_str!("sql/page_open.sql");
        found.extend(of_state(connection, filter, stretch, sql)?);
    }
    if !filter.unrouted && filter.state.is_none_or(State::is_finished) {
        let sql = include_str!("sql/page_finished.sql");
        found.extend(of_state(connection, filter, stretch, sql)?);
    }
    // What was never taken is in no state.
    if filter.state.is_none() && !filter.fill.is_empty() {
        found.extend(unfilled(connection, filter, stretch)?);
    }
    found.sort_by_key(|candidate| candidate.delivery);
    found.truncate(stretch.limit);
    Ok(found)
}

fn of_state(
    connection: &Connection,
    filter: &ReplayFilter,
    stretch: Stretch,
    sql: &str,
) -> rusqlite::Result<Vec<ReplayCandidate>> {
    let routes = (!filter.routes.is_empty()).then(|| json(filter.routes.iter().copied()));
    let values = params![
        stretch.after.0,
        stretch.after.1,
        stretch.to,
        routes,
        filter.source,
        filter.event_type.as_deref().map(glob),
        filter.state.map(State::as_str),
        filter.means_messages(),
        i64::try_from(stretch.limit).unwrap_or(i64::MAX),
        filter.means_odd(),
    ];
    connection.prepare_cached(sql)?.query_map(values, candidate)?.collect()
}

fn unfilled(
    connection: &Connection,
    filter: &ReplayFilter,
    stretch: Stretch,
) -> rusqlite::Result<Vec<ReplayCandidate>> {
    let wanted = |route: &RouteNo| filter.routes.is_empty() || filter.routes.contains(route);
    let routes = filter.fill.iter().map(|fill| fill.route).filter(wanted);
    let values = params![
        stretch.after.0,
        stretch.after.1,
        stretch.to,
        json(routes),
        filter.source,
        filter.event_type.as_deref().map(glob),
        filter.unrouted,
        i64::try_from(stretch.limit).unwrap_or(i64::MAX),
    ];
    let mut statement = connection.prepare_cached(include_str!("sql/page_unfilled.sql"))?;
    statement.query_map(values, candidate)?.collect()
}

/// A list of numbers as SQLite reads one.
fn json(routes: impl Iterator<Item = RouteNo>) -> String {
    let numbers: Vec<String> = routes.map(|route| route.0.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<ReplayCandidate> {
    Ok(ReplayCandidate {
        delivery: DeliveryId { receipt: receipt_id(row, 0)?, route: RouteNo(row.get(2)?) },
        source: SourceNo(row.get(3)?),
        event_type: row.get(4)?,
        state: state_if_any(row, 5)?,
        reason: reason_if_any(row, 6)?,
        stale: row.get::<_, Option<bool>>(7)?.unwrap_or(false),
        repeated: row.get(8)?,
        held: row.get::<_, Option<bool>>(9)?.unwrap_or(false),
        expired: row.get(10)?,
        event_id: row.get(11)?,
    })
}
