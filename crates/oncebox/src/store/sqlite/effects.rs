//! Effects as they are read. One that was started is unknown once its lease has ended, whether or
//! not that was written down.

use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::connection::failure;
use super::rows::{halves, receipt_id, time, time_if_any};
use crate::delivery::DeliveryId;
use crate::effect::{Effect, EffectKind, EffectState, Evidence, Under};
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{EffectConflict, EffectFilter, EffectTally, StoreError};

/// An effect, with what writers have to know besides.
pub(super) struct Found {
    /// As it is read.
    pub(super) effect: Effect,
    epoch: i64,
    pub(super) digest: Option<[u8; 16]>,
}

impl Found {
    /// Whether a caller, under its lease, did it or was at it last.
    pub(super) fn is_of(&self, under: Under) -> bool {
        self.effect.delivery == under.delivery && self.epoch == under.lease.0
    }
}

/// Finds an effect for whoever comes upon it; it is not told of all conflicts.
pub(super) fn find(db: &Connection, key: &str, now: i64) -> rusqlite::Result<Option<Found>> {
    find_counting(db, key, now, i64::from(limits::CONFLICTS_TOLD))
}

fn find_counting(
    db: &Connection,
    key: &str,
    now: i64,
    conflicts: i64,
) -> rusqlite::Result<Option<Found>> {
    let mut statement = db.prepare_cached(include_str!("sql/find_effect.sql"))?;
    let found = statement.query_row(params![key, now, conflicts], |row| {
        Ok(Found { effect: read(row)?, epoch: row.get(15)?, digest: row.get(16)? })
    });
    found.optional()
}

/// Finds one effect as lists have it, with all of its conflicts counted.
pub(super) fn effect(db: &Connection, key: &str, now: i64) -> Result<Option<Effect>, StoreError> {
    Ok(find_counting(db, key, now, -1).map_err(failure)?.map(|found| found.effect))
}

/// Reads fifteen columns: the effect as it is read.
fn read(row: &Row<'_>) -> rusqlite::Result<Effect> {
    let (kind, state): (String, String) = (row.get(1)?, row.get(2)?);
    let kind = EffectKind::of(&kind).ok_or_else(|| no_such_word(1))?;
    let state = EffectState::of(&state).ok_or_else(|| no_such_word(2))?;
    let lapsed = state == EffectState::Started && !row.get::<_, bool>(14)?;
    let evidence = match time_if_any(row, 12)? {
        Some(at) => Some(Evidence { at, result: row.get(13)? }),
        None => None,
    };
    Ok(Effect {
        key: row.get(0)?,
        kind,
        state: if lapsed { EffectState::Unknown } else { state },
        delivery: DeliveryId { receipt: receipt_id(row, 3)?, route: RouteNo(row.get(5)?) },
        route: row.get(6)?,
        attempt: row.get(7)?,
        at: time(row, 8)?,
        result: row.get(9)?,
        unknowns: row.get::<_, u32>(10)? + u32::from(lapsed),
        conflicts: row.get(11)?,
        evidence,
    })
}

fn no_such_word(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "no such word".into())
}

/// Effects, in the order of their keys. What is open is found by an index of its own, and so are
/// those of a receipt: either is little among very many.
pub(super) fn list(
    db: &Connection,
    filter: &EffectFilter,
    now: i64,
) -> Result<Vec<Effect>, StoreError> {
    let (from, to) = span(filter);
    let kind = filter.kind.map(EffectKind::as_str);
    let (head, tail) = filter.receipt.map(halves).unzip();
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let listed = match (filter.state, head) {
        (Some(state @ (EffectState::Started | EffectState::Unknown)), head) => {
            let started = state == EffectState::Started;
            let values = params![now, from, to, kind, started, head, tail, limit];
            rows(db, include_str!("sql/list_open_effects.sql"), values)
        }
        (state, Some(head)) => {
            let state = state.map(EffectState::as_str);
            let values = params![now, from, to, kind, state, head, tail, limit];
            rows(db, include_str!("sql/list_receipt_effects.sql"), values)
        }
        (state, None) => {
            let state = state.map(EffectState::as_str);
            let values = params![now, from, to, kind, state, limit];
            rows(db, include_str!("sql/list_effects.sql"), values)
        }
    };
    listed.map_err(failure)
}

fn rows(db: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<Vec<Effect>> {
    db.prepare_cached(sql)?.query_map(values, read)?.collect()
}

/// The keys a filter is about: from one to before another. One bound on each side: of two SQLite
/// would search by one and read past the other.
fn span(filter: &EffectFilter) -> (String, Value) {
    let (prefix, past) = filter.span();
    let after = filter.after.as_ref().map(|last| format!("{last}\0")).unwrap_or_default();
    // Every text is before every blob.
    let to = past.map_or(Value::Blob(Vec::new()), Value::Text);
    (after.max(prefix.to_owned()), to)
}

pub(super) fn conflicts(
    db: &Connection,
    key: &str,
    limit: usize,
) -> Result<Vec<EffectConflict>, StoreError> {
    let list = || -> rusqlite::Result<Vec<EffectConflict>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = db.prepare_cached(include_str!("sql/list_conflicts.sql"))?;
        let rows = statement.query_map(params![key, limit], |row| {
            Ok(EffectConflict {
                receipt: receipt_id(row, 0)?,
                route: row.get(2)?,
                at: time(row, 3)?,
                differs: row.get(4)?,
            })
        })?;
        rows.collect()
    };
    list().map_err(failure)
}

pub(super) fn count_conflicts(db: &Connection) -> Result<u64, StoreError> {
    let count = || -> rusqlite::Result<i64> {
        let mut statement = db.prepare_cached(include_str!("sql/count_conflicts.sql"))?;
        statement.query_row([], |row| row.get(0))
    };
    Ok(count().map_err(failure)?.unsigned_abs())
}

pub(super) fn tally(db: &Connection, now: i64) -> Result<Vec<EffectTally>, StoreError> {
    let count = || -> rusqlite::Result<Vec<EffectTally>> {
        let mut statement = db.prepare_cached(include_str!("sql/tally_effects.sql"))?;
        let rows = statement.query_map([now], |row| {
            let state: String = row.get(0)?;
            Ok(EffectTally {
                state: EffectState::of(&state).ok_or_else(|| no_such_word(0))?,
                count: row.get::<_, i64>(1)?.unsigned_abs(),
                oldest: time_if_any(row, 2)?,
            })
        })?;
        rows.collect()
    };
    count().map_err(failure)
}
