//! Claims: which deliveries a worker gets, how many, and what it is told of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use oncebox::delivery::{Claimed, Next, State, idempotency_key};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::route::RouteRules;
use oncebox::store::{
    self, Claims, ExpireRange, Finish, Purpose, RouteView, Store, SweepCursor, Wanted, day_of,
};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, time};

for_each_store!(
    the_oldest_due_is_claimed_first,
    a_claim_never_takes_more_than_wanted,
    a_large_backlog_drains_within_the_limits,
    a_claim_counts_the_attempt,
    a_claim_tells_of_the_event,
    concurrent_claims_share_no_delivery,
    what_is_claimed_is_not_claimed_again,
    routes_are_independent,
    a_wrong_clock_of_the_receiver_delays_nothing,
    a_paused_route_is_not_claimed,
    a_resumed_route_is_claimed_at_once,
    payloads_come_whole,
    leases_grow_and_are_hard_to_guess,
    a_key_outlives_renames,
    a_key_outlives_the_memory_of_its_event,
    rules_are_kept_with_the_route,
    a_new_delivery_is_announced,
    what_becomes_due_is_announced,
);

async fn plain(bed: &Bed, name: &str) -> Route {
    bed.route(name, RouteRules::default()).await
}

fn event_ids(claims: &[Claimed]) -> Vec<&str> {
    claims.iter().map(|claimed| claimed.event_id.as_str()).collect()
}

/// By due time, then by receipt.
async fn the_oldest_due_is_claimed_first(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let batch = ["e1", "e2", "e3", "e4"].map(|id| bed.event(id, &[route]));
    bed.record(batch.into()).await;
    bed.backdate("e3", 200);
    let mut order = Vec::new();
    while let Some(claimed) = bed.take_if_any(&route).await {
        order.push(claimed.event_id);
    }
    assert_eq!(order, ["e3", "e1", "e2", "e4"]);
}

async fn a_claim_never_takes_more_than_wanted(bed: Bed) {
    let (one, two) = (plain(&bed, "one").await, plain(&bed, "two").await);
    for n in 0..10 {
        bed.due(&format!("e{n}"), &[one, two]).await;
    }
    assert!(bed.claim(&one, 0).await.claimed.is_empty());
    assert!(bed.claim_many(Vec::new()).await.claimed.is_empty());
    let claims = bed.claim_many(vec![one.wanted(2), two.wanted(3)]).await;
    let of = |route: &Route, claims: &Claims| {
        claims.claimed.iter().filter(|claimed| claimed.delivery.route == route.no).count()
    };
    assert_eq!((of(&one, &claims), of(&two, &claims)), (2, 3));
    for (route, left) in [(one, 8), (two, 7)] {
        let states = bed.states(&route).await;
        let untouched = states.iter().filter(|state| state.ends_with(" received")).count();
        assert_eq!(untouched, left);
    }
    assert_eq!(bed.query("SELECT sum(attempts) FROM deliveries"), "5");
}

/// Each claim is full until the last, and together they are everything.
async fn a_large_backlog_drains_within_the_limits(bed: Bed) {
    let route = plain(&bed, "billing").await;
    for batch in 0..5 {
        let events = (0..200).map(|n| bed.event(&format!("e{batch}_{n}"), &[route]));
        bed.record(events.collect()).await;
    }
    let mut sizes = Vec::new();
    let mut seen = HashSet::new();
    loop {
        let claimed = bed.claim(&route, limits::CLAIM_ROWS).await.claimed;
        if claimed.is_empty() {
            break;
        }
        sizes.push(claimed.len());
        seen.extend(claimed.iter().map(|claimed| claimed.delivery));
        let endings =
            claimed.iter().map(|claimed| oncebox_testkit::store::ending(claimed, Next::Processed));
        let done = bed.store.finish(endings.collect()).await.unwrap();
        assert!(done.into_iter().all(Finish::is_good));
    }
    assert_eq!(sizes, [256, 256, 256, 232]);
    assert_eq!(seen.len(), 1000);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1000));
}

async fn a_claim_counts_the_attempt(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let receipt = bed.due("e1", &[route]).await;
    let claimed = bed.take(&route).await;
    assert_eq!(claimed.counts.attempts, 1);

    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!(row.state, State::Processing);
    assert_eq!(row.counts, claimed.counts);
    assert_eq!(row.worker.as_deref(), Some("worker-1"));
    assert!(row.lease_until.is_some());
    assert_eq!(bed.receipts().await[0].deliveries[0].attempts, 1);
    assert_eq!(bed.receipts().await[0].deliveries[0].state, "processing");
    let standing = bed.store.standing(route.of(receipt)).await.unwrap().unwrap();
    assert_eq!((standing.state, standing.attempts), (State::Processing, 1));
}

async fn a_claim_tells_of_the_event(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let arrival = Arrival {
        object: Some("in_456".into()),
        version: Some(-3),
        event_type: "invoice.voided".into(),
        ..bed.event("evt_1", &[route])
    };
    bed.record(vec![arrival.clone()]).await;
    let claimed = bed.take(&route).await;
    assert_eq!(claimed.delivery, route.of(arrival.receipt));
    assert_eq!(claimed.source, bed.source);
    assert_eq!(claimed.source_name, "stripe-live");
    assert_eq!(claimed.event_id, "evt_1");
    assert_eq!(claimed.event_type, "invoice.voided");
    assert_eq!(claimed.object.as_deref(), Some("in_456"));
    assert_eq!(claimed.version, Some(-3));
    assert_eq!(claimed.received_at, arrival.received_at);
    assert_eq!(claimed.bytes, arrival.body.len() + arrival.headers.len());
    assert_eq!(claimed.replays, 0);
    assert!(!claimed.guarded);
    assert_eq!(claimed.key, idempotency_key("stripe-live", "evt_1", "billing", None));
}

/// Eight workers race for a hundred deliveries, seven at a time.
async fn concurrent_claims_share_no_delivery(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.record((0..100).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    let bed = Arc::new(bed);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let bed = bed.clone();
        workers.spawn(async move {
            let mut mine = Vec::new();
            // Another's claim may lie on what is left, so a worker may find nothing early.
            loop {
                let claimed = bed.claim(&route, 7).await.claimed;
                assert!(claimed.len() <= 7);
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|claimed| claimed.delivery));
            }
        });
    }
    let mut all = workers.join_all().await.concat();
    all.extend(bed.take_all(&route).await.into_iter().map(|claimed| claimed.delivery));
    assert_eq!(all.len(), 100);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100);
    assert_eq!(bed.query("SELECT min(attempts), max(attempts) FROM deliveries"), "1|1");
}

async fn what_is_claimed_is_not_claimed_again(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.due("e1", &[route]).await;
    bed.take(&route).await;
    bed.pass(59);
    assert!(bed.claim(&route, 10).await.claimed.is_empty());
    // Not even after the lease: that is for a rescue to count as a crash first.
    bed.pass(2);
    assert!(bed.claim(&route, 10).await.claimed.is_empty());
}

/// One event, two routes: two deliveries that know nothing of each other.
async fn routes_are_independent(bed: Bed) {
    let (one, two) = (plain(&bed, "one").await, plain(&bed, "two").await);
    bed.due("e1", &[one, two]).await;
    let first = bed.take(&one).await;
    assert_eq!(bed.states(&two).await, ["e1 received"]);
    let second = bed.take(&two).await;
    assert_ne!(first.key, second.key);
    assert!(bed.finish(&first, Next::Processed).await);
    assert!(bed.finish(&second, Next::Dead).await);
    assert_eq!(bed.states(&one).await, ["e1 processed"]);
    assert_eq!(bed.states(&two).await, ["e1 dead"]);
    let views = bed.receipts().await.remove(0).deliveries;
    let views: Vec<_> = views.iter().map(|v| (v.route.as_str(), v.state.as_str())).collect();
    assert_eq!(views, [("one", "processed"), ("two", "dead")]);
}

/// The node that received it was an hour ahead; due is what the store's clock says.
async fn a_wrong_clock_of_the_receiver_delays_nothing(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let ahead = bed.arrival_at("e1", "{}", time(4_000_000_000));
    bed.record(vec![Arrival { takers: vec![route.taker()], ..ahead }]).await;
    assert_eq!(bed.take(&route).await.event_id, "e1");
}

async fn a_paused_route_is_not_claimed(bed: Bed) {
    let (one, two) = (plain(&bed, "one").await, plain(&bed, "two").await);
    bed.due("e1", &[one, two]).await;
    assert!(bed.store.pause_route("one", true, &act("deploy")).await.unwrap());
    let claims = bed.claim_many(vec![one.wanted(5), two.wanted(5)]).await;
    assert_eq!(claims.claimed.len(), 1);
    assert_eq!(claims.claimed[0].delivery.route, two.no);
    // What was claimed before a pause can be finished during it.
    assert!(bed.store.pause_route("two", true, &act("deploy")).await.unwrap());
    assert!(bed.finish(&claims.claimed[0], Next::Processed).await);
    assert_eq!(bed.states(&one).await, ["e1 received"]);
    assert!(bed.store.pause_route("one", false, &act("deployed")).await.unwrap());
    assert_eq!(bed.take(&one).await.event_id, "e1");
}

/// However long it was paused, and however often workers looked meanwhile.
async fn a_resumed_route_is_claimed_at_once(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.due("e1", &[route]).await;
    bed.store.pause_route("billing", true, &act("deploy")).await.unwrap();
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    bed.backdate("e1", 60_000);
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    bed.store.pause_route("billing", false, &act("deployed")).await.unwrap();
    assert_eq!(event_ids(&bed.claim(&route, 5).await.claimed), ["e1"]);
}

async fn payloads_come_whole(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let mut arrivals = ["e1", "e2"].map(|id| bed.event(id, &[route]));
    arrivals[0] = bed.with_body(arrivals[0].clone(), [0, 255, b'{', 10]);
    arrivals[0].headers = Bytes::from_static(b"x-a: caf\xe9\n");
    bed.record(arrivals.to_vec()).await;
    let gone = bed.arrival("gone", "{}").receipt;
    let wanted = [arrivals[1].receipt, gone, arrivals[0].receipt];
    let mut payloads = bed.store.payloads(&wanted).await.unwrap();
    payloads.sort_by_key(|payload| payload.receipt);
    assert_eq!(payloads.len(), 2);
    for (payload, arrival) in payloads.iter().zip(&arrivals) {
        assert_eq!(payload.receipt, arrival.receipt);
        assert_eq!(payload.headers, arrival.headers);
        assert_eq!(payload.body, &arrival.body[..]);
    }
    assert!(bed.store.payloads(&[]).await.unwrap().is_empty());
}

/// The upper bits count claims, the lower twenty are random.
async fn leases_grow_and_are_hard_to_guess(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.record((0..20).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    let first = bed.take_all(&route).await;
    assert!(first.iter().all(|claimed| claimed.lease.0 >> 20 == 1), "{first:?}");
    let random = first.iter().map(|claimed| claimed.lease.0 & 0xf_ffff);
    assert!(random.collect::<HashSet<_>>().len() > 15);
    for claimed in &first {
        assert!(bed.finish(claimed, Next::Return).await);
    }
    for again in bed.take_all(&route).await {
        assert_eq!(again.lease.0 >> 20, 2);
        let before = first.iter().find(|claimed| claimed.delivery == again.delivery).unwrap();
        assert!(again.lease > before.lease);
    }
}

async fn a_key_outlives_renames(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.due("e1", &[route]).await;
    let before = bed.take(&route).await;
    assert!(bed.finish(&before, Next::Return).await);
    bed.store.register_source("payments", Some("stripe-live")).await.unwrap();
    bed.store.register_route("invoices", Some("billing"), &route.rules).await.unwrap();
    let after = bed.take(&route).await;
    assert_eq!(after.key, before.key);
    assert_eq!(after.source_name, "payments");
}

/// Payload and identity have expired, so the event is accepted again; its consumer still knows it.
async fn a_key_outlives_the_memory_of_its_event(bed: Bed) {
    let route = plain(&bed, "billing").await;
    bed.due("e1", &[route]).await;
    let first = bed.take(&route).await;
    assert!(bed.finish(&first, Next::Processed).await);
    forget(&bed, NOON + 86_400).await;
    assert!(bed.receipts().await.is_empty());

    bed.due("e1", &[route]).await;
    let again = bed.take(&route).await;
    assert_ne!(again.delivery, first.delivery);
    assert_eq!(again.key, first.key);
}

/// Removes receipts and identities from before a time.
async fn forget(bed: &Bed, before: i64) {
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(before)),
        sources: vec![bed.source],
        at: time(NOON),
    };
    bed.store.expire_receipts(&range).await.unwrap();
    let mut cursor = Some(SweepCursor::default());
    while let Some(from) = cursor.take() {
        let bounds = [(bed.source, day_of(time(before)) + 1)];
        cursor = bed.store.expire_identities(from, &bounds).await.unwrap().next;
    }
}

async fn rules_are_kept_with_the_route(mut bed: Bed) {
    let rules = RouteRules {
        max_attempts: 3,
        base: Duration::from_millis(250),
        cap: Duration::from_secs(90),
        longest_wait: Duration::from_secs(7200),
        max_snoozes: 5,
        ordered: true,
        skip_stale: true,
        on_dead: oncebox::route::OnDead::Continue,
        budget: Some(Duration::from_secs(86_400)),
        hold_for: Duration::from_secs(120),
        same_operation: Some(Duration::from_secs(300)),
        pulled: false,
    };
    let billing = bed.route("billing", rules).await;
    let audit = plain(&bed, "audit").await;
    bed.reopen().await;
    let view = |route: Route, name: &str| RouteView {
        route: route.no,
        name: name.into(),
        born_as: name.into(),
        rules: route.rules,
        paused_at: None,
        filling: false,
    };
    let mut routes = bed.store.routes().await.unwrap();
    routes.sort_by_key(|route| route.route);
    assert_eq!(routes, [view(billing, "billing"), view(audit, "audit")]);
}

/// Waits for an announcement; ample time, since it only matters when none comes.
async fn announced(due: &mut tokio::sync::watch::Receiver<u64>) {
    let wait = tokio::time::timeout(Duration::from_secs(30), due.changed());
    wait.await.expect("an announcement").expect("the store is open");
}

async fn a_new_delivery_is_announced(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let mut due = bed.store.due();
    due.mark_unchanged();
    bed.due("e1", &[route]).await;
    announced(&mut due).await;
    // By now it can be claimed: the announcement follows the commit.
    assert_eq!(event_ids(&bed.claim(&route, 5).await.claimed), ["e1"]);
}

async fn what_becomes_due_is_announced(bed: Bed) {
    let route = plain(&bed, "billing").await;
    let receipt = bed.due("e1", &[route]).await;
    let claimed = bed.take(&route).await;
    let mut due = bed.store.due();
    due.mark_unchanged();
    assert!(bed.finish(&claimed, Next::Return).await);
    announced(&mut due).await;
    let claimed = bed.take(&route).await;
    assert!(bed.finish(&claimed, Next::Retry(Duration::from_secs(600))).await);
    due.mark_unchanged();
    bed.store.hasten(route.of(receipt), Duration::from_secs(1)).await.unwrap();
    announced(&mut due).await;
    assert_eq!(event_ids(&bed.claim(&route, 5).await.claimed), ["e1"]);
}

/// A worker on another machine hears of what this one records.
#[tokio::test(flavor = "multi_thread")]
async fn other_processes_hear_of_new_deliveries() {
    let bed = Bed::postgres().await;
    let route = plain(&bed, "billing").await;
    let other: Arc<dyn Store> = store::open(&bed.url, Purpose::Serve).await.unwrap();
    let mut due = other.due();
    let mut sent = 0;
    // Listening starts in the background; from then on nothing is missed.
    loop {
        bed.due(&format!("e{sent}"), &[route]).await;
        sent += 1;
        if tokio::time::timeout(Duration::from_millis(200), due.changed()).await.is_ok() {
            break;
        }
        assert!(sent < 100, "nothing is heard");
    }
    due.mark_unchanged();
    bed.due("last", &[route]).await;
    announced(&mut due).await;
    let wanted: Vec<Wanted> = vec![route.wanted(200)];
    let claim = store::Claim { wanted, lease: Duration::from_secs(30), worker: "two".into() };
    assert_eq!(other.claim(&claim).await.unwrap().claimed.len(), sent + 1);
    other.close().await;
}
