//! Removing what has expired, in short statements of their own.

use deadpool_postgres::Object;
use uuid::Uuid;

use super::connect::failure;
use crate::limits;
use crate::receipt::SourceNo;
use crate::store::{ExpireRange, ExpireStep, StoreError, SweepCursor, SweepStep};

pub(super) async fn receipts(
    client: &Object,
    range: &ExpireRange,
) -> Result<ExpireStep, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/expirable_receipts.sql")).await.map_err(failure)?;
    let most = i64::from(limits::EXPIRE_ROWS);
    let rows = client
        .query(&statement, &[&range.after.as_uuid(), &range.before.as_uuid(), &most])
        .await
        .map_err(failure)?;
    let next = rows.last().map(|row| row.get::<_, Uuid>(0).into());
    let expired: Vec<Uuid> = rows
        .iter()
        .filter(|row| !row.get::<_, bool>(2) && range.sources.contains(&SourceNo(row.get(1))))
        .map(|row| row.get(0))
        .collect();
    if expired.is_empty() {
        return Ok(ExpireStep { next, removed: 0 });
    }
    let statement =
        client.prepare_cached(include_str!("sql/delete_receipts.sql")).await.map_err(failure)?;
    let row = client.query_one(&statement, &[&expired]).await.map_err(failure)?;
    let removed: i64 = row.get(0);
    Ok(ExpireStep { next, removed: usize::try_from(removed).unwrap_or(0) })
}

/// Blocks of the table looked at in one step: some sixty rows fit one.
const SWEEP_BLOCKS: u32 = limits::SWEEP_ROWS / 64;

pub(super) async fn identities(
    client: &Object,
    from: &SweepCursor,
    bounds: &[(SourceNo, i32)],
) -> Result<SweepStep, StoreError> {
    let block = from.0.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let end = block.saturating_add(SWEEP_BLOCKS);
    let sources: Vec<i16> = bounds.iter().map(|(source, _)| source.0).collect();
    let days: Vec<i32> = bounds.iter().map(|(_, day)| *day).collect();
    let statement =
        client.prepare_cached(include_str!("sql/delete_identities.sql")).await.map_err(failure)?;
    let removed = client
        .execute(&statement, &[&format!("({block},0)"), &format!("({end},0)"), &sources, &days])
        .await
        .map_err(failure)?;
    let blocks: i64 = client
        .query_one(include_str!("sql/count_identity_blocks.sql"), &[])
        .await
        .map_err(failure)?
        .get(0);
    let next = (i64::from(end) < blocks).then(|| SweepCursor(end.to_be_bytes().to_vec()));
    Ok(SweepStep { next, removed: usize::try_from(removed).unwrap_or(usize::MAX) })
}
