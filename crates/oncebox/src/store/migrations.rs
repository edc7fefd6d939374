//! The order of migrations, the same for both databases.

use jiff::Timestamp;

use super::{Migration, Schema, StoreError};

/// A migration of one database: its number, what it does, and its SQL.
pub(super) struct Step {
    pub(super) version: i32,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Which of `steps` are still to run, given what the database says has run. A database that is
/// ahead of this program is refused: an older program must not write into a newer schema.
pub(super) fn pending<'a>(
    steps: &'a [Step],
    applied: &[(i32, Timestamp)],
) -> Result<Vec<&'a Step>, StoreError> {
    let newest = steps.last().map_or(0, |step| step.version);
    if let Some((ahead, _)) = applied.iter().find(|(version, _)| *version > newest) {
        return Err(StoreError::unfit(
            format!("the store's schema is at version {ahead}, this program knows {newest}"),
            "Run the newer oncebox that migrated it.",
        ));
    }
    let has_run = |step: &&Step| !applied.iter().any(|(version, _)| *version == step.version);
    Ok(steps.iter().filter(has_run).collect())
}

/// Where the schema stands.
pub(super) fn status(steps: &[Step], applied: &[(i32, Timestamp)]) -> Schema {
    let migrations = steps
        .iter()
        .map(|step| Migration {
            version: step.version,
            name: step.name.to_owned(),
            applied_at: applied
                .iter()
                .find(|(version, _)| *version == step.version)
                .map(|(_, at)| *at),
        })
        .collect();
    Schema { migrations }
}

/// The refusal of a store whose migrations have not run.
pub(super) fn behind() -> StoreError {
    StoreError::unfit("the store's schema is not up to date", "Run `oncebox migrate up`.")
}
