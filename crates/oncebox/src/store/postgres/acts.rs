//! What operators do, each with its line of the audit in the same transaction.

use deadpool_postgres::{Object, Transaction};

use super::PostgresStore;
use super::connect::{execute, failure, query};
use super::guards::Skips;
use super::locks::{self, Guard, Left};
use crate::delivery::{DeliveryId, Reason, State};
use crate::store::{Act, Acted, StoreError};

/// Writes a line of the audit.
pub(super) async fn note(
    transaction: &Transaction<'_>,
    act: &Act,
    done: &str,
    subject: &str,
) -> Result<(), StoreError> {
    let sql = include_str!("sql/insert_audit.sql");
    execute(transaction, sql, &[&act.at, &act.who, &act.via, &done, &subject, &act.why])
        .await
        .map(drop)
}

/// Writes a line of the audit about an act that has no transaction of its own.
pub(super) async fn note_alone(
    client: &mut Object,
    act: &Act,
    done: &str,
    subject: &str,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    note(&transaction, act, done, subject).await?;
    transaction.commit().await.map_err(failure)
}

/// Pauses or resumes a route; false if there is none of that name.
pub(super) async fn pause_route(
    store: &PostgresStore,
    name: &str,
    paused: bool,
    act: &Act,
) -> Result<bool, StoreError> {
    store
        .general
        .write(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            let sql = include_str!("sql/pause_route.sql");
            if execute(&transaction, sql, &[&name, &paused]).await? == 0 {
                return Ok(false);
            }
            let done = if paused { "route.pause" } else { "route.resume" };
            note(&transaction, act, done, name).await?;
            transaction.commit().await.map_err(failure)?;
            if !paused {
                store.wake.everywhere();
            }
            Ok(true)
        })
        .await
}

/// Gives up a delivery that nobody works on.
pub(super) async fn discard(
    store: &PostgresStore,
    delivery: DeliveryId,
    act: &Act,
) -> Result<Acted, StoreError> {
    store
        .general
        .write(async |client| {
            let (transaction, guards, found) = lock(client, delivery).await?;
            match found {
                None => return Ok(Acted::NotFound),
                Some(state @ (State::Processing | State::Processed | State::Skipped)) => {
                    return Ok(Acted::Not(state));
                }
                Some(_) => {}
            }
            let mut skips = Skips::default();
            skips.push(delivery, Reason::Discarded, None);
            skips.write(&transaction).await?;
            locks::release_lanes(&transaction, guards.iter()).await?;
            let gone = guards.iter().map(|guard| (guard, Left::ForGood));
            locks::release_operations(&transaction, gone).await?;
            note(&transaction, act, "delivery.discard", &delivery.to_string()).await?;
            transaction.commit().await.map_err(failure)?;
            store.wake.everywhere();
            Ok(Acted::Done)
        })
        .await
}

/// Lets a held delivery go before its turn.
pub(super) async fn release(
    store: &PostgresStore,
    delivery: DeliveryId,
    act: &Act,
) -> Result<Acted, StoreError> {
    store
        .general
        .write(async |client| {
            let (transaction, _, found) = lock(client, delivery).await?;
            if found != Some(State::Held) {
                return Ok(found.map_or(Acted::NotFound, Acted::Not));
            }
            let sql = include_str!("sql/release_before_turn.sql");
            let (receipt, route) = (delivery.receipt.as_uuid(), delivery.route.0);
            execute(&transaction, sql, &[&receipt, &route]).await?;
            note(&transaction, act, "delivery.release", &delivery.to_string()).await?;
            transaction.commit().await.map_err(failure)?;
            store.wake.everywhere();
            Ok(Acted::Done)
        })
        .await
}

/// Locks a delivery after what it shares with others, and finds its state.
async fn lock(
    client: &mut Object,
    delivery: DeliveryId,
) -> Result<(Transaction<'_>, Vec<Guard>, Option<State>), StoreError> {
    let guards = locks::find(client, [delivery]).await?;
    let transaction = client.transaction().await.map_err(failure)?;
    locks::lock(&transaction, guards.iter()).await?;
    let (receipt, route) = (delivery.receipt.as_uuid(), delivery.route.0);
    let sql = include_str!("sql/lock_delivery.sql");
    let mut rows = query(&transaction, sql, &[&receipt, &route]).await?;
    if rows.is_empty() {
        let sql = include_str!("sql/find_standing.sql");
        rows = query(&transaction, sql, &[&receipt, &route]).await?;
    }
    let state = rows.first().and_then(|row| State::of(row.get(0)));
    Ok((transaction, guards, state))
}
