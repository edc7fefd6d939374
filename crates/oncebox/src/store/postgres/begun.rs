//! Effects outside a transaction: begun before, completed or abandoned after.
//!
//! Whoever meets an effect that is there locks it, then what the delivery shares with others, then
//! deliveries: in the order in which transactions that carry verbs come by them.

use deadpool_postgres::{GenericClient, Object, Transaction};

use super::PostgresStore;
use super::connect::{execute, failure, query};
use super::effects::{self, Leases, Met};
use super::locks::{self, Guard, Left};
use crate::effect::{Begun, EffectKind, EffectName, EffectState, OnUnknown, Settled, Under};
use crate::store::{StoreError, checks, words};

/// How often to begin anew when an effect goes away between two looks.
const TRIES: usize = 5;

/// Begins an effect. Whoever hears that it is theirs makes a call that cannot be taken back, so the
/// beginning must not get lost: not with the machine, nor when a standby takes over.
pub(super) async fn begin(
    store: &PostgresStore,
    under: Under,
    name: &EffectName,
    on_unknown: OnUnknown,
) -> Result<Begun, StoreError> {
    let cut_before = store.connector.sync_waits_cut();
    let begin = async |client: &mut Object| begin_on(client, under, name, on_unknown).await;
    let (begun, released) = store.working.write(begin).await?;
    if released {
        store.wake.everywhere();
    }
    store.connector.is_durable_since(cut_before)?;
    Ok(begun)
}

/// Begins an effect, and says whether anything was let go by it.
async fn begin_on(
    client: &mut Object,
    under: Under,
    name: &EffectName,
    on_unknown: OnUnknown,
) -> Result<(Begun, bool), StoreError> {
    let Some((key, kind)) = key_of(client, under, name).await? else {
        return Ok((Begun::LeaseLost, false));
    };
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    for _ in 0..TRIES {
        let sql = include_str!("sql/begin_effect.sql");
        let (kind, lease) = (kind.as_str(), under.lease.0);
        if execute(client, sql, &[&key, &kind, &receipt, &route, &lease]).await? > 0 {
            return Ok((Begun::Yours { key, unknowns: 0, evidence: None }, false));
        }
        if let Some(begun) = meet(client, under, &key, on_unknown).await? {
            return Ok(begun);
        }
    }
    Err(StoreError::Unavailable(format!("the effect `{key}` comes and goes")))
}

/// Begins an effect that is there, or tells that the lease is lost. None if it has gone meanwhile.
async fn meet(
    client: &mut Object,
    under: Under,
    key: &str,
    on_unknown: OnUnknown,
) -> Result<Option<(Begun, bool)>, StoreError> {
    let guards = match on_unknown {
        OnUnknown::Ask => locks::find(client, [under.delivery]).await?,
        OnUnknown::Retry => Vec::new(),
    };
    let transaction = client.transaction().await.map_err(failure)?;
    let met = effects::lock(&transaction, key).await?;
    let is_at_it = |met: &Met| met.state == EffectState::Started && met.owner == under;
    let open = met.filter(|met| met.state != EffectState::Done && !is_at_it(met));
    if open.is_some() {
        locks::lock(&transaction, guards.iter()).await?;
    }
    let deliveries = [Some(under.delivery), open.map(|met| met.owner.delivery)];
    let leases = Leases::lock(&transaction, deliveries.into_iter().flatten()).await?;
    let Some(attempt) = leases.attempt(under) else {
        return Ok(Some((Begun::LeaseLost, false)));
    };
    let Some(met) = met else { return Ok(None) };

    let mut released = false;
    let begun = match met.state {
        EffectState::Done => {
            note_conflict(&transaction, under, &met, key).await?;
            Begun::Done(effects::find_locked(&transaction, key).await?)
        }
        EffectState::Started if met.owner == under => yours(&transaction, key).await?,
        EffectState::Started if leases.are_good(met.owner) => {
            Begun::Busy(effects::find_locked(&transaction, key).await?)
        }
        EffectState::Started | EffectState::Unknown => match on_unknown {
            OnUnknown::Retry => {
                take_over(&transaction, under, attempt, &met, key).await?;
                yours(&transaction, key).await?
            }
            OnUnknown::Ask => {
                released = park(&transaction, under, &met, key, &guards).await?;
                Begun::Parked(effects::find_locked(&transaction, key).await?)
            }
        },
    };
    transaction.commit().await.map_err(failure)?;
    Ok(Some((begun, released)))
}

async fn yours(transaction: &Transaction<'_>, key: &str) -> Result<Begun, StoreError> {
    let effect = effects::find_locked(transaction, key).await?;
    Ok(Begun::Yours { key: effect.key, unknowns: effect.unknowns, evidence: effect.evidence })
}

async fn note_conflict(
    transaction: &Transaction<'_>,
    under: Under,
    met: &Met,
    key: &str,
) -> Result<(), StoreError> {
    if met.owner.delivery == under.delivery {
        return Ok(());
    }
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let sql = include_str!("sql/insert_conflict.sql");
    execute(transaction, sql, &[&key, &receipt, &route, &false]).await.map(drop)
}

async fn take_over(
    transaction: &Transaction<'_>,
    under: Under,
    attempt: i32,
    met: &Met,
    key: &str,
) -> Result<(), StoreError> {
    if met.owner != under {
        note_unanswered(transaction, key).await?;
    }
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let (lease, unknowns) = (under.lease.0, met.unknowns_with_this());
    let sql = include_str!("sql/take_over_effect.sql");
    execute(transaction, sql, &[&key, &receipt, &route, &lease, &attempt, &unknowns])
        .await
        .map(drop)
}

/// Remembers whoever is at an effect that is locked, for what it may still say.
pub(super) async fn note_unanswered(
    transaction: &Transaction<'_>,
    key: &str,
) -> Result<(), StoreError> {
    execute(transaction, include_str!("sql/note_unanswered.sql"), &[&key]).await.map(drop)
}

/// Holds the caller's delivery until a person has said what came of an effect. Says whether others
/// are let go by it: they are free of its lease, and on an ordered route still behind it.
async fn park(
    transaction: &Transaction<'_>,
    under: Under,
    met: &Met,
    key: &str,
    guards: &[Guard],
) -> Result<bool, StoreError> {
    doubt(transaction, key, met.unknowns_with_this(), false).await?;
    let detail = words::short(&format!("whether the effect `{key}` happened is not known"));
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let sql = include_str!("sql/park_delivery.sql");
    execute(transaction, sql, &[&receipt, &route, &under.lease.0, &key, &detail]).await?;
    let from_lanes = locks::release_lanes(transaction, guards.iter()).await?;
    let left = guards.iter().map(|guard| (guard, Left::ForNow));
    let from_operations = locks::release_operations(transaction, left).await?;
    Ok(from_lanes || from_operations)
}

/// Writes down that nobody knows what came of an effect, from now on or for as long as it was so.
async fn doubt(
    transaction: &Transaction<'_>,
    key: &str,
    unknowns: i32,
    from_now: bool,
) -> Result<(), StoreError> {
    let sql = include_str!("sql/doubt_effect.sql");
    execute(transaction, sql, &[&key, &unknowns, &from_now]).await.map(drop)
}

/// Says that an effect happened.
pub(super) async fn complete(
    store: &PostgresStore,
    under: Under,
    name: &EffectName,
    result: Option<&str>,
) -> Result<Settled, StoreError> {
    checks::result(result)?;
    let complete = async |client: &mut Object| complete_on(client, under, name, result).await;
    let (settled, released) = store.working.write(complete).await?;
    if released {
        store.wake.everywhere();
    }
    Ok(settled)
}

/// Completes an effect, and says whether a delivery that was held for it goes on.
async fn complete_on(
    client: &mut Object,
    under: Under,
    name: &EffectName,
    result: Option<&str>,
) -> Result<(Settled, bool), StoreError> {
    let Some((key, _)) = key_of(client, under, name).await? else {
        return Ok((Settled::NotBegun, false));
    };
    if let Some(released) = try_to_complete(client, under, &key, result).await? {
        return Ok((Settled::Done, released));
    }
    let transaction = client.transaction().await.map_err(failure)?;
    reopen(&transaction, under, &key).await?;
    let caller = stands(&transaction, under, &key).await?.1;
    let (settled, released) = match caller {
        // Its lease was being extended, or ends right now.
        Caller::AtIt => match try_to_complete(&transaction, under, &key, result).await? {
            Some(released) => (Settled::Done, released),
            None => (Settled::Late, false),
        },
        Caller::DidIt => (Settled::Done, false),
        Caller::Late => (Settled::Late, false),
        Caller::LeftIt | Caller::Stranger => (Settled::NotBegun, false),
    };
    if settled == Settled::Late || caller == Caller::LeftIt {
        let sql = include_str!("sql/keep_evidence.sql");
        execute(&transaction, sql, &[&key, &result]).await?;
    }
    transaction.commit().await.map_err(failure)?;
    Ok((settled, released))
}

/// Opens an effect again that is gone because a person said that it did not happen, if the caller
/// is one of those who began it. It comes first, since effects are locked before deliveries.
async fn reopen(transaction: &Transaction<'_>, under: Under, key: &str) -> Result<(), StoreError> {
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let sql = include_str!("sql/reopen_effect.sql");
    execute(transaction, sql, &[&key, &receipt, &route, &under.lease.0]).await.map(drop)
}

/// Completes an effect that the caller is at. None if it is not; otherwise whether a delivery that
/// was held for it goes on.
async fn try_to_complete(
    client: &impl GenericClient,
    under: Under,
    key: &str,
    result: Option<&str>,
) -> Result<Option<bool>, StoreError> {
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let sql = include_str!("sql/complete_effect.sql");
    let rows = query(client, sql, &[&key, &receipt, &route, &under.lease.0, &result]).await?;
    Ok(rows.first().map(|row| row.get::<_, i64>(0) > 0))
}

/// Says that an effect did not happen.
pub(super) async fn abandon(
    store: &PostgresStore,
    under: Under,
    name: &EffectName,
) -> Result<Settled, StoreError> {
    store.working.write(async |client| abandon_on(client, under, name).await).await
}

async fn abandon_on(
    client: &mut Object,
    under: Under,
    name: &EffectName,
) -> Result<Settled, StoreError> {
    let Some((key, _)) = key_of(client, under, name).await? else {
        return Ok(Settled::NotBegun);
    };
    let transaction = client.transaction().await.map_err(failure)?;
    let (unknowns, caller) = stands(&transaction, under, &key).await?;
    let settled = match caller {
        Caller::AtIt if unknowns == 0 => {
            execute(&transaction, include_str!("sql/delete_effect.sql"), &[&key]).await?;
            Settled::Done
        }
        Caller::AtIt => {
            // What was begun before it is as unknown as it was.
            doubt(&transaction, &key, unknowns, true).await?;
            Settled::Done
        }
        Caller::LeftIt => Settled::Done,
        Caller::Late => Settled::Late,
        Caller::DidIt | Caller::Stranger => Settled::NotBegun,
    };
    transaction.commit().await.map_err(failure)?;
    Ok(settled)
}

/// The key of an effect and its kind; none if there is no such route.
async fn key_of(
    client: &Object,
    under: Under,
    name: &EffectName,
) -> Result<Option<(String, EffectKind)>, StoreError> {
    let receipt = under.delivery.receipt;
    let rows =
        query(client, include_str!("sql/find_birth.sql"), &[&under.delivery.route.0]).await?;
    rows.first().map(|row| checks::key(name, receipt, row.get(0), row.get(1))).transpose()
}

/// What somebody who speaks of an effect has to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// It began it, and its lease is good.
    AtIt,
    /// It did it.
    DidIt,
    /// It abandoned it, and its lease is good.
    LeftIt,
    /// It began it, and its lease is not good any more.
    Late,
    /// It has not begun it.
    Stranger,
}

/// Locks an effect and then the caller's delivery; says how often the effect was begun without an
/// answer, and what the caller has to do with it.
async fn stands(
    transaction: &Transaction<'_>,
    under: Under,
    key: &str,
) -> Result<(i32, Caller), StoreError> {
    let Some(met) = effects::lock(transaction, key).await? else {
        return Ok((0, Caller::Stranger));
    };
    let leases = Leases::lock(transaction, [under.delivery]).await?;
    let (receipt, route) = (under.delivery.receipt.as_uuid(), under.delivery.route.0);
    let sql = include_str!("sql/find_unanswered.sql");
    let rows = query(transaction, sql, &[&key, &receipt, &route, &under.lease.0]).await?;
    let was_its = !rows.is_empty();
    let caller = judge(met.state, met.owner == under, leases.are_good(under), was_its);
    Ok((met.unknowns, caller))
}

/// `was_its`: it began it, and somebody else has taken it over or settled it since.
fn judge(state: EffectState, is_its: bool, is_good: bool, was_its: bool) -> Caller {
    match (is_its, is_good) {
        (true, _) if state == EffectState::Done => Caller::DidIt,
        (true, true) if state == EffectState::Started => Caller::AtIt,
        (false, _) if !was_its => Caller::Stranger,
        // Under a good lease nobody else gets at it before it is abandoned.
        (_, true) => Caller::LeftIt,
        (_, false) => Caller::Late,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_lease_speaks_of_what_it_began() {
        use EffectState::{Done, Started, Unknown};
        assert_eq!(judge(Started, true, true, false), Caller::AtIt);
        assert_eq!(judge(Started, true, false, false), Caller::Late);
        assert_eq!(judge(Unknown, true, true, true), Caller::LeftIt);
        assert_eq!(judge(Unknown, true, false, true), Caller::Late);
        assert_eq!(judge(Done, true, false, false), Caller::DidIt);
    }

    #[test]
    fn of_others_only_those_who_began_it_are_late() {
        for state in EffectState::ALL {
            assert_eq!(judge(state, false, true, false), Caller::Stranger);
            assert_eq!(judge(state, false, false, false), Caller::Stranger);
            assert_eq!(judge(state, false, false, true), Caller::Late);
            assert_eq!(judge(state, false, true, true), Caller::LeftIt);
        }
    }
}
