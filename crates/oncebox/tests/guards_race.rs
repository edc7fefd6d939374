//! Workers and operators racing on a route with every guard: one of an object at a time, and
//! nothing is left behind in its hold.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oncebox::delivery::{DeliveryId, Next, State};
use oncebox::receipt::{Arrival, Taker};
use oncebox::replay::{How, Replay, ReplayFilter, ReplayStep};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::DeliveryFilter;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Route, act};

for_each_store!(
    nothing_is_left_behind,
    nothing_is_left_behind_where_the_route_goes_on,
    the_safety_nets_race_along,
);

const EVENTS: usize = 96;

async fn nothing_is_left_behind(bed: Bed) {
    race(bed, OnDead::Hold, false).await;
}

async fn nothing_is_left_behind_where_the_route_goes_on(bed: Bed) {
    race(bed, OnDead::Continue, false).await;
}

async fn the_safety_nets_race_along(bed: Bed) {
    race(bed, OnDead::Hold, true).await;
}

async fn race(bed: Bed, on_dead: OnDead, with_nets: bool) {
    let rules = RouteRules {
        ordered: true,
        skip_stale: true,
        same_operation: Some(Duration::from_secs(60)),
        on_dead,
        ..RouteRules::default()
    };
    let route = bed.route("billing", rules).await;
    let bed = Arc::new(bed);
    let mut tasks = tokio::task::JoinSet::new();
    let in_flight: Arc<Mutex<HashSet<String>>> = Arc::default();
    let deadline = Instant::now() + Duration::from_secs(120);
    for seed in 0..4 {
        let (bed, in_flight) = (bed.clone(), in_flight.clone());
        tasks.spawn(async move { work(&bed, &route, seed, &in_flight, deadline).await });
    }
    for from in (0..EVENTS).step_by(8) {
        bed.record((from..from + 8).map(|n| event(&bed, &route, n)).collect()).await;
    }
    let operator = bed.clone();
    tasks.spawn(async move { operate(&operator, with_nets, deadline).await });
    tasks.join_all().await;
    assert_eq!(bed.rows("deliveries"), 0);
    assert_eq!(bed.rows("finished"), EVENTS);
}

/// Six objects; versions out of order; every third event of one of a few operations.
fn event(bed: &Bed, route: &Route, n: usize) -> Arrival {
    let byte = u8::try_from(n % 5).unwrap();
    let operation = n.is_multiple_of(3).then_some([byte; 16]);
    Arrival {
        object: Some(format!("object-{}", n % 6)),
        version: i64::try_from(n * 7 % 13).ok(),
        takers: vec![Taker { operation, ..route.taker() }],
        ..bed.event(&format!("e{n}"), &[])
    }
}

/// Whether everything has been recorded and finished.
fn is_over(bed: &Bed, deadline: Instant) -> bool {
    let finished = bed.rows("finished");
    let what = "SELECT state, reason, lane, place FROM deliveries ORDER BY lane, place";
    assert!(Instant::now() < deadline, "{finished} are finished; left:\n{}", bed.query(what));
    finished == EVENTS
}

async fn work(
    bed: &Bed,
    route: &Route,
    seed: usize,
    in_flight: &Mutex<HashSet<String>>,
    deadline: Instant,
) {
    let mut turn = seed * 3;
    while !is_over(bed, deadline) {
        for claimed in bed.claim(route, 4).await.claimed {
            let object = claimed.object.clone().unwrap();
            assert!(in_flight.lock().unwrap().insert(object.clone()), "two of {object}");
            turn += 1;
            let next = match turn % 10 {
                0 => Next::Dead,
                1 | 4 => Next::Retry(Duration::ZERO),
                2 => Next::Return,
                3 => Next::Stale,
                _ => Next::Processed,
            };
            // Others get a chance to be wrong.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            in_flight.lock().unwrap().remove(&object);
            assert!(bed.finish(&claimed, next).await);
        }
    }
}

/// Discards or replays what is dead, so that everything comes to an end.
async fn operate(bed: &Bed, with_nets: bool, deadline: Instant) {
    let of = |state| DeliveryFilter { state: Some(state), limit: 100, ..Default::default() };
    while !is_over(bed, deadline) {
        for (n, row) in (0..).zip(bed.store.deliveries(&of(State::Dead)).await.unwrap()) {
            if with_nets && n % 2 == 0 {
                replay(bed, row.delivery).await;
            } else {
                bed.store.discard(row.delivery, &act("make way")).await.unwrap();
            }
        }
        if with_nets {
            bed.store.release_unblocked(5).await.unwrap();
            bed.store.rescue(5).await.unwrap();
            if let Some(held) = bed.store.deliveries(&of(State::Held)).await.unwrap().first() {
                bed.store.release(held.delivery, &act("urgent")).await.unwrap();
                bed.store.hasten(held.delivery, Duration::ZERO).await.unwrap();
            }
        }
    }
}

/// Replays one delivery, whatever has become of it meanwhile.
async fn replay(bed: &Bed, delivery: DeliveryId) {
    let job = Replay::new(ReplayFilter::default(), How::default(), 1, &act("again"));
    bed.store.create_replay(&job, &act("again")).await.unwrap();
    let job = bed.store.take_replay(Some(job.id), LEASE).await.unwrap().expect("ours");
    let step = ReplayStep {
        id: job.id,
        lease: job.lease,
        open: vec![(delivery, false)],
        passed: 0,
        cursor: Some(delivery),
        done: true,
        how: job.how,
    };
    assert!(bed.store.step_replay(&step).await.unwrap().is_some());
}
