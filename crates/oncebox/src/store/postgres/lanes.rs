//! Objects for the open deliveries of a route that has come to guard objects, in bounded steps.

use deadpool_postgres::Object;
use tracing::info;
use uuid::Uuid;

use super::connect::{execute, failure, query};
use super::locks;
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{StoreError, words::FILLING};

/// Does one step for the route that is named, or for any that no other node is at. Says whether a
/// route is left to go on with at once. A delivery that another transaction has locked keeps its
/// route from being complete, and no other delivery from getting its object.
pub(super) async fn fill(client: &mut Object, route: Option<RouteNo>) -> Result<bool, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    locks::wait_for(&transaction, limits::FILL_LOCK_WAIT).await?;
    let named = route.map(|route| route.0);
    let rows = query(&transaction, include_str!("sql/find_filling.sql"), &[&named]).await?;
    let Some(row) = rows.first() else { return Ok(false) };
    let (number, name, after): (i16, &str, Uuid) = (row.get(0), row.get(1), row.get(2));
    let most = i64::try_from(limits::FILL_ROWS).unwrap_or(i64::MAX);
    let sql = include_str!("sql/find_unfilled.sql");
    let rows = query(&transaction, sql, &[&number, &after, &most]).await?;
    let receipts: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    let sql = include_str!("sql/lock_unlaned.sql");
    let unlaned = query(&transaction, sql, &[&number, &receipts]).await?;
    let (mut free, mut busy): (Vec<Uuid>, Vec<Uuid>) = (vec![], vec![]);
    for row in &unlaned {
        let list = if row.get(1) { &mut free } else { &mut busy };
        list.push(row.get(0));
    }
    execute(&transaction, include_str!("sql/fill_lanes.sql"), &[&number, &free]).await?;
    let is_last = receipts.len() < limits::FILL_ROWS && busy.is_empty();
    let next = match busy.first() {
        None => receipts.last().copied().filter(|_| !is_last),
        // The next step comes back to what another transaction has locked.
        Some(first) => Some(receipts.iter().rfind(|it| *it < first).copied().unwrap_or(after)),
    };
    execute(&transaction, include_str!("sql/move_fill.sql"), &[&number, &next]).await?;
    transaction.commit().await.map_err(failure)?;
    if is_last && !after.is_nil() {
        info!(route = name, "open deliveries have their objects; claims go on");
    } else if !is_last && after.is_nil() {
        info!(route = name, "{FILLING}");
    }
    Ok(busy.is_empty() && (!is_last || route.is_none()))
}
