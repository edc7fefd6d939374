//! Names of sources and routes, and fingerprints of secrets, as small numbers.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::connection::{failure, in_transaction, run};
use super::rows::milliseconds;
use crate::effect::OUTBOX;
use crate::receipt::{RouteNo, SecretNo, SourceNo};
use crate::retention::Keep;
use crate::route::RouteRules;
use crate::store::{StoreError, checks, words};

/// The statements of one kind of name.
struct Naming {
    kind: &'static str,
    rename: &'static str,
    note_former: &'static str,
    forget_former: &'static str,
    insert: &'static str,
    find: &'static str,
}

const SOURCES: Naming = Naming {
    kind: "source",
    rename: include_str!("sql/rename_source.sql"),
    note_former: include_str!("sql/note_former_source.sql"),
    forget_former: include_str!("sql/forget_former_source.sql"),
    insert: include_str!("sql/insert_source.sql"),
    find: include_str!("sql/find_source.sql"),
};

const ROUTES: Naming = Naming {
    kind: "route",
    rename: include_str!("sql/rename_route.sql"),
    note_former: include_str!("sql/note_former_route.sql"),
    forget_former: include_str!("sql/forget_former_route.sql"),
    insert: include_str!("sql/insert_route.sql"),
    find: include_str!("sql/find_route.sql"),
};

pub(super) fn source(
    connection: &mut Connection,
    name: &str,
    renamed_from: Option<&str>,
) -> Result<SourceNo, StoreError> {
    checks::name(name)?;
    in_transaction(connection, |transaction| {
        Ok(SourceNo(number(transaction, &SOURCES, name, renamed_from)?.0))
    })
}

/// Keeps a route with its rules.
pub(super) fn route(
    connection: &mut Connection,
    name: &str,
    renamed_from: Option<&str>,
    rules: &RouteRules,
) -> Result<RouteNo, StoreError> {
    checks::name(name)?;
    in_transaction(connection, |transaction| {
        let (number, _) = number(transaction, &ROUTES, name, renamed_from)?;
        set_rules(transaction, number, rules)?;
        Ok(RouteNo(number))
    })
}

/// Keeps what carries the messages of a destination; the rules, if it is new.
pub(super) fn destination(
    connection: &mut Connection,
    name: &str,
    rules: &RouteRules,
) -> Result<RouteNo, StoreError> {
    let carrier = format!("{OUTBOX}{name}");
    checks::name(&carrier)?;
    in_transaction(connection, |transaction| {
        number(transaction, &SOURCES, &carrier, None)?;
        let (number, is_new) = number(transaction, &ROUTES, &carrier, None)?;
        if is_new {
            set_rules(transaction, number, &rules.for_outbox())?;
        }
        Ok(RouteNo(number))
    })
}

/// Stores the rules of a route. One that has come to guard objects has to be filled with them.
fn set_rules(
    transaction: &Transaction<'_>,
    route: i16,
    rules: &RouteRules,
) -> rusqlite::Result<()> {
    let values = params![
        route,
        milliseconds(rules.base),
        milliseconds(rules.cap),
        milliseconds(rules.longest_wait),
        rules.same_operation.map(milliseconds),
        rules.max_attempts,
        rules.max_snoozes,
        rules.ordered,
        rules.skip_stale,
        words::of_on_dead(rules.on_dead),
        rules.pulled,
        rules.budget.map(milliseconds),
        milliseconds(rules.hold_for),
    ];
    run(transaction, include_str!("sql/set_route_rules.sql"), values).map(drop)
}

/// Says which service's workers a route has; refuses another than it was told before.
pub(super) fn assign_service(
    connection: &mut Connection,
    route: RouteNo,
    service: &str,
) -> Result<(), StoreError> {
    checks::service(service)?;
    let (name, known): (String, String) = in_transaction(connection, |transaction| {
        let values = params![route.0, service];
        run(transaction, include_str!("sql/assign_service.sql"), values)?;
        let found = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        transaction.query_row(include_str!("sql/find_birth.sql"), [route.0], found)
    })?;
    checks::same_service(&name, &known, service)
}

/// The number of a name, and whether it is new. A name that was given up by a rename still leads to
/// the same number: the configuration may be set back.
fn number(
    transaction: &Transaction<'_>,
    naming: &Naming,
    name: &str,
    renamed_from: Option<&str>,
) -> rusqlite::Result<(i16, bool)> {
    if let Some(old) = renamed_from
        && transaction.execute(naming.rename, params![name, old])? > 0
    {
        transaction.execute(naming.note_former, params![name, old])?;
        transaction.execute(naming.forget_former, params![name])?;
    }
    let find = || {
        let found = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        transaction.query_row(naming.find, params![name], found).optional()
    };
    let found: Option<(i16, String)> = find()?;
    if let Some((number, current)) = found {
        checks::warn_of_former_name(naming.kind, name, &current);
        return Ok((number, false));
    }
    transaction.execute(naming.insert, params![name])?;
    let (number, _) = find()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok((number, true))
}

pub(super) fn secret(
    connection: &mut Connection,
    source: SourceNo,
    fingerprint: &str,
    at: Timestamp,
) -> Result<SecretNo, StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    transaction
        .execute(
            include_str!("sql/insert_secret.sql"),
            params![source.0, fingerprint, at.as_millisecond()],
        )
        .map_err(failure)?;
    let number = transaction
        .query_row(include_str!("sql/find_secret.sql"), params![source.0, fingerprint], |row| {
            row.get(0)
        })
        .map_err(failure)?;
    transaction.commit().map_err(failure)?;
    Ok(SecretNo(number))
}

/// Notes that the strongest proof of a source is required; false if that was noted before.
pub(super) fn require_strongest(
    connection: &mut Connection,
    source: SourceNo,
) -> Result<bool, StoreError> {
    let changed = connection.execute(include_str!("sql/require_strongest.sql"), [source.0]);
    changed.map(|changed| changed > 0).map_err(failure)
}

pub(super) fn requiring_strongest(connection: &Connection) -> Result<Vec<SourceNo>, StoreError> {
    let mut statement =
        connection.prepare_cached(include_str!("sql/list_strongest.sql")).map_err(failure)?;
    let rows = statement.query_map([], |row| Ok(SourceNo(row.get(0)?))).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

pub(super) fn sources(connection: &Connection) -> Result<Vec<(SourceNo, String)>, StoreError> {
    let mut statement =
        connection.prepare_cached(include_str!("sql/list_sources.sql")).map_err(failure)?;
    let rows =
        statement.query_map([], |row| Ok((SourceNo(row.get(0)?), row.get(1)?))).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

pub(super) fn add_stored(
    connection: &mut Connection,
    bytes: &[(SourceNo, i64)],
) -> Result<(), StoreError> {
    let mut add = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (source, bytes) in bytes {
            transaction
                .prepare_cached(include_str!("sql/add_stored.sql"))?
                .execute(params![source.0, bytes])?;
        }
        transaction.commit()
    };
    add().map_err(failure)
}

pub(super) fn stored(connection: &Connection) -> Result<Vec<(SourceNo, i64)>, StoreError> {
    let mut statement =
        connection.prepare_cached(include_str!("sql/list_stored.sql")).map_err(failure)?;
    let rows =
        statement.query_map([], |row| Ok((SourceNo(row.get(0)?), row.get(1)?))).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

/// Tells how long sources keep what they received.
pub(super) fn tell_windows(
    connection: &mut Connection,
    windows: &HashMap<String, Keep>,
) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| {
        for (name, keep) in windows {
            let values = params![name, keep.payloads.as_secs(), keep.identities.as_secs()];
            run(transaction, include_str!("sql/tell_windows.sql"), values)?;
        }
        Ok(())
    })
}

/// How long sources keep what they received, as far as it was told.
pub(super) fn windows(connection: &Connection) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
    let list = || -> rusqlite::Result<Vec<(SourceNo, Keep)>> {
        let mut statement = connection.prepare_cached(include_str!("sql/list_windows.sql"))?;
        let rows = statement.query_map([], |row| {
            let seconds = |column| row.get(column).map(SignedDuration::from_secs);
            Ok((SourceNo(row.get(0)?), Keep { payloads: seconds(1)?, identities: seconds(2)? }))
        })?;
        rows.collect()
    };
    list().map_err(failure)
}
