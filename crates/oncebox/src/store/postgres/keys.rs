//! Keys that servers on one store share.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::PostgresStore;
use super::connect::{execute, failure, query};
use super::read::odd_row;
use crate::limits;
use crate::store::{Keys, PublishedKey, StoreError};

#[async_trait]
impl Keys for PostgresStore {
    async fn fingerprint_key(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.general
            .write(async |client| {
                let sql = include_str!("sql/insert_fingerprint_key.sql");
                execute(client, sql, &[&&fresh[..]]).await?;
                let sql = include_str!("sql/find_fingerprint_key.sql");
                let rows = query(client, sql, &[]).await?;
                let key: &[u8] = rows.first().ok_or_else(|| odd_row("key"))?.get(0);
                key.try_into().map_err(|_| odd_row("key"))
            })
            .await
    }

    async fn keep_published_key(&self, key: &PublishedKey) -> Result<(), StoreError> {
        self.general
            .write(async |client| {
                let transaction = client.transaction().await.map_err(failure)?;
                let PublishedKey { url, allow_private, served, fresh_until, kept_at } = key;
                let sql = include_str!("sql/keep_published_key.sql");
                execute(&transaction, sql, &[url, allow_private, served, fresh_until, kept_at])
                    .await?;
                let sql = include_str!("sql/trim_published_keys.sql");
                execute(&transaction, sql, &[&limits::PUBLISHED_KEYS]).await?;
                transaction.commit().await.map_err(failure)
            })
            .await
    }

    async fn published_keys(&self) -> Result<Vec<PublishedKey>, StoreError> {
        self.general
            .read(async |client| {
                let sql = include_str!("sql/list_published_keys.sql");
                let rows = query(client, sql, &[]).await?;
                let key = |row: &Row| PublishedKey {
                    url: row.get(0),
                    allow_private: row.get(1),
                    served: row.get(2),
                    fresh_until: row.get(3),
                    kept_at: row.get(4),
                };
                Ok(rows.iter().map(key).collect())
            })
            .await
    }
}
