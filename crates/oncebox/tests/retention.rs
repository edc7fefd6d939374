//! Payloads and identities expire on their own clocks.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::SignedDuration;
use oncebox::clock::ManualClock;
use oncebox::delivery::Next;
use oncebox::effect::Sent;
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId, Recorded, Taker};
use oncebox::retention::{Keep, Removed, Retention};
use oncebox::route::RouteRules;
use oncebox::store::ExpireRange;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, grouped, message, time};

for_each_store!(
    an_event_is_fresh_again_after_its_window,
    each_source_keeps_as_long_as_it_asks,
    a_source_keeps_as_long_as_any_node_told,
    a_step_is_bounded_by_bytes,
    a_large_backlog_goes_in_steps,
    events_get_in_while_others_go,
    what_is_not_finished_stays,
    what_is_finished_goes_with_its_receipt,
    a_replayed_delivery_keeps_its_receipt,
    watermarks_and_operations_outlive_payloads,
    effects_outlive_identities,
    what_is_not_sent_stays_with_its_key_and_number,
);

const DAY: i64 = 86_400;

fn removed(receipts: usize, identities: usize) -> Removed {
    Removed { receipts, identities, effects: 0 }
}

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
    let went = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(1, 0));
    let again = bed.arrival_at("evt_1", "{}", time(NOON + 31 * DAY));
    assert!(matches!(bed.record(vec![again]).await[..], [Recorded::Duplicate { .. }]));

    clock.advance_secs(36 * DAY);
    let went = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(0, 1));
    let fresh = bed.arrival_at("evt_1", "{}", time(NOON + 67 * DAY));
    assert_eq!(bed.record(vec![fresh]).await, [Recorded::Accepted]);
}

/// `retention run`, or a node, whose configuration lacks the source or has a shorter window for it.
async fn a_source_keeps_as_long_as_any_node_told(bed: Bed) {
    let long = Keep { payloads: days(60), identities: days(90) };
    let windows = HashMap::from([("stripe-live".to_owned(), long)]);
    bed.store.tell_windows(&windows).await.unwrap();
    assert_eq!(bed.store.windows().await.unwrap(), [(bed.source, long)]);
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    let clock = Arc::new(ManualClock::at(time(NOON + 59 * DAY)));
    let short = Keep { payloads: days(1), identities: days(2) };
    for by_source in [&[][..], &[("other", short)], &[("stripe-live", short)]] {
        let went = retention(&bed, &clock, by_source).run_once(|_| {}).await.unwrap();
        assert_eq!(went, Removed::default(), "{by_source:?}");
    }
    clock.advance_secs(2 * DAY);
    let without = retention(&bed, &clock, &[]);
    assert_eq!(without.run_once(|_| {}).await.unwrap(), removed(1, 0));
    clock.advance_secs(28 * DAY);
    assert_eq!(without.run_once(|_| {}).await.unwrap(), removed(0, 0));
    clock.advance_secs(2 * DAY);
    assert_eq!(without.run_once(|_| {}).await.unwrap(), removed(0, 1));
}

/// A step that removes hundreds of large payloads would hold up those who record.
async fn a_step_is_bounded_by_bytes(bed: Bed) {
    let body = "x".repeat(usize::try_from(limits::EXPIRE_BYTES / 4).unwrap() * 3);
    for n in 0..3 {
        bed.record(vec![bed.arrival(&format!("evt_{n}"), &body)]).await;
    }
    let mut range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(NOON + DAY)),
        sources: vec![bed.source],
        at: time(NOON),
    };
    for _ in 0..3 {
        let step = bed.store.expire_receipts(&range).await.unwrap();
        assert_eq!(step.removed, 1);
        range.after = step.next.expect("one was looked at");
    }
    let step = bed.store.expire_receipts(&range).await.unwrap();
    assert_eq!((step.removed, step.next), (0, None));
}

async fn each_source_keeps_as_long_as_it_asks(bed: Bed) {
    let brief = bed.store.register_source("brief", None).await.unwrap();
    let clock = Arc::new(ManualClock::at(time(NOON + 10 * DAY)));
    let keep = Keep { payloads: days(2), identities: days(3) };
    let retention = retention(&bed, &clock, &[("brief", keep)]);
    let other = Arrival { source: brief, ..bed.arrival("evt_2", "{}") };
    bed.record(vec![bed.arrival("evt_1", "{}"), other]).await;

    let went = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(1, 1));
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
    let went = retention.run_once(|so_far| reports.push(so_far.receipts)).await.unwrap();
    assert_eq!(went, removed(1125, 1125));
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
    assert_eq!(removal.await.unwrap(), removed(2000, 2000));
    assert_eq!(bed.receipts().await.len(), 50);
}

/// Received, processing, retrying, held or dead: after a year and a half all of them are there,
/// payloads and identities with them.
async fn what_is_not_finished_stays(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let about = |id: &str, object: &str| {
        let object = Some(object.to_owned());
        Arrival { object, ..bed.event(id, &[route]) }
    };
    for (id, next) in [
        ("done", Some(Next::Processed)),
        ("skipped", Some(Next::Stale)),
        ("dead", Some(Next::Dead)),
        ("retrying", Some(Next::Retry(std::time::Duration::from_secs(60)))),
        ("processing", None),
    ] {
        bed.send(about(id, id)).await;
        let claimed = bed.take(&route).await;
        if let Some(next) = next {
            assert!(bed.finish(&claimed, next).await);
        }
    }
    bed.send(about("held", "dead")).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.send(about("received", "received")).await;

    let clock = Arc::new(ManualClock::at(time(NOON + 550 * DAY)));
    let went = retention(&bed, &clock, &[]).run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(2, 2));
    let open = ["dead", "retrying", "processing", "held", "received"];
    assert_eq!(bed.event_ids().await, open);
    let states = ["dead dead", "retrying retrying", "processing processing", "held held:order"];
    assert_eq!(bed.states(&route).await[..4], states);
    for id in open {
        let again = bed.arrival_at(id, "another", time(NOON + 550 * DAY));
        assert!(matches!(bed.record(vec![again]).await[..], [Recorded::Conflict { .. }]), "{id}");
        assert!(bed.store.identity(bed.source, id).await.unwrap().is_some());
    }
}

async fn what_is_finished_goes_with_its_receipt(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let other = bed.route("other", RouteRules::default()).await;
    for id in ["e1", "e2"] {
        bed.due(id, &[route, other]).await;
    }
    for _ in 0..2 {
        let claimed = bed.take(&route).await;
        assert!(bed.finish(&claimed, Next::Retry(std::time::Duration::ZERO)).await);
    }
    assert_eq!(bed.work_off(&route).await.len(), 2);
    assert_eq!(bed.work_off(&other).await.len(), 2);
    assert_eq!((bed.rows("finished"), bed.rows("attempts")), (4, 2));
    let clock = Arc::new(ManualClock::at(time(NOON + 31 * DAY)));
    let went = retention(&bed, &clock, &[]).run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(2, 0));
    assert_eq!((bed.rows("finished"), bed.rows("attempts")), (0, 0));
    assert!(bed.store.tally().await.unwrap().is_empty());
}

/// Dead on one route and done on the other, it stays whole.
async fn a_replayed_delivery_keeps_its_receipt(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let other = bed.route("other", RouteRules::default()).await;
    let receipt = bed.due("e1", &[route, other]).await;
    bed.work_off(&other).await;
    let dead = bed.kill(&route).await;
    let clock = Arc::new(ManualClock::at(time(NOON + 100 * DAY)));
    let retention = retention(&bed, &clock, &[]);
    assert_eq!(retention.run_once(|_| {}).await.unwrap(), Removed::default());
    assert_eq!((bed.rows("finished"), bed.rows("attempts")), (1, 1));
    assert_eq!(bed.store.payloads(&[receipt]).await.unwrap().len(), 1);

    let why = oncebox_testkit::store::act("lost cause");
    bed.store.discard(dead, &why).await.unwrap();
    let went = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(1, 1));
    assert_eq!((bed.rows("finished"), bed.rows("attempts")), (0, 0));
}

/// What was processed of an object or operation is remembered for 400 days after it was touched,
/// by the store's own days.
async fn watermarks_and_operations_outlive_payloads(bed: Bed) {
    let rules = RouteRules {
        skip_stale: true,
        same_operation: Some(std::time::Duration::from_secs(60)),
        ..RouteRules::default()
    };
    let route = bed.route("billing", rules).await;
    for (id, operation) in [("a", 1), ("b", 2)] {
        let taker = Taker { operation: Some([operation; 16]), ..route.taker() };
        let (object, version) = (Some(id.to_owned()), Some(5));
        let arrival = Arrival { object, version, takers: vec![taker], ..bed.event(id, &[]) };
        bed.send(arrival).await;
    }
    assert_eq!(bed.work_off(&route).await.len(), 2);
    let clock = Arc::new(ManualClock::at(time(NOON + 390 * DAY)));
    let retention = retention(&bed, &clock, &[]);
    let went = retention.run_once(|_| {}).await.unwrap();
    assert_eq!(went, removed(2, 2));
    assert_eq!((bed.rows("lanes"), bed.rows("operations")), (2, 2));

    bed.query("UPDATE lanes SET touched = touched - 100000 WHERE object = 'a'");
    let oldest = if bed.on_sqlite() { "hex(key) LIKE '01%'" } else { "key::text LIKE '01%'" };
    bed.query(&format!("UPDATE operations SET touched = touched - 100000 WHERE {oldest}"));
    retention.run_once(|_| {}).await.unwrap();
    assert_eq!(bed.query("SELECT object FROM lanes"), "b");
    assert_eq!(bed.rows("operations"), 1);
}

/// Makes everything in the ledger, and the numbers of groups, that many days older.
fn age(bed: &Bed, days: i64) {
    let by = match bed.on_sqlite() {
        true => (days * DAY * 1000).to_string(),
        false => format!("interval '{days} days'"),
    };
    bed.query(&format!("UPDATE effects SET at = at - {by}"));
    bed.query(&format!("UPDATE outbox_groups SET touched = touched - {days}"));
}

/// A clock that is as far as the store's.
fn today() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(oncebox::clock::Clock::now(&oncebox::clock::SystemClock)))
}

/// How many effects one pass forgets.
async fn forgotten(retention: &Retention) -> usize {
    retention.run_once(|_| {}).await.unwrap().effects
}

/// The payload of a message goes when it was sent, its key 400 days later; or, where identities
/// are kept longer, with those.
async fn effects_outlive_identities(bed: Bed) {
    let (handler, mailer) =
        (bed.route("billing", RouteRules::default()).await, bed.destination("mailer").await);
    let working = bed.working_on("evt_1", &handler).await;
    let mail = message("mailer", "m1", "{}");
    let sent = bed.write_new(&working, &mail).await;
    assert_eq!(bed.work_off(&mailer).await, ["m1"]);
    assert!(bed.finish(&working, Next::Processed).await);
    let keep = Keep { payloads: days(0), identities: days(35) };
    let brief = retention(&bed, &today(), &[("outbox/mailer", keep)]);
    assert_eq!(forgotten(&brief).await, 0);
    assert_eq!(bed.store.receipt(sent).await.unwrap(), None);
    let again = bed.working_on("evt_2", &handler).await;
    assert_eq!(bed.write(&again, &mail).await, Sent::Before(sent));

    age(&bed, 399);
    assert_eq!(forgotten(&brief).await, 0);
    age(&bed, 2);
    let keep = Keep { payloads: days(30), identities: days(402) };
    let lasting = retention(&bed, &today(), &[("stripe-live", keep)]);
    assert_eq!(forgotten(&lasting).await, 0);
    assert_eq!(forgotten(&brief).await, 1);
    assert!(matches!(bed.write(&again, &mail).await, Sent::New(_)));
    assert_eq!(bed.work_off(&mailer).await, ["m1"]);
    assert!(bed.finish(&again, Next::Processed).await);
    age(&bed, 34);
    let brief = brief.keeping_effects(days(10));
    assert_eq!(forgotten(&brief).await, 0, "never shorter than identities");
    age(&bed, 2);
    assert_eq!(forgotten(&brief).await, 1);
}

/// A message that is dead holds its group, and everything that says so stays.
async fn what_is_not_sent_stays_with_its_key_and_number(bed: Bed) {
    let (handler, mailer) =
        (bed.route("billing", RouteRules::default()).await, bed.destination("mailer").await);
    let working = bed.working_on("evt_1", &handler).await;
    let mail = |key: &str| grouped(message("mailer", key, "{}"), "ada");
    let first = bed.write_new(&working, &mail("m1")).await;
    assert!(bed.finish(&working, Next::Processed).await);
    let dead = bed.kill(&mailer).await;
    age(&bed, 1000);
    let keep = Keep { payloads: days(0), identities: days(35) };
    let retention = retention(&bed, &today(), &[("outbox/mailer", keep)]);
    assert_eq!(forgotten(&retention).await, 0);
    assert!(bed.store.receipt(first).await.unwrap().is_some());
    let working = bed.working_on("evt_2", &handler).await;
    assert_eq!(bed.write(&working, &mail("m1")).await, Sent::Before(first));
    let second = bed.write_new(&working, &mail("m2")).await;
    assert_eq!(bed.delivery(mailer.of(second)).await.version, Some(2));
    assert!(bed.finish(&working, Next::Processed).await);

    let why = oncebox_testkit::store::act("it is too late");
    bed.store.discard(dead, &why).await.unwrap();
    assert_eq!(bed.work_off(&mailer).await, ["m2"]);
    age(&bed, 1000);
    assert_eq!(forgotten(&retention).await, 2);
    assert_eq!(bed.store.receipt(first).await.unwrap(), None);
    assert_eq!((bed.rows("effects"), bed.rows("outbox_groups")), (0, 0));
}
