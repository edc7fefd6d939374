//! Effects as they are read, and locked to be changed.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::query;
use super::lists::count;
use super::locks;
use super::read::odd_row;
use crate::delivery::{DeliveryId, Lease};
use crate::effect::{Effect, EffectKind, EffectState, Evidence, Under};
use crate::limits;
use crate::receipt::RouteNo;
use crate::store::{EffectConflict, EffectFilter, EffectTally, StoreError};

/// An effect that is locked, as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) state: EffectState,
    /// Who did it, or was at it last.
    pub(super) owner: Under,
    /// How often it was begun without an answer.
    pub(super) unknowns: i32,
}

impl Met {
    /// How often it was begun without an answer, if whoever is at it now gives none.
    pub(super) fn unknowns_with_this(&self) -> i32 {
        self.unknowns.saturating_add(i32::from(self.state == EffectState::Started))
    }
}

/// Locks an effect, before the deliveries that have to do with it.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    key: &str,
) -> Result<Option<Met>, StoreError> {
    let rows = query(transaction, include_str!("sql/lock_effect.sql"), &[&key]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Met {
        state: state(row.get(0))?,
        owner: Under {
            delivery: DeliveryId {
                receipt: row.get::<_, Uuid>(1).into(),
                route: RouteNo(row.get(2)),
            },
            lease: Lease(row.get(3)),
        },
        unknowns: row.get(4),
    }))
}

/// Leases that are good, each with its attempt, of deliveries that are locked.
pub(super) struct Leases(Vec<(Under, i32)>);

impl Leases {
    /// Locks deliveries, after their effect and what they share with others.
    pub(super) async fn lock(
        transaction: &Transaction<'_>,
        deliveries: impl IntoIterator<Item = DeliveryId>,
    ) -> Result<Self, StoreError> {
        let (receipts, routes) = locks::keys(deliveries);
        let sql = include_str!("sql/lock_leases.sql");
        let rows = query(transaction, sql, &[&receipts, &routes]).await?;
        let lease = |row: &Row| {
            let under = Under { delivery: locks::delivery(row), lease: Lease(row.get(2)) };
            (under, row.get(3))
        };
        Ok(Self(rows.iter().filter(|row| row.get(4)).map(lease).collect()))
    }

    /// The attempt that a good lease stands for.
    pub(super) fn attempt(&self, under: Under) -> Option<i32> {
        self.0.iter().find(|(good, _)| *good == under).map(|(_, attempt)| *attempt)
    }

    pub(super) fn are_good(&self, under: Under) -> bool {
        self.attempt(under).is_some()
    }
}

/// Finds one effect as lists have it, with all of its conflicts counted.
pub(super) async fn find(
    client: &impl GenericClient,
    key: &str,
) -> Result<Option<Effect>, StoreError> {
    find_counting(client, key, None).await
}

async fn find_counting(
    client: &impl GenericClient,
    key: &str,
    conflicts: Option<i64>,
) -> Result<Option<Effect>, StoreError> {
    let rows = query(client, include_str!("sql/find_effect.sql"), &[&key, &conflicts]).await?;
    rows.first().map(read).transpose()
}

/// An effect that this transaction has locked, for whoever comes upon it; it is not told of all
/// conflicts.
pub(super) async fn find_locked(
    transaction: &Transaction<'_>,
    key: &str,
) -> Result<Effect, StoreError> {
    let gone = || StoreError::Data(format!("the effect `{key}` has no route"));
    let most = Some(i64::from(limits::CONFLICTS_TOLD));
    find_counting(transaction, key, most).await?.ok_or_else(gone)
}

fn read(row: &Row) -> Result<Effect, StoreError> {
    let evidence = |at| Evidence { at, result: row.get(12) };
    Ok(Effect {
        key: row.get(0),
        kind: EffectKind::of(row.get(1)).ok_or_else(|| odd_row("kind"))?,
        state: state(row.get(2))?,
        delivery: DeliveryId { receipt: row.get::<_, Uuid>(3).into(), route: RouteNo(row.get(4)) },
        route: row.get(5),
        attempt: count(row, 6),
        at: row.get(7),
        result: row.get(8),
        unknowns: count(row, 9),
        conflicts: u32::try_from(row.get::<_, i64>(10)).unwrap_or(u32::MAX),
        evidence: row.get::<_, Option<_>>(11).map(evidence),
    })
}

fn state(word: &str) -> Result<EffectState, StoreError> {
    EffectState::of(word).ok_or_else(|| odd_row("state"))
}

/// Effects in the order of their keys. Those that are not done, and those of one receipt, are few
/// among very many, and are looked for along indexes of their own.
pub(super) async fn list(
    client: &impl GenericClient,
    filter: &EffectFilter,
) -> Result<Vec<Effect>, StoreError> {
    let (prefix, past) = filter.span();
    // One bound on each side, always: a plan that is made for any filter goes by both. No key is
    // as long as this one, so none is after it.
    let last = || char::MAX.to_string().repeat(limits::LEDGER_KEY_BYTES / char::MAX.len_utf8() + 1);
    let past = past.unwrap_or_else(last);
    let after = filter.after.as_deref().unwrap_or_default();
    let kind = filter.kind.map(EffectKind::as_str);
    let state = filter.state.map(EffectState::as_str);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let receipt = filter.receipt.map(|receipt| receipt.as_uuid());
    let values: [&(dyn ToSql + Sync); 7] =
        [&prefix, &after, &past, &kind, &state, &limit, &receipt];
    let rows = match (filter.state, filter.receipt) {
        (Some(EffectState::Started | EffectState::Unknown), _) => {
            query(client, include_str!("sql/list_open_effects.sql"), &values).await?
        }
        (_, Some(_)) => {
            query(client, include_str!("sql/list_receipt_effects.sql"), &values).await?
        }
        (_, None) => query(client, include_str!("sql/list_effects.sql"), &values[..6]).await?,
    };
    rows.iter().map(read).collect()
}

pub(super) async fn conflicts(
    client: &impl GenericClient,
    key: &str,
    limit: usize,
) -> Result<Vec<EffectConflict>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = query(client, include_str!("sql/list_conflicts.sql"), &[&key, &limit]).await?;
    let conflict = |row: &Row| EffectConflict {
        receipt: row.get::<_, Uuid>(0).into(),
        route: row.get(1),
        at: row.get(2),
        differs: row.get(3),
    };
    Ok(rows.iter().map(conflict).collect())
}

pub(super) async fn count_conflicts(client: &impl GenericClient) -> Result<u64, StoreError> {
    let rows = query(client, include_str!("sql/count_conflicts.sql"), &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

pub(super) async fn tally(client: &impl GenericClient) -> Result<Vec<EffectTally>, StoreError> {
    let rows = query(client, include_str!("sql/tally_effects.sql"), &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(EffectTally {
                state: state(row.get(0))?,
                count: row.get::<_, i64>(1).unsigned_abs(),
                oldest: row.get(2),
            })
        })
        .collect()
}
