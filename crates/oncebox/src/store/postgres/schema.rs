//! Migrations of the shared store.

use deadpool_postgres::{GenericClient, Object, Transaction};
use jiff::Timestamp;
use tokio_postgres::error::SqlState;
use tracing::error;

use super::connect::failure;
use crate::limits;
use crate::store::migrations::{self, OLDEST_WRITER, Step};
use crate::store::{Schema, StoreError};

pub(super) const STEPS: &[Step] = &[
    Step {
        version: 1,
        name: "schema",
        sql: concat!(
            include_str!("migrations/0001_names.sql"),
            include_str!("migrations/0001_receipts.sql"),
            include_str!("migrations/0001_deliveries.sql"),
            include_str!("migrations/0001_days.sql"),
            include_str!("migrations/0001_rollups.sql"),
            include_str!("migrations/0001_effects.sql"),
            include_str!("migrations/0001_operators.sql"),
            include_str!("migrations/0001_checks.sql"),
            include_str!("migrations/0001_ledger.sql"),
            include_str!("migrations/0001_verbs.sql"),
            include_str!("migrations/0001_guards.sql"),
            include_str!("migrations/0001_claim.sql"),
            include_str!("migrations/0001_work.sql"),
            include_str!("migrations/0001_grants.sql"),
        ),
    },
    Step { version: 2, name: "counting", sql: include_str!("migrations/0002_counting.sql") },
];

/// Taken by those who change the schema.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7380532412033511)";

/// What everything else rests on: which migrations have run, and the oldest epoch that may write.
const BOOTSTRAP: &str = "CREATE TABLE IF NOT EXISTS oncebox.migrations (
        version integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS oncebox.schema_epoch (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        epoch integer NOT NULL,
        raised_at timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO oncebox.schema_epoch (epoch) VALUES (0) ON CONFLICT (single) DO NOTHING";

/// Makes a database ready to be served: one that is empty gets the whole schema; one that lacks
/// migrations is refused until `oncebox migrate up` has run them beside the running nodes.
pub(super) async fn prepare(client: &mut Object) -> Result<(), StoreError> {
    if applied(client).await?.is_empty() {
        return create(client, STEPS).await;
    }
    require_current(client).await
}

/// Creates the whole schema in one transaction, unless another node has done so meanwhile.
pub(super) async fn create(client: &mut Object, steps: &[Step]) -> Result<(), StoreError> {
    let transaction = begin(client, limits::POSTGRES_CREATE).await?;
    if applied(&transaction).await?.is_empty() {
        // A role that owns the schema may not be allowed to create one.
        let there = "SELECT to_regnamespace('oncebox') IS NOT NULL";
        if !transaction.query_one(there, &[]).await.map_err(failure)?.get::<_, bool>(0) {
            transaction.batch_execute("CREATE SCHEMA oncebox").await.map_err(failure)?;
        }
        transaction.batch_execute(BOOTSTRAP).await.map_err(failure)?;
        for step in steps {
            run(&transaction, step).await?;
        }
        raise_epoch(&transaction, OLDEST_WRITER).await?;
    }
    transaction.commit().await.map_err(failure)
}

/// Begins a transaction that alone changes the schema, and waits so long for locks at most.
pub(super) async fn begin(
    client: &mut Object,
    lock_wait: std::time::Duration,
) -> Result<Transaction<'_>, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let wait = format!("SET LOCAL lock_timeout = {}; {LOCK}", lock_wait.as_millis());
    transaction.batch_execute(&wait).await.map_err(failure)?;
    Ok(transaction)
}

/// Runs a migration and notes that it has run.
pub(super) async fn run(transaction: &Transaction<'_>, step: &Step) -> Result<(), StoreError> {
    transaction.batch_execute(step.sql).await.map_err(failure)?;
    let note = include_str!("sql/insert_migration.sql");
    transaction.execute(note, &[&step.version, &step.name]).await.map_err(failure)?;
    Ok(())
}

/// Has programs of an epoch below this one refused when they connect.
pub(super) async fn raise_epoch(client: &impl GenericClient, epoch: i32) -> Result<(), StoreError> {
    client.execute(include_str!("sql/raise_epoch.sql"), &[&epoch]).await.map_err(failure)?;
    Ok(())
}

/// The oldest epoch that may write; none in a database from before it.
pub(super) async fn epoch(client: &impl GenericClient) -> Result<Option<i32>, StoreError> {
    if !exists(client, "oncebox.schema_epoch").await? {
        return Ok(None);
    }
    let row = client.query_opt(include_str!("sql/find_epoch.sql"), &[]).await.map_err(failure)?;
    Ok(row.map(|row| row.get(0)))
}

/// Refuses a session if this program is older than the schema allows. Asked when a connection
/// opens: `migrate up` first raises the epoch and then ends the sessions that were open before.
pub(super) async fn require_epoch(client: &tokio_postgres::Client) -> Result<(), StoreError> {
    let epoch = match client.query_opt(include_str!("sql/find_epoch.sql"), &[]).await {
        Ok(row) => row.map_or(0, |row| row.get(0)),
        Err(error) => match error.code() {
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME) => 0,
            _ => return Err(failure(error)),
        },
    };
    let checked = migrations::check_epoch(epoch);
    if let Err(error) = &checked {
        error!(%error, "PostgreSQL is not written to by this process any more");
    }
    checked
}

/// The name under which sessions of this program are known to the server: it ends with the epoch,
/// so that `migrate up` finds those of older programs.
pub(super) fn application_name(configured: Option<&str>) -> String {
    // PostgreSQL keeps 63 bytes of it.
    let name: String = configured.unwrap_or("oncebox").chars().take(48).collect();
    format!("{name}/e{}", migrations::EPOCH)
}

/// Refuses a database whose migrations have not all run. Those of a newer release are no hindrance
/// as long as the epoch admits this program: a node of the previous release may restart.
pub(super) async fn require_current(client: &Object) -> Result<(), StoreError> {
    match pending(client, STEPS).await?.is_empty() {
        true => Ok(()),
        false => Err(migrations::behind()),
    }
}

/// Which of `steps` have not run.
pub(super) async fn pending<'a>(
    client: &impl GenericClient,
    steps: &'a [Step],
) -> Result<Vec<&'a Step>, StoreError> {
    let applied = applied(client).await?;
    match epoch(client).await? {
        Some(epoch) => {
            migrations::check_epoch(epoch)?;
            Ok(migrations::missing(steps, &applied))
        }
        None if applied.is_empty() => Ok(steps.iter().collect()),
        None => Err(migrations::of_an_earlier_build()),
    }
}

pub(super) async fn status(client: &Object) -> Result<Schema, StoreError> {
    Ok(migrations::status(STEPS, &applied(client).await?))
}

pub(super) async fn applied(
    client: &impl GenericClient,
) -> Result<Vec<(i32, Timestamp)>, StoreError> {
    if !exists(client, "oncebox.migrations").await? {
        return Ok(Vec::new());
    }
    let rows = client.query(include_str!("sql/list_migrations.sql"), &[]).await.map_err(failure)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn exists(client: &impl GenericClient, table: &str) -> Result<bool, StoreError> {
    let sql = format!("SELECT to_regclass('{table}') IS NOT NULL");
    Ok(client.query_one(&sql, &[]).await.map_err(failure)?.get(0))
}
