//! A destination and an observer that a story can steer and ask.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use oncebox::delivery::{Claimed, Next, Outcome, Payload};
use oncebox::store::{Rescued, Store};
use oncebox::worker::{Consumer, Observer, Report, WorkRoute, Worker, WorkerOptions};
use oncebox_testkit::store::{LEASE, Route};
use oncebox_testkit::wait;
use tokio::sync::watch;

/// A destination. It answers `processed` unless told otherwise, and at once unless it is held up.
#[derive(Default)]
pub(crate) struct Destination {
    /// What it was handed, in order.
    seen: Mutex<Vec<(Claimed, Payload)>>,
    script: Mutex<VecDeque<Report>>,
    held_up: watch::Sender<bool>,
    begun: watch::Sender<usize>,
    answered: watch::Sender<usize>,
    dropped: watch::Sender<usize>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Destination {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Holds every answer up from now on.
    pub(crate) fn hold_up(&self) {
        self.held_up.send_replace(true);
    }

    /// Lets answers go.
    pub(crate) fn let_go(&self) {
        self.held_up.send_replace(false);
    }

    /// Says what to answer next.
    pub(crate) fn answer(&self, reports: impl IntoIterator<Item = Report>) {
        self.script.lock().unwrap().extend(reports);
    }

    /// Waits until it was handed this many deliveries in all.
    pub(crate) async fn begun(&self, count: usize) {
        reaches(&self.begun, count, "begun").await;
    }

    /// Waits until it answered this many.
    pub(crate) async fn answered(&self, count: usize) {
        reaches(&self.answered, count, "answered").await;
    }

    /// Waits until this many were taken from it before it had answered.
    pub(crate) async fn dropped(&self, count: usize) {
        reaches(&self.dropped, count, "dropped").await;
    }

    /// The event ids it was handed, in order.
    pub(crate) fn event_ids(&self) -> Vec<String> {
        self.seen().into_iter().map(|(claimed, _)| claimed.event_id).collect()
    }

    /// What it was handed, in order.
    pub(crate) fn seen(&self) -> Vec<(Claimed, Payload)> {
        self.seen.lock().unwrap().clone()
    }

    /// How many it had at the same time.
    pub(crate) fn most_running(&self) -> usize {
        self.most_running.load(Ordering::SeqCst)
    }
}

async fn reaches(counter: &watch::Sender<usize>, count: usize, what: &str) {
    let mut counter = counter.subscribe();
    let reached = counter.wait_for(|reached| *reached >= count);
    if tokio::time::timeout(wait::DEADLINE, reached).await.is_err() {
        panic!("waited in vain for {count} deliveries to be {what}");
    }
}

/// Counts what happens to one delivery.
struct Running<'a> {
    at: &'a Destination,
    answered: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.at.running.fetch_sub(1, Ordering::SeqCst);
        let counter = if self.answered { &self.at.answered } else { &self.at.dropped };
        counter.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Consumer for Destination {
    async fn deliver(&self, delivery: &Claimed, payload: Payload) -> Report {
        let now_running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(now_running, Ordering::SeqCst);
        let mut running = Running { at: self, answered: false };
        self.seen.lock().unwrap().push((delivery.clone(), payload));
        self.begun.send_modify(|begun| *begun += 1);
        let mut held_up = self.held_up.subscribe();
        held_up.wait_for(|held_up| !*held_up).await.expect("the destination lives");
        running.answered = true;
        let report = self.script.lock().unwrap().pop_front();
        report.unwrap_or_else(|| Report::of(Outcome::Processed))
    }
}

/// An observer that writes down what it is told.
#[derive(Default)]
pub(crate) struct Notes {
    lines: Mutex<Vec<String>>,
}

impl Notes {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What it was told, in order of the text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap().clone();
        lines.sort();
        lines
    }

    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl Observer for Notes {
    fn attempted(&self, route: &str, claimed: &Claimed, next: Next, _: &Report, _: Duration) {
        self.note(format!("{route} {} {}", claimed.event_id, next.as_str()));
    }

    fn unversioned(&self, route: &str, claimed: &Claimed) {
        self.note(format!("{route} {} unversioned", claimed.event_id));
    }

    fn lease_lost(&self, route: &str, claimed: &Claimed) {
        self.note(format!("{route} {} lease lost", claimed.event_id));
    }

    fn damaged(&self, route: &str, claimed: &Claimed) {
        self.note(format!("{route} {} damaged", claimed.event_id));
    }

    fn rescued(&self, rescued: &Rescued) {
        self.note(format!("rescued {}, dead {}", rescued.retrying.len(), rescued.dead.len()));
    }
}

/// A route of a bed as a worker takes it, with four places.
pub(crate) fn work(route: Route, name: &str, consumer: &Arc<Destination>) -> WorkRoute {
    WorkRoute {
        number: route.no,
        name: name.into(),
        rules: route.rules,
        concurrency: 4,
        rate: None,
        lease: None,
        consumer: consumer.clone(),
    }
}

/// Options with the leases of the bed, and no poll to speak of: what is not announced is missed.
pub(crate) fn options() -> WorkerOptions {
    WorkerOptions {
        name: "worker-1".into(),
        lease: LEASE,
        poll: Duration::from_secs(3600),
        ..WorkerOptions::default()
    }
}

/// A worker that is told when to work.
pub(crate) fn by_hand(store: &Arc<dyn Store>, routes: Vec<WorkRoute>) -> Worker {
    Worker::by_hand(store.clone(), routes, options())
}

/// Works until nothing is due; returns how many deliveries moved each time.
pub(crate) async fn work_off(worker: &Worker) -> Vec<usize> {
    let mut moved = Vec::new();
    loop {
        match worker.run_once().await.expect("the store answers") {
            0 => return moved,
            some => moved.push(some),
        }
    }
}
