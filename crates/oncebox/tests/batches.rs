//! Requests that carry several events: one commit, one receipt for each event.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::Next;
use oncebox::ingest::{Ingest, IngestOptions, Refused};
use oncebox::limits;
use oncebox::receipt::{Arrival, Oddity, ReceiptId, Recorded};
use oncebox::route::RouteRules;
use oncebox::store::{ExpireRange, Purpose, Store, StoreError};
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::store::{Bed, NOON, time, until};

for_each_store!(
    each_event_of_a_request_is_kept_with_the_whole,
    a_request_sent_again_leaves_nothing,
    what_is_known_of_a_request_is_a_duplicate,
    one_identity_twice_in_a_request_is_one_event,
    a_conflict_in_a_request_is_a_receipt,
    an_unknown_outcome_is_asked_about_for_all,
    a_request_that_stays_unknown_is_refused_and_absorbed_later,
    a_request_known_in_part_is_refused,
    a_bad_event_does_not_keep_the_others_out,
    a_bad_neighbour_does_not_cut_a_request,
    a_store_refuses_a_request_as_a_whole,
    requests_fill_batches_and_are_never_cut,
    the_largest_request_is_one_commit,
    more_than_that_is_refused,
    a_request_takes_its_share_of_memory,
    a_request_goes_with_its_last_event,
    the_whole_is_counted_once,
    a_killed_process_leaves_all_of_a_request_or_nothing,
);

const EVENTS: [(&str, &str); 3] =
    [("evt_1", r#"{"n":1}"#), ("evt_2", r#"{"n":2}"#), ("evt_3", r#"{"n":3}"#)];
const WHOLE: &[u8] = br#"[{"n":1},{"n":2},{"n":3}]"#;

fn start(store: Arc<dyn Store>) -> Arc<Ingest> {
    Arc::new(Ingest::start(store, IngestOptions::default()))
}

/// The receipts of arrivals, in their order.
fn ids(arrivals: &[Arrival]) -> Vec<ReceiptId> {
    arrivals.iter().map(|arrival| arrival.receipt).collect()
}

/// Removes every receipt that may go. Says how many did.
async fn expire(bed: &Bed) -> usize {
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(NOON + 3600)),
        sources: vec![bed.source],
        at: time(NOON),
    };
    bed.store.expire_receipts(&range).await.unwrap().removed
}

async fn each_event_of_a_request_is_kept_with_the_whole(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let gate = Gate::before(bed.store.clone());
    let ingest = start(gate.clone());
    let mut arrivals = bed.request(&EVENTS);
    arrivals.iter_mut().for_each(|arrival| arrival.takers = vec![route.taker()]);
    let receipts = ids(&arrivals);
    let recorded = ingest.record_all(arrivals).await;
    assert_eq!(recorded, Ok(vec![Recorded::Accepted; 3]));
    assert_eq!(gate.batches(), [3]);
    for (position, receipt) in (0..).zip(&receipts) {
        let kept = bed.store.receipt(*receipt).await.unwrap().unwrap();
        let (event_id, body) = EVENTS[position as usize];
        assert_eq!((kept.summary.event_id.as_str(), &kept.body[..]), (event_id, body.as_bytes()));
        assert_eq!(kept.signed_body(), WHOLE);
        let part = kept.part.unwrap();
        assert_eq!((part.request, part.position, part.count), (receipts[0], position, 3));
    }
    assert_eq!((bed.rows("requests"), bed.rows("receipts"), bed.rows("deliveries")), (1, 3, 3));
    // What is claimed is the event, not the request.
    let claimed = bed.take(&route).await;
    let payload = &bed.store.payloads(&[claimed.delivery.receipt]).await.unwrap()[0];
    assert_eq!(&payload.body[..], EVENTS[0].1.as_bytes());
    let alone = bed.send(bed.arrival("alone", "{}")).await;
    let alone = bed.store.receipt(alone).await.unwrap().unwrap();
    assert_eq!((alone.part.as_ref(), alone.signed_body()), (None, &b"{}"[..]));
    assert_eq!(bed.rows("requests"), 1);
    ingest.drain().await;
}

async fn a_request_sent_again_leaves_nothing(bed: Bed) {
    let ingest = start(bed.store.clone());
    let first = bed.request(&EVENTS);
    let receipts = ids(&first);
    ingest.record_all(first).await.unwrap();
    let again = ingest.record_all(bed.request(&EVENTS)).await.unwrap();
    let duplicate = |receipt: &ReceiptId| Recorded::Duplicate { receipt: *receipt };
    assert_eq!(again, receipts.iter().map(duplicate).collect::<Vec<_>>());
    ingest.drain().await;
    assert_eq!((bed.rows("requests"), bed.rows("receipts"), bed.rows("repeats")), (1, 3, 3));
}

/// The first event came before, alone. The request is kept under the id minted for it all the same.
async fn what_is_known_of_a_request_is_a_duplicate(bed: Bed) {
    let receipt = bed.send(bed.arrival("evt_1", EVENTS[0].1)).await;
    let ingest = start(bed.store.clone());
    let arrivals = bed.request(&EVENTS);
    let ids = ids(&arrivals);
    let recorded = ingest.record_all(arrivals).await.unwrap();
    let expected = [Recorded::Duplicate { receipt }, Recorded::Accepted, Recorded::Accepted];
    assert_eq!(recorded, expected);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 3));
    assert_eq!(bed.store.receipt(ids[0]).await.unwrap(), None);
    assert_eq!(bed.store.receipt(receipt).await.unwrap().unwrap().part, None);
    for position in [1, 2] {
        let kept = bed.store.receipt(ids[position]).await.unwrap().unwrap();
        assert_eq!(kept.signed_body(), WHOLE);
        let part = kept.part.unwrap();
        assert_eq!((part.request, part.position as usize, part.count), (ids[0], position, 3));
    }
    assert_eq!(expire(&bed).await, 3);
    assert_eq!(bed.rows("requests"), 0);
    ingest.drain().await;
}

/// The first of them is the event, however many there are.
async fn one_identity_twice_in_a_request_is_one_event(bed: Bed) {
    let ingest = start(bed.store.clone());
    let named: Vec<String> = (0..400).map(|n| format!("{}_evt", n * 7919 % 200)).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|id| (id.as_str(), "{}")).collect();
    let arrivals = bed.request(&named);
    let receipts = ids(&arrivals);
    let recorded = ingest.record_all(arrivals).await.unwrap();
    assert_eq!(recorded[..200], [Recorded::Accepted; 200]);
    for (outcome, receipt) in recorded[200..].iter().zip(&receipts) {
        assert_eq!(*outcome, Recorded::Duplicate { receipt: *receipt });
    }
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 200));
    assert_eq!(expire(&bed).await, 200);
    assert_eq!(bed.rows("requests"), 0);
    ingest.drain().await;
}

async fn a_conflict_in_a_request_is_a_receipt(bed: Bed) {
    let ingest = start(bed.store.clone());
    let arrivals = bed.request(&[("evt_1", "one"), ("evt_2", "two"), ("evt_1", "another")]);
    let (receipt, conflict) = (arrivals[0].receipt, arrivals[2].receipt);
    let recorded = ingest.record_all(arrivals).await.unwrap();
    let expected = [Recorded::Accepted, Recorded::Accepted, Recorded::Conflict { first: receipt }];
    assert_eq!(recorded, expected);
    let kept = bed.store.receipt(receipt).await.unwrap().unwrap();
    assert_eq!(kept.body, b"one");
    assert_eq!((kept.odd[0].oddity, kept.odd[0].receipt), (Oddity::Conflict, conflict));
    let other = bed.store.receipt(conflict).await.unwrap().unwrap();
    assert_eq!((&other.body[..], other.part.unwrap().position), (&b"another"[..], 2));
    ingest.drain().await;
}

/// The commit happened twice over and its answer was lost each time.
async fn an_unknown_outcome_is_asked_about_for_all(bed: Bed) {
    let lost = || Some(StoreError::UnknownOutcome("cut".into()));
    let gate = Gate::after(bed.store.clone(), [lost(), lost()]);
    let ingest = start(gate.clone());
    let recorded = ingest.record_all(bed.request(&EVENTS)).await;
    assert_eq!(recorded, Ok(vec![Recorded::Accepted; 3]));
    assert_eq!(gate.batches(), [3, 3, 3]);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 3));
    assert_eq!(expire(&bed).await, 3);
    assert_eq!(bed.rows("requests"), 0);
    ingest.drain().await;
}

async fn a_request_that_stays_unknown_is_refused_and_absorbed_later(bed: Bed) {
    let lost = || Some(StoreError::UnknownOutcome("cut".into()));
    let gate = Gate::after(bed.store.clone(), [lost(), lost(), lost()]);
    let ingest = start(gate);
    let refused = ingest.record_all(bed.request(&EVENTS)).await;
    assert_eq!(refused, Err(Refused::StoreDown));
    let again = ingest.record_all(bed.request(&EVENTS)).await.unwrap();
    assert!(again.iter().all(|known| matches!(known, Recorded::Duplicate { .. })), "{again:?}");
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 3));
    ingest.drain().await;
}

/// The store knows of two events and not of the third: nobody may say that all are kept.
async fn a_request_known_in_part_is_refused(bed: Bed) {
    let recorded = vec![Some(Recorded::Accepted), None, Some(Recorded::Accepted)];
    let partly = StoreError::Partly { recorded, reason: "cut".into() };
    let ingest = start(Gate::after(bed.store.clone(), [Some(partly)]));
    let refused = ingest.record_all(bed.request(&EVENTS)).await;
    assert_eq!(refused, Err(Refused::StoreDown));
    ingest.drain().await;
}

/// Its sender is refused, and finds the good ones kept when it comes again.
async fn a_bad_event_does_not_keep_the_others_out(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = start(gate.clone());
    let bad = |mut arrivals: Vec<Arrival>| {
        arrivals[1].event_id = String::new();
        arrivals
    };
    let refused = ingest.record_all(bad(bed.request(&EVENTS))).await;
    assert_eq!(refused, Err(Refused::Unstorable));
    // Halves, and those again.
    assert_eq!(gate.batches(), [3, 1, 2, 1, 1]);
    assert_eq!(bed.event_ids().await, ["evt_1", "evt_3"]);
    assert_eq!(bed.rows("requests"), 1);
    let kept = &bed.receipts().await[1];
    let kept = bed.store.receipt(kept.receipt).await.unwrap().unwrap();
    assert_eq!(kept.signed_body(), WHOLE);
    let again = ingest.record_all(bad(bed.request(&EVENTS))).await;
    assert_eq!(again, Err(Refused::Unstorable));
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 2));
    assert_eq!(expire(&bed).await, 2);
    assert_eq!(bed.rows("requests"), 0);
    ingest.drain().await;
}

async fn a_bad_neighbour_does_not_cut_a_request(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let ingest = start(gate.clone());
    let mut senders = hold_writers(&bed, &gate, &ingest).await;
    let (good, sender) = (bed.request(&EVENTS), ingest.clone());
    senders.spawn(async move { sender.record_all(good).await });
    until(|| ingest.waiting() == 1).await;
    let bad = Arrival { event_id: String::new(), ..bed.arrival("bad", "{}") };
    let sender = ingest.clone();
    senders.spawn(async move { sender.record_all(vec![bad]).await });
    until(|| ingest.waiting() == 2).await;
    gate.release();
    let outcomes = senders.join_all().await;
    let refused: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_err()).collect();
    assert_eq!(refused, [&Err(Refused::Unstorable)]);
    assert!(outcomes.contains(&Ok(vec![Recorded::Accepted; 3])));
    assert_eq!(gate.batches()[gate.writers()..], [4, 3, 1]);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, 3 + gate.writers()));
    ingest.drain().await;
}

type Senders = tokio::task::JoinSet<Result<Vec<Recorded>, Refused>>;

/// Has every writer held up with an event of its own, so that what comes next waits together.
async fn hold_writers(bed: &Bed, gate: &Gate, ingest: &Arc<Ingest>) -> Senders {
    gate.hold();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..gate.writers() {
        let (ingest, arrival) = (ingest.clone(), bed.arrival(&format!("first_{n}"), "{}"));
        senders.spawn(async move { ingest.record_all(vec![arrival]).await });
        gate.await_held(n + 1).await;
    }
    senders
}

/// What one transaction means: the last row is bad, and nothing of the request is there.
async fn a_store_refuses_a_request_as_a_whole(bed: Bed) {
    let mut arrivals = bed.request(&EVENTS);
    arrivals[2].event_id = String::new();
    let refused = bed.store.record(arrivals.into()).await;
    assert!(matches!(refused, Err(StoreError::Data(_))), "{refused:?}");
    let left = ["requests", "receipts", "identities", "deliveries"].map(|table| bed.rows(table));
    assert_eq!(left, [0; 4]);
}

/// Five, three and one wait, and a batch is of four: the five go alone.
async fn requests_fill_batches_and_are_never_cut(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let options = IngestOptions { batch_events: 4, ..IngestOptions::default() };
    let ingest = Arc::new(Ingest::start(gate.clone(), options));
    let mut senders = hold_writers(&bed, &gate, &ingest).await;
    for (waiting, events) in [(1, 1), (2, 5), (3, 3), (4, 1), (5, 1)] {
        let named: Vec<String> = (0..events).map(|n| format!("evt_{waiting}_{n}")).collect();
        let named: Vec<(&str, &str)> = named.iter().map(|id| (id.as_str(), "{}")).collect();
        let (sender, arrivals) = (ingest.clone(), bed.request(&named));
        senders.spawn(async move { sender.record_all(arrivals).await });
        until(|| ingest.waiting() == waiting).await;
    }
    gate.release();
    assert!(senders.join_all().await.iter().all(Result::is_ok));
    let mut batches = gate.batches()[gate.writers()..].to_vec();
    batches.sort_unstable();
    assert_eq!(batches, [1, 1, 4, 5]);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (5, 11 + gate.writers()));
    ingest.drain().await;
}

fn many(bed: &Bed, count: usize) -> Vec<Arrival> {
    let named: Vec<String> = (0..count).map(|n| format!("evt_{n}")).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|id| (id.as_str(), "{}")).collect();
    bed.request(&named)
}

/// More than waits in a queue and than goes into a batch, and with more headers than could wait
/// were they not the same ones.
async fn the_largest_request_is_one_commit(bed: Bed) {
    let most = limits::BATCH_ITEMS_MAX;
    let headers = Bytes::from(format!("x-a: {}\n", "a".repeat(limits::QUEUE_BYTES / most)));
    let request = || {
        let mut arrivals = many(&bed, most);
        arrivals.iter_mut().for_each(|arrival| arrival.headers = headers.clone());
        arrivals
    };
    let gate = Gate::before(bed.store.clone());
    let options =
        IngestOptions { commit_wait: oncebox_testkit::wait::DEADLINE, ..IngestOptions::default() };
    let ingest = Ingest::start(gate.clone(), options);
    let recorded = ingest.record_all(request()).await.unwrap();
    assert!(recorded.len() == most && recorded.iter().all(|one| *one == Recorded::Accepted));
    let again = ingest.record_all(request()).await.unwrap();
    assert!(again.iter().all(|one| matches!(one, Recorded::Duplicate { .. })));
    assert_eq!(gate.batches(), [most, most]);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (1, most));
    ingest.drain().await;
}

async fn more_than_that_is_refused(bed: Bed) {
    let ingest = start(bed.store.clone());
    let refused = ingest.record_all(many(&bed, limits::BATCH_ITEMS_MAX + 1)).await;
    assert_eq!(refused, Err(Refused::Unstorable));
    assert_eq!(ingest.record_all(Vec::new()).await, Ok(Vec::new()));
    assert_eq!(bed.rows("receipts"), 0);
    ingest.drain().await;
}

/// Events that are pieces of the whole have no bytes of their own.
async fn a_request_takes_its_share_of_memory(bed: Bed) {
    let body = "x".repeat(10_000);
    let arrivals = bed.request(&[("evt_1", &body), ("evt_2", &body)]);
    let part = |n: usize| arrivals[n].weight();
    let whole = arrivals[0].part.as_ref().unwrap().whole.len();
    let needs = part(0) + part(1) + whole + arrivals[0].headers.len();
    assert!(needs < 22_000, "{needs}");
    let small = |queue_bytes| {
        let options = IngestOptions { queue_bytes, ..IngestOptions::default() };
        Ingest::start(bed.store.clone(), options)
    };
    let (short, enough) = (small(needs - 1), small(needs));
    assert_eq!(short.record_all(arrivals.clone()).await, Err(Refused::QueueFull));
    assert_eq!(bed.rows("receipts"), 0);
    assert_eq!(enough.record_all(arrivals).await, Ok(vec![Recorded::Accepted; 2]));
    short.drain().await;
    enough.drain().await;
}

async fn a_request_goes_with_its_last_event(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let mut arrivals = bed.request(&EVENTS);
    arrivals[1].takers = vec![route.taker()];
    let open = arrivals[1].receipt;
    bed.record(arrivals).await;
    bed.record(bed.request(&[("other_1", "{}"), ("other_2", "{}")])).await;
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (2, 5));
    assert_eq!(expire(&bed).await, 4);
    assert_eq!(bed.rows("requests"), 1);
    let kept = bed.store.receipt(open).await.unwrap().unwrap();
    assert_eq!(kept.signed_body(), WHOLE);
    let claimed = bed.take(&route).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    assert_eq!(expire(&bed).await, 1);
    assert_eq!((bed.rows("requests"), bed.rows("receipts")), (0, 0));
}

/// What a quota is compared with.
async fn the_whole_is_counted_once(bed: Bed) {
    let ingest = start(bed.store.clone());
    let arrivals = bed.request(&EVENTS);
    let parts: usize = arrivals.iter().map(|one| one.body.len() + one.headers.len()).sum();
    let bytes = i64::try_from(parts + WHOLE.len()).unwrap();
    ingest.record_all(arrivals).await.unwrap();
    ingest.record_all(bed.request(&EVENTS)).await.unwrap();
    assert_eq!(ingest.stored_bytes(bed.source), bytes);
    ingest.flush_counts().await.unwrap();
    let stored = || async {
        let stored = bed.store.stored().await.unwrap();
        stored.iter().find(|(source, _)| *source == bed.source).map(|(_, bytes)| *bytes)
    };
    assert_eq!(stored().await, Some(bytes));
    assert_eq!(expire(&bed).await, 3);
    assert_eq!(stored().await, Some(0));
    ingest.drain().await;
}

/// Says to the test below that it is the process to be killed, and which store is its.
const STORE_OF_CHILD: &str = "ONCEBOX_TEST_BATCHES_STORE";

/// Events of each request that the process records until it is killed.
const OF_CHILD: usize = 1500;

/// Killed three times in the middle of recording: whatever is there is there as a whole.
async fn a_killed_process_leaves_all_of_a_request_or_nothing(bed: Bed) {
    let mut told = 0;
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "records_until_it_is_killed", "--nocapture"])
            .env(STORE_OF_CHILD, &bed.url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let began = lines.map_while(Result::ok).filter(|line| line.starts_with("recording"));
        // It has begun with as many as that, and was told about all but the last.
        assert_eq!(began.take(round).count(), round);
        child.kill().unwrap();
        child.wait().unwrap();
        // The server may be at the end of the last one: at any moment it is a whole one.
        let counts = "SELECT (SELECT count(*) FROM receipts), (SELECT count(*) FROM requests)";
        let counts = bed.query(counts);
        let (receipts, requests) = counts.split_once('|').unwrap();
        let (receipts, requests): (usize, usize) =
            (receipts.parse().unwrap(), requests.parse().unwrap());
        assert_eq!(receipts, requests * OF_CHILD);
        told += round - 1;
        assert!(requests >= told, "{requests} are there, {told} were told");
    }
}

/// Only what the story above starts records anything.
#[tokio::test(flavor = "multi_thread")]
async fn records_until_it_is_killed() {
    let Ok(url) = std::env::var(STORE_OF_CHILD) else { return };
    let store = oncebox::store::open(&url, Purpose::Operate).await.unwrap();
    let source = store.register_source("stripe-live", None).await.unwrap();
    let (bed, mint) = (Bed::sqlite().await, store.mint());
    for round in 0.. {
        let mut arrivals = many(&bed, OF_CHILD);
        let request = mint.mint(SystemClock.now());
        for (position, arrival) in arrivals.iter_mut().enumerate() {
            arrival.source = source;
            arrival.receipt = if position == 0 { request } else { mint.mint(SystemClock.now()) };
            arrival.event_id = format!("{}_{round}_{position}", std::process::id());
            arrival.part.as_mut().unwrap().request = request;
        }
        println!("recording");
        store.record(arrivals.into()).await.unwrap();
    }
}
