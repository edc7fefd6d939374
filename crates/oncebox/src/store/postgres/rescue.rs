//! What looks after deliveries that nobody looks after: leases that ran out, and deliveries held
//! for something that is not in their way any more.

use std::collections::HashMap;

use deadpool_postgres::Object;
use uuid::Uuid;

use super::connect::{execute, failure, given_back, query};
use super::guards::{Candidate, judge_all};
use super::locks::{self, Guard, Left};
use super::{PostgresStore, lists};
use crate::delivery::{DeliveryId, Judgement, State};
use crate::receipt::RouteNo;
use crate::store::{Rescued, StoreError};

/// Takes deliveries whose lease ran out away from their workers.
pub(super) async fn rescue(store: &PostgresStore, limit: usize) -> Result<Rescued, StoreError> {
    let mut client = store.working().await?;
    let outcome = rescue_on(&mut client, limit).await;
    let rescued = given_back(client, outcome)?;
    if rescued != Rescued::default() {
        store.wake.everywhere();
    }
    Ok(rescued)
}

async fn rescue_on(client: &mut Object, limit: usize) -> Result<Rescued, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(client, include_str!("sql/find_expired_leases.sql"), &[&limit]).await?;
    if rows.is_empty() {
        return Ok(Rescued::default());
    }
    let guards: Vec<Guard> = rows.iter().map(Guard::read).collect();
    let (receipts, routes) = locks::keys(guards.iter().map(|guard| guard.delivery));
    let epochs: Vec<i64> = rows.iter().map(|row| row.get(7)).collect();
    let transaction = client.transaction().await.map_err(failure)?;
    locks::lock(&transaction, guards.iter()).await?;
    let sql = include_str!("sql/rescue_deliveries.sql");
    let rows = query(&transaction, sql, &[&receipts, &routes, &epochs]).await?;
    let mut rescued = Rescued::default();
    for row in &rows {
        match State::of(row.get(2)) {
            Some(State::Dead) => rescued.dead.push(locks::delivery(row)),
            _ => rescued.retrying.push(locks::delivery(row)),
        }
    }
    let left = |delivery: &DeliveryId| match delivery {
        dead if rescued.dead.contains(dead) => Some(Left::Dead),
        lost if rescued.retrying.contains(lost) => Some(Left::ForNow),
        _ => None,
    };
    let changed: Vec<(&Guard, Left)> =
        guards.iter().filter_map(|guard| Some((guard, left(&guard.delivery)?))).collect();
    locks::release_lanes(&transaction, changed.iter().map(|(guard, _)| *guard)).await?;
    locks::release_operations(&transaction, changed.iter().copied()).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(rescued)
}

/// Lets go held deliveries that nothing is in the way of any more. Each call looks at the next
/// `limit` of them, and begins again after the last.
pub(super) async fn release_unblocked(
    store: &PostgresStore,
    limit: usize,
) -> Result<usize, StoreError> {
    let mut client = store.working().await?;
    let mut last = store.last_held.lock().await;
    let outcome = release_on(&mut client, *last, limit).await;
    let (released, next) = given_back(client, outcome)?;
    *last = next;
    drop(last);
    if released > 0 {
        store.wake.everywhere();
    }
    Ok(released)
}

async fn release_on(
    client: &mut Object,
    after: Option<DeliveryId>,
    limit: usize,
) -> Result<(usize, Option<DeliveryId>), StoreError> {
    let rules = lists::routes(client).await?;
    let rules: HashMap<RouteNo, _> =
        rules.into_iter().map(|route| (route.route, route.rules)).collect();
    let route = after.map_or(0, |delivery| delivery.route.0);
    let receipt = after.map_or(Uuid::nil(), |delivery| delivery.receipt.as_uuid());
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = include_str!("sql/find_held.sql");
    let rows = query(client, sql, &[&route, &receipt, &most]).await?;
    let last = rows.last().map(locks::delivery).filter(|_| rows.len() >= limit);
    if rows.is_empty() {
        return Ok((0, None));
    }
    let candidates = rows.iter().map(Candidate::read).collect();
    let transaction = client.transaction().await.map_err(failure)?;
    let judged = judge_all(&transaction, candidates, &[State::Held], &rules).await?;
    let free = judged
        .iter()
        .filter(|(_, judgement)| !matches!(judgement, Judgement::Hold(_)))
        .map(|(candidate, _)| candidate.guard.delivery);
    let (receipts, routes) = locks::keys(free);
    let sql = include_str!("sql/release_deliveries.sql");
    let released = execute(&transaction, sql, &[&receipts, &routes]).await?;
    transaction.commit().await.map_err(failure)?;
    Ok((usize::try_from(released).unwrap_or(usize::MAX), last))
}
