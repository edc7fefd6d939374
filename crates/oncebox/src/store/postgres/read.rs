//! Lists and look-ups.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connect::{failure, query};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Mark, Oddity, Part, ReceiptId, SecretNo, SourceNo};
use crate::store::{
    DeliveryView, OddView, Receipt, ReceiptFilter, ReceiptSummary, Repeat, StoreError, words,
};

pub(super) async fn receipts(
    client: &Object,
    filter: &ReceiptFilter,
) -> Result<Vec<ReceiptSummary>, StoreError> {
    let bound = |id: Option<ReceiptId>, open: Uuid| id.map_or(open, |id| id.as_uuid());
    let statement =
        client.prepare_cached(include_str!("sql/list_receipts.sql")).await.map_err(failure)?;
    let rows = client
        .query(
            &statement,
            &[
                &bound(filter.before, Uuid::max()),
                &bound(filter.since.map(ReceiptId::floor), Uuid::nil()),
                &bound(filter.until.map(ReceiptId::floor), Uuid::max()),
                &filter.source,
                &filter.event_type.as_deref().map(like),
                &filter.event_id,
                &filter.object,
                &filter.unrouted,
                &filter.odd,
                &i64::try_from(filter.limit).unwrap_or(i64::MAX),
            ],
        )
        .await
        .map_err(failure)?;
    let mut receipts = rows.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    add_deliveries(client, &mut receipts).await?;
    Ok(receipts)
}

pub(super) async fn receipt(client: &Object, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/find_receipt.sql")).await.map_err(failure)?;
    let found = client.query_opt(&statement, &[&id.as_uuid()]).await.map_err(failure)?;
    let Some(row) = found else { return Ok(None) };
    let mut summaries = [summary(&row)?];
    add_deliveries(client, &mut summaries).await?;
    let [summary] = summaries;
    let digest: Vec<u8> = row.get(21);
    Ok(Some(Receipt {
        summary,
        secret: (SecretNo(row.get(16)), row.get(17)),
        signed_at: row.get(18),
        headers: row.get(19),
        body: row.get(20),
        digest: digest.try_into().map_err(|_| odd_row("digest"))?,
        part: part(&row, 22),
        odd: odd_receipts(client, id).await?,
    }))
}

/// The request an event came in together with others.
pub(super) fn part(row: &Row, first: usize) -> Option<Part> {
    let request: Uuid = row.get::<_, Option<Uuid>>(first)?;
    let number = |column: usize| u32::try_from(row.get::<_, i32>(column)).unwrap_or(0);
    let (position, count) = (number(first + 1), number(first + 2));
    let whole = row.get::<_, Vec<u8>>(first + 3).into();
    Some(Part { request: request.into(), position, count, whole })
}

pub(super) async fn newest(client: &Object) -> Result<Option<ReceiptId>, StoreError> {
    let sql = include_str!("sql/newest_receipt.sql");
    let row = client.query_opt(sql, &[]).await.map_err(failure)?;
    Ok(row.map(|row| row.get::<_, Uuid>(0).into()))
}

pub(super) async fn identity(
    client: &Object,
    source: SourceNo,
    key: IdentityKey,
) -> Result<Option<ReceiptId>, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/find_identity.sql")).await.map_err(failure)?;
    let key = Uuid::from_bytes(*key.as_bytes());
    let row = client.query_opt(&statement, &[&source.0, &key]).await.map_err(failure)?;
    Ok(row.map(|row| row.get::<_, Uuid>(0).into()))
}

fn summary(row: &Row) -> Result<ReceiptSummary, StoreError> {
    let receipt = row.get::<_, Uuid>(0).into();
    let count = |column: usize| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
    let repeats = row.get::<_, Option<i64>>(9).map(|_| Repeat {
        receipt,
        duplicates: count(9),
        conflicts: count(10),
        twins: count(11),
        first_at: row.get(12),
        last_at: row.get(13),
    });
    Ok(ReceiptSummary {
        receipt,
        source: row.get(1),
        event_id: row.get(2),
        trust: words::trust(row.get(3)).ok_or_else(|| odd_row("trust"))?,
        event_type: row.get(4),
        object: row.get(5),
        version: row.get(6),
        received_at: row.get(7),
        bytes: row.get(8),
        mark: mark(row, 14),
        repeats,
        deliveries: Vec::new(),
    })
}

/// How a receipt is marked, from two columns.
pub(super) fn mark(row: &Row, first: usize) -> Option<Mark> {
    let first_receipt = row.get::<_, Option<Uuid>>(first + 1).map(ReceiptId::from);
    words::mark(row.get(first), first_receipt)
}

async fn add_deliveries(
    client: &Object,
    receipts: &mut [ReceiptSummary],
) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = receipts.iter().map(|receipt| receipt.receipt.as_uuid()).collect();
    let statement =
        client.prepare_cached(include_str!("sql/list_deliveries.sql")).await.map_err(failure)?;
    for row in client.query(&statement, &[&ids]).await.map_err(failure)? {
        let id: ReceiptId = row.get::<_, Uuid>(0).into();
        let view = DeliveryView {
            route: row.get(1),
            state: row.get(2),
            reason: row.get(3),
            attempts: row.get(4),
        };
        if let Some(receipt) = receipts.iter_mut().find(|receipt| receipt.receipt == id) {
            receipt.deliveries.push(view);
        }
    }
    Ok(())
}

async fn odd_receipts(client: &Object, first: ReceiptId) -> Result<Vec<OddView>, StoreError> {
    let sql = include_str!("sql/list_odd_receipts.sql");
    let rows = query(client, sql, &[&first.as_uuid(), &limits::ODD_SHOWN]).await?;
    rows.iter()
        .map(|row| {
            Ok(OddView {
                receipt: row.get::<_, Uuid>(0).into(),
                oddity: Oddity::of(row.get(1)).ok_or_else(|| odd_row("oddity"))?,
                event_id: row.get(2),
                event_type: row.get(3),
                received_at: row.get(4),
            })
        })
        .collect()
}

pub(super) fn odd_row(column: &str) -> StoreError {
    StoreError::Data(format!("a row holds an unknown value in `{column}`"))
}

/// A pattern in which only `*` is special, as LIKE wants it.
pub(super) fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        match character {
            '*' => like.push('%'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            other => like.push(other),
        }
    }
    like
}
