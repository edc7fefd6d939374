//! Verbs that are functions of the database: one place for all doors.

use bytes::Bytes;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::query;
use super::read::odd_row;
use crate::effect::{EffectKey, Message, Sent, Under};
use crate::store::{StoreError, checks};

/// Moves the watermark of an object; none if the lease is not good any more. Whoever hears that it
/// moved writes newer state elsewhere, so it must not be back where it was when a standby takes
/// over.
pub(super) async fn advance(
    store: &PostgresStore,
    under: Under,
    object: &str,
    version: i64,
) -> Result<Option<bool>, StoreError> {
    checks::object(object)?;
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let cut_before = store.connector.sync_waits_cut();
    let sql = include_str!("sql/advance.sql");
    let rows = store
        .working
        .write(async |client| {
            query(client, sql, &[&receipt, &route, &under.lease.0, &object, &version]).await
        })
        .await?;
    store.connector.is_durable_since(cut_before)?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Writes an outbox message.
pub(super) async fn send(
    store: &PostgresStore,
    under: Under,
    message: &Message,
) -> Result<Sent, StoreError> {
    checks::message(message)?;
    let Message { destination, key, group, content_type, payload } = message;
    let (key, group) = (key.as_str(), group.as_ref().map(EffectKey::as_str));
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let (lease, payload) = (under.lease.0, Bytes::as_ref(payload));
    let sql = include_str!("sql/send.sql");
    let rows = store
        .working
        .write(async |client| {
            query(
                client,
                sql,
                &[&receipt, &route, &lease, destination, &key, &payload, &group, content_type],
            )
            .await
        })
        .await?;
    let Some(row) = rows.first() else { return Ok(Sent::LeaseLost) };
    let id = || row.get::<_, Uuid>(1).into();
    match row.get(0) {
        "new" => {
            store.wake.everywhere();
            Ok(Sent::New(id()))
        }
        "before" => Ok(Sent::Before(id())),
        "conflict" => Ok(Sent::Conflict(id())),
        "nowhere" => Ok(Sent::NoDestination),
        _ => Err(odd_row("outcome")),
    }
}
