//! Removing what has expired, in short statements of their own.

use deadpool_postgres::{Object, Transaction};
use uuid::Uuid;

use super::acts::note;
use super::connect::{execute, failure, query};
use super::locks;
use crate::limits;
use crate::receipt::SourceNo;
use crate::store::{Act, ExpireRange, ExpireStep, StoreError, SweepCursor, SweepStep};

pub(super) async fn receipts(
    client: &mut Object,
    range: &ExpireRange,
) -> Result<ExpireStep, StoreError> {
    let most = i64::from(limits::EXPIRE_ROWS);
    let sql = include_str!("sql/expirable_receipts.sql");
    let rows =
        query(client, sql, &[&range.after.as_uuid(), &range.before.as_uuid(), &most]).await?;
    let (mut next, mut expired, mut bytes) = (None, Vec::new(), 0);
    for row in &rows {
        let id: Uuid = row.get(0);
        if !row.get::<_, bool>(2) && range.sources.contains(&SourceNo(row.get(1))) {
            bytes += row.get::<_, i64>(3);
            if bytes > limits::EXPIRE_BYTES && !expired.is_empty() {
                break;
            }
            expired.push(id);
        }
        next = Some(id.into());
    }
    if expired.is_empty() {
        return Ok(ExpireStep { next, removed: 0 });
    }
    let transaction = client.transaction().await.map_err(failure)?;
    query(&transaction, include_str!("sql/lock_expired.sql"), &[&expired]).await?;
    discard_odd(&transaction, &expired, &range.discard()).await?;
    let rows = query(&transaction, include_str!("sql/delete_receipts.sql"), &[&expired]).await?;
    let (removed, requests, parts): (i64, Vec<Uuid>, Vec<i32>) = match rows.first() {
        Some(row) => (row.get(0), row.get(1), row.get(2)),
        None => (0, Vec::new(), Vec::new()),
    };
    if !requests.is_empty() {
        let sql = include_str!("sql/leave_requests.sql");
        execute(&transaction, sql, &[&requests, &parts]).await?;
    }
    transaction.commit().await.map_err(failure)?;
    Ok(ExpireStep { next, removed: usize::try_from(removed).unwrap_or(0) })
}

/// Discards deliveries that are held as twin or conflict, with a line of the audit for each.
pub(super) async fn discard_odd(
    transaction: &Transaction<'_>,
    expired: &Vec<Uuid>,
    act: &Act,
) -> Result<(), StoreError> {
    let rows = query(transaction, include_str!("sql/discard_odd.sql"), &[expired]).await?;
    for row in &rows {
        note(transaction, act, "delivery.discard", &locks::delivery(row).to_string()).await?;
    }
    Ok(())
}

/// Blocks of a table looked at in one step: some sixty rows fit one.
pub(super) const SWEEP_BLOCKS: u32 = limits::SWEEP_ROWS / 64;

/// In how many tables identities and guards lie.
const PARTS: u32 = 8;

/// Sweeps the same stretch of each table of identities and guards, of lanes and of operations.
pub(super) async fn identities(
    client: &Object,
    from: &SweepCursor,
    bounds: &[(SourceNo, i32)],
) -> Result<SweepStep, StoreError> {
    let block = from.0.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let end = block.saturating_add(SWEEP_BLOCKS / PARTS);
    let sources: Vec<i16> = bounds.iter().map(|(source, _)| source.0).collect();
    let days: Vec<i32> = bounds.iter().map(|(_, day)| *day).collect();
    let (first, last) = (format!("({block},0)"), format!("({end},0)"));
    let sql = include_str!("sql/delete_identities.sql");
    let removed = execute(client, sql, &[&first, &last, &sources, &days]).await?;
    let sql = include_str!("sql/delete_guards.sql");
    execute(client, sql, &[&first, &last, &sources, &days]).await?;
    for sql in [include_str!("sql/delete_lanes.sql"), include_str!("sql/delete_operations.sql")] {
        execute(client, sql, &[&first, &last, &limits::GUARD_DAYS]).await?;
    }
    let rows = query(client, include_str!("sql/count_swept_blocks.sql"), &[]).await?;
    let blocks: i64 = rows.first().map_or(0, |row| row.get(0));
    let next = (i64::from(end) < blocks).then(|| SweepCursor(end.to_be_bytes().to_vec()));
    Ok(SweepStep { next, removed: usize::try_from(removed).unwrap_or(usize::MAX) })
}
