//! What Prometheus is told.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use oncebox::ingest::Refused;
use oncebox::receipt::Recorded;
use oncebox::store::Health;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

mod effects;
mod fetches;
mod keys;
mod routes;

pub use effects::{EffectCall, EffectMetrics};
pub use fetches::{FetchMetrics, Fetched};
pub use keys::{KeyCounters, KeyMetrics, KeyOutcome};
pub use routes::RouteMetrics;

/// What came of a request. The words are labels of a metric and fields of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Recorded just now.
    Accepted,
    /// Recorded before.
    Duplicate,
    /// Recorded before under this identity with another body.
    Conflict,
    /// Recorded before under another, unsigned identity.
    Twin,
    /// Of a type the source does not take.
    Ignored,
    /// A question of the provider, answered.
    Handshake,
    /// Verified, but without an identity that can be read.
    Malformed,
    /// Not believed, or against a limit.
    Rejected,
    /// Not recorded, for reasons of our own.
    Unavailable,
}

impl Outcome {
    /// The outcome of something that was recorded.
    pub fn of(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Accepted => Self::Accepted,
            Recorded::Duplicate { .. } => Self::Duplicate,
            Recorded::Conflict { .. } => Self::Conflict,
            Recorded::Twin { .. } => Self::Twin,
            Recorded::NoRoom => Self::Unavailable,
        }
    }

    /// Every outcome.
    pub const ALL: [Self; 9] = [
        Self::Accepted,
        Self::Duplicate,
        Self::Conflict,
        Self::Twin,
        Self::Ignored,
        Self::Handshake,
        Self::Malformed,
        Self::Rejected,
        Self::Unavailable,
    ];

    /// Its word. Never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Twin => "twin",
            Self::Ignored => "ignored",
            Self::Handshake => "handshake",
            Self::Malformed => "malformed",
            Self::Rejected => "rejected",
            Self::Unavailable => "unavailable",
        }
    }
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Received {
    source: String,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: String,
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejected {
    source: String,
    reason: &'static str,
}

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    received: Family<Received, Counter>,
    rejections: Family<Rejected, Counter>,
    unavailable: Family<Rejected, Counter>,
    stored_bytes: Family<OfSource, Gauge>,
    accept_seconds: Histogram,
    batch_size: Histogram,
    /// How far our clock is from the reference, in seconds.
    pub clock_skew_seconds: Gauge<f64, AtomicU64>,
    /// Size of SQLite's write-ahead log.
    pub wal_bytes: Gauge,
    /// Acknowledged receipts that a new PostgreSQL primary did not have.
    pub missing_receipts: Gauge,
    /// How often this process went over to another PostgreSQL primary.
    pub primary_changes: Gauge,
    /// Requests that wait for a commit.
    pub queue_waiting: Gauge,
    /// What is counted of routes.
    pub routes: RouteMetrics,
    /// What is counted of fetches.
    pub fetches: FetchMetrics,
    /// What is counted of the keys of providers.
    pub keys: KeyMetrics,
    /// What is counted of effects.
    pub effects: EffectMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that have counted nothing yet.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("oncebox"),
            received: Family::default(),
            rejections: Family::default(),
            unavailable: Family::default(),
            stored_bytes: Family::default(),
            // From half a millisecond to eight seconds; nobody is kept waiting longer than four.
            accept_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 15)),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            clock_skew_seconds: Gauge::default(),
            wal_bytes: Gauge::default(),
            missing_receipts: Gauge::default(),
            primary_changes: Gauge::default(),
            queue_waiting: Gauge::default(),
            routes: RouteMetrics::new(),
            fetches: FetchMetrics::new(),
            keys: KeyMetrics::new(),
            effects: EffectMetrics::new(),
        };
        metrics.register()
    }

    fn register(mut self) -> Self {
        let registry = &mut self.registry;
        let received = "Requests, and events of requests with several, by what came of them";
        registry.register("received", received, self.received.clone());
        let rejections = "Requests not believed or not readable, by reason";
        registry.register("rejections", rejections, self.rejections.clone());
        let unavailable = "Requests answered 503, by reason";
        registry.register("unavailable", unavailable, self.unavailable.clone());
        let stored = "Bytes of headers and bodies that a source keeps";
        registry.register("stored_bytes", stored, self.stored_bytes.clone());
        let accept = "Time from a request's headers to its answer, for recorded events";
        registry.register("accept_seconds", accept, self.accept_seconds.clone());
        let batch = "Events committed together";
        registry.register("commit_batch_size", batch, self.batch_size.clone());
        let skew = "Difference of our clock to the database, or to its own steady progress";
        registry.register("clock_skew_seconds", skew, self.clock_skew_seconds.clone());
        let wal = "Size of the write-ahead log of SQLite";
        registry.register("wal_bytes", wal, self.wal_bytes.clone());
        let missing = "Acknowledged receipts that were missing after a change of primary";
        registry.register("missing_receipts", missing, self.missing_receipts.clone());
        let changes = "Changes to another PostgreSQL primary";
        registry.register("primary_changes", changes, self.primary_changes.clone());
        let waiting = "Requests that wait for a commit";
        registry.register("queue_waiting", waiting, self.queue_waiting.clone());
        self.routes.register(registry);
        self.fetches.register(registry);
        self.keys.register(registry);
        self.effects.register(registry);
        self
    }

    /// The counters of a source, at zero from the start, so that the first rejection shows as an
    /// increase.
    pub fn of_source(&self, source: &str) -> SourceMetrics {
        let received = Outcome::ALL.map(|outcome| {
            self.received.get_or_create(&Received { source: source.into(), outcome }).clone()
        });
        let down = Rejected { source: source.into(), reason: Refused::StoreDown.code() };
        let _ = self.unavailable.get_or_create(&down);
        SourceMetrics {
            source: source.to_owned(),
            received,
            rejections: self.rejections.clone(),
            unavailable: self.unavailable.clone(),
            stored_bytes: self
                .stored_bytes
                .get_or_create(&OfSource { source: source.to_owned() })
                .clone(),
            accept_seconds: self.accept_seconds.clone(),
        }
    }

    /// Notes a commit of this many events.
    pub fn commit(&self, events: usize) {
        self.batch_size.observe(events as f64);
    }

    /// Notes how the store is doing.
    pub fn health(&self, health: &Health) {
        let gauges = [
            (&self.wal_bytes, health.wal_bytes),
            (&self.missing_receipts, health.missing_receipts),
            (&self.primary_changes, health.primary_changes),
        ];
        for (gauge, value) in gauges {
            if let Some(value) = value {
                gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
    }

    /// Everything, in the text format of Prometheus.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}

/// The counters of one source, looked up once.
#[derive(Debug)]
pub struct SourceMetrics {
    source: String,
    received: [Counter; 9],
    rejections: Family<Rejected, Counter>,
    unavailable: Family<Rejected, Counter>,
    /// Bytes the source keeps.
    pub stored_bytes: Gauge,
    accept_seconds: Histogram,
}

impl SourceMetrics {
    /// Counts a request.
    pub fn count(&self, outcome: Outcome, reason: Option<&'static str>, took: Duration) {
        self.received[outcome as usize].inc();
        match outcome {
            Outcome::Accepted | Outcome::Duplicate | Outcome::Conflict | Outcome::Twin => {
                self.accept_seconds.observe(took.as_secs_f64());
            }
            Outcome::Malformed | Outcome::Rejected => self.count_reason(&self.rejections, reason),
            Outcome::Unavailable => self.count_reason(&self.unavailable, reason),
            Outcome::Ignored | Outcome::Handshake => {}
        }
    }

    /// Counts the events of a request with several.
    pub fn count_batch(&self, counts: &[u64; Outcome::ALL.len()], took: Duration) {
        for (counter, events) in self.received.iter().zip(counts) {
            counter.inc_by(*events);
        }
        self.accept_seconds.observe(took.as_secs_f64());
    }

    /// Counts events that are not taken.
    pub fn count_ignored(&self, events: u64) {
        self.received[Outcome::Ignored as usize].inc_by(events);
    }

    fn count_reason(&self, of: &Family<Rejected, Counter>, reason: Option<&'static str>) {
        let reason = reason.unwrap_or("other");
        of.get_or_create(&Rejected { source: self.source.clone(), reason }).inc();
    }
}
