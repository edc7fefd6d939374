//! The order of migrations, the same for both databases.

use jiff::Timestamp;

use super::{Migration, Schema, StoreError};

/// A migration of one database: its number, what it does, and its SQL.
pub(super) struct Step {
    pub(super) version: i32,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Which of `steps` are still to run, in the order of their numbers, given what the database says
/// has run. Numbers may be missing. A database that has run what this program does not know is
/// refused: an older program must not write into a newer schema.
pub(super) fn pending<'a>(
    steps: &'a [Step],
    applied: &[(i32, Timestamp)],
) -> Result<Vec<&'a Step>, StoreError> {
    let is_known = |version: i32| steps.iter().any(|step| step.version == version);
    if let Some((unknown, _)) = applied.iter().rev().find(|(version, _)| !is_known(*version)) {
        let newest = steps.last().map_or(0, |step| step.version);
        return Err(StoreError::unfit(
            format!("the store's schema has version {unknown}, this program knows up to {newest}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 3] = [step(1), step(2), step(5)];

    const fn step(version: i32) -> Step {
        Step { version, name: "", sql: "" }
    }

    fn versions(applied: &[i32]) -> Result<Vec<i32>, StoreError> {
        let applied: Vec<_> = applied.iter().map(|version| (*version, Timestamp::MIN)).collect();
        Ok(pending(&STEPS, &applied)?.into_iter().map(|step| step.version).collect())
    }

    #[test]
    fn numbers_may_be_missing_and_come_late() {
        assert_eq!(versions(&[]).unwrap(), [1, 2, 5]);
        assert_eq!(versions(&[1, 5]).unwrap(), [2]);
        assert!(versions(&[1, 2, 5]).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for applied in [&[1, 2, 3][..], &[1, 2, 3, 5], &[1, 2, 5, 6]] {
            let refused = versions(applied).unwrap_err().to_string();
            assert!(refused.contains("knows up to 5"), "{refused}");
        }
    }
}
