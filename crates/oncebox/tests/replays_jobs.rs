//! Replay jobs: durable, driven by one at a time, resumed by anybody; and odd arrivals that
//! become receipts after all.

use std::time::Duration;

use oncebox::delivery::State;
use oncebox::receipt::{Arrival, Recorded};
use oncebox::replay::{Fill, How, Phase, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
use oncebox::store::Oddity;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, time};

for_each_store!(
    a_job_is_kept_whole,
    jobs_are_listed_newest_first,
    one_drives_a_job_at_a_time,
    a_driver_whose_lease_ran_out_changes_nothing,
    a_step_renews_the_lease,
    a_cancelled_job_stops,
    a_job_goes_on_after_a_crash,
    a_job_that_is_through_is_not_taken,
    a_step_counts_what_it_did,
    what_a_step_opens_is_announced,
    a_twin_becomes_a_receipt,
    a_conflict_takes_over_the_identity,
    an_arrival_is_promoted_once,
);

const TEN: Duration = Duration::from_secs(10);

/// A route with that many dead deliveries.
async fn dead(bed: &Bed, count: usize) -> Route {
    let route = bed.route("billing", RouteRules::default()).await;
    for n in 0..count {
        bed.due(&format!("e{n}"), &[route]).await;
        bed.kill(&route).await;
    }
    route
}

async fn job(bed: &Bed) -> Replay {
    let filter = ReplayFilter { state: Some(State::Dead), ..ReplayFilter::default() };
    let job = Replay::new(filter, How::default(), 5, &act("mended"));
    bed.store.create_replay(&job, &act("mended")).await.unwrap();
    job
}

/// The next step of a job: a page of two.
async fn step(bed: &Bed, job: &Replay) -> ReplayStep {
    let page = bed.store.replay_page(&job.filter, job.cursor, 2).await.unwrap();
    ReplayStep {
        id: job.id,
        lease: job.lease,
        open: page.iter().map(|found| (found.delivery, found.state.is_none())).collect(),
        passed: 0,
        cursor: page.last().map(|found| found.delivery).or(job.cursor),
        done: page.len() < 2,
        how: job.how,
    }
}

async fn a_job_is_kept_whole(mut bed: Bed) {
    let route = dead(&bed, 1).await;
    let receipt = bed.receipts().await[0].receipt;
    let fill = |event_type: &str| Fill {
        route: route.no,
        source: bed.source,
        event_type: event_type.into(),
    };
    let filter = ReplayFilter {
        receipts: vec![receipt, bed.arrival("other", "{}").receipt],
        routes: vec![route.no],
        source: Some("stripe-live".into()),
        event_type: Some("invoice.*".into()),
        since: Some(time(NOON)),
        until: Some(time(NOON + 60)),
        state: Some(State::Dead),
        unrouted: true,
        fill: vec![fill("invoice.*"), fill("*")],
    };
    let how = How { force: true, ignore_stale: true };
    let made = Replay { rate: Some(25), ..Replay::new(filter, how, 17, &act("mended")) };
    bed.store.create_replay(&made, &act("mended")).await.unwrap();
    let plain = job(&bed).await;
    bed.reopen().await;
    assert_eq!(bed.store.replay(made.id).await.unwrap(), Some(made.clone()));
    assert_eq!(bed.store.replay(plain.id).await.unwrap(), Some(plain));
    let nobody = Replay::new(ReplayFilter::default(), how, 0, &act(""));
    assert_eq!(bed.store.replay(nobody.id).await.unwrap(), None);
    let audit = bed.store.audit(None, 10).await.unwrap();
    assert_eq!(audit[1].act, "replay.create");
    assert_eq!(audit[1].subject, made.id.to_string());
    assert_eq!(audit[1].why.as_deref(), Some("mended"));
}

async fn jobs_are_listed_newest_first(bed: Bed) {
    let mut ids = Vec::new();
    for n in 0..3 {
        let at = oncebox::store::Act { at: time(NOON + n), ..act("") };
        let job = Replay::new(ReplayFilter::default(), How::default(), 0, &at);
        bed.store.create_replay(&job, &at).await.unwrap();
        ids.push(job.id);
    }
    let listed = bed.store.replays(2).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|job| job.id).collect();
    assert_eq!(listed, [ids[2], ids[1]]);
}

async fn one_drives_a_job_at_a_time(bed: Bed) {
    dead(&bed, 1).await;
    let made = job(&bed).await;
    let mine = bed.store.take_replay(None, TEN).await.unwrap().expect("a job nobody drives");
    assert_eq!(mine.id, made.id);
    assert_ne!(mine.lease, made.lease);
    assert_eq!(bed.store.take_replay(None, TEN).await.unwrap(), None);
    assert_eq!(bed.store.take_replay(Some(made.id), TEN).await.unwrap(), None);
    bed.pass(11);
    let theirs = bed.store.take_replay(Some(made.id), TEN).await.unwrap().expect("taken over");
    assert!(theirs.lease > mine.lease);
}

async fn a_driver_whose_lease_ran_out_changes_nothing(bed: Bed) {
    let route = dead(&bed, 3).await;
    let made = job(&bed).await;
    let slow = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    let late = step(&bed, &slow).await;
    bed.pass(11);
    assert_eq!(bed.store.step_replay(&late).await.unwrap(), None);
    let heir = bed.store.take_replay(None, TEN).await.unwrap().unwrap();
    assert_eq!(bed.store.step_replay(&late).await.unwrap(), None);
    assert_eq!(bed.states(&route).await, ["e0 dead", "e1 dead", "e2 dead"]);
    let kept = bed.store.replay(made.id).await.unwrap().unwrap();
    assert_eq!((kept.opened, kept.passed, kept.cursor), (0, 0, None));
    let good = step(&bed, &heir).await;
    let done = bed.store.step_replay(&good).await.unwrap();
    assert_eq!(done, Some(vec![Reopened::Opened; 2]));
    assert_eq!(bed.store.step_replay(&late).await.unwrap(), None);
    assert_eq!(bed.query("SELECT max(replays) FROM deliveries"), "1");
}

async fn a_step_renews_the_lease(bed: Bed) {
    dead(&bed, 3).await;
    let made = job(&bed).await;
    let mut mine = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    bed.pass(8);
    let first = step(&bed, &mine).await;
    assert!(bed.store.step_replay(&first).await.unwrap().is_some());
    mine.cursor = first.cursor;
    bed.pass(8);
    assert_eq!(bed.store.take_replay(None, TEN).await.unwrap(), None);
    let second = step(&bed, &mine).await;
    assert!(bed.store.step_replay(&second).await.unwrap().is_some());
}

async fn a_cancelled_job_stops(bed: Bed) {
    let route = dead(&bed, 3).await;
    let made = job(&bed).await;
    let mine = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    let step = step(&bed, &mine).await;
    assert!(bed.store.cancel_replay(made.id, &act("too many")).await.unwrap());
    assert_eq!(bed.store.step_replay(&step).await.unwrap(), None);
    assert_eq!(bed.states(&route).await, ["e0 dead", "e1 dead", "e2 dead"]);
    bed.pass(11);
    assert_eq!(bed.store.take_replay(None, TEN).await.unwrap(), None);
    assert_eq!(bed.store.take_replay(Some(made.id), TEN).await.unwrap(), None);
    assert_eq!(bed.store.replay(made.id).await.unwrap().unwrap().phase, Phase::Cancelled);
    let audit = bed.store.audit(None, 10).await.unwrap();
    assert_eq!((audit[0].act.as_str(), &audit[0].subject), ("replay.cancel", &made.id.to_string()));
    assert!(!bed.store.cancel_replay(made.id, &act("again")).await.unwrap());
    assert_eq!(bed.store.audit(None, 10).await.unwrap().len(), audit.len());
}

/// Each step by another driver: nothing is repeated, nothing left out.
async fn a_job_goes_on_after_a_crash(mut bed: Bed) {
    let route = dead(&bed, 5).await;
    let made = job(&bed).await;
    let mut steps = 0;
    while let Some(driver) = bed.store.take_replay(None, TEN).await.unwrap() {
        let step = step(&bed, &driver).await;
        assert!(bed.store.step_replay(&step).await.unwrap().is_some());
        let kept = bed.store.replay(made.id).await.unwrap().unwrap();
        assert_eq!(kept.cursor, step.cursor);
        steps += 1;
        // The driver dies here, and with it the process.
        bed.reopen().await;
        bed.pass(60);
    }
    assert_eq!(steps, 3);
    let kept = bed.store.replay(made.id).await.unwrap().unwrap();
    assert_eq!((kept.phase, kept.opened, kept.passed), (Phase::Done, 5, 0));
    assert_eq!(bed.query("SELECT min(replays), max(replays), count(*) FROM deliveries"), "1|1|5");
    assert_eq!(bed.work_off(&route).await.len(), 5);
}

async fn a_job_that_is_through_is_not_taken(bed: Bed) {
    dead(&bed, 1).await;
    let made = job(&bed).await;
    let mine = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    let last = step(&bed, &mine).await;
    assert!(bed.store.step_replay(&last).await.unwrap().is_some());
    assert_eq!(bed.store.step_replay(&last).await.unwrap(), None);
    bed.pass(60);
    assert_eq!(bed.store.take_replay(None, TEN).await.unwrap(), None);
    assert!(!bed.store.cancel_replay(made.id, &act("too late")).await.unwrap());
    assert_eq!(bed.store.replay(made.id).await.unwrap().unwrap().phase, Phase::Done);
}

/// What the driver passed over, and what the store found it could not open.
async fn a_step_counts_what_it_did(bed: Bed) {
    let route = dead(&bed, 2).await;
    let processed = route.of(bed.due("done", &[route]).await);
    bed.work_off(&route).await;
    let made = job(&bed).await;
    let mine = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    let mut first = step(&bed, &mine).await;
    first.open.push((processed, false));
    first.passed = 4;
    let outcome = bed.store.step_replay(&first).await.unwrap().unwrap();
    let expected = [Reopened::Opened, Reopened::Opened, Reopened::Left(State::Processed)];
    assert_eq!(outcome, expected);
    let kept = bed.store.replay(made.id).await.unwrap().unwrap();
    assert_eq!((kept.planned, kept.opened, kept.passed), (5, 2, 5));
    // The same again, as by a driver that lost the answer: what is open is left.
    let again = bed.store.step_replay(&first).await.unwrap().unwrap();
    assert_eq!(again[..2], [Reopened::Left(State::Received); 2]);
    assert_eq!(bed.query("SELECT max(replays) FROM deliveries"), "1");
}

async fn what_a_step_opens_is_announced(bed: Bed) {
    dead(&bed, 1).await;
    let made = job(&bed).await;
    let mine = bed.store.take_replay(Some(made.id), TEN).await.unwrap().unwrap();
    let mut due = bed.store.due();
    due.mark_unchanged();
    let step = step(&bed, &mine).await;
    bed.store.step_replay(&step).await.unwrap();
    let announced = tokio::time::timeout(3 * TEN, due.changed()).await;
    announced.expect("an announcement").expect("the store is open");
}

/// It was genuine: it gets a receipt under its own id and body, and deliveries.
async fn a_twin_becomes_a_receipt(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let first = bed.unsigned("d-1", "body");
    let twin = Arrival { takers: vec![route.taker()], ..bed.unsigned("d-2", "body") };
    let (receipt, promoted) = (first.receipt, twin.receipt);
    let outcomes = bed.record(vec![first, twin.clone()]).await;
    assert_eq!(outcomes[1], Recorded::Twin { receipt });
    let aside = bed.store.odd_arrival(promoted).await.unwrap().unwrap();
    assert_eq!((aside.arrival.oddity, aside.receipt), (Oddity::Twin, receipt));
    assert_eq!((aside.source.as_str(), &aside.headers[..]), ("stripe-live", &twin.headers[..]));

    assert!(bed.store.promote(twin, &act("two orders")).await.unwrap());
    assert_eq!(bed.event_ids().await, ["d-1", "d-2"]);
    assert_eq!(bed.store.identity(bed.source, "d-2").await.unwrap(), Some(promoted));
    assert_eq!(bed.store.identity(bed.source, "d-1").await.unwrap(), Some(receipt));
    assert_eq!(bed.store.odd_arrival(promoted).await.unwrap(), None);
    assert!(bed.store.receipt(receipt).await.unwrap().unwrap().odd.is_empty());
    let claimed = bed.take(&route).await;
    assert_eq!(claimed.delivery, route.of(promoted));
    assert_eq!(claimed.event_id, "d-2");
    // Sent again it is a duplicate of its own receipt; the body still guards.
    let again = bed.record(vec![bed.unsigned("d-2", "body"), bed.unsigned("d-3", "body")]).await;
    assert_eq!(again[0], Recorded::Duplicate { receipt: promoted });
    assert!(matches!(again[1], Recorded::Twin { .. }), "{again:?}");
    let audit = bed.store.audit(None, 1).await.unwrap().remove(0);
    assert_eq!((audit.act.as_str(), audit.subject), ("receipt.promote", promoted.to_string()));
}

async fn a_conflict_takes_over_the_identity(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let wrong = bed.send(bed.event("evt_1", &[route])).await;
    let right = bed.with_body(bed.event("evt_1", &[route]), "the right one");
    let promoted = right.receipt;
    assert_eq!(bed.record(vec![right.clone()]).await, [Recorded::Conflict { receipt: wrong }]);
    assert!(bed.store.promote(right.clone(), &act("the first was a test")).await.unwrap());
    assert_eq!(bed.store.identity(bed.source, "evt_1").await.unwrap(), Some(promoted));
    assert_eq!(bed.store.receipt(promoted).await.unwrap().unwrap().body, b"the right one");
    let keys: Vec<_> =
        bed.take_all(&route).await.into_iter().map(|c| (c.delivery, c.key)).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!((keys[0].0, keys[1].0), (route.of(wrong), route.of(promoted)));
    assert_eq!(keys[0].1, keys[1].1);
    let again = Arrival { receipt: bed.arrival("x", "").receipt, ..right };
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt: promoted }]);
}

async fn an_arrival_is_promoted_once(bed: Bed) {
    let first = bed.arrival("evt_1", "one");
    let other = bed.arrival("evt_1", "other");
    bed.record(vec![first, other.clone()]).await;
    assert!(bed.store.promote(other.clone(), &act("")).await.unwrap());
    let before = bed.store.audit(None, 10).await.unwrap().len();
    assert!(!bed.store.promote(other, &act("")).await.unwrap());
    let nobody = bed.arrival("evt_2", "two");
    assert!(!bed.store.promote(nobody, &act("")).await.unwrap());
    assert_eq!(bed.receipts().await.len(), 2);
    assert_eq!(bed.store.audit(None, 10).await.unwrap().len(), before);
    assert_eq!(bed.store.identity(bed.source, "evt_2").await.unwrap(), None);
}
