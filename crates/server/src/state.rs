//! Everything a handler needs, in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ipnet::IpNet;
use oncebox::clock::Clock;
use oncebox::ingest::{Ingest, IngestOptions};
use oncebox::receipt::ReceiptMint;
use oncebox::store::{Store, StoreError};
use tokio::sync::Semaphore;

use crate::clock_watch::ClockWatch;
use crate::config::{Config, Keyrings};
use crate::failures::Failures;
use crate::metrics::{Metrics, SourceMetrics};
use crate::route::Routes;
use crate::source::Sources;

/// The server's state. What a reload may change is behind [`Inbox::live`].
pub struct Inbox {
    /// Where receipts are kept.
    pub store: Arc<dyn Store>,
    /// The way into the store.
    pub ingest: Ingest,
    /// The time by which signatures are judged.
    pub clock: Arc<dyn Clock>,
    /// Whether that time can be trusted.
    pub clock_watch: ClockWatch,
    /// Where receipt ids come from.
    pub mint: ReceiptMint,
    /// What Prometheus is told.
    pub metrics: Arc<Metrics>,
    /// The counters of requests to no source of ours.
    pub unknown: SourceMetrics,
    /// Failed signatures, by address.
    pub failures: Failures,
    /// Memory left for bodies that are being received, in bytes.
    pub memory: Arc<Semaphore>,
    live: ArcSwap<Live>,
    draining: AtomicBool,
}

/// What a reload replaces. A request keeps the one it started with.
#[derive(Debug)]
pub struct Live {
    /// The sources.
    pub sources: Sources,
    /// The routes.
    pub routes: Routes,
    /// The largest body.
    pub max_body: usize,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// Networks whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether an unknown source is answered like a wrong signature.
    pub hide_unknown_sources: bool,
    /// Failed signatures per address and minute.
    pub failed_signatures_per_minute: u32,
}

impl Live {
    /// Registers what the configuration names and puts it together.
    pub async fn build(
        config: &Config,
        keyrings: Keyrings,
        store: &dyn Store,
        clock: &dyn Clock,
        metrics: &Metrics,
    ) -> Result<Self, StoreError> {
        let routes = Routes::build(config, store).await?;
        Ok(Self {
            sources: Sources::build(config, keyrings, &routes, store, clock, metrics).await?,
            routes,
            max_body: config.server.max_body.bytes(),
            body_timeout: config.server.body_timeout.0,
            trusted_proxies: config.server.trusted_proxies.clone(),
            hide_unknown_sources: config.server.hide_unknown_sources,
            failed_signatures_per_minute: config.limits.failed_signatures_per_minute,
        })
    }
}

impl Inbox {
    /// Builds the state and starts ingest.
    pub async fn start(
        config: &Config,
        keyrings: Keyrings,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ingest: IngestOptions,
    ) -> Result<Self, StoreError> {
        let metrics = Arc::new(Metrics::new());
        let live = Live::build(config, keyrings, &*store, &*clock, &metrics).await?;
        let told = ingest.on_commit.clone();
        let counted = metrics.clone();
        let options = IngestOptions {
            on_commit: Arc::new(move |events, took| {
                counted.commit(events);
                told(events, took);
            }),
            ..ingest
        };
        Ok(Self {
            ingest: Ingest::start(store.clone(), options),
            clock_watch: ClockWatch::new(clock.now(), Instant::now()),
            mint: ReceiptMint::after(store.newest().await?, clock.now()),
            unknown: metrics.of_source("unknown"),
            failures: Failures::default(),
            memory: Arc::new(Semaphore::new(config.server.memory_budget.bytes())),
            live: ArcSwap::from_pointee(live),
            draining: AtomicBool::new(false),
            store,
            clock,
            metrics,
        })
    }

    /// What is in force now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// Puts something new in force. Requests under way keep what they started with.
    pub fn replace(&self, live: Live) {
        self.live.store(Arc::new(live));
    }

    /// Whether the server is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Says that the server is about to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why the store has failed for good, if it has.
    pub fn failure(&self) -> Option<String> {
        self.ingest.failure()
    }

    /// Looks at the clock once.
    pub async fn watch_clock(&self) {
        self.clock_watch.run_once(&*self.clock, &*self.store, &self.metrics).await;
    }
}
