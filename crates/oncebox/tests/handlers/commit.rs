//! All of it commits, or none.

use std::time::Duration;

use oncebox::effect::EffectState;
use oncebox::handler::Decision;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;

use crate::bed::{Op, Service, mail, mark};

for_each_store!(
    everything_commits_together,
    a_handler_that_writes_nothing_is_done_all_the_same,
    an_error_takes_everything_back,
    a_panic_takes_everything_back,
    a_lost_lease_takes_everything_back,
    decisions_lead_where_they_say,
    the_same_event_is_handled_once,
    different_events_have_one_effect,
    workers_that_race_have_one_effect,
    an_older_event_is_stale,
    a_replay_repeats_nothing,
    a_message_is_written_once,
    a_follower_goes_on_once_its_leader_has_committed,
);

/// Everything a handler can write.
fn everything(id: &str) -> Vec<Op> {
    vec![
        mark(id),
        Op::Once(format!("paid:{id}")),
        Op::Step("reserve", 7),
        mail(&format!("receipt:{id}")),
        Op::Advance("in_456", 7),
    ]
}

async fn everything_commits_together(bed: Bed) {
    let service = Service::open(bed, |event| everything(&event.event_id)).await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1", "paid:e1", "reserve"]);
    assert_eq!(service.messages().await, ["receipt:e1 received"]);
    let row = service.bed.delivery(service.route.of(receipts[0])).await;
    assert_eq!(row.summary.as_deref(), Some("e1 is done"));
    let effect = service.bed.effect("paid:e1").await;
    assert_eq!((effect.state, effect.delivery), (EffectState::Done, row.delivery));
    assert_eq!(service.bed.query("SELECT object, applied FROM lanes"), "in_456|7");
    assert_eq!(service.notes(), ["first at paid:e1", "sent", "e1 processed"]);
}

async fn a_handler_that_writes_nothing_is_done_all_the_same(bed: Bed) {
    let service = Service::open(bed, |_| Vec::new()).await;
    let receipts = service.due(&["e1", "e2"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    let row = service.bed.delivery(service.route.of(receipts[1])).await;
    assert_eq!(row.summary.as_deref(), Some("e2 is done"));
}

/// Nothing of it is left, and the next attempt does it all.
async fn taken_back(bed: Bed, last: Op, why: &str, outcome: &str) {
    let service = Service::open(bed, move |event| {
        let mut plan = everything(&event.event_id);
        if event.attempt == 1 {
            plan.push(last.clone());
        }
        plan
    })
    .await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    assert_eq!(service.marks(), [""; 0]);
    assert_eq!((service.bed.rows("effects"), service.bed.rows("lanes")), (0, 0));
    assert_eq!(service.messages().await, [""; 0]);
    assert_eq!(service.notes().last().unwrap(), outcome);
    if outcome != "e1 lease lost" {
        assert_eq!(service.states().await, ["e1 retrying"]);
        let detail = service.detail(receipts[0]).await;
        assert!(detail.contains(why), "{detail}");
    } else {
        service.bed.lose_leases().await;
    }
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1", "paid:e1", "reserve"]);
    assert_eq!(service.messages().await, ["receipt:e1 received"]);
}

async fn an_error_takes_everything_back(bed: Bed) {
    taken_back(bed, Op::Fail("no stock"), "no stock", "e1 retry").await;
}

async fn a_panic_takes_everything_back(bed: Bed) {
    taken_back(bed, Op::Panic("a bug"), "the handler panicked: a bug", "e1 retry").await;
}

/// A zombie: another may have the delivery by the time it wants to commit.
async fn a_lost_lease_takes_everything_back(bed: Bed) {
    taken_back(bed, Op::LoseLease, "", "e1 lease lost").await;
}

/// Whatever a handler decides, what it wrote commits with that.
async fn decisions_lead_where_they_say(bed: Bed) {
    let hour = Duration::from_secs(3600);
    let service = Service::open(bed, move |event| {
        let decision = match event.event_id.as_str() {
            "e1" => Decision::retry("half of it is done"),
            "e2" => Decision::retry_after(hour, "no stock"),
            "e3" => Decision::snooze(hour, "not before noon"),
            "e4" => Decision::dead("no such customer"),
            "e5" => Decision::stale("seen"),
            _ => Decision::processed("paid"),
        };
        vec![mark(&event.event_id), Op::Decide(decision)]
    })
    .await;
    let ids = ["e1", "e2", "e3", "e4", "e5", "e6"];
    let receipts = service.due(&ids).await;
    service.work().await;
    let states = ["retrying", "retrying", "retrying", "dead", "skipped:stale", "processed"].iter();
    let states: Vec<_> =
        ids.iter().zip(states).map(|(id, state)| format!("{id} {state}")).collect();
    assert_eq!(service.states().await, states);
    assert_eq!(service.marks(), ids);
    assert_eq!(service.detail(receipts[0]).await, "half of it is done");
    assert_eq!(service.detail(receipts[3]).await, "no such customer");
    let counts = async |n: usize| {
        let row = service.bed.delivery(service.route.of(receipts[n])).await;
        (row.counts.failures, row.counts.snoozes)
    };
    assert_eq!((counts(1).await, counts(2).await), ((1, 0), (0, 1)));
    let mut notes = service.notes();
    notes.sort();
    let outcomes = ["retry", "retry", "snooze", "dead", "stale", "processed"].iter();
    let told: Vec<_> = ids.iter().zip(outcomes).map(|(id, end)| format!("{id} {end}")).collect();
    assert_eq!(notes, told);
    // Neither of those that named a time is back before it.
    service.bed.pass(1800);
    service.work().await;
    assert_eq!(service.marks(), ["e1", "e1", "e2", "e3", "e4", "e5", "e6"]);
}

async fn the_same_event_is_handled_once(bed: Bed) {
    let service = Service::open(bed, |event| everything(&event.event_id)).await;
    let route = service.route;
    let mut sent = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (store, arrival) = (service.bed.store.clone(), service.bed.event("e1", &[route]));
        sent.spawn(async move { store.record(vec![arrival].into()).await.unwrap() });
    }
    sent.join_all().await;
    service.work().await;
    service.bed.record(vec![service.bed.event("e1", &[route])]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1", "paid:e1", "reserve"]);
    assert_eq!(service.messages().await, ["receipt:e1 received"]);
}

async fn different_events_have_one_effect(bed: Bed) {
    let service = Service::open(bed, |_| vec![Op::Once("paid:in_456".into())]).await;
    let receipts = service.due(&["e1", "e2"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    assert_eq!(service.marks(), ["paid:in_456"]);
    let effect = service.bed.effect("paid:in_456").await;
    assert_eq!(effect.conflicts, 1);
    assert!(receipts.contains(&effect.delivery.receipt));
    assert!(service.notes().contains(&"paid:in_456 was done on billing".to_owned()));
}

/// Two workers, two dozen events, one invoice: every second attempt fails after it was first.
async fn workers_that_race_have_one_effect(bed: Bed) {
    let service = Service::open(bed, |event| {
        let mut plan = vec![Op::Once("paid:in_456".into()), mail("receipt:in_456")];
        if event.attempt == 1 && event.event_id.ends_with(['1', '3', '5', '7', '9']) {
            plan.push(Op::Fail("at the last moment"));
        }
        plan
    })
    .await;
    let ids: Vec<String> = (10..34).map(|n| format!("e{n}")).collect();
    service.due(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let another = service.another_worker();
    for _ in 0..8 {
        let (one, two) = tokio::join!(service.worker.run_once(), another.run_once());
        one.unwrap();
        two.unwrap();
        service.bed.pass(3600);
    }
    let states = service.states().await;
    assert!(states.iter().all(|state| state.ends_with(" processed")), "{states:?}");
    assert_eq!(service.marks(), ["paid:in_456"]);
    assert_eq!(service.messages().await, ["receipt:in_456 received"]);
    assert_eq!(service.bed.effect("paid:in_456").await.conflicts, 23);
}

async fn an_older_event_is_stale(bed: Bed) {
    let service = Service::open(bed, |event| {
        let version = event.version.unwrap();
        vec![Op::Advance("in_456", version), mark(&format!("v{version}"))]
    })
    .await;
    for (id, version) in [("e1", 5), ("e2", 9), ("e3", 7), ("e4", 9)] {
        service.due_about(id, "in_456", version).await;
        service.work().await;
    }
    let states = ["e1 processed", "e2 processed", "e3 skipped:stale", "e4 processed"];
    assert_eq!(service.states().await, states);
    assert_eq!(service.marks(), ["v5", "v9", "v9"]);
    assert_eq!(service.bed.query("SELECT applied FROM lanes"), "9");
}

/// Forced or not, whatever state it was in.
async fn a_replay_repeats_nothing(bed: Bed) {
    let service = Service::open(bed, |event| {
        let id = &event.event_id;
        let mut plan = vec![
            Op::Once(format!("paid:{id}")),
            Op::Step("reserve", 7),
            mail(&format!("receipt:{id}")),
        ];
        match (id.as_str(), event.replay) {
            ("e2", 0) => plan.push(Op::Decide(Decision::dead("given up"))),
            ("e3", 0) => plan.push(Op::Decide(Decision::stale("too old"))),
            _ => {}
        }
        plan
    })
    .await;
    let receipts = service.due(&["e1", "e2", "e3"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 dead", "e3 skipped:stale"]);
    let marks = service.marks();
    assert_eq!(marks, ["paid:e1", "paid:e2", "paid:e3", "reserve", "reserve", "reserve"]);
    for _ in 0..2 {
        service.replay(&receipts).await;
        service.work().await;
        assert_eq!(service.states().await, ["e1 processed", "e2 processed", "e3 processed"]);
    }
    assert_eq!(service.marks(), marks);
    assert_eq!(service.bed.rows("effects"), 9);
    assert_eq!(service.messages().await.len(), 3);
    assert!(service.notes().contains(&"reserve came to 7".to_owned()));
}

async fn a_message_is_written_once(bed: Bed) {
    use oncebox::effect::Message;

    let service = Service::open(bed, |event| {
        let payload = if event.event_id == "e3" { "other" } else { "same" };
        vec![Op::Send(Message::json("mailer", "receipt:in_456", payload).unwrap())]
    })
    .await;
    for id in ["e1", "e2", "e3"] {
        service.due(&[id]).await;
        service.work().await;
    }
    assert_eq!(service.messages().await, ["receipt:in_456 received"]);
    let notes = service.notes();
    let said: Vec<_> = notes.iter().filter(|note| note.starts_with("sent")).collect();
    assert_eq!(said, ["sent", "sent before", "sent before otherwise"]);
    let body = if service.bed.on_sqlite() { "body" } else { "convert_from(body, 'UTF8')" };
    let sql = format!("SELECT {body} FROM receipts WHERE event_type = 'message'");
    assert_eq!(service.bed.query(&sql), "\"same\"");
}

/// On a route that keeps order, the end of one is what lets the next go.
async fn a_follower_goes_on_once_its_leader_has_committed(bed: Bed) {
    use oncebox::route::RouteRules;

    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let service = Service::under(bed, rules, |event| vec![mark(&event.event_id)]).await;
    for version in 1..=5 {
        service.due_about(&format!("e{version}"), "in_456", version).await;
    }
    while service.work().await > 0 {}
    assert_eq!(service.marks(), ["e1", "e2", "e3", "e4", "e5"]);
    assert_eq!(service.bed.query("SELECT applied FROM lanes"), "5");
    let notes = service.notes();
    assert_eq!(notes, ["e1", "e2", "e3", "e4", "e5"].map(|id| format!("{id} processed")));
}
