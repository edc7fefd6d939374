//! Ends of attempts: compare-and-set on the lease, and what follows for others.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, params};

use super::clock::StoreClock;
use super::connection::{in_transaction, run};
use super::guards::{self, Guarded};
use super::rows::{halves, milliseconds};
use crate::delivery::{DeliveryId, Ending, Lease, Next, Reason, State};
use crate::receipt::ReceiptId;
use crate::store::{StoreError, words};

/// Which endings counted, and whether something became due by them.
pub(super) struct Finished {
    pub(super) good: Vec<bool>,
    pub(super) due: bool,
}

pub(super) fn finish(
    connection: &mut Connection,
    clock: &StoreClock,
    endings: &[Ending],
) -> Result<Finished, StoreError> {
    in_transaction(connection, |transaction| {
        let (now, today) = (clock.now(), clock.today());
        let mut finished = Finished { good: Vec::with_capacity(endings.len()), due: false };
        for ending in endings {
            let ended = end(transaction, ending, now)?;
            finished.good.push(ended.is_some());
            let Some((guarded, state)) = ended else { continue };
            finished.due |= is_due_at_once(ending.next);
            if guarded.is_guarded() {
                if state == State::Processed {
                    guards::remember(transaction, &guarded, today)?;
                }
                finished.due |= guards::release(transaction, &guarded, state, now)? > 0;
            }
        }
        Ok(finished)
    })
}

fn is_due_at_once(next: Next) -> bool {
    match next {
        Next::Return => true,
        Next::Retry(after) | Next::Snooze(after) => after.is_zero(),
        Next::Processed | Next::Stale | Next::Dead => false,
    }
}

/// Applies one ending; none if its lease is not good any more.
fn end(
    transaction: &Transaction<'_>,
    ending: &Ending,
    now: i64,
) -> rusqlite::Result<Option<(Guarded, State)>> {
    let (head, route) = (halves(ending.delivery.receipt).0, ending.delivery.route.0);
    let lease = ending.lease.0;
    let detail = ending.detail.as_deref().map(words::short);
    let (ended, state) = match ending.next {
        Next::Processed | Next::Stale => {
            let close = Close::by(ending, now);
            let state = close.state;
            let closed = self::close(transaction, ending.delivery, &close)?;
            return Ok(closed.map(|guarded| (guarded, state)));
        }
        Next::Retry(after) | Next::Snooze(after) => {
            let snooze = matches!(ending.next, Next::Snooze(_));
            let due_at = now.saturating_add(milliseconds(after));
            let values = params![head, route, lease, now, !snooze, snooze, due_at, detail];
            let sql = include_str!("sql/retry_delivery.sql");
            (change(transaction, ending.delivery, sql, values)?, State::Retrying)
        }
        Next::Dead => {
            let sql = include_str!("sql/kill_delivery.sql");
            let values = params![head, route, lease, now, detail];
            (change(transaction, ending.delivery, sql, values)?, State::Dead)
        }
        Next::Return => {
            let sql = include_str!("sql/return_delivery.sql");
            let values = params![head, route, lease, now];
            let returned = change(transaction, ending.delivery, sql, values)?;
            return Ok(returned.map(|changed| (changed.guarded, State::Retrying)));
        }
    };
    let Some(changed) = ended else { return Ok(None) };
    let attempt = Attempt {
        outcome: ending.next.as_str(),
        took: Some(ending.took),
        status: ending.status,
        detail: detail.as_deref(),
    };
    insert_attempt(transaction, &changed, &attempt, now)?;
    Ok(Some((changed.guarded, state)))
}

/// An open delivery that was changed.
pub(super) struct Changed {
    pub(super) guarded: Guarded,
    epoch: i64,
    attempts: u32,
    replays: u32,
}

impl Changed {
    /// Reads eight columns: source, created_at, lane, place, operation, epoch, attempts, replays.
    pub(super) fn read(delivery: DeliveryId, row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            guarded: Guarded::read(delivery, row, 0)?,
            epoch: row.get(5)?,
            attempts: row.get(6)?,
            replays: row.get(7)?,
        })
    }
}

fn change(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    sql: &str,
    values: impl Params,
) -> rusqlite::Result<Option<Changed>> {
    let mut statement = transaction.prepare_cached(sql)?;
    statement.query_row(values, |row| Changed::read(delivery, row)).optional()
}

/// How an attempt ended that did not finish its delivery.
pub(super) struct Attempt<'a> {
    pub(super) outcome: &'a str,
    pub(super) took: Option<Duration>,
    pub(super) status: Option<u16>,
    pub(super) detail: Option<&'a str>,
}

pub(super) fn insert_attempt(
    transaction: &Transaction<'_>,
    changed: &Changed,
    attempt: &Attempt<'_>,
    now: i64,
) -> rusqlite::Result<()> {
    let DeliveryId { receipt, route } = changed.guarded.delivery;
    let values = params![
        halves(receipt).0,
        route.0,
        changed.epoch,
        changed.attempts,
        changed.replays,
        now,
        attempt.outcome,
        attempt.took.map(milliseconds),
        attempt.status,
        attempt.detail,
    ];
    run(transaction, include_str!("sql/insert_attempt.sql"), values).map(drop)
}

/// How a delivery leaves the open ones.
pub(super) struct Close {
    /// The lease it must be under; none if it is not under one.
    lease: Option<Lease>,
    state: State,
    reason: Option<Reason>,
    at: i64,
    first: Option<ReceiptId>,
    took: Option<Duration>,
    status: Option<u16>,
    detail: Option<String>,
    summary: Option<String>,
}

impl Close {
    /// Without an attempt. A repeated operation names the first receipt.
    pub(super) fn skipped(reason: Reason, first: Option<ReceiptId>, at: i64) -> Self {
        Self {
            lease: None,
            state: State::Skipped,
            reason: Some(reason),
            at,
            first,
            took: None,
            status: None,
            detail: None,
            summary: None,
        }
    }

    fn by(ending: &Ending, at: i64) -> Self {
        let (state, reason) = match ending.next {
            Next::Stale => (State::Skipped, Some(Reason::Stale)),
            _ => (State::Processed, None),
        };
        Self {
            lease: Some(ending.lease),
            state,
            reason,
            at,
            first: None,
            took: Some(ending.took),
            status: ending.status,
            detail: ending.detail.as_deref().map(words::short),
            summary: ending.summary.as_deref().map(words::short),
        }
    }
}

/// Moves a delivery to the finished ones; none if it was not there to be moved.
pub(super) fn close(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    close: &Close,
) -> rusqlite::Result<Option<Guarded>> {
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    let mut delete = transaction.prepare_cached(include_str!("sql/close_delivery.sql"))?;
    let mut rows =
        delete.query(params![head, route, close.lease.map(|lease| lease.0), close.at])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let guarded = Guarded::read(delivery, row, 0)?;
    let first = close.first.map(halves);
    // What was skipped without an attempt keeps what was last said of it.
    let said: Option<String> = row.get(11)?;
    let detail = if close.took.is_some() { &close.detail } else { &said };
    let values = params![
        head,
        route,
        guarded.source,
        guarded.created_at,
        guarded.lane.is_some(),
        guarded.operation,
        row.get::<_, i64>(5)?,
        row.get::<_, u32>(6)?,
        row.get::<_, u32>(7)?,
        row.get::<_, u32>(8)?,
        row.get::<_, u32>(9)?,
        row.get::<_, u32>(10)?,
        close.state.as_str(),
        close.reason.map(Reason::as_str),
        close.at,
        first.map(|(head, _)| head),
        first.map(|(_, tail)| tail),
        close.status,
        close.took.map(milliseconds),
        detail,
        close.summary,
    ];
    run(transaction, include_str!("sql/finish_delivery.sql"), values)?;
    Ok(Some(guarded))
}
