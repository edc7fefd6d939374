//! Removing receipts that have expired: found on a reader, removed by the writer in one short
//! transaction.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::acts::note;
use super::connection::{failure, run};
use super::rows::{halves, whole};
use crate::delivery::DeliveryId;
use crate::limits;
use crate::receipt::{RouteNo, SourceNo};
use crate::store::{Act, ExpireRange, ExpireStep, StoreError};

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
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let (head, source, open): (i64, i16, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if !open && range.sources.contains(&SourceNo(source)) {
                bytes += row.get::<_, i64>(3)?;
                if bytes > limits::EXPIRE_BYTES && !seen.expired.is_empty() {
                    break;
                }
                seen.expired.push(head);
            }
            seen.last = Some(head);
        }
        Ok(seen)
    };
    look().map_err(failure)
}

pub(super) fn delete_receipts(
    connection: &mut Connection,
    heads: &[i64],
    act: &Act,
) -> Result<usize, StoreError> {
    let mut delete = || -> rusqlite::Result<usize> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut removed = 0;
        let mut freed: BTreeMap<i16, i64> = BTreeMap::new();
        let mut requests: BTreeSet<i64> = BTreeSet::new();
        for head in heads {
            discard_odd(&transaction, *head, act)?;
            let gone = transaction
                .prepare_cached(include_str!("sql/delete_receipt.sql"))?
                .query_row(params![head], |row| {
                    Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<i64>>(2)?))
                })
                .optional()?;
            let Some((source, bytes, request)) = gone else { continue };
            run(&transaction, include_str!("sql/delete_finished.sql"), [head])?;
            run(&transaction, include_str!("sql/delete_attempts.sql"), [head])?;
            removed += 1;
            *freed.entry(source).or_default() += bytes;
            requests.extend(request);
        }
        for request in requests {
            if let Some((source, bytes)) = delete_request(&transaction, request)? {
                *freed.entry(source).or_default() += bytes;
            }
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

/// Discards deliveries that are held as twin or conflict, with a line of the audit for each.
fn discard_odd(transaction: &Transaction<'_>, head: i64, act: &Act) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(include_str!("sql/discard_odd.sql"))?;
    let discarded = statement.query_map([head], |row| {
        let receipt = whole(head, row.get(1)?);
        Ok(DeliveryId { receipt, route: RouteNo(row.get(0)?) })
    })?;
    for delivery in discarded.collect::<rusqlite::Result<Vec<_>>>()? {
        note(transaction, act, "delivery.discard", &delivery.to_string())?;
    }
    Ok(())
}

/// Removes a request if none of its events is left. Says whose it was and how many bytes of it
/// were counted.
fn delete_request(
    transaction: &Transaction<'_>,
    request: i64,
) -> rusqlite::Result<Option<(i16, i64)>> {
    transaction
        .prepare_cached(include_str!("sql/delete_request.sql"))?
        .query_row(params![request], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}
