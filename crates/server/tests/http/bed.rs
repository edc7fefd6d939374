//! A server in the test's own process, on a real file and real sockets, with a clock that stands
//! still.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use oncebox::clock::{Clock, ManualClock};
use oncebox::store::{self, Purpose, ReceiptFilter, ReceiptSummary};
use oncebox_server::config::{Config, Environment};
use oncebox_server::keys::KeyOptions;
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use oncebox_testkit::{postgres, wait};
use oncebox_verify::{Draft, SampleEvent, Secret, catalogue, sample, sign};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The secret of the source `stripe`.
pub(crate) const STRIPE: &str = "whsec_canary_stripe_secret";

/// The secret of the source `github`.
pub(crate) const GITHUB: &str = "canary-github-secret";

/// The secret of the source `token`.
pub(crate) const TOKEN: &str = "canary-token-secret";

/// The sources of every bed.
pub(crate) const SOURCES: &str = r#"
[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]

[sources.stripe-other]
provider = "stripe"
secrets = ["whsec_canary_other_secret"]

[sources.github]
provider = "github"
secrets = ["canary-github-secret"]

[sources.slack]
provider = "slack"
secrets = ["canary-slack-secret"]

[sources.token]
provider = "token"
secrets = ["canary-token-secret"]
"#;

/// How long a test waits for what should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bed {
    pub(crate) server: Server,
    pub(crate) clock: Arc<ManualClock>,
    place: Place,
}

/// What goes away with the bed.
pub(crate) enum Place {
    Folder(TempDir),
    Database(postgres::Database),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(oncebox_testkit::store::database);
        Self::Database(database.await.unwrap())
    }

    fn url(&self) -> String {
        match self {
            Self::Folder(folder) => format!("sqlite://{}/oncebox.db", folder.path().display()),
            Self::Database(database) => database.url().to_owned(),
        }
    }
}

impl Bed {
    /// A server with the usual sources and nothing else.
    pub(crate) async fn start() -> Self {
        Self::with("").await
    }

    /// A server with the usual sources and `more` in front of them.
    pub(crate) async fn with(more: &str) -> Self {
        Self::configured(&format!("{more}\n{SOURCES}")).await
    }

    /// A server with exactly this configuration.
    pub(crate) async fn configured(text: &str) -> Self {
        Self::on_place(Place::sqlite(), text).await
    }

    /// As [`Bed::configured`], on another store.
    pub(crate) async fn on_place(place: Place, text: &str) -> Self {
        Self::on(place, configuration(text), now(), KeyOptions::default()).await
    }

    /// As [`Bed::configured`], with keys from somewhere else.
    pub(crate) async fn with_keys(text: &str, keys: KeyOptions) -> Self {
        Self::on(Place::sqlite(), configuration(text), now(), keys).await
    }

    /// The same server, stopped and started again some seconds later.
    pub(crate) async fn restarted_after(self, seconds: i64) -> Self {
        self.restarted_with_keys(seconds, KeyOptions::default()).await
    }

    /// The same, with keys from somewhere else.
    pub(crate) async fn restarted_with_keys(self, seconds: i64, keys: KeyOptions) -> Self {
        let config = self.server.config();
        let later = self.clock.now() + jiff::SignedDuration::from_secs(seconds);
        self.server.stop().await;
        Self::on(self.place, config, later, keys).await
    }

    /// A server whose store is in this place, at this time.
    async fn on(place: Place, config: Config, now: jiff::Timestamp, keys: KeyOptions) -> Self {
        let store = store::open(&place.url(), Purpose::Serve).await.unwrap();
        let clock = Arc::new(ManualClock::at(now));
        let listeners = Listeners {
            public: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
            admin: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
        };
        let options = StartOptions { keys, ..ingest_options(&config.server).into() };
        let server = Server::start(config, store, clock.clone(), options, listeners).await.unwrap();
        Self { server, clock, place }
    }

    /// An event of the source `stripe`, signed now.
    pub(crate) fn event(&self, id: &str) -> Draft {
        self.signed("stripe", STRIPE, id)
    }

    /// An event of a provider, signed now.
    pub(crate) fn signed(&self, provider: &str, secret: &str, id: &str) -> Draft {
        self.signed_at(provider, secret, id, 0)
    }

    /// An event of a provider, signed some seconds from now.
    pub(crate) fn signed_at(&self, provider: &str, secret: &str, id: &str, from_now: i64) -> Draft {
        let provider = catalogue::find(provider).unwrap();
        let at = self.clock.now() + jiff::SignedDuration::from_secs(from_now);
        let event = SampleEvent { id, event_type: "", at, object: None };
        sign(provider, &Secret::new(secret), sample(provider, &event), at).unwrap()
    }

    /// This body under a valid signature of the source `stripe`.
    pub(crate) fn signed_body(&self, body: impl Into<Vec<u8>>) -> Draft {
        let mut draft = self.event("evt_unused");
        draft.body = body.into();
        let stripe = catalogue::find("stripe").unwrap();
        sign(stripe, &Secret::new(STRIPE), draft, self.clock.now()).unwrap()
    }

    /// Posts an event to a source.
    pub(crate) async fn post(&self, source: &str, draft: &Draft) -> Answer {
        self.raw(&wire(&format!("/in/{source}"), draft)).await
    }

    /// Writes bytes to a new connection and reads the answer.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        Answer::of(self.server.public, bytes).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.public).await.unwrap()
    }

    /// Asks the admin listener.
    pub(crate) async fn admin(&self, path: &str) -> Answer {
        get(self.server.admin, path).await
    }

    /// What is stored.
    pub(crate) async fn stored(&self) -> Vec<ReceiptSummary> {
        let filter = ReceiptFilter { limit: 100, ..ReceiptFilter::default() };
        self.server.inbox.store.receipts(&filter).await.unwrap()
    }

    /// Asserts that nothing is stored and no identity taken: the event with this id, sent
    /// properly afterwards, is new.
    pub(crate) async fn assert_untouched(&self, what: &str) {
        assert_eq!(self.stored().await, [], "{what} left something in the store");
        let sources = self.server.inbox.store.sources().await.unwrap();
        for (source, name) in sources {
            let id = self.server.inbox.store.identity(source, "evt_1").await.unwrap();
            assert_eq!(id, None, "{what} took an identity of {name}");
        }
    }

    /// Waits until so much memory for bodies is free.
    pub(crate) async fn until_memory(&self, is_free: impl Fn(usize) -> bool + Send + 'static) {
        let memory = self.server.inbox.memory.clone();
        let waiting = move || {
            wait::until("memory for bodies is taken", || is_free(memory.available_permits()));
        };
        tokio::task::spawn_blocking(waiting).await.unwrap();
    }

    /// The value of a metric.
    pub(crate) async fn metric(&self, line: &str) -> f64 {
        let text = self.admin("/metrics").await.body;
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        let found = found.unwrap_or_else(|| panic!("no metric {line} in\n{text}"));
        found.trim().parse().unwrap()
    }
}

pub(crate) fn configuration(text: &str) -> Config {
    Config::parse("test.toml", text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// The time it is.
fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_790_000_000).unwrap()
}

/// A request as it goes over the wire.
pub(crate) fn wire(path: &str, draft: &Draft) -> Vec<u8> {
    let mut bytes = head(path, draft, &[]);
    bytes.extend_from_slice(&draft.body);
    bytes
}

/// The head of a request, with its length and further headers.
pub(crate) fn head(path: &str, draft: &Draft, more: &[(&str, &str)]) -> Vec<u8> {
    let length = draft.body.len().to_string();
    let mut headers = more.to_vec();
    if !more.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding")) {
        headers.push(("content-length", &length));
    }
    head_exactly(path, draft, &headers)
}

/// The head of a request with the draft's headers and exactly these.
pub(crate) fn head_exactly(path: &str, draft: &Draft, more: &[(&str, &str)]) -> Vec<u8> {
    let start = format!("{} {path} HTTP/1.1\r\nhost: hooks.example.com\r\n", draft.method);
    let mut head = start.into_bytes();
    let more = more.iter().map(|(name, value)| (*name, value.as_bytes()));
    let all = draft.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    for (name, value) in all.chain(more) {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    Answer::of(address, request.as_bytes()).await
}

/// An answer as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// What is answered to bytes on a new connection.
    pub(crate) async fn of(address: SocketAddr, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        Self::read(&mut stream).await.expect("an answer")
    }

    /// Reads one answer; none if the connection ends before one came.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<Self> {
        tokio::time::timeout(PATIENCE, Self::read_patiently(stream))
            .await
            .expect("the server answers or closes in time")
    }

    /// Reads an answer to `HEAD`, which tells the length of a body that does not come.
    pub(crate) async fn read_head(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Self {
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut bytes)).await;
            assert_ne!(read.expect("an answer in time").unwrap(), 0, "an answer");
        }
        let head = String::from_utf8(bytes).unwrap();
        let (head, body) = head.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "", "HEAD has no body");
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Self { status, headers: headers.collect(), body: String::new() }
    }

    async fn read_patiently(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<Self> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        let mut body = bytes.split_off(head_end + 4);
        while body.len() < length && stream.read_buf(&mut body).await.unwrap_or(0) > 0 {}
        Some(Self { status, headers, body: String::from_utf8(body).unwrap() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the server said that it closes the connection.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }

    /// Asserts the one thing a sender without a valid signature may learn.
    pub(crate) fn assert_rejected(&self, what: &str) {
        assert_eq!(
            (self.status, self.body.as_str()),
            (401, r#"{"error":"invalid_signature"}"#),
            "{what}"
        );
        assert_eq!(self.header("content-type"), Some("application/json"), "{what}");
    }

    /// Asserts that the sender is asked to come back.
    pub(crate) fn assert_unavailable(&self, what: &str) {
        assert_eq!(
            (self.status, self.body.as_str()),
            (503, r#"{"error":"unavailable"}"#),
            "{what}"
        );
        let after: u64 = self.header("retry-after").expect("Retry-After").parse().unwrap();
        assert!(after > 0, "{what}");
    }

    /// The receipt it names, and whether it is new.
    pub(crate) fn receipt(&self) -> (String, String) {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("receipt"))
    }
}
