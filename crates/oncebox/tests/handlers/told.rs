//! Consumers that tell the store themselves, and what the worker makes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use oncebox::delivery::{Claimed, Next, Outcome, Payload};
use oncebox::route::RouteRules;
use oncebox::store::Store;
use oncebox::worker::{Consumer, Report, Told, Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, ending};
use tokio::sync::Notify;

use crate::bed::work;

for_each_store!(
    what_is_ended_is_not_ended_again,
    an_end_that_seems_lost_is_waited_for,
    a_doubtful_end_that_was_committed_stands,
    a_doubtful_end_that_was_not_is_a_failed_attempt,
    a_doubtful_end_under_a_lost_lease_changes_nothing,
);

/// Ends deliveries itself, or says that it does not know.
struct Ending {
    store: Arc<dyn Store>,
    ends: bool,
    told: Told,
    is_ending: AtomicBool,
    ended: Notify,
    go_on: Notify,
}

impl Ending {
    fn new(bed: &Bed, ends: bool, told: Told) -> Arc<Self> {
        Arc::new(Self {
            store: bed.store.clone(),
            ends,
            told,
            is_ending: AtomicBool::new(false),
            ended: Notify::new(),
            go_on: Notify::new(),
        })
    }
}

#[async_trait]
impl Consumer for Ending {
    async fn deliver(&self, claimed: &Claimed, _: Payload) -> Report {
        self.is_ending.store(true, Ordering::SeqCst);
        if self.ends {
            let ending = ending(claimed, Next::Processed);
            assert!(self.store.finish(vec![ending]).await.unwrap()[0].is_good());
        }
        self.ended.notify_one();
        self.go_on.notified().await;
        let detail = Some("the connection broke".into());
        Report { detail, told: self.told, ..Report::of(Outcome::Retry { after: None }) }
    }

    fn is_ending(&self, _: &Claimed) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }
}

/// Claims one delivery, and goes on once its consumer has ended it.
async fn one(bed: &Bed, consumer: &Arc<Ending>) -> (Worker, impl Fn() -> Vec<String>) {
    let notes = Arc::new(Notes::default());
    let route = bed.route("billing", RouteRules::default()).await;
    let options =
        WorkerOptions { lease: LEASE, observer: notes.clone(), ..WorkerOptions::default() };
    let routes = vec![work(route, consumer.clone())];
    let worker = Worker::by_hand(bed.store.clone(), routes, options);
    bed.due("e1", &[route]).await;
    worker.claim_once().await.unwrap();
    consumer.ended.notified().await;
    (worker, move || notes.0.lock().unwrap().clone())
}

#[derive(Default)]
struct Notes(std::sync::Mutex<Vec<String>>);

impl oncebox::worker::Observer for Notes {
    fn attempted(
        &self,
        _: &str,
        claimed: &Claimed,
        next: Next,
        _: &Report,
        _: std::time::Duration,
    ) {
        self.0.lock().unwrap().push(format!("{} {}", claimed.event_id, next.as_str()));
    }

    fn lease_lost(&self, _: &str, claimed: &Claimed) {
        self.0.lock().unwrap().push(format!("{} lease lost", claimed.event_id));
    }
}

async fn what_is_ended_is_not_ended_again(bed: Bed) {
    let consumer = Ending::new(&bed, true, Told::Ended(Next::Processed));
    let (worker, notes) = one(&bed, &consumer).await;
    consumer.go_on.notify_one();
    worker.idle().await;
    assert_eq!(notes(), ["e1 processed"]);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1));
}

/// The heartbeat finds the lease gone, since the consumer has just ended it.
async fn an_end_that_seems_lost_is_waited_for(bed: Bed) {
    let consumer = Ending::new(&bed, true, Told::Ended(Next::Processed));
    let (worker, notes) = one(&bed, &consumer).await;
    assert_eq!(worker.beat().await.unwrap(), 1);
    consumer.go_on.notify_one();
    worker.idle().await;
    assert_eq!(notes(), ["e1 processed"]);
}

async fn a_doubtful_end_that_was_committed_stands(bed: Bed) {
    let consumer = Ending::new(&bed, true, Told::Perhaps(Next::Processed));
    let (worker, notes) = one(&bed, &consumer).await;
    consumer.go_on.notify_one();
    worker.idle().await;
    assert_eq!(notes(), ["e1 processed"]);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1));
}

async fn a_doubtful_end_that_was_not_is_a_failed_attempt(bed: Bed) {
    let consumer = Ending::new(&bed, false, Told::Perhaps(Next::Processed));
    let (worker, notes) = one(&bed, &consumer).await;
    consumer.go_on.notify_one();
    worker.idle().await;
    assert_eq!(notes(), ["e1 retry"]);
    let detail = bed.query("SELECT state, detail FROM deliveries");
    assert_eq!(detail, "retrying|the connection broke");
}

async fn a_doubtful_end_under_a_lost_lease_changes_nothing(bed: Bed) {
    let consumer = Ending::new(&bed, false, Told::Perhaps(Next::Processed));
    let (worker, notes) = one(&bed, &consumer).await;
    bed.lose_leases().await;
    consumer.go_on.notify_one();
    worker.idle().await;
    assert_eq!(notes(), ["e1 lease lost"]);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (1, 0));
}
