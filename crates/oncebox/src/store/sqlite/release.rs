//! A safety net: held deliveries that nothing is in the way of any more.

use std::sync::Mutex;

use rusqlite::{Connection, Row, Transaction, params};

use super::clock::StoreClock;
use super::connection::in_transaction;
use super::guards::{self, Guarded, Ignores};
use super::rows::{halves, receipt_id, rules};
use crate::delivery::{DeliveryId, Judgement, judge};
use crate::limits;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{StoreError, Unblocked};

/// Where the round over held deliveries stands: the last one looked at.
pub(super) type Round = Mutex<Option<DeliveryId>>;

struct Held {
    guarded: Guarded,
    ignores: Ignores,
    rules: RouteRules,
}

/// Looks at the next page of held deliveries and lets go up to `limit` of them.
pub(super) fn unblocked(
    connection: &mut Connection,
    clock: &StoreClock,
    round: &Round,
    limit: usize,
) -> Result<Unblocked, StoreError> {
    let from = *round.lock().expect("no panic while it is held");
    let (released, next) = in_transaction(connection, |transaction| {
        let now = clock.now();
        let mut released = 0;
        let mut last = None;
        let page = held(transaction, from)?;
        let is_last_page = page.len() < limits::LIST_PAGE;
        for held in page {
            if released == limit {
                return Ok((released, last));
            }
            let delivery = held.guarded.delivery;
            let (guarded, ignores) = (&held.guarded, held.ignores);
            let facts = guards::facts(transaction, &held.rules, guarded, ignores, now)?;
            if !matches!(judge(&held.rules, &facts), Judgement::Hold(_)) {
                let head = halves(delivery.receipt).0;
                guards::release_one(transaction, head, delivery.route, now)?;
                released += 1;
            }
            last = Some(delivery);
        }
        Ok((released, last.filter(|_| !is_last_page)))
    })?;
    *round.lock().expect("no panic while it is held") = next;
    Ok(Unblocked { released, more: next.is_some() })
}

fn held(transaction: &Transaction<'_>, from: Option<DeliveryId>) -> rusqlite::Result<Vec<Held>> {
    let (route, head) = from.map_or((0, 0), |last| (last.route.0, halves(last.receipt).0));
    let mut statement = transaction.prepare_cached(include_str!("sql/find_held.sql"))?;
    let values = params![route, head, i64::try_from(limits::LIST_PAGE).unwrap_or(i64::MAX)];
    let rows = statement.query_map(values, |row: &Row<'_>| {
        let delivery = DeliveryId { receipt: receipt_id(row, 0)?, route: RouteNo(row.get(2)?) };
        Ok(Held {
            guarded: Guarded::read(delivery, row, 3)?,
            ignores: Ignores { stale: row.get(8)?, order: row.get(9)? },
            rules: rules(row, 10)?,
        })
    })?;
    rows.collect()
}
