//! Secrets that a provider sets in a handshake.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::SqliteStore;
use super::acts::note;
use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::rows::{milliseconds, time};
use crate::limits;
use crate::receipt::SourceNo;
use crate::sealed::Sealed;
use crate::store::pairings::{Window, answer, by_handshake};
use crate::store::{Act, Paired, PairedNo, PairedSecret, Pairing, Pairings, StoreError};

#[async_trait]
impl Pairings for SqliteStore {
    async fn open_pairing(
        &self,
        source: SourceNo,
        open_for: Duration,
        act: &Act,
    ) -> Result<Pairing, StoreError> {
        let (clock, act) = (self.clock.clone(), act.clone());
        self.writer.run(move |db| open(db, &clock, source, open_for, &act)).await
    }

    async fn close_pairing(&self, source: SourceNo, act: &Act) -> Result<bool, StoreError> {
        let (clock, act) = (self.clock.clone(), act.clone());
        self.writer.run(move |db| close(db, &clock, source, &act)).await
    }

    async fn pairing(&self, source: SourceNo) -> Result<Option<Pairing>, StoreError> {
        let now = self.clock.now();
        let window = self.look_ups.run(move |db| find(db, source, now).map_err(failure)).await?;
        Ok(window.map(|window| window.pairing()))
    }

    async fn pair(
        &self,
        source: SourceNo,
        secret: &Sealed,
        at: Timestamp,
    ) -> Result<Paired, StoreError> {
        let (clock, secret) = (self.clock.clone(), secret.clone());
        self.writer.run(move |db| pair(db, &clock, source, &secret, at)).await
    }

    async fn paired_secrets(&self, source: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
        self.look_ups.run(move |db| list(db, source)).await
    }

    async fn remove_paired_secret(
        &self,
        source: SourceNo,
        no: PairedNo,
        act: &Act,
    ) -> Result<bool, StoreError> {
        let act = act.clone();
        self.writer.run(move |db| remove(db, source, no, &act)).await
    }
}

fn open(
    connection: &mut Connection,
    clock: &StoreClock,
    source: SourceNo,
    open_for: Duration,
    act: &Act,
) -> Result<Pairing, StoreError> {
    let open_for = milliseconds(open_for.min(limits::PAIRING_LONGEST));
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let values = params![source.0, now, now + open_for];
        run(transaction, include_str!("sql/open_pairing.sql"), values)?;
        note(transaction, act, "source.pair", &name(transaction, source)?)?;
        let window = find(transaction, source, now)?;
        Ok(window.ok_or(rusqlite::Error::QueryReturnedNoRows)?.pairing())
    })
}

fn close(
    connection: &mut Connection,
    clock: &StoreClock,
    source: SourceNo,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let values = params![source.0, clock.now()];
        if run(transaction, include_str!("sql/close_pairing.sql"), values)? == 0 {
            return Ok(false);
        }
        note(transaction, act, "source.unpair", &name(transaction, source)?)?;
        Ok(true)
    })
}

fn pair(
    connection: &mut Connection,
    clock: &StoreClock,
    source: SourceNo,
    secret: &Sealed,
    at: Timestamp,
) -> Result<Paired, StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let window = find(transaction, source, now)?;
        let (known, kept) = transaction
            .prepare_cached(include_str!("sql/find_paired_secret.sql"))?
            .query_row(params![source.0, secret.mark], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let no = match answer(window.as_ref(), known, kept) {
            Ok(no) => no,
            Err(told) => return Ok(told),
        };
        let values = params![source.0, no.0, now];
        if run(transaction, include_str!("sql/take_pairing.sql"), values)? == 0 {
            return Ok(Paired::Closed);
        }
        let at_ms = at.as_millisecond();
        let values = params![source.0, no.0, secret.mark, secret.fingerprint, at_ms, secret.bytes];
        run(transaction, include_str!("sql/insert_paired_secret.sql"), values)?;
        let subject = subject(transaction, source, no)?;
        note(transaction, &by_handshake(at), "secret.paired", &subject)?;
        Ok(Paired::New(no))
    })
}

fn list(connection: &Connection, source: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
    let secret = |row: &Row<'_>| {
        Ok(PairedSecret {
            no: PairedNo(row.get(0)?),
            fingerprint: row.get(1)?,
            sealed: row.get(2)?,
            paired_at: time(row, 3)?,
        })
    };
    connection
        .prepare_cached(include_str!("sql/list_paired_secrets.sql"))
        .and_then(|mut statement| statement.query_map([source.0], secret)?.collect())
        .map_err(failure)
}

fn remove(
    connection: &mut Connection,
    source: SourceNo,
    no: PairedNo,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let values = params![source.0, no.0];
        if run(transaction, include_str!("sql/remove_paired_secret.sql"), values)? == 0 {
            return Ok(false);
        }
        note(transaction, act, "secret.remove", &subject(transaction, source, no)?)?;
        Ok(true)
    })
}

fn find(connection: &Connection, source: SourceNo, now: i64) -> rusqlite::Result<Option<Window>> {
    connection
        .prepare_cached(include_str!("sql/find_pairing.sql"))?
        .query_row(params![source.0, now], |row| {
            Ok(Window {
                opened_at: time(row, 0)?,
                until: time(row, 1)?,
                runs: row.get(2)?,
                paired: row.get::<_, Option<i16>>(3)?.map(PairedNo),
                last: PairedNo(row.get(4)?),
            })
        })
        .optional()
}

fn name(transaction: &Transaction<'_>, source: SourceNo) -> rusqlite::Result<String> {
    let sql = include_str!("sql/find_source_name.sql");
    transaction.query_row(sql, [source.0], |row| row.get(0))
}

fn subject(
    transaction: &Transaction<'_>,
    source: SourceNo,
    no: PairedNo,
) -> rusqlite::Result<String> {
    Ok(format!("{}/{}", name(transaction, source)?, no.0))
}
