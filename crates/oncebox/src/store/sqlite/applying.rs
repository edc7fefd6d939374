//! Handlers on the only writer: each in a savepoint of its own, many in one commit.
//!
//! Whatever queued while the last commit ran is the next batch, as far as the writer may be kept
//! from others. Code that is not ours runs here, so nothing it does may reach its neighbours: a
//! failure or a panic takes back its own savepoint; whoever ends the whole transaction is out, and
//! the others run again; what the database refuses to commit together is run one by one.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use rusqlite::{Connection, Savepoint, Transaction, TransactionBehavior};
use tokio::sync::{oneshot, watch};
use tracing::warn;

use super::apply::{Applied, Scope, Work};
use super::clock::StoreClock;
use super::connection::failure;
use super::finish;
use super::rows::rules;
use super::watcher::{Seen, Watcher};
use super::writer::{Writer, closed};
use crate::delivery::{Claimed, Ending, Next, Outcome, next};
use crate::effect::Under;
use crate::handler::{Decision, Failure};
use crate::limits::{APPLY_TIME, CLAIM_ROWS};
use crate::panicked::Panicked;
use crate::receipt::{ReceiptMint, RouteNo};
use crate::route::RouteRules;
use crate::store::{Finish, StoreError};
use crate::worker::chance;

/// Handlers that wait for the writer, and what their turn needs.
pub(super) struct Applying {
    waiting: Mutex<Waiting>,
    pub(super) watcher: Arc<Watcher>,
    clock: StoreClock,
    mint: Arc<ReceiptMint>,
    due: watch::Sender<u64>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Whether the writer was asked for a turn that has not begun.
    asked: bool,
}

/// The synchronous part of a handler, and who waits for it.
pub(super) struct Job {
    pub(super) claimed: Claimed,
    pub(super) began: Instant,
    pub(super) work: Work,
    /// Whether it must not share a commit.
    pub(super) alone: bool,
    pub(super) answer: oneshot::Sender<Applied>,
}

impl Job {
    fn under(&self) -> Under {
        Under { delivery: self.claimed.delivery, lease: self.claimed.lease }
    }

    fn answer(self, applied: Applied) {
        // Whoever asked may be gone: its worker was dropped.
        let _ = self.answer.send(applied);
    }
}

/// What running a job in the transaction of its batch came to.
enum Ran {
    /// It stands if the batch commits, and says whether something becomes due then.
    Stands(Applied, bool),
    /// It is taken back.
    Over(Applied),
    /// It has ended the transaction, and everything in it is taken back.
    Gone(Failure),
}

/// Jobs that have run in one transaction, and what they are told once that is committed. One that
/// failed is among them if another stood before it: it may have failed for what it saw of that.
#[derive(Default)]
struct Batch {
    jobs: VecDeque<(Job, Applied)>,
    due: bool,
    /// An error after which the store must not be used.
    fatal: Option<String>,
}

impl Batch {
    fn stands(&mut self, job: Job, applied: Applied, due: bool) {
        self.due |= due;
        self.jobs.push_back((job, applied));
    }

    fn over(&mut self, job: Job, applied: Applied) {
        if let Applied::Failed(failure) = &applied {
            self.fatal = self.fatal.take().or(failure.fatal().map(str::to_owned));
        }
        match self.is_empty() {
            true => job.answer(applied),
            false => self.jobs.push_back((job, applied)),
        }
    }

    fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn answer(self) {
        for (job, applied) in self.jobs {
            job.answer(applied);
        }
    }

    fn into_jobs(self) -> VecDeque<Job> {
        self.jobs.into_iter().map(|(job, _)| job).collect()
    }
}

impl Applying {
    pub(super) fn new(
        watcher: Arc<Watcher>,
        clock: StoreClock,
        mint: Arc<ReceiptMint>,
        due: watch::Sender<u64>,
    ) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), watcher, clock, mint, due })
    }

    /// Has a job run with the next batch.
    pub(super) fn queue(self: &Arc<Self>, writer: &Writer, job: Job) {
        let asked = {
            let mut waiting = self.waiting();
            waiting.jobs.push_back(job);
            std::mem::replace(&mut waiting.asked, true)
        };
        if !asked {
            self.ask(writer);
        }
    }

    /// Asks the writer for a turn, after those who asked before.
    fn ask(self: &Arc<Self>, writer: &Writer) {
        let (applying, again) = (self.clone(), writer.clone());
        let posted = writer.post(move |connection| {
            let turn = connection.and_then(|connection| applying.turn(connection));
            if let Err(error) = &turn {
                applying.refuse_all(error);
            }
            let more = {
                let mut waiting = applying.waiting();
                waiting.asked = !waiting.jobs.is_empty();
                waiting.asked
            };
            if more {
                applying.ask(&again);
            }
            turn
        });
        if posted.is_err() {
            self.waiting().asked = false;
            self.refuse_all(&closed());
        }
    }

    /// One batch. An error is the store's, and whoever waits hears of it.
    fn turn(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let mut jobs = self.waiting().take();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut transaction = match transaction.map_err(failure) {
            Ok(transaction) => transaction,
            Err(error) => {
                self.waiting().put_back(jobs);
                return Err(error);
            }
        };
        let (began, mut batch) = (Instant::now(), Batch::default());
        let mut gone = None;
        while let Some(mut job) = jobs.pop_front() {
            if job.answer.is_closed() {
                continue;
            }
            match self.run(&mut transaction, &mut job) {
                Ran::Stands(applied, due) => batch.stands(job, applied, due),
                Ran::Over(applied) => batch.over(job, applied),
                Ran::Gone(failure) => gone = Some((job, failure)),
            }
            // Others want to write, too.
            if gone.is_some() || batch.fatal.is_some() || began.elapsed() >= APPLY_TIME {
                break;
            }
        }
        self.waiting().put_back(jobs);
        let Some((job, failure)) = gone else { return self.commit(transaction, batch) };
        drop(transaction);
        self.gone(job, failure, batch)
    }

    /// A job has ended the transaction of its batch. What it saw of its neighbours was taken back
    /// with it, so it gets another chance, alone.
    fn gone(&self, job: Job, failure: Failure, batch: Batch) -> Result<(), StoreError> {
        let fatal = failure.fatal().map(str::to_owned);
        if fatal.is_some() || batch.is_empty() {
            job.answer(Applied::Failed(failure));
        } else {
            self.waiting().put_back([Job { alone: true, ..job }].into());
        }
        self.waiting().put_back(batch.into_jobs());
        fatal.map_or(Ok(()), |reason| Err(StoreError::Fatal(reason)))
    }

    fn commit(&self, transaction: Transaction<'_>, batch: Batch) -> Result<(), StoreError> {
        let outcome = match (&batch.fatal, batch.is_empty()) {
            (Some(reason), _) => Err(StoreError::Fatal(reason.clone())),
            (None, true) => transaction.rollback().map_err(failure),
            (None, false) => transaction.commit().map_err(failure),
        };
        let Err(error) = outcome else {
            let due = batch.due;
            batch.answer();
            if due {
                self.due.send_modify(|times| *times = times.wrapping_add(1));
            }
            return Ok(());
        };
        if matches!(error, StoreError::Fatal(_)) {
            self.waiting().put_back(batch.into_jobs());
            return Err(error);
        }
        let mut jobs = batch.into_jobs();
        match jobs.pop_front() {
            Some(job) if jobs.is_empty() => job.answer(Applied::Failed(error.into())),
            first => {
                warn!(%error, handlers = jobs.len() + 1, "not committed together; one by one");
                let all = first.into_iter().chain(jobs);
                self.waiting().put_back(all.map(|job| Job { alone: true, ..job }).collect());
            }
        }
        Ok(())
    }

    /// Runs one job in a savepoint, and ends its attempt there.
    fn run(&self, transaction: &mut Transaction<'_>, job: &mut Job) -> Ran {
        let savepoint = match transaction.savepoint_with_name("oncebox_handler") {
            Ok(savepoint) => savepoint,
            Err(error) => return Ran::Gone(failure(error).into()),
        };
        let scope = Scope {
            savepoint: &savepoint,
            under: job.under(),
            clock: &self.clock,
            mint: &self.mint,
            due: Cell::new(false),
            stages: Cell::new(0),
        };
        let began = Instant::now();
        self.watcher.begin();
        // What a handler shares with other events has to guard itself, as locks do by poison.
        let returned = catch_unwind(AssertUnwindSafe(|| (job.work)(&scope)));
        let seen = self.watcher.end();
        let (due, is_cut) = (scope.due.get(), scope.stages.get() > 0);
        let took = began.elapsed();
        if took > APPLY_TIME {
            let (delivery, took_ms) = (job.claimed.delivery, took.as_millis());
            let event_type = job.claimed.event_type.as_str();
            warn!(%delivery, event_type, took_ms, "a handler kept the only writer for too long");
        }
        let over = seen.is_over() || savepoint.is_autocommit();
        let decided = decided(returned, seen, over);
        if over {
            return Ran::Gone(decided.err().unwrap_or_else(ended_the_transaction));
        }
        let ended = decided.and_then(|decision| {
            if is_cut {
                return Err(Failure::cut_stage());
            }
            let ended = self.end(&savepoint, job, &decision)?;
            Ok(ended.map(|(next, released)| (Applied::Ended(next, decision), released)))
        });
        match ended {
            Ok(Some((stands, released))) => match savepoint.commit() {
                Ok(()) => Ran::Stands(stands, due || released),
                // Ours is the only name for it, so somebody else has used it.
                Err(_) => Ran::Gone(ended_the_transaction()),
            },
            Ok(None) => taken_back(savepoint, Applied::Lost),
            Err(failure) => taken_back(savepoint, Applied::Failed(failure)),
        }
    }

    /// Ends the attempt as the handler has decided; none if its lease is not good any more.
    fn end(
        &self,
        db: &Connection,
        job: &Job,
        decision: &Decision,
    ) -> Result<Option<(Next, bool)>, StoreError> {
        let end = || {
            let claimed = &job.claimed;
            let rules = match decision.outcome {
                Outcome::Retry { .. } | Outcome::Snooze { .. } | Outcome::Busy { .. } => {
                    rules_of(db, claimed.delivery.route)?
                }
                _ => RouteRules::default(),
            };
            let counts = claimed.counts.after(job.began.elapsed());
            let next = next(&rules, counts, &decision.outcome, chance());
            let ending = Ending {
                delivery: claimed.delivery,
                lease: claimed.lease,
                next,
                took: job.began.elapsed(),
                status: None,
                detail: decision.detail().map(str::to_owned),
                summary: decision.summary().map(str::to_owned),
                guarded: claimed.guarded,
            };
            let (finish, due) = finish::end_one(db, &self.clock, &ending)?;
            Ok((finish == Finish::Done).then_some((next, due)))
        };
        end().map_err(failure)
    }

    /// Tells everybody who waits that the store cannot.
    fn refuse_all(&self, error: &StoreError) {
        let jobs = std::mem::take(&mut self.waiting().jobs);
        for job in jobs {
            job.answer(Applied::Failed(error.clone().into()));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic while queueing")
    }
}

impl Waiting {
    /// The next batch: those that may share a commit, or one that may not.
    fn take(&mut self) -> VecDeque<Job> {
        let together = self.jobs.iter().take_while(|job| !job.alone).take(CLAIM_ROWS).count();
        let rest = self.jobs.split_off(together.max(1).min(self.jobs.len()));
        std::mem::replace(&mut self.jobs, rest)
    }

    /// Puts jobs back before all others.
    fn put_back(&mut self, mut jobs: VecDeque<Job>) {
        jobs.append(&mut self.jobs);
        self.jobs = jobs;
    }
}

/// What a handler has decided, or why that does not count.
fn decided(
    returned: Result<Result<Decision, Failure>, Box<dyn Any + Send>>,
    seen: Seen,
    over: bool,
) -> Result<Decision, Failure> {
    if seen.interrupted {
        return Err(Failure::retry(format!(
            "`apply` was interrupted after {} ms, since nobody can write meanwhile; do in \
             `prepare` what takes long",
            APPLY_TIME.as_millis()
        )));
    }
    match returned {
        Err(panic) => Err(Panicked::from(panic).into()),
        Ok(_) if seen.refused_commit => Err(ended_the_transaction()),
        Ok(Ok(_)) if over => Err(ended_the_transaction()),
        Ok(returned) => returned,
    }
}

fn ended_the_transaction() -> Failure {
    Failure::dead(
        "the handler ended the transaction it was given, by COMMIT or ROLLBACK, and nothing was \
         kept; it ends with what the handler returns: take that statement out, then replay it",
    )
}

/// Takes back what a job wrote. Without its savepoint, that is everything.
fn taken_back(savepoint: Savepoint<'_>, applied: Applied) -> Ran {
    match savepoint.finish() {
        Ok(()) => Ran::Over(applied),
        Err(error) => Ran::Gone(match applied {
            Applied::Failed(failure) => failure,
            Applied::Ended(..) | Applied::Lost => failure(error).into(),
        }),
    }
}

/// The rules of a route, as they are stored.
fn rules_of(db: &Connection, route: RouteNo) -> rusqlite::Result<RouteRules> {
    let mut statement = db.prepare_cached(include_str!("sql/find_rules.sql"))?;
    statement.query_row([route.0], |row| rules(row, 0))
}
