//! Opening deliveries again, and receipts that come to be late.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::acts::note;
use super::connect::{execute, failure, query};
use super::lists::state;
use super::locks::{self, Guard};
use super::names;
use super::read::{odd_row, part};
use crate::delivery::{DeliveryId, State};
use crate::receipt::{Arrival, ReceiptId};
use crate::replay::{How, Reopened};
use crate::store::{Act, KeptAside, OddArrival, StoreError, day_of, words};

/// What deliveries that are to be opened share with others.
pub(super) async fn find_guards(
    client: &Object,
    open: &[(DeliveryId, bool)],
) -> Result<Vec<Guard>, StoreError> {
    let (receipts, routes) = locks::keys(open.iter().map(|(delivery, _)| *delivery));
    let sql = include_str!("sql/find_reopened_guards.sql");
    let rows = query(client, sql, &[&receipts, &routes]).await?;
    Ok(rows.iter().map(Guard::read).collect())
}

/// Opens deliveries again; where their route never took the receipt, only those that are to be
/// made. Locks lanes and operations, then receipts: nobody else opens or expires them meanwhile.
pub(super) async fn reopen(
    transaction: &Transaction<'_>,
    open: &[(DeliveryId, bool)],
    guards: &[Guard],
    how: How,
) -> Result<Vec<Reopened>, StoreError> {
    locks::lock(transaction, guards.iter()).await?;
    let (receipts, routes) = locks::keys(open.iter().map(|(delivery, _)| *delivery));
    query(transaction, include_str!("sql/lock_receipts.sql"), &[&receipts]).await?;
    let sql = include_str!("sql/reopen_open.sql");
    let rows = query(transaction, sql, &[&receipts, &routes, &how.ignore_stale]).await?;
    let mut opened: HashSet<DeliveryId> = rows.iter().map(locks::delivery).collect();
    let sql = include_str!("sql/reopen_finished.sql");
    let values: [&(dyn ToSql + Sync); 4] = [&receipts, &routes, &how.ignore_stale, &how.force];
    opened.extend(query(transaction, sql, &values).await?.iter().map(locks::delivery));
    let made = open.iter().filter(|(delivery, fill)| *fill && !opened.contains(delivery));
    let (receipts, routes) = locks::keys(made.map(|(delivery, _)| *delivery));
    let sql = include_str!("sql/fill_deliveries.sql");
    let rows = query(transaction, sql, &[&receipts, &routes, &how.ignore_stale]).await?;
    opened.extend(rows.iter().map(locks::delivery));

    let left = open.iter().map(|(delivery, _)| *delivery).filter(|d| !opened.contains(d));
    let left = find_states(transaction, left).await?;
    let became = |delivery: &DeliveryId| match left.get(delivery) {
        _ if opened.contains(delivery) => Reopened::Opened,
        Some(state) => Reopened::Left(*state),
        None => Reopened::Gone,
    };
    Ok(open.iter().map(|(delivery, _)| became(delivery)).collect())
}

async fn find_states(
    transaction: &Transaction<'_>,
    deliveries: impl Iterator<Item = DeliveryId>,
) -> Result<HashMap<DeliveryId, State>, StoreError> {
    let (receipts, routes) = locks::keys(deliveries);
    let sql = include_str!("sql/find_standings.sql");
    let rows = query(transaction, sql, &[&receipts, &routes]).await?;
    let mut states = HashMap::new();
    for row in &rows {
        if let Some(word) = row.get(2) {
            states.insert(locks::delivery(row), state(word)?);
        }
    }
    Ok(states)
}

/// An odd arrival that was kept aside.
pub(super) async fn odd_arrival(
    client: &Object,
    id: ReceiptId,
) -> Result<Option<KeptAside>, StoreError> {
    let sql = include_str!("sql/find_odd_arrival.sql");
    let rows = query(client, sql, &[&id.as_uuid()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(KeptAside {
        arrival: OddArrival {
            id: row.get::<_, Uuid>(0).into(),
            oddity: words::oddity(row.get(1)).ok_or_else(|| odd_row("oddity"))?,
            event_id: row.get(2),
            received_at: row.get(3),
            body: row.get(4),
        },
        receipt: row.get::<_, Uuid>(5).into(),
        source: row.get(6),
        headers: row.get(7),
        part: part(row, 8),
    }))
}

/// Makes a receipt of an odd arrival; false if it is not there any more.
pub(super) async fn promote(
    store: &PostgresStore,
    arrival: &Arrival,
    act: &Act,
) -> Result<bool, StoreError> {
    store
        .general
        .write(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            let id = arrival.receipt.as_uuid();
            if execute(&transaction, include_str!("sql/remove_odd_arrival.sql"), &[&id]).await? == 0
            {
                return Ok(false);
            }
            insert(&transaction, arrival).await?;
            let key = Uuid::from_bytes(*arrival.key().as_bytes());
            let content = Uuid::from_bytes(arrival.content16());
            let sql = include_str!("sql/take_identity.sql");
            let today = day_of(arrival.received_at);
            execute(&transaction, sql, &[&arrival.source.0, &key, &id, &content, &today]).await?;
            names::add_stored(&transaction, &[(arrival.source, arrival.stored_bytes())]).await?;
            count_request(&transaction, arrival).await?;
            note(&transaction, act, "receipt.promote", &arrival.receipt.to_string()).await?;
            transaction.commit().await.map_err(failure)?;
            store.wake.everywhere();
            Ok(true)
        })
        .await
}

/// The bytes of the request of a promoted arrival count from now on. Comes after the source is
/// locked, as everywhere.
async fn count_request(transaction: &Transaction<'_>, arrival: &Arrival) -> Result<(), StoreError> {
    let Some(part) = &arrival.part else { return Ok(()) };
    let sql = include_str!("sql/count_request.sql");
    let rows = query(transaction, sql, &[&part.request.as_uuid()]).await?;
    let Some(bytes) = rows.first().map(|row| row.get(0)) else { return Ok(()) };
    names::add_stored(transaction, &[(arrival.source, bytes)]).await
}

/// Writes a receipt and its deliveries.
async fn insert(transaction: &Transaction<'_>, arrival: &Arrival) -> Result<(), StoreError> {
    let (id, part) = (arrival.receipt.as_uuid(), arrival.part.as_ref());
    execute(
        transaction,
        include_str!("sql/insert_receipt.sql"),
        &[
            &id,
            &arrival.received_at,
            &arrival.signed_at,
            &arrival.version,
            &arrival.source.0,
            &arrival.secret.0,
            &arrival.route_count(),
            &words::of_trust(arrival.trust),
            &arrival.event_id,
            &arrival.event_type,
            &arrival.object,
            &&arrival.digest[..],
            &&arrival.headers[..],
            &&arrival.body[..],
            &part.map(|part| part.request.as_uuid()),
            &part.map(|part| part.position.cast_signed()),
        ],
    )
    .await?;
    for taker in &arrival.takers {
        let lane = arrival.object.as_deref().filter(|_| taker.laned);
        let place = arrival.version.unwrap_or(i64::MIN);
        let operation = taker.operation.map(Uuid::from_bytes);
        let (route, source, at) = (taker.route.0, arrival.source.0, arrival.received_at);
        let sql = include_str!("sql/insert_delivery.sql");
        let values: [&(dyn ToSql + Sync); 7] =
            [&id, &route, &source, &at, &lane, &place, &operation];
        execute(transaction, sql, &values).await?;
    }
    Ok(())
}
