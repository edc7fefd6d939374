//! Workers that pull deliveries and complete them at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Workers at the same time.
const WORKERS: usize = 128;

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
    id: String,
    lease: String,
}

async fn pull(admin: SocketAddr, token: &str, completed: &AtomicU64) -> io::Result<()> {
    let mut stream = TcpStream::connect(admin).await?;
    stream.set_nodelay(true)?;
    let mut answers = Vec::with_capacity(1 << 20);
    let claim = r#"{"max":16,"wait":"1s"}"#;
    loop {
        let request = post("/api/v1/routes/bench-0/claim", token, claim);
        stream.write_all(request.as_bytes()).await?;
        let (_, body) = read(&mut stream, &mut answers).await?;
        let claimed: Claimed = serde_json::from_slice(&body)?;
        // All at once: the answers come in the same order.
        let mut requests = String::new();
        for delivery in &claimed.deliveries {
            let path = format!("/api/v1/deliveries/{}/complete", delivery.id);
            let body = format!(r#"{{"lease":"{}"}}"#, delivery.lease);
            requests.push_str(&post(&path, token, &body));
        }
        stream.write_all(requests.as_bytes()).await?;
        for _ in &claimed.deliveries {
            let (ok, _) = read(&mut stream, &mut answers).await?;
            completed.fetch_add(u64::from(ok), Ordering::Relaxed);
        }
    }
}

fn post(path: &str, token: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Whether the next answer is a success, and its body.
async fn read(stream: &mut TcpStream, answers: &mut Vec<u8>) -> io::Result<(bool, Vec<u8>)> {
    loop {
        if let Some(length) = super::load::whole_length(answers)
            && answers.len() >= length
        {
            let ok = answers.get(9) == Some(&b'2');
            let head = answers.windows(4).position(|window| window == b"\r\n\r\n");
            let body = answers[head.map_or(0, |head| head + 4)..length].to_vec();
            answers.drain(..length);
            return Ok((ok, body));
        }
        if stream.read_buf(answers).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
