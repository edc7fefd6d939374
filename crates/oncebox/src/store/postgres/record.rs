//! Recording a batch in one statement, and settling what was not new.

use std::collections::HashSet;

use deadpool_postgres::Object;
use jiff::Timestamp;
use uuid::Uuid;

use super::columns::Columns;
use super::connect::{failure, query};
use super::{PostgresStore, days, repeats};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, NO_CONTENT, ReceiptId, Recorded, SourceNo};
use crate::store::{Repeat, StoreError, day_of};

/// Records a batch; the commits are synced when this returns.
pub(super) async fn record(
    store: &PostgresStore,
    batch: &[Arrival],
) -> Result<Vec<Recorded>, StoreError> {
    let cut_before = store.connector.sync_waits_cut();
    let mut outcomes = vec![None; batch.len()];
    // An identity can expire between the moment it turned an arrival away and the moment it is
    // looked up; the arrival is new then, and goes round once more.
    let mut failed = None;
    for _ in 0..limits::RECHECKS {
        let open: Vec<usize> = (0..batch.len()).filter(|n| outcomes[*n].is_none()).collect();
        if open.is_empty() {
            break;
        }
        match settle_all(store, batch, &open, &mut outcomes).await {
            Ok(()) => {}
            Err(error) if days::is_missing(&error) => {
                failed = Some(error);
                if let Err(error) = days::make_for(store, batch).await {
                    failed = Some(error);
                    break;
                }
            }
            // Settling the same arrivals again is safe, and tells what came of them.
            Err(error @ StoreError::UnknownOutcome(_)) if outcomes.iter().any(Option::is_some) => {
                failed = Some(error);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    store.connector.is_durable_since(cut_before)?;
    let changing = || StoreError::Unavailable("identities kept changing".into());
    match outcomes.iter().copied().collect::<Option<Vec<_>>>() {
        Some(recorded) => Ok(recorded),
        None if outcomes.iter().all(Option::is_none) => Err(failed.unwrap_or_else(changing)),
        None => {
            let reason = failed.unwrap_or_else(changing).to_string();
            Err(StoreError::Partly { recorded: outcomes, reason })
        }
    }
}

/// Inserts what is open and finds out what the rest repeats.
async fn settle_all(
    store: &PostgresStore,
    batch: &[Arrival],
    open: &[usize],
    outcomes: &mut [Option<Recorded>],
) -> Result<(), StoreError> {
    let possibly_new = first_of_each_content(batch, open);
    if !possibly_new.is_empty() {
        let kept = insert(store, batch, &possibly_new).await?;
        for n in possibly_new {
            if kept.binary_search(&batch[n].receipt).is_ok() {
                outcomes[n] = Some(Recorded::Accepted);
            }
        }
    }
    let repeats: Vec<usize> = open.iter().copied().filter(|n| outcomes[*n].is_none()).collect();
    match repeats.is_empty() {
        true => Ok(()),
        false => repeats::settle(store, batch, &repeats, outcomes).await,
    }
}

/// Those of `open` that can be new: there is room for them, and none before them in the batch has
/// the same guarded content. Of two such, both would claim their ids, and a twin does not own its.
fn first_of_each_content(batch: &[Arrival], open: &[usize]) -> Vec<usize> {
    let mut contents = HashSet::new();
    let mut is_first = |arrival: &Arrival| {
        arrival.guard_key().is_none_or(|key| contents.insert((arrival.source, key)))
    };
    open.iter().copied().filter(|n| batch[*n].has_room && is_first(&batch[*n])).collect()
}

/// Adds counts of repeated deliveries.
pub(super) async fn add_repeats(client: &Object, repeats: &[Repeat]) -> Result<(), StoreError> {
    let column = |value: fn(&Repeat) -> u32| -> Vec<i64> {
        repeats.iter().map(|repeat| i64::from(value(repeat))).collect()
    };
    let receipts: Vec<Uuid> = repeats.iter().map(|repeat| repeat.receipt.as_uuid()).collect();
    let first: Vec<Timestamp> = repeats.iter().map(|repeat| repeat.first_at).collect();
    let last: Vec<Timestamp> = repeats.iter().map(|repeat| repeat.last_at).collect();
    let statement =
        client.prepare_cached(include_str!("sql/add_repeats.sql")).await.map_err(failure)?;
    client
        .execute(
            &statement,
            &[
                &receipts,
                &column(|repeat| repeat.duplicates),
                &column(|repeat| repeat.conflicts),
                &column(|repeat| repeat.twins),
                &first,
                &last,
            ],
        )
        .await
        .map_err(failure)?;
    Ok(())
}

/// Takes keys for events that have no receipt here.
pub(super) async fn remember(
    client: &Object,
    source: SourceNo,
    keys: &[IdentityKey],
    seen_at: Timestamp,
) -> Result<(), StoreError> {
    let keys: Vec<Uuid> = keys.iter().map(|key| Uuid::from_bytes(*key.as_bytes())).collect();
    let receipt = ReceiptId::floor(seen_at).as_uuid();
    let statement =
        client.prepare_cached(include_str!("sql/remember.sql")).await.map_err(failure)?;
    client
        .execute(
            &statement,
            &[&source.0, &keys, &receipt, &Uuid::from_bytes(NO_CONTENT), &day_of(seen_at)],
        )
        .await
        .map_err(failure)?;
    Ok(())
}

/// Inserts the arrivals named by `open` and returns the receipts that were new, in order.
async fn insert(
    store: &PostgresStore,
    batch: &[Arrival],
    open: &[usize],
) -> Result<Vec<ReceiptId>, StoreError> {
    let columns = Columns::of(open.iter().map(|n| &batch[*n]));
    let sql = match columns.has_parts() {
        false => include_str!("sql/record.sql"),
        true => include_str!("sql/record_parts.sql"),
    };
    let values = columns.values();
    let rows = store.recording.write(async |client| query(client, sql, &values).await).await?;
    let mut kept: Vec<ReceiptId> = rows.iter().map(|row| row.get::<_, Uuid>(0).into()).collect();
    kept.sort_unstable();
    Ok(kept)
}
