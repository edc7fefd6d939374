//! Workers that pull deliveries, many at a time, and complete them at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Workers at the same time.
const WORKERS: usize = 16;

/// Deliveries that each claims, and completes, in one request.
const MOST: usize = 64;

/// The workers, until they are dropped.
pub(crate) struct Pullers {
    completed: Arc<AtomicU64>,
    _workers: JoinSet<()>,
}

impl Pullers {
    pub(crate) fn start(admin: SocketAddr, token: &str) -> Self {
        let completed = Arc::new(AtomicU64::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let (token, completed) = (token.to_owned(), completed.clone());
            workers.spawn(async move {
                // It ends with the server; before that, the count tells.
                let _ = pull(admin, &token, &completed).await;
            });
        }
        Self { completed, _workers: workers }
    }

    /// Deliveries completed so far.
    pub(crate) fn count(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }
}

#[derive(Deserialize)]
struct Claimed {
    deliveries: Vec<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    delivery: String,
    lease: String,
    body: String,
}

#[derive(Deserialize)]
struct Completed {
    deliveries: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    state: Option<String>,
}

async fn pull(admin: SocketAddr, token: &str, completed: &AtomicU64) -> io::Result<()> {
    let mut stream = TcpStream::connect(admin).await?;
    stream.set_nodelay(true)?;
    let mut answers = Vec::with_capacity(1 << 20);
    let claim = format!(r#"{{"max":{MOST},"wait":"1s"}}"#);
    let claim = post("/api/v1/routes/bench-0/claim", token, &claim);
    loop {
        stream.write_all(claim.as_bytes()).await?;
        let claimed: Claimed = read(&mut stream, &mut answers).await?;
        // The work: to have got the payload.
        let done = claimed.deliveries.iter().filter(|delivery| !delivery.body.is_empty());
        let done =
            done.map(|it| format!(r#"{{"delivery":"{}","lease":"{}"}}"#, it.delivery, it.lease));
        let done = done.collect::<Vec<_>>().join(",");
        if done.is_empty() {
            continue;
        }
        let done = format!(r#"{{"deliveries":[{done}]}}"#);
        let request = post("/api/v1/routes/bench-0/complete", token, &done);
        stream.write_all(request.as_bytes()).await?;
        let told: Completed = read(&mut stream, &mut answers).await?;
        let processed =
            told.deliveries.iter().filter(|it| it.state.as_deref() == Some("processed"));
        completed.fetch_add(processed.count() as u64, Ordering::Relaxed);
    }
}

fn post(path: &str, token: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What the next answer says.
async fn read<T: DeserializeOwned>(stream: &mut TcpStream, answers: &mut Vec<u8>) -> io::Result<T> {
    loop {
        if let Some(length) = super::load::whole_length(answers)
            && answers.len() >= length
        {
            let head = answers.windows(4).position(|window| window == b"\r\n\r\n");
            let body = &answers[head.map_or(0, |head| head + 4)..length];
            let said = serde_json::from_slice(body)?;
            answers.drain(..length);
            return Ok(said);
        }
        if stream.read_buf(answers).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
