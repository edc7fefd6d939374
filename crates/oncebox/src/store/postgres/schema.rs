//! Migrations of the shared store.

use deadpool_postgres::Object;
use jiff::Timestamp;

use super::connect::failure;
use crate::store::migrations::{self, Step};
use crate::store::{Schema, StoreError};

const STEPS: &[Step] = &[Step {
    version: 1,
    name: "schema",
    sql: concat!(
        include_str!("migrations/0001_names.sql"),
        include_str!("migrations/0001_receipts.sql"),
        include_str!("migrations/0001_deliveries.sql"),
        include_str!("migrations/0001_rollups.sql"),
        include_str!("migrations/0001_effects.sql"),
        include_str!("migrations/0001_operators.sql"),
        include_str!("migrations/0001_checks.sql"),
        include_str!("migrations/0001_ledger.sql"),
        include_str!("migrations/0001_verbs.sql"),
        include_str!("migrations/0001_guards.sql"),
        include_str!("migrations/0001_claim.sql"),
        include_str!("migrations/0001_work.sql"),
    ),
}];

/// Runs what has not run yet. The lock is taken before looking again, so nodes that start at once
/// run each migration once. A role that may not create anything can serve a database that is up
/// to date.
pub(super) async fn migrate(client: &mut Object) -> Result<(), StoreError> {
    if migrations::pending(STEPS, &applied(client).await?)?.is_empty() {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failure)?;
    // Whoever runs them now may take long, and is waited for.
    let lock = "SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(7380532412033511)";
    transaction.batch_execute(lock).await.map_err(failure)?;
    let exists = "SELECT to_regnamespace('oncebox') IS NOT NULL";
    if !transaction.query_one(exists, &[]).await.map_err(failure)?.get::<_, bool>(0) {
        transaction.batch_execute("CREATE SCHEMA oncebox").await.map_err(failure)?;
    }
    let exists = "SELECT to_regclass('oncebox.migrations') IS NOT NULL";
    if !transaction.query_one(exists, &[]).await.map_err(failure)?.get::<_, bool>(0) {
        let table = "CREATE TABLE oncebox.migrations (
            version integer PRIMARY KEY,
            name text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        )";
        transaction.batch_execute(table).await.map_err(failure)?;
    }
    let rows =
        transaction.query(include_str!("sql/list_migrations.sql"), &[]).await.map_err(failure)?;
    let applied: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for step in migrations::pending(STEPS, &applied)? {
        transaction.batch_execute(step.sql).await.map_err(failure)?;
        transaction
            .execute(
                "INSERT INTO oncebox.migrations (version, name) VALUES ($1, $2)",
                &[&step.version, &step.name],
            )
            .await
            .map_err(failure)?;
    }
    transaction.commit().await.map_err(failure)
}

/// Refuses a database whose migrations have not all run.
pub(super) async fn require_current(client: &Object) -> Result<(), StoreError> {
    match migrations::pending(STEPS, &applied(client).await?)?.is_empty() {
        true => Ok(()),
        false => Err(migrations::behind()),
    }
}

pub(super) async fn status(client: &Object) -> Result<Schema, StoreError> {
    Ok(migrations::status(STEPS, &applied(client).await?))
}

async fn applied(client: &Object) -> Result<Vec<(i32, Timestamp)>, StoreError> {
    let exists = "SELECT to_regclass('oncebox.migrations') IS NOT NULL";
    if !client.query_one(exists, &[]).await.map_err(failure)?.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client.query(include_str!("sql/list_migrations.sql"), &[]).await.map_err(failure)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
