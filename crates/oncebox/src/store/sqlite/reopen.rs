//! Opening deliveries again, and receipts that come to be late.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::acts::note;
use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::read::part;
use super::record::insert_receipt;
use super::rescue::find_standing;
use super::rows::{halves, receipt_id, time};
use crate::delivery::{DeliveryId, State};
use crate::receipt::{Arrival, ReceiptId};
use crate::replay::{How, Reopened};
use crate::store::{Act, KeptAside, OddArrival, StoreError, day_of, words};

/// Opens a delivery again; where its route never took the receipt, only if it is to `fill`.
pub(super) fn reopen(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    fill: bool,
    how: How,
    now: i64,
) -> rusqlite::Result<Reopened> {
    let Some(standing) = find_standing(transaction, delivery)? else {
        return match fill && fill_in(transaction, delivery, how, now)? {
            true => Ok(Reopened::Opened),
            false => Ok(Reopened::Gone),
        };
    };
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    match standing.state {
        State::Dead | State::Held => {
            let values = params![head, route, now, how.ignore_stale];
            run(transaction, include_str!("sql/reopen_open.sql"), values)?;
        }
        State::Skipped => reopen_finished(transaction, delivery, how, now)?,
        State::Processed if how.force => reopen_finished(transaction, delivery, how, now)?,
        other => return Ok(Reopened::Left(other)),
    }
    Ok(Reopened::Opened)
}

fn reopen_finished(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    how: How,
    now: i64,
) -> rusqlite::Result<()> {
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    run(transaction, include_str!("sql/keep_attempt.sql"), params![head, route])?;
    let values = params![head, route, now, how.ignore_stale];
    run(transaction, include_str!("sql/reopen_finished.sql"), values)?;
    run(transaction, include_str!("sql/remove_finished.sql"), params![head, route]).map(drop)
}

/// Makes a delivery for a route that never took the receipt; false if there is no such receipt.
fn fill_in(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    how: How,
    now: i64,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(delivery.receipt);
    let values = params![head, tail, delivery.route.0, now, how.ignore_stale];
    if run(transaction, include_str!("sql/fill_delivery.sql"), values)? == 0 {
        return Ok(false);
    }
    run(transaction, include_str!("sql/mark_routed.sql"), [head])?;
    Ok(true)
}

/// An odd arrival that was kept aside.
pub(super) fn odd_arrival(
    connection: &Connection,
    id: ReceiptId,
) -> Result<Option<KeptAside>, StoreError> {
    let find = || -> rusqlite::Result<Option<KeptAside>> {
        let (head, tail) = halves(id);
        let mut statement = connection.prepare_cached(include_str!("sql/find_odd_arrival.sql"))?;
        let found = statement.query_row(params![head, tail], |row| {
            let word: String = row.get(2)?;
            let arrival = OddArrival {
                id: receipt_id(row, 0)?,
                oddity: words::oddity(&word).ok_or(rusqlite::Error::InvalidQuery)?,
                event_id: row.get(3)?,
                received_at: time(row, 4)?,
                body: row.get(5)?,
            };
            let receipt = receipt_id(row, 6)?;
            let (source, headers, part) = (row.get(8)?, row.get(9)?, part(row, 10)?);
            Ok(KeptAside { arrival, receipt, source, headers, part })
        });
        found.optional()
    };
    find().map_err(failure)
}

/// Makes a receipt of an odd arrival; false if it is not there any more.
pub(super) fn promote(
    connection: &mut Connection,
    clock: &StoreClock,
    arrival: &Arrival,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let (head, tail) = halves(arrival.receipt);
        let sql = include_str!("sql/remove_odd_arrival.sql");
        if run(transaction, sql, params![head, tail])? == 0 {
            return Ok(false);
        }
        insert_receipt(transaction, arrival, clock.now())?;
        let (source, key, content) = (arrival.source.0, arrival.key(), arrival.content16());
        let today = day_of(arrival.received_at);
        let values = params![source, key.as_bytes(), head, tail, content, today];
        run(transaction, include_str!("sql/take_identity.sql"), values)?;
        let whole = count_request(transaction, arrival)?;
        let values = params![source, arrival.stored_bytes() + whole];
        run(transaction, include_str!("sql/add_stored.sql"), values)?;
        note(transaction, act, "receipt.promote", &arrival.receipt.to_string())?;
        Ok(true)
    })
}

/// Bytes of the request of a promoted arrival that count from now on.
fn count_request(transaction: &Transaction<'_>, arrival: &Arrival) -> rusqlite::Result<i64> {
    let Some(part) = &arrival.part else { return Ok(0) };
    let mut statement = transaction.prepare_cached(include_str!("sql/count_request.sql"))?;
    let bytes = statement.query_row([halves(part.request).0], |row| row.get(0)).optional()?;
    Ok(bytes.unwrap_or(0))
}
