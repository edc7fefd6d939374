//! Replay jobs: durable, driven by one process at a time, resumed by any other.

use std::time::Duration;

use oncebox::delivery::State;
use oncebox::replay::{Fill, How, Phase, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
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
        odd: true,
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
