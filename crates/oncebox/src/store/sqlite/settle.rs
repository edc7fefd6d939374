//! What operators and retention do to the ledger.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};

use super::acts::note;
use super::begun::{note_unanswered, release_parked};
use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::effects;
use super::rows::halves;
use super::verbs::receipt_of_message;
use crate::effect::{EffectActed, EffectState, Verdict};
use crate::limits;
use crate::store::{Act, StoreError, SweepCursor, checks, day_of};

/// Writes down what a person found out about an effect.
pub(super) fn settle(
    connection: &mut Connection,
    clock: &StoreClock,
    key: &str,
    verdict: &Verdict,
    act: &Act,
) -> Result<EffectActed, StoreError> {
    if let Verdict::Done { result } = verdict {
        checks::result(result.as_deref())?;
    }
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let found = effects::find(transaction, key, clock.lease_time())?;
        let unknowns = match found.map(|found| found.effect) {
            None => return Ok(EffectActed::NotFound),
            Some(effect) if effect.state == EffectState::Unknown => effect.unknowns,
            Some(effect) => return Ok(EffectActed::Not(effect.state)),
        };
        note_unanswered(transaction, key, now)?;
        match verdict {
            Verdict::Done { result } => {
                let values = params![key, result, now, unknowns];
                run(transaction, include_str!("sql/settle_effect.sql"), values)?;
            }
            Verdict::NotDone => delete(transaction, key)?,
        }
        let released = release_parked(transaction, key, now)?;
        note(transaction, act, "settle-effect", key)?;
        Ok(EffectActed::Done { released })
    })
}

/// Forgets an effect that nobody is at.
pub(super) fn forget(
    connection: &mut Connection,
    clock: &StoreClock,
    key: &str,
    act: &Act,
) -> Result<EffectActed, StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let found = effects::find(transaction, key, clock.lease_time())?;
        match found.map(|found| found.effect.state) {
            None => return Ok(EffectActed::NotFound),
            Some(EffectState::Started) => return Ok(EffectActed::Not(EffectState::Started)),
            Some(EffectState::Done | EffectState::Unknown) => delete(transaction, key)?,
        }
        run(transaction, include_str!("sql/forget_unanswered.sql"), [key])?;
        let released = release_parked(transaction, key, now)?;
        note(transaction, act, "forget-effect", key)?;
        Ok(EffectActed::Done { released })
    })
}

fn delete(transaction: &Transaction<'_>, key: &str) -> rusqlite::Result<()> {
    run(transaction, include_str!("sql/delete_effect.sql"), [key]).map(drop)
}

/// What may go.
#[derive(Clone)]
pub(super) enum Expired {
    /// A key, the time it must have been done before, and the row of its message.
    Effect(String, i64, Option<i64>),
    /// Those who gave no answer before that time.
    Unanswered(i64),
    /// A route, a group, and the day it must not have been touched since.
    Group(i16, String, i32),
}

/// What a step of the sweep saw.
pub(super) struct Swept {
    pub(super) next: Option<SweepCursor>,
    pub(super) expired: Vec<Expired>,
}

/// Where the sweep stands: one table after the other, each in the order of its key.
enum At {
    Effects(String),
    Groups(i16, String),
}

impl At {
    fn encode(&self) -> SweepCursor {
        SweepCursor(match self {
            Self::Effects(key) => [b"e", key.as_bytes()].concat(),
            Self::Groups(route, name) => [b"g", &route.to_be_bytes()[..], name.as_bytes()].concat(),
        })
    }

    /// The beginning, for a cursor that says nothing.
    fn decode(cursor: &SweepCursor) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match cursor.0.as_slice() {
            [b'e', key @ ..] => Self::Effects(text(key)),
            [b'g', a, b, name @ ..] => Self::Groups(i16::from_be_bytes([*a, *b]), text(name)),
            _ => Self::Effects(String::new()),
        }
    }
}

/// Looks at the next rows.
pub(super) fn sweep(
    db: &Connection,
    from: &SweepCursor,
    done_before: Timestamp,
) -> Result<Swept, StoreError> {
    let swept = match At::decode(from) {
        At::Effects(key) => sweep_effects(db, &key, done_before.as_millisecond()),
        At::Groups(route, name) => sweep_groups(db, route, &name, day_of(done_before)),
    };
    swept.map_err(failure)
}

fn sweep_effects(db: &Connection, after: &str, before: i64) -> rusqlite::Result<Swept> {
    let mut statement = db.prepare_cached(include_str!("sql/sweep_effects.sql"))?;
    let mut rows = statement.query(params![after, limits::SWEEP_ROWS])?;
    let first_group = At::Groups(0, String::new()).encode();
    let mut swept = Swept { next: Some(first_group), expired: vec![] };
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        swept.next = Some(At::Effects(key.clone()).encode());
        let state: String = row.get(1)?;
        if state == EffectState::Done.as_str() && row.get::<_, i64>(2)? < before {
            let message = receipt_of_message(row.get::<_, Option<String>>(3)?.as_deref());
            swept.expired.push(Expired::Effect(key, before, message.map(|id| halves(id).0)));
        }
    }
    // Once in a pass, with the step that comes to the end.
    if matches!(swept.next.as_ref().map(At::decode), Some(At::Groups(..))) {
        swept.expired.push(Expired::Unanswered(before));
    }
    Ok(swept)
}

fn sweep_groups(db: &Connection, route: i16, after: &str, day: i32) -> rusqlite::Result<Swept> {
    let mut statement = db.prepare_cached(include_str!("sql/sweep_groups.sql"))?;
    let mut rows = statement.query(params![route, after, limits::SWEEP_ROWS])?;
    let mut swept = Swept { next: None, expired: vec![] };
    while let Some(row) = rows.next()? {
        let (route, name): (i16, String) = (row.get(0)?, row.get(1)?);
        swept.next = Some(At::Groups(route, name.clone()).encode());
        if row.get::<_, i32>(2)? < day {
            swept.expired.push(Expired::Group(route, name, day));
        }
    }
    Ok(swept)
}

/// Removes what still may go. Says how many effects went.
pub(super) fn remove(
    connection: &mut Connection,
    expired: &[Expired],
) -> Result<usize, StoreError> {
    in_transaction(connection, |transaction| {
        let mut removed = 0;
        for one in expired {
            match one {
                Expired::Effect(key, before, message) => {
                    let values = params![key, before, message];
                    removed += run(transaction, include_str!("sql/expire_effect.sql"), values)?;
                }
                Expired::Unanswered(before) => {
                    let values = params![before, limits::EXPIRE_ROWS];
                    run(transaction, include_str!("sql/delete_unanswered.sql"), values)?;
                }
                Expired::Group(route, name, day) => {
                    let values = params![route, name, day];
                    run(transaction, include_str!("sql/delete_group.sql"), values)?;
                }
            }
        }
        Ok(removed)
    })
}
