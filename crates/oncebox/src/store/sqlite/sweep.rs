//! The sweep over what is remembered: identities, and what was processed of objects and
//! operations. Found on a reader, removed by the writer in short transactions.

use rusqlite::{Connection, params};

use super::connection::{failure, in_transaction, run};
use crate::limits;
use crate::receipt::SourceNo;
use crate::store::{StoreError, SweepCursor};

/// A memory that may go: its key, and the day it must not have been touched since.
#[derive(Clone)]
pub(super) enum Expired {
    Identity(i16, Vec<u8>, i32),
    Guard(i16, Vec<u8>, i32),
    Lane(i16, i16, String, i32),
    Operation(i16, Vec<u8>, i32),
}

/// What a step of the sweep saw.
pub(super) struct Swept {
    pub(super) next: Option<SweepCursor>,
    pub(super) expired: Vec<Expired>,
}

/// Where the sweep stands: one table after the other, each in the order of its key.
enum At {
    Identities(i16, Vec<u8>),
    Guards(i16, Vec<u8>),
    Lanes(i16, i16, String),
    Operations(i16, Vec<u8>),
}

impl At {
    fn encode(&self) -> SweepCursor {
        SweepCursor(match self {
            Self::Identities(source, key) => [b"i", &source.to_be_bytes()[..], key].concat(),
            Self::Guards(source, key) => [b"g", &source.to_be_bytes()[..], key].concat(),
            Self::Lanes(route, source, object) => {
                let (route, source) = (route.to_be_bytes(), source.to_be_bytes());
                [b"l", &route[..], &source, object.as_bytes()].concat()
            }
            Self::Operations(route, key) => [b"o", &route.to_be_bytes()[..], key].concat(),
        })
    }

    /// The beginning, for a cursor that says nothing.
    fn decode(cursor: &SweepCursor) -> Self {
        let number = |high, low| i16::from_be_bytes([high, low]);
        match cursor.0.as_slice() {
            [b'i', a, b, key @ ..] => Self::Identities(number(*a, *b), key.to_vec()),
            [b'g', a, b, key @ ..] => Self::Guards(number(*a, *b), key.to_vec()),
            [b'l', a, b, c, d, object @ ..] => {
                let object = String::from_utf8_lossy(object).into_owned();
                Self::Lanes(number(*a, *b), number(*c, *d), object)
            }
            [b'o', a, b, key @ ..] => Self::Operations(number(*a, *b), key.to_vec()),
            _ => Self::Identities(0, Vec::new()),
        }
    }
}

/// Looks at the next rows. `guards_before` is the day from which guards are kept.
pub(super) fn sweep(
    connection: &Connection,
    from: &SweepCursor,
    bounds: &[(SourceNo, i32)],
    guards_before: i32,
) -> Result<Swept, StoreError> {
    let swept = match At::decode(from) {
        At::Identities(source, key) => memories(connection, &IDENTITIES, source, &key, bounds),
        At::Guards(source, key) => memories(connection, &GUARDS, source, &key, bounds),
        At::Lanes(route, source, object) => {
            lanes(connection, (route, source, &object), guards_before)
        }
        At::Operations(route, key) => operations(connection, route, &key, guards_before),
    };
    swept.map_err(failure)
}

/// A table that remembers by source and key: how it is read, and what follows it.
struct Memory {
    sql: &'static str,
    at: fn(i16, Vec<u8>) -> At,
    expired: fn(i16, Vec<u8>, i32) -> Expired,
    then: fn() -> At,
}

const IDENTITIES: Memory = Memory {
    sql: include_str!("sql/sweep_identities.sql"),
    at: At::Identities,
    expired: Expired::Identity,
    then: || At::Guards(0, Vec::new()),
};

const GUARDS: Memory = Memory {
    sql: include_str!("sql/sweep_guards.sql"),
    at: At::Guards,
    expired: Expired::Guard,
    then: || At::Lanes(0, 0, String::new()),
};

fn memories(
    connection: &Connection,
    memory: &Memory,
    source: i16,
    key: &[u8],
    bounds: &[(SourceNo, i32)],
) -> rusqlite::Result<Swept> {
    let mut statement = connection.prepare_cached(memory.sql)?;
    let mut rows = statement.query(params![source, key, limits::SWEEP_ROWS])?;
    let mut swept = Swept { next: Some((memory.then)().encode()), expired: vec![] };
    while let Some(row) = rows.next()? {
        let (source, key): (i16, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let last_seen: i32 = row.get(3)?;
        swept.next = Some((memory.at)(source, key.clone()).encode());
        let bound = bounds.iter().find(|(bounded, _)| bounded.0 == source);
        if let Some((_, bound)) = bound.filter(|(_, bound)| last_seen < *bound) {
            swept.expired.push((memory.expired)(source, key, *bound));
        }
    }
    Ok(swept)
}

fn lanes(
    connection: &Connection,
    (route, source, object): (i16, i16, &str),
    before: i32,
) -> rusqlite::Result<Swept> {
    let mut statement = connection.prepare_cached(include_str!("sql/sweep_lanes.sql"))?;
    let mut rows = statement.query(params![route, source, object, limits::SWEEP_ROWS])?;
    let mut swept = Swept { next: Some(At::Operations(0, Vec::new()).encode()), expired: vec![] };
    while let Some(row) = rows.next()? {
        let (route, source, object): (i16, i16, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        swept.next = Some(At::Lanes(route, source, object.clone()).encode());
        if row.get::<_, i32>(3)? < before {
            swept.expired.push(Expired::Lane(route, source, object, before));
        }
    }
    Ok(swept)
}

fn operations(
    connection: &Connection,
    route: i16,
    key: &[u8],
    before: i32,
) -> rusqlite::Result<Swept> {
    let mut statement = connection.prepare_cached(include_str!("sql/sweep_operations.sql"))?;
    let mut rows = statement.query(params![route, key, limits::SWEEP_ROWS])?;
    let mut swept = Swept { next: None, expired: vec![] };
    while let Some(row) = rows.next()? {
        let (route, key): (i16, Vec<u8>) = (row.get(0)?, row.get(1)?);
        swept.next = Some(At::Operations(route, key.clone()).encode());
        if row.get::<_, i32>(2)? < before {
            swept.expired.push(Expired::Operation(route, key, before));
        }
    }
    Ok(swept)
}

/// Removes what still may go. Says how many identities went.
pub(super) fn delete(
    connection: &mut Connection,
    expired: &[Expired],
) -> Result<usize, StoreError> {
    in_transaction(connection, |transaction| {
        let mut removed = 0;
        for one in expired {
            match one {
                Expired::Identity(source, key, bound) => {
                    let values = params![source, key, bound];
                    removed += run(transaction, include_str!("sql/delete_identity.sql"), values)?;
                }
                Expired::Guard(source, key, bound) => {
                    let values = params![source, key, bound];
                    run(transaction, include_str!("sql/delete_guard.sql"), values)?;
                }
                Expired::Lane(route, source, object, bound) => {
                    let values = params![route, source, object, bound];
                    run(transaction, include_str!("sql/delete_lane.sql"), values)?;
                }
                Expired::Operation(route, key, bound) => {
                    let values = params![route, key, bound];
                    run(transaction, include_str!("sql/delete_operation.sql"), values)?;
                }
            }
        }
        Ok(removed)
    })
}
