//! The worker: due deliveries into consumers, and what came of them back into the store.
//!
//! One line per delivery: claim, payload, deliver, next, finish. Everything around it keeps that
//! line short: [`slots`] says how much of each route may be claimed, [`leases`] keeps what is
//! held alive, [`finisher`] commits endings together. No clock of this process decides anything
//! about a delivery: leases and due times are the store's, only pauses of our own run here.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::delivery::{Claimed, DeliveryId, Next, Outcome, Payload, Reason};
use crate::limits;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{Rescued, Store};

mod breaker;

pub use breaker::BreakerView;

/// What deliveries of a route are handed to.
#[async_trait]
pub trait Consumer: Send + Sync + 'static {
    /// Tries a delivery once. The future is dropped when the lease is lost; a panic is a failed
    /// attempt.
    async fn deliver(&self, delivery: &Claimed, payload: Payload) -> Report;
}

/// What a consumer made of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The outcome; the route's rules decide where it leads.
    pub outcome: Outcome,
    /// The consumer's answer, where it is a number.
    pub status: Option<u16>,
    /// What went wrong or why to come back: shown to operators.
    pub detail: Option<String>,
    /// What the consumer says it did.
    pub summary: Option<String>,
    /// Whether the destination answered sensibly, whatever it answered. The breaker counts those
    /// that did not.
    pub healthy: bool,
}

impl Report {
    /// A sensible answer with nothing to add.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, status: None, detail: None, summary: None, healthy: true }
    }

    /// A failure of the destination or of the way to it, to be tried again.
    pub fn failed(detail: impl Into<String>) -> Self {
        let outcome = Outcome::Retry { after: None };
        Self { detail: Some(detail.into()), healthy: false, ..Self::of(outcome) }
    }
}

/// A route the worker works for.
#[derive(Clone)]
pub struct WorkRoute {
    /// Its stored number.
    pub number: RouteNo,
    /// Its name.
    pub name: Arc<str>,
    /// Its rules.
    pub rules: RouteRules,
    /// Deliveries that may be with the consumer at the same time.
    pub concurrency: usize,
    /// Attempts per second, if they are limited.
    pub rate: Option<NonZeroU32>,
    /// What its deliveries are handed to.
    pub consumer: Arc<dyn Consumer>,
}

/// Told of everything the worker does, for metrics and for those who wait for an outcome.
pub trait Observer: Send + Sync + 'static {
    /// An attempt ended and its ending is durable.
    fn attempted(
        &self,
        _route: &str,
        _claimed: &Claimed,
        _next: Next,
        _report: &Report,
        _took: Duration,
    ) {
    }

    /// The lease of a delivery was lost; what this worker made of it changed nothing.
    fn lease_lost(&self, _route: &str, _claimed: &Claimed) {}

    /// A delivery was finished at the claim, without an attempt.
    fn skipped(&self, _route: &str, _delivery: DeliveryId, _reason: Reason) {}

    /// Deliveries whose leases ran out were taken from their workers.
    fn rescued(&self, _rescued: &Rescued) {}
}

/// An observer that looks away.
pub struct NoObserver;

impl Observer for NoObserver {}

/// How a worker works.
#[derive(Clone)]
pub struct WorkerOptions {
    /// Who holds the leases, for operators to see.
    pub name: String,
    /// How long a claim is good for unless it is extended.
    pub lease: Duration,
    /// How often to look for due deliveries when nobody told of any.
    pub poll: Duration,
    /// Bytes of payloads that may be in memory. A larger payload is allowed alone.
    pub memory: usize,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            name: format!("worker-{}", std::process::id()),
            lease: limits::LEASE,
            poll: limits::POLL,
            memory: limits::WORKER_BYTES,
            observer: Arc::new(NoObserver),
        }
    }
}

/// A running worker.
pub struct Worker {
    _store: Arc<dyn Store>,
}

impl Worker {
    /// Starts to claim and deliver.
    pub fn start(store: Arc<dyn Store>, _routes: Vec<WorkRoute>, _options: WorkerOptions) -> Self {
        Self { _store: store }
    }

    /// Replaces the routes. What was removed is no longer claimed, what is with its consumer is
    /// finished; what changed applies from the next claim.
    pub fn set_routes(&self, _routes: Vec<WorkRoute>) {}

    /// The breaker of each route.
    pub fn breakers(&self) -> Vec<(Arc<str>, BreakerView)> {
        Vec::new()
    }

    /// Resolves with the reason once the store has failed for good; see
    /// [`Ingest::failed`](crate::ingest::Ingest::failed).
    pub async fn failed(&self) -> String {
        std::future::pending().await
    }

    /// Claims no more, returns what was not begun, waits up to `grace` for what is with its
    /// consumers, fails the rest, and ends once the store knows it all.
    pub async fn stop(&self, _grace: Duration) {}
}
