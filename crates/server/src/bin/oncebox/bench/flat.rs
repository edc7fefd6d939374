//! Whether claims stay as quick as they were: with a million finished deliveries beside them, and
//! with an old snapshot that keeps PostgreSQL from clearing away what is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Ending, Next};
use oncebox::receipt::{Arrival, ReceiptMint, RouteNo, SecretNo, SourceNo, Taker};
use oncebox::route::RouteRules;
use oncebox::store::{Claim, Store, StoreError, Wanted};
use oncebox_verify::Trust;
use tokio::sync::watch;

use super::load::latencies;

/// Deliveries claimed at once.
const CLAIMED: usize = 64;

/// Events in a batch whose recording is timed.
const RECORDED: usize = 32;

/// A queue that events go through in process: recorded, claimed, finished.
pub(crate) struct Queue {
    store: Arc<dyn Store>,
    source: SourceNo,
    route: RouteNo,
    mint: ReceiptMint,
    recorded: u64,
    folded: Instant,
}

impl Queue {
    pub(crate) async fn new(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let source = store.register_source("bench", None).await?;
        let route = store.register_route("bench", None, &RouteRules::default()).await?;
        let (mint, folded) = (ReceiptMint::new(), Instant::now());
        Ok(Self { store, source, route, mint, recorded: 0, folded })
    }

    /// Takes `count` events through, and times the claims in microseconds.
    pub(crate) async fn pass(&mut self, count: u64) -> Result<Histogram<u64>, StoreError> {
        let mut times = latencies();
        let end = self.recorded + count;
        while self.recorded < end {
            self.round(&mut times).await?;
        }
        Ok(times)
    }

    /// Goes on for a while; the claims of the last tenth are timed.
    pub(crate) async fn pass_for(&mut self, time: Duration) -> Result<Histogram<u64>, StoreError> {
        let (begin, mut times) = (Instant::now(), latencies());
        while begin.elapsed() < time {
            if begin.elapsed() < time.mul_f64(0.9) {
                times.reset();
            }
            self.round(&mut times).await?;
        }
        Ok(times)
    }

    /// Counts deliveries by state, as the page of metrics does, and times that.
    pub(crate) async fn count(&self, times: u64) -> Result<Histogram<u64>, StoreError> {
        let mut took = latencies();
        for _ in 0..times {
            let began = Instant::now();
            self.store.tally().await?;
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            took.saturating_record(micros.max(1));
        }
        Ok(took)
    }

    /// Records batches until `stop` turns true, and times each.
    pub(crate) async fn record_until(
        &mut self,
        mut stop: watch::Receiver<bool>,
    ) -> Result<Histogram<u64>, StoreError> {
        let mut times = latencies();
        while !*stop.borrow_and_update() {
            let batch: Vec<Arrival> = (0..RECORDED).map(|_| self.event()).collect();
            let began = Instant::now();
            self.store.record(batch.into()).await?;
            let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            times.saturating_record(took.max(1));
        }
        Ok(times)
    }

    /// One batch, from recorded to finished.
    async fn round(&mut self, times: &mut Histogram<u64>) -> Result<(), StoreError> {
        let batch: Vec<Arrival> =
            (0..oncebox::limits::BATCH_EVENTS).map(|_| self.event()).collect();
        let mut open = batch.len();
        self.store.record(batch.into()).await?;
        while open > 0 {
            let claim = Claim {
                wanted: vec![Wanted::new(self.route, CLAIMED, RouteRules::default())],
                lease: oncebox::limits::LEASE,
                worker: "bench".into(),
            };
            let began = Instant::now();
            let claims = self.store.claim(&claim).await?;
            let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            times.saturating_record(took.max(1));
            open = open.saturating_sub(claims.claimed.len());
            let ending = |claimed: oncebox::delivery::Claimed| Ending {
                delivery: claimed.delivery,
                lease: claimed.lease,
                next: Next::Processed,
                took: Duration::ZERO,
                status: Some(204),
                detail: None,
                summary: None,
                guarded: false,
            };
            self.store.finish(claims.claimed.into_iter().map(ending).collect()).await?;
        }
        // As the leader does every few seconds.
        if self.folded.elapsed() > oncebox::limits::FOLD_EVERY {
            self.store.fold(SystemClock.now()).await?;
            self.folded = Instant::now();
        }
        Ok(())
    }

    fn event(&mut self) -> Arrival {
        let now: Timestamp = SystemClock.now();
        self.recorded += 1;
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&self.recorded.to_be_bytes());
        digest[8] = 1;
        Arrival {
            receipt: self.mint.mint(now),
            source: self.source,
            received_at: now,
            event_id: format!("evt_1{:016}", self.recorded),
            trust: Trust::Signed,
            event_type: "invoice.paid".into(),
            object: None,
            version: None,
            secret: SecretNo(1),
            signed_at: None,
            headers: Bytes::new(),
            body: Bytes::from_static(b"{}"),
            digest,
            content: digest,
            guard: None,
            odd_rules: oncebox::receipt::OddRules::default(),
            has_room: true,
            is_defective: false,
            takers: vec![Taker::plain(self.route)],
            part: None,
        }
    }
}
