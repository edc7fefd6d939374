//! Ends of attempts, committed together: whatever queued while the last commit ran is the next
//! batch. There is no timer, so a lone end is committed at once.

use std::collections::HashSet;
use std::sync::Arc;

use oncebox::delivery::Ending;
use oncebox::limits::CLAIM_ROWS;
use oncebox::store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::problem::Problem;

/// The way to end attempts.
#[derive(Debug, Clone)]
pub(super) struct Finisher {
    queue: mpsc::Sender<Waiting>,
}

/// An end, and who waits to hear whether its lease was good.
#[derive(Debug)]
struct Waiting {
    ending: Ending,
    heard: oneshot::Sender<Result<bool, StoreError>>,
}

impl Finisher {
    /// Starts committing; stops once the last handle is gone.
    pub(super) fn start(store: Arc<dyn Store>) -> Self {
        let (queue, waiting) = mpsc::channel(CLAIM_ROWS);
        tokio::spawn(run(store, waiting));
        Self { queue }
    }

    /// Ends an attempt. Says whether its lease was good.
    pub(super) async fn finish(&self, ending: Ending) -> Result<bool, Problem> {
        let stopped = || Problem::unavailable("the server is stopping");
        let (heard, hears) = oneshot::channel();
        self.queue.send(Waiting { ending, heard }).await.map_err(|_| stopped())?;
        Ok(hears.await.map_err(|_| stopped())??)
    }
}

async fn run(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, CLAIM_ROWS).await > 0 {
        // Whoever ends the same delivery twice hears of the second after the first was decided.
        let mut seen = HashSet::new();
        let (first, again): (Vec<_>, Vec<_>) =
            batch.drain(..).partition(|waiting| seen.insert(waiting.ending.delivery));
        commit(&*store, first).await;
        for waiting in again {
            commit(&*store, vec![waiting]).await;
        }
    }
}

/// Commits a batch. A value that the database refuses fails its own request and no other.
async fn commit(store: &dyn Store, batch: Vec<Waiting>) {
    let endings = batch.iter().map(|waiting| waiting.ending.clone()).collect();
    match store.finish(endings).await {
        Ok(each) => {
            for (waiting, finish) in batch.into_iter().zip(each) {
                waiting.hear(Ok(finish.is_good()));
            }
        }
        Err(StoreError::Data(_)) if batch.len() > 1 => {
            for waiting in batch {
                let result = store.finish(vec![waiting.ending.clone()]).await;
                waiting.hear(result.map(|each| each.first().is_some_and(|it| it.is_good())));
            }
        }
        Err(error) => {
            for waiting in batch {
                waiting.hear(Err(error.clone()));
            }
        }
    }
}

impl Waiting {
    fn hear(self, result: Result<bool, StoreError>) {
        // Whoever hung up does not need to hear it.
        let _ = self.heard.send(result);
    }
}
