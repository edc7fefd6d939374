//! Migrations of the embedded store.

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior, params};

use super::connection::failure;
use super::rows::time;
use crate::store::migrations::{self, Step};
use crate::store::{Schema, StoreError};

const STEPS: &[Step] = &[
    Step {
        version: 1,
        name: "schema",
        sql: concat!(
            include_str!("migrations/0001_names.sql"),
            include_str!("migrations/0001_receipts.sql"),
            include_str!("migrations/0001_deliveries.sql"),
            include_str!("migrations/0001_rollups.sql"),
            include_str!("migrations/0001_effects.sql"),
            include_str!("migrations/0001_operators.sql"),
        ),
    },
    Step { version: 2, name: "counting", sql: include_str!("migrations/0002_counting.sql") },
];

/// Runs what has not run yet. The write lock is taken before looking, so two processes that start
/// at once run each migration once.
pub(super) fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    transaction
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS migrations (
                version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
            ) STRICT",
        )
        .map_err(failure)?;
    for step in migrations::pending(STEPS, &applied(&transaction)?)? {
        transaction.execute_batch(step.sql).map_err(failure)?;
        transaction
            .execute(
                include_str!("sql/insert_migration.sql"),
                params![step.version, step.name, now.as_millisecond()],
            )
            .map_err(failure)?;
    }
    transaction.commit().map_err(failure)
}

/// Refuses a file whose migrations have not all run.
pub(super) fn require_current(connection: &Connection) -> Result<(), StoreError> {
    match migrations::pending(STEPS, &applied(connection)?)?.is_empty() {
        true => Ok(()),
        false => Err(migrations::behind()),
    }
}

pub(super) fn status(connection: &Connection) -> Result<Schema, StoreError> {
    Ok(migrations::status(STEPS, &applied(connection)?))
}

pub(super) fn nothing_applied() -> Schema {
    migrations::status(STEPS, &[])
}

fn applied(connection: &Connection) -> Result<Vec<(i32, Timestamp)>, StoreError> {
    if !connection.table_exists(None, "migrations").map_err(failure)? {
        return Ok(Vec::new());
    }
    let mut statement =
        connection.prepare(include_str!("sql/list_migrations.sql")).map_err(failure)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, time(row, 1)?))).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}
