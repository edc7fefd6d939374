//! Recording a batch in one transaction.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::clock::StoreClock;
use super::connection::{failure, run};
use super::rollups::{self, Counts};
use super::rows::{halves, whole};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, NO_CONTENT, ReceiptId, Recorded, SourceNo};
use crate::store::{Oddity, Repeat, StoreError, day_of, words};

/// Records a batch; the commit is synced when this returns. Says as well whether something is
/// due now.
pub(super) fn record(
    connection: &mut Connection,
    clock: &StoreClock,
    batch: &[Arrival],
) -> Result<(Vec<Recorded>, bool), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    let now = clock.now();
    let mut last = Last::default();
    let mut counts = Counts::default();
    let outcomes: Vec<Recorded> = batch
        .iter()
        .map(|arrival| record_one(&transaction, arrival, now, &mut last, &mut counts))
        .collect::<rusqlite::Result<_>>()
        .map_err(failure)?;
    if !outcomes.contains(&Recorded::Accepted) {
        // A transaction that changes nothing is not synced. The rows these repeats speak of may
        // be visible and not yet on disk, so their answer has to wait for a sync as well.
        run(&transaction, include_str!("sql/mark_repeats.sql"), []).map_err(failure)?;
    }
    counts.write(&transaction).map_err(failure)?;
    transaction.commit().map_err(failure)?;
    let due = std::iter::zip(batch, &outcomes)
        .any(|(arrival, outcome)| *outcome == Recorded::Accepted && !arrival.takers.is_empty());
    Ok((outcomes, due))
}

/// Adds counts of repeated deliveries.
pub(super) fn add_repeats(
    connection: &mut Connection,
    repeats: &[Repeat],
) -> Result<(), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    for repeat in repeats {
        let values = params![
            halves(repeat.receipt).0,
            repeat.duplicates,
            repeat.conflicts,
            repeat.twins,
            repeat.first_at.as_millisecond(),
            repeat.last_at.as_millisecond(),
        ];
        run(&transaction, include_str!("sql/add_repeats.sql"), values).map_err(failure)?;
        rollups::count_repeat(&transaction, repeat).map_err(failure)?;
    }
    transaction.commit().map_err(failure)
}

/// Takes keys for events that have no receipt here.
pub(super) fn remember(
    connection: &mut Connection,
    source: SourceNo,
    keys: &[IdentityKey],
    seen_at: Timestamp,
) -> Result<(), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    let (head, tail) = halves(ReceiptId::floor(seen_at));
    let day = day_of(seen_at);
    for key in keys {
        let values = params![source.0, key.as_bytes(), head, tail, NO_CONTENT, day];
        run(&transaction, include_str!("sql/insert_identity.sql"), values).map_err(failure)?;
    }
    transaction.commit().map_err(failure)
}

fn record_one<'a>(
    transaction: &Transaction<'_>,
    arrival: &'a Arrival,
    now: i64,
    last: &mut Last,
    counts: &mut Counts<'a>,
) -> rusqlite::Result<Recorded> {
    let key = arrival.key();
    if !claim(transaction, arrival, key)? {
        return repeat_of_identity(transaction, arrival, key, last);
    }
    if let Some(twin_key) = arrival.twin_key()
        && !claim(transaction, arrival, twin_key)?
    {
        return twin(transaction, arrival, key, twin_key, last);
    }
    insert_receipt(transaction, arrival, now)?;
    counts.accept(arrival);
    insert_request(transaction, arrival, Named::ByReceipt, last)?;
    Ok(Recorded::Accepted)
}

/// The last request that was kept in a transaction, and by what it was named.
#[derive(Default)]
struct Last(Option<(ReceiptId, Named)>);

/// What names a request. Its bytes count against the quota once a receipt does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    ByOddArrival,
    ByReceipt,
}

/// Keeps the whole body of a request, once for all of its events.
fn insert_request(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    named: Named,
    last: &mut Last,
) -> rusqlite::Result<()> {
    let Some(part) = &arrival.part else { return Ok(()) };
    let is_enough =
        |(request, by)| request == part.request && (by == Named::ByReceipt || by == named);
    if last.0.is_some_and(is_enough) {
        return Ok(());
    }
    let (head, tail) = halves(part.request);
    let counted = named == Named::ByReceipt;
    let values = params![head, tail, arrival.source.0, part.count, &part.whole[..], counted];
    run(transaction, include_str!("sql/insert_request.sql"), values)?;
    last.0 = Some((part.request, named));
    Ok(())
}

/// Inserts a receipt and its deliveries, due now.
pub(super) fn insert_receipt(
    transaction: &Connection,
    arrival: &Arrival,
    now: i64,
) -> rusqlite::Result<()> {
    insert_payload(transaction, arrival)?;
    for taker in &arrival.takers {
        let lane = arrival.object.as_deref().filter(|_| taker.laned);
        let values = params![
            halves(arrival.receipt).0,
            taker.route.0,
            arrival.source.0,
            arrival.received_at.as_millisecond(),
            now,
            lane,
            arrival.version.unwrap_or(i64::MIN),
            taker.operation,
        ];
        run(transaction, include_str!("sql/insert_delivery.sql"), values)?;
    }
    Ok(())
}

/// Takes a key for an arrival; false if somebody has it.
fn claim(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
) -> rusqlite::Result<bool> {
    claim_for(transaction, arrival, key, arrival.receipt)
}

/// Takes a key for the receipt an arrival repeats; false if somebody has it.
fn claim_for(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
    receipt: ReceiptId,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(receipt);
    let today = day_of(arrival.received_at);
    let content = arrival.content16();
    let values = params![arrival.source.0, key.as_bytes(), head, tail, content, today];
    let inserted = run(transaction, include_str!("sql/insert_identity.sql"), values)?;
    Ok(inserted == 1)
}

/// The identity is taken: by this very arrival in a commit whose outcome was unknown, by the same
/// event, or by one with another body.
fn repeat_of_identity(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
    last: &mut Last,
) -> rusqlite::Result<Recorded> {
    let first =
        find(transaction, arrival.source, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    see(transaction, arrival, key)?;
    if first.receipt == arrival.receipt {
        return Ok(Recorded::Accepted);
    }
    if arrival.repeats(first.content) {
        // The guard of the body ages on its own, and is as young as its event. A provider that
        // signs each attempt anew has another one each time.
        if let Some(twin_key) = arrival.twin_key() {
            claim_for(transaction, arrival, twin_key, first.receipt)?;
            see(transaction, arrival, twin_key)?;
        }
        return Ok(Recorded::Duplicate { receipt: first.receipt });
    }
    keep_aside(transaction, arrival, first.receipt, Oddity::Conflict, last)?;
    Ok(Recorded::Conflict { receipt: first.receipt })
}

/// The id is new and the body is not. The id now leads to the receipt of the body.
fn twin(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
    twin_key: IdentityKey,
    last: &mut Last,
) -> rusqlite::Result<Recorded> {
    let first =
        find(transaction, arrival.source, twin_key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    see(transaction, arrival, twin_key)?;
    let (head, tail) = halves(first.receipt);
    let values = params![arrival.source.0, key.as_bytes(), head, tail];
    run(transaction, include_str!("sql/point_identity.sql"), values)?;
    keep_aside(transaction, arrival, first.receipt, Oddity::Twin, last)?;
    Ok(Recorded::Twin { receipt: first.receipt })
}

struct Identity {
    receipt: ReceiptId,
    content: [u8; 16],
}

fn find(
    transaction: &Transaction<'_>,
    source: SourceNo,
    key: IdentityKey,
) -> rusqlite::Result<Option<Identity>> {
    let mut statement = transaction.prepare_cached(include_str!("sql/find_identity.sql"))?;
    statement
        .query_row(params![source.0, key.as_bytes()], |row| {
            Ok(Identity { receipt: whole(row.get(0)?, row.get(1)?), content: row.get(2)? })
        })
        .optional()
}

/// Remembers that an identity was seen today.
fn see(transaction: &Transaction<'_>, arrival: &Arrival, key: IdentityKey) -> rusqlite::Result<()> {
    let values = params![arrival.source.0, key.as_bytes(), day_of(arrival.received_at)];
    run(transaction, include_str!("sql/see_identity.sql"), values).map(drop)
}

fn insert_payload(transaction: &Connection, arrival: &Arrival) -> rusqlite::Result<()> {
    let (head, tail) = halves(arrival.receipt);
    let values = params![
        head,
        tail,
        arrival.source.0,
        arrival.received_at.as_millisecond(),
        arrival.event_id,
        words::of_trust(arrival.trust),
        arrival.event_type,
        arrival.object,
        arrival.version,
        arrival.secret.0,
        arrival.signed_at.map(Timestamp::as_millisecond),
        arrival.route_count(),
        arrival.digest,
        &arrival.headers[..],
        &arrival.body[..],
        arrival.part.as_ref().map(|part| halves(part.request).0),
        arrival.part.as_ref().map(|part| part.position),
    ];
    run(transaction, include_str!("sql/insert_receipt.sql"), values).map(drop)
}

fn keep_aside(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    first: ReceiptId,
    oddity: Oddity,
    last: &mut Last,
) -> rusqlite::Result<()> {
    if !arrival.keep_aside {
        return Ok(());
    }
    let (head, tail) = halves(arrival.receipt);
    let values = params![
        head,
        tail,
        halves(first).0,
        arrival.source.0,
        oddity.as_str(),
        arrival.event_id,
        arrival.content16(),
        arrival.received_at.as_millisecond(),
        &arrival.headers[..],
        &arrival.body[..],
        arrival.part.as_ref().map(|part| halves(part.request).0),
        arrival.part.as_ref().map(|part| part.position),
        limits::ODD_ARRIVALS_KEPT,
    ];
    match run(transaction, include_str!("sql/insert_odd_arrival.sql"), values)? {
        0 => Ok(()),
        _ => insert_request(transaction, arrival, Named::ByOddArrival, last),
    }
}
