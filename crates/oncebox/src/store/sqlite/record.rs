//! Recording a batch in one transaction.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::clock::StoreClock;
use super::connection::{failure, run};
use super::known::{
    claim_guard, count_twin, find_known, find_seen, forget_guard, last_twin, point_guard, see,
};
use super::rollups::{self, Counts, Deliveries};
use super::rows::halves;
use crate::identity::IdentityKey;
use crate::odd::{OddReceipt, Place, Standing, outcome, place_conflict, place_twin, stand};
use crate::receipt::{Arrival, Mark, NO_CONTENT, Oddity, ReceiptId, Recorded, SourceNo};
use crate::store::{Repeat, StoreError, day_of, words};

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
    let mut last = LastRequest::default();
    let mut counts = Counts::default();
    let outcomes: Vec<Recorded> = batch
        .iter()
        .map(|arrival| record_one(&transaction, arrival, now, &mut last, &mut counts))
        .collect::<rusqlite::Result<_>>()
        .map_err(failure)?;
    if !outcomes.iter().any(|outcome| outcome.is_new()) {
        // A transaction that changes nothing is not synced. The rows these repeats speak of may
        // be visible and not yet on disk, so their answer has to wait for a sync as well.
        run(&transaction, include_str!("sql/mark_repeats.sql"), []).map_err(failure)?;
    }
    counts.write(&transaction).map_err(failure)?;
    transaction.commit().map_err(failure)?;
    let due = std::iter::zip(batch, &outcomes)
        .any(|(arrival, outcome)| outcome.is_new() && !arrival.takers.is_empty());
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
    last: &mut LastRequest,
    counts: &mut Counts<'a>,
) -> rusqlite::Result<Recorded> {
    if !arrival.has_room {
        return find_kept(transaction, arrival);
    }
    let has_guard = match arrival.guard_key() {
        Some(_) => claim_guard(transaction, arrival, arrival.receipt)?,
        None => true,
    };
    if has_guard && claim(transaction, arrival, arrival.key())? {
        let (mark, state) = (arrival.own_mark(), ("received", None));
        insert_receipt(transaction, arrival, mark, state, now, counts.deliveries())?;
        counts.add(arrival, "accepted");
        insert_request(transaction, arrival, last)?;
        return Ok(Recorded::Accepted);
    }
    record_known(transaction, arrival, has_guard, now, last, counts)
}

/// Records an arrival whose identity or content is known. `has_guard` if it has just claimed its
/// content, which is then given to the event it repeats, or given up by a conflict: a body that
/// came under the id of another event must not keep its own event out.
fn record_known<'a>(
    transaction: &Transaction<'_>,
    arrival: &'a Arrival,
    has_guard: bool,
    now: i64,
    last: &mut LastRequest,
    counts: &mut Counts<'a>,
) -> rusqlite::Result<Recorded> {
    let known = find_known(transaction, arrival, has_guard)?;
    see(transaction, arrival)?;
    match stand(arrival, &known) {
        Standing::New => Err(rusqlite::Error::QueryReturnedNoRows),
        Standing::Own => Ok(Recorded::Accepted),
        Standing::Repeat(receipt) => {
            if has_guard && arrival.guard.is_some() {
                point_guard(transaction, arrival, receipt)?;
            }
            Ok(Recorded::Duplicate { receipt })
        }
        Standing::Odd { oddity, first, is_recorded } => {
            if has_guard && arrival.guard.is_some() {
                forget_guard(transaction, arrival)?;
            }
            let mark = Mark { oddity, first: Some(first) };
            match is_recorded {
                true => Ok(outcome(oddity, first)),
                false => record_odd(transaction, arrival, mark, now, last, counts),
            }
        }
    }
}

/// Answers an arrival that there is no room for: only what is kept already is a repeat.
fn find_kept(transaction: &Transaction<'_>, arrival: &Arrival) -> rusqlite::Result<Recorded> {
    let known = find_known(transaction, arrival, false)?;
    Ok(match stand(arrival, &known) {
        Standing::Own => Recorded::Accepted,
        Standing::Odd { oddity, first, is_recorded: true } => outcome(oddity, first),
        Standing::New | Standing::Odd { .. } => Recorded::NoRoom,
        Standing::Repeat(receipt) => {
            see(transaction, arrival)?;
            Recorded::Duplicate { receipt }
        }
    })
}

/// Writes a twin or a conflict as a receipt of its own.
fn record_odd<'a>(
    transaction: &Transaction<'_>,
    arrival: &'a Arrival,
    mark: Mark,
    now: i64,
    last: &mut LastRequest,
    counts: &mut Counts<'a>,
) -> rusqlite::Result<Recorded> {
    let first = mark.first.unwrap_or(arrival.receipt);
    let place = match mark.oddity {
        Oddity::Twin => place_twin(arrival, &find_seen(transaction, arrival)?),
        Oddity::Conflict | Oddity::Defect => place_conflict(arrival),
    };
    if place == Place::RepeatOfLast {
        return Ok(Recorded::Duplicate { receipt: last_twin(transaction, first)? });
    }
    let odd = OddReceipt { arrival, mark, place };
    claim(transaction, arrival, arrival.odd_key())?;
    insert_receipt(transaction, arrival, Some(mark), odd.state(), now, counts.deliveries())?;
    counts.add(arrival, if mark.oddity == Oddity::Twin { "twin" } else { "conflict" });
    insert_request(transaction, arrival, last)?;
    if mark.oddity == Oddity::Twin {
        count_twin(transaction, arrival, place)?;
    }
    Ok(outcome(mark.oddity, first))
}

/// The last request that was written in a transaction.
#[derive(Default)]
struct LastRequest(Option<ReceiptId>);

/// Keeps the whole body of a request, once for all of its events.
fn insert_request(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    last: &mut LastRequest,
) -> rusqlite::Result<()> {
    let Some(part) = &arrival.part else { return Ok(()) };
    if last.0.replace(part.request) == Some(part.request) {
        return Ok(());
    }
    let (head, tail) = halves(part.request);
    let values = params![head, tail, arrival.source.0, part.count, &part.whole[..]];
    run(transaction, include_str!("sql/insert_request.sql"), values).map(drop)
}

/// Inserts a receipt and its deliveries in the given state and reason, due now. Held deliveries
/// stand outside lanes and operations. The caller writes `counts` before it commits,
/// and before it moves or deletes one of these deliveries: a trigger that counts down updates a row
/// which may only be made then, and what it cannot count down is lost.
pub(super) fn insert_receipt(
    transaction: &Connection,
    arrival: &Arrival,
    mark: Option<Mark>,
    (state, reason): (&'static str, Option<&'static str>),
    now: i64,
    counts: &mut Deliveries,
) -> rusqlite::Result<()> {
    insert_payload(transaction, arrival, mark)?;
    let is_held = reason.is_some();
    for taker in &arrival.takers {
        let object = arrival.object.as_deref().filter(|_| !is_held);
        let values = params![
            halves(arrival.receipt).0,
            taker.route.0,
            arrival.source.0,
            arrival.received_at.as_millisecond(),
            now,
            object,
            arrival.version.unwrap_or(i64::MIN),
            taker.operation.filter(|_| !is_held),
            state,
            reason,
        ];
        run(transaction, include_str!("sql/insert_delivery.sql"), values)?;
        counts.add(taker.route, state, reason);
    }
    Ok(())
}

/// Takes a key for an arrival; false if it is taken.
fn claim(
    transaction: &Transaction<'_>,
    arrival: &Arrival,
    key: IdentityKey,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(arrival.receipt);
    let today = day_of(arrival.received_at);
    let content = arrival.content16();
    let values = params![arrival.source.0, key.as_bytes(), head, tail, content, today];
    let inserted = run(transaction, include_str!("sql/insert_identity.sql"), values)?;
    Ok(inserted == 1)
}

fn insert_payload(
    transaction: &Connection,
    arrival: &Arrival,
    mark: Option<Mark>,
) -> rusqlite::Result<()> {
    let (head, tail) = halves(arrival.receipt);
    let first = mark.and_then(|mark| mark.first).map(halves);
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
        mark.map(|mark| mark.oddity.as_str()),
        first.map(|(head, _)| head),
        first.map(|(_, tail)| tail),
    ];
    run(transaction, include_str!("sql/insert_receipt.sql"), values).map(drop)
}
