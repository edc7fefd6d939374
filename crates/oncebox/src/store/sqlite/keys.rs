//! Keys that servers on one store share.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::connection::{failure, in_transaction, run};
use super::rows::time;
use crate::limits;
use crate::store::{Keys, PublishedKey, StoreError};

#[async_trait]
impl Keys for SqliteStore {
    async fn fingerprint_key(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.writer
            .run(move |db| {
                in_transaction(db, |transaction| {
                    let sql = include_str!("sql/insert_fingerprint_key.sql");
                    run(transaction, sql, params![fresh])?;
                    let sql = include_str!("sql/find_fingerprint_key.sql");
                    transaction.query_row(sql, [], |row| row.get(0))
                })
            })
            .await
    }

    async fn keep_published_key(&self, key: &PublishedKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.writer.run(move |db| keep(db, &key)).await
    }

    async fn published_keys(&self) -> Result<Vec<PublishedKey>, StoreError> {
        self.look_ups.run(|db| list(db).map_err(failure)).await
    }
}

fn keep(connection: &mut Connection, key: &PublishedKey) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| {
        let values = params![
            key.url,
            key.allow_private,
            key.served,
            key.fresh_until.as_millisecond(),
            key.kept_at.as_millisecond(),
        ];
        run(transaction, include_str!("sql/keep_published_key.sql"), values)?;
        let most = limits::PUBLISHED_KEYS;
        run(transaction, include_str!("sql/trim_published_keys.sql"), params![most])?;
        Ok(())
    })
}

fn list(connection: &Connection) -> rusqlite::Result<Vec<PublishedKey>> {
    let key = |row: &Row<'_>| {
        Ok(PublishedKey {
            url: row.get(0)?,
            allow_private: row.get(1)?,
            served: row.get(2)?,
            fresh_until: time(row, 3)?,
            kept_at: time(row, 4)?,
        })
    };
    let mut statement = connection.prepare_cached(include_str!("sql/list_published_keys.sql"))?;
    statement.query_map([], key)?.collect()
}
