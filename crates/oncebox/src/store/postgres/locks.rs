//! Lanes and operations: the rows that are locked by whoever holds a delivery back or lets one go,
//! so that no wake-up is lost between the two.
//!
//! Everything that needs several locks takes them in one order: lanes, operations, deliveries,
//! each sorted. A delivery that was found before that is looked at again once it is locked.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use deadpool_postgres::{GenericClient, Transaction};
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::{execute, failure, query};
use super::names::milliseconds;
use crate::delivery::DeliveryId;
use crate::receipt::{RouteNo, SourceNo};
use crate::store::StoreError;

/// A delivery and what it shares with others.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) delivery: DeliveryId,
    pub(super) source: SourceNo,
    pub(super) lane: Option<String>,
    pub(super) place: i64,
    pub(super) operation: Option<Uuid>,
    pub(super) created_at: Timestamp,
}

impl Guard {
    /// From the columns receipt, route, source, lane, place, operation and created_at.
    pub(super) fn read(row: &Row) -> Self {
        Self {
            delivery: delivery(row),
            source: SourceNo(row.get(2)),
            lane: row.get(3),
            place: row.get(4),
            operation: row.get(5),
            created_at: row.get(6),
        }
    }

    /// The provider's ordering value. The lowest place is that of events without one.
    pub(super) fn version(&self) -> Option<i64> {
        Some(self.place).filter(|place| *place != i64::MIN)
    }
}

/// What became of a delivery, as far as others of its operation care.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It is finished.
    ForGood,
    /// It is dead: out of the way where its route goes on.
    Dead,
    /// It gave back its lease and comes back.
    ForNow,
}

/// From the columns receipt and route.
pub(super) fn delivery(row: &Row) -> DeliveryId {
    DeliveryId { receipt: row.get::<_, Uuid>(0).into(), route: RouteNo(row.get(1)) }
}

/// Receipts and routes of deliveries, as parameters.
pub(super) fn keys(deliveries: impl IntoIterator<Item = DeliveryId>) -> (Vec<Uuid>, Vec<i16>) {
    deliveries.into_iter().map(|delivery| (delivery.receipt.as_uuid(), delivery.route.0)).unzip()
}

/// What open deliveries share with others; those that share nothing are left out.
pub(super) async fn find(
    client: &impl GenericClient,
    deliveries: impl IntoIterator<Item = DeliveryId>,
) -> Result<Vec<Guard>, StoreError> {
    let (receipts, routes) = keys(deliveries);
    let rows = query(client, include_str!("sql/find_guards.sql"), &[&receipts, &routes]).await?;
    Ok(rows.iter().map(Guard::read).collect())
}

/// Sets how long this transaction waits for a lock.
pub(super) async fn wait_for(
    transaction: &Transaction<'_>,
    patience: Duration,
) -> Result<(), StoreError> {
    let sql = format!("SET LOCAL lock_timeout = {}", milliseconds(patience));
    transaction.batch_execute(&sql).await.map_err(failure)
}

/// Locks the lanes, then the operations of deliveries.
pub(super) async fn lock<'a>(
    transaction: &Transaction<'_>,
    guards: impl Iterator<Item = &'a Guard> + Clone,
) -> Result<(), StoreError> {
    let lanes = Lanes::of(guards.clone());
    if !lanes.route.is_empty() {
        let sql = include_str!("sql/lock_lanes.sql");
        execute(transaction, sql, &[&lanes.route, &lanes.source, &lanes.object]).await?;
    }
    let operations: BTreeSet<_> =
        guards.filter_map(|guard| Some((guard.delivery.route.0, guard.operation?))).collect();
    if !operations.is_empty() {
        let (routes, keys): (Vec<_>, Vec<_>) = operations.into_iter().unzip();
        let sql = include_str!("sql/lock_operations.sql");
        execute(transaction, sql, &[&routes, &keys]).await?;
    }
    Ok(())
}

/// Locks the lanes, then the operations of deliveries, skipping those that are locked. Returns
/// the deliveries of which something is locked.
pub(super) async fn lock_free(
    transaction: &Transaction<'_>,
    guards: &[Guard],
) -> Result<HashSet<DeliveryId>, StoreError> {
    let lanes = guards.iter().filter_map(lane_of).collect();
    let free_lanes = lock_free_lanes(transaction, lanes).await?;
    let has_lane = |guard: &&Guard| lane_of(guard).is_none_or(|lane| free_lanes.contains(&lane));
    let operations = guards.iter().filter(has_lane).filter_map(operation_of).collect();
    let free_operations = lock_free_operations(transaction, operations).await?;
    let has_operation =
        |guard: &&Guard| operation_of(guard).is_none_or(|it| free_operations.contains(&it));
    let busy = guards.iter().filter(|guard| !(has_lane(guard) && has_operation(guard)));
    Ok(busy.map(|guard| guard.delivery).collect())
}

fn lane_of(guard: &Guard) -> Option<(i16, i16, String)> {
    Some((guard.delivery.route.0, guard.source.0, guard.lane.clone()?))
}

fn operation_of(guard: &Guard) -> Option<(i16, Uuid)> {
    Some((guard.delivery.route.0, guard.operation?))
}

/// Locks those of the lanes that are not locked, and returns them. One that has no row gets one:
/// its route may have come to guard it after the claim.
async fn lock_free_lanes(
    transaction: &Transaction<'_>,
    mut lanes: BTreeSet<(i16, i16, String)>,
) -> Result<HashSet<(i16, i16, String)>, StoreError> {
    let mut free = HashSet::new();
    for sql in [include_str!("sql/lock_free_lanes.sql"), include_str!("sql/make_lanes.sql")] {
        if lanes.is_empty() {
            break;
        }
        let (mut routes, mut sources, mut objects) = (vec![], vec![], vec![]);
        for (route, source, object) in &lanes {
            routes.push(*route);
            sources.push(*source);
            objects.push(object.as_str());
        }
        let rows = query(transaction, sql, &[&routes, &sources, &objects]).await?;
        free.extend(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))));
        lanes.retain(|lane| !free.contains(lane));
    }
    Ok(free)
}

/// As [`lock_free_lanes`], for operations.
async fn lock_free_operations(
    transaction: &Transaction<'_>,
    mut operations: BTreeSet<(i16, Uuid)>,
) -> Result<HashSet<(i16, Uuid)>, StoreError> {
    let mut free = HashSet::new();
    let lock = include_str!("sql/lock_free_operations.sql");
    for sql in [lock, include_str!("sql/make_operations.sql")] {
        if operations.is_empty() {
            break;
        }
        let (routes, keys): (Vec<_>, Vec<_>) = operations.iter().copied().unzip();
        let rows = query(transaction, sql, &[&routes, &keys]).await?;
        free.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
        operations.retain(|operation| !free.contains(operation));
    }
    Ok(free)
}

/// Lets go what is next in the lanes of deliveries whose state has changed. Says whether any was.
pub(super) async fn release_lanes<'a>(
    transaction: &Transaction<'_>,
    changed: impl Iterator<Item = &'a Guard>,
) -> Result<bool, StoreError> {
    let lanes = Lanes::of(changed);
    if lanes.route.is_empty() {
        return Ok(false);
    }
    let sql = include_str!("sql/release_lane_head.sql");
    let released = execute(transaction, sql, &[&lanes.route, &lanes.source, &lanes.object]).await?;
    Ok(released > 0)
}

/// Lets go what waited for deliveries of the same operation. Says whether any was.
pub(super) async fn release_operations<'a>(
    transaction: &Transaction<'_>,
    changed: impl Iterator<Item = (&'a Guard, Left)> + Clone,
) -> Result<bool, StoreError> {
    let changed = changed.filter(|(guard, _)| guard.operation.is_some());
    let (receipts, routes) = keys(changed.clone().map(|(guard, _)| guard.delivery));
    if routes.is_empty() {
        return Ok(false);
    }
    let operations: Vec<_> = changed.clone().map(|(guard, _)| guard.operation).collect();
    let gone: Vec<_> = changed.clone().map(|(_, left)| left == Left::ForGood).collect();
    let dead: Vec<_> = changed.map(|(_, left)| left == Left::Dead).collect();
    let sql = include_str!("sql/release_operation.sql");
    let values: [&(dyn ToSql + Sync); 5] = [&routes, &operations, &receipts, &gone, &dead];
    Ok(execute(transaction, sql, &values).await? > 0)
}

/// Distinct lanes, in order.
struct Lanes<'a> {
    route: Vec<i16>,
    source: Vec<i16>,
    object: Vec<&'a str>,
}

impl<'a> Lanes<'a> {
    fn of(guards: impl Iterator<Item = &'a Guard>) -> Self {
        let lanes: BTreeSet<_> = guards
            .filter_map(|guard| {
                Some((guard.delivery.route.0, guard.source.0, guard.lane.as_deref()?))
            })
            .collect();
        let mut columns = Self { route: vec![], source: vec![], object: vec![] };
        for (route, source, object) in lanes {
            columns.route.push(route);
            columns.source.push(source);
            columns.object.push(object);
        }
        columns
    }
}
