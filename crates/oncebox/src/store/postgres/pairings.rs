//! Secrets that a provider sets in a handshake.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::acts::note;
use super::connect::{execute, failure, query};
use super::names::milliseconds;
use crate::limits;
use crate::receipt::SourceNo;
use crate::sealed::Sealed;
use crate::store::pairings::{Window, answer, by_handshake};
use crate::store::{Act, Paired, PairedNo, PairedSecret, Pairing, Pairings, StoreError};

#[async_trait]
impl Pairings for PostgresStore {
    async fn open_pairing(
        &self,
        source: SourceNo,
        open_for: Duration,
        act: &Act,
    ) -> Result<Pairing, StoreError> {
        self.general
            .write(async |client| {
                let transaction = client.transaction().await.map_err(failure)?;
                let open_for = milliseconds(open_for.min(limits::PAIRING_LONGEST));
                let sql = include_str!("sql/open_pairing.sql");
                execute(&transaction, sql, &[&source.0, &open_for]).await?;
                note(&transaction, act, "source.pair", &name(&transaction, source).await?).await?;
                let rows =
                    query(&transaction, include_str!("sql/find_pairing.sql"), &[&source.0]).await?;
                let window = rows.first().map(window).ok_or_else(not_there)?;
                transaction.commit().await.map_err(failure)?;
                Ok(window.pairing())
            })
            .await
    }

    async fn close_pairing(&self, source: SourceNo, act: &Act) -> Result<bool, StoreError> {
        self.general
            .write(async |client| {
                let transaction = client.transaction().await.map_err(failure)?;
                let sql = include_str!("sql/close_pairing.sql");
                if execute(&transaction, sql, &[&source.0]).await? == 0 {
                    return Ok(false);
                }
                note(&transaction, act, "source.unpair", &name(&transaction, source).await?)
                    .await?;
                transaction.commit().await.map_err(failure)?;
                Ok(true)
            })
            .await
    }

    async fn pairing(&self, source: SourceNo) -> Result<Option<Pairing>, StoreError> {
        self.general
            .read(async |client| {
                let rows =
                    query(client, include_str!("sql/find_pairing.sql"), &[&source.0]).await?;
                Ok(rows.first().map(|row| window(row).pairing()))
            })
            .await
    }

    async fn pair(
        &self,
        source: SourceNo,
        secret: &Sealed,
        at: Timestamp,
    ) -> Result<Paired, StoreError> {
        self.general
            .write(async |client| {
                let transaction = client.transaction().await.map_err(failure)?;
                let rows =
                    query(&transaction, include_str!("sql/lock_pairing.sql"), &[&source.0]).await?;
                let window = rows.first().map(window);
                let mark = Uuid::from_bytes(secret.mark);
                let sql = include_str!("sql/find_paired_secret.sql");
                let rows = query(&transaction, sql, &[&source.0, &mark]).await?;
                let found = rows.first().ok_or_else(not_there)?;
                let no = match answer(window.as_ref(), found.get(0), found.get(1)) {
                    Ok(no) => no,
                    Err(told) => return Ok(told),
                };
                let sql = include_str!("sql/take_pairing.sql");
                if execute(&transaction, sql, &[&source.0, &no.0]).await? == 0 {
                    return Ok(Paired::Closed);
                }
                let sql = include_str!("sql/insert_paired_secret.sql");
                let fingerprint = &secret.fingerprint;
                execute(
                    &transaction,
                    sql,
                    &[&source.0, &no.0, &mark, fingerprint, &at, &secret.bytes],
                )
                .await?;
                let subject = subject(&transaction, source, no).await?;
                note(&transaction, &by_handshake(at), "secret.paired", &subject).await?;
                transaction.commit().await.map_err(failure)?;
                Ok(Paired::New(no))
            })
            .await
    }

    async fn paired_secrets(&self, source: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
        self.general
            .read(async |client| {
                let sql = include_str!("sql/list_paired_secrets.sql");
                let rows = query(client, sql, &[&source.0]).await?;
                let secret = |row: &Row| PairedSecret {
                    no: PairedNo(row.get(0)),
                    fingerprint: row.get(1),
                    sealed: row.get(2),
                    paired_at: row.get(3),
                };
                Ok(rows.iter().map(secret).collect())
            })
            .await
    }

    async fn remove_paired_secret(
        &self,
        source: SourceNo,
        no: PairedNo,
        act: &Act,
    ) -> Result<bool, StoreError> {
        self.general
            .write(async |client| {
                let transaction = client.transaction().await.map_err(failure)?;
                let sql = include_str!("sql/remove_paired_secret.sql");
                if execute(&transaction, sql, &[&source.0, &no.0]).await? == 0 {
                    return Ok(false);
                }
                let subject = subject(&transaction, source, no).await?;
                note(&transaction, act, "secret.remove", &subject).await?;
                transaction.commit().await.map_err(failure)?;
                Ok(true)
            })
            .await
    }
}

fn window(row: &Row) -> Window {
    Window {
        opened_at: row.get(0),
        until: row.get(1),
        runs: row.get(2),
        paired: row.get::<_, Option<i16>>(3).map(PairedNo),
        last: PairedNo(row.get(4)),
    }
}

async fn name(transaction: &Transaction<'_>, source: SourceNo) -> Result<String, StoreError> {
    let sql = include_str!("sql/find_source_name.sql");
    let rows = query(transaction, sql, &[&source.0]).await?;
    rows.first().map(|row| row.get(0)).ok_or_else(not_there)
}

async fn subject(
    transaction: &Transaction<'_>,
    source: SourceNo,
    no: PairedNo,
) -> Result<String, StoreError> {
    Ok(format!("{}/{}", name(transaction, source).await?, no.0))
}

fn not_there() -> StoreError {
    StoreError::Data("there is no such source".into())
}
