//! Deliveries whose worker is gone, those that wait for nothing, and those in a hurry.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::clock::{self, StoreClock};
use super::connection::{failure, in_transaction, run};
use super::finish::{Attempt, Open, find_open, insert_attempt};
use super::guards;
use super::rows::{halves, milliseconds, reason_if_any, receipt_id, state};
use crate::delivery::{DeliveryId, State};
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{BreakerNote, OUTSIDE, Rescued, Standing, StoreError, words};

/// Which leases count as lost.
#[derive(Clone, Copy)]
enum Lost {
    /// Those that ran out.
    Expired,
    /// Those that did not outlast an orderly stop.
    Stopped,
    /// All of them.
    All,
}

pub(super) fn rescue(
    connection: &mut Connection,
    clock: &StoreClock,
    limit: usize,
) -> Result<Rescued, StoreError> {
    take_away(connection, clock, limit, Lost::Expired)
}

/// Brings due times near again that were written before the wall clock was set back.
pub(super) fn pull_near(connection: &Connection, clock: &StoreClock) -> Result<(), StoreError> {
    run(connection, include_str!("sql/pull_near.sql"), [clock.now()]).map(drop).map_err(failure)
}

/// Takes every delivery away from workers that ended with the last process that served the file.
/// After an orderly stop, workers elsewhere keep their leases for as long as remained of them then;
/// after a crash the time since then is unknown, and all leases are void.
pub(super) fn void_leases(
    connection: &mut Connection,
    clock: &StoreClock,
) -> Result<(), StoreError> {
    let resumed = in_transaction(connection, |transaction| {
        let Some(stopped_at) = clock::take_stop(transaction)? else { return Ok(false) };
        let values = params![stopped_at, clock.now(), format!("{OUTSIDE}*")];
        run(transaction, include_str!("sql/resume_leases.sql"), values)?;
        Ok(true)
    })?;
    let lost = if resumed { Lost::Stopped } else { Lost::All };
    while take_away(connection, clock, limits::CLAIM_ROWS, lost)? != Rescued::default() {}
    Ok(())
}

fn take_away(
    connection: &mut Connection,
    clock: &StoreClock,
    limit: usize,
    lost: Lost,
) -> Result<Rescued, StoreError> {
    in_transaction(connection, |transaction| {
        clock.tell(transaction)?;
        let now = clock.now();
        let (until, detail) = match lost {
            Lost::Expired => (now, "the lease ran out"),
            Lost::Stopped => (now, "the server stopped during the attempt"),
            Lost::All => (i64::MAX, "the server stopped during the attempt"),
        };
        let mut rescued = Rescued::default();
        for (delivery, max_attempts) in expired(transaction, until, limit)? {
            let Some(open) = find_open(transaction, delivery, None, now)? else { continue };
            match take_one_away(transaction, &open, max_attempts, detail, now)? {
                State::Dead => rescued.dead.push(delivery),
                _ => rescued.retrying.push(delivery),
            }
        }
        Ok(rescued)
    })
}

/// Deliveries whose lease has run out, with the attempts their route allows.
fn expired(
    transaction: &Transaction<'_>,
    until: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(DeliveryId, u32)>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(include_str!("sql/find_expired_leases.sql"))?;
    let rows = statement.query_map(params![until, limit], |row| {
        let route = RouteNo(row.get(2)?);
        Ok((DeliveryId { receipt: receipt_id(row, 0)?, route }, row.get(3)?))
    })?;
    rows.collect()
}

/// Takes a delivery away, and says where it goes. What was lost together with other suspects is
/// charged nothing.
fn take_one_away(
    transaction: &Transaction<'_>,
    open: &Open,
    max_attempts: u32,
    why: &str,
    now: i64,
) -> rusqlite::Result<State> {
    let (head, route) = (halves(open.guarded.delivery.receipt).0, open.guarded.delivery.route.0);
    let (suspicion, charged) = open.suspicion.after_loss();
    let refund = u32::from(!charged);
    let is_dead = open.counts.spent().saturating_sub(refund) >= max_attempts;
    let (state, detail) = match is_dead {
        true => (State::Dead, format!("{why}, and the attempts are spent")),
        false => (State::Retrying, why.to_owned()),
    };
    let lost = if is_dead { 0 } else { suspicion.0 };
    let values = params![head, route, open.epoch, is_dead, now, detail, refund, lost];
    run(transaction, include_str!("sql/rescue_delivery.sql"), values)?;
    let attempt = Attempt { outcome: "lost", took: None, status: None, detail: Some(why) };
    insert_attempt(transaction, open, &attempt, now)?;
    guards::release(transaction, &open.guarded, state, now)?;
    Ok(state)
}

/// Keeps what a worker tells of its breakers instead of what it told before.
pub(super) fn tell_breakers(
    connection: &mut Connection,
    clock: &StoreClock,
    worker: &str,
    notes: &[BreakerNote],
) -> Result<(), StoreError> {
    const DAY: i64 = 86_400_000;
    in_transaction(connection, |transaction| {
        clock.tell(transaction)?;
        let now = clock.now();
        let forget = include_str!("sql/forget_breakers.sql");
        run(transaction, forget, params![worker, now.saturating_sub(DAY)])?;
        for note in notes {
            let probe = note.next_probe.map(|probe| now.saturating_add(milliseconds(probe)));
            let reason = words::short(&note.reason);
            let values = params![worker, note.route.0, note.state, reason, probe, now];
            run(transaction, include_str!("sql/tell_breakers.sql"), values)?;
        }
        Ok(())
    })
}

/// Makes a retry due now. Says where the delivery stands, and whether it changed.
pub(super) fn hasten(
    connection: &mut Connection,
    clock: &StoreClock,
    delivery: DeliveryId,
    apart: Duration,
) -> Result<(Option<Standing>, bool), StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let not_since = now.saturating_sub(milliseconds(apart));
        let values = params![halves(delivery.receipt).0, delivery.route.0, now, not_since];
        let hastened = run(transaction, include_str!("sql/hasten.sql"), values)? > 0;
        Ok((find_standing(transaction, delivery)?, hastened))
    })
}

pub(super) fn standing(
    connection: &Connection,
    delivery: DeliveryId,
) -> Result<Option<Standing>, StoreError> {
    find_standing(connection, delivery).map_err(failure)
}

pub(super) fn find_standing(
    connection: &Connection,
    delivery: DeliveryId,
) -> rusqlite::Result<Option<Standing>> {
    let (head, tail) = halves(delivery.receipt);
    let mut statement = connection.prepare_cached(include_str!("sql/find_standing.sql"))?;
    let found = statement.query_row(params![head, tail, delivery.route.0], |row| {
        Ok(Standing {
            state: state(row, 0)?,
            reason: reason_if_any(row, 1)?,
            attempts: row.get(2)?,
        })
    });
    found.optional()
}
