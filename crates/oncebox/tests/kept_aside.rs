//! What is kept aside of a request that carried several events: the request is kept with it, for
//! as long as it.

use std::sync::Arc;

use oncebox::delivery::Next;
use oncebox::ingest::{Ingest, IngestOptions};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId, Recorded};
use oncebox::route::RouteRules;
use oncebox::store::{ExpireRange, PostgresOptions, PostgresStore, Purpose, Store};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, act, time, until};
use oncebox_testkit::wait::DEADLINE;
use tokio_postgres::NoTls;

for_each_store!(
    a_conflict_keeps_its_request,
    a_twin_keeps_its_request,
    what_is_not_kept_aside_keeps_no_request,
    a_request_stays_for_what_is_kept_aside,
    a_request_stays_for_its_receipts,
    a_request_kept_aside_does_not_count,
    a_request_counts_from_its_first_receipt_on,
    what_is_promoted_has_its_request,
);

const WHOLE: &[u8] = br#"[{"n":8},{"n":9}]"#;

/// Another body for each of the two events.
fn others(bed: &Bed) -> Vec<Arrival> {
    bed.request(&[("evt_1", r#"{"n":8}"#), ("evt_2", r#"{"n":9}"#)])
}

/// Removes every receipt that may go. Says how many did.
async fn expire(bed: &Bed) -> usize {
    expire_in(&*bed.store, bed).await
}

async fn expire_in(store: &dyn Store, bed: &Bed) -> usize {
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(NOON + 3600)),
        sources: vec![bed.source],
    };
    store.expire_receipts(&range).await.unwrap().removed
}

/// How many requests and odd arrivals there are.
fn kept(bed: &Bed) -> (usize, usize) {
    (bed.rows("requests"), bed.rows("odd_arrivals"))
}

async fn stored(bed: &Bed) -> i64 {
    let stored = bed.store.stored().await.unwrap();
    stored.iter().find(|(source, _)| *source == bed.source).map_or(0, |(_, bytes)| *bytes)
}

fn bytes(arrival: &Arrival) -> i64 {
    i64::try_from(arrival.body.len() + arrival.headers.len()).unwrap()
}

async fn a_conflict_keeps_its_request(bed: Bed) {
    let one = bed.send(bed.arrival("evt_1", "one")).await;
    let two = bed.send(bed.arrival("evt_2", "two")).await;
    let arrivals = others(&bed);
    let recorded = bed.record(arrivals.clone()).await;
    let conflict = |receipt| Recorded::Conflict { receipt };
    assert_eq!(recorded, [conflict(one), conflict(two)]);
    assert_eq!(kept(&bed), (1, 2));
    for arrival in &arrivals {
        let aside = bed.store.odd_arrival(arrival.receipt).await.unwrap().unwrap();
        assert_eq!(aside.part, arrival.part);
        assert_eq!(aside.arrival.body, arrival.body);
    }
    assert_eq!(arrivals[0].part.as_ref().unwrap().whole, WHOLE);
    // Alone it has none.
    let alone = bed.arrival("evt_1", "alone");
    bed.record(vec![alone.clone()]).await;
    assert_eq!(bed.store.odd_arrival(alone.receipt).await.unwrap().unwrap().part, None);
    assert_eq!(kept(&bed), (1, 3));
}

async fn a_twin_keeps_its_request(bed: Bed) {
    let receipt = bed.send(bed.unsigned("d-1", r#"{"n":8}"#)).await;
    let mut arrivals = bed.request(&[("d-2", r#"{"n":8}"#), ("d-3", r#"{"n":9}"#)]);
    arrivals.iter_mut().for_each(|arrival| arrival.guard = Some(arrival.content));
    let recorded = bed.record(arrivals.clone()).await;
    assert_eq!(recorded, [Recorded::Twin { receipt }, Recorded::Accepted]);
    let aside = bed.store.odd_arrival(arrivals[0].receipt).await.unwrap().unwrap();
    assert_eq!(aside.part, arrivals[0].part);
    assert_eq!(kept(&bed), (1, 1));
}

/// The same again, more than are kept, and those of a source that is full.
async fn what_is_not_kept_aside_keeps_no_request(bed: Bed) {
    bed.record(vec![bed.arrival("evt_1", "one"), bed.arrival("evt_2", "two")]).await;
    let mut full = others(&bed);
    full.iter_mut().for_each(|arrival| arrival.keep_aside = false);
    bed.record(full).await;
    assert_eq!(kept(&bed), (0, 0));
    bed.record(others(&bed)).await;
    bed.record(others(&bed)).await;
    assert_eq!(kept(&bed), (1, 2));
    let most = usize::try_from(limits::ODD_ARRIVALS_KEPT).unwrap();
    for n in 0..most {
        bed.record(bed.request(&[("evt_1", &format!("other {n}"))])).await;
    }
    assert_eq!(kept(&bed), (most, most + 1));
}

async fn a_request_stays_for_what_is_kept_aside(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.send(bed.arrival("evt_1", "one")).await;
    bed.send(bed.event("evt_2", &[route])).await;
    let mut arrivals = others(&bed);
    arrivals.push(bed.request(&[("new", "new")]).remove(0));
    arrivals[2].part = arrivals[1].part.clone();
    bed.record(arrivals.clone()).await;
    assert_eq!(kept(&bed), (1, 2));
    // The new event and the first go; the second is open, and what is kept aside for it stays.
    assert_eq!(expire(&bed).await, 2);
    assert_eq!(kept(&bed), (1, 1));
    let aside = bed.store.odd_arrival(arrivals[1].receipt).await.unwrap().unwrap();
    assert_eq!(aside.part, arrivals[1].part);
    let claimed = bed.take(&route).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    assert_eq!(expire(&bed).await, 1);
    assert_eq!(kept(&bed), (0, 0));
}

async fn a_request_stays_for_its_receipts(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.send(bed.arrival("evt_1", "one")).await;
    let mut arrivals = others(&bed);
    arrivals[1].takers = vec![route.taker()];
    bed.record(arrivals.clone()).await;
    assert_eq!(kept(&bed), (1, 1));
    assert_eq!(expire(&bed).await, 1);
    assert_eq!(kept(&bed), (1, 0));
    let receipt = bed.store.receipt(arrivals[1].receipt).await.unwrap().unwrap();
    assert_eq!(receipt.signed_body(), WHOLE);
}

/// Its bytes were never counted, so they are not given back.
async fn a_request_kept_aside_does_not_count(bed: Bed) {
    let ingest = Arc::new(Ingest::start(bed.store.clone(), IngestOptions::default()));
    let route = bed.route("billing", RouteRules::default()).await;
    let stays = Arrival { takers: vec![route.taker()], ..bed.arrival("stays", "stays") };
    let left = bytes(&stays);
    ingest.record(stays).await.unwrap();
    let (one, two) = (bed.arrival("evt_1", "one"), bed.arrival("evt_2", "two"));
    let counted = left + bytes(&one) + bytes(&two);
    ingest.record(one).await.unwrap();
    ingest.record(two).await.unwrap();
    ingest.record_all(others(&bed)).await.unwrap();
    ingest.flush_counts().await.unwrap();
    assert_eq!((kept(&bed), stored(&bed).await), ((1, 2), counted));
    assert_eq!(expire(&bed).await, 2);
    assert_eq!((kept(&bed), stored(&bed).await), ((0, 0), left));
    ingest.drain().await;
}

/// The first of its events is kept aside before the second is accepted.
async fn a_request_counts_from_its_first_receipt_on(bed: Bed) {
    let ingest = Arc::new(Ingest::start(bed.store.clone(), IngestOptions::default()));
    let (one, arrivals) = (bed.arrival("evt_1", "one"), others(&bed));
    let whole = i64::try_from(WHOLE.len()).unwrap();
    let counted = bytes(&one) + bytes(&arrivals[1]) + whole;
    ingest.record(one).await.unwrap();
    ingest.record_all(arrivals).await.unwrap();
    ingest.flush_counts().await.unwrap();
    assert_eq!((kept(&bed), stored(&bed).await), ((1, 1), counted));
    assert_eq!(expire(&bed).await, 2);
    assert_eq!((kept(&bed), stored(&bed).await), ((0, 0), 0));
    ingest.drain().await;
}

async fn what_is_promoted_has_its_request(bed: Bed) {
    bed.record(vec![bed.arrival("evt_1", "one"), bed.arrival("evt_2", "two")]).await;
    let arrivals = others(&bed);
    bed.record(arrivals.clone()).await;
    let whole = i64::try_from(WHOLE.len()).unwrap();
    for (promoted, left) in [(&arrivals[1], 1), (&arrivals[0], 0)] {
        assert!(bed.store.promote(promoted.clone(), &act("it was right")).await.unwrap());
        let receipt = bed.store.receipt(promoted.receipt).await.unwrap().unwrap();
        assert_eq!((receipt.part.as_ref(), receipt.signed_body()), (promoted.part.as_ref(), WHOLE));
        assert_eq!(kept(&bed), (1, left));
    }
    // The whole counts once.
    assert_eq!(stored(&bed).await, bytes(&arrivals[0]) + bytes(&arrivals[1]) + whole);
    assert_eq!(expire(&bed).await, 4);
    assert_eq!((kept(&bed), stored(&bed).await), ((0, 0), 0));
}

/// Something is kept aside for a receipt that is just expiring: it goes with it, and so does the
/// request that was kept for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_aside_of_what_expires_goes_with_it() {
    let bed = Bed::postgres().await;
    let receipt = bed.send(bed.arrival("evt_1", "one")).await;
    bed.record(bed.request(&[("evt_1", r#"{"n":8}"#)])).await;
    assert_eq!(kept(&bed), (1, 1));
    let (mut other, connection) = tokio_postgres::connect(&bed.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let keeping = other.transaction().await.unwrap();
    let sql = format!(
        "SELECT id FROM oncebox.receipts WHERE id = '{receipt}' FOR KEY SHARE;
         INSERT INTO oncebox.odd_arrivals
         SELECT gen_random_uuid(), receipt, gen_random_uuid(), received_at, source, oddity, 'other',
             headers, body, request, position
         FROM oncebox.odd_arrivals;
         UPDATE oncebox.requests SET receipts = receipts + 1"
    );
    keeping.batch_execute(&sql).await.unwrap();
    // With more patience for the locks of others than a test needs.
    let options = PostgresOptions { lock_wait: DEADLINE, ..PostgresOptions::new(&bed.url) };
    let store = PostgresStore::open(options, Purpose::Operate).await.unwrap();
    let expiring = expire_in(&store, &bed);
    let committing = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until(|| bed.query(waiting) == "1").await;
        keeping.commit().await.unwrap();
    };
    assert_eq!(tokio::join!(expiring, committing).0, 1);
    assert_eq!(kept(&bed), (0, 0));
}
