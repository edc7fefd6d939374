//! Ingest: many senders, one commit.
//!
//! A verified arrival joins the queue; whatever queued while the last commit ran is the next
//! batch. There is no timer, so a lone event is committed at once and a flood is committed in
//! large batches. Who was first is never decided here: duplicates inside a batch, across batches,
//! processes and machines all meet in the database. The events of one request are committed
//! together, whoever else is in their batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Semaphore, TryAcquireError, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::{error, warn};

use self::line::{Answer, Line, Waiting};
use self::pulse::Pulse;
use self::settle::settle;
use crate::limits;
use crate::receipt::{Arrival, Recorded, SourceNo};
use crate::repeats::Repeats;
use crate::store::{Store, StoreError};
use crate::stored::Stored;

mod line;
mod pulse;
mod settle;

/// How ingest may be bounded, and who is told about commits.
#[derive(Clone)]
pub struct IngestOptions {
    /// Events committed together at most, unless a single request carries more.
    pub batch_events: usize,
    /// Requests that may wait. One that carries many events is one of them; its events count by
    /// their bytes.
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

struct Shared {
    store: Arc<dyn Store>,
    repeats: Repeats,
    stored: Stored,
    stop: watch::Sender<bool>,
    failed: watch::Sender<Option<String>>,
    trouble: std::sync::Mutex<Option<(Instant, String)>>,
    pulse: Pulse,
    /// Held while a batch is recorded, unless it was worth recording beside another.
    turn: Mutex<()>,
}

impl Ingest {
    /// Starts the writers and the task that writes down what was counted.
    pub fn start(store: Arc<dyn Store>, options: IngestOptions) -> Self {
        let (queue, waiting) = mpsc::channel(options.queue_events);
        let line = Arc::new(Mutex::new(Line::new(waiting)));
        let shared = Arc::new(Shared {
            repeats: Repeats::new(store.clone()),
            stored: Stored::new(store.clone()),
            stop: watch::Sender::new(false),
            failed: watch::Sender::new(None),
            trouble: std::sync::Mutex::new(None),
            pulse: Pulse::default(),
            turn: Mutex::new(()),
            store,
        });
        let mut tasks = JoinSet::new();
        for _ in 0..shared.store.writers() {
            tasks.spawn(write(shared.clone(), line.clone(), options.clone()));
        }
        tasks.spawn(flush_counts(shared.clone()));
        let budget = Arc::new(Semaphore::new(options.queue_bytes));
        Self { queue, budget, options, shared, tasks: Mutex::new(tasks) }
    }

    /// Records one arrival and returns once its outcome is durable.
    pub async fn record(&self, arrival: Arrival) -> Result<Recorded, Refused> {
        let (answer, outcome) = oneshot::channel();
        let weight = arrival.weight();
        self.join(arrival, Vec::new(), weight, Answer::One(answer))?;
        self.wait_for(outcome).await
    }

    /// Records the events of one request in one commit and returns once the outcome of each is
    /// durable. Each is settled by itself: some may be new and others repeats.
    ///
    /// If not all of them could be recorded the request is refused as a whole; those that were are
    /// duplicates when it comes again. At most [`BATCH_ITEMS_MAX`](limits::BATCH_ITEMS_MAX) are
    /// taken, more are [`Refused::Unstorable`].
    pub async fn record_all(&self, arrivals: Vec<Arrival>) -> Result<Vec<Recorded>, Refused> {
        if arrivals.len() > limits::BATCH_ITEMS_MAX {
            return Err(Refused::Unstorable);
        }
        let weight = weight_of(&arrivals);
        let mut arrivals = arrivals.into_iter();
        let Some(first) = arrivals.next() else { return Ok(Vec::new()) };
        let (answer, outcome) = oneshot::channel();
        self.join(first, arrivals.collect(), weight, Answer::All(answer))?;
        self.wait_for(outcome).await
    }

    /// Joins the line, if there is room for it.
    fn join(
        &self,
        first: Arrival,
        more: Vec<Arrival>,
        weight: usize,
        answer: Answer,
    ) -> Result<(), Refused> {
        if self.shared.failed.borrow().is_some() {
            return Err(Refused::StoreDown);
        }
        let bytes = u32::try_from(weight).unwrap_or(u32::MAX);
        let bytes = self.budget.clone().try_acquire_many_owned(bytes);
        let bytes = bytes.map_err(|error| match error {
            TryAcquireError::NoPermits => Refused::QueueFull,
            TryAcquireError::Closed => Refused::Stopping,
        })?;
        let waiting = Waiting { first, more, answer, bytes };
        self.queue.try_send(waiting).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refused::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Refused::Stopping,
        })
    }

    async fn wait_for<T>(
        &self,
        outcome: oneshot::Receiver<Result<T, Refused>>,
    ) -> Result<T, Refused> {
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

    /// Proves that commits get through, where the store can: one that has just succeeded is proof
    /// enough, else something is committed that changes nothing. `Err` says why none got through.
    pub async fn prove(&self) -> Result<(), String> {
        pulse::prove(&self.shared).await
    }

    /// Whether new arrivals are refused because the end has begun.
    pub fn is_draining(&self) -> bool {
        *self.shared.stop.borrow()
    }

    /// How many requests wait for a commit.
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
async fn write(shared: Arc<Shared>, line: Arc<Mutex<Line>>, options: IngestOptions) {
    let mut batch = Vec::with_capacity(options.batch_events);
    loop {
        let turn = next_batch(&shared, &line, options.batch_events, &mut batch).await;
        if batch.is_empty() {
            return;
        }
        // A sender that gave up will come again; what it left needs no commit.
        batch.retain(|waiting| !waiting.answer.is_closed());
        let mut arrivals = Vec::with_capacity(batch.len());
        let (mut answers, mut ends) = (Vec::with_capacity(batch.len()), Vec::new());
        for waiting in batch.drain(..) {
            arrivals.push(waiting.first);
            arrivals.extend(waiting.more);
            answers.push((waiting.answer, waiting.bytes));
            ends.push(arrivals.len());
        }
        if arrivals.is_empty() {
            continue;
        }
        let arrivals: Arc<[Arrival]> = arrivals.into();
        let began = Instant::now();
        let outcomes = settle(&shared, &arrivals, &ends).await;
        (options.on_commit)(arrivals.len(), began.elapsed());
        shared.count(&arrivals, &outcomes);
        let mut start = 0;
        for ((answer, bytes), end) in answers.into_iter().zip(ends) {
            answer.send(&outcomes[start..end]);
            start = end;
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
    line: &Mutex<Line>,
    most: usize,
    batch: &mut Vec<Waiting>,
) -> Option<MutexGuard<'a, ()>> {
    let mut stop = shared.stop.subscribe();
    let mut line = line.lock().await;
    let turn = match line.fills(most) {
        false => tokio::time::timeout(limits::BATCH_TURN, shared.turn.lock()).await.ok(),
        true => shared.turn.try_lock().ok(),
    };
    let stopping = tokio::select! {
        biased;
        () = line.take(most, batch) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    if stopping {
        line.close();
        line.take(most, batch).await;
    }
    turn
}

/// Bytes that the events of a request hold in memory, what they share counted once.
fn weight_of(arrivals: &[Arrival]) -> usize {
    let mut request = None;
    let weight = |arrival: &Arrival| match &arrival.part {
        Some(part) if request.replace(part.request) != Some(part.request) => {
            arrival.weight() + part.whole.len() + arrival.headers.len()
        }
        _ => arrival.weight(),
    };
    arrivals.iter().map(weight).sum()
}

impl Shared {
    /// Counts the bytes and the repeats of a batch.
    fn count(&self, arrivals: &[Arrival], outcomes: &[Result<Recorded, Refused>]) {
        let mut counted = None;
        for (arrival, outcome) in arrivals.iter().zip(outcomes) {
            let Ok(recorded) = outcome else { continue };
            self.repeats.note(*recorded, arrival.received_at);
            if !recorded.is_new() {
                continue;
            }
            self.stored.note(arrival.source, arrival.stored_bytes());
            // The whole body of a request is kept once for all of its events.
            if let Some(part) = &arrival.part
                && counted.replace(part.request) != Some(part.request)
            {
                let whole = i64::try_from(part.whole.len()).unwrap_or(i64::MAX);
                self.stored.note(arrival.source, whole);
            }
        }
    }

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
