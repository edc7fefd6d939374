//! Replay jobs.

use std::time::Duration;

use deadpool_postgres::Object;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::acts::note;
use super::connect::{execute, failure, query};
use super::lists::state;
use super::names::milliseconds;
use super::read::odd_row;
use super::reopen;
use crate::delivery::{DeliveryId, Lease, State};
use crate::limits;
use crate::receipt::{ReceiptId, RouteNo};
use crate::replay::{Fill, How, Phase, Reopened, Replay, ReplayFilter, ReplayId, ReplayStep};
use crate::store::{Act, StoreError};

pub(super) async fn create(
    client: &mut Object,
    replay: &Replay,
    act: &Act,
) -> Result<(), StoreError> {
    let filter = &replay.filter;
    let receipts: Vec<Uuid> = filter.receipts.iter().map(ReceiptId::as_uuid).collect();
    let routes: Vec<i16> = filter.routes.iter().map(|route| route.0).collect();
    let rate = replay.rate.map(|rate| i32::try_from(rate).unwrap_or(i32::MAX));
    let transaction = client.transaction().await.map_err(failure)?;
    execute(
        &transaction,
        include_str!("sql/insert_replay.sql"),
        &[
            &replay.id.0,
            &replay.created_at,
            &replay.who,
            &replay.why,
            &receipts,
            &routes,
            &filter.source,
            &filter.event_type,
            &filter.since,
            &filter.until,
            &filter.state.map(State::as_str),
            &filter.unrouted,
            &filter.odd,
            &Fill::encode(&filter.fill),
            &replay.how.force,
            &replay.how.ignore_stale,
            &rate,
            &replay.phase.as_str(),
            &i64::try_from(replay.planned).unwrap_or(i64::MAX),
        ],
    )
    .await?;
    note(&transaction, act, "replay.create", &replay.id.to_string()).await?;
    transaction.commit().await.map_err(failure)
}

pub(super) async fn list(client: &Object, limit: usize) -> Result<Vec<Replay>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(client, include_str!("sql/list_replays.sql"), &[&limit]).await?;
    rows.iter().map(replay).collect()
}

pub(super) async fn find(client: &Object, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    let rows = query(client, include_str!("sql/find_replay.sql"), &[&id.0]).await?;
    rows.first().map(replay).transpose()
}

/// Takes a job that nobody drives.
pub(super) async fn take(
    client: &Object,
    id: Option<ReplayId>,
    lease: Duration,
) -> Result<Option<Replay>, StoreError> {
    let sql = include_str!("sql/take_replay.sql");
    let rows = query(client, sql, &[&id.map(|id| id.0), &milliseconds(lease)]).await?;
    rows.first().map(replay).transpose()
}

/// Does one step of a job; none if somebody else has it or nobody any more.
pub(super) async fn step(
    store: &PostgresStore,
    step: &ReplayStep,
) -> Result<Option<Vec<Reopened>>, StoreError> {
    let outcome = store.daily.write(async |client| step_on(client, step).await).await?;
    let is_opened = |outcome: &Reopened| *outcome == Reopened::Opened;
    if outcome.as_ref().is_some_and(|outcome| outcome.iter().any(is_opened)) {
        store.wake.everywhere();
    }
    Ok(outcome)
}

async fn step_on(
    client: &mut Object,
    step: &ReplayStep,
) -> Result<Option<Vec<Reopened>>, StoreError> {
    let guards = reopen::find_guards(client, &step.open).await?;
    let transaction = client.transaction().await.map_err(failure)?;
    let sql = include_str!("sql/lock_replay.sql");
    if query(&transaction, sql, &[&step.id.0, &step.lease.0]).await?.is_empty() {
        return Ok(None);
    }
    let outcome = reopen::reopen(&transaction, &step.open, &guards, step.how).await?;
    let opened = outcome.iter().filter(|outcome| **outcome == Reopened::Opened).count();
    let passed = step.passed + (outcome.len() - opened) as u64;
    execute(
        &transaction,
        include_str!("sql/step_replay.sql"),
        &[
            &step.id.0,
            &i64::try_from(opened).unwrap_or(i64::MAX),
            &i64::try_from(passed).unwrap_or(i64::MAX),
            &step.cursor.map(|cursor| cursor.receipt.as_uuid()),
            &step.cursor.map(|cursor| cursor.route.0),
            &step.done,
            &milliseconds(limits::LEASE),
        ],
    )
    .await?;
    transaction.commit().await.map_err(failure)?;
    Ok(Some(outcome))
}

pub(super) async fn cancel(
    client: &mut Object,
    id: ReplayId,
    act: &Act,
) -> Result<bool, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let sql = include_str!("sql/cancel_replay.sql");
    if execute(&transaction, sql, &[&id.0]).await? == 0 {
        return Ok(false);
    }
    note(&transaction, act, "replay.cancel", &id.to_string()).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(true)
}

fn replay(row: &Row) -> Result<Replay, StoreError> {
    let count = |column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    let receipts: Vec<Uuid> = row.get(4);
    let routes: Vec<i16> = row.get(5);
    let cursor = row.get::<_, Option<Uuid>>(20).zip(row.get::<_, Option<i16>>(21));
    Ok(Replay {
        id: ReplayId(row.get(0)),
        created_at: row.get(1),
        who: row.get(2),
        why: row.get(3),
        filter: ReplayFilter {
            receipts: receipts.into_iter().map(ReceiptId::from).collect(),
            routes: routes.into_iter().map(RouteNo).collect(),
            source: row.get(6),
            event_type: row.get(7),
            since: row.get(8),
            until: row.get(9),
            state: row.get::<_, Option<&str>>(10).map(state).transpose()?,
            odd: row.get(23),
            unrouted: row.get(11),
            fill: Fill::decode(row.get(12)).ok_or_else(|| odd_row("fill"))?,
        },
        how: How { force: row.get(13), ignore_stale: row.get(14) },
        rate: row.get::<_, Option<i32>>(15).and_then(|rate| u32::try_from(rate).ok()),
        phase: Phase::of(row.get(16)).ok_or_else(|| odd_row("phase"))?,
        planned: count(17),
        opened: count(18),
        passed: count(19),
        cursor: cursor
            .map(|(receipt, route)| DeliveryId { receipt: receipt.into(), route: RouteNo(route) }),
        lease: Lease(row.get(22)),
    })
}
