//! Opening deliveries again.

use rusqlite::{Transaction, params};

use super::connection::run;
use super::rescue::find_standing;
use super::rollups::count_opened;
use super::rows::halves;
use crate::delivery::{DeliveryId, State};
use crate::replay::{How, Reopened};

/// Opens a delivery again; where its route never took the receipt, only if it is to `fill`.
pub(super) fn reopen(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    fill: bool,
    how: How,
    now: i64,
) -> rusqlite::Result<Reopened> {
    let Some(standing) = find_standing(transaction, delivery)? else {
        return match fill && fill_in(transaction, delivery, how, now)? {
            true => Ok(Reopened::Opened),
            false => Ok(Reopened::Gone),
        };
    };
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    match standing.state {
        State::Dead | State::Held => {
            let values = params![head, route, now, how.ignore_stale];
            run(transaction, include_str!("sql/reopen_open.sql"), values)?;
        }
        State::Skipped => reopen_finished(transaction, delivery, how, now)?,
        State::Processed if how.force => reopen_finished(transaction, delivery, how, now)?,
        other => return Ok(Reopened::Left(other)),
    }
    Ok(Reopened::Opened)
}

fn reopen_finished(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    how: How,
    now: i64,
) -> rusqlite::Result<()> {
    let (head, route) = (halves(delivery.receipt).0, delivery.route.0);
    run(transaction, include_str!("sql/keep_attempt.sql"), params![head, route])?;
    let values = params![head, route, now, how.ignore_stale];
    if run(transaction, include_str!("sql/reopen_finished.sql"), values)? == 1 {
        count_opened(transaction, delivery.route)?;
    }
    run(transaction, include_str!("sql/remove_finished.sql"), params![head, route]).map(drop)
}

/// Makes a delivery for a route that never took the receipt; false if there is no such receipt.
fn fill_in(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    how: How,
    now: i64,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(delivery.receipt);
    let values = params![head, tail, delivery.route.0, now, how.ignore_stale];
    if run(transaction, include_str!("sql/fill_delivery.sql"), values)? == 0 {
        return Ok(false);
    }
    count_opened(transaction, delivery.route)?;
    run(transaction, include_str!("sql/mark_routed.sql"), [head])?;
    Ok(true)
}
