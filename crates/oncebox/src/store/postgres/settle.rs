//! What operators and retention do to the ledger.

use deadpool_postgres::{Object, Transaction};
use jiff::Timestamp;

use super::PostgresStore;
use super::acts::note;
use super::begun::note_unanswered;
use super::connect::{execute, failure, query};
use super::effects::{self, Leases, Met};
use super::expire::SWEEP_BLOCKS;
use crate::effect::{EffectActed, EffectState, Verdict};
use crate::store::{Act, StoreError, SweepCursor, SweepStep, checks, day_of};

/// Writes down what a person found out about an effect that is unknown.
pub(super) async fn settle(
    store: &PostgresStore,
    key: &str,
    verdict: &Verdict,
    act: &Act,
) -> Result<EffectActed, StoreError> {
    if let Verdict::Done { result } = verdict {
        checks::result(result.as_deref())?;
    }
    store
        .general
        .write(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            let met = match lock(&transaction, key).await? {
                None => return Ok(EffectActed::NotFound),
                Some((EffectState::Unknown, met)) => met,
                Some((state, _)) => return Ok(EffectActed::Not(state)),
            };
            note_unanswered(&transaction, key).await?;
            match verdict {
                Verdict::Done { result } => {
                    let sql = include_str!("sql/settle_effect.sql");
                    execute(&transaction, sql, &[&key, result, &met.unknowns_with_this()]).await?;
                }
                Verdict::NotDone => delete(&transaction, key).await?,
            }
            finish(store, transaction, key, "settle-effect", act).await
        })
        .await
}

/// Forgets an effect that nobody is at.
pub(super) async fn forget(
    store: &PostgresStore,
    key: &str,
    act: &Act,
) -> Result<EffectActed, StoreError> {
    store
        .general
        .write(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            match lock(&transaction, key).await? {
                None => return Ok(EffectActed::NotFound),
                Some((EffectState::Started, _)) => {
                    return Ok(EffectActed::Not(EffectState::Started));
                }
                Some((EffectState::Done | EffectState::Unknown, _)) => {
                    delete(&transaction, key).await?
                }
            }
            execute(&transaction, include_str!("sql/forget_unanswered.sql"), &[&key]).await?;
            finish(store, transaction, key, "forget-effect", act).await
        })
        .await
}

/// Locks an effect, and then the delivery of whoever is at it; says how it is to be read.
async fn lock(
    transaction: &Transaction<'_>,
    key: &str,
) -> Result<Option<(EffectState, Met)>, StoreError> {
    let Some(met) = effects::lock(transaction, key).await? else { return Ok(None) };
    if met.state != EffectState::Started {
        return Ok(Some((met.state, met)));
    }
    let leases = Leases::lock(transaction, [met.owner.delivery]).await?;
    let state = match leases.are_good(met.owner) {
        true => EffectState::Started,
        false => EffectState::Unknown,
    };
    Ok(Some((state, met)))
}

async fn delete(transaction: &Transaction<'_>, key: &str) -> Result<(), StoreError> {
    execute(transaction, include_str!("sql/delete_effect.sql"), &[&key]).await.map(drop)
}

/// Lets go what was held for an effect, and writes the line of the audit.
async fn finish(
    store: &PostgresStore,
    transaction: Transaction<'_>,
    key: &str,
    done: &str,
    act: &Act,
) -> Result<EffectActed, StoreError> {
    let rows = query(&transaction, include_str!("sql/release_parked.sql"), &[&key]).await?;
    let released: i64 = rows.first().map_or(0, |row| row.get(0));
    note(&transaction, act, done, key).await?;
    transaction.commit().await.map_err(failure)?;
    if released > 0 {
        store.wake.everywhere();
    }
    Ok(EffectActed::Done { released: usize::try_from(released).unwrap_or(0) })
}

/// Sweeps the same stretch of effects, of those who gave no answer, and of groups of messages.
pub(super) async fn expire(
    client: &Object,
    from: &SweepCursor,
    done_before: Timestamp,
) -> Result<SweepStep, StoreError> {
    let block = from.0.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let end = block.saturating_add(SWEEP_BLOCKS);
    let (first, last) = (format!("({block},0)"), format!("({end},0)"));
    let sql = include_str!("sql/delete_effects.sql");
    let removed = execute(client, sql, &[&first, &last, &done_before]).await?;
    let sql = include_str!("sql/delete_unanswered.sql");
    execute(client, sql, &[&first, &last, &done_before]).await?;
    let sql = include_str!("sql/delete_groups.sql");
    execute(client, sql, &[&first, &last, &day_of(done_before)]).await?;
    let rows = query(client, include_str!("sql/count_ledger_blocks.sql"), &[]).await?;
    let blocks: i64 = rows.first().map_or(0, |row| row.get(0));
    let next = (i64::from(end) < blocks).then(|| SweepCursor(end.to_be_bytes().to_vec()));
    Ok(SweepStep { next, removed: usize::try_from(removed).unwrap_or(usize::MAX) })
}
