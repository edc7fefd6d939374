//! Ends of attempts: compare-and-set on the lease, and what follows for others.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::claim::counts;
use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::guards::{self, Guarded};
use super::rows::{halves, milliseconds};
use crate::delivery::{Counts, DeliveryId, Ending, Lease, Next, Reason, State, Suspicion};
use crate::receipt::ReceiptId;
use crate::store::{Finish, StoreError, words};

/// What came of each ending, and whether something became due by them.
pub(super) struct Finished {
    pub(super) each: Vec<Finish>,
    pub(super) due: bool,
}

pub(super) fn finish(
    connection: &mut Connection,
    clock: &StoreClock,
    endings: &[Ending],
) -> Result<Finished, StoreError> {
    in_transaction(connection, |transaction| {
        let mut finished = Finished { each: Vec::with_capacity(endings.len()), due: false };
        for ending in endings {
            let (finish, due) = end_one(transaction, clock, ending)?;
            finished.each.push(finish);
            finished.due |= due;
        }
        Ok(finished)
    })
}

/// Ends one attempt in somebody's transaction. Says what came of it, and whether something became
/// due by that.
pub(super) fn end_one(
    db: &Connection,
    clock: &StoreClock,
    ending: &Ending,
) -> rusqlite::Result<(Finish, bool)> {
    let now = clock.now();
    let Some((guarded, state)) = end(db, ending, now)? else {
        let before = was_ended(db, ending)?;
        return Ok((if before { Finish::Before } else { Finish::Lost }, false));
    };
    let mut due = is_due_at_once(ending.next);
    if guarded.is_guarded() {
        if state == State::Processed {
            guards::remember(db, &guarded, clock.today())?;
        }
        due |= guards::release(db, &guarded, state, now)? > 0;
    }
    Ok((Finish::Done, due))
}

/// Whether each of these very endings was recorded before.
pub(super) fn were_ended(db: &Connection, endings: &[Ending]) -> Result<Vec<bool>, StoreError> {
    endings.iter().map(|ending| was_ended(db, ending).map_err(failure)).collect()
}

/// Whether this very ending was recorded before.
fn was_ended(transaction: &Connection, ending: &Ending) -> rusqlite::Result<bool> {
    let (head, route) = (halves(ending.delivery.receipt).0, ending.delivery.route.0);
    let values = params![head, route, ending.lease.0, ending.next.as_str()];
    transaction
        .prepare_cached(include_str!("sql/find_ended.sql"))?
        .query_row(values, |row| row.get(0))
}

fn is_due_at_once(next: Next) -> bool {
    match next {
        Next::Return => true,
        Next::Retry(after) | Next::Snooze(after) => after.is_zero(),
        Next::Processed | Next::Stale | Next::Dead | Next::Damaged => false,
    }
}

/// Applies one ending; none if its lease is not good any more.
fn end(
    transaction: &Connection,
    ending: &Ending,
    now: i64,
) -> rusqlite::Result<Option<(Guarded, State)>> {
    let found = find_open(transaction, ending.delivery, Some(ending.lease), now)?;
    let Some(open) = found else { return Ok(None) };
    let (head, route) = (halves(ending.delivery.receipt).0, ending.delivery.route.0);
    let detail = ending.detail.as_deref().map(words::short);
    let state = match ending.next {
        Next::Processed | Next::Stale => {
            let close = Close::by(ending, now);
            self::close(transaction, &open, &close)?;
            return Ok(Some((open.guarded, close.state)));
        }
        Next::Return => {
            let values = params![head, route, open.epoch, now];
            run(transaction, include_str!("sql/return_delivery.sql"), values)?;
            return Ok(Some((open.guarded, State::Retrying)));
        }
        Next::Damaged => {
            let values = params![head, route, open.epoch, detail];
            run(transaction, include_str!("sql/hold_damaged.sql"), values)?;
            return Ok(Some((open.guarded, State::Held)));
        }
        Next::Retry(after) | Next::Snooze(after) => {
            let snooze = matches!(ending.next, Next::Snooze(_));
            let due_at = now.saturating_add(milliseconds(after));
            let tried = if snooze { 0 } else { milliseconds(ending.took.saturating_add(after)) };
            let values =
                params![head, route, open.epoch, !snooze, snooze, due_at, detail, tried, now];
            run(transaction, include_str!("sql/retry_delivery.sql"), values)?;
            State::Retrying
        }
        Next::Dead => {
            let values = params![head, route, open.epoch, detail, now];
            run(transaction, include_str!("sql/kill_delivery.sql"), values)?;
            State::Dead
        }
    };
    let attempt = Attempt {
        outcome: ending.next.as_str(),
        took: Some(ending.took),
        status: ending.status,
        detail: detail.as_deref(),
    };
    insert_attempt(transaction, &open, &attempt, now)?;
    Ok(Some((open.guarded, state)))
}

/// An open delivery. Rows are read and then written, which costs half of what `RETURNING` does,
/// and is as safe: the writer is alone.
pub(super) struct Open {
    pub(super) guarded: Guarded,
    pub(super) epoch: i64,
    pub(super) counts: Counts,
    pub(super) suspicion: Suspicion,
    replays: u32,
    /// The last thing that was said of it.
    detail: Option<String>,
}

/// Finds an open delivery; with a lease, only if that is good.
pub(super) fn find_open(
    transaction: &Connection,
    delivery: DeliveryId,
    lease: Option<Lease>,
    now: i64,
) -> rusqlite::Result<Option<Open>> {
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    let values = params![head, route, lease.map(|lease| lease.0), now];
    let mut statement = transaction.prepare_cached(include_str!("sql/find_open.sql"))?;
    let found = statement.query_row(values, |row| {
        Ok(Open {
            guarded: Guarded::read(delivery, row, 0)?,
            epoch: row.get(5)?,
            counts: counts(row, 6, 12)?,
            suspicion: Suspicion(row.get(13)?),
            replays: row.get(10)?,
            detail: row.get(11)?,
        })
    });
    found.optional()
}

/// How an attempt ended that did not finish its delivery.
pub(super) struct Attempt<'a> {
    pub(super) outcome: &'a str,
    pub(super) took: Option<Duration>,
    pub(super) status: Option<u16>,
    pub(super) detail: Option<&'a str>,
}

pub(super) fn insert_attempt(
    transaction: &Connection,
    open: &Open,
    attempt: &Attempt<'_>,
    now: i64,
) -> rusqlite::Result<()> {
    let DeliveryId { receipt, route } = open.guarded.delivery;
    let values = params![
        halves(receipt).0,
        route.0,
        open.epoch,
        open.counts.attempts,
        open.replays,
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
    state: State,
    reason: Option<Reason>,
    pub(super) at: i64,
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

/// Moves an open delivery to the finished ones.
pub(super) fn close(transaction: &Connection, open: &Open, close: &Close) -> rusqlite::Result<()> {
    let guarded = &open.guarded;
    let (head, route) = (halves(guarded.delivery.receipt).0, guarded.delivery.route.0);
    run(transaction, include_str!("sql/remove_open.sql"), params![head, route])?;
    let first = close.first.map(halves);
    // What was skipped without an attempt keeps what was last said of it.
    let detail = if close.took.is_some() { &close.detail } else { &open.detail };
    let values = params![
        head,
        route,
        guarded.source,
        guarded.created_at,
        guarded.lane.is_some(),
        guarded.operation,
        open.epoch,
        open.counts.attempts,
        open.counts.failures,
        open.counts.crashes,
        open.counts.snoozes,
        open.replays,
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
    run(transaction, include_str!("sql/finish_delivery.sql"), values).map(drop)
}
