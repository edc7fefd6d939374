//! Opening deliveries again.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;

use super::connect::query;
use super::days;
use super::lists::state;
use super::locks::{self, Guard};
use crate::delivery::{DeliveryId, State};
use crate::replay::{How, Reopened};
use crate::store::StoreError;

/// What deliveries that are to be opened share with others.
pub(super) async fn find_guards(
    client: &Object,
    open: &[(DeliveryId, bool)],
) -> Result<Vec<Guard>, StoreError> {
    let (receipts, routes) = locks::keys(open.iter().map(|(delivery, _)| *delivery));
    let sql = include_str!("sql/find_reopened_guards.sql");
    let rows = query(client, sql, &[&receipts, &routes]).await?;
    Ok(rows.iter().map(Guard::read).collect())
}

/// Opens deliveries again; where their route never took the receipt, only those that are to be
/// made. Locks lanes and operations, then receipts: nobody else opens or expires them meanwhile.
pub(super) async fn reopen(
    transaction: &Transaction<'_>,
    open: &[(DeliveryId, bool)],
    guards: &[Guard],
    how: How,
) -> Result<Vec<Reopened>, StoreError> {
    locks::lock(transaction, guards.iter()).await?;
    let closing =
        days::lock(transaction, open.iter().map(|(delivery, _)| delivery.receipt)).await?;
    let (receipts, routes) = locks::keys(open.iter().map(|(delivery, _)| *delivery));
    query(transaction, include_str!("sql/lock_receipts.sql"), &[&receipts]).await?;
    let sql = include_str!("sql/reopen_open.sql");
    let rows = query(transaction, sql, &[&receipts, &routes, &how.ignore_stale]).await?;
    let mut opened: HashSet<DeliveryId> = rows.iter().map(locks::delivery).collect();
    // What is finished of a day that is about to go has expired; what is open is kept.
    let stays = |delivery: &DeliveryId| !closing.contains(&delivery.receipt);
    let (receipts, routes) = locks::keys(open.iter().map(|(d, _)| *d).filter(stays));
    let sql = include_str!("sql/reopen_finished.sql");
    let values: [&(dyn ToSql + Sync); 4] = [&receipts, &routes, &how.ignore_stale, &how.force];
    opened.extend(query(transaction, sql, &values).await?.iter().map(locks::delivery));
    let made = open.iter().filter(|(d, fill)| *fill && stays(d) && !opened.contains(d));
    let (receipts, routes) = locks::keys(made.map(|(delivery, _)| *delivery));
    let sql = include_str!("sql/fill_deliveries.sql");
    let rows = query(transaction, sql, &[&receipts, &routes, &how.ignore_stale]).await?;
    opened.extend(rows.iter().map(locks::delivery));

    let left = open.iter().map(|(delivery, _)| *delivery).filter(|d| !opened.contains(d));
    let left = find_states(transaction, left).await?;
    let became = |delivery: &DeliveryId| match left.get(delivery) {
        _ if opened.contains(delivery) => Reopened::Opened,
        Some(State::Processed | State::Skipped) if !stays(delivery) => Reopened::Gone,
        Some(state) => Reopened::Left(*state),
        None => Reopened::Gone,
    };
    Ok(open.iter().map(|(delivery, _)| became(delivery)).collect())
}

async fn find_states(
    transaction: &Transaction<'_>,
    deliveries: impl Iterator<Item = DeliveryId>,
) -> Result<HashMap<DeliveryId, State>, StoreError> {
    let (receipts, routes) = locks::keys(deliveries);
    let sql = include_str!("sql/find_standings.sql");
    let rows = query(transaction, sql, &[&receipts, &routes]).await?;
    let mut states = HashMap::new();
    for row in &rows {
        if let Some(word) = row.get(2) {
            states.insert(locks::delivery(row), state(word)?);
        }
    }
    Ok(states)
}
