//! Objects for the open deliveries of a route that has come to guard objects, in bounded steps.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tracing::info;

use super::connection::{in_transaction, run};
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{StoreError, words::FILLING};

/// Does one step for the route that is named, or for any. Says whether a route is left to go on
/// with, and whether one became complete.
pub(super) fn fill(
    connection: &mut Connection,
    route: Option<RouteNo>,
) -> Result<Filled, StoreError> {
    in_transaction(connection, |transaction| {
        let Some((number, name, after)) = find_filling(transaction, route)? else {
            return Ok(Filled::Nothing);
        };
        let receipts = unfilled(transaction, number, after)?;
        let texts: Vec<String> = receipts.iter().map(i64::to_string).collect();
        let values = params![number, format!("[{}]", texts.join(","))];
        run(transaction, include_str!("sql/fill_lanes.sql"), values)?;
        let is_last = receipts.len() < limits::FILL_ROWS;
        let next = receipts.last().filter(|_| !is_last);
        run(transaction, include_str!("sql/move_fill.sql"), params![number, next])?;
        if is_last && after > 0 {
            info!(route = name, "open deliveries have their objects; claims go on");
        } else if !is_last && after == 0 {
            info!(route = name, "{FILLING}");
        }
        Ok(if is_last { Filled::Route } else { Filled::Step })
    })
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// No route has to be filled.
    Nothing,
    /// A route is complete.
    Route,
    /// A route is not complete yet.
    Step,
}

fn find_filling(
    transaction: &Transaction<'_>,
    route: Option<RouteNo>,
) -> rusqlite::Result<Option<(i16, String, i64)>> {
    transaction
        .prepare_cached(include_str!("sql/find_filling.sql"))?
        .query_row([route.map(|route| route.0)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}

fn unfilled(transaction: &Transaction<'_>, route: i16, after: i64) -> rusqlite::Result<Vec<i64>> {
    let most = i64::try_from(limits::FILL_ROWS).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(include_str!("sql/find_unfilled.sql"))?;
    statement.query_map(params![route, after, most], |row| row.get(0))?.collect()
}
