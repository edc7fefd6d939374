//! Work on a connection, with a deadline.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connect::{given_back, no_connection};
use crate::limits;
use crate::store::StoreError;

/// Connections of one use, and how long one of them may say nothing. A frozen server keeps its
/// connections alive for ever; work on one must get away from it.
#[derive(Clone)]
pub(super) struct Sessions {
    pool: Pool,
    tls: MakeRustlsConnect,
    patience: Duration,
    /// Connections that were left and have not answered since. Their server processes may still
    /// be waiting, so there must not be more and more of them.
    left: Arc<AtomicUsize>,
}

impl Sessions {
    pub(super) fn new(pool: Pool, tls: MakeRustlsConnect, patience: Duration) -> Self {
        Self { pool, tls, patience, left: Arc::default() }
    }

    /// A connection without a deadline for what is done on it.
    pub(super) async fn get(&self) -> Result<Object, StoreError> {
        let left = self.left.load(Ordering::Relaxed);
        if left >= limits::POSTGRES_LEFT_PER_PLACE * self.most() {
            return Err(StoreError::Unavailable(format!(
                "{left} connections have not answered; waiting for one of them"
            )));
        }
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
        let mut lent = Lent { client: Some(self.get().await?), sessions: self };
        match timeout(self.patience, work(&mut lent)).await {
            Ok(outcome) => given_back(lent.back(), outcome),
            Err(_) => Err(silence("the connection says nothing".into())),
        }
    }

    /// Takes a busy connection out of the pool. It is over once its server has answered, is known
    /// to be gone, or was told to end what it does.
    fn leave(&self, client: Object) {
        let client = Object::take(client);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.left.fetch_add(1, Ordering::Relaxed);
        let sessions = self.clone();
        runtime.spawn(async move {
            // Whatever the answers.
            if timeout(sessions.patience, client.simple_query("")).await.is_err() {
                let cancel = client.cancel_token();
                let _ = timeout(limits::POSTGRES_CONNECT, cancel.cancel_query(sessions.tls)).await;
            }
            drop(client);
            sessions.left.fetch_sub(1, Ordering::Relaxed);
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

/// A connection at work. One that is dropped before its work is done, because the deadline passed
/// or the caller went away, is busy and does not return to the pool.
struct Lent<'a> {
    client: Option<Object>,
    sessions: &'a Sessions,
}

impl Lent<'_> {
    fn back(mut self) -> Object {
        self.client.take().expect("it is given back once")
    }
}

impl Deref for Lent<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.client.as_ref().expect("it is not given back yet")
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        self.client.as_mut().expect("it is not given back yet")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.sessions.leave(client);
        }
    }
}
