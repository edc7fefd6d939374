//! Odd arrivals: authentic content that looks like something known is a receipt of its own.

use oncebox::delivery::Next;
use oncebox::limits;
use oncebox::receipt::{Arrival, Mark, OddAct, OddRules, Oddity, ReceiptId, Recorded};
use oncebox::replay::ReplayFilter;
use oncebox::route::RouteRules;
use oncebox::store::{Acted, ExpireRange, ReceiptFilter};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, time};

for_each_store!(
    a_conflict_is_held_with_bytes_and_a_key_of_its_own,
    a_twin_is_held_and_does_not_own_its_id,
    known_content_under_a_known_id_is_a_twin,
    a_twin_that_can_be_genuine_is_delivered_and_marked,
    the_first_of_each_type_is_delivered,
    no_more_than_twenty_types_are_delivered,
    beyond_twenty_held_twins_more_are_repeats_of_the_last,
    what_is_held_as_odd_blocks_no_lane,
    a_released_conflict_enters_its_lane,
    a_filter_replays_odd_ones_only_when_asked,
    held_odd_ones_go_with_their_payload_and_are_audited,
    a_twin_outlives_the_receipt_that_came_first,
    a_twin_keeps_the_first_young,
    odd_ones_are_recorded_again_as_they_were,
    odd_ones_keep_their_request,
    a_defect_is_marked_and_delivered,
    odd_receipts_are_listed,
);

const DAY: i64 = 86_400;

/// An event whose id is not signed, on its way to a route.
fn unsigned(bed: &Bed, event_id: &str, body: &str, route: &Route) -> Arrival {
    Arrival { takers: vec![route.taker()], ..bed.unsigned(event_id, body) }
}

fn with_rules(arrival: Arrival, odd_rules: OddRules) -> Arrival {
    Arrival { odd_rules, ..arrival }
}

/// A body as Shopify sends it: under several topics.
fn topic(bed: &Bed, event_id: &str, event_type: &str, route: &Route) -> Arrival {
    let rules = OddRules { types_share_body: true, ..OddRules::default() };
    let arrival = with_rules(unsigned(bed, event_id, "order", route), rules);
    Arrival { event_type: event_type.into(), ..arrival }
}

async fn plain_route(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

async fn ordered_route(bed: &Bed) -> Route {
    bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await
}

async fn expire(bed: &Bed, before: i64) -> usize {
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(before)),
        sources: vec![bed.source],
        at: time(before),
    };
    bed.store.expire_receipts(&range).await.unwrap().removed
}

async fn sweep(bed: &Bed, before: i64) {
    let mut cursor = Some(oncebox::store::SweepCursor::default());
    let day = oncebox::store::day_of(time(before));
    while let Some(from) = cursor {
        cursor = bed.store.expire_identities(from, &[(bed.source, day)]).await.unwrap().next;
    }
}

async fn mark(bed: &Bed, receipt: ReceiptId) -> Option<Mark> {
    bed.store.receipt(receipt).await.unwrap().unwrap().summary.mark
}

async fn a_conflict_is_held_with_bytes_and_a_key_of_its_own(bed: Bed) {
    let route = plain_route(&bed).await;
    let first = bed.send(bed.event("evt_1", &[route])).await;
    let other = bed.with_body(bed.event("evt_1", &[route]), "the right one");
    let odd = other.receipt;
    assert_eq!(bed.record(vec![other]).await, [Recorded::Conflict { first }]);
    assert_eq!(bed.states(&route).await, ["evt_1 received", "evt_1 held:conflict"]);
    assert_eq!(bed.store.receipt(odd).await.unwrap().unwrap().body, b"the right one");
    let claimed = bed.take(&route).await;
    assert_eq!((claimed.delivery, claimed.mark), (route.of(first), None));
    assert!(bed.finish(&claimed, Next::Processed).await);

    assert_eq!(bed.store.release(route.of(odd), &act("right")).await.unwrap(), Acted::Done);
    let released = bed.take(&route).await;
    let mark = Mark { oddity: Oddity::Conflict, first: Some(first) };
    assert_eq!((released.delivery, released.mark), (route.of(odd), Some(mark)));
    assert_ne!(released.key, claimed.key);
}

async fn a_twin_is_held_and_does_not_own_its_id(bed: Bed) {
    let route = plain_route(&bed).await;
    let first = bed.send(unsigned(&bed, "d-1", "body", &route)).await;
    let twin = unsigned(&bed, "d-2", "body", &route);
    let own = twin.receipt;
    assert_eq!(bed.record(vec![twin]).await, [Recorded::Twin { first }]);
    assert_eq!(bed.states(&route).await, ["d-1 received", "d-2 held:twin"]);
    assert_eq!(bed.store.identity(bed.source, "d-2").await.unwrap(), None);
    // New content under that id is the first of it.
    let new = unsigned(&bed, "d-2", "new", &route);
    let receipt = new.receipt;
    assert_eq!(bed.record(vec![new]).await, [Recorded::Accepted]);
    assert_eq!(bed.store.identity(bed.source, "d-2").await.unwrap(), Some(receipt));
    // The twin is known by its id and content all the same.
    let copy = unsigned(&bed, "d-2", "body", &route);
    assert_eq!(bed.record(vec![copy]).await, [Recorded::Duplicate { receipt: own }]);
    assert_eq!(bed.store.discard(route.of(own), &act("replayed")).await.unwrap(), Acted::Done);
}

async fn known_content_under_a_known_id_is_a_twin(bed: Bed) {
    let route = plain_route(&bed).await;
    bed.send(unsigned(&bed, "d-1", "one", &route)).await;
    let two = bed.send(unsigned(&bed, "d-2", "two", &route)).await;
    let odd = unsigned(&bed, "d-1", "two", &route);
    assert_eq!(bed.record(vec![odd]).await, [Recorded::Twin { first: two }]);
}

async fn a_twin_that_can_be_genuine_is_delivered_and_marked(bed: Bed) {
    let route = plain_route(&bed).await;
    let rules =
        OddRules { twins: OddAct::Deliver, conflicts: OddAct::Deliver, ..OddRules::default() };
    let arrival = |id: &str, body: &str| with_rules(unsigned(&bed, id, body, &route), rules);
    let first = bed.send(arrival("d-1", "body")).await;
    bed.record(vec![arrival("d-2", "body"), arrival("d-1", "other")]).await;
    let claimed = bed.take_all(&route).await;
    let marks: Vec<_> = claimed.iter().map(|one| one.mark).collect();
    let of = |oddity| Some(Mark { oddity, first: Some(first) });
    assert_eq!(marks, [None, of(Oddity::Twin), of(Oddity::Conflict)]);
}

/// Shopify sends `orders/create`, `orders/updated` and `orders/paid` with one body.
async fn the_first_of_each_type_is_delivered(bed: Bed) {
    let route = plain_route(&bed).await;
    let first = bed.send(topic(&bed, "w-1", "orders/create", &route)).await;
    let batch = vec![
        topic(&bed, "w-2", "orders/updated", &route),
        topic(&bed, "w-3", "orders/paid", &route),
        topic(&bed, "w-4", "orders/paid", &route),
        topic(&bed, "w-5", "orders/create", &route),
    ];
    let outcomes = bed.record(batch).await;
    assert_eq!(outcomes, [Recorded::Twin { first }; 4]);
    let states = ["w-1 received", "w-2 received", "w-3 received", "w-4 held:twin", "w-5 held:twin"];
    assert_eq!(bed.states(&route).await, states);
    let later = topic(&bed, "w-6", "orders/updated", &route);
    assert_eq!(bed.record(vec![later]).await, [Recorded::Twin { first }]);
    assert_eq!(bed.states(&route).await[5], "w-6 held:twin");
}

async fn no_more_than_twenty_types_are_delivered(bed: Bed) {
    let route = plain_route(&bed).await;
    for n in 0..25 {
        bed.record(vec![topic(&bed, &format!("w-{n}"), &format!("type-{n}"), &route)]).await;
    }
    let states = bed.states(&route).await;
    let delivered = states.iter().filter(|state| state.ends_with(" received")).count();
    assert_eq!(delivered, usize::try_from(limits::TYPES_PER_BODY).unwrap());
    assert_eq!(states.len(), 25);
}

async fn beyond_twenty_held_twins_more_are_repeats_of_the_last(bed: Bed) {
    let route = plain_route(&bed).await;
    let first = bed.send(unsigned(&bed, "d-0", "body", &route)).await;
    let most = usize::try_from(limits::HELD_TWINS).unwrap();
    let twins: Vec<_> =
        (1..=most + 1).map(|n| unsigned(&bed, &format!("d-{n}"), "body", &route)).collect();
    let last = twins[most - 1].receipt;
    let outcomes = bed.record(twins).await;
    assert_eq!(outcomes[..most], vec![Recorded::Twin { first }; most]);
    assert_eq!(outcomes[most], Recorded::Duplicate { receipt: last });
    let more = unsigned(&bed, "d-99", "body", &route);
    assert_eq!(bed.record(vec![more]).await, [Recorded::Duplicate { receipt: last }]);
    assert_eq!(bed.rows("receipts"), most + 1);
    // New content is never refused.
    let new = unsigned(&bed, "d-99", "new", &route);
    assert_eq!(bed.record(vec![new]).await, [Recorded::Accepted]);
}

async fn what_is_held_as_odd_blocks_no_lane(bed: Bed) {
    let route = ordered_route(&bed).await;
    bed.send(bed.event("evt_1", &[route])).await;
    bed.record(vec![bed.with_body(bed.event("evt_1", &[route]), "other")]).await;
    bed.send(bed.event("evt_2", &[route])).await;
    assert_eq!(bed.work_off(&route).await, ["evt_1", "evt_2"]);
    assert_eq!(bed.states(&route).await[1], "evt_1 held:conflict");
}

async fn a_released_conflict_enters_its_lane(bed: Bed) {
    let route = ordered_route(&bed).await;
    let about = |id: &str, body: &str| {
        let arrival = Arrival { object: Some("in_1".into()), ..bed.event(id, &[route]) };
        bed.with_body(arrival, body)
    };
    bed.send(about("evt_1", "one")).await;
    let other = about("evt_1", "other");
    let odd = route.of(other.receipt);
    bed.record(vec![other]).await;
    let running = bed.take(&route).await;
    assert_eq!(bed.store.release(odd, &act("right")).await.unwrap(), Acted::Done);
    // Another delivery of its object is under way.
    assert_eq!(bed.take_if_any(&route).await, None);
    assert!(bed.finish(&running, Next::Processed).await);
    assert_eq!(bed.take(&route).await.delivery, odd);
}

async fn a_filter_replays_odd_ones_only_when_asked(bed: Bed) {
    let route = plain_route(&bed).await;
    bed.send(bed.event("evt_1", &[route])).await;
    let other = bed.with_body(bed.event("evt_1", &[route]), "other");
    let odd = other.receipt;
    bed.record(vec![other]).await;
    let found = async |filter: ReplayFilter| {
        let page = bed.store.replay_page(&filter, None, 10).await.unwrap();
        page.iter().any(|candidate| candidate.delivery.receipt == odd)
    };
    assert!(!found(ReplayFilter::default()).await);
    assert!(found(ReplayFilter { odd: true, ..ReplayFilter::default() }).await);
    assert!(found(ReplayFilter { receipts: vec![odd], ..ReplayFilter::default() }).await);
    bed.store.discard(route.of(odd), &act("wrong")).await.unwrap();
    assert!(!found(ReplayFilter::default()).await);
    assert!(found(ReplayFilter { odd: true, ..ReplayFilter::default() }).await);
}

async fn held_odd_ones_go_with_their_payload_and_are_audited(bed: Bed) {
    let (route, other) = (plain_route(&bed).await, bed.route("mail", RouteRules::default()).await);
    bed.send(bed.arrival("evt_1", "one")).await;
    let conflict = bed.with_body(bed.event("evt_1", &[route, other]), "two");
    let receipt = conflict.receipt;
    let dead = bed.with_body(bed.event("evt_1", &[route, other]), "three");
    let released = route.of(dead.receipt);
    bed.record(vec![conflict, dead]).await;
    // One of the second's deliveries was released: it is open, so the receipt stays whole.
    bed.store.release(released, &act("right")).await.unwrap();
    assert_eq!(expire(&bed, NOON + 2 * DAY).await, 2);
    assert_eq!(bed.store.receipt(receipt).await.unwrap(), None);
    let audit = bed.store.audit(None, 10).await.unwrap();
    let discarded: Vec<_> = audit.iter().filter(|row| row.act == "delivery.discard").collect();
    assert_eq!(discarded.len(), 2);
    assert_eq!((discarded[0].who.as_str(), discarded[0].via.as_str()), ("retention", "retention"));
    assert!(discarded.iter().all(|row| row.subject.starts_with(&receipt.to_string())));
    assert_eq!(bed.rows("deliveries"), 2);
}

/// The twin came a month later: it has an age of its own.
async fn a_twin_outlives_the_receipt_that_came_first(bed: Bed) {
    let first = bed.send(bed.unsigned_at("d-1", "body", time(NOON))).await;
    let late = bed.unsigned_at("d-2", "body", time(NOON + 29 * DAY));
    let twin = late.receipt;
    bed.record(vec![late]).await;
    assert_eq!(expire(&bed, NOON + DAY).await, 1);
    // So has one that comes after the first has gone.
    let later = bed.unsigned_at("d-3", "body", time(NOON + 33 * DAY));
    let last = later.receipt;
    assert_eq!(bed.record(vec![later]).await, [Recorded::Twin { first }]);
    for receipt in [twin, last] {
        let kept = bed.store.receipt(receipt).await.unwrap().unwrap();
        assert_eq!((&kept.body[..], kept.summary.mark.unwrap().first), (&b"body"[..], Some(first)));
    }
}

async fn a_twin_keeps_the_first_young(bed: Bed) {
    let first = bed.send(bed.unsigned_at("d-1", "body", time(NOON))).await;
    bed.record(vec![bed.unsigned_at("d-2", "body", time(NOON + 30 * DAY))]).await;
    sweep(&bed, NOON + 20 * DAY).await;
    let again = bed.unsigned_at("d-1", "body", time(NOON + 40 * DAY));
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt: first }]);
}

/// As after a commit whose answer was lost.
async fn odd_ones_are_recorded_again_as_they_were(bed: Bed) {
    let route = plain_route(&bed).await;
    let first = bed.send(unsigned(&bed, "d-1", "one", &route)).await;
    let batch = vec![
        unsigned(&bed, "d-2", "one", &route),
        unsigned(&bed, "d-1", "two", &route),
        unsigned(&bed, "d-3", "three", &route),
    ];
    let outcomes = bed.record(batch.clone()).await;
    let expected = [Recorded::Twin { first }, Recorded::Conflict { first }, Recorded::Accepted];
    assert_eq!(outcomes, expected);
    assert_eq!(bed.record(batch).await, expected);
    assert_eq!((bed.rows("receipts"), bed.rows("deliveries")), (4, 4));
}

async fn odd_ones_keep_their_request(bed: Bed) {
    bed.record(vec![bed.arrival("evt_1", "one"), bed.arrival("evt_2", "two")]).await;
    let others = bed.request(&[("evt_1", "eight"), ("evt_2", "nine"), ("evt_3", "ten")]);
    let outcomes = bed.record(others.clone()).await;
    assert!(outcomes.iter().all(|outcome| outcome.is_new()), "{outcomes:?}");
    for arrival in &others {
        let receipt = bed.store.receipt(arrival.receipt).await.unwrap().unwrap();
        assert_eq!((receipt.part, &receipt.body[..]), (arrival.part.clone(), &arrival.body[..]));
    }
    assert_eq!(bed.rows("requests"), 1);
    assert_eq!(expire(&bed, NOON + DAY).await, 5);
    assert_eq!(bed.rows("requests"), 0);
}

async fn a_defect_is_marked_and_delivered(bed: Bed) {
    let route = plain_route(&bed).await;
    let mut arrivals = bed.request(&[("evt_1", "one"), ("digest", "two")]);
    for arrival in &mut arrivals {
        arrival.takers = vec![route.taker()];
    }
    arrivals[1].is_defective = true;
    let receipts: Vec<_> = arrivals.iter().map(|arrival| arrival.receipt).collect();
    assert_eq!(bed.record(arrivals).await, [Recorded::Accepted; 2]);
    let defect = Mark { oddity: Oddity::Defect, first: None };
    assert_eq!(mark(&bed, receipts[0]).await, None);
    assert_eq!(mark(&bed, receipts[1]).await, Some(defect));
    assert_eq!(bed.work_off(&route).await, ["evt_1", "digest"]);
}

async fn odd_receipts_are_listed(bed: Bed) {
    let first = bed.send(bed.unsigned("d-1", "body")).await;
    bed.record(vec![bed.unsigned("d-2", "body"), bed.unsigned("d-3", "other")]).await;
    let filter = ReceiptFilter { odd: true, limit: 10, ..ReceiptFilter::default() };
    let listed = bed.store.receipts(&filter).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|receipt| receipt.event_id.as_str()).collect();
    assert_eq!(ids, ["d-2"]);
    assert_eq!(listed[0].mark, Some(Mark { oddity: Oddity::Twin, first: Some(first) }));
}

/// Two nodes record one content under two ids at the same moment, many times over: one is the
/// first, the other its twin, and each is kept.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_agree_on_the_first_of_one_content() {
    let bed = Bed::postgres().await;
    let other = oncebox::store::open(&bed.url, oncebox::store::Purpose::Serve).await.unwrap();
    for round in 0..50 {
        let body = format!("body {round}");
        let (one, two) = (
            bed.unsigned(&format!("a-{round}"), &body),
            bed.unsigned(&format!("b-{round}"), &body),
        );
        let receipts = [one.receipt, two.receipt];
        let (a, b) =
            tokio::join!(bed.store.record(vec![one].into()), other.record(vec![two].into()),);
        let outcomes = [a.unwrap()[0], b.unwrap()[0]];
        match outcomes {
            [Recorded::Accepted, Recorded::Twin { first }] => assert_eq!(first, receipts[0]),
            [Recorded::Twin { first }, Recorded::Accepted] => assert_eq!(first, receipts[1]),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bed.rows("receipts"), 100);
    // No id is left claimed for a receipt that was never written.
    let stranded = bed.query(
        "SELECT count(*) FROM identities AS i
         WHERE NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.id = i.receipt)",
    );
    assert_eq!(stranded, "0");
    other.close().await;
}
