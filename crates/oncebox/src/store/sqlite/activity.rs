//! What sources were sent lately, and what the server does while an `oncebox tail` runs.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::connection::{failure, in_transaction, run};
use super::rows::{halves, milliseconds, receipt_id, time, time_if_any};
use crate::limits;
use crate::receipt::{ReceiptId, SourceNo};
use crate::store::activity::kept_since;
use crate::store::{
    Activity, ActivityNote, Happening, Rejected, RejectedFilter, RejectionNote, SourceActivity,
    StoreError,
};

#[async_trait]
impl Activity for SqliteStore {
    async fn note_activity(
        &self,
        notes: Vec<ActivityNote>,
        rejected: Vec<Rejected>,
    ) -> Result<(), StoreError> {
        self.writer.run(move |db| note(db, &notes, &rejected)).await
    }

    async fn activity(&self) -> Result<Vec<SourceActivity>, StoreError> {
        self.readers.run(|db| activity(db).map_err(failure)).await
    }

    async fn rejected_list(&self, filter: &RejectedFilter) -> Result<Vec<Rejected>, StoreError> {
        let filter = *filter;
        let mut found = self.readers.run(move |db| list(db, &filter).map_err(failure)).await?;
        found.retain(|rejected| rejected.id >= filter.from && rejected.id <= filter.to);
        Ok(found)
    }

    async fn rejected(&self, id: ReceiptId) -> Result<Option<Rejected>, StoreError> {
        self.readers.run(move |db| find(db, id).map_err(failure)).await
    }

    async fn watch(&self, lasting: Duration) -> Result<(), StoreError> {
        let until = self.clock.now().saturating_add(milliseconds(lasting));
        let watch = move |db: &mut Connection| {
            in_transaction(db, |transaction| {
                run(transaction, include_str!("sql/watch.sql"), [until]).map(drop)
            })
        };
        self.writer.run(watch).await
    }

    async fn is_watched(&self) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let find = move |db: &Connection| {
            let mut statement = db.prepare_cached(include_str!("sql/find_watch.sql"))?;
            statement.query_row([now], |row| row.get(0))
        };
        self.look_ups.run(move |db| find(db).map_err(failure)).await
    }

    async fn note_happenings(&self, lines: Vec<Happening>) -> Result<(), StoreError> {
        self.writer.run(move |db| note_happenings(db, &lines)).await
    }

    async fn happenings(&self) -> Result<Vec<Happening>, StoreError> {
        self.readers.run(|db| happenings(db).map_err(failure)).await
    }
}

fn note(
    connection: &mut Connection,
    notes: &[ActivityNote],
    rejected: &[Rejected],
) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| {
        for note in notes {
            let rejection = note.rejection.as_ref();
            let values = params![
                note.source.0,
                note.accepted_at.map(Timestamp::as_millisecond),
                rejection.map(|rejection| rejection.at.as_millisecond()),
                rejection.map(|rejection| &rejection.reason),
                rejection.and_then(|rejection| rejection.hint.as_ref()),
                i64::try_from(note.rejected_in_a_row).unwrap_or(i64::MAX),
            ];
            run(transaction, include_str!("sql/note_activity.sql"), values)?;
            for (secret, at) in &note.secrets {
                let values = params![note.source.0, secret.0, at.as_millisecond()];
                run(transaction, include_str!("sql/use_secret.sql"), values)?;
            }
        }
        for rejected in rejected {
            keep(transaction, rejected)?;
        }
        Ok(())
    })
}

fn keep(transaction: &Connection, rejected: &Rejected) -> rusqlite::Result<()> {
    let (head, tail) = halves(rejected.id);
    let RejectionNote { at, reason, hint } = &rejected.rejection;
    let values = params![
        head,
        tail,
        rejected.source.0,
        at.as_millisecond(),
        reason,
        hint,
        rejected.sender,
        rejected.method,
        rejected.url,
        i64::try_from(rejected.body_bytes).unwrap_or(i64::MAX),
        rejected.headers,
        rejected.body,
    ];
    run(transaction, include_str!("sql/insert_rejected.sql"), values)?;
    let values = params![rejected.source.0, reason, rejected.keep];
    run(transaction, include_str!("sql/trim_rejected.sql"), values).map(drop)
}

/// Removes rejected requests that were kept long enough; run where counts are added up.
pub(super) fn prune(transaction: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let values = [halves(kept_since(now)).0];
    run(transaction, include_str!("sql/prune_rejected.sql"), values).map(drop)
}

fn activity(connection: &Connection) -> rusqlite::Result<Vec<SourceActivity>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_activity.sql"))?;
    let rows = statement.query_map([], |row| {
        let rejected_at = time_if_any(row, 2)?;
        let (reason, hint): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
        let rejection =
            rejected_at.zip(reason).map(|(at, reason)| RejectionNote { at, reason, hint });
        let fingerprint: Option<String> = row.get(6)?;
        Ok(SourceActivity {
            source: SourceNo(row.get(0)?),
            accepted_at: time_if_any(row, 1)?,
            rejection,
            rejected_in_a_row: row.get::<_, i64>(5)?.unsigned_abs(),
            secret: fingerprint.zip(time_if_any(row, 7)?),
        })
    })?;
    rows.collect()
}

fn list(connection: &Connection, filter: &RejectedFilter) -> rusqlite::Result<Vec<Rejected>> {
    let high = halves(filter.to).0;
    let values = params![
        halves(filter.from).0,
        if high < 0 { i64::MAX } else { high },
        filter.source.map(|source| source.0),
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    let mut statement = connection.prepare_cached(include_str!("sql/list_rejected.sql"))?;
    statement.query_map(values, rejected)?.collect()
}

fn find(connection: &Connection, id: ReceiptId) -> rusqlite::Result<Option<Rejected>> {
    let (head, tail) = halves(id);
    let mut statement = connection.prepare_cached(include_str!("sql/find_rejected.sql"))?;
    let whole = |row: &Row<'_>| {
        Ok(Rejected { headers: row.get(10)?, body: row.get(11)?, ..rejected(row)? })
    };
    statement.query_row(params![head, tail], whole).optional()
}

fn rejected(row: &Row<'_>) -> rusqlite::Result<Rejected> {
    Ok(Rejected {
        id: receipt_id(row, 0)?,
        source: SourceNo(row.get(2)?),
        rejection: RejectionNote { at: time(row, 3)?, reason: row.get(4)?, hint: row.get(5)? },
        sender: row.get(6)?,
        method: row.get(7)?,
        url: row.get(8)?,
        body_bytes: row.get::<_, i64>(9)?.unsigned_abs(),
        headers: Vec::new(),
        body: Vec::new(),
        keep: 0,
    })
}

fn note_happenings(connection: &mut Connection, lines: &[Happening]) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| {
        for Happening { at, line, .. } in lines {
            let values = params![at.as_millisecond(), line];
            run(transaction, include_str!("sql/insert_happening.sql"), values)?;
        }
        let Some(newest) = lines.iter().map(|line| line.at).max() else { return Ok(()) };
        let oldest = newest.as_millisecond() - milliseconds(limits::HAPPENINGS_KEPT);
        run(transaction, include_str!("sql/prune_happenings.sql"), [oldest]).map(drop)
    })
}

fn happenings(connection: &Connection) -> rusqlite::Result<Vec<Happening>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_happenings.sql"))?;
    let line =
        |row: &Row<'_>| Ok(Happening { no: row.get(0)?, at: time(row, 1)?, line: row.get(2)? });
    statement.query_map([], line)?.collect()
}
