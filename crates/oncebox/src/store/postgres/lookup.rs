//! Finding receipts by what people write.

use async_trait::async_trait;
use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::columns::uuid_of;
use super::connect::query;
use crate::identity::IdentityKey;
use crate::limits::LOOKED_THROUGH;
use crate::receipt::ReceiptId;
use crate::store::lookup::{beginning_so, is_all, last_beginning};
use crate::store::{Lookup, NamedEvent, NamedReceipt, StoreError};

#[async_trait]
impl Lookup for PostgresStore {
    async fn receipts_within(
        &self,
        from: ReceiptId,
        to: ReceiptId,
        limit: usize,
    ) -> Result<Vec<NamedReceipt>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = include_str!("sql/find_receipts.sql");
        let (from, to) = (from.as_uuid(), to.as_uuid());
        self.general.read(async |client| list(client, sql, &[&from, &to, &limit]).await).await
    }

    async fn events(&self, event_id: &str) -> Result<Vec<NamedReceipt>, StoreError> {
        let key = IdentityKey::of_event(event_id);
        self.general
            .read(async |client| {
                let mut found = events(client, [key, key]).await?;
                found.extend(odd_events(client, event_id, event_id).await?);
                Ok(found)
            })
            .await
    }

    async fn events_beginning(
        &self,
        beginning: &str,
    ) -> Result<Option<Vec<NamedReceipt>>, StoreError> {
        self.general
            .read(async |client| {
                let found = events(client, IdentityKey::of_beginning(beginning)).await?;
                let odd = odd_events(client, beginning, &last_beginning(beginning)).await?;
                Ok((is_all(&found) && is_all(&odd)).then(|| beginning_so(beginning, found, odd)))
            })
            .await
    }
}

async fn events(client: &Object, keys: [IdentityKey; 2]) -> Result<Vec<NamedReceipt>, StoreError> {
    let [from, to] = keys.map(uuid_of);
    list(client, include_str!("sql/find_events.sql"), &[&from, &to, &LOOKED_THROUGH]).await
}

async fn odd_events(
    client: &Object,
    from: &str,
    to: &str,
) -> Result<Vec<NamedReceipt>, StoreError> {
    list(client, include_str!("sql/find_odd_events.sql"), &[&from, &to, &LOOKED_THROUGH]).await
}

async fn list(
    client: &Object,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<NamedReceipt>, StoreError> {
    let rows = query(client, sql, values).await?;
    Ok(rows.iter().map(named).collect())
}

fn named(row: &Row) -> NamedReceipt {
    let event = row.get::<_, Option<String>>(2).map(|event_id| NamedEvent {
        event_id,
        event_type: row.get(3),
        received_at: row.get(4),
    });
    let receipt = row.get::<_, Uuid>(0).into();
    NamedReceipt { receipt, source: row.get(1), event, is_odd: row.get(5) }
}
