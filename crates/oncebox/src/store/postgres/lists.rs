//! Lists and counts, for operators.

use std::time::Duration;

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connect::query;
use super::locks;
use super::names::milliseconds;
use super::read::{like, mark, odd_row};
use super::unheard;
use crate::delivery::{Counts, Reason, State};
use crate::limits;
use crate::receipt::{ReceiptId, RouteNo};
use crate::route::RouteRules;
use crate::store::{
    AttemptRow, AuditRow, Behind, BreakerRow, DeliveryFilter, DeliveryRow, RouteView, StoreError,
    Tally, words,
};

/// Every route, with its rules.
pub(super) async fn routes(client: &impl GenericClient) -> Result<Vec<RouteView>, StoreError> {
    let rows = query(client, include_str!("sql/list_routes.sql"), &[]).await?;
    rows.iter().map(route).collect()
}

fn route(row: &Row) -> Result<RouteView, StoreError> {
    Ok(RouteView {
        route: RouteNo(row.get(0)),
        name: row.get(1),
        born_as: row.get(12),
        paused_at: row.get(2),
        filling: row.get(16),
        rules: RouteRules {
            max_attempts: count(row, 3),
            base: duration(row.get(4)),
            cap: duration(row.get(5)),
            longest_wait: duration(row.get(6)),
            max_snoozes: count(row, 7),
            ordered: row.get(8),
            skip_stale: row.get(9),
            on_dead: words::on_dead(row.get(10)).ok_or_else(|| odd_row("on_dead"))?,
            same_operation: row.get::<_, Option<i64>>(11).map(duration),
            pulled: row.get(13),
            budget: row.get::<_, Option<i64>>(14).map(duration),
            hold_for: duration(row.get(15)),
        },
    })
}

/// Breakers that are not closed.
pub(super) async fn breakers(client: &Object) -> Result<Vec<BreakerRow>, StoreError> {
    let shown = milliseconds(limits::BREAKERS_SHOWN);
    let rows = query(client, include_str!("sql/list_breakers.sql"), &[&shown]).await?;
    let breaker = |row: &Row| BreakerRow {
        route: RouteNo(row.get(0)),
        worker: row.get(1),
        state: row.get(2),
        reason: row.get(3),
        next_probe_at: row.get(4),
        told_at: row.get(5),
    };
    Ok(rows.iter().map(breaker).collect())
}

/// Open and finished deliveries, newest first.
pub(super) async fn deliveries(
    client: &Object,
    filter: &DeliveryFilter,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let mut rows = Vec::new();
    if filter.state.is_none_or(|state| !state.is_finished()) {
        let sql = include_str!("sql/list_open_deliveries.sql");
        rows.extend(list_deliveries(client, filter, sql).await?);
    }
    if filter.state.is_none_or(State::is_finished) {
        let sql = include_str!("sql/list_finished_deliveries.sql");
        rows.extend(list_deliveries(client, filter, sql).await?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.delivery));
    // One that was finished between the two looks is in both; the later look is the truth.
    rows.dedup_by(|later, earlier| {
        let same = later.delivery == earlier.delivery;
        if same && later.state.is_finished() {
            std::mem::swap(later, earlier);
        }
        same
    });
    rows.truncate(filter.limit);
    find_behind(client, &mut rows).await?;
    Ok(rows)
}

/// Finds the deliveries that held ones wait for.
async fn find_behind(client: &Object, rows: &mut [DeliveryRow]) -> Result<(), StoreError> {
    let held = rows.iter().filter(|row| row.is_behind_another()).map(|row| row.delivery);
    let (receipts, routes): (Vec<Uuid>, Vec<i16>) =
        held.map(|held| (held.receipt.as_uuid(), held.route.0)).unzip();
    if receipts.is_empty() {
        return Ok(());
    }
    let sql = include_str!("sql/find_behind.sql");
    for found in query(client, sql, &[&receipts, &routes]).await? {
        let held = locks::delivery(&found);
        let receipt = found.get::<_, Uuid>(2).into();
        let behind = Behind { receipt, event_id: found.get(3), state: state(found.get(4))? };
        if let Some(row) = rows.iter_mut().find(|row| row.delivery == held) {
            row.behind = Some(behind);
        }
    }
    Ok(())
}

async fn list_deliveries(
    client: &Object,
    filter: &DeliveryFilter,
    sql: &str,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let bound = |time: Option<_>, open| time.map_or(open, |time| ReceiptId::floor(time).as_uuid());
    let before = filter
        .before
        .map_or((Uuid::max(), i16::MAX), |before| (before.receipt.as_uuid(), before.route.0));
    let rows = query(
        client,
        sql,
        &[
            &before.0,
            &before.1,
            &bound(filter.since, Uuid::nil()),
            &bound(filter.until, Uuid::max()),
            &filter.receipt.map(|receipt| receipt.as_uuid()),
            &filter.route,
            &filter.source,
            &filter.event_type.as_deref().map(like),
            &filter.state.map(State::as_str),
            &filter.reason.map(Reason::as_str),
            &filter.event_id_prefix,
            &filter.object,
            &i64::try_from(filter.limit).unwrap_or(i64::MAX),
        ],
    )
    .await?;
    rows.iter().map(delivery).collect()
}

fn delivery(row: &Row) -> Result<DeliveryRow, StoreError> {
    Ok(DeliveryRow {
        delivery: locks::delivery(row),
        route: row.get(2),
        paused: row.get(3),
        source: row.get(4),
        event_id: row.get(5),
        event_type: row.get(6),
        object: row.get(7),
        version: row.get(8),
        received_at: row.get(9),
        state: state(row.get(10))?,
        reason: reason(row.get(11))?,
        counts: Counts {
            attempts: count(row, 12),
            failures: count(row, 13),
            crashes: count(row, 14),
            snoozes: count(row, 15),
            tried: duration(row.get(27)),
        },
        replays: count(row, 16),
        due_at: row.get(17),
        lease_until: row.get(18),
        worker: row.get::<_, Option<&str>>(19).map(|name| unheard::worker(name).to_owned()),
        finished_at: row.get(20),
        detail: row.get(21),
        summary: row.get(22),
        first: row.get::<_, Option<Uuid>>(23).map(ReceiptId::from),
        waits_for: row.get(24),
        behind: None,
        mark: mark(row, 25),
    })
}

/// Every attempt of a receipt's deliveries that has ended, oldest first.
pub(super) async fn attempts(
    client: &Object,
    receipt: ReceiptId,
) -> Result<Vec<AttemptRow>, StoreError> {
    let sql = include_str!("sql/list_attempts.sql");
    let rows = query(client, sql, &[&receipt.as_uuid()]).await?;
    let attempt = |row: &Row| AttemptRow {
        route: row.get(0),
        number: count(row, 1),
        replays: count(row, 2),
        ended_at: row.get(3),
        took: row.get::<_, Option<i32>>(4).map(|took| duration(took.into())),
        outcome: row.get(5),
        status: row.get::<_, Option<i16>>(6).and_then(|status| u16::try_from(status).ok()),
        detail: row.get(7),
    };
    Ok(rows.iter().map(attempt).collect())
}

/// How many deliveries are in each state.
pub(super) async fn tally(client: &Object) -> Result<Vec<Tally>, StoreError> {
    let rows = query(client, include_str!("sql/tally.sql"), &[]).await?;
    let tally = |row: &Row| {
        Ok(Tally {
            route: RouteNo(row.get(0)),
            state: state(row.get(1))?,
            reason: reason(row.get(2))?,
            count: u64::try_from(row.get::<_, i64>(3)).unwrap_or(0),
            oldest: row.get(4),
        })
    };
    rows.iter().map(tally).collect()
}

/// What operators did, newest first.
pub(super) async fn audit(
    client: &Object,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<AuditRow>, StoreError> {
    let sql = include_str!("sql/list_audit.sql");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(client, sql, &[&before.unwrap_or(i64::MAX), &limit]).await?;
    let line = |row: &Row| AuditRow {
        no: row.get(0),
        at: row.get(1),
        who: row.get(2),
        via: row.get(3),
        act: row.get(4),
        subject: row.get(5),
        why: row.get(6),
    };
    Ok(rows.iter().map(line).collect())
}

pub(super) fn state(word: &str) -> Result<State, StoreError> {
    State::of(word).ok_or_else(|| odd_row("state"))
}

pub(super) fn reason(word: Option<&str>) -> Result<Option<Reason>, StoreError> {
    word.map(|word| Reason::of(word).ok_or_else(|| odd_row("reason"))).transpose()
}

pub(super) fn count(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i32>(column)).unwrap_or(0)
}

/// A length of time as it is kept.
pub(super) fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
