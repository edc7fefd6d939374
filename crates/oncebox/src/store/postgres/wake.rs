//! Telling workers, here and in other processes, that something may be due.
//!
//! A notification goes out after the commit, from a connection of its own and coalesced: inside
//! the transaction that made something due it would make commits wait for each other.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::Client;
use tracing::debug;

use super::connect::{Connector, Driver, failure};
use crate::limits;
use crate::store::{Purpose, StoreError};

/// A notification that is lost costs others one poll, so its commit need not be synced.
const NOTIFY: &str = "BEGIN; SET LOCAL synchronous_commit = off; NOTIFY oncebox_due; COMMIT";

/// The signal of one store, and the task that carries it to and from other processes.
pub(super) struct Wake {
    signal: Arc<Signal>,
    task: AbortHandle,
}

struct Signal {
    due: watch::Sender<u64>,
    /// How often something became due here for anybody.
    made: watch::Sender<u64>,
    /// How many of those others have been told of.
    told: watch::Sender<u64>,
    /// The server process of our connection: what we hear of it we have said ourselves.
    own: AtomicI32,
}

impl Wake {
    pub(super) fn start(connector: Connector, purpose: Purpose) -> Self {
        let signal = Arc::new(Signal {
            due: watch::Sender::new(0),
            made: watch::Sender::new(0),
            told: watch::Sender::new(0),
            own: AtomicI32::new(0),
        });
        let task = tokio::spawn(carry(connector, signal.clone(), purpose)).abort_handle();
        Self { signal, task }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.signal.due.subscribe()
    }

    /// Something may be due that this process knows of alone.
    pub(super) fn here(&self) {
        bump(&self.signal.due);
    }

    /// Something may be due for anybody. The commit that made it so has happened.
    pub(super) fn everywhere(&self) {
        bump(&self.signal.due);
        bump(&self.signal.made);
    }

    /// Stops once others were told of everything, if that can be done soon.
    pub(super) async fn stop(&self) {
        let made = *self.signal.made.borrow();
        let mut told = self.signal.told.subscribe();
        // Others poll, too: what could not be told is found a little later.
        let _ =
            tokio::time::timeout(limits::NOTIFY_STOP, told.wait_for(|told| *told >= made)).await;
        self.task.abort();
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bump(count: &watch::Sender<u64>) {
    count.send_modify(|count| *count = count.wrapping_add(1));
}

/// Keeps a connection for notifications. An operator's command, which has nobody to wake, connects
/// only when there is something to tell.
async fn carry(connector: Connector, signal: Arc<Signal>, purpose: Purpose) {
    let mut pause = limits::LISTEN_RETRY.0;
    let mut made = signal.made.subscribe();
    loop {
        if purpose == Purpose::Operate {
            let told = *signal.told.borrow();
            let _ = made.wait_for(|made| *made > told).await;
        }
        let error = match connect(&connector, &signal, purpose).await {
            Ok((client, mut driver)) => {
                pause = limits::LISTEN_RETRY.0;
                let Err(error) = tokio::select! {
                    told = tell(&client, &signal) => told,
                    () = driver.ended() => Err(StoreError::Unavailable("it was closed".into())),
                };
                error
            }
            Err(error) => error,
        };
        debug!(%error, "no connection for notifications");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(limits::LISTEN_RETRY.1);
    }
}

async fn connect(
    connector: &Connector,
    signal: &Arc<Signal>,
    purpose: Purpose,
) -> Result<(Client, Driver), StoreError> {
    let heard = signal.clone();
    let (client, driver) = connector
        .listen(move |notification| {
            if notification.process_id() != heard.own.load(Ordering::Relaxed) {
                bump(&heard.due);
            }
        })
        .await?;
    in_time(listen(&client, signal, purpose)).await?;
    Ok((client, driver))
}

async fn listen(client: &Client, signal: &Signal, purpose: Purpose) -> Result<(), StoreError> {
    let process = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(failure)?;
    signal.own.store(process.get(0), Ordering::Relaxed);
    if purpose == Purpose::Serve {
        client.batch_execute("LISTEN oncebox_due").await.map_err(failure)?;
        // What was said while nobody listened.
        bump(&signal.due);
    }
    Ok(())
}

/// Waits for a server that may have frozen.
async fn in_time<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limits::POSTGRES_CONNECT, asked).await;
    answer.unwrap_or_else(|_| Err(StoreError::Unavailable("it says nothing".into())))
}

/// Tells others, once for all that became due meanwhile.
async fn tell(client: &Client, signal: &Signal) -> Result<Infallible, StoreError> {
    let mut made = signal.made.subscribe();
    loop {
        let told = *signal.told.borrow();
        // The signal outlives us, so this always ends with something to tell.
        let now = made.wait_for(|made| *made != told).await.map_or(told, |made| *made);
        in_time(async { client.batch_execute(NOTIFY).await.map_err(failure) }).await?;
        signal.told.send_replace(now);
        tokio::time::sleep(limits::NOTIFY_APART).await;
    }
}
