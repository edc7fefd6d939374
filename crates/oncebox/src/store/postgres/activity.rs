//! What sources were sent lately, and what nodes do while an `oncebox tail` runs.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Object};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{execute, failure, query};
use crate::limits;
use crate::receipt::{ReceiptId, SourceNo};
use crate::store::activity::kept_since;
use crate::store::{
    Activity, ActivityNote, Happening, Rejected, RejectedFilter, RejectionNote, SourceActivity,
    StoreError,
};

#[async_trait]
impl Activity for PostgresStore {
    async fn note_activity(
        &self,
        mut notes: Vec<ActivityNote>,
        rejected: Vec<Rejected>,
    ) -> Result<(), StoreError> {
        // In one order on every node, so that two of them cannot deadlock.
        notes.sort_by_key(|note| note.source);
        notes.iter_mut().for_each(|note| note.secrets.sort_unstable());
        self.general.write(async |client| note(client, &notes, &rejected).await).await
    }

    async fn activity(&self) -> Result<Vec<SourceActivity>, StoreError> {
        let sql = include_str!("sql/list_activity.sql");
        let rows = self.general.read(async |client| query(client, sql, &[]).await).await?;
        Ok(rows.iter().map(activity).collect())
    }

    async fn rejected_list(&self, filter: &RejectedFilter) -> Result<Vec<Rejected>, StoreError> {
        let sql = include_str!("sql/list_rejected.sql");
        let (from, to) = (filter.from.as_uuid(), filter.to.as_uuid());
        let source = filter.source.map(|source| source.0);
        let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
        let rows = self
            .general
            .read(async |client| query(client, sql, &[&from, &to, &source, &limit]).await)
            .await?;
        Ok(rows.iter().map(rejected).collect())
    }

    async fn rejected(&self, id: ReceiptId) -> Result<Option<Rejected>, StoreError> {
        let (sql, id) = (include_str!("sql/find_rejected.sql"), id.as_uuid());
        let rows = self.general.read(async |client| query(client, sql, &[&id]).await).await?;
        let whole =
            |row: &Row| Rejected { headers: row.get(9), body: row.get(10), ..rejected(row) };
        Ok(rows.first().map(whole))
    }

    async fn watch(&self, lasting: Duration) -> Result<(), StoreError> {
        let lasting = lasting.as_secs_f64() * 1000.0;
        let sql = include_str!("sql/watch.sql");
        self.general.write(async |client| execute(client, sql, &[&lasting]).await).await.map(drop)
    }

    async fn is_watched(&self) -> Result<bool, StoreError> {
        let sql = include_str!("sql/find_watch.sql");
        let rows = self.general.read(async |client| query(client, sql, &[]).await).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    async fn note_happenings(&self, lines: Vec<Happening>) -> Result<(), StoreError> {
        let Some(newest) = lines.iter().map(|line| line.at).max() else { return Ok(()) };
        let kept = SignedDuration::try_from(limits::HAPPENINGS_KEPT).unwrap_or_default();
        let oldest = newest.checked_sub(kept).unwrap_or(Timestamp::UNIX_EPOCH);
        let times: Vec<Timestamp> = lines.iter().map(|line| line.at).collect();
        let lines: Vec<String> = lines.into_iter().map(|line| line.line).collect();
        self.general
            .write(async |client| {
                let sql = include_str!("sql/insert_happening.sql");
                execute(client, sql, &[&times, &lines]).await?;
                execute(client, include_str!("sql/prune_happenings.sql"), &[&oldest]).await
            })
            .await
            .map(drop)
    }

    async fn happenings(&self) -> Result<Vec<Happening>, StoreError> {
        let sql = include_str!("sql/list_happenings.sql");
        let rows = self.general.read(async |client| query(client, sql, &[]).await).await?;
        let line = |row: &Row| Happening { no: row.get(0), at: row.get(1), line: row.get(2) };
        Ok(rows.iter().map(line).collect())
    }
}

async fn note(
    client: &mut Object,
    notes: &[ActivityNote],
    rejected: &[Rejected],
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    for note in notes {
        let rejection = note.rejection.as_ref();
        let in_a_row = i64::try_from(note.rejected_in_a_row).unwrap_or(i64::MAX);
        execute(
            &transaction,
            include_str!("sql/note_activity.sql"),
            &[
                &note.source.0,
                &note.accepted_at,
                &rejection.map(|rejection| rejection.at),
                &rejection.map(|rejection| &rejection.reason),
                &rejection.and_then(|rejection| rejection.hint.as_ref()),
                &in_a_row,
            ],
        )
        .await?;
        for (secret, at) in &note.secrets {
            let sql = include_str!("sql/use_secret.sql");
            execute(&transaction, sql, &[&note.source.0, &secret.0, at]).await?;
        }
    }
    for rejected in rejected {
        keep(&transaction, rejected).await?;
    }
    transaction.commit().await.map_err(failure)
}

async fn keep(client: &impl GenericClient, rejected: &Rejected) -> Result<(), StoreError> {
    let RejectionNote { at, reason, hint } = &rejected.rejection;
    execute(
        client,
        include_str!("sql/insert_rejected.sql"),
        &[
            &rejected.id.as_uuid(),
            &rejected.source.0,
            at,
            reason,
            hint,
            &rejected.sender,
            &rejected.method,
            &rejected.url,
            &i64::try_from(rejected.body_bytes).unwrap_or(i64::MAX),
            &rejected.headers,
            &rejected.body,
        ],
    )
    .await?;
    let sql = include_str!("sql/trim_rejected.sql");
    let keep = i64::from(rejected.keep);
    execute(client, sql, &[&rejected.source.0, reason, &keep]).await.map(drop)
}

/// Removes rejected requests that were kept long enough; run where counts are added up.
pub(super) async fn prune(client: &Object, now: Timestamp) -> Result<(), StoreError> {
    let before = kept_since(now).as_uuid();
    execute(client, include_str!("sql/prune_rejected.sql"), &[&before]).await.map(drop)
}

fn activity(row: &Row) -> SourceActivity {
    let (at, reason): (Option<Timestamp>, Option<String>) = (row.get(2), row.get(3));
    let hint = row.get(4);
    let fingerprint: Option<String> = row.get(6);
    SourceActivity {
        source: SourceNo(row.get(0)),
        accepted_at: row.get(1),
        rejection: at.zip(reason).map(|(at, reason)| RejectionNote { at, reason, hint }),
        rejected_in_a_row: row.get::<_, i64>(5).unsigned_abs(),
        secret: fingerprint.zip(row.get(7)),
    }
}

fn rejected(row: &Row) -> Rejected {
    Rejected {
        id: row.get::<_, Uuid>(0).into(),
        source: SourceNo(row.get(1)),
        rejection: RejectionNote { at: row.get(2), reason: row.get(3), hint: row.get(4) },
        sender: row.get(5),
        method: row.get(6),
        url: row.get(7),
        body_bytes: row.get::<_, i64>(8).unsigned_abs(),
        headers: Vec::new(),
        body: Vec::new(),
        keep: 0,
    }
}
