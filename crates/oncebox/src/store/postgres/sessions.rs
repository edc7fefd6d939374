//! Work on a connection, for as long as there is patience with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};

use super::connect::{given_back, no_connection};
use crate::limits;
use crate::store::StoreError;

/// Connections of one use, and how long one of them may say nothing. A frozen server keeps its
/// connections alive for ever; whoever works on one must get away from it.
#[derive(Clone)]
pub(super) struct Sessions {
    pool: Pool,
    patience: Duration,
    /// Connections that were left and have not been heard of since. Their server processes may
    /// still be waiting, so there must not be more and more of them.
    left: Arc<AtomicUsize>,
}

impl Sessions {
    pub(super) fn new(pool: Pool, patience: Duration) -> Self {
        Self { pool, patience, left: Arc::default() }
    }

    /// A connection without a deadline.
    pub(super) async fn get(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(|error| no_connection(&error))
    }

    /// Looks something up. Silence means that nothing is known.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.work(work, StoreError::Unavailable).await
    }

    /// Changes something. Silence means that it may have been changed or not.
    pub(super) async fn write<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.work(work, StoreError::UnknownOutcome).await
    }

    async fn work<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, StoreError>,
        silence: fn(String) -> StoreError,
    ) -> Result<T, StoreError> {
        let mut busy = Busy { sessions: self, client: Some(self.get().await?) };
        let outcome = match &mut busy.client {
            Some(client) => self.patiently(work(client)).await,
            None => None,
        };
        match (outcome, busy.client.take()) {
            (Some(outcome), Some(client)) => given_back(client, outcome),
            (_, client) => {
                client.into_iter().for_each(|client| self.leave(client));
                Err(silence("the connection says nothing".into()))
            }
        }
    }

    /// Waits for an answer; none if the connection stays silent for too long and may be left.
    async fn patiently<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let one_more = |left| (left < limits::POSTGRES_LEFT).then_some(left + 1);
        loop {
            if let Ok(answer) = tokio::time::timeout(self.patience, &mut work).await {
                return Some(answer);
            }
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok() {
                return None;
            }
        }
    }

    /// Takes a connection out of the pool. It is over once its server has answered what it was
    /// asked, or is known to be gone.
    fn leave(&self, client: Object) {
        let (client, left) = (Object::take(client), self.left.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // Whatever the answer.
            let _ = client.simple_query("").await;
            left.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// How many connections there can be.
    pub(super) fn most(&self) -> usize {
        self.pool.status().max_size
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }
}

/// A connection that is worked on. The caller may give up before there is an answer: then the
/// connection is left, and not given back to the pool with a question still open on it.
struct Busy<'a> {
    sessions: &'a Sessions,
    client: Option<Object>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.sessions.left.fetch_add(1, Ordering::Relaxed);
            self.sessions.leave(client);
        }
    }
}
