//! Whether the time of a 401 tells that a source exists, with `hide_unknown_sources = true`.
//!
//! `cargo run --release -p oncebox-server --example hidden_sources`
//!
//! Requests with a forged signature go to a source that exists and to one that does not, in turn,
//! over one connection to a real server. The medians of their times are compared.

use std::sync::Arc;
use std::time::Instant;

use oncebox::clock::{Clock, SystemClock};
use oncebox::store::{self, Purpose};
use oncebox_server::config::{Config, Environment};
use oncebox_server::logs;
use oncebox_server::server::{Listeners, Server, ingest_options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PAIRS: usize = 50_000;

const CONFIG: &str = r#"
[server]
hide_unknown_sources = true

[limits]
failed_signatures_per_minute = 1000000000

[sources.payments-here]
provider = "stripe"
secrets = ["whsec_2f1d7c5a9e8b4036", "whsec_the_next_one_93c1"]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::parse("oncebox.toml", CONFIG, Environment::default())
        .map_err(|error| error.render(false))?;
    // Logging is part of the work, and goes nowhere.
    tracing::subscriber::set_global_default(logs::subscriber(&config.log, std::io::sink))?;
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("oncebox.db").display());
    let store = store::open(&url, Purpose::Serve).await?;
    let listeners = Listeners {
        public: Some(TcpListener::bind("127.0.0.1:0").await?),
        admin: Some(TcpListener::bind("127.0.0.1:0").await?),
    };
    let ingest = ingest_options(&config.server);
    let server = Server::start(config, store, Arc::new(SystemClock), ingest, listeners).await?;

    let mut stream = TcpStream::connect(server.public).await?;
    stream.set_nodelay(true)?;
    let mut times = [Vec::new(), Vec::new()];
    let requests = [forged("payments-here"), forged("payments-none")];
    for round in 0..PAIRS {
        // Each goes first as often as the other.
        for which in [round % 2, 1 - round % 2] {
            let began = Instant::now();
            stream.write_all(&requests[which]).await?;
            expect_401(&mut stream).await?;
            times[which].push(began.elapsed().as_nanos() as f64 / 1000.0);
        }
    }
    let [known, unknown] = times.map(median);
    println!("a source that exists:     median {known:.2} µs");
    println!("a source that does not:   median {unknown:.2} µs");
    println!("ratio {:.3}", known / unknown);
    server.stop().await;
    Ok(())
}

/// An event of 2 KB that is signed with no secret of ours.
fn forged(source: &str) -> Vec<u8> {
    let body = format!(r#"{{"id":"evt_1","type":"x","fill":"{}"}}"#, "x".repeat(2048));
    let now = SystemClock.now().as_second();
    let head = format!(
        "POST /in/{source} HTTP/1.1\r\nhost: hooks.example.com\r\n\
         stripe-signature: t={now},v1={}\r\ncontent-length: {}\r\n\r\n",
        "0f".repeat(32),
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// Reads one answer to its end.
async fn expect_401(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut answer = Vec::with_capacity(512);
    while !answer.ends_with(br#"{"error":"invalid_signature"}"#) {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
