//! Recording a batch in one statement, and settling what was not new.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::Ordering;

use deadpool_postgres::{GenericClient, Object};
use jiff::Timestamp;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::columns::Columns;
use super::connect::{execute, failure, no_connection, query};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, NO_CONTENT, ReceiptId, Recorded, SourceNo};
use crate::store::{Oddity, Repeat, StoreError, day_of};

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
    let kept = insert(store, batch, open).await?;
    for n in open {
        if kept.binary_search(&batch[*n].receipt).is_ok() {
            outcomes[*n] = Some(Recorded::Accepted);
        }
    }
    let repeats: Vec<usize> = open.iter().copied().filter(|n| outcomes[*n].is_none()).collect();
    match repeats.is_empty() {
        true => Ok(()),
        false => settle(store, batch, &repeats, outcomes).await,
    }
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
    let client = store.recording.get().await.map_err(|error| no_connection(&error))?;
    let columns = Columns::of(open.iter().map(|n| &batch[*n]));
    let statement = match columns.has_parts() {
        false => client.prepare_cached(include_str!("sql/record.sql")).await,
        true => client.prepare_cached(include_str!("sql/record_parts.sql")).await,
    };
    let statement = statement.map_err(failure)?;
    let values = columns.values();
    let query = client.query(&statement, &values);
    let rows = match within_patience(store, query).await {
        Some(Ok(rows)) => rows,
        Some(Err(error)) => {
            if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
                // The host has become a standby. The next connection looks for the primary.
                drop(Object::take(client));
            }
            return Err(failure(error));
        }
        None => {
            drop(Object::take(client));
            return Err(StoreError::UnknownOutcome("the connection says nothing".into()));
        }
    };
    let mut kept: Vec<ReceiptId> = rows.iter().map(|row| row.get::<_, Uuid>(0).into()).collect();
    kept.sort_unstable();
    Ok(kept)
}

/// Waits for an answer; none if the connection stays silent for too long and may be given up.
async fn within_patience<T>(
    store: &PostgresStore,
    query: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Option<Result<T, tokio_postgres::Error>> {
    let mut query = pin!(query);
    if let Ok(answer) = tokio::time::timeout(store.patience, &mut query).await {
        store.given_up.store(0, Ordering::Relaxed);
        return Some(answer);
    }
    if store.given_up.fetch_add(1, Ordering::Relaxed) < limits::POSTGRES_GIVEN_UP {
        return None;
    }
    Some(query.await)
}

/// Finds out what the arrivals that were not new repeat. The look-up is itself a synced commit,
/// so their answers are as durable as an acceptance.
async fn settle(
    store: &PostgresStore,
    batch: &[Arrival],
    repeats: &[usize],
    outcomes: &mut [Option<Recorded>],
) -> Result<(), StoreError> {
    let mut client = store.connection().await?;
    let found = find(&client, batch, repeats).await?;
    let mut seen = Seen::default();
    for (n, identity) in &found {
        seen.note(&batch[*n], identity);
    }
    // Before anybody is told, so that an identity is as young as its last answer. One that the
    // sweep has removed meanwhile answers nothing: its arrival goes round once more, and is new.
    let swept = seen.write(&client).await?;
    for (n, identity) in found {
        if keys(&batch[n]).any(|key| swept.contains(&key)) {
            continue;
        }
        outcomes[n] = Some(judge(&mut client, &batch[n], &identity).await?);
    }
    Ok(())
}

/// What an arrival's identity leads to.
struct Identity {
    receipt: ReceiptId,
    content: [u8; 16],
    last_seen: i32,
    /// The receipt that has its body, where bodies are guarded.
    body_receipt: Option<ReceiptId>,
    body_last_seen: Option<i32>,
    /// Whether the receipt is there. It may have expired, or have been that of a twin.
    exists: bool,
}

async fn find(
    client: &Object,
    batch: &[Arrival],
    repeats: &[usize],
) -> Result<Vec<(usize, Identity)>, StoreError> {
    let arrivals = || repeats.iter().map(|n| &batch[*n]);
    let sources: Vec<i16> = arrivals().map(|arrival| arrival.source.0).collect();
    let keys: Vec<Uuid> =
        arrivals().map(|arrival| Uuid::from_bytes(*arrival.key().as_bytes())).collect();
    let body_keys: Vec<Option<Uuid>> = arrivals()
        .map(|arrival| arrival.twin_key().map(|key| Uuid::from_bytes(*key.as_bytes())))
        .collect();
    let statement =
        client.prepare_cached(include_str!("sql/find_repeats.sql")).await.map_err(failure)?;
    let rows = client.query(&statement, &[&sources, &keys, &body_keys]).await.map_err(failure)?;
    let identity = |row: &tokio_postgres::Row| {
        let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
        let identity = Identity {
            receipt: row.get::<_, Uuid>(1).into(),
            content: row.get::<_, Uuid>(2).into_bytes(),
            last_seen: row.get(3),
            body_receipt: row.get::<_, Option<Uuid>>(4).map(ReceiptId::from),
            body_last_seen: row.get(5),
            exists: row.get(6),
        };
        Some((*repeats.get(place)?, identity))
    };
    Ok(rows.iter().filter_map(identity).collect())
}

/// Tells what an arrival whose identity is taken came to.
async fn judge(
    client: &mut Object,
    arrival: &Arrival,
    identity: &Identity,
) -> Result<Recorded, StoreError> {
    match identity.body_receipt {
        // Its id was new and its body was not, just now or before somebody died half way.
        Some(first) if first != identity.receipt && !identity.exists => {
            return twin(client, arrival, first, identity.receipt).await;
        }
        _ => {}
    }
    // Ours, from a commit whose outcome was unknown.
    if identity.receipt == arrival.receipt {
        return Ok(Recorded::Accepted);
    }
    if arrival.repeats(identity.content) {
        claim_guard(client, arrival, identity).await?;
        return Ok(Recorded::Duplicate { receipt: identity.receipt });
    }
    keep_aside(client, arrival, identity.receipt, Oddity::Conflict).await?;
    Ok(Recorded::Conflict { receipt: identity.receipt })
}

/// A provider that signs each attempt anew has another guard each time.
async fn claim_guard(
    client: &Object,
    arrival: &Arrival,
    identity: &Identity,
) -> Result<(), StoreError> {
    let (Some(key), None) = (arrival.twin_key(), identity.body_receipt) else { return Ok(()) };
    let statement =
        client.prepare_cached(include_str!("sql/claim_guard.sql")).await.map_err(failure)?;
    let key = Uuid::from_bytes(*key.as_bytes());
    let content = Uuid::from_bytes(arrival.content16());
    let today = day_of(arrival.received_at);
    client
        .execute(
            &statement,
            &[&arrival.source.0, &key, &identity.receipt.as_uuid(), &content, &today],
        )
        .await
        .map_err(failure)?;
    Ok(())
}

/// Keeps the twin aside first: should we die in between, its id leads nowhere and its body is
/// kept all the same.
async fn twin(
    client: &mut Object,
    arrival: &Arrival,
    first: ReceiptId,
    never: ReceiptId,
) -> Result<Recorded, StoreError> {
    keep_aside(client, arrival, first, Oddity::Twin).await?;
    let statement =
        client.prepare_cached(include_str!("sql/point_identity.sql")).await.map_err(failure)?;
    let key = Uuid::from_bytes(*arrival.key().as_bytes());
    client
        .execute(&statement, &[&arrival.source.0, &key, &first.as_uuid(), &never.as_uuid()])
        .await
        .map_err(failure)?;
    Ok(Recorded::Twin { receipt: first })
}

/// Keeps an arrival aside, and together with it the request it came in with others.
async fn keep_aside(
    client: &mut Object,
    arrival: &Arrival,
    first: ReceiptId,
    oddity: Oddity,
) -> Result<(), StoreError> {
    if !arrival.keep_aside {
        return Ok(());
    }
    let Some(part) = &arrival.part else {
        return insert_odd_arrival(client, arrival, first, oddity).await.map(drop);
    };
    let transaction = client.transaction().await.map_err(failure)?;
    if insert_odd_arrival(&transaction, arrival, first, oddity).await? {
        let events = i32::try_from(part.count).unwrap_or(i32::MAX);
        let values: [&(dyn ToSql + Sync); 4] =
            [&part.request.as_uuid(), &arrival.source.0, &events, &&part.whole[..]];
        execute(&transaction, include_str!("sql/insert_request.sql"), &values).await?;
    }
    transaction.commit().await.map_err(failure)
}

/// Says whether the request of the arrival is still to be kept.
async fn insert_odd_arrival(
    client: &impl GenericClient,
    arrival: &Arrival,
    first: ReceiptId,
    oddity: Oddity,
) -> Result<bool, StoreError> {
    let part = arrival.part.as_ref();
    let rows = query(
        client,
        include_str!("sql/insert_odd_arrival.sql"),
        &[
            &arrival.receipt.as_uuid(),
            &first.as_uuid(),
            &arrival.source.0,
            &oddity.as_str(),
            &arrival.event_id,
            &Uuid::from_bytes(arrival.content16()),
            &arrival.received_at,
            &&arrival.headers[..],
            &&arrival.body[..],
            &part.map(|part| part.request.as_uuid()),
            &part.map(|part| part.position.cast_signed()),
            &limits::ODD_ARRIVALS_KEPT,
        ],
    )
    .await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The keys an arrival is remembered under.
fn keys(arrival: &Arrival) -> impl Iterator<Item = (i16, Uuid)> {
    let keys = [Some(arrival.key()), arrival.twin_key()];
    let source = arrival.source.0;
    keys.into_iter().flatten().map(move |key| (source, Uuid::from_bytes(*key.as_bytes())))
}

/// Identities last seen on an earlier day than today.
#[derive(Default)]
struct Seen {
    source: Vec<i16>,
    key: Vec<Uuid>,
    today: Vec<i32>,
}

impl Seen {
    /// Notes both keys of an arrival, each by its own age.
    fn note(&mut self, arrival: &Arrival, identity: &Identity) {
        let today = day_of(arrival.received_at);
        let keys = [
            (Some(arrival.key()), Some(identity.last_seen)),
            (arrival.twin_key(), identity.body_last_seen),
        ];
        for (key, last_seen) in keys {
            if let (Some(key), Some(last_seen)) = (key, last_seen)
                && last_seen < today
            {
                self.source.push(arrival.source.0);
                self.key.push(Uuid::from_bytes(*key.as_bytes()));
                self.today.push(today);
            }
        }
    }

    /// Writes that they were seen. Returns those that are not there any more.
    async fn write(self, client: &Object) -> Result<HashSet<(i16, Uuid)>, StoreError> {
        if self.key.is_empty() {
            return Ok(HashSet::new());
        }
        let sql = include_str!("sql/see_identities.sql");
        let rows = query(client, sql, &[&self.source, &self.key, &self.today]).await?;
        let mut missing: HashSet<_> = self.source.into_iter().zip(self.key).collect();
        for row in rows {
            missing.remove(&(row.get(0), row.get(1)));
        }
        Ok(missing)
    }
}
