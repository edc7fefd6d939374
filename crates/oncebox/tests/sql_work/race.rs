//! Sessions and workers of the server racing on the same routes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oncebox::delivery::Next;
use oncebox::receipt::{Arrival, Taker};
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route};

use super::session::Session;

const EVENTS: usize = 120;

/// What is being worked on, and what was done in which order.
#[derive(Default)]
struct Log {
    in_flight: Mutex<HashSet<String>>,
    done: Mutex<Vec<(String, i64)>>,
}

impl Log {
    fn begin(&self, object: &str) {
        assert!(self.in_flight.lock().unwrap().insert(object.to_owned()), "two of {object}");
    }

    fn end(&self, object: &str, version: i64, done: bool) {
        self.in_flight.lock().unwrap().remove(object);
        if done {
            self.done.lock().unwrap().push((object.to_owned(), version));
        }
    }

    fn count(&self) -> usize {
        self.done.lock().unwrap().len()
    }
}

fn is_over(bed: &Bed, log: &Log, deadline: Instant) -> bool {
    let what = "SELECT state, reason, lane, place FROM deliveries ORDER BY lane, place";
    let done = log.count();
    assert!(Instant::now() < deadline, "{done} are done; left:\n{}", bed.query(what));
    done == EVENTS
}

/// Few objects, every event once and in the order of versions, whoever works on it; rescues and
/// the net for what is held run along. Every fifth fails the first time.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_worked_off_in_order_by_both_doors() {
    let bed = Arc::new(Bed::postgres().await);
    let rules = RouteRules {
        ordered: true,
        skip_stale: true,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
        same_operation: Some(Duration::from_secs(60)),
        ..RouteRules::default()
    };
    let route = bed.route("billing", rules).await;
    let event = |n: usize| Arrival {
        object: Some(format!("object-{}", n % 3)),
        version: i64::try_from(n).ok(),
        takers: vec![Taker { operation: Some([u8::try_from(n).unwrap(); 16]), ..route.taker() }],
        ..bed.event(&format!("e{n}"), &[])
    };
    bed.record((0..EVENTS).map(event).collect()).await;
    let log: Arc<Log> = Arc::default();
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let (bed, log) = (bed.clone(), log.clone());
        let session = Session::open(&bed).await;
        tasks.spawn(async move {
            while !is_over(&bed, &log, deadline) {
                match n % 2 {
                    0 => through_sql(&session, &log).await,
                    _ => through_rust(&bed, &route, &log).await,
                }
            }
        });
    }
    let (nets, log_of_nets) = (bed.clone(), log.clone());
    tasks.spawn(async move {
        while !is_over(&nets, &log_of_nets, deadline) {
            nets.store.rescue(10).await.unwrap();
            nets.store.release_unblocked(10).await.unwrap();
        }
    });
    tasks.join_all().await;
    let mut done = log.done.lock().unwrap().clone();
    // Stable: the order of each object stays what it was.
    done.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<_> =
        (0..EVENTS).map(|n| (format!("object-{}", n % 3), i64::try_from(n).unwrap())).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(done, expected);
    let sql = "SELECT count(*) FROM finished WHERE state = 'processed' AND crashes = 0";
    assert_eq!(bed.query(sql), EVENTS.to_string());
    assert_eq!(bed.rows("deliveries"), 0);
}

fn fails(version: i64, attempt: i32) -> bool {
    version % 5 == 0 && attempt == 1
}

async fn through_sql(session: &Session, log: &Log) {
    // A lock that cannot be had in time is no reason to stop.
    let Ok(work) = session.try_claim("billing", 3).await else { return };
    for work in work {
        let version = work.version.unwrap();
        let object = format!("object-{}", version % 3);
        log.begin(&object);
        tokio::task::yield_now().await;
        let done = !fails(version, work.attempt);
        log.end(&object, version, done);
        let outcome = if done { "processed" } else { "retry" };
        session.finish(&work, outcome).await.unwrap();
    }
}

async fn through_rust(bed: &Bed, route: &Route, log: &Log) {
    for claimed in bed.claim(route, 3).await.claimed {
        let (object, version) = (claimed.object.clone().unwrap(), claimed.version.unwrap());
        log.begin(&object);
        tokio::task::yield_now().await;
        let done = !fails(version, i32::try_from(claimed.counts.attempts).unwrap());
        log.end(&object, version, done);
        let next = if done { Next::Processed } else { Next::Retry(Duration::ZERO) };
        assert!(bed.finish(&claimed, next).await);
    }
}

/// One object that everything is about: a claim passes over all that has to wait for it and still
/// finds what is behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_looks_behind_what_it_moves() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let about = |object: &str, n: i64| Arrival {
        object: Some(object.to_owned()),
        version: Some(n),
        ..bed.event(&format!("{object}-{n}"), &[route])
    };
    bed.record((0..20).map(|n| about("hot", n)).collect()).await;
    bed.record(vec![about("cold", 0)]).await;
    let session = Session::open(&bed).await;
    assert_eq!(session.take("billing").await.event_id, "hot-0");
    assert_eq!(session.take("billing").await.event_id, "cold-0");
    assert!(session.claim("billing", 1).await.is_empty());
    let held = "SELECT count(*) FROM deliveries WHERE reason = 'order'";
    assert_eq!(bed.query(held), "19");
}

/// While somebody holds an object, a claim that has moved others out of the way goes without it
/// and does not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_look_waits_for_nobody() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let about = |object: &str, n: i64| Arrival {
        object: Some(object.to_owned()),
        version: Some(n),
        ..bed.event(&format!("{object}-{n}"), &[route])
    };
    bed.record(vec![about("a", 0), about("a", 1), about("b", 0)]).await;
    let (session, other) = (Session::open(&bed).await, Session::open(&bed).await);
    session.take("billing").await;
    other
        .run(
            "BEGIN; INSERT INTO oncebox.lanes (route, source, object, touched)
             VALUES (1, 1, 'b', 0)",
        )
        .await;
    assert!(session.claim("billing", 1).await.is_empty());
    assert_eq!(bed.states(&route).await, ["a-0 processing", "a-1 held:order", "b-0 received"]);
    // A first look waits a little, and goes around it.
    assert!(session.claim("billing", 1).await.is_empty());
    bed.record(vec![about("c", 0)]).await;
    assert_eq!(session.take("billing").await.event_id, "c-0");
    other.run("ROLLBACK").await;
    assert_eq!(session.take("billing").await.event_id, "b-0");
}

/// A worker that takes its time after it has moved a watermark is in the way of nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_goes_around_what_somebody_works_on() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let about = |object: &str, n: i64| Arrival {
        object: Some(object.to_owned()),
        version: Some(n),
        ..bed.event(&format!("{object}-{n}"), &[route])
    };
    bed.record(vec![about("a", 0), about("a", 1), about("a", 2), about("b", 0)]).await;
    let (slow, session) = (Session::open(&bed).await, Session::open(&bed).await);
    let work = slow.take("billing").await;
    let enter = format!("SELECT oncebox.enter('{}', {})", work.delivery, work.lease);
    slow.run(&format!("BEGIN; {enter}; SELECT oncebox.advance('a', 0)")).await;
    assert_eq!(session.take("billing").await.event_id, "b-0");
    slow.finish(&work, "processed").await.unwrap();
    assert!(session.claim("billing", 5).await.is_empty());
    slow.run("COMMIT").await;
    assert_eq!(session.take("billing").await.event_id, "a-1");
}
