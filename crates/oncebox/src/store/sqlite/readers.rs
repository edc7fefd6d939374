//! Read-only connections, so that a list never waits for a commit nor a commit for a list.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection::{self, failure};
use crate::store::StoreError;

pub(super) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn open(path: &Path, count: usize) -> Result<Self, StoreError> {
        let connections: Result<Vec<_>, _> =
            (0..count).map(|_| connection::open_reader(path)).collect();
        Ok(Self {
            idle: Arc::new(Mutex::new(connections?)),
            turns: Arc::new(Semaphore::new(count)),
        })
    }

    /// Runs `work` on an idle connection, on a thread that may block. All it reads is of one
    /// moment: what moves from one table to another meanwhile is in one of them.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = self.turns.clone().acquire_owned().await.expect("never closed");
        let idle = self.idle.clone();
        let done = tokio::task::spawn_blocking(move || {
            let connection = idle.lock().expect("no panic here").pop().expect("one per turn");
            let result = in_one_snapshot(&connection, work);
            idle.lock().expect("no panic here").push(connection);
            drop(turn);
            result
        });
        done.await.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }
}

fn in_one_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let snapshot = connection.unchecked_transaction().map_err(failure)?;
    let result = work(&snapshot);
    // There is nothing to commit; ending it lets the log be reset.
    snapshot.finish().map_err(failure)?;
    result
}
