//! Effects outside a transaction: begun before, completed or abandoned after, each in a
//! transaction of its own.

use rusqlite::{Connection, Transaction, params};

use super::clock::StoreClock;
use super::connection::{in_transaction, run};
use super::effects::{self, Found};
use super::finish::{Attempt, find_open, insert_attempt};
use super::guards;
use super::rows::halves;
use super::verbs::{self, Entry, Named, Work};
use crate::delivery::State;
use crate::effect::{Begun, EffectName, EffectState, OnUnknown, Settled, Under};
use crate::store::{StoreError, checks, words};

/// Begins an effect. Says as well whether a delivery became due by it.
pub(super) fn begin(
    connection: &mut Connection,
    clock: &StoreClock,
    under: Under,
    name: &EffectName,
    on_unknown: OnUnknown,
) -> Result<(Begun, bool), StoreError> {
    let Some(named) = verbs::named(connection, under, name)? else {
        return Ok((Begun::LeaseLost, false));
    };
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let Some(work) = verbs::find_work(transaction, under, now)? else {
            return Ok((Begun::LeaseLost, false));
        };
        begin_under(transaction, under, &work, &named, on_unknown, now)
    })
}

fn begin_under(
    transaction: &Transaction<'_>,
    under: Under,
    work: &Work,
    named: &Named,
    on_unknown: OnUnknown,
    now: i64,
) -> rusqlite::Result<(Begun, bool)> {
    let entry = Entry { named, state: EffectState::Started, digest: None, result: None };
    if verbs::insert(transaction, under, work, &entry, now)? {
        let key = named.key.clone();
        return Ok((Begun::Yours { key, unknowns: 0, evidence: None }, false));
    }
    let mut found = verbs::there(effects::find(transaction, &named.key, now)?)?;
    match found.effect.state {
        EffectState::Done => {
            verbs::note_conflict(transaction, under, &mut found, false, now)?;
            Ok((Begun::Done(found.effect), false))
        }
        EffectState::Started if found.is_of(under) => Ok((yours(found), false)),
        EffectState::Started => Ok((Begun::Busy(found.effect), false)),
        EffectState::Unknown => match on_unknown {
            OnUnknown::Retry => {
                take_over(transaction, under, work, &found, now)?;
                Ok((yours(found), false))
            }
            OnUnknown::Ask => {
                let due = park(transaction, under, &found, now)?;
                Ok((Begun::Parked(found.effect), due))
            }
        },
    }
}

fn yours(found: Found) -> Begun {
    let effect = found.effect;
    Begun::Yours { key: effect.key, unknowns: effect.unknowns, evidence: effect.evidence }
}

fn take_over(
    transaction: &Transaction<'_>,
    under: Under,
    work: &Work,
    found: &Found,
    now: i64,
) -> rusqlite::Result<()> {
    if !found.is_of(under) {
        note_unanswered(transaction, &found.effect.key, now)?;
    }
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![
        found.effect.key,
        head,
        tail,
        under.delivery.route.0,
        under.lease.0,
        work.attempt,
        now,
        found.effect.unknowns,
    ];
    run(transaction, include_str!("sql/take_over_effect.sql"), values).map(drop)
}

/// Remembers whoever is at an effect, for what it may still say.
pub(super) fn note_unanswered(db: &Connection, key: &str, now: i64) -> rusqlite::Result<()> {
    run(db, include_str!("sql/note_unanswered.sql"), params![key, now]).map(drop)
}

/// Holds the caller's delivery until a person has said what came of an effect. Says whether others
/// became due by it.
fn park(
    transaction: &Transaction<'_>,
    under: Under,
    found: &Found,
    now: i64,
) -> rusqlite::Result<bool> {
    let effect = &found.effect;
    let values = params![effect.key, effect.at.as_millisecond(), effect.unknowns];
    run(transaction, include_str!("sql/doubt_effect.sql"), values)?;
    let open = find_open(transaction, under.delivery, Some(under.lease), now)?
        .ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let detail = format!("whether the effect `{}` happened is not known", effect.key);
    let detail = words::short(&detail);
    let head = halves(under.delivery.receipt).0;
    let values = params![head, under.delivery.route.0, open.epoch, effect.key, detail];
    run(transaction, include_str!("sql/park_delivery.sql"), values)?;
    let attempt = Attempt { outcome: "snooze", took: None, status: None, detail: Some(&detail) };
    insert_attempt(transaction, &open, &attempt, now)?;
    Ok(guards::release(transaction, &open.guarded, State::Held, now)? > 0)
}

/// Says that an effect happened. Says as well whether a delivery that was held for it goes on.
pub(super) fn complete(
    connection: &mut Connection,
    clock: &StoreClock,
    under: Under,
    name: &EffectName,
    result: Option<&str>,
) -> Result<(Settled, bool), StoreError> {
    checks::result(result)?;
    let Some(named) = verbs::named(connection, under, name)? else {
        return Ok((Settled::NotBegun, false));
    };
    in_transaction(connection, |transaction| {
        let now = clock.now();
        reopen(transaction, under, &named.key, now)?;
        let Some(found) = effects::find(transaction, &named.key, now)? else {
            return Ok((Settled::NotBegun, false));
        };
        let keep_evidence = || {
            let values = params![named.key, now, result];
            run(transaction, include_str!("sql/keep_evidence.sql"), values).map(drop)
        };
        match standing(transaction, under, &found, now)? {
            Caller::AtIt => {
                let released = make_done(transaction, under, &named.key, result, now)?;
                Ok((Settled::Done, released > 0))
            }
            Caller::DidIt => Ok((Settled::Done, false)),
            Caller::Late => keep_evidence().map(|()| (Settled::Late, false)),
            Caller::LeftIt => keep_evidence().map(|()| (Settled::NotBegun, false)),
            Caller::Stranger => Ok((Settled::NotBegun, false)),
        }
    })
}

/// Opens an effect again that is gone because a person said that it did not happen, if the caller
/// is one of those who began it.
fn reopen(db: &Connection, under: Under, key: &str, now: i64) -> rusqlite::Result<()> {
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![key, head, tail, under.delivery.route.0, under.lease.0, now];
    run(db, include_str!("sql/reopen_effect.sql"), values).map(drop)
}

/// Says that an effect did not happen.
pub(super) fn abandon(
    connection: &mut Connection,
    clock: &StoreClock,
    under: Under,
    name: &EffectName,
) -> Result<Settled, StoreError> {
    let Some(named) = verbs::named(connection, under, name)? else {
        return Ok(Settled::NotBegun);
    };
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let Some(found) = effects::find(transaction, &named.key, now)? else {
            return Ok(Settled::NotBegun);
        };
        match standing(transaction, under, &found, now)? {
            Caller::AtIt if found.effect.unknowns == 0 => {
                run(transaction, include_str!("sql/delete_effect.sql"), [&named.key])?;
                Ok(Settled::Done)
            }
            Caller::AtIt => {
                // What was begun before it is as unknown as it was.
                let values = params![named.key, now, found.effect.unknowns];
                run(transaction, include_str!("sql/doubt_effect.sql"), values)?;
                Ok(Settled::Done)
            }
            Caller::LeftIt => Ok(Settled::Done),
            Caller::Late => Ok(Settled::Late),
            Caller::DidIt | Caller::Stranger => Ok(Settled::NotBegun),
        }
    })
}

/// What somebody who speaks of an effect has to do with it.
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

fn standing(
    transaction: &Transaction<'_>,
    under: Under,
    found: &Found,
    now: i64,
) -> rusqlite::Result<Caller> {
    let is_of = found.is_of(under);
    match found.effect.state {
        EffectState::Started if is_of => return Ok(Caller::AtIt),
        EffectState::Done if is_of => return Ok(Caller::DidIt),
        _ => {}
    }
    // Somebody else may have taken it over since it began it, or settled it.
    if !is_of && !gave_no_answer(transaction, under, &found.effect.key)? {
        return Ok(Caller::Stranger);
    }
    // Under a good lease nobody else gets at it before it is abandoned.
    Ok(match verbs::find_work(transaction, under, now)? {
        Some(_) => Caller::LeftIt,
        None => Caller::Late,
    })
}

/// Whether a caller began an effect and has not said what came of it.
fn gave_no_answer(db: &Connection, under: Under, key: &str) -> rusqlite::Result<bool> {
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![key, head, tail, under.delivery.route.0, under.lease.0];
    let mut statement = db.prepare_cached(include_str!("sql/find_unanswered.sql"))?;
    statement.query_row(values, |row| row.get(0))
}

/// Lets go what is held for an effect, now that its outcome is known. Says how many.
pub(super) fn release_parked(db: &Connection, key: &str, now: i64) -> rusqlite::Result<usize> {
    run(db, include_str!("sql/release_parked.sql"), params![key, now])
}

/// Makes done what a caller is at, under a lease that was checked. Says how many deliveries that
/// were held for it go on.
pub(super) fn make_done(
    db: &Connection,
    under: Under,
    key: &str,
    result: Option<&str>,
    now: i64,
) -> rusqlite::Result<usize> {
    let (head, route) = (halves(under.delivery.receipt).0, under.delivery.route.0);
    let values = params![key, head, route, under.lease.0, result, now];
    run(db, include_str!("sql/complete_effect.sql"), values)?;
    release_parked(db, key, now)
}
