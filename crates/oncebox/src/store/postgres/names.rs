//! Names of sources and routes, and fingerprints of secrets, as small numbers.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_postgres::{GenericClient, Object, Transaction};
use jiff::{SignedDuration, Timestamp};

use super::connect::{execute, failure, query};
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

pub(super) async fn source(
    client: &mut Object,
    name: &str,
    renamed_from: Option<&str>,
) -> Result<SourceNo, StoreError> {
    checks::name(name)?;
    let transaction = client.transaction().await.map_err(failure)?;
    let (number, _) = number(&transaction, &SOURCES, name, renamed_from).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(SourceNo(number))
}

/// Keeps a route with its rules.
pub(super) async fn route(
    client: &mut Object,
    name: &str,
    renamed_from: Option<&str>,
    rules: &RouteRules,
) -> Result<RouteNo, StoreError> {
    checks::name(name)?;
    let transaction = client.transaction().await.map_err(failure)?;
    let (number, _) = number(&transaction, &ROUTES, name, renamed_from).await?;
    set_rules(&transaction, number, rules).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(RouteNo(number))
}

/// Keeps what carries the messages of a destination; the rules, if it is new.
pub(super) async fn destination(
    client: &mut Object,
    name: &str,
    rules: &RouteRules,
) -> Result<RouteNo, StoreError> {
    let carrier = format!("{OUTBOX}{name}");
    checks::name(&carrier)?;
    let transaction = client.transaction().await.map_err(failure)?;
    number(&transaction, &SOURCES, &carrier, None).await?;
    let (number, is_new) = number(&transaction, &ROUTES, &carrier, None).await?;
    if is_new {
        set_rules(&transaction, number, &rules.for_outbox()).await?;
    }
    transaction.commit().await.map_err(failure)?;
    Ok(RouteNo(number))
}

/// Stores the rules of a route. One that has come to guard objects has to be filled with them.
async fn set_rules(
    transaction: &Transaction<'_>,
    route: i16,
    rules: &RouteRules,
) -> Result<(), StoreError> {
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    transaction
        .execute(
            include_str!("sql/set_route_rules.sql"),
            &[
                &route,
                &milliseconds(rules.base),
                &milliseconds(rules.cap),
                &milliseconds(rules.longest_wait),
                &rules.same_operation.map(milliseconds),
                &count(rules.max_attempts),
                &count(rules.max_snoozes),
                &rules.ordered,
                &rules.skip_stale,
                &words::of_on_dead(rules.on_dead),
                &rules.pulled,
                &rules.budget.map(milliseconds),
                &milliseconds(rules.hold_for),
            ],
        )
        .await
        .map_err(failure)?;
    Ok(())
}

/// Says which service's workers a route has; refuses another than it was told before.
pub(super) async fn assign_service(
    client: &Object,
    route: RouteNo,
    service: &str,
) -> Result<(), StoreError> {
    checks::service(service)?;
    execute(client, include_str!("sql/assign_service.sql"), &[&route.0, &service]).await?;
    let rows = query(client, include_str!("sql/find_birth.sql"), &[&route.0]).await?;
    match rows.first() {
        Some(row) => checks::same_service(row.get(0), row.get(1), service),
        None => Err(StoreError::Unavailable(format!("there is no route {}", route.0))),
    }
}

/// Whether the role of this session may work on a route.
pub(super) async fn may_work(client: &Object, route: RouteNo) -> Result<bool, StoreError> {
    let rows = query(client, include_str!("sql/may_work.sql"), &[&route.0]).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// A length of time as it is kept.
pub(super) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The number of a name, and whether it is new. A name that was given up by a rename still leads to
/// the same number: a node may start with the old configuration while others have the new one.
async fn number(
    transaction: &Transaction<'_>,
    naming: &Naming,
    name: &str,
    renamed_from: Option<&str>,
) -> Result<(i16, bool), StoreError> {
    transaction.execute(include_str!("sql/lock_names.sql"), &[]).await.map_err(failure)?;
    if let Some(old) = renamed_from
        && transaction.execute(naming.rename, &[&name, &old]).await.map_err(failure)? > 0
    {
        transaction.execute(naming.note_former, &[&name, &old]).await.map_err(failure)?;
        transaction.execute(naming.forget_former, &[&name]).await.map_err(failure)?;
    }
    if let Some(row) = transaction.query_opt(naming.find, &[&name]).await.map_err(failure)? {
        checks::warn_of_former_name(naming.kind, name, row.get(1));
        return Ok((row.get(0), false));
    }
    transaction.execute(naming.insert, &[&name]).await.map_err(failure)?;
    let row = transaction.query_one(naming.find, &[&name]).await.map_err(failure)?;
    Ok((row.get(0), true))
}

pub(super) async fn secret(
    client: &mut Object,
    source: SourceNo,
    fingerprint: &str,
    at: Timestamp,
) -> Result<SecretNo, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    transaction.execute(include_str!("sql/lock_names.sql"), &[]).await.map_err(failure)?;
    transaction
        .execute(include_str!("sql/insert_secret.sql"), &[&source.0, &fingerprint, &at])
        .await
        .map_err(failure)?;
    let row = transaction
        .query_one(include_str!("sql/find_secret.sql"), &[&source.0, &fingerprint])
        .await
        .map_err(failure)?;
    transaction.commit().await.map_err(failure)?;
    Ok(SecretNo(row.get(0)))
}

/// Notes that the strongest proof of a source is required; false if that was noted before.
pub(super) async fn require_strongest(
    client: &impl GenericClient,
    source: SourceNo,
) -> Result<bool, StoreError> {
    let changed = client.execute(include_str!("sql/require_strongest.sql"), &[&source.0]).await;
    changed.map(|changed| changed > 0).map_err(failure)
}

pub(super) async fn requiring_strongest(client: &Object) -> Result<Vec<SourceNo>, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/list_strongest.sql")).await.map_err(failure)?;
    let rows = client.query(&statement, &[]).await.map_err(failure)?;
    Ok(rows.iter().map(|row| SourceNo(row.get(0))).collect())
}

pub(super) async fn sources(client: &Object) -> Result<Vec<(SourceNo, String)>, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/list_sources.sql")).await.map_err(failure)?;
    let rows = client.query(&statement, &[]).await.map_err(failure)?;
    Ok(rows.iter().map(|row| (SourceNo(row.get(0)), row.get(1))).collect())
}

pub(super) async fn add_stored(
    client: &impl GenericClient,
    bytes: &[(SourceNo, i64)],
) -> Result<(), StoreError> {
    let numbers: Vec<i16> = bytes.iter().map(|(source, _)| source.0).collect();
    let bytes: Vec<i64> = bytes.iter().map(|(_, bytes)| *bytes).collect();
    let statement =
        client.prepare_cached(include_str!("sql/add_stored.sql")).await.map_err(failure)?;
    client.execute(&statement, &[&numbers, &bytes]).await.map_err(failure)?;
    Ok(())
}

pub(super) async fn stored(client: &Object) -> Result<Vec<(SourceNo, i64)>, StoreError> {
    let statement =
        client.prepare_cached(include_str!("sql/list_stored.sql")).await.map_err(failure)?;
    let rows = client.query(&statement, &[]).await.map_err(failure)?;
    Ok(rows.iter().map(|row| (SourceNo(row.get(0)), row.get(1))).collect())
}

/// Tells how long sources keep what they received, as a node has it configured.
pub(super) async fn tell_windows(
    client: &Object,
    node: &str,
    windows: &HashMap<String, Keep>,
) -> Result<(), StoreError> {
    let names: Vec<&str> = windows.keys().map(String::as_str).collect();
    let seconds = |window: fn(&Keep) -> SignedDuration| -> Vec<i64> {
        windows.values().map(|keep| window(keep).as_secs()).collect()
    };
    let (payloads, identities) = (seconds(|keep| keep.payloads), seconds(|keep| keep.identities));
    let sql = include_str!("sql/tell_windows.sql");
    execute(client, sql, &[&node, &names, &payloads, &identities]).await?;
    execute(client, include_str!("sql/forget_windows.sql"), &[]).await?;
    Ok(())
}

/// How long sources keep what they received: the longest that was told of each.
pub(super) async fn windows(client: &Object) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
    let rows = query(client, include_str!("sql/list_windows.sql"), &[]).await?;
    let window = |row: &tokio_postgres::Row| {
        let seconds = |column: usize| SignedDuration::from_secs(row.get(column));
        (SourceNo(row.get(0)), Keep { payloads: seconds(1), identities: seconds(2) })
    };
    Ok(rows.iter().map(window).collect())
}
