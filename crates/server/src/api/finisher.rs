//! Ends of attempts, committed together: whatever queued while the last commit ran is the next
//! batch. There is no timer, so a lone end is committed at once. One that cannot be written now is
//! set aside with its request.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use oncebox::delivery::{DeliveryId, Ending, Next};
use oncebox::limits::{ASIDE_RETRY, CLAIM_ROWS};
use oncebox::store::{Finish, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::problem::Problem;
use crate::activity::Activity;
use crate::line::Line;
use crate::logs;
use crate::metrics::Metrics;
use crate::state::Inbox;

/// How long a request waits for a row that is locked, before its worker is told so.
const LOCKED_WAIT: Duration = Duration::from_secs(2);

/// What came of an end, unless the store did not say.
pub(super) type Finished = Result<Finish, StoreError>;

/// The way to end attempts.
#[derive(Debug, Clone)]
pub(super) struct Finisher {
    queue: mpsc::Sender<Waiting>,
}

/// What one request ends, and who waits to hear what came of it.
#[derive(Debug)]
struct Waiting {
    route: String,
    endings: Vec<Ending>,
    heard: oneshot::Sender<Vec<Finished>>,
}

impl Finisher {
    /// Starts committing; stops once the last handle is gone.
    pub(super) fn start(inbox: &Inbox) -> Self {
        let (queue, waiting) = mpsc::channel(CLAIM_ROWS);
        let told = Told { metrics: inbox.metrics.clone(), activity: inbox.activity.clone() };
        tokio::spawn(run(inbox.store.clone(), told, waiting));
        Self { queue }
    }

    /// Ends attempts on different deliveries of a route, as many as one transaction takes at most.
    /// Says what came of each, in their order. Counts and logs those that ended, also if nobody
    /// waits to hear of it any more.
    pub(super) async fn finish(
        &self,
        route: &str,
        endings: Vec<Ending>,
    ) -> Result<Vec<Finished>, Problem> {
        if endings.is_empty() {
            return Ok(Vec::new());
        }
        let stopped = || Problem::unavailable("the server is stopping");
        let (heard, hears) = oneshot::channel();
        let waiting = Waiting { route: route.to_owned(), endings, heard };
        self.queue.send(waiting).await.map_err(|_| stopped())?;
        hears.await.map_err(|_| stopped())
    }
}

/// Who is told how attempts ended.
#[derive(Clone)]
struct Told {
    metrics: Arc<Metrics>,
    activity: Arc<Activity>,
}

async fn run(store: Arc<dyn Store>, told: Told, mut queue: mpsc::Receiver<Waiting>) {
    let mut next = None;
    loop {
        let first = match next.take() {
            Some(first) => Some(first),
            None => queue.recv().await,
        };
        let Some(first) = first else { return };
        let mut batch = Batch::of(first);
        while let Ok(one) = queue.try_recv() {
            if let Err(one) = batch.add(one) {
                next = Some(one);
                break;
            }
        }
        let ended = batch.commit(&*store).await;
        // Told beside the next commit, which need not wait for a line in the log of each.
        let (store, told) = (store.clone(), told.clone());
        tokio::spawn(async move {
            for (waiting, finished) in ended {
                if finished.iter().any(is_locked) {
                    let aside = waiting.end_locked(store.clone(), told.clone(), finished);
                    tokio::spawn(aside);
                } else {
                    waiting.hear(&told, finished);
                }
            }
        });
    }
}

fn is_locked(finished: &Finished) -> bool {
    matches!(finished, Ok(Finish::Locked))
}

/// What is committed together.
struct Batch {
    waiting: Vec<Waiting>,
    deliveries: HashSet<DeliveryId>,
}

impl Batch {
    fn of(first: Waiting) -> Self {
        let deliveries = first.endings.iter().map(|ending| ending.delivery).collect();
        Self { waiting: vec![first], deliveries }
    }

    /// Gives back what begins the next batch: there is no room for it, or it ends a delivery that
    /// is ended here, and hears what came of that after the first was decided.
    fn add(&mut self, one: Waiting) -> Result<(), Waiting> {
        let fits = self.deliveries.len() + one.endings.len() <= CLAIM_ROWS;
        let mut theirs = one.endings.iter().map(|ending| ending.delivery);
        if !fits || theirs.clone().any(|delivery| self.deliveries.contains(&delivery)) {
            return Err(one);
        }
        self.deliveries.extend(theirs.by_ref());
        self.waiting.push(one);
        Ok(())
    }

    /// Commits it. A value that the database refuses fails its own ending and no other.
    async fn commit(self, store: &dyn Store) -> Vec<(Waiting, Vec<Finished>)> {
        let endings: Vec<Ending> =
            self.waiting.iter().flat_map(|waiting| &waiting.endings).cloned().collect();
        let count = endings.len();
        let finished: Vec<Finished> = match store.finish(endings).await {
            Ok(each) => each.into_iter().map(Ok).collect(),
            Err(StoreError::Data(_)) if count > 1 => {
                let mut each = Vec::with_capacity(count);
                for ending in self.waiting.iter().flat_map(|waiting| &waiting.endings) {
                    let alone = store.finish(vec![ending.clone()]).await;
                    each.push(alone.map(|one| one.first().copied().unwrap_or(Finish::Lost)));
                }
                each
            }
            Err(error) => vec![Err(error); count],
        };
        let mut finished = finished.into_iter();
        let own = |waiting: Waiting| {
            let finished = finished.by_ref().take(waiting.endings.len()).collect();
            (waiting, finished)
        };
        self.waiting.into_iter().map(own).collect()
    }
}

impl Waiting {
    /// Tries again to end deliveries whose rows were locked, for as long as a
    /// request should wait. No other request waits for it.
    async fn end_locked(self, store: Arc<dyn Store>, told: Told, mut finished: Vec<Finished>) {
        let until = Instant::now() + LOCKED_WAIT;
        let mut pause = ASIDE_RETRY.0;
        while finished.iter().any(is_locked) && Instant::now() < until {
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(ASIDE_RETRY.1);
            let locked: Vec<usize> =
                (0..finished.len()).filter(|number| is_locked(&finished[*number])).collect();
            let endings = locked.iter().map(|number| self.endings[*number].clone()).collect();
            let Ok(each) = store.finish(endings).await else { continue };
            for (number, finish) in locked.into_iter().zip(each) {
                finished[number] = Ok(finish);
            }
        }
        self.hear(&told, finished);
    }

    fn hear(self, told: &Told, finished: Vec<Finished>) {
        for (ending, finished) in self.endings.iter().zip(&finished) {
            // What is said again was counted the first time.
            if matches!(finished, Ok(Finish::Done)) {
                count(told, &self.route, ending);
            }
        }
        // Whoever hung up does not need to hear it.
        let _ = self.heard.send(finished);
    }
}

fn count(told: &Told, route: &str, ending: &Ending) {
    let metrics = &told.metrics;
    metrics.routes.attempt(route, ending.next, ending.took);
    if matches!(ending.next, Next::Retry(_) | Next::Snooze(_)) {
        metrics.routes.retry(route, ending.detail.as_deref().unwrap_or_default());
    }
    logs::pulled(route, ending);
    told.activity.show(|| Line::pulled(route, ending));
}
