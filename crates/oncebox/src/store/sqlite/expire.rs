//! Removing what has expired: found on a reader, removed by the writer in one short transaction.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::connection::failure;
use super::rows::{halves, whole};
use crate::limits;
use crate::receipt::SourceNo;
use crate::store::{ExpireRange, ExpireStep, StoreError, SweepCursor};

/// What a step of retention saw among the receipts.
pub(super) struct Seen {
    last: Option<i64>,
    expired: Vec<i64>,
}

impl Seen {
    /// How far the step came, and the rows to remove.
    pub(super) fn into_step(self) -> (ExpireStep, Vec<i64>) {
        // The second half of the cursor does not matter: rows are told apart by the first.
        let next = self.last.map(|head| whole(head, 0));
        (ExpireStep { next, removed: 0 }, self.expired)
    }
}

pub(super) fn expirable_receipts(
    connection: &Connection,
    range: &ExpireRange,
) -> Result<Seen, StoreError> {
    let look = || -> rusqlite::Result<Seen> {
        let mut statement =
            connection.prepare_cached(include_str!("sql/expirable_receipts.sql"))?;
        let (after, before) = (halves(range.after).0, halves(range.before).0);
        let mut rows = statement.query(params![after, before, limits::EXPIRE_ROWS])?;
        let mut seen = Seen { last: None, expired: Vec::new() };
        while let Some(row) = rows.next()? {
            let (head, source, open): (i64, i16, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            seen.last = Some(head);
            if !open && range.sources.contains(&SourceNo(source)) {
                seen.expired.push(head);
            }
        }
        Ok(seen)
    };
    look().map_err(failure)
}

pub(super) fn delete_receipts(
    connection: &mut Connection,
    heads: &[i64],
) -> Result<usize, StoreError> {
    let mut delete = || -> rusqlite::Result<usize> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut removed = 0;
        let mut freed: BTreeMap<i16, i64> = BTreeMap::new();
        for head in heads {
            let gone = transaction
                .prepare_cached(include_str!("sql/delete_receipt.sql"))?
                .query_row(params![head], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))
                .optional()?;
            let Some((source, bytes)) = gone else { continue };
            removed += 1;
            *freed.entry(source).or_default() += bytes;
        }
        for (source, bytes) in freed {
            transaction
                .prepare_cached(include_str!("sql/add_stored.sql"))?
                .execute(params![source, -bytes])?;
        }
        transaction.commit()?;
        Ok(removed)
    };
    delete().map_err(failure)
}

/// An identity that may go: its source, its key, and the day it must not have been seen since.
type Expired = (i16, Vec<u8>, i32);

/// What a step of the sweep saw.
pub(super) struct Swept {
    pub(super) next: Option<SweepCursor>,
    pub(super) expired: Vec<Expired>,
}

pub(super) fn sweep(
    connection: &Connection,
    from: &SweepCursor,
    bounds: &[(SourceNo, i32)],
) -> Result<Swept, StoreError> {
    let (source, key) = decode(from);
    let look = || -> rusqlite::Result<Swept> {
        let mut statement = connection.prepare_cached(include_str!("sql/sweep_identities.sql"))?;
        let mut rows = statement.query(params![source, key, limits::SWEEP_ROWS])?;
        let mut swept = Swept { next: None, expired: Vec::new() };
        while let Some(row) = rows.next()? {
            let (source, key, last_seen): (i16, Vec<u8>, i32) =
                (row.get(0)?, row.get(1)?, row.get(3)?);
            swept.next = Some(encode(source, &key));
            let bound = bounds.iter().find(|(bounded, _)| bounded.0 == source);
            if let Some((_, bound)) = bound.filter(|(_, bound)| last_seen < *bound) {
                swept.expired.push((source, key, *bound));
            }
        }
        Ok(swept)
    };
    look().map_err(failure)
}

pub(super) fn delete_identities(
    connection: &mut Connection,
    expired: &[Expired],
) -> Result<usize, StoreError> {
    let mut delete = || -> rusqlite::Result<usize> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut removed = 0;
        for (source, key, bound) in expired {
            removed += transaction
                .prepare_cached(include_str!("sql/delete_identity.sql"))?
                .execute(params![source, key, bound])?;
        }
        transaction.commit()?;
        Ok(removed)
    };
    delete().map_err(failure)
}

fn encode(source: i16, key: &[u8]) -> SweepCursor {
    SweepCursor([&source.to_be_bytes()[..], key].concat())
}

fn decode(cursor: &SweepCursor) -> (i16, &[u8]) {
    match cursor.0.split_first_chunk() {
        Some((source, key)) => (i16::from_be_bytes(*source), key),
        None => (0, &[]),
    }
}
