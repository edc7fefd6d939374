//! What operators see and do of effects while the server runs.

use std::fs;
use std::process::{Command, Output};

use oncebox::delivery::State;
use oncebox::effect::{EffectKey, EffectName, EffectState, OnUnknown, Under};
use oncebox::route::RouteRules;
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::Answer;
use oncebox_testkit::store::{Bed, act, key};
use serde_json::{Value, json};

use crate::bed::{Api, assert_problem};
use crate::effects::{again, begin, kept, of_effect, parked, told};

for_each_store!(
    a_person_settles_what_is_unknown,
    evidence_is_shown_and_taken,
    what_is_forgotten_happens_again,
    effects_are_counted_by_state,
    conflicts_are_counted_whatever_door_they_came_by,
);

const KEY: &str = "charge:in_456";

/// Runs the command on the store of a bed.
async fn oncebox(api: &Api, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let config = format!("[store]\nurl = \"{}\"\n", api.bed.url);
    fs::write(dir.path().join("oncebox.toml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
    command.args(args).args(["--config", "oncebox.toml"]).current_dir(dir.path());
    command.env("NO_COLOR", "1").env("ONCEBOX_OPERATOR", "ada");
    let run = move || (command.output().unwrap(), dir);
    tokio::task::spawn_blocking(run).await.unwrap().0
}

/// Expects an exit code, and returns what was printed and told.
async fn exits(api: &Api, code: i32, args: &[&str]) -> (String, String) {
    let output = oncebox(api, args).await;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

async fn shown(api: &Api, key: &str) -> Value {
    let (stdout, _) = exits(api, 0, &["effects", "show", key, "--json"]).await;
    serde_json::from_str(&stdout).unwrap()
}

async fn a_person_settles_what_is_unknown(bed: Bed) {
    let api = Api::start(bed).await;
    let name = json!({ "key": KEY });
    let (receipt, claimed, asked): (_, _, Answer) = parked(&api, &name).await;
    assert_problem(&asked, 409, "unknown_effect");
    let (held, _) = exits(&api, 0, &["held", "list"]).await;
    assert!(held.contains("unknown-effect"), "{held}");
    assert!(held.contains(KEY), "{held}");
    let effect = shown(&api, KEY).await;
    assert_eq!((&effect["state"], &effect["unknowns"]), (&json!("unknown"), &json!(1)));
    assert_eq!(effect["held"], json!([claimed["delivery"]]));

    let result = r#"{ "charge": "ch_1" }"#;
    let settle = ["effects", "settle", KEY, "--done", "--result", result, "--reason", "I asked"];
    let (_, notice) = exits(&api, 0, &settle).await;
    assert!(notice.contains("settled charge:in_456 as done; 1 delivery goes on"), "{notice}");
    let (_, again) = exits(&api, 4, &settle).await;
    assert!(again.contains("is done, not unknown"), "{again}");
    let acts = api.bed.store.audit(None, 10).await.unwrap();
    let settled = acts.iter().find(|act| act.subject == KEY).unwrap();
    assert_eq!((settled.who.as_str(), settled.via.as_str()), ("ada", "cli"));
    assert_eq!(settled.why.as_deref(), Some("I asked"));

    // The worker that waits has it at once.
    let third = api.claim("billing", &json!({ "wait": "20s" })).await.remove(0);
    let done = told(&of_effect(&api, &third, "begin", name).await);
    assert_eq!(done["effect"]["result"], json!({ "charge": "ch_1" }));
    assert_eq!(api.say(&third, "complete", json!({})).await.status, 200);
    assert_eq!(api.row(receipt, "billing").await.state, State::Processed);
    let receipt = receipt.to_string();
    let (text, _) = exits(&api, 0, &["receipts", "show", &receipt]).await;
    assert!(text.contains("effect      charge:in_456: done by billing on attempt"), "{text}");
    assert!(text.contains(r#"result    {"charge":"ch_1"}"#), "{text}");
}

async fn evidence_is_shown_and_taken(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    begin(&api, &first, KEY).await;
    let (_, started) = exits(&api, 4, &["effects", "settle", KEY, "--not-done"]).await;
    assert!(started.contains("is started, not unknown"), "{started}");
    let forget = ["effects", "forget", KEY, "--reason", "no"];
    let (_, started) = exits(&api, 4, &forget).await;
    assert!(started.contains("is started"), "{started}");
    api.bed.pass(61);
    let none = ["effects", "settle", KEY, "--done", "--evidence"];
    let (_, nobody) = exits(&api, 4, &none).await;
    assert!(nobody.contains("no late completion"), "{nobody}");

    let said = json!({ "key": KEY, "result": ["ch_1"] });
    assert_problem(&of_effect(&api, &first, "complete", said).await, 409, "lease_lost");
    assert_eq!(shown(&api, KEY).await["evidence"]["result"], json!(["ch_1"]));
    let (text, hint) = exits(&api, 0, &["effects", "show", KEY]).await;
    assert!(text.contains("evidence    said to be done"), "{text}");
    assert!(text.contains(r#"["ch_1"]"#) && hint.contains("effects settle KEY"), "{text}{hint}");
    exits(&api, 0, &none).await;
    let effect = kept(&api, KEY).await;
    assert_eq!((effect.state, effect.result.as_deref()), (EffectState::Done, Some(r#"["ch_1"]"#)));
}

async fn what_is_forgotten_happens_again(bed: Bed) {
    let api = Api::start(bed).await;
    api.event("evt_1", "billing").await;
    let first = api.take("billing").await;
    begin(&api, &first, KEY).await;
    told(&of_effect(&api, &first, "complete", json!({ "key": KEY })).await);
    let second = again(&api, "billing").await;
    let done = told(&of_effect(&api, &second, "begin", json!({ "key": KEY })).await);
    assert_eq!(done["status"], "done");
    let forget = ["effects", "forget", KEY, "--reason", "the mail was lost"];
    let (_, notice) = exits(&api, 0, &forget).await;
    assert!(notice.contains("forgot charge:in_456; it may happen again"), "{notice}");
    assert_eq!(begin(&api, &second, KEY).await, 0);
    let acts = api.bed.store.audit(None, 10).await.unwrap();
    let forgotten = acts.iter().find(|act| act.subject == KEY).unwrap();
    assert_eq!(forgotten.why.as_deref(), Some("the mail was lost"));
}

/// Of four that were begun one is at work, two are unknown, and one is done.
async fn effects_are_counted_by_state(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let begun = async |event: &str, keys: &[&str]| {
        bed.due(event, &[billing]).await;
        let claimed = bed.take(&billing).await;
        let under = Under { delivery: claimed.delivery, lease: claimed.lease };
        for key in keys {
            let name = EffectName::Key(key.parse::<EffectKey>().unwrap());
            bed.store.begin_effect(under, &name, OnUnknown::Retry).await.unwrap();
        }
        under
    };
    begun("evt_1", &["a", "b"]).await;
    bed.pass(61);
    let under = begun("evt_2", &["c", "d"]).await;
    let name = EffectName::Key("d".parse().unwrap());
    bed.store.complete_effect(under, &name, None).await.unwrap();

    let api = Api::start(bed).await;
    for (state, count) in [("started", "1"), ("unknown", "2")] {
        let gauge = format!(r#"oncebox_effects{{state="{state}"}}"#);
        assert_eq!(api.metric(&gauge).await, count, "{state}");
        // The clock of the server stands still, far from that of the store.
        let oldest = format!(r#"oncebox_effects_oldest_seconds{{state="{state}"}}"#);
        assert!(api.metric(&oldest).await.parse::<f64>().unwrap() >= 0.0);
    }
    let text = format!("{:?}", exits(&api, 0, &["effects", "list", "--state", "unknown"]).await);
    assert!(text.contains("2 effects"), "{text}");
}

/// Each delivery that finds an effect done counts once, however often it looks. Those of before the
/// server started are not its to tell of.
async fn conflicts_are_counted_whatever_door_they_came_by(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let done = bed.working_on("evt_1", &billing).await;
    bed.begin(&done, &key(KEY)).await;
    bed.complete(&done, &key(KEY), None).await;
    let before = bed.working_on("evt_2", &billing).await;
    bed.begin(&before, &key(KEY)).await;

    let api = Api::start(bed).await;
    api.event("evt_3", "billing").await;
    let over_http = api.take("billing").await;
    for _ in 0..2 {
        told(&of_effect(&api, &over_http, "begin", json!({ "key": KEY })).await);
    }
    let past_the_server = api.bed.working_on("evt_4", &billing).await;
    api.bed.begin(&past_the_server, &key(KEY)).await;
    assert_eq!(kept(&api, KEY).await.conflicts, 3);
    // What is forgotten was counted all the same.
    api.bed.store.forget_effect(KEY, &act("again")).await.unwrap();
    assert_eq!(api.metric("oncebox_effect_conflicts_total").await, "2");
}
