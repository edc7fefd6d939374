//! `oncebox effects`, and what other commands show of effects.

use oncebox::delivery::Claimed;
use oncebox::effect::{Begun, EffectName, Message, OUTBOX, OnUnknown, Sent, Settled, Under};
use oncebox::receipt::ReceiptId;
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route};
use serde_json::{Value, json};

use crate::work::Work;

/// A key that reads backwards, and a result with words that a terminal would obey.
const HOSTILE_KEY: &str = "mail:\u{202e}ruoy";
const HOSTILE_RESULT: &str = "\"\u{202e} \\u001b[2J\"";

/// A store with effects in every state. `evt_1` charged, has a step, sent a message and is done;
/// `evt_2` found the charge done; `evt_3` is held for a refund that nobody knows of; `evt_4` is at
/// something.
struct Kept {
    work: Work,
    first: ReceiptId,
    second: ReceiptId,
    held: String,
}

fn under(claimed: &Claimed) -> Under {
    Under { delivery: claimed.delivery, lease: claimed.lease }
}

fn named(key: &str) -> EffectName {
    EffectName::Key(key.parse().unwrap())
}

async fn take(bed: &Bed, event_id: &str, route: &Route) -> Claimed {
    bed.due(event_id, &[*route]).await;
    bed.take(route).await
}

async fn begin(bed: &Bed, claimed: &Claimed, name: &EffectName, on_unknown: OnUnknown) -> Begun {
    bed.store.begin_effect(under(claimed), name, on_unknown).await.unwrap()
}

async fn done(bed: &Bed, claimed: &Claimed, name: &EffectName, result: &str) {
    let begun = begin(bed, claimed, name, OnUnknown::Retry).await;
    assert!(matches!(begun, Begun::Yours { .. }), "{begun:?}");
    let ended = bed.store.complete_effect(under(claimed), name, Some(result)).await.unwrap();
    assert_eq!(ended, Settled::Done);
}

async fn fill(bed: &Bed) -> (ReceiptId, ReceiptId, String) {
    let mail = bed.route("mail", RouteRules::default()).await;
    let carrier = format!("{OUTBOX}mailer");
    bed.store.register_source(&carrier, None).await.unwrap();
    bed.route(&carrier, RouteRules::default()).await;

    let third = take(bed, "evt_3", &mail).await;
    let refund = named("refund:ch_1");
    begin(bed, &third, &refund, OnUnknown::Ask).await;
    bed.pass(61);
    let late = bed.store.complete_effect(under(&third), &refund, Some("\"re_1\""));
    assert_eq!(late.await.unwrap(), Settled::Late);
    bed.store.rescue(10).await.unwrap();
    let third = bed.take(&mail).await;
    let parked = begin(bed, &third, &refund, OnUnknown::Ask).await;
    assert!(matches!(parked, Begun::Parked(_)), "{parked:?}");

    let first = take(bed, "evt_1", &mail).await;
    done(bed, &first, &named("charge:in_1"), r#"{"charge":"ch_1"}"#).await;
    done(bed, &first, &named(HOSTILE_KEY), HOSTILE_RESULT).await;
    done(bed, &first, &EffectName::Step("charge".parse().unwrap()), "12345678901234567890123")
        .await;
    let message = Message {
        destination: "mailer".to_owned(),
        key: "receipt-email:in_1".parse().unwrap(),
        group: None,
        content_type: "application/json".to_owned(),
        payload: "{}".into(),
    };
    let sent = bed.store.send(under(&first), &message).await.unwrap();
    assert!(matches!(sent, Sent::New(_)), "{sent:?}");

    let second = take(bed, "evt_2", &mail).await;
    let found = begin(bed, &second, &named("charge:in_1"), OnUnknown::Retry).await;
    assert!(matches!(found, Begun::Done(_)), "{found:?}");
    let fourth = take(bed, "evt_4", &mail).await;
    begin(bed, &fourth, &named("sms:in_4"), OnUnknown::Retry).await;
    (first.delivery.receipt, second.delivery.receipt, third.delivery.to_string())
}

impl Kept {
    fn new() -> Self {
        let work = Work::empty();
        let (first, second, held) = work.block_on(fill(&work.bed));
        Self { work, first, second, held }
    }

    /// `key state` as listed.
    fn list(&self, more: &[&str]) -> Vec<String> {
        let args: Vec<_> = ["effects", "list", "--json"].iter().chain(more).copied().collect();
        let rows = self.work.run(&args).exits(0).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        rows.iter().map(|row| format!("{} {}", text(&row["key"]), text(&row["state"]))).collect()
    }

    fn show(&self, key: &str) -> Value {
        self.work.run(&["effects", "show", key, "--json"]).exits(0).json().remove(0)
    }
}

#[test]
fn effects_are_listed_by_what_is_asked() {
    let kept = Kept::new();
    let step = format!("{}/mail/charge", kept.first);
    let hostile = format!("{HOSTILE_KEY} done");
    let all = [
        &format!("{step} done"),
        "charge:in_1 done",
        &hostile,
        "outbox/mailer/receipt-email:in_1 done",
        "refund:ch_1 unknown",
        "sms:in_4 started",
    ];
    assert_eq!(kept.list(&[]), all);
    assert_eq!(kept.list(&["--state", "unknown"]), ["refund:ch_1 unknown"]);
    assert_eq!(kept.list(&["--state", "started"]), ["sms:in_4 started"]);
    assert_eq!(kept.list(&["--state", "done"]).len(), 4);
    assert_eq!(kept.list(&["--kind", "step"]), [format!("{step} done")]);
    assert_eq!(kept.list(&["--kind", "message"]).len(), 1);
    assert_eq!(kept.list(&["--kind", "once", "--state", "done"]), ["charge:in_1 done", &hostile]);
    assert_eq!(kept.list(&["--prefix", "charge:"]), ["charge:in_1 done"]);
    assert_eq!(kept.list(&["--prefix", "c_arge%"]), [] as [&str; 0]);
    assert_eq!(kept.list(&["--receipt", &kept.first.to_string()]).len(), 4);
    assert_eq!(kept.list(&["--receipt", &kept.second.to_string()]), [] as [&str; 0]);
    assert_eq!(kept.list(&["--limit", "2"]), all[..2]);
    assert_eq!(kept.list(&["--all"]), all);

    let run = |args: &[&str]| {
        let args: Vec<_> = ["effects", "list"].iter().chain(args).copied().collect();
        kept.work.run(&args)
    };
    run(&[]).exits(0).tells("6 effects").prints("KEY").prints("unknown").prints("refund:ch_1");
    run(&["--limit", "2"]).exits(0).tells("2 effects; there may be more: --all");
    run(&["--state", "lost"]).exits(2).tells("unknown, started, done");
    run(&["--kind", "odd"]).exits(2).tells("once, step, message");
    run(&["--receipt", "evt_none"])
        .exits(3)
        .tells("no receipt, delivery or event named `evt_none`");
    kept.work.run(&["effects"]).exits(2);
    let empty = Work::empty();
    empty.run(&["effects", "list"]).exits(0).tells("0 effects");
}

#[test]
fn an_effect_is_shown_with_all_that_is_known() {
    let kept = Kept::new();
    let mut shown = kept.show("charge:in_1");
    let (at, found) = (shown["at"].take(), shown["found_by"][0].take());
    assert!(at.is_string(), "{shown}");
    assert_eq!(
        shown,
        json!({
            "key": "charge:in_1",
            "kind": "once",
            "state": "done",
            "at": null,
            "delivery": shown["delivery"],
            "receipt": kept.first.to_string(),
            "route": "mail",
            "attempt": 1,
            "unknowns": 0,
            "conflicts": 1,
            "result": { "charge": "ch_1" },
            "evidence": null,
            "found_by": [null],
            "held": [],
        })
    );
    assert_eq!(found["receipt"], kept.second.to_string());
    assert_eq!((&found["route"], &found["differs"]), (&json!("mail"), &json!(false)));
    let table = kept.work.run(&["effects", "show", "charge:in_1"]).exits(0);
    let table = table.prints("state       done").prints(r#"result      {"charge":"ch_1"}"#);
    table.prints(&format!("conflict    {} through mail found it done", kept.second));

    let unknown = kept.show("refund:ch_1");
    assert_eq!((&unknown["state"], &unknown["unknowns"]), (&json!("unknown"), &json!(1)));
    assert_eq!(unknown["evidence"]["result"], "re_1");
    assert_eq!(unknown["held"], json!([kept.held]));
    let table = kept.work.run(&["effects", "show", "refund:ch_1"]).exits(0);
    let table = table.prints("begun 1 time without an answer").prints("said to be done");
    let table = table.prints("\"re_1\"").prints(&format!("delivery {} waits for it", kept.held));
    table.tells("oncebox effects settle KEY");

    let step = format!("{}/mail/charge", kept.first);
    let exact = kept.work.run(&["effects", "show", &step, "--json"]).exits(0);
    exact.prints(r#""result":12345678901234567890123,"#);
    let nothing = kept.work.run(&["effects", "show", "nothing"]).exits(3);
    nothing.tells("there is no effect `nothing`").tells("RECEIPT/ROUTE/STEP");
}

#[test]
fn hostile_keys_and_results_are_spelled_out() {
    let kept = Kept::new();
    let receipt = kept.first.to_string();
    for args in [
        &["effects", "list"] as &[&str],
        &["effects", "list", "--json"],
        &["effects", "show", HOSTILE_KEY],
        &["effects", "show", HOSTILE_KEY, "--json"],
        &["effects", "settle", HOSTILE_KEY, "--done"],
        &["effects", "forget", "nothing\u{202e}", "--reason", "no"],
        &["effects", "forget", HOSTILE_KEY, "--reason", "no"],
        &["receipts", "show", &receipt],
        &["receipts", "show", &receipt, "--json"],
    ] {
        let run = kept.work.run(args);
        let treacherous = |text: &str| text.contains(['\x1b', '\u{202e}']);
        assert!(!treacherous(&run.stdout) && !treacherous(&run.stderr), "{run}");
    }
}

#[test]
fn what_is_unknown_is_settled_as_done() {
    let kept = Kept::new();
    let settle = |more: &[&str]| {
        let args = ["effects", "settle", "refund:ch_1"];
        let args: Vec<_> = args.iter().chain(more).copied().collect();
        kept.work.run(&args)
    };
    settle(&[]).exits(2).tells("--done");
    settle(&["--done", "--not-done"]).exits(2);
    settle(&["--not-done", "--result", "1"]).exits(2);
    settle(&["--not-done", "--evidence"]).exits(2);
    settle(&["--done", "--evidence", "--result", "1"]).exits(2);
    settle(&["--done", "--result", "{"]).exits(2).tells("it is not JSON that can be recorded");
    let large = format!("\"{}\"", "x".repeat(16 << 10));
    settle(&["--done", "--result", &large]).exits(2).tells("16384 can be recorded");
    assert_eq!(kept.list(&["--state", "unknown"]).len(), 1);

    let why = ["--reason", "the bank confirms it", "--by", "ada"];
    let done: Vec<_> = ["--done", "--evidence"].iter().chain(&why).copied().collect();
    let run = settle(&done).exits(0).tells("settled refund:ch_1 as done; 1 delivery goes on");
    assert_eq!(run.stdout, "", "{run}");
    let shown = kept.show("refund:ch_1");
    assert_eq!((&shown["state"], &shown["result"]), (&json!("done"), &json!("re_1")));
    let act = &kept.work.acts()[0];
    assert!(act.contains("refund:ch_1 by ada: the bank confirms it"), "{act}");
    let rows = kept.work.rows(&["--state", "retrying"]);
    assert_eq!((rows.len(), &rows[0]["waits_for"]), (1, &Value::Null));
    settle(&["--done"]).exits(4).tells("is done, not unknown").tells("effects forget");
    assert_eq!(kept.work.acts().len(), 1, "what was not done is not audited");
}

#[test]
fn what_is_unknown_is_settled_as_not_done() {
    let kept = Kept::new();
    let run = |key: &str| kept.work.run(&["effects", "settle", key, "--not-done"]);
    run("nothing").exits(3).tells("there is no effect");
    run("sms:in_4").exits(4).tells("is started, not unknown").tells("under a lease");
    run("refund:ch_1").exits(0).tells("as not done; 1 delivery goes on");
    run("refund:ch_1").exits(3);
    assert_eq!(kept.list(&["--prefix", "refund:"]), [] as [&str; 0]);
    assert_eq!(kept.work.rows(&["--state", "held", "--route", "mail"]).len(), 0);
}

#[test]
fn forgetting_needs_a_reason() {
    let kept = Kept::new();
    let forget = |key: &str, more: &[&str]| {
        let args: Vec<_> = ["effects", "forget", key].iter().chain(more).copied().collect();
        kept.work.run(&args)
    };
    let why = ["--reason", "the mail was lost", "--by", "ada", "--yes"];
    forget("charge:in_1", &[]).exits(2).tells("--reason");
    forget("nothing", &why).exits(3);
    forget("sms:in_4", &why).exits(4).tells("is started");
    forget("charge:in_1", &why).exits(0).tells("forgot charge:in_1; it may happen again");
    forget("charge:in_1", &why).exits(3);
    let message = forget("outbox/mailer/receipt-email:in_1", &why).exits(0);
    message.tells("a message may be sent under this key again");
    let acts = kept.work.acts();
    assert!(acts[1].contains("charge:in_1 by ada: the mail was lost"), "{acts:?}");
    assert_eq!(acts.len(), 2, "what was not done is not audited: {acts:?}");
    assert_eq!(kept.list(&[]).len(), 4);
}

#[test]
fn receipts_and_held_deliveries_name_their_effects() {
    let kept = Kept::new();
    let receipt = kept.first.to_string();
    let shown = kept.work.run(&["receipts", "show", &receipt]).exits(0);
    let shown = shown.prints("effect      charge:in_1: done by mail on attempt 1, ");
    let shown = shown.prints(", 1 conflict").prints(r#"result    {"charge":"ch_1"}"#);
    let shown = shown.prints(&format!("step        {receipt}/mail/charge: done by mail"));
    shown.prints("message     outbox/mailer/receipt-email:in_1, sent by mail on attempt 1");
    let object = kept.work.run(&["receipts", "show", &receipt, "--json"]).exits(0).json().remove(0);
    assert_eq!(object["receipt"], receipt);
    let effects = object["effects"].as_array().unwrap();
    let kinds: Vec<_> = effects.iter().map(|effect| effect["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["step", "once", "once", "message"]);

    let held = kept.work.run(&["held", "list", "--route", "mail"]).exits(0).tells("1 delivery");
    held.prints("unknown-effect").prints("effect refund:ch_1");
    let list = ["held", "list", "--route", "mail", "--json"];
    let row = kept.work.run(&list).exits(0).json().remove(0);
    assert_eq!(
        (&row["waits_for"], &row["reason"]),
        (&json!("refund:ch_1"), &json!("unknown-effect"))
    );
    let third = kept.held.split('.').next().unwrap();
    kept.work.run(&["receipts", "show", third]).exits(0).prints("waits for refund:ch_1");
}
