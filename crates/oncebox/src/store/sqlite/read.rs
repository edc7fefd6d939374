//! Lists and look-ups.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::connection::failure;
use super::guards::receipt_if_any;
use super::rows::{halves, receipt_id, time, time_if_any, trust, whole};
use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Mark, Oddity, Part, ReceiptId, ReceiptMint, SecretNo, SourceNo};
use crate::store::{
    DeliveryView, OddView, Receipt, ReceiptFilter, ReceiptSummary, Repeat, StoreError, words,
};

pub(super) fn receipts(
    connection: &Connection,
    filter: &ReceiptFilter,
) -> Result<Vec<ReceiptSummary>, StoreError> {
    let head = |id: ReceiptId| halves(id).0;
    let values = params![
        filter.before.map_or(i64::MAX, head),
        filter.since.map_or(0, |since| head(ReceiptId::floor(since))),
        filter.until.map_or(i64::MAX, |until| head(ReceiptId::floor(until))),
        filter.source,
        filter.event_type.as_deref().map(glob),
        filter.event_id,
        filter.object,
        filter.unrouted,
        filter.odd,
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    let mut statement =
        connection.prepare_cached(include_str!("sql/list_receipts.sql")).map_err(failure)?;
    let rows = statement.query_map(values, summary).map_err(failure)?;
    let mut receipts: Vec<ReceiptSummary> = rows.collect::<Result<_, _>>().map_err(failure)?;
    for receipt in &mut receipts {
        receipt.deliveries = deliveries(connection, receipt.receipt).map_err(failure)?;
    }
    Ok(receipts)
}

pub(super) fn receipt(
    connection: &Connection,
    id: ReceiptId,
) -> Result<Option<Receipt>, StoreError> {
    let (head, tail) = halves(id);
    let mut statement =
        connection.prepare_cached(include_str!("sql/find_receipt.sql")).map_err(failure)?;
    let found = statement
        .query_row(params![head, tail], |row| {
            Ok(Receipt {
                summary: summary(row)?,
                secret: (SecretNo(row.get(18)?), row.get(19)?),
                signed_at: time_if_any(row, 20)?,
                headers: row.get(21)?,
                body: row.get(22)?,
                digest: row.get(23)?,
                part: part(row, 24)?,
                odd: Vec::new(),
            })
        })
        .optional()
        .map_err(failure)?;
    let Some(mut receipt) = found else { return Ok(None) };
    receipt.summary.deliveries = deliveries(connection, id).map_err(failure)?;
    receipt.odd = odd_receipts(connection, id).map_err(failure)?;
    Ok(Some(receipt))
}

pub(super) fn identity(
    connection: &Connection,
    source: SourceNo,
    key: IdentityKey,
) -> Result<Option<ReceiptId>, StoreError> {
    connection
        .prepare_cached(include_str!("sql/find_identity.sql"))
        .and_then(|mut statement| {
            statement
                .query_row(params![source.0, key.as_bytes()], |row| {
                    Ok(whole(row.get(0)?, row.get(1)?))
                })
                .optional()
        })
        .map_err(failure)
}

pub(super) fn newest(connection: &Connection) -> Result<Option<ReceiptId>, StoreError> {
    connection
        .query_row(include_str!("sql/newest_receipt.sql"), [], |row| receipt_id(row, 0))
        .optional()
        .map_err(failure)
}

/// A mint that repeats no id of this file.
pub(super) fn mint(connection: &Connection, now: Timestamp) -> Result<ReceiptMint, StoreError> {
    ReceiptMint::beside(newest(connection)?, now, |from| {
        connection
            .prepare_cached(include_str!("sql/next_receipt.sql"))
            .and_then(|mut next| {
                next.query_row([halves(from).0], |row| receipt_id(row, 0)).optional()
            })
            .map_err(failure)
    })
}

/// Whether the file can be read at all.
pub(super) fn ping(connection: &Connection) -> Result<(), StoreError> {
    connection
        .prepare_cached(include_str!("sql/list_sources.sql"))
        .and_then(|mut statement| statement.query([])?.next().map(drop))
        .map_err(failure)
}

/// The request an event came in together with others, from five columns.
pub(super) fn part(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Part>> {
    if row.get::<_, Option<i64>>(first)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Part {
        request: receipt_id(row, first)?,
        position: row.get(first + 2)?,
        count: row.get(first + 3)?,
        whole: row.get::<_, Vec<u8>>(first + 4)?.into(),
    }))
}

fn summary(row: &Row<'_>) -> rusqlite::Result<ReceiptSummary> {
    let receipt = receipt_id(row, 0)?;
    let repeats = match row.get::<_, Option<u32>>(10)? {
        Some(duplicates) => Some(Repeat {
            receipt,
            duplicates,
            conflicts: row.get(11)?,
            twins: row.get(12)?,
            first_at: time(row, 13)?,
            last_at: time(row, 14)?,
        }),
        None => None,
    };
    Ok(ReceiptSummary {
        receipt,
        source: row.get(2)?,
        event_id: row.get(3)?,
        trust: trust(row, 4)?,
        event_type: row.get(5)?,
        object: row.get(6)?,
        version: row.get(7)?,
        received_at: time(row, 8)?,
        bytes: row.get(9)?,
        repeats,
        mark: mark(row, 15)?,
        deliveries: Vec::new(),
    })
}

/// How a receipt is marked, from three columns.
pub(super) fn mark(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Mark>> {
    let oddity: Option<String> = row.get(first)?;
    Ok(words::mark(oddity.as_deref(), receipt_if_any(row, first + 1)?))
}

fn deliveries(connection: &Connection, id: ReceiptId) -> rusqlite::Result<Vec<DeliveryView>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_deliveries.sql"))?;
    let rows = statement.query_map(params![halves(id).0], |row| {
        Ok(DeliveryView {
            route: row.get(0)?,
            state: row.get(1)?,
            reason: row.get(2)?,
            attempts: row.get(3)?,
        })
    })?;
    rows.collect()
}

fn odd_receipts(connection: &Connection, first: ReceiptId) -> rusqlite::Result<Vec<OddView>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_odd_receipts.sql"))?;
    let (head, tail) = halves(first);
    let rows = statement.query_map(params![head, tail, limits::ODD_SHOWN], |row| {
        let word: String = row.get(2)?;
        Ok(OddView {
            receipt: receipt_id(row, 0)?,
            oddity: Oddity::of(&word).ok_or(rusqlite::Error::InvalidQuery)?,
            event_id: row.get(3)?,
            event_type: row.get(4)?,
            received_at: time(row, 5)?,
        })
    })?;
    rows.collect()
}

/// A pattern in which only `*` is special, as SQLite's GLOB wants it.
pub(super) fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        match character {
            '[' => glob.push_str("[[]"),
            '?' => glob.push_str("[?]"),
            other => glob.push(other),
        }
    }
    glob
}
