//! Ingest: many senders, one commit.
//!
//! A verified arrival joins the queue; whatever queued while the last commit ran is the next
//! batch. There is no timer, so a lone event is committed at once and a flood is committed in
//! large batches. Who was first is never decided here: duplicates inside a batch, across batches,
//! processes and machines all meet in the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Semaphore, TryAcquireError, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::{error, warn};

use crate::limits;
use crate::receipt::{Arrival, Recorded, SourceNo};
use crate::repeats::Repeats;
use crate::store::{Store, StoreError};
use crate::stored::Stored;

/// How ingest may be bounded, and who is told about commits.
#[derive(Clone)]
pub struct IngestOptions {
    /// Events committed together at most.
    pub batch_events: usize,
    /// Events that may wait.
    pub queue_events: usize,
    /// Bytes that may wait.
    pub queue_bytes: usize,
    /// How long a sender waits for its commit.
    pub commit_wait: Duration,
    /// Called after each commit with the size of the batch and how long it took.
    pub on_commit: Arc<dyn Fn(usize, Duration) + Send + Sync>,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            batch_events: limits::BATCH_EVENTS,
            queue_events: limits::QUEUE_EVENTS,
            queue_bytes: limits::QUEUE_BYTES,
            commit_wait: limits::COMMIT_WAIT,
            on_commit: Arc::new(|_, _| {}),
        }
    }
}

/// Why an arrival could not be recorded now. All of these are our trouble, never the sender's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// More is waiting than may wait.
    #[error("the queue is full")]
    QueueFull,
    /// The commit did not happen in time. It may still, and then absorbs the retry.
    #[error("no commit within the time a sender is kept waiting")]
    TooSlow,
    /// The store cannot record now.
    #[error("the store is unavailable")]
    StoreDown,
    /// The database refuses this one event, alone.
    #[error("the database refuses this event")]
    Unstorable,
    /// The process is shutting down.
    #[error("shutting down")]
    Stopping,
}

impl Refused {
    /// A stable word for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::TooSlow => "commit_too_slow",
            Self::StoreDown => "store_down",
            Self::Unstorable => "unstorable",
            Self::Stopping => "stopping",
        }
    }
}

/// The way into the store.
pub struct Ingest {
    queue: mpsc::Sender<Waiting>,
    budget: Arc<Semaphore>,
    options: IngestOptions,
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
}

/// An arrival and the sender that waits for it.
struct Waiting {
    arrival: Arrival,
    answer: oneshot::Sender<Result<Recorded, Refused>>,
    /// Its share of the memory budget, returned when it is answered.
    bytes: tokio::sync::OwnedSemaphorePermit,
}

struct Shared {
    store: Arc<dyn Store>,
    repeats: Repeats,
    stored: Stored,
    stop: watch::Sender<bool>,
    failed: watch::Sender<Option<String>>,
    trouble: std::sync::Mutex<Option<(Instant, String)>>,
    /// Held while a batch is recorded, unless it was worth recording beside another.
    turn: Mutex<()>,
}

impl Ingest {
    /// Starts the writers and the task that writes down what was counted.
    pub fn start(store: Arc<dyn Store>, options: IngestOptions) -> Self {
        let (queue, waiting) = mpsc::channel(options.queue_events);
        let waiting = Arc::new(Mutex::new(waiting));
        let shared = Arc::new(Shared {
            repeats: Repeats::new(store.clone()),
            stored: Stored::new(store.clone()),
            stop: watch::Sender::new(false),
            failed: watch::Sender::new(None),
            trouble: std::sync::Mutex::new(None),
            turn: Mutex::new(()),
            store,
        });
        let mut tasks = JoinSet::new();
        for _ in 0..shared.store.writers() {
            tasks.spawn(write(shared.clone(), waiting.clone(), options.clone()));
        }
        tasks.spawn(flush_counts(shared.clone()));
        let budget = Arc::new(Semaphore::new(options.queue_bytes));
        Self { queue, budget, options, shared, tasks: Mutex::new(tasks) }
    }

    /// Records one arrival and returns once its outcome is durable.
    pub async fn record(&self, arrival: Arrival) -> Result<Recorded, Refused> {
        if self.shared.failed.borrow().is_some() {
            return Err(Refused::StoreDown);
        }
        let bytes = u32::try_from(arrival.weight()).unwrap_or(u32::MAX);
        let bytes = self.budget.clone().try_acquire_many_owned(bytes);
        let bytes = bytes.map_err(|error| match error {
            TryAcquireError::NoPermits => Refused::QueueFull,
            TryAcquireError::Closed => Refused::Stopping,
        })?;
        let (answer, outcome) = oneshot::channel();
        let waiting = Waiting { arrival, answer, bytes };
        self.queue.try_send(waiting).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refused::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Refused::Stopping,
        })?;
        match tokio::time::timeout(self.options.commit_wait, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Refused::Stopping),
            Err(_) => Err(Refused::TooSlow),
        }
    }

    /// Resolves with the reason once the store has failed for good. The process should then exit:
    /// a restart recovers from what is on disk, a retry would not.
    pub async fn failed(&self) -> String {
        let mut failed = self.shared.failed.subscribe();
        let reason = failed.wait_for(Option::is_some).await.expect("the sender lives in self");
        reason.clone().expect("waited for a reason")
    }

    /// Why the store has failed for good, if it has.
    pub fn failure(&self) -> Option<String> {
        self.shared.failed.borrow().clone()
    }

    /// Why the last commit failed, if it was a moment ago and none has succeeded since. After that
    /// moment nothing is known: the next sender finds out.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.shared.trouble.lock().expect("no panic while noting");
        let recent = |(at, _): &&(Instant, String)| at.elapsed() < limits::TROUBLE_REMEMBERED;
        trouble.as_ref().filter(recent).map(|(_, reason)| reason.clone())
    }

    /// Whether new arrivals are refused because the end has begun.
    pub fn is_draining(&self) -> bool {
        *self.shared.stop.borrow()
    }

    /// How many arrivals wait for a commit.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Bytes kept for a source, as far as this node knows: what others added, and what expired,
    /// is known about a second later.
    pub fn stored_bytes(&self, source: SourceNo) -> i64 {
        self.shared.stored.bytes(source)
    }

    /// Writes down what was counted so far, without waiting for the next round.
    pub async fn flush_counts(&self) -> Result<(), StoreError> {
        self.shared.flush_counts().await
    }

    /// Commits what is waiting, writes down repeats and stops. Senders that come now are refused.
    pub async fn drain(&self) {
        self.budget.close();
        self.shared.stop.send_replace(true);
        let mut tasks = self.tasks.lock().await;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                error!(%error, "an ingest task ended badly");
            }
        }
        // After the writers, so that the last commits are counted too.
        if self.failure().is_none()
            && let Err(error) = self.shared.flush_counts().await
        {
            warn!(%error, "the last counts were not written");
        }
    }
}

/// One writer: takes what is waiting, records it, answers, again.
async fn write(
    shared: Arc<Shared>,
    queue: Arc<Mutex<mpsc::Receiver<Waiting>>>,
    options: IngestOptions,
) {
    let mut batch = Vec::with_capacity(options.batch_events);
    loop {
        let turn = next_batch(&shared, &queue, options.batch_events, &mut batch).await;
        if batch.is_empty() {
            return;
        }
        // A sender that gave up will come again; what it left needs no commit.
        batch.retain(|waiting| !waiting.answer.is_closed());
        let apart = |waiting: Waiting| (waiting.arrival, (waiting.answer, waiting.bytes));
        let (arrivals, answers): (Vec<_>, Vec<_>) = batch.drain(..).map(apart).unzip();
        if arrivals.is_empty() {
            continue;
        }
        let arrivals: Arc<[Arrival]> = arrivals.into();
        let began = Instant::now();
        let outcomes = settle(&shared, arrivals.clone()).await;
        (options.on_commit)(arrivals.len(), began.elapsed());
        for ((arrival, outcome), (answer, bytes)) in arrivals.iter().zip(outcomes).zip(answers) {
            match outcome {
                Ok(Recorded::Accepted) => {
                    shared.stored.note(arrival.source, arrival.stored_bytes());
                }
                Ok(repeat) => shared.repeats.note(repeat, arrival.received_at),
                Err(_) => {}
            }
            // A sender that gave up meanwhile will be told `duplicate` when it returns.
            let _ = answer.send(outcome);
            drop(bytes);
        }
        drop(turn);
    }
}

/// Waits for the next batch. It stays empty when ingest was told to stop and nothing waits.
///
/// Two half batches cost more than a whole one. So, beside a batch that is under way, another is
/// begun only if it is full, or if the first takes so long that it may be stuck.
async fn next_batch<'a>(
    shared: &'a Shared,
    queue: &Mutex<mpsc::Receiver<Waiting>>,
    most: usize,
    batch: &mut Vec<Waiting>,
) -> Option<MutexGuard<'a, ()>> {
    let mut stop = shared.stop.subscribe();
    let mut queue = queue.lock().await;
    let turn = match queue.len() < most {
        true => tokio::time::timeout(limits::BATCH_TURN, shared.turn.lock()).await.ok(),
        false => shared.turn.try_lock().ok(),
    };
    let stopping = tokio::select! {
        biased;
        _ = queue.recv_many(batch, most) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    if stopping {
        queue.close();
        queue.recv_many(batch, most).await;
    }
    turn
}

/// Brings a batch to an outcome for each of its arrivals.
async fn settle(shared: &Shared, batch: Arc<[Arrival]>) -> Vec<Result<Recorded, Refused>> {
    let outcome = record_surely(shared, batch.clone()).await;
    let reason = outcome.as_ref().err().map(|error| (Instant::now(), error.to_string()));
    *shared.trouble.lock().expect("no panic while noting") = reason;
    match outcome {
        Ok(recorded) => recorded.into_iter().map(Ok).collect(),
        // One bad row must not fail its neighbours: each gets a transaction of its own.
        Err(StoreError::Data(reason)) if batch.len() > 1 => {
            warn!(%reason, events = batch.len(), "the database refused a batch; recording one by one");
            let mut outcomes = Vec::with_capacity(batch.len());
            for arrival in batch.iter() {
                let alone = record_surely(shared, Arc::from([arrival.clone()])).await;
                outcomes.push(alone.map(|recorded| recorded[0]).map_err(refusal));
            }
            outcomes
        }
        // An event that is known to be kept is never refused for its neighbours' sake.
        Err(StoreError::Partly { recorded, reason }) => {
            warn!(%reason, events = batch.len(), "only part of a batch was recorded");
            recorded.into_iter().map(|known| known.ok_or(Refused::StoreDown)).collect()
        }
        Err(error) => {
            warn!(%error, events = batch.len(), "a batch could not be recorded");
            vec![Err(refusal(error)); batch.len()]
        }
    }
}

/// Records a batch; a commit with an unknown outcome is asked about by recording it again under
/// the same receipt ids. If the answer cannot be had in time the senders are told to retry, and
/// the identity absorbs what was committed after all.
async fn record_surely(
    shared: &Shared,
    batch: Arc<[Arrival]>,
) -> Result<Vec<Recorded>, StoreError> {
    let mut pause = Duration::from_millis(50);
    for _ in 0..limits::RECHECKS {
        match shared.store.record(batch.clone()).await {
            Err(StoreError::UnknownOutcome(reason)) => {
                warn!(%reason, events = batch.len(), "commit outcome unknown; asking again");
                tokio::time::sleep(pause).await;
                pause *= 4;
            }
            Err(StoreError::Fatal(reason)) => {
                error!(%reason, "the store has failed; refusing everything until a restart");
                shared.failed.send_replace(Some(reason.clone()));
                return Err(StoreError::Fatal(reason));
            }
            outcome => return outcome,
        }
    }
    Err(StoreError::Unavailable("the outcome of a commit stayed unknown".into()))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn refusal(error: StoreError) -> Refused {
    match error {
        StoreError::Data(_) => Refused::Unstorable,
        _ => Refused::StoreDown,
    }
}

impl Shared {
    async fn flush_counts(&self) -> Result<(), StoreError> {
        self.repeats.flush().await?;
        self.stored.flush().await
    }
}

/// Writes down what was counted about once a second, and early when many different receipts
/// repeat.
async fn flush_counts(shared: Arc<Shared>) {
    loop {
        if let Err(error) = shared.flush_counts().await {
            warn!(%error, "counts could not be written yet");
        }
        let mut stop = shared.stop.subscribe();
        let stopping = tokio::select! {
            () = tokio::time::sleep(limits::COUNTS_FLUSH) => false,
            () = shared.repeats.crowded() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        if stopping {
            return;
        }
    }
}
