//! The order of migrations, the same for both databases.

use std::fmt;

use jiff::Timestamp;

use super::StoreError;

/// A migration of one database: its number, what it does, and its SQL.
pub(super) struct Step {
    pub(super) version: i32,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// The schema epoch of this program. A release whose migrations the previous release cannot live
/// with raises it, and [`OLDEST_WRITER`] with it.
pub(super) const EPOCH: i32 = 1;

/// The oldest epoch whose programs may go on writing once every migration of this program has run.
/// `migrate up` stores it.
pub(super) const OLDEST_WRITER: i32 = 1;

/// One migration and whether it has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Its number.
    pub version: i32,
    /// What it does.
    pub name: String,
    /// When it ran.
    pub applied_at: Option<Timestamp>,
}

/// Where the schema of a store stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Every migration this program knows, in order.
    pub migrations: Vec<Migration>,
}

impl Schema {
    /// Whether nothing is left to run.
    pub fn is_current(&self) -> bool {
        self.migrations.iter().all(|migration| migration.applied_at.is_some())
    }
}

/// What `migrate up` does right now, for the person who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrateProgress {
    /// A migration begins.
    Running {
        /// Its number.
        version: i32,
        /// What it does.
        name: &'static str,
    },
    /// Another session holds a lock that a migration needs; it is tried again after a pause.
    Waiting {
        /// What the database said.
        reason: String,
        /// How long until the next try.
        pause: std::time::Duration,
    },
    /// Nodes of an older epoch are stopped before the schema changes.
    Fencing {
        /// How many of their sessions were ended.
        sessions: i64,
    },
}

impl fmt::Display for MigrateProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { version, name } => write!(f, "running migration {version} ({name})"),
            Self::Waiting { reason, pause } => {
                let pause = pause.as_secs_f64();
                write!(f, "waiting for another session ({reason}); next try in {pause:.1} s")
            }
            Self::Fencing { sessions } => {
                write!(f, "stopping nodes of an older release: ended {sessions} of their sessions")
            }
        }
    }
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// Pages are copied.
    Copying {
        /// So many.
        done: u64,
        /// Of so many.
        all: u64,
    },
    /// The copy is read through.
    Checking,
}

/// Hears what `migrate up` does.
pub(super) type Tell<'a> = &'a (dyn Fn(MigrateProgress) + Send + Sync);

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
    Ok(missing(steps, applied))
}

/// Which of `steps` have not run, whatever else has run in the database. For a store that has an
/// epoch: that tells whether this program may write, not the numbers of newer migrations.
pub(super) fn missing<'a>(steps: &'a [Step], applied: &[(i32, Timestamp)]) -> Vec<&'a Step> {
    let is_missing = |step: &&Step| !applied.iter().any(|(version, _)| *version == step.version);
    steps.iter().filter(is_missing).collect()
}

/// The refusal of a database without an epoch: builds that wrote such a schema were never released.
pub(super) fn of_an_earlier_build() -> StoreError {
    StoreError::unfit(
        "the store was made by an earlier build, which had other migrations",
        "Make it anew: that build was never released.",
    )
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
    StoreError::NotMigrated
}

/// Refuses a store whose epoch is higher than this program's.
pub(super) fn check_epoch(epoch: i32) -> Result<(), StoreError> {
    if epoch <= EPOCH {
        return Ok(());
    }
    Err(StoreError::unfit(
        format!(
            "fenced: the store's schema needs a newer oncebox (it has epoch {epoch}, this program \
             {EPOCH}); nothing more is written by this process"
        ),
        "Replace this program by the release that ran `oncebox migrate up`.",
    ))
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
    fn an_epoch_above_ours_fences_us() {
        assert!(check_epoch(0).is_ok() && check_epoch(EPOCH).is_ok());
        let refused = check_epoch(EPOCH + 1).unwrap_err().to_string();
        assert!(refused.starts_with("fenced"), "{refused}");
        const { assert!(OLDEST_WRITER <= EPOCH, "a release would fence itself") };
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for applied in [&[1, 2, 3][..], &[1, 2, 3, 5], &[1, 2, 5, 6]] {
            let refused = versions(applied).unwrap_err().to_string();
            assert!(refused.contains("knows up to 5"), "{refused}");
        }
    }
}
