//! What operators do, each with its line of the audit in the same transaction.

use rusqlite::{Connection, Transaction, params};

use super::clock::StoreClock;
use super::connection::{in_transaction, run};
use super::finish::{self, Close};
use super::guards;
use super::rescue::find_standing;
use super::rows::halves;
use crate::delivery::{DeliveryId, Reason, State};
use crate::store::{Act, Acted, StoreError};

/// Writes a line of the audit.
pub(super) fn note(
    transaction: &Transaction<'_>,
    act: &Act,
    done: &str,
    subject: &str,
) -> rusqlite::Result<()> {
    let values = params![act.at.as_millisecond(), act.who, act.via, done, subject, act.why];
    run(transaction, include_str!("sql/insert_audit.sql"), values).map(drop)
}

/// Writes a line of the audit about an act that has no transaction of its own.
pub(super) fn note_alone(
    connection: &mut Connection,
    act: &Act,
    done: &str,
    subject: &str,
) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| note(transaction, act, done, subject))
}

pub(super) fn pause_route(
    connection: &mut Connection,
    clock: &StoreClock,
    name: &str,
    paused: bool,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let values = params![name, paused, clock.now()];
        if run(transaction, include_str!("sql/pause_route.sql"), values)? == 0 {
            return Ok(false);
        }
        note(transaction, act, if paused { "route.pause" } else { "route.resume" }, name)?;
        Ok(true)
    })
}

/// Gives up a delivery that nobody works on. Says as well whether others became due by it.
pub(super) fn discard(
    connection: &mut Connection,
    clock: &StoreClock,
    delivery: DeliveryId,
    act: &Act,
) -> Result<(Acted, bool), StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        match find_standing(transaction, delivery)?.map(|standing| standing.state) {
            None => return Ok((Acted::NotFound, false)),
            Some(state @ (State::Processing | State::Processed | State::Skipped)) => {
                return Ok((Acted::Not(state), false));
            }
            Some(_) => {}
        }
        let Some(open) = finish::find_open(transaction, delivery, None, now)? else {
            return Ok((Acted::NotFound, false));
        };
        finish::close(transaction, &open, &Close::skipped(Reason::Discarded, None, now))?;
        let released = guards::release(transaction, &open.guarded, State::Skipped, now)?;
        note(transaction, act, "delivery.discard", &delivery.to_string())?;
        Ok((Acted::Done, released > 0))
    })
}

/// Lets a held delivery go before its turn.
pub(super) fn release(
    connection: &mut Connection,
    clock: &StoreClock,
    delivery: DeliveryId,
    act: &Act,
) -> Result<Acted, StoreError> {
    in_transaction(connection, |transaction| {
        match find_standing(transaction, delivery)?.map(|standing| standing.state) {
            None => return Ok(Acted::NotFound),
            Some(State::Held) => {}
            Some(other) => return Ok(Acted::Not(other)),
        }
        let values = params![halves(delivery.receipt).0, delivery.route.0, clock.now()];
        run(transaction, include_str!("sql/release_before_turn.sql"), values)?;
        note(transaction, act, "delivery.release", &delivery.to_string())?;
        Ok(Acted::Done)
    })
}
