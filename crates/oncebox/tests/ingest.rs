//! Ingest under a store that fails in every way a store can.

use std::sync::Arc;
use std::time::Duration;

use oncebox::ingest::{Ingest, IngestOptions, Refused};
use oncebox::receipt::{ReceiptId, Recorded};
use oncebox::store::{ExpireRange, Repeat, Store, StoreError};
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    copies_sent_at_once_are_recorded_once,
    repeats_are_written_in_one_go,
    stored_bytes_are_counted_per_source,
    what_queued_during_a_commit_is_the_next_batch,
    an_unknown_outcome_is_asked_about,
    an_unknown_outcome_that_stays_unknown_is_no_answer,
    one_bad_row_does_not_fail_its_neighbours,
    a_batch_recorded_in_part_is_answered_in_part,
    a_full_queue_refuses,
    a_slow_commit_is_refused_and_absorbed_later,
    a_store_that_is_down_refuses_and_recovers,
    a_failed_store_is_never_tried_again,
    draining_commits_what_waits,
);

/// A hundred copies of one event: one accepted, the others told so.
async fn copies_sent_at_once_are_recorded_once(bed: Bed) {
    let ingest = Arc::new(Ingest::start(bed.store.clone(), IngestOptions::default()));
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (ingest, arrival) = (ingest.clone(), bed.arrival("evt_1", "{}"));
        senders.spawn(async move { ingest.record(arrival).await.unwrap() });
    }
    let outcomes = senders.join_all().await;
    let accepted = outcomes.iter().filter(|outcome| **outcome == Recorded::Accepted).count();
    assert_eq!((accepted, outcomes.len()), (1, 100));
    ingest.drain().await;
    let receipts = bed.receipts().await;
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].repeats.map(|repeats| repeats.duplicates), Some(99));
}

/// A retry storm is a handful of writes, not one per repeat.
async fn repeats_are_written_in_one_go(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = Ingest::start(gate.clone(), IngestOptions::default());
    for n in 0..50 {
        ingest.record(bed.arrival(&format!("evt_{}", n % 5), "{}")).await.unwrap();
    }
    ingest.flush_counts().await.unwrap();
    let written: u32 =
        gate.repeats().iter().flatten().map(|repeat: &Repeat| repeat.duplicates).sum();
    assert_eq!(written, 45);
    assert!(gate.repeats().len() <= 3, "{} writes", gate.repeats().len());
    let receipts = bed.receipts().await;
    assert!(receipts.iter().all(|receipt| receipt.repeats.unwrap().duplicates == 9));
    ingest.drain().await;
}

/// What a quota is compared with: accepted bytes count, repeats do not, expired ones are given
/// back, and another node sees them.
async fn stored_bytes_are_counted_per_source(bed: Bed) {
    let ingest = Ingest::start(bed.store.clone(), IngestOptions::default());
    let arrival = bed.arrival("evt_1", &"x".repeat(1000));
    let bytes = i64::try_from(arrival.body.len() + arrival.headers.len()).unwrap();
    ingest.record(arrival.clone()).await.unwrap();
    ingest.record(bed.arrival("evt_1", &"x".repeat(1000))).await.unwrap();
    assert_eq!(ingest.stored_bytes(bed.source), bytes);
    ingest.flush_counts().await.unwrap();
    assert_eq!(ingest.stored_bytes(bed.source), bytes);

    let beside = Ingest::start(bed.store.clone(), IngestOptions::default());
    beside.flush_counts().await.unwrap();
    assert_eq!(beside.stored_bytes(bed.source), bytes);
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(NOON + 1)),
        sources: vec![bed.source],
        at: time(NOON),
    };
    assert_eq!(bed.store.expire_receipts(&range).await.unwrap().removed, 1);
    beside.flush_counts().await.unwrap();
    assert_eq!(beside.stored_bytes(bed.source), 0);
    ingest.drain().await;
    beside.drain().await;
}

/// While the first commit is held up, twenty more come; they share the next one, or the next of
/// each writer.
async fn what_queued_during_a_commit_is_the_next_batch(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = Arc::new(Ingest::start(gate.clone(), IngestOptions::default()));
    let writers = gate.writers();
    gate.hold();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..writers {
        let (ingest, arrival) = (ingest.clone(), bed.arrival(&format!("first_{n}"), "{}"));
        senders.spawn(async move { ingest.record(arrival).await.unwrap() });
        gate.await_held(n + 1).await;
    }
    for n in 0..20 {
        let (ingest, arrival) = (ingest.clone(), bed.arrival(&format!("next_{n}"), "{}"));
        senders.spawn(async move { ingest.record(arrival).await.unwrap() });
    }
    oncebox_testkit::store::until(|| ingest.waiting() == 20).await;
    gate.release();
    assert_eq!(senders.join_all().await, vec![Recorded::Accepted; 20 + writers]);
    assert!(gate.batches().len() <= 2 * writers, "{:?}", gate.batches());
    assert_eq!(gate.batches().iter().sum::<usize>(), 20 + writers);
    ingest.drain().await;
}

/// The commit happened and its answer was lost; the sender is told what is true.
async fn an_unknown_outcome_is_asked_about(bed: Bed) {
    let lost = || StoreError::UnknownOutcome("cut".into());
    let gate = Gate::after(bed.store.clone(), [Some(lost()), Some(lost())]);
    let ingest = Ingest::start(gate.clone(), IngestOptions::default());
    let arrival = bed.arrival("evt_1", "{}");
    let receipt = arrival.receipt;
    assert_eq!(ingest.record(arrival).await, Ok(Recorded::Accepted));
    assert_eq!(gate.batches().len(), 3);
    let again = ingest.record(bed.arrival("evt_1", "{}")).await;
    assert_eq!(again, Ok(Recorded::Duplicate { receipt }));
    assert_eq!(bed.event_ids().await, ["evt_1"]);
    ingest.drain().await;
}

async fn an_unknown_outcome_that_stays_unknown_is_no_answer(bed: Bed) {
    let lost = || Some(StoreError::UnknownOutcome("cut".into()));
    let gate = Gate::after(bed.store.clone(), [lost(), lost(), lost()]);
    let ingest = Ingest::start(gate, IngestOptions::default());
    let first = ingest.record(bed.arrival("evt_1", "{}")).await;
    assert_eq!(first, Err(Refused::StoreDown));
    // It was committed after all, and absorbs the retry.
    let again = ingest.record(bed.arrival("evt_1", "{}")).await;
    assert!(matches!(again, Ok(Recorded::Duplicate { .. })));
    assert_eq!(bed.event_ids().await, ["evt_1"]);
    ingest.drain().await;
}

/// Five good events and one that the database refuses, in one batch.
async fn one_bad_row_does_not_fail_its_neighbours(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = Arc::new(Ingest::start(gate.clone(), IngestOptions::default()));
    gate.hold();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..gate.writers() {
        let (ingest, arrival) = (ingest.clone(), bed.arrival(&format!("first_{n}"), "{}"));
        senders.spawn(async move { ingest.record(arrival).await });
        gate.await_held(n + 1).await;
    }
    for n in 0..6 {
        let mut arrival = bed.arrival(&format!("evt_{n}"), "{}");
        if n == 3 {
            arrival.event_id = String::new();
        }
        let ingest = ingest.clone();
        senders.spawn(async move { ingest.record(arrival).await });
    }
    oncebox_testkit::store::until(|| ingest.waiting() == 6).await;
    gate.release();
    let outcomes = senders.join_all().await;
    let refused: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_err()).collect();
    assert_eq!(refused, [&Err(Refused::Unstorable)]);
    let recorded = bed.event_ids().await;
    let recorded: Vec<_> = recorded.iter().filter(|id| id.starts_with("evt")).collect();
    assert_eq!(recorded.len(), 5);
    ingest.drain().await;
}

/// The store says what it knows of a batch before it failed.
async fn a_batch_recorded_in_part_is_answered_in_part(bed: Bed) {
    let partly = |recorded| Some(StoreError::Partly { recorded, reason: "cut".into() });
    let script = [partly(vec![Some(Recorded::Accepted)]), partly(vec![None])];
    let ingest = Ingest::start(Gate::after(bed.store.clone(), script), IngestOptions::default());
    assert_eq!(ingest.record(bed.arrival("evt_1", "{}")).await, Ok(Recorded::Accepted));
    assert_eq!(ingest.record(bed.arrival("evt_2", "{}")).await, Err(Refused::StoreDown));
    ingest.drain().await;
}

async fn a_full_queue_refuses(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let options = IngestOptions { queue_events: 2, ..IngestOptions::default() };
    let ingest = Arc::new(Ingest::start(gate.clone(), options));
    gate.hold();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..gate.writers() + 2 {
        let (sender, arrival) = (ingest.clone(), bed.arrival(&format!("evt_{n}"), "{}"));
        senders.spawn(async move { sender.record(arrival).await });
        if n < gate.writers() {
            gate.await_held(n + 1).await;
        }
    }
    oncebox_testkit::store::until(|| ingest.waiting() == 2).await;
    let refused = ingest.record(bed.arrival("one_too_many", "{}")).await;
    assert_eq!(refused, Err(Refused::QueueFull));
    gate.release();
    assert!(senders.join_all().await.iter().all(Result::is_ok));
    assert_eq!(bed.store.identity(bed.source, "one_too_many").await.unwrap(), None);

    let options = IngestOptions { queue_bytes: 1000, ..IngestOptions::default() };
    let small = Ingest::start(bed.store.clone(), options);
    let large = bed.arrival("large", &"x".repeat(2000));
    assert_eq!(small.record(large).await, Err(Refused::QueueFull));
    ingest.drain().await;
    small.drain().await;
}

async fn a_slow_commit_is_refused_and_absorbed_later(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let options = IngestOptions { commit_wait: Duration::from_millis(50), ..Default::default() };
    let ingest = Ingest::start(gate.clone(), options);
    gate.hold();
    let arrival = bed.arrival("evt_1", "{}");
    let receipt = arrival.receipt;
    assert_eq!(ingest.record(arrival).await, Err(Refused::TooSlow));
    gate.release();
    gate.await_recorded(1).await;
    let again = bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    assert_eq!(again, [Recorded::Duplicate { receipt }]);
    ingest.drain().await;
}

async fn a_store_that_is_down_refuses_and_recovers(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail([Some(StoreError::Unavailable("down".into()))]);
    let ingest = Ingest::start(gate, IngestOptions::default());
    let refused = ingest.record(bed.arrival("evt_1", "{}")).await;
    assert_eq!(refused, Err(Refused::StoreDown));
    assert!(bed.receipts().await.is_empty());
    assert_eq!(ingest.record(bed.arrival("evt_1", "{}")).await, Ok(Recorded::Accepted));
    ingest.drain().await;
}

/// After a failed sync nothing is written again, and whoever runs the process hears of it.
async fn a_failed_store_is_never_tried_again(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    gate.fail([Some(StoreError::Fatal("fsync: EIO".into()))]);
    let ingest = Ingest::start(gate.clone(), IngestOptions::default());
    let refused = ingest.record(bed.arrival("evt_1", "{}")).await;
    assert_eq!(refused, Err(Refused::StoreDown));
    assert_eq!(ingest.failed().await, "fsync: EIO");
    let refused = ingest.record(bed.arrival("evt_2", "{}")).await;
    assert_eq!(refused, Err(Refused::StoreDown));
    assert_eq!(gate.batches().len(), 1);
    assert!(bed.receipts().await.is_empty());
    ingest.drain().await;
}

async fn draining_commits_what_waits(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = Arc::new(Ingest::start(gate.clone(), IngestOptions::default()));
    gate.hold();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..10 {
        let (sender, arrival) = (ingest.clone(), bed.arrival(&format!("evt_{n}"), "{}"));
        senders.spawn(async move { sender.record(arrival).await });
    }
    gate.await_held(1).await;
    let draining = tokio::spawn({
        let ingest = ingest.clone();
        async move { ingest.drain().await }
    });
    oncebox_testkit::store::until(|| ingest.is_draining()).await;
    let late = ingest.record(bed.arrival("late", "{}")).await;
    assert_eq!(late, Err(Refused::Stopping));
    gate.release();
    draining.await.unwrap();
    let outcomes = senders.join_all().await;
    let recorded = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(recorded, bed.receipts().await.len());
    assert!(recorded > 0 && outcomes.iter().all(|o| matches!(o, Ok(_) | Err(Refused::Stopping))));
}
