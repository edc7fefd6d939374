//! What somebody else is at: it is waited for, and nobody is to blame.

use std::time::Duration;

use oncebox::delivery::{Claimed, Outcome};
use oncebox::effect::{EffectState, OnUnknown, Verdict};
use oncebox::handler::Event;
use oncebox::route::RouteRules;
use oncebox::worker::{BreakerState, Health};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Opened, act, key};
use tokio_postgres::NoTls;

use crate::bed::{Answer, Data, Op, Outside, Service, consumer, mark};

for_each_store!(
    a_call_that_somebody_makes_is_waited_for,
    a_key_that_somebody_is_at_is_waited_for,
    whoever_may_not_snooze_tries_again,
    a_key_of_unknown_outcome_is_left_to_a_person,
    a_key_of_unknown_outcome_is_free_once_its_call_is_made,
);

const KEY: &str = "refund:ch_1";

fn refund(answer: Answer) -> Op {
    let on_unknown = OnUnknown::Retry;
    Op::Call(Outside { key: KEY, is_step: false, on_unknown, answer })
}

/// Another service, whose delivery has begun a call that takes minutes.
async fn long_call(bed: &Bed) -> Claimed {
    let route = bed.route("refunds", RouteRules::default()).await;
    let claimed = bed.working_on("a1", &route).await;
    bed.begin(&claimed, &key(KEY)).await;
    claimed
}

/// Works a dozen times on a delivery that meets somebody: more often than it has attempts. Tells
/// the pauses in between, in milliseconds.
async fn meet(service: &Service) -> Vec<i64> {
    let mut pauses = Vec::new();
    for _ in 0..12 {
        assert_eq!(service.work().await, 1);
        pauses.push(service.pause());
        service.hurry();
    }
    assert_eq!(service.states().await, ["e1 retrying"]);
    assert_eq!(service.notes(), ["e1 snooze"; 12]);
    pauses
}

async fn a_call_that_somebody_makes_is_waited_for(bed: Bed) {
    let other = long_call(&bed).await;
    let service = Service::open(bed, |_| vec![refund(Answer::Done(12)), mark("told")]).await;
    let receipts = service.due(&["e1"]).await;
    let pauses = meet(&service).await;
    assert!(pauses[0] <= 1000, "{pauses:?}");
    assert!(pauses[11] > 60_000, "they grow: {pauses:?}");
    let row = service.bed.delivery(service.route.of(receipts[0])).await;
    assert_eq!((row.counts.failures, row.counts.snoozes), (0, 12));
    let detail = row.detail.expect("a reason");
    assert!(detail.contains("another delivery is just making the call `refund:ch_1`"), "{detail}");

    service.bed.complete(&other, &key(KEY), Some("11")).await;
    assert_eq!(service.work().await, 1);
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.notes(), ["refund:ch_1 came to 11", "e1 processed"]);
    assert_eq!(service.marks(), ["told"]);
}

async fn a_key_that_somebody_is_at_is_waited_for(bed: Bed) {
    let other = long_call(&bed).await;
    let service = Service::open(bed, |_| vec![mark("told"), Op::Once(KEY.into())]).await;
    let receipts = service.due(&["e1"]).await;
    meet(&service).await;
    assert_eq!(service.marks(), [""; 0]);
    let row = service.bed.delivery(service.route.of(receipts[0])).await;
    assert_eq!((row.counts.failures, row.counts.snoozes), (0, 12));
    assert!(row.detail.expect("a reason").contains("somebody has begun `refund:ch_1`"));

    service.bed.complete(&other, &key(KEY), Some("11")).await;
    assert_eq!(service.work().await, 1);
    assert_eq!(service.notes(), ["refund:ch_1 was done on refunds", "e1 processed"]);
    assert_eq!(service.marks(), ["told"]);
}

/// That somebody is in the way says nothing about whether it can succeed: it spends attempts where
/// there are no snoozes.
async fn whoever_may_not_snooze_tries_again(bed: Bed) {
    let other = long_call(&bed).await;
    let rules = RouteRules { max_snoozes: 0, max_attempts: 3, ..RouteRules::default() };
    let service = Service::under(bed, rules, |_| vec![mark("told"), Op::Once(KEY.into())]).await;
    let receipts = service.due(&["e1"]).await;
    for failures in [1, 2] {
        assert_eq!(service.work().await, 1);
        service.hurry();
        let row = service.bed.delivery(service.route.of(receipts[0])).await;
        assert_eq!((row.counts.failures, row.counts.snoozes), (failures, 0));
    }
    assert_eq!(service.states().await, ["e1 retrying"]);
    service.bed.complete(&other, &key(KEY), None).await;
    assert_eq!(service.work().await, 1);
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["told"]);
}

/// The first made a call that was never answered. Its key cannot be taken, and not be passed over.
async fn unknown(bed: Bed) -> Service {
    let hour = Duration::from_secs(3600);
    let rules = RouteRules { base: hour, cap: hour, ..RouteRules::default() };
    let plan = |event: &Event<Data>| match (event.event_id.as_str(), event.attempt) {
        ("e1", 1) => vec![refund(Answer::Silence)],
        ("e1", _) => vec![refund(Answer::Done(12))],
        _ => vec![mark("told"), Op::Once(KEY.into())],
    };
    let service = Service::under(bed, rules, plan).await;
    service.due(&["e1"]).await;
    service.work().await;
    service.due(&["e2"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 retrying", "e2 held:unknown-effect"]);
    assert_eq!(service.marks(), [""; 0]);
    let notes = ["called refund:ch_1, 0 unknown", "e1 retry", "e2 parked"];
    assert_eq!(service.notes(), notes);
    let effect = service.bed.effect(KEY).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1));
    service
}

async fn a_key_of_unknown_outcome_is_left_to_a_person(bed: Bed) {
    let service = unknown(bed).await;
    let verdict = Verdict::Done { result: Some("11".into()) };
    let why = act("found it in the dashboard");
    service.bed.store.settle_effect(KEY, &verdict, &why).await.unwrap();
    service.work().await;
    assert_eq!(service.states().await, ["e1 retrying", "e2 processed"]);
    assert_eq!(service.notes(), ["refund:ch_1 was done on billing", "e2 processed"]);
    assert_eq!(service.marks(), ["told"]);
}

async fn a_key_of_unknown_outcome_is_free_once_its_call_is_made(bed: Bed) {
    let service = unknown(bed).await;
    service.work_later().await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    let effect = service.bed.effect(KEY).await;
    assert_eq!((effect.state, effect.result.as_deref()), (EffectState::Done, Some("12")));
}

/// Half a dozen handlers wait for a key in vain, all at once, and then for a row of the service.
#[tokio::test(flavor = "multi_thread")]
async fn locks_of_others_on_postgresql_open_no_breaker() {
    const BRIEFLY: Op = Op::Run("SET LOCAL lock_timeout = '20ms'");
    let ids = ["e1", "e2", "e3", "e4", "e5", "e6"];
    for (holds, wants) in [
        (
            "INSERT INTO oncebox.effects (receipt, epoch, at, attempt, route, kind, state, key)
          VALUES (gen_random_uuid(), 1, now(), 1, 1, 'once', 'done', 'refund:ch_1')",
            Op::Once(KEY.into()),
        ),
        ("LOCK TABLE bookings", mark("told")),
    ] {
        let bed = Bed::postgres().await;
        let service = Service::open(bed, move |event| match event.attempt {
            1 => vec![BRIEFLY, wants.clone()],
            _ => vec![wants.clone()],
        })
        .await;
        let (mut other, connection) =
            tokio_postgres::connect(&service.bed.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let holding = other.transaction().await.unwrap();
        holding.batch_execute(holds).await.unwrap();
        let receipts = service.due(&ids).await;
        service.work().await;
        assert_eq!(service.worker.breakers()[0].1.state, BreakerState::Closed);
        for receipt in &receipts {
            let row = service.bed.delivery(service.route.of(*receipt)).await;
            assert_eq!((row.counts.failures, row.counts.snoozes), (0, 1), "{:?}", row.detail);
            assert!(row.detail.expect("a reason").contains("lock timeout"));
        }
        holding.rollback().await.unwrap();
        service.work_later().await;
        let states = service.states().await;
        assert!(states.iter().all(|state| state.ends_with(" processed")), "{states:?}");
    }
}

/// Another process writes to the file for longer than is waited for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_another_on_sqlite_is_nobodys_failure() {
    let service = Service::open(Bed::sqlite().await, |_| vec![mark("told")]).await;
    let Opened::Sqlite(store) = &service.bed.opened else { panic!("not on SQLite") };
    store.with(|db| db.busy_timeout(Duration::from_millis(5))).await.unwrap().unwrap();
    let receipts = service.due(&["e1"]).await;
    let claimed = service.bed.take(&service.route).await;
    let payload = service.bed.store.payloads(&receipts).await.unwrap().remove(0);

    let path = service.bed.url.strip_prefix("sqlite://").unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let handlers = consumer(&service.bed.opened, &service.script);
    let report = handlers.deliver(&claimed, payload.clone()).await;
    assert!(matches!(report.outcome, Outcome::Busy { .. }), "{report:?}");
    assert_eq!(report.health, Health::Well);
    assert!(report.detail.expect("a reason").contains("database is locked"));
    other.execute_batch("ROLLBACK").unwrap();
    let report = handlers.deliver(&claimed, payload).await;
    assert_eq!(report.outcome, Outcome::Processed);
    assert_eq!(service.marks(), ["told"]);
}
