//! The line of those who wait for a commit, and the batches it is taken in.

use std::collections::VecDeque;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::Refused;
use crate::receipt::{Arrival, Recorded};

/// A sender and what it waits for.
pub(super) struct Waiting {
    pub(super) first: Arrival,
    /// Further events of the same request. They are recorded in the same commit.
    pub(super) more: Vec<Arrival>,
    pub(super) answer: Answer,
    /// Its share of the memory budget, returned when it is answered.
    pub(super) bytes: OwnedSemaphorePermit,
}

impl Waiting {
    fn events(&self) -> usize {
        1 + self.more.len()
    }
}

/// How a sender is told.
pub(super) enum Answer {
    One(oneshot::Sender<Result<Recorded, Refused>>),
    All(oneshot::Sender<Result<Vec<Recorded>, Refused>>),
}

impl Answer {
    /// Whether nobody waits for it any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_closed(),
            Self::All(sender) => sender.is_closed(),
        }
    }

    /// Tells what came of its events. Several are kept only if each of them is.
    pub(super) fn send(self, outcomes: &[Result<Recorded, Refused>]) {
        // A sender that gave up meanwhile will be told `duplicate` when it returns.
        match (self, outcomes) {
            (Self::One(sender), [outcome, ..]) => drop(sender.send(outcome.clone())),
            (Self::One(_), []) => {}
            (Self::All(sender), all) => drop(sender.send(all.iter().cloned().collect())),
        }
    }
}

/// Everybody who waits.
pub(super) struct Line {
    queue: mpsc::Receiver<Waiting>,
    /// Taken from the queue and left for the next batch, since they would have made one too large.
    over: VecDeque<Waiting>,
}

impl Line {
    pub(super) fn new(queue: mpsc::Receiver<Waiting>) -> Self {
        Self { queue, over: VecDeque::new() }
    }

    /// Whether a whole batch waits.
    pub(super) fn fills(&self, most: usize) -> bool {
        !self.over.is_empty() || self.queue.len() >= most
    }

    /// Lets nobody join any more.
    pub(super) fn close(&mut self) {
        self.queue.close();
    }

    /// Waits for somebody and takes whoever fits a batch of that many events; whoever has more
    /// than that goes alone, and never in two batches. Nothing is lost if this is dropped while
    /// it waits.
    pub(super) async fn take(&mut self, most: usize, batch: &mut Vec<Waiting>) {
        match self.over.is_empty() {
            true => drop(self.queue.recv_many(batch, most).await),
            false => {
                batch.extend(self.over.drain(..));
                while batch.len() < most
                    && let Ok(next) = self.queue.try_recv()
                {
                    batch.push(next);
                }
            }
        }
        let mut events = 0;
        let fits = batch.iter().take_while(|waiting| {
            events += waiting.events();
            events <= most
        });
        let fits = fits.count().max(1);
        if fits < batch.len() {
            self.over.extend(batch.drain(fits..));
        }
    }
}
