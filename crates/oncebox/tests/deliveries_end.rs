//! The end of an attempt: outcomes under a good lease, zombies under a bad one, and workers that
//! never came back.

use std::sync::Arc;
use std::time::Duration;

use oncebox::delivery::{Claimed, Counts, DeliveryId, Lease, Next, Reason, State};
use oncebox::limits;
use oncebox::route::RouteRules;
use oncebox::store::{
    AttemptRow, BreakerNote, BreakerRow, Finish, Pick, Rescued, Standing, Wanted,
};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Route, ending};

for_each_store!(
    what_is_processed_leaves_the_queue,
    a_stale_ending_is_skipped,
    a_retry_is_due_later,
    a_snooze_is_counted_apart,
    a_dead_delivery_stays,
    a_returned_lease_refunds_the_attempt,
    a_return_after_a_failure_is_a_retry,
    endings_are_told_apart,
    one_of_two_endings_wins,
    a_lease_that_ran_out_changes_nothing,
    a_lease_that_was_taken_over_changes_nothing,
    an_extended_lease_lasts_longer,
    a_rescue_counts_a_crash,
    a_lost_delivery_is_claimed_alone,
    a_lost_delivery_that_is_returned_is_still_claimed_alone,
    a_lost_delivery_hides_nothing_behind_it,
    a_poison_event_ends_in_dead,
    snoozes_do_not_spend_attempts,
    a_rescue_stays_within_its_limit,
    a_rescue_looks_at_every_route,
    every_attempt_is_told,
    details_are_cut_and_cleaned,
    haste_is_made_once_in_a_while,
    a_mass_crash_needs_few_claims,
    a_poison_event_charges_its_neighbours_once,
    a_route_may_have_shorter_leases,
    the_time_it_was_tried_is_kept,
    what_never_failed_is_claimed_first,
    breakers_are_told_and_forgotten,
);

const SECOND: Duration = Duration::from_secs(1);

/// Every way an attempt can end.
const NEXTS: [Next; 6] = [
    Next::Processed,
    Next::Stale,
    Next::Retry(SECOND),
    Next::Snooze(SECOND),
    Next::Dead,
    Next::Return,
];

async fn plain(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// One event on a plain route, and its first claim.
async fn claimed(bed: &Bed) -> (Route, Claimed) {
    let route = plain(bed).await;
    bed.due("e1", &[route]).await;
    let claimed = bed.take(&route).await;
    (route, claimed)
}

async fn counts(bed: &Bed, delivery: DeliveryId) -> Counts {
    bed.delivery(delivery).await.counts
}

/// Number and outcome of every attempt, such as `1 retry`.
fn told(attempts: &[AttemptRow]) -> Vec<String> {
    attempts.iter().map(|attempt| format!("{} {}", attempt.number, attempt.outcome)).collect()
}

async fn what_is_processed_leaves_the_queue(mut bed: Bed) {
    let (_, claimed) = claimed(&bed).await;
    let mut ending = ending(&claimed, Next::Processed);
    ending.status = Some(204);
    ending.summary = Some("credited 5 EUR".into());
    assert_eq!(bed.store.finish(vec![ending]).await.unwrap(), [Finish::Done]);
    bed.reopen().await;

    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1));
    let row = bed.delivery(claimed.delivery).await;
    assert_eq!((row.state, row.reason), (State::Processed, None));
    assert_eq!(row.counts, Counts { attempts: 1, ..Counts::default() });
    assert_eq!(row.summary.as_deref(), Some("credited 5 EUR"));
    assert!(row.finished_at.is_some());
    assert_eq!((row.due_at, row.lease_until, row.worker), (None, None, None));
    let view = bed.receipts().await.remove(0).deliveries.remove(0);
    assert_eq!((view.state.as_str(), view.attempts), ("processed", 1));
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 processed"]);
    assert_eq!(attempts[0].status, Some(204));
    assert_eq!(attempts[0].took, Some(Duration::from_millis(12)));
    let standing = bed.store.standing(claimed.delivery).await.unwrap().unwrap();
    assert_eq!((standing.state, standing.attempts), (State::Processed, 1));
}

async fn a_stale_ending_is_skipped(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    assert!(bed.finish(&claimed, Next::Stale).await);
    assert_eq!(bed.states(&route).await, ["e1 skipped:stale"]);
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 stale"]);
    let standing = bed.store.standing(claimed.delivery).await.unwrap().unwrap();
    assert_eq!((standing.state, standing.reason), (State::Skipped, Some(Reason::Stale)));
}

async fn a_retry_is_due_later(bed: Bed) {
    let (route, first) = claimed(&bed).await;
    let mut failed = ending(&first, Next::Retry(100 * SECOND));
    failed.detail = Some("the customer is not there yet".into());
    assert_eq!(bed.store.finish(vec![failed]).await.unwrap(), [Finish::Done]);

    let row = bed.delivery(first.delivery).await;
    assert_eq!(row.state, State::Retrying);
    let tried = Duration::from_millis(100_012);
    assert_eq!(row.counts, Counts { attempts: 1, failures: 1, tried, ..Counts::default() });
    assert_eq!(row.detail.as_deref(), Some("the customer is not there yet"));
    assert!(row.due_at.is_some());
    assert_eq!((row.lease_until, row.worker), (None, None));
    bed.pass(98);
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    bed.pass(2);
    let second = bed.take(&route).await;
    assert_eq!(second.counts, Counts { attempts: 2, failures: 1, tried, ..Counts::default() });
    assert!(second.lease > first.lease);
    assert_eq!(second.key, first.key);
}

async fn a_snooze_is_counted_apart(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    assert!(bed.finish(&claimed, Next::Snooze(10 * SECOND)).await);
    let snoozed = Counts { attempts: 1, snoozes: 1, ..Counts::default() };
    assert_eq!(counts(&bed, claimed.delivery).await, snoozed);
    assert_eq!(bed.states(&route).await, ["e1 retrying"]);
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    bed.pass(10);
    assert_eq!(bed.take(&route).await.counts.spent(), 1);
}

async fn a_dead_delivery_stays(mut bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    let mut ending = ending(&claimed, Next::Dead);
    ending.status = Some(422);
    ending.detail = Some("no such plan".into());
    bed.store.finish(vec![ending]).await.unwrap();
    bed.reopen().await;
    bed.pass(1_000_000);
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    assert_eq!(bed.store.rescue(10).await.unwrap(), Rescued::default());
    let row = bed.delivery(claimed.delivery).await;
    assert_eq!(row.state, State::Dead);
    assert_eq!(row.counts, Counts { attempts: 1, failures: 1, ..Counts::default() });
    assert_eq!(row.detail.as_deref(), Some("no such plan"));
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 dead"]);
    assert_eq!(attempts[0].status, Some(422));
    assert_eq!(bed.rows("finished"), 0);
}

async fn a_returned_lease_refunds_the_attempt(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    assert!(bed.finish(&claimed, Next::Return).await);
    assert_eq!(bed.states(&route).await, ["e1 received"]);
    assert_eq!(counts(&bed, claimed.delivery).await, Counts::default());
    assert!(bed.store.attempts(claimed.delivery.receipt).await.unwrap().is_empty());
    assert_eq!(bed.take(&route).await.counts.attempts, 1);
}

async fn a_return_after_a_failure_is_a_retry(bed: Bed) {
    let (route, first) = claimed(&bed).await;
    assert!(bed.finish(&first, Next::Retry(SECOND)).await);
    bed.pass(1);
    let second = bed.take(&route).await;
    assert!(bed.finish(&second, Next::Return).await);
    assert_eq!(bed.states(&route).await, ["e1 retrying"]);
    let tried = Duration::from_millis(1012);
    let failed = Counts { attempts: 1, failures: 1, tried, ..Counts::default() };
    assert_eq!(counts(&bed, first.delivery).await, failed);
    assert_eq!(bed.take(&route).await.counts.attempts, 2);
}

/// One batch with good and bad leases, in any order, of several kinds.
async fn endings_are_told_apart(bed: Bed) {
    let route = plain(&bed).await;
    bed.record(["e1", "e2", "e3", "e4"].map(|id| bed.event(id, &[route])).into()).await;
    let claims = bed.take_all(&route).await;
    let mut wrong = ending(&claims[1], Next::Processed);
    wrong.lease = Lease(wrong.lease.0 ^ 1);
    let mut unknown = ending(&claims[0], Next::Processed);
    unknown.delivery.receipt = bed.arrival("nobody", "{}").receipt;
    let batch = vec![
        unknown,
        ending(&claims[3], Next::Retry(SECOND)),
        wrong,
        ending(&claims[0], Next::Processed),
        ending(&claims[0], Next::Dead),
        ending(&claims[0], Next::Processed),
        ending(&claims[2], Next::Dead),
    ];
    let done = bed.store.finish(batch).await.unwrap();
    let (good, before, lost) = (Finish::Done, Finish::Before, Finish::Lost);
    assert_eq!(done, [lost, good, lost, good, lost, before, good]);
    let states = ["e1 processed", "e2 processing", "e3 dead", "e4 retrying"];
    assert_eq!(bed.states(&route).await, states);
    let again = vec![ending(&claims[2], Next::Dead), ending(&claims[1], Next::Processed)];
    assert_eq!(bed.store.finish(again.clone()).await.unwrap(), [before, good]);
    assert_eq!(bed.store.finish(again).await.unwrap(), [before, before]);
    assert!(bed.store.finish(Vec::new()).await.unwrap().is_empty());
}

/// The same lease ended twice at the same time: once.
async fn one_of_two_endings_wins(bed: Bed) {
    let (_, claimed) = claimed(&bed).await;
    let bed = Arc::new(bed);
    let mut tasks = tokio::task::JoinSet::new();
    for next in [Next::Processed, Next::Dead, Next::Retry(SECOND), Next::Return] {
        let (bed, claimed) = (bed.clone(), claimed.clone());
        tasks.spawn(async move { bed.finish(&claimed, next).await });
    }
    let done = tasks.join_all().await;
    assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
    assert_eq!(bed.rows("deliveries") + bed.rows("finished"), 1);
}

/// Nobody has rescued it yet; still, the lease is over by the store's clock.
async fn a_lease_that_ran_out_changes_nothing(bed: Bed) {
    let (_, zombie) = claimed(&bed).await;
    bed.pass(61);
    let before = bed.delivery(zombie.delivery).await;
    for next in NEXTS {
        assert!(!bed.finish(&zombie, next).await, "{next:?}");
    }
    let leases = [(zombie.delivery, zombie.lease)];
    assert_eq!(bed.extend(&leases).await, [false]);
    assert_eq!(bed.delivery(zombie.delivery).await, before);
    assert_eq!((bed.rows("finished"), bed.rows("attempts")), (0, 0));
}

/// SIGSTOP past the lease, then SIGCONT.
async fn a_lease_that_was_taken_over_changes_nothing(bed: Bed) {
    let (route, zombie) = claimed(&bed).await;
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    for next in NEXTS {
        assert!(!bed.finish(&zombie, next).await, "{next:?} after the rescue");
    }
    let heir = bed.take(&route).await;
    assert_eq!(heir.key, zombie.key);
    let before = bed.delivery(heir.delivery).await;
    for next in NEXTS {
        assert!(!bed.finish(&zombie, next).await, "{next:?} after the next claim");
    }
    let leases = [(zombie.delivery, zombie.lease), (heir.delivery, heir.lease)];
    assert_eq!(bed.extend(&leases[..1]).await, [false]);
    assert_eq!(bed.delivery(heir.delivery).await, before);

    assert_eq!(bed.extend(&leases).await, [false, true]);
    assert!(bed.finish(&heir, Next::Processed).await);
    assert!(!bed.finish(&zombie, Next::Processed).await);
    let attempts = bed.store.attempts(heir.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 lost", "2 processed"]);
}

async fn an_extended_lease_lasts_longer(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    let lease = [(claimed.delivery, claimed.lease)];
    for _ in 0..3 {
        bed.pass(50);
        assert_eq!(bed.extend(&lease).await, [true]);
    }
    bed.pass(50);
    assert_eq!(bed.store.rescue(10).await.unwrap(), Rescued::default());
    assert_eq!(bed.states(&route).await, ["e1 processing"]);
    assert!(bed.finish(&claimed, Next::Processed).await);
    assert_eq!(bed.extend(&lease).await, [false]);
    assert!(bed.extend(&[]).await.is_empty());
}

async fn a_rescue_counts_a_crash(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    assert_eq!(bed.store.rescue(10).await.unwrap(), Rescued::default());
    bed.pass(61);
    let rescued = bed.store.rescue(10).await.unwrap();
    assert_eq!(rescued, Rescued { retrying: vec![claimed.delivery], dead: Vec::new() });
    let row = bed.delivery(claimed.delivery).await;
    assert_eq!(row.state, State::Retrying);
    assert_eq!(row.counts, Counts { attempts: 1, crashes: 1, ..Counts::default() });
    assert_eq!((row.lease_until, row.worker), (None, None));
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 lost"]);
    assert_eq!(attempts[0].took, None);
    assert!(attempts[0].detail.as_deref().is_some_and(|detail| detail.contains("lease")));
    assert_eq!(bed.store.rescue(10).await.unwrap(), Rescued::default());
    let crashed = Counts { attempts: 2, crashes: 1, ..Counts::default() };
    assert_eq!(bed.take(&route).await.counts, crashed);
}

/// A poison event must not charge its neighbours for the workers it kills.
async fn a_lost_delivery_is_claimed_alone(bed: Bed) {
    let route = plain(&bed).await;
    let other = bed.route("other", RouteRules::default()).await;
    for id in ["e1", "e2", "e3"] {
        bed.due(id, &[route, other]).await;
    }
    let lost = bed.take(&route).await;
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    let claims = bed.claim_many(vec![route.wanted(10), other.wanted(10)]).await.claimed;
    let on = |route: &Route| claims.iter().filter(|c| c.delivery.route == route.no).count();
    assert_eq!((on(&route), on(&other)), (1, 3));
    assert!(claims.iter().any(|claimed| claimed.delivery == lost.delivery));
    // Its failure is an ordinary one, and it comes back among others.
    let again = claims.iter().find(|claimed| claimed.delivery == lost.delivery).unwrap();
    assert!(bed.finish(again, Next::Retry(SECOND)).await);
    bed.pass(1);
    assert_eq!(bed.claim(&route, 10).await.claimed.len(), 3);
}

/// It was not tried meanwhile, and may still be what kills workers.
async fn a_lost_delivery_that_is_returned_is_still_claimed_alone(bed: Bed) {
    let route = plain(&bed).await;
    bed.due("e1", &[route]).await;
    bed.take(&route).await;
    bed.due("e2", &[route]).await;
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    let alone = bed.take(&route).await;
    assert!(bed.finish(&alone, Next::Return).await);
    let again = bed.claim(&route, 10).await.claimed;
    assert_eq!((again.len(), again[0].delivery), (1, alone.delivery));
}

/// What waited behind it since long ago is claimed by the very next claim.
async fn a_lost_delivery_hides_nothing_behind_it(bed: Bed) {
    let route = plain(&bed).await;
    for id in ["e1", "e2", "e3"] {
        bed.due(id, &[route]).await;
        bed.backdate(id, 60_000);
    }
    assert_eq!(bed.take(&route).await.event_id, "e1");
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    let alone = bed.claim(&route, 10).await.claimed;
    assert_eq!((alone.len(), alone[0].event_id.as_str()), (1, "e1"));
    assert_eq!(bed.claim(&route, 10).await.claimed.len(), 2);
}

async fn a_poison_event_ends_in_dead(bed: Bed) {
    let route = bed.route("billing", RouteRules { max_attempts: 3, ..Default::default() }).await;
    let poison = route.of(bed.due("e1", &[route]).await);
    for attempt in 1..=3 {
        assert_eq!(bed.take(&route).await.counts.attempts, attempt);
        bed.pass(61);
        let rescued = bed.store.rescue(10).await.unwrap();
        let (retrying, dead) =
            if attempt < 3 { (vec![poison], vec![]) } else { (vec![], vec![poison]) };
        assert_eq!(rescued, Rescued { retrying, dead });
    }
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
    let row = bed.delivery(poison).await;
    assert_eq!(row.state, State::Dead);
    assert_eq!((row.counts.attempts, row.counts.crashes), (3, 3));
    assert!(row.detail.is_some());
    let attempts = bed.store.attempts(poison.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 lost", "2 lost", "3 lost"]);
}

async fn snoozes_do_not_spend_attempts(bed: Bed) {
    let route = bed.route("billing", RouteRules { max_attempts: 2, ..Default::default() }).await;
    let delivery = route.of(bed.due("e1", &[route]).await);
    for _ in 0..3 {
        let claimed = bed.take(&route).await;
        assert!(bed.finish(&claimed, Next::Snooze(SECOND)).await);
        bed.pass(1);
    }
    bed.take(&route).await;
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying, [delivery]);
    bed.take(&route).await;
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().dead, [delivery]);
}

async fn a_rescue_stays_within_its_limit(bed: Bed) {
    let route = plain(&bed).await;
    bed.record((0..5).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    assert_eq!(bed.take_all(&route).await.len(), 5);
    bed.pass(61);
    let mut sizes = Vec::new();
    while sizes.len() < 4 {
        sizes.push(bed.store.rescue(2).await.unwrap().retrying.len());
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
    assert_eq!(bed.query("SELECT min(crashes), max(crashes) FROM deliveries"), "1|1");
}

/// Paused or not: a rescue gives nobody work.
async fn a_rescue_looks_at_every_route(bed: Bed) {
    let (route, claimed) = claimed(&bed).await;
    bed.store.pause_route("billing", true, &oncebox_testkit::store::act("")).await.unwrap();
    bed.pass(61);
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying, [claimed.delivery]);
    assert!(bed.claim(&route, 5).await.claimed.is_empty());
}

async fn every_attempt_is_told(bed: Bed) {
    let (route, mut claimed) = claimed(&bed).await;
    let detail = |n: u16| Some(format!("answer {n}"));
    for (n, next) in [(1, Next::Retry(SECOND)), (2, Next::Snooze(SECOND)), (3, Next::Dead)] {
        let mut ending = ending(&claimed, next);
        (ending.status, ending.detail) = (Some(500 + n), detail(n));
        ending.took = Duration::from_millis(u64::from(n));
        assert_eq!(bed.store.finish(vec![ending]).await.unwrap(), [Finish::Done]);
        if n < 3 {
            bed.pass(1);
            claimed = bed.take(&route).await;
        }
    }
    let attempts = bed.store.attempts(claimed.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 retry", "2 snooze", "3 dead"]);
    for (n, attempt) in (1..).zip(&attempts) {
        assert_eq!((attempt.route.as_str(), attempt.replays), ("billing", 0));
        assert_eq!(attempt.status, Some(500 + n));
        assert_eq!(attempt.detail, detail(n));
        assert_eq!(attempt.took, Some(Duration::from_millis(u64::from(n))));
    }
    assert!(attempts.windows(2).all(|pair| pair[0].ended_at <= pair[1].ended_at));
}

/// Too long, ending inside a character, and with a byte that PostgreSQL refuses.
async fn details_are_cut_and_cleaned(bed: Bed) {
    let (route, first) = claimed(&bed).await;
    let long = format!("a\0b{}", "ü".repeat(limits::DETAIL_BYTES));
    let mut failed = ending(&first, Next::Retry(SECOND));
    failed.detail = Some(long.clone());
    assert_eq!(bed.store.finish(vec![failed]).await.unwrap(), [Finish::Done]);
    let kept = bed.delivery(first.delivery).await.detail.unwrap();
    assert!(kept.starts_with("abüü") && kept.len() <= limits::DETAIL_BYTES, "{kept}");
    assert!(kept.len() > limits::DETAIL_BYTES - 4);

    bed.pass(1);
    let second = bed.take(&route).await;
    let mut done = ending(&second, Next::Processed);
    (done.detail, done.summary) = (Some(long.clone()), Some(long));
    assert_eq!(bed.store.finish(vec![done]).await.unwrap(), [Finish::Done]);
    let row = bed.delivery(first.delivery).await;
    assert_eq!(row.summary.as_deref(), Some(kept.as_str()));
    for attempt in bed.store.attempts(first.delivery.receipt).await.unwrap() {
        assert_eq!(attempt.detail.as_deref(), Some(kept.as_str()));
    }
}

/// A copy of the event makes its retry due now, but not more than once a minute.
async fn haste_is_made_once_in_a_while(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let delivery = route.of(bed.due("e1", &[route]).await);
    let standing = |state, attempts| Some(Standing { state, reason: None, attempts });
    let fail = async || {
        let claimed = bed.take(&route).await;
        assert!(bed.finish(&claimed, Next::Retry(3600 * SECOND)).await);
    };
    fail().await;
    let hastened = bed.store.hasten(delivery, LEASE).await.unwrap();
    assert_eq!(hastened, standing(State::Retrying, 1));
    fail().await;
    // Too soon: it waits for its time.
    bed.pass(58);
    let hastened = bed.store.hasten(delivery, LEASE).await.unwrap();
    assert_eq!(hastened, standing(State::Retrying, 2));
    assert_eq!(bed.take_if_any(&route).await, None);
    bed.pass(2);
    bed.store.hasten(delivery, LEASE).await.unwrap();
    assert_eq!(bed.take(&route).await.counts.attempts, 3);
}

/// One process serves a file, so whoever had a lease when it is opened again is gone.
#[tokio::test(flavor = "multi_thread")]
async fn leases_are_void_when_sqlite_starts() {
    let mut bed = Bed::sqlite().await;
    let (route, first) = claimed(&bed).await;
    bed.reopen().await;
    assert!(!bed.finish(&first, Next::Processed).await);
    let again = bed.take(&route).await;
    assert_eq!(again.counts, Counts { attempts: 2, crashes: 1, ..Counts::default() });
    let attempts = bed.store.attempts(first.delivery.receipt).await.unwrap();
    assert_eq!(told(&attempts), ["1 lost"]);
}

/// Others may be at work on PostgreSQL, so a start changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn leases_outlive_a_start_on_postgres() {
    let mut bed = Bed::postgres().await;
    let (route, first) = claimed(&bed).await;
    bed.reopen().await;
    assert_eq!(bed.states(&route).await, ["e1 processing"]);
    assert!(bed.finish(&first, Next::Processed).await);
}

/// Takes everything that is due, `most` at a time, and says how many claims that took.
async fn take_by(bed: &Bed, route: &Route, most: usize) -> (usize, Vec<Claimed>) {
    let (mut claims, mut all) = (0, Vec::new());
    loop {
        let claimed = bed.claim(route, most).await.claimed;
        if claimed.is_empty() {
            return (claims, all);
        }
        claims += 1;
        all.extend(claimed);
    }
}

/// Has every lease run out.
async fn lose_all(bed: &Bed) {
    bed.pass(61);
    while bed.store.rescue(limits::CLAIM_ROWS).await.unwrap() != Rescued::default() {}
}

async fn a_mass_crash_needs_few_claims(bed: Bed) {
    let route = plain(&bed).await;
    let ordered = RouteRules { ordered: true, ..RouteRules::default() };
    let ordered = bed.route("ordered", ordered).await;
    for start in [0, 100, 200] {
        let ids = start..start + 100;
        let event = |n: i32| bed.event(&format!("e{n}"), &[route, ordered]);
        bed.record(ids.map(event).collect()).await;
    }
    for route in [route, ordered] {
        assert_eq!(take_by(&bed, &route, 50).await.1.len(), 300);
    }
    lose_all(&bed).await;
    for route in [route, ordered] {
        let (claims, claimed) = take_by(&bed, &route, 50).await;
        assert_eq!((claims, claimed.len()), (6, 300));
    }
}

/// One of ten kills every worker that has it. The others are charged for the first time only.
async fn a_poison_event_charges_its_neighbours_once(bed: Bed) {
    let route = bed.route("billing", RouteRules { max_attempts: 4, ..Default::default() }).await;
    bed.record((0..10).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let claimed = bed.claim(&route, 16).await.claimed;
        sizes.push(claimed.len());
        lose_all(&bed).await;
    }
    assert_eq!(sizes, [10, 10, 2], "groups of suspects shrink");
    let charged = "SELECT min(attempts), max(attempts) FROM deliveries";
    assert_eq!(bed.query(charged), "1|1");
    let mut processed = 0;
    while let Some(claimed) = bed.take_if_any(&route).await {
        match claimed.event_id.as_str() {
            "e0" => lose_all(&bed).await,
            _ => {
                assert_eq!(claimed.counts.attempts, 2, "{}", claimed.event_id);
                assert!(bed.finish(&claimed, Next::Processed).await);
                processed += 1;
            }
        }
    }
    assert_eq!(processed, 9);
    let states: Vec<_> = bed.states(&route).await.into_iter().take(1).collect();
    assert_eq!(states, ["e0 dead"]);
    assert_eq!(bed.query("SELECT attempts FROM deliveries"), "4");
}

async fn a_route_may_have_shorter_leases(bed: Bed) {
    let quick = plain(&bed).await;
    let ordered = RouteRules { ordered: true, ..RouteRules::default() };
    let (slow, ordered) =
        (bed.route("slow", RouteRules::default()).await, bed.route("ordered", ordered).await);
    bed.due("e1", &[quick, slow, ordered]).await;
    let short = |route: Route| Wanted { lease: Some(7 * SECOND), ..route.wanted(1) };
    let wanted = vec![short(quick), slow.wanted(1), short(ordered)];
    assert_eq!(bed.claim_many(wanted).await.claimed.len(), 3);
    bed.pass(8);
    let mut rescued = bed.store.rescue(10).await.unwrap().retrying;
    rescued.sort_by_key(|delivery| delivery.route);
    let routes: Vec<_> = rescued.iter().map(|delivery| delivery.route).collect();
    assert_eq!(routes, [quick.no, ordered.no]);
}

/// Attempts and pauses count, and nothing that it waits for beyond them.
async fn the_time_it_was_tried_is_kept(bed: Bed) {
    let (route, first) = claimed(&bed).await;
    assert!(bed.finish(&first, Next::Retry(10 * SECOND)).await);
    bed.pass(3600);
    let second = bed.take(&route).await;
    assert_eq!(second.counts.tried, Duration::from_millis(10_012));
    assert!(bed.finish(&second, Next::Snooze(60 * SECOND)).await);
    bed.pass(60);
    let third = bed.take(&route).await;
    assert_eq!(third.counts.tried, Duration::from_millis(10_012));
    assert_eq!(bed.delivery(third.delivery).await.counts.tried, third.counts.tried);
    assert!(bed.finish(&third, Next::Return).await);
    assert_eq!(bed.take(&route).await.counts.tried, third.counts.tried);
}

/// A destination is tried with what never failed, then with what failed longest ago.
async fn what_never_failed_is_claimed_first(bed: Bed) {
    let ordered = RouteRules { ordered: true, ..RouteRules::default() };
    for (name, rules) in [("plain", RouteRules::default()), ("ordered", ordered)] {
        let route = bed.route(name, rules).await;
        bed.record((0..3).map(|n| bed.event(&format!("{name}{n}"), &[route])).collect()).await;
        let failed = bed.claim(&route, 3).await.claimed;
        for (n, pause) in [(1, 1), (2, 9), (0, 1)] {
            assert!(bed.finish(&failed[n], Next::Retry(pause * SECOND)).await);
            bed.pass(1);
        }
        bed.pass(9);
        bed.due(&format!("{name}-new"), &[route]).await;
        let picked = async |pick| {
            let wanted = Wanted { pick, ..route.wanted(1) };
            let claimed = bed.claim_many(vec![wanted]).await.claimed;
            claimed.into_iter().next().map(|claimed| claimed.event_id)
        };
        let new = Some(format!("{name}-new"));
        assert_eq!(picked(Pick::OnlyUnfailed).await, new);
        assert_eq!(picked(Pick::OnlyUnfailed).await, None);
        for n in [1, 2, 0] {
            assert_eq!(picked(Pick::UnfailedFirst).await, Some(format!("{name}{n}")));
        }
        assert_eq!(picked(Pick::UnfailedFirst).await, None);
    }
}

async fn breakers_are_told_and_forgotten(bed: Bed) {
    let route = plain(&bed).await;
    let other = bed.route("other", RouteRules::default()).await;
    let note = |route: Route, state| BreakerNote {
        route: route.no,
        state,
        reason: "5 connections failed in a row".into(),
        next_probe: Some(8 * SECOND),
    };
    let shown = async || {
        let rows = bed.store.breakers().await.unwrap();
        let show = |row: &BreakerRow| format!("{} {} {}", row.route.0, row.worker, row.state);
        rows.iter().map(show).collect::<Vec<_>>()
    };
    let both = [note(route, "open"), note(other, "half-open")];
    bed.store.tell_breakers("w1", &both).await.unwrap();
    bed.store.tell_breakers("w2", &both[..1]).await.unwrap();
    let (one, two) = (route.no.0, other.no.0);
    let all = [format!("{one} w1 open"), format!("{one} w2 open"), format!("{two} w1 half-open")];
    assert_eq!(shown().await, all);
    let row = bed.store.breakers().await.unwrap().remove(0);
    assert_eq!(row.reason, "5 connections failed in a row");
    let until_probe = row.next_probe_at.unwrap().duration_since(row.told_at);
    assert_eq!(until_probe.as_secs(), 8);

    bed.store.tell_breakers("w1", &[note(other, "ramping")]).await.unwrap();
    assert_eq!(shown().await, [format!("{one} w2 open"), format!("{two} w1 ramping")]);
    bed.store.tell_breakers("w1", &[]).await.unwrap();
    bed.store.tell_breakers("w2", &[]).await.unwrap();
    assert_eq!(shown().await, [""; 0]);
}
