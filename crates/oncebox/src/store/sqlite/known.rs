//! What is known of an arrival: the owner of its id, the first with its content, and how often that
//! content came under other ids.

use rusqlite::{OptionalExtension, Transaction, params};

use super::connection::run;
use super::rows::{halves, whole};
use crate::identity::IdentityKey;
use crate::odd::{Known, Owner, Place, Seen, guarded_type};
use crate::receipt::{Arrival, ReceiptId, SourceNo};
use crate::store::day_of;

/// What is known of an arrival. Without `has_own_guard` its content is looked up as well; with it,
/// the arrival has just claimed its content, so no other event has it.
pub(super) fn find_known(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    has_own_guard: bool,
) -> rusqlite::Result<Known> {
    let identity = find_identity(transaction, arrival.source, arrival.key())?;
    let guard = match arrival.guard_key() {
        Some(key) if !has_own_guard => find_guard(transaction, arrival.source, key)?,
        _ => None,
    };
    let odd = find_identity(transaction, arrival.source, arrival.odd_key())?;
    Ok(Known { identity, guard, odd: odd.map(|owner| owner.receipt) })
}

fn find_identity(
    transaction: &Transaction<'_>,
    source: SourceNo,
    key: IdentityKey,
) -> rusqlite::Result<Option<Owner>> {
    let mut statement = transaction.prepare_cached(include_str!("sql/find_identity.sql"))?;
    statement
        .query_row(params![source.0, key.as_bytes()], |row| {
            let receipt = whole(row.get(0)?, row.get(1)?);
            // One writer claims an id and its content together, so no owner is missing.
            Ok(Owner { receipt, content: row.get(2)?, is_stored: true })
        })
        .optional()
}

fn find_guard(
    transaction: &Transaction<'_>,
    source: SourceNo,
    key: IdentityKey,
) -> rusqlite::Result<Option<ReceiptId>> {
    let mut statement = transaction.prepare_cached(include_str!("sql/find_guard.sql"))?;
    statement
        .query_row(params![source.0, key.as_bytes()], |row| Ok(whole(row.get(0)?, row.get(1)?)))
        .optional()
}

/// What is counted of the arrival's content.
pub(super) fn find_seen(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
) -> rusqlite::Result<Seen> {
    let Some(key) = arrival.guard_key() else { return Ok(Seen::default()) };
    let mut statement = transaction.prepare_cached(include_str!("sql/find_guard.sql"))?;
    let found = statement
        .query_row(params![arrival.source.0, key.as_bytes()], |row| {
            Ok((row.get(2)?, row.get(3)?, row.get::<_, [u8; 16]>(4)?))
        })
        .optional()?;
    let Some((held, types, first_type)) = found else { return Ok(Seen::default()) };
    let has_type = match arrival.type_key() {
        Some(key) if first_type != *key.as_bytes() => {
            find_guard(transaction, arrival.source, key)?.is_some()
        }
        _ => true,
    };
    Ok(Seen { held, types, has_type })
}

/// Takes the content of an arrival for a receipt; false if it is taken, or not guarded.
pub(super) fn claim_guard(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    receipt: ReceiptId,
) -> rusqlite::Result<bool> {
    match arrival.guard_key() {
        Some(key) => insert_guard(transaction, arrival, key, receipt),
        None => Ok(false),
    }
}

fn insert_guard(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
    receipt: ReceiptId,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(receipt);
    let identity = arrival.key();
    let values = params![
        arrival.source.0,
        key.as_bytes(),
        head,
        tail,
        identity.as_bytes(),
        guarded_type(arrival),
        day_of(arrival.received_at),
    ];
    Ok(run(transaction, include_str!("sql/insert_guard.sql"), values)? == 1)
}

/// Gives the content that an arrival has just claimed to the event it repeats: a provider that
/// signs each attempt anew sends other signed content each time.
pub(super) fn point_guard(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    receipt: ReceiptId,
) -> rusqlite::Result<()> {
    let Some(key) = arrival.guard_key() else { return Ok(()) };
    let (head, tail) = halves(receipt);
    let values = params![arrival.source.0, key.as_bytes(), head, tail];
    run(transaction, include_str!("sql/point_guard.sql"), values).map(drop)
}

/// Gives up the content that an arrival has just claimed.
pub(super) fn forget_guard(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
) -> rusqlite::Result<()> {
    let Some(key) = arrival.guard_key() else { return Ok(()) };
    let values = params![arrival.source.0, key.as_bytes()];
    run(transaction, include_str!("sql/delete_own_guard.sql"), values).map(drop)
}

/// Counts a twin that was recorded, and notes its type if that is new.
pub(super) fn count_twin(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    place: Place,
) -> rusqlite::Result<()> {
    let Some(key) = arrival.guard_key() else { return Ok(()) };
    let is_new_type = place == Place::Deliver { is_new_type: true };
    if let (true, Some(type_key)) = (is_new_type, arrival.type_key()) {
        insert_guard(transaction, arrival, type_key, arrival.receipt)?;
    }
    let values = params![arrival.source.0, key.as_bytes(), place == Place::Hold, is_new_type];
    run(transaction, include_str!("sql/count_twin.sql"), values).map(drop)
}

/// The last twin of a receipt, or the receipt itself once its twins have expired.
pub(super) fn last_twin(
    transaction: &Transaction<'_>,
    first: ReceiptId,
) -> rusqlite::Result<ReceiptId> {
    let mut statement = transaction.prepare_cached(include_str!("sql/last_twin.sql"))?;
    let found = statement
        .query_row([halves(first).0], |row| Ok(whole(row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or(first))
}

/// Remembers that an arrival was seen today: its id, its content, and the event that came first
/// with that content. Each is written at most once a day.
pub(super) fn see(transaction: &Transaction<'_>, arrival: &Arrival) -> rusqlite::Result<()> {
    let (source, today) = (arrival.source.0, day_of(arrival.received_at));
    for key in [arrival.key(), arrival.odd_key()] {
        let values = params![source, key.as_bytes(), today];
        run(transaction, include_str!("sql/see_identity.sql"), values)?;
    }
    for key in [arrival.guard_key(), arrival.type_key()].into_iter().flatten() {
        let values = params![source, key.as_bytes(), today];
        run(transaction, include_str!("sql/see_first_identity.sql"), values)?;
        let values = params![source, key.as_bytes(), today];
        run(transaction, include_str!("sql/see_guard.sql"), values)?;
    }
    Ok(())
}
