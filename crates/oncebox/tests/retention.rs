//! Payloads and identities expire on their own clocks.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::SignedDuration;
use oncebox::clock::ManualClock;
use oncebox::receipt::{Arrival, Recorded};
use oncebox::retention::{Keep, Removed, Retention};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    an_event_is_fresh_again_after_its_window,
    each_source_keeps_as_long_as_it_asks,
    a_large_backlog_goes_in_steps,
    events_get_in_while_others_go,
);

const DAY: i64 = 86_400;

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

fn retention(bed: &Bed, clock: &Arc<ManualClock>, by_source: &[(&str, Keep)]) -> Retention {
    let by_source: HashMap<_, _> =
        by_source.iter().map(|(name, keep)| ((*name).to_owned(), *keep)).collect();
    Retention::new(bed.store.clone(), clock.clone(), Keep::default(), by_source)
}

/// Day 31: the payload is gone, the event is still a duplicate. Day 67, 36 days after it was last
/// seen: it is new.
async fn an_event_is_fresh_again_after_its_window(bed: Bed) {
    let clock = Arc::new(ManualClock::at(time(NOON)));
    let retention = retention(&bed, &clock, &[]);
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;

    clock.advance_secs(29 * DAY);
    assert_eq!(retention.run_once(|_| {}).await.unwrap(), Removed::default());

    clock.advance_secs(2 * DAY);
    let removed = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(removed, Removed { receipts: 1, identities: 0 });
    let again = bed.arrival_at("evt_1", "{}", time(NOON + 31 * DAY));
    assert!(matches!(bed.record(vec![again]).await[..], [Recorded::Duplicate { .. }]));

    clock.advance_secs(36 * DAY);
    let removed = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(removed, Removed { receipts: 0, identities: 1 });
    let fresh = bed.arrival_at("evt_1", "{}", time(NOON + 67 * DAY));
    assert_eq!(bed.record(vec![fresh]).await, [Recorded::Accepted]);
}

async fn each_source_keeps_as_long_as_it_asks(bed: Bed) {
    let brief = bed.store.register_source("brief", None).await.unwrap();
    let clock = Arc::new(ManualClock::at(time(NOON + 10 * DAY)));
    let keep = Keep { payloads: days(2), identities: days(3) };
    let retention = retention(&bed, &clock, &[("brief", keep)]);
    let other = Arrival { source: brief, ..bed.arrival("evt_2", "{}") };
    bed.record(vec![bed.arrival("evt_1", "{}"), other]).await;

    let removed = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(removed, Removed { receipts: 1, identities: 1 });
    assert_eq!(bed.event_ids().await, ["evt_1"]);
}

/// More than one step's worth, with others in between that stay.
async fn a_large_backlog_goes_in_steps(bed: Bed) {
    let lasting = bed.store.register_source("lasting", None).await.unwrap();
    let keep = Keep { payloads: days(90), identities: days(90) };
    let clock = Arc::new(ManualClock::at(time(NOON + 40 * DAY)));
    for batch in 0..15 {
        let arrivals = (0..100).map(|n| {
            let arrival = bed.arrival(&format!("evt_{batch}_{n}"), "{}");
            let source = if n % 4 == 0 { lasting } else { bed.source };
            Arrival { source, ..arrival }
        });
        bed.record(arrivals.collect()).await;
    }
    let mut reports = Vec::new();
    let retention = retention(&bed, &clock, &[("lasting", keep)]);
    let removed = retention.run_once(|so_far| reports.push(so_far.receipts)).await.unwrap();
    assert_eq!(removed, Removed { receipts: 1125, identities: 1125 });
    assert!(reports.iter().filter(|receipts| **receipts < 1125).count() >= 2, "{reports:?}");
    assert_eq!(bed.receipts().await.len(), 375);
}

/// Removal and recording run at the same time; neither fails the other.
async fn events_get_in_while_others_go(bed: Bed) {
    let clock = Arc::new(ManualClock::at(time(NOON + 40 * DAY)));
    for batch in 0..10 {
        let arrivals = (0..200).map(|n| bed.arrival(&format!("old_{batch}_{n}"), "{}"));
        bed.record(arrivals.collect()).await;
    }
    let retention = retention(&bed, &clock, &[]);
    let removal = tokio::spawn(async move { retention.run_once(|_| {}).await.unwrap() });
    for n in 0..50 {
        let new = bed.arrival_at(&format!("new_{n}"), "{}", time(NOON + 40 * DAY));
        assert_eq!(bed.record(vec![new]).await, [Recorded::Accepted]);
    }
    assert_eq!(removal.await.unwrap(), Removed { receipts: 2000, identities: 2000 });
    assert_eq!(bed.receipts().await.len(), 50);
}
