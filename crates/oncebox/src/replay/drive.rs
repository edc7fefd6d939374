//! Whoever drives a replay: step by step under a lease, at its pace, until it is through.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

use super::plan::{Fate, Page};
use super::{Phase, Reopened, Replay, ReplayId, ReplayStep};
use crate::delivery::DeliveryId;
use crate::limits::{LEASE, REPLAY_LOOK, REPLAY_ROWS, REPLAYS_DRIVEN};
use crate::store::{ReplayCandidate, Store, StoreError};

/// Drives one replay. Whoever drops it in the middle leaves a job that can be taken again once
/// its lease has run out, and that goes on exactly where it was.
pub struct Driver {
    store: Arc<dyn Store>,
    job: Replay,
    /// What was read and not yet dealt with.
    ahead: VecDeque<ReplayCandidate>,
    /// Whether nothing is left to be read.
    read_all: bool,
    pace: Pace,
}

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is more to do.
    More,
    /// That was the last.
    Done,
    /// Nothing was done: the job was cancelled, or somebody else has it.
    Lost,
}

/// How driving a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is through.
    Done,
    /// It was cancelled.
    Cancelled,
    /// Somebody else drives it.
    Taken,
    /// We were told to stop; it can be taken again.
    Stopped,
}

impl Driver {
    /// Takes a job, or any that nobody drives.
    pub async fn take(
        store: &Arc<dyn Store>,
        id: Option<ReplayId>,
    ) -> Result<Option<Self>, StoreError> {
        let taken = store.take_replay(id, LEASE).await?;
        Ok(taken.map(|job| Self {
            store: store.clone(),
            pace: Pace::new(job.rate),
            job,
            ahead: VecDeque::new(),
            read_all: false,
        }))
    }

    /// The job, as far as this driver has come with it.
    pub fn job(&self) -> &Replay {
        &self.job
    }

    /// Does one step, as soon as the pace allows it.
    pub async fn step(&mut self) -> Result<Turn, StoreError> {
        self.pace.wait().await;
        if self.ahead.is_empty() && !self.read_all {
            let page = Page::read(&*self.store, &self.job.filter, self.job.cursor).await?;
            self.ahead = page.candidates.into();
            self.read_all = page.is_last;
        }
        let step = self.next_step();
        let Some(reopened) = self.store.step_replay(&step).await? else { return Ok(Turn::Lost) };
        let opened = reopened.iter().filter(|one| **one == Reopened::Opened).count();
        self.job.opened += count(opened);
        self.job.passed += step.passed + count(reopened.len() - opened);
        self.job.cursor = step.cursor;
        self.pace.note(opened);
        if !step.done {
            return Ok(Turn::More);
        }
        self.job.phase = Phase::Done;
        Ok(Turn::Done)
    }

    /// Takes from what was read as much as one step may open, whole receipts only.
    fn next_step(&mut self) -> ReplayStep {
        let mut open = Vec::new();
        let mut passed = 0;
        let mut cursor: Option<DeliveryId> = None;
        while let Some(next) = self.ahead.front() {
            let same_receipt = cursor.is_some_and(|last| last.receipt == next.delivery.receipt);
            if open.len() >= self.pace.burst() && !same_receipt {
                break;
            }
            match Fate::of(&self.job.filter, self.job.how, next) {
                Some(fate) if fate.is_left() => passed += 1,
                Some(_) => open.push((next.delivery, next.state.is_none())),
                None => {}
            }
            cursor = Some(next.delivery);
            self.ahead.pop_front();
        }
        ReplayStep {
            id: self.job.id,
            lease: self.job.lease,
            open,
            passed,
            cursor: cursor.or(self.job.cursor),
            done: self.read_all && self.ahead.is_empty(),
            how: self.job.how,
        }
    }

    /// Drives the job until it is through, or `stop` turns true. `progress` hears how far it is
    /// after each step.
    pub async fn run(
        mut self,
        mut progress: impl FnMut(&Replay) + Send,
        mut stop: watch::Receiver<bool>,
    ) -> Result<Ended, StoreError> {
        loop {
            // A step that has begun is not cut off: a stop waits for it, or for the pause before.
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(Ended::Stopped),
                () = self.pace.wait() => {}
            }
            match self.step().await? {
                Turn::More => progress(&self.job),
                Turn::Done => {
                    progress(&self.job);
                    return Ok(Ended::Done);
                }
                Turn::Lost => return self.why_lost().await,
            }
        }
    }

    async fn why_lost(&self) -> Result<Ended, StoreError> {
        let job = self.store.replay(self.job.id).await?;
        Ok(match job.map(|job| job.phase) {
            Some(Phase::Running) => Ended::Taken,
            Some(Phase::Done) => Ended::Done,
            Some(Phase::Cancelled) | None => Ended::Cancelled,
        })
    }
}

/// How fast a replay opens deliveries.
struct Pace {
    rate: Option<u32>,
    /// Before this nothing more is opened.
    due: Instant,
}

impl Pace {
    fn new(rate: Option<u32>) -> Self {
        Self { rate: rate.filter(|rate| *rate > 0), due: Instant::now() }
    }

    /// How many one step opens: four steps a second, so that a rate is kept evenly and a step is
    /// never large.
    fn burst(&self) -> usize {
        let quarter = self.rate.map_or(REPLAY_ROWS, |rate| rate as usize / 4);
        quarter.clamp(1, REPLAY_ROWS)
    }

    fn note(&mut self, opened: usize) {
        if let Some(rate) = self.rate {
            let opened = u32::try_from(opened).unwrap_or(u32::MAX);
            self.due = Instant::now() + Duration::from_secs(1) * opened / rate;
        }
    }

    async fn wait(&self) {
        tokio::time::sleep_until(self.due).await;
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Drives, in the background, the replays that nobody drives: those made through a door that does
/// not stay, and those whose driver died.
pub struct Replays {
    store: Arc<dyn Store>,
}

impl Replays {
    /// For the jobs of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Looks for jobs and drives them until `stop` turns true.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut driven = JoinSet::new();
        loop {
            while driven.try_join_next().is_some() {}
            if let Err(error) = self.take_what_is_left(&mut driven, &stop).await {
                warn!(%error, "cannot look for replays");
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                () = tokio::time::sleep(REPLAY_LOOK) => {}
            }
        }
        while driven.join_next().await.is_some() {}
    }

    async fn take_what_is_left(
        &self,
        driven: &mut JoinSet<()>,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), StoreError> {
        while driven.len() < REPLAYS_DRIVEN {
            let Some(driver) = Driver::take(&self.store, None).await? else { break };
            driven.spawn(drive(driver, stop.clone()));
        }
        Ok(())
    }
}

async fn drive(driver: Driver, stop: watch::Receiver<bool>) {
    let replay = driver.job().id;
    info!(%replay, "replay taken");
    let (mut opened, mut passed) = (0, 0);
    let progress = |job: &Replay| (opened, passed) = (job.opened, job.passed);
    match driver.run(progress, stop).await {
        Ok(ended) => info!(%replay, ?ended, opened, passed, "replay left"),
        Err(error) => warn!(%replay, %error, "replay interrupted; it is taken again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_is_kept_over_many_steps() {
        let began = Instant::now();
        let mut pace = Pace::new(Some(100));
        assert_eq!(pace.burst(), 25);
        for _ in 0..8 {
            pace.wait().await;
            pace.note(25);
        }
        pace.wait().await;
        assert_eq!(began.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn steps_that_open_nothing_cost_no_time() {
        let began = Instant::now();
        let mut pace = Pace::new(Some(1));
        assert_eq!(pace.burst(), 1);
        for _ in 0..100 {
            pace.wait().await;
            pace.note(0);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(Pace::new(None).burst(), REPLAY_ROWS);
        assert_eq!(Pace::new(Some(u32::MAX)).burst(), REPLAY_ROWS);
    }
}
