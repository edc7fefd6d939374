//! Replay jobs.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use super::acts::note;
use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::guards::receipt_if_any;
use super::reopen::reopen;
use super::rows::{halves, milliseconds, state_if_any, time, time_if_any};
use crate::delivery::{DeliveryId, Lease, State};
use crate::limits;
use crate::receipt::{ReceiptId, RouteNo};
use crate::replay::{Fill, How, Phase, Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::store::{Act, StoreError};

pub(super) fn create(
    connection: &mut Connection,
    replay: &Replay,
    act: &Act,
) -> Result<(), StoreError> {
    let filter = &replay.filter;
    let receipts: Vec<u8> = filter.receipts.iter().flat_map(ReceiptId::as_bytes).copied().collect();
    let routes: Vec<u8> = filter.routes.iter().flat_map(|route| route.0.to_be_bytes()).collect();
    in_transaction(connection, |transaction| {
        let values = params![
            replay.id.0.as_bytes(),
            replay.created_at.as_millisecond(),
            replay.who,
            replay.why,
            receipts,
            routes,
            filter.source,
            filter.event_type,
            filter.since.map(Timestamp::as_millisecond),
            filter.until.map(Timestamp::as_millisecond),
            filter.state.map(State::as_str),
            filter.unrouted,
            filter.odd,
            Fill::encode(&filter.fill),
            replay.how.force,
            replay.how.ignore_stale,
            replay.rate,
            replay.phase.as_str(),
            number(replay.planned),
        ];
        run(transaction, include_str!("sql/insert_replay.sql"), values)?;
        note(transaction, act, "replay.create", &replay.id.to_string())
    })
}

pub(super) fn list(connection: &Connection, limit: usize) -> Result<Vec<Replay>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(include_str!("sql/list_replays.sql"))
        .and_then(|mut statement| statement.query_map([limit], replay)?.collect())
        .map_err(failure)
}

pub(super) fn find(connection: &Connection, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    connection
        .prepare_cached(include_str!("sql/find_replay.sql"))
        .and_then(|mut statement| statement.query_row([id.0.as_bytes()], replay).optional())
        .map_err(failure)
}

pub(super) fn take(
    connection: &mut Connection,
    clock: &StoreClock,
    id: Option<ReplayId>,
    lease: Duration,
) -> Result<Option<Replay>, StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let until = now.saturating_add(milliseconds(lease));
        let id = id.map(|id| *id.0.as_bytes());
        let mut statement = transaction.prepare_cached(include_str!("sql/take_replay.sql"))?;
        statement.query_row(params![id, now, until], replay).optional()
    })
}

/// Does one step; none, and nothing is changed, if the job is not the driver's any more.
pub(super) fn step(
    connection: &mut Connection,
    clock: &StoreClock,
    step: &ReplayStep,
) -> Result<Option<Vec<Reopened>>, StoreError> {
    let mut take_step = || -> rusqlite::Result<Option<Vec<Reopened>>> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = clock.now();
        let reopened: Vec<Reopened> = step
            .open
            .iter()
            .map(|(delivery, fill)| reopen(&transaction, *delivery, *fill, step.how, now))
            .collect::<rusqlite::Result<_>>()?;
        if !move_on(&transaction, step, &reopened, now)? {
            // Dropped without a commit, the transaction takes back what was opened.
            return Ok(None);
        }
        transaction.commit()?;
        Ok(Some(reopened))
    };
    take_step().map_err(failure)
}

/// Moves the cursor and counts, under the driver's lease; false if that is not good any more.
fn move_on(
    transaction: &Transaction<'_>,
    step: &ReplayStep,
    reopened: &[Reopened],
    now: i64,
) -> rusqlite::Result<bool> {
    let opened = reopened.iter().filter(|one| **one == Reopened::Opened).count();
    let left = reopened.len() - opened;
    let cursor = step.cursor.map(|last| (halves(last.receipt), last.route.0));
    let values = params![
        step.id.0.as_bytes(),
        step.lease.0,
        now,
        now.saturating_add(milliseconds(limits::LEASE)),
        number(opened as u64),
        number(step.passed.saturating_add(left as u64)),
        cursor.map(|((head, _), _)| head),
        cursor.map(|((_, tail), _)| tail),
        cursor.map(|(_, route)| route),
        step.done,
    ];
    Ok(run(transaction, include_str!("sql/step_replay.sql"), values)? == 1)
}

pub(super) fn cancel(
    connection: &mut Connection,
    id: ReplayId,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let sql = include_str!("sql/cancel_replay.sql");
        if run(transaction, sql, [id.0.as_bytes()])? == 0 {
            return Ok(false);
        }
        note(transaction, act, "replay.cancel", &id.to_string())?;
        Ok(true)
    })
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn replay(row: &Row<'_>) -> rusqlite::Result<Replay> {
    let word: String = row.get(16)?;
    let cursor = receipt_if_any(row, 20)?.zip(row.get::<_, Option<i16>>(22)?);
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(Replay {
        id: ReplayId(Uuid::from_bytes(row.get(0)?)),
        created_at: time(row, 1)?,
        who: row.get(2)?,
        why: row.get(3)?,
        filter: filter(row)?,
        how: How { force: row.get(13)?, ignore_stale: row.get(14)? },
        rate: row.get(15)?,
        phase: Phase::of(&word).ok_or_else(|| unreadable(16))?,
        planned: count(17)?,
        opened: count(18)?,
        passed: count(19)?,
        cursor: cursor.map(|(receipt, route)| DeliveryId { receipt, route: RouteNo(route) }),
        lease: Lease(row.get(23)?),
    })
}

fn filter(row: &Row<'_>) -> rusqlite::Result<ReplayFilter> {
    let (receipts, routes): (Vec<u8>, Vec<u8>) = (row.get(4)?, row.get(5)?);
    let fill: String = row.get(12)?;
    Ok(ReplayFilter {
        receipts: receipts.as_chunks().0.iter().copied().map(ReceiptId::from_bytes).collect(),
        routes: routes.as_chunks().0.iter().map(|no| RouteNo(i16::from_be_bytes(*no))).collect(),
        source: row.get(6)?,
        event_type: row.get(7)?,
        since: time_if_any(row, 8)?,
        until: time_if_any(row, 9)?,
        state: state_if_any(row, 10)?,
        odd: row.get(24)?,
        unrouted: row.get(11)?,
        fill: Fill::decode(&fill).ok_or_else(|| unreadable(12))?,
    })
}

fn unreadable(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "no replay wrote this".into())
}
