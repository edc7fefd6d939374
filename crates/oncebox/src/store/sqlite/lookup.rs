//! Finding receipts by what people write.

use async_trait::async_trait;
use rusqlite::{Connection, Params, Row, params};

use super::SqliteStore;
use super::connection::failure;
use super::rows::{halves, receipt_id, time};
use crate::identity::IdentityKey;
use crate::limits::LOOKED_THROUGH;
use crate::receipt::ReceiptId;
use crate::store::lookup::{beginning_so, is_all, last_beginning};
use crate::store::{Lookup, NamedEvent, NamedReceipt, StoreError};

#[async_trait]
impl Lookup for SqliteStore {
    async fn receipts_within(
        &self,
        from: ReceiptId,
        to: ReceiptId,
        limit: usize,
    ) -> Result<Vec<NamedReceipt>, StoreError> {
        // Ids are numbered by their first half, which is never negative.
        let (low, high) = (halves(from).0, halves(to).0);
        if low < 0 {
            return Ok(Vec::new());
        }
        let high = if high < 0 { i64::MAX } else { high };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = include_str!("sql/find_receipts.sql");
        let find = move |db: &Connection| list(db, sql, params![low, high, limit]);
        let mut found = self.readers.run(find).await?;
        found.retain(|named| named.receipt >= from && named.receipt <= to);
        Ok(found)
    }

    async fn events(&self, event_id: &str) -> Result<Vec<NamedReceipt>, StoreError> {
        let event_id = event_id.to_owned();
        let key = IdentityKey::of_event(&event_id);
        self.readers
            .run(move |db| {
                let mut found = events(db, [key, key])?;
                found.extend(odd_events(db, &event_id, &event_id)?);
                Ok(found)
            })
            .await
    }

    async fn events_beginning(
        &self,
        beginning: &str,
    ) -> Result<Option<Vec<NamedReceipt>>, StoreError> {
        let beginning = beginning.to_owned();
        self.readers
            .run(move |db| {
                let found = events(db, IdentityKey::of_beginning(&beginning))?;
                let odd = odd_events(db, &beginning, &last_beginning(&beginning))?;
                Ok((is_all(&found) && is_all(&odd)).then(|| beginning_so(&beginning, found, odd)))
            })
            .await
    }
}

fn events(
    connection: &Connection,
    [from, to]: [IdentityKey; 2],
) -> Result<Vec<NamedReceipt>, StoreError> {
    let values = params![from.as_bytes(), to.as_bytes(), LOOKED_THROUGH];
    list(connection, include_str!("sql/find_events.sql"), values)
}

fn odd_events(
    connection: &Connection,
    from: &str,
    to: &str,
) -> Result<Vec<NamedReceipt>, StoreError> {
    let values = params![from, to, LOOKED_THROUGH];
    list(connection, include_str!("sql/find_odd_events.sql"), values)
}

fn list(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<Vec<NamedReceipt>, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map(values, named)?.collect())
        .map_err(failure)
}

fn named(row: &Row<'_>) -> rusqlite::Result<NamedReceipt> {
    let event = match row.get::<_, Option<String>>(3)? {
        Some(event_id) => {
            let (event_type, received_at) = (row.get(4)?, time(row, 5)?);
            Some(NamedEvent { event_id, event_type, received_at })
        }
        None => None,
    };
    let receipt = receipt_id(row, 0)?;
    Ok(NamedReceipt { receipt, source: row.get(2)?, event, is_odd: row.get(6)? })
}
