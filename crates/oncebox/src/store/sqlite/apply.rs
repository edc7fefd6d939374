//! Code that is not ours on the writer: handlers in their savepoints, and what a service does to
//! its own tables.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, Savepoint};
use tokio::sync::oneshot;

use super::applying::Job;
use super::clock::StoreClock;
use super::connection::failure;
use super::watcher::Watcher;
use super::writer::closed;
use super::{SqliteStore, verbs};
use crate::delivery::{Claimed, Next};
use crate::effect::{EffectKey, EffectName, Message, Once, Sent, Under};
use crate::handler::{Decision, Failure};
use crate::panicked::Panicked;
use crate::receipt::ReceiptMint;
use crate::store::StoreError;

/// What a handler does in its savepoint. It is run again if its batch was taken back.
pub(crate) type Work = Box<dyn FnMut(&Scope<'_>) -> Result<Decision, Failure> + Send>;

/// What came of it.
pub(crate) enum Applied {
    /// It is committed, with the end of the attempt: where the delivery goes, and what the
    /// handler decided.
    Ended(Next, Decision),
    /// The lease was not good any more. Nothing was changed.
    Lost,
    /// Nothing was changed.
    Failed(Failure),
}

impl SqliteStore {
    /// Runs the synchronous part of a handler, and commits it with the end of its attempt.
    pub(crate) async fn apply(&self, claimed: Claimed, began: Instant, work: Work) -> Applied {
        if let Err(error) = self.writer.refuse_when_log_is_pinned() {
            return Applied::Failed(error.into());
        }
        let (answer, answered) = oneshot::channel();
        let job = Job { claimed, began, work, alone: false, answer };
        self.applying.queue(&self.writer, job);
        answered.await.unwrap_or_else(|_| Applied::Failed(closed().into()))
    }

    /// Runs `work` on the connection that writes, as for the tables of a service's own. Nothing is
    /// recorded or delivered meanwhile, so it should be short. It commits what it begins; what it
    /// leaves open is rolled back and is an error. Tables of Oncebox are not for it.
    ///
    /// ```
    /// # use oncebox::store::{Purpose, SqliteOptions, SqliteStore};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let options = SqliteOptions::new(folder.path().join("oncebox.db"));
    /// let store = SqliteStore::open(options, Purpose::Serve).await?;
    /// store
    ///     .with(|db| db.execute_batch("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)"))
    ///     .await??;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let watcher = self.applying.watcher.clone();
        self.writer.run(move |db| with(db, &watcher, work)).await
    }
}

fn with<T>(
    db: &mut Connection,
    watcher: &Arc<Watcher>,
    work: impl FnOnce(&mut Connection) -> T,
) -> Result<T, StoreError> {
    let done = catch_unwind(AssertUnwindSafe(|| work(db)));
    let left_open = !db.is_autocommit();
    if left_open {
        db.execute_batch("ROLLBACK").map_err(failure)?;
    }
    // Hooks are the connection's, and others may have set theirs.
    watcher.install(db).map_err(failure)?;
    match done {
        Err(panic) => Err(StoreError::Unavailable(Panicked::from(panic).to_string())),
        Ok(_) if left_open => Err(StoreError::unfit(
            "the work left a transaction open, which was rolled back",
            "Commit what it begins before it returns.",
        )),
        Ok(done) => Ok(done),
    }
}

/// What a handler has in its savepoint.
pub(crate) struct Scope<'a> {
    /// The savepoint.
    pub(crate) savepoint: &'a Savepoint<'a>,
    pub(super) under: Under,
    pub(super) clock: &'a StoreClock,
    pub(super) mint: &'a ReceiptMint,
    /// Whether something becomes due once it commits.
    pub(super) due: Cell<bool>,
    /// How many stages are under way, one within the other.
    pub(super) stages: Cell<u32>,
}

impl Scope<'_> {
    pub(crate) fn once(&self, name: &EffectName, result: Option<&str>) -> Result<Once, StoreError> {
        verbs::once(self.savepoint, self.clock.now(), self.under, name, result)
    }

    /// False if this attempt has not run that step.
    pub(crate) fn set_result(&self, step: &EffectKey, result: &str) -> Result<bool, StoreError> {
        let step = EffectName::Step(step.clone());
        verbs::set_result(self.savepoint, self.clock.now(), self.under, &step, result)
    }

    pub(crate) fn get_result(&self, step: &EffectKey) -> Result<Option<String>, StoreError> {
        verbs::get_result(self.savepoint, self.under, &EffectName::Step(step.clone()))
    }

    pub(crate) fn send(&self, message: &Message) -> Result<Sent, StoreError> {
        let sent = verbs::send(self.savepoint, self.clock, self.mint, self.under, message)?;
        self.due.set(self.due.get() || matches!(sent, Sent::New(_)));
        Ok(sent)
    }

    pub(crate) fn advance(&self, object: &str, version: i64) -> Result<Option<bool>, StoreError> {
        verbs::advance(self.savepoint, self.clock, self.under, object, version)
    }

    /// Begins a stage, in a savepoint.
    pub(crate) fn begin_stage(&self) -> rusqlite::Result<()> {
        self.stages.set(self.stages.get() + 1);
        self.savepoint.execute_batch("SAVEPOINT oncebox_step")
    }

    /// Ends the last stage that was begun, keeping what it wrote.
    pub(crate) fn keep_stage(&self) -> rusqlite::Result<()> {
        self.end_stage("RELEASE oncebox_step")
    }

    /// Ends the last stage that was begun, taking back what it wrote.
    pub(crate) fn undo_stage(&self) -> rusqlite::Result<()> {
        self.end_stage("ROLLBACK TO oncebox_step; RELEASE oncebox_step")
    }

    fn end_stage(&self, sql: &str) -> rusqlite::Result<()> {
        self.savepoint.execute_batch(sql)?;
        self.stages.set(self.stages.get() - 1);
        Ok(())
    }
}
