//! Rows to values and back.

use std::time::Duration;

use jiff::Timestamp;
use oncebox_verify::Trust;
use rusqlite::Row;
use rusqlite::types::Type;

use crate::receipt::ReceiptId;

/// The two integers a receipt id is kept as.
pub(super) fn halves(id: ReceiptId) -> (i64, i64) {
    let (head, tail) = id.as_uuid().as_u64_pair();
    (head.cast_signed(), tail.cast_signed())
}

/// The receipt id kept in two columns.
pub(super) fn receipt_id(row: &Row<'_>, head: usize) -> rusqlite::Result<ReceiptId> {
    Ok(whole(row.get(head)?, row.get(head + 1)?))
}

/// The receipt id of two halves.
pub(super) fn whole(head: i64, tail: i64) -> ReceiptId {
    uuid::Uuid::from_u64_pair(head.cast_unsigned(), tail.cast_unsigned()).into()
}

/// A length of time as it is kept.
pub(super) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A time kept in milliseconds.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let milliseconds = row.get(column)?;
    Timestamp::from_millisecond(milliseconds)
        .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, milliseconds))
}

/// A time that may be missing.
pub(super) fn time_if_any(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => time(row, column).map(Some),
        None => Ok(None),
    }
}

/// How an identity is trusted, from its word.
pub(super) fn trust(row: &Row<'_>, column: usize) -> rusqlite::Result<Trust> {
    let word: String = row.get(column)?;
    crate::store::words::trust(&word).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "no such trust".into())
    })
}
