//! A destination that does nothing but answer 204 and note who came.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The destination, until it is dropped.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    /// When events arrived, by their id, where somebody wants to know.
    arrivals: Mutex<HashMap<String, Instant>>,
    wanted: AtomicU64,
    arrived: Notify,
}

impl Sink {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, shared.clone()));
            }
        });
        Ok(Self { address, seen, task })
    }

    /// Requests answered so far.
    pub(crate) fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }

    /// Notes arrival times from now on.
    pub(crate) fn note_arrivals(&self) {
        self.seen.wanted.store(1, Ordering::Relaxed);
    }

    /// When the event arrived; waits for it.
    pub(crate) async fn arrival(&self, event_id: &str) -> Instant {
        loop {
            let arrived = self.seen.arrived.notified();
            let seen = self.seen.arrivals.lock().expect("no panic while noting").remove(event_id);
            match seen {
                Some(at) => return at,
                None => arrived.await,
            }
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, seen: Arc<Seen>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        let length = loop {
            if let Some(length) = super::load::whole_length(&bytes)
                && bytes.len() >= length
            {
                break length;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        seen.note(&bytes[..length]);
        bytes.drain(..length);
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
    }
}

impl Seen {
    fn note(&self, request: &[u8]) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        let at = Instant::now();
        let head = String::from_utf8_lossy(request);
        let id = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("oncebox-event-id").then(|| value.trim().to_owned())
        });
        if let Some(id) = id {
            self.arrivals.lock().expect("no panic while noting").insert(id, at);
            self.arrived.notify_waiters();
        }
    }
}
