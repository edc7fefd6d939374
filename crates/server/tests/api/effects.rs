//! Effects over HTTP: begun, completed and abandoned under a lease, and what is kept of them.

use std::sync::Arc;

use oncebox::delivery::{Reason, State};
use oncebox::effect::{Effect, EffectKind, EffectState, Verdict};
use oncebox::receipt::ReceiptId;
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::Answer;
use oncebox_testkit::store::{Bed, act};
use serde_json::{Value, json};

use crate::bed::{Api, assert_problem, with};

for_each_store!(
    an_effect_from_begin_to_end,
    a_finished_step_is_not_run_again,
    a_step_is_of_its_delivery_alone,
    whoever_comes_second_hears_that_it_is_busy,
    what_never_completed_can_be_tried_again,
    what_never_completed_can_wait_for_a_person,
    a_call_of_a_service_that_waits_for_a_person_is_told_so_again,
    what_did_not_happen_is_begun_anew,
    what_is_said_too_late_is_evidence,
    a_zombie_does_not_undo_its_successor,
    what_was_abandoned_can_be_begun_again,
    without_a_good_lease_nothing_is_written,
    what_was_not_begun_does_not_end,
    results_come_back_as_they_were_given,
    racing_deliveries_have_one_winner,
);

const KEY: &str = "receipt-email:in_456";

/// Says something of an effect under the lease of what was claimed.
pub(crate) async fn of_effect(api: &Api, claimed: &Value, verb: &str, more: Value) -> Answer {
    api.say(claimed, &format!("effects/{verb}"), more).await
}

/// Asserts an answer and returns what it says.
#[track_caller]
pub(crate) fn told(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// Begins an effect that must be the caller's to do; how often it was begun before.
pub(crate) async fn begin(api: &Api, claimed: &Value, key: &str) -> u64 {
    let told = told(&of_effect(api, claimed, "begin", json!({ "key": key })).await);
    assert_eq!((&told["status"], &told["key"]), (&json!("begun"), &json!(key)), "{told}");
    told["unknowns"].as_u64().unwrap()
}

/// The effect as the ledger has it.
pub(crate) async fn kept(api: &Api, key: &str) -> Effect {
    let effect = api.bed.store.effect(key).await.unwrap();
    effect.unwrap_or_else(|| panic!("no effect {key}"))
}

/// Lets the lease of a delivery run out, and claims it again.
pub(crate) async fn again(api: &Api, route: &str) -> Value {
    api.bed.pass(61);
    rescued(api, route).await
}

/// Claims a delivery again whose lease has run out.
async fn rescued(api: &Api, route: &str) -> Value {
    api.bed.store.rescue(10).await.unwrap();
    api.claim(route, &json!({ "lease": "60s", "wait": "20s" })).await.remove(0)
}

/// Two deliveries of `billing` for different events, both claimed.
async fn two(api: &Api) -> [(ReceiptId, Value); 2] {
    let mut both = Vec::new();
    for event in ["evt_1", "evt_2"] {
        let receipt = api.event(event, "billing").await;
        both.push((receipt, api.take("billing").await));
    }
    both.try_into().unwrap()
}

async fn an_effect_from_begin_to_end(bed: Bed) {
    let api = Api::start(bed).await;
    let [(receipt, first), (_, second)] = two(&api).await;
    let named = || json!({ "key": KEY });
    let begun = told(&of_effect(&api, &first, "begin", named()).await);
    assert_eq!(begun, json!({ "status": "begun", "key": KEY, "unknowns": 0 }));
    let effect = kept(&api, KEY).await;
    assert_eq!((effect.kind, effect.state), (EffectKind::Once, EffectState::Started));
    assert_eq!(effect.delivery, api.route("billing").of(receipt));
    assert_eq!((effect.route.as_str(), effect.attempt), ("billing", 1));
    assert_eq!(begin(&api, &first, KEY).await, 0, "said again, as when the answer was lost");

    let result = json!({ "key": KEY, "result": { "mail": "em_1" } });
    for _ in 0..2 {
        let done = told(&of_effect(&api, &first, "complete", result.clone()).await);
        assert_eq!(done, json!({ "status": "done" }));
    }
    let own = told(&of_effect(&api, &first, "begin", named()).await);
    assert_eq!(own["status"], "done");
    let other = told(&of_effect(&api, &second, "begin", named()).await);
    let effect = &other["effect"];
    assert_eq!((&other["status"], &effect["state"]), (&json!("done"), &json!("done")), "{other}");
    assert_eq!((&effect["key"], &effect["kind"]), (&json!(KEY), &json!("once")));
    assert_eq!(effect["receipt"], receipt.to_string());
    assert_eq!((&effect["route"], &effect["attempt"]), (&json!("billing"), &json!(1)));
    assert_eq!(effect["result"], json!({ "mail": "em_1" }));
    assert_eq!(effect["evidence"], Value::Null);

    let kept = kept(&api, KEY).await;
    assert_eq!((kept.state, kept.unknowns), (EffectState::Done, 0));
    assert_eq!(kept.result.as_deref(), Some(r#"{"mail":"em_1"}"#));
    let conflicts = api.bed.store.effect_conflicts(KEY, 10).await.unwrap();
    assert_eq!((kept.conflicts, conflicts.len()), (1, 1), "{conflicts:?}");
    assert!(!conflicts[0].differs);
    for (outcome, count) in [("begun", "2"), ("done", "2"), ("found", "2"), ("busy", "0")] {
        let calls = format!(r#"oncebox_effect_calls_total{{route="billing",outcome="{outcome}"}}"#);
        assert_eq!(api.metric(&calls).await, count, "{outcome}");
    }
    assert_eq!(api.metric("oncebox_effect_conflicts_total").await, "1");
    assert_eq!(api.bed.rows("effects"), 1);
}

/// Two stages; the second fails the first time.
async fn a_finished_step_is_not_run_again(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    let key = format!("{receipt}/billing/charge");
    let begun = told(&of_effect(&api, &first, "begin", json!({ "step": "charge" })).await);
    assert_eq!(begun["key"], key);
    let charged = json!({ "step": "charge", "result": "ch_1" });
    told(&of_effect(&api, &first, "complete", charged).await);
    told(&of_effect(&api, &first, "begin", json!({ "step": "mail" })).await);
    told(&of_effect(&api, &first, "abandon", json!({ "step": "mail" })).await);
    let failed = json!({ "reason": "no mail server", "retry_after": "1s" });
    assert_eq!(api.say(&first, "fail", failed).await.status, 200);

    api.bed.pass(2);
    let second = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    assert_eq!(second["attempt"], 2);
    let done = told(&of_effect(&api, &second, "begin", json!({ "step": "charge" })).await);
    assert_eq!((&done["status"], &done["effect"]["result"]), (&json!("done"), &json!("ch_1")));
    assert_eq!(done["effect"]["attempt"], 1);
    let mail = told(&of_effect(&api, &second, "begin", json!({ "step": "mail" })).await);
    assert_eq!((&mail["status"], &mail["unknowns"]), (&json!("begun"), &json!(0)));
    told(&of_effect(&api, &second, "complete", json!({ "step": "mail" })).await);
    assert_eq!(api.say(&second, "complete", json!({})).await.status, 200);
    assert_eq!(kept(&api, &key).await.kind, EffectKind::Step);
    assert_eq!(kept(&api, &key).await.conflicts, 0);
    assert_eq!(api.bed.rows("effects"), 2);
}

async fn a_step_is_of_its_delivery_alone(bed: Bed) {
    let api = Api::start(bed).await;
    let both = two(&api).await;
    for (receipt, claimed) in &both {
        let begun = told(&of_effect(&api, claimed, "begin", json!({ "step": "charge" })).await);
        let key = format!("{receipt}/billing/charge");
        assert_eq!(begun, json!({ "status": "begun", "key": key, "unknowns": 0 }));
        told(&of_effect(&api, claimed, "complete", json!({ "step": "charge" })).await);
    }
    assert_eq!(api.bed.rows("effects"), 2);
}

async fn whoever_comes_second_hears_that_it_is_busy(bed: Bed) {
    let api = Api::start(bed).await;
    let [(receipt, first), (_, second)] = two(&api).await;
    begin(&api, &first, KEY).await;
    for policy in ["retry", "ask"] {
        let more = json!({ "key": KEY, "on_unknown": policy });
        let busy = of_effect(&api, &second, "begin", more).await;
        let detail = assert_problem(&busy, 409, "busy");
        assert!(detail.contains(first["delivery"].as_str().unwrap()), "{detail}");
        let effect = &busy.json()["effect"];
        assert_eq!((&effect["key"], &effect["state"]), (&json!(KEY), &json!("started")));
        assert_eq!(effect["receipt"], receipt.to_string());
    }
    assert_eq!(api.row(receipt, "billing").await.state, State::Processing);
    told(&of_effect(&api, &first, "abandon", json!({ "key": KEY })).await);
    assert_eq!(begin(&api, &second, KEY).await, 0);
    told(&of_effect(&api, &second, "complete", json!({ "key": KEY })).await);
    assert_eq!(kept(&api, KEY).await.conflicts, 0);
}

/// The other end takes the same key, so nothing happens twice.
async fn what_never_completed_can_be_tried_again(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    begin(&api, &first, KEY).await;
    api.bed.pass(61);
    let effect = kept(&api, KEY).await;
    assert_eq!(effect.state, EffectState::Unknown, "nobody has written that down");

    let second = rescued(&api, "billing").await;
    assert_eq!(begin(&api, &second, KEY).await, 1);
    assert_eq!(begin(&api, &second, KEY).await, 1);
    let third = again(&api, "billing").await;
    assert_eq!(begin(&api, &third, KEY).await, 2);
    told(&of_effect(&api, &third, "complete", json!({ "key": KEY })).await);
    let effect = kept(&api, KEY).await;
    assert_eq!((effect.state, effect.unknowns, effect.attempt), (EffectState::Done, 2, 3));
    assert_eq!(effect.delivery, api.route("billing").of(receipt));
}

/// Begins under a lease that ends, and asks under the next. The delivery is held.
pub(crate) async fn parked(api: &Api, name: &Value) -> (ReceiptId, Value, Answer) {
    let receipt = api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    told(&of_effect(api, &first, "begin", name.clone()).await);
    let second = again(api, "billing").await;
    let mut ask = name.clone();
    ask["on_unknown"] = "ask".into();
    let answer = of_effect(api, &second, "begin", ask).await;
    (receipt, second, answer)
}

async fn what_never_completed_can_wait_for_a_person(bed: Bed) {
    let api = Api::start(bed).await;
    let step = json!({ "step": "charge" });
    let (receipt, claimed, asked) = parked(&api, &step).await;
    let key = format!("{receipt}/billing/charge");
    let detail = assert_problem(&asked, 409, "unknown_effect");
    assert!(detail.contains("oncebox effects settle"), "{detail}");
    assert_eq!(
        (&asked.json()["state"], &asked.json()["effect"]["key"]),
        (&json!("held"), &json!(key))
    );
    let row = api.row(receipt, "billing").await;
    assert_eq!((row.state, row.reason), (State::Held, Some(Reason::UnknownEffect)));
    assert_eq!((row.waits_for.as_deref(), row.counts.attempts), (Some(key.as_str()), 2));
    assert_eq!(api.claim("billing", &json!({})).await.len(), 0);

    // Said again, as when the answer was lost; and whatever else is said changes nothing.
    let ask = json!({ "step": "charge", "on_unknown": "ask" });
    let again = of_effect(&api, &claimed, "begin", ask).await;
    assert_problem(&again, 409, "unknown_effect");
    let other = of_effect(&api, &claimed, "begin", json!({ "key": KEY })).await;
    assert_problem(&other, 409, "lease_lost");
    assert_problem(&api.say(&claimed, "complete", json!({})).await, 409, "lease_lost");
    assert_eq!(api.row(receipt, "billing").await, row);
    assert_eq!(api.bed.rows("effects"), 1);
    let calls = r#"oncebox_effect_calls_total{route="billing",outcome="parked"}"#;
    assert_eq!(api.metric(calls).await, "1");

    let verdict = Verdict::Done { result: Some("\"ch_1\"".to_owned()) };
    api.bed.store.settle_effect(&key, &verdict, &act("the bank knows")).await.unwrap();
    let third = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    assert_eq!((&third["delivery"], &third["attempt"]), (&claimed["delivery"], &json!(3)));
    let done = told(&of_effect(&api, &third, "begin", step).await);
    assert_eq!((&done["status"], &done["effect"]["result"]), (&json!("done"), &json!("ch_1")));
    assert_eq!(api.say(&third, "complete", json!({})).await.status, 200);
}

/// The ledger has the key of a service under its name.
async fn a_call_of_a_service_that_waits_for_a_person_is_told_so_again(bed: Bed) {
    let api = Api::start_with(bed, with("routes.billing", "service = \"shop\"")).await;
    let (_, claimed, asked) = parked(&api, &json!({ "key": KEY })).await;
    assert_problem(&asked, 409, "unknown_effect");
    let ask = json!({ "key": KEY, "on_unknown": "ask" });
    let again = of_effect(&api, &claimed, "begin", ask).await;
    assert_problem(&again, 409, "unknown_effect");
    assert_eq!(again.json()["effect"]["key"], format!("@shop/{KEY}"));
}

async fn what_did_not_happen_is_begun_anew(bed: Bed) {
    let api = Api::start(bed).await;
    let (_, _, asked) = parked(&api, &json!({ "key": KEY })).await;
    assert_problem(&asked, 409, "unknown_effect");
    api.bed.store.settle_effect(KEY, &Verdict::NotDone, &act("no")).await.unwrap();
    assert_eq!(api.bed.rows("effects"), 0);
    let third = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    assert_eq!(begin(&api, &third, KEY).await, 0);
    told(&of_effect(&api, &third, "complete", json!({ "key": KEY })).await);
    assert_eq!(kept(&api, KEY).await.unknowns, 0);
}

async fn what_is_said_too_late_is_evidence(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    begin(&api, &first, KEY).await;
    api.bed.pass(61);
    let said = json!({ "key": KEY, "result": { "charge": "ch_1" } });
    let late = of_effect(&api, &first, "complete", said).await;
    let detail = assert_problem(&late, 409, "lease_lost");
    assert!(detail.contains("evidence"), "{detail}");
    let effect = kept(&api, KEY).await;
    assert_eq!((effect.state, effect.result), (EffectState::Unknown, None));
    let evidence = effect.evidence.unwrap();
    assert_eq!(evidence.result.as_deref(), Some(r#"{"charge":"ch_1"}"#));
    let calls = r#"oncebox_effect_calls_total{route="billing",outcome="late"}"#;
    assert_eq!(api.metric(calls).await, "1");

    let second = rescued(&api, "billing").await;
    let begun = told(&of_effect(&api, &second, "begin", json!({ "key": KEY })).await);
    assert_eq!((&begun["status"], &begun["unknowns"]), (&json!("begun"), &json!(1)));
    assert_eq!(begun["evidence"]["result"], json!({ "charge": "ch_1" }));
    assert_eq!(begun["evidence"]["at"], evidence.at.to_string());
}

/// Its successor has the effect by now: what the zombie says is kept, and changes nothing.
async fn a_zombie_does_not_undo_its_successor(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let zombie = api.take("billing").await;
    begin(&api, &zombie, KEY).await;
    let second = again(&api, "billing").await;
    assert_eq!(begin(&api, &second, KEY).await, 1);

    let late = of_effect(&api, &zombie, "abandon", json!({ "key": KEY })).await;
    assert_eq!(late.status, 409, "{}", late.text());
    let said = json!({ "key": KEY, "result": "by the zombie" });
    let late = of_effect(&api, &zombie, "complete", said.clone()).await;
    assert_problem(&late, 409, "lease_lost");
    assert_eq!(kept(&api, KEY).await.state, EffectState::Started);
    let done = json!({ "key": KEY, "result": "by the second" });
    told(&of_effect(&api, &second, "complete", done).await);
    assert_eq!(of_effect(&api, &zombie, "complete", said).await.status, 409);
    let effect = kept(&api, KEY).await;
    assert_eq!(effect.state, EffectState::Done);
    assert_eq!(effect.result.as_deref(), Some(r#""by the second""#));
    assert_eq!(effect.evidence.unwrap().result.as_deref(), Some(r#""by the zombie""#));
}

/// What was unknown before is so again.
async fn what_was_abandoned_can_be_begun_again(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    begin(&api, &first, KEY).await;
    let gone = told(&of_effect(&api, &first, "abandon", json!({ "key": KEY })).await);
    assert_eq!(gone, json!({ "status": "abandoned" }));
    assert_eq!(api.bed.rows("effects"), 0);
    begin(&api, &first, KEY).await;
    let second = again(&api, "billing").await;
    assert_eq!(begin(&api, &second, KEY).await, 1);
    told(&of_effect(&api, &second, "abandon", json!({ "key": KEY })).await);
    let effect = kept(&api, KEY).await;
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1));
    assert_eq!(begin(&api, &second, KEY).await, 1, "no call was made under this lease");
    told(&of_effect(&api, &second, "abandon", json!({ "key": KEY })).await);
    let happened = of_effect(&api, &second, "complete", json!({ "key": KEY, "result": 1 })).await;
    assert_problem(&happened, 409, "not_begun");
    let evidence = kept(&api, KEY).await.evidence;
    assert_eq!(evidence.as_ref().unwrap().result.as_deref(), Some("1"));

    api.bed.pass(61);
    let late = of_effect(&api, &second, "abandon", json!({ "key": KEY })).await;
    assert_problem(&late, 409, "lease_lost");
    assert_eq!(kept(&api, KEY).await.evidence, evidence);
    assert_eq!(kept(&api, KEY).await.state, EffectState::Unknown);
}

async fn without_a_good_lease_nothing_is_written(bed: Bed) {
    let api = Api::start(bed).await;
    let receipt = api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let (lease, given) = claimed["lease"].as_str().unwrap().split_once('.').unwrap();
    let lease: i64 = lease.parse().unwrap();
    for forged in [lease - 1, lease + 1, 0, i64::MAX] {
        let mut other = claimed.clone();
        other["lease"] = format!("{forged}.{given}").into();
        let refused = of_effect(&api, &other, "begin", json!({ "key": KEY })).await;
        assert_problem(&refused, 409, "lease_lost");
    }
    api.bed.pass(61);
    let late = of_effect(&api, &claimed, "begin", json!({ "key": KEY })).await;
    assert_problem(&late, 409, "lease_lost");
    assert_eq!(late.json()["state"], "processing");
    assert_eq!(api.bed.rows("effects"), 0);
    let never = api.route("ledger").of(receipt);
    let never = json!({ "delivery": never.to_string(), "lease": claimed["lease"] });
    for verb in ["begin", "complete", "abandon"] {
        let answer = of_effect(&api, &never, verb, json!({ "key": KEY })).await;
        assert_problem(&answer, 404, "not_found");
    }
}

async fn what_was_not_begun_does_not_end(bed: Bed) {
    let api = Api::start(bed).await;
    let [(_, first), (_, second)] = two(&api).await;
    begin(&api, &first, KEY).await;
    for verb in ["complete", "abandon"] {
        for key in [KEY, "another"] {
            let answer = of_effect(&api, &second, verb, json!({ "key": key })).await;
            let detail = assert_problem(&answer, 409, "not_begun");
            assert!(detail.contains("begin it"), "{detail}");
            assert_eq!(answer.json()["state"], "processing");
        }
        let answer = of_effect(&api, &first, verb, json!({ "step": KEY })).await;
        assert_problem(&answer, 409, "not_begun");
    }
    assert_eq!(kept(&api, KEY).await.state, EffectState::Started);
    assert_eq!(api.bed.rows("effects"), 1);
}

/// Every digit of a number, every member in its place, and nothing a terminal would obey.
async fn results_come_back_as_they_were_given(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let claimed = api.take("billing").await;
    let path = format!("/deliveries/{}/effects", claimed["delivery"].as_str().unwrap());
    let lease = claimed["lease"].as_str().unwrap();
    for (number, (given, told)) in [
        (r#"{ "z": 12345678901234567890123, "a": [1.50, true] }"#, None),
        (r#""ü \u001b[2J \" \\ 🎉""#, None),
        ("0.1e-7", None),
        ("false", None),
        ("null", Some("null")),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("k{number}");
        begin(&api, &claimed, &key).await;
        let body = format!(r#"{{"lease":"{lease}","key":"{key}","result":{given}}}"#);
        let done = api.post_as(&api.token, &format!("{path}/complete"), &body).await;
        assert_eq!(done.status, 200, "{}", done.text());
        let found = of_effect(&api, &claimed, "begin", json!({ "key": key })).await.text();
        let spaceless = given.replace(": ", ":").replace(", ", ",").replace("{ ", "{");
        let told = told.map_or(spaceless.replace(" }", "}"), str::to_owned);
        assert!(found.contains(&format!("\"result\":{told},")), "{told}: {found}");
    }
}

/// Eight deliveries come to do the same at the same time.
async fn racing_deliveries_have_one_winner(bed: Bed) {
    let api = Arc::new(Api::start(bed).await);
    let mut claimed = Vec::new();
    for number in 0..8 {
        api.event(&format!("evt_{number}"), "billing").await;
        claimed.push(api.take("billing").await);
    }
    let answers = all_begin(&api, &claimed).await;
    let winner = answers.iter().position(|answer| answer.status == 200).expect("a winner");
    for (number, answer) in answers.iter().enumerate().filter(|(number, _)| *number != winner) {
        assert_problem(answer, 409, "busy");
        assert_eq!(answer.json()["effect"]["delivery"], claimed[winner]["delivery"], "{number}");
    }
    told(&of_effect(&api, &claimed[winner], "complete", json!({ "key": KEY })).await);
    for answer in all_begin(&api, &claimed).await {
        assert_eq!(told(&answer)["status"], "done");
    }
    let effect = kept(&api, KEY).await;
    assert_eq!(
        (effect.conflicts, effect.delivery.to_string()),
        (7, text(&claimed[winner]["delivery"]))
    );
}

/// Lets all of them begin at the same time; what each was told, in their order.
async fn all_begin(api: &Arc<Api>, claimed: &[Value]) -> Vec<Answer> {
    let begin = |(api, one): (Arc<Api>, Value)| async move {
        of_effect(&api, &one, "begin", json!({ "key": KEY })).await
    };
    let each = claimed.iter().map(|one| tokio::spawn(begin((api.clone(), one.clone()))));
    let mut answers = Vec::new();
    for one in each.collect::<Vec<_>>() {
        answers.push(one.await.unwrap());
    }
    answers
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
