//! Rows to values and back.

use std::time::Duration;

use jiff::Timestamp;
use oncebox_verify::Trust;
use rusqlite::Row;
use rusqlite::types::Type;

use crate::delivery::{Reason, State};
use crate::receipt::ReceiptId;
use crate::route::RouteRules;
use crate::store::words;

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

/// A time of the store's clock.
pub(super) fn moment(ms: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(ms).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, ms))
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
    words::trust(&word).ok_or_else(|| unknown_word(column))
}

/// A state, from its word.
pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let word: String = row.get(column)?;
    State::of(&word).ok_or_else(|| unknown_word(column))
}

/// A state that may be missing.
pub(super) fn state_if_any(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<State>> {
    let word: Option<String> = row.get(column)?;
    word.map(|word| State::of(&word).ok_or_else(|| unknown_word(column))).transpose()
}

/// A reason, from its word.
pub(super) fn reason_if_any(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Reason>> {
    let word: Option<String> = row.get(column)?;
    word.map(|word| Reason::of(&word).ok_or_else(|| unknown_word(column))).transpose()
}

/// The rules of a route, from twelve columns in the order of `list_routes.sql`.
pub(super) fn rules(row: &Row<'_>, first: usize) -> rusqlite::Result<RouteRules> {
    let on_dead: String = row.get(first + 8)?;
    Ok(RouteRules {
        base: duration(row, first)?,
        cap: duration(row, first + 1)?,
        longest_wait: duration(row, first + 2)?,
        same_operation: duration_if_any(row, first + 3)?,
        max_attempts: row.get(first + 4)?,
        max_snoozes: row.get(first + 5)?,
        ordered: row.get(first + 6)?,
        skip_stale: row.get(first + 7)?,
        on_dead: words::on_dead(&on_dead).ok_or_else(|| unknown_word(first + 8))?,
        pulled: row.get(first + 9)?,
        budget: duration_if_any(row, first + 10)?,
        hold_for: duration(row, first + 11)?,
    })
}

/// A length of time.
pub(super) fn duration(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    Ok(Duration::from_millis(row.get::<_, i64>(column)?.unsigned_abs()))
}

/// A length of time that may be missing.
pub(super) fn duration_if_any(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Duration>> {
    let milliseconds: Option<i64> = row.get(column)?;
    Ok(milliseconds.map(|milliseconds| Duration::from_millis(milliseconds.unsigned_abs())))
}

fn unknown_word(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "no such word".into())
}
