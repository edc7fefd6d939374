//! `oncebox deliveries`, `held` and what `receipts` shows of deliveries.

use serde_json::{Value, json};

use crate::work::{HOSTILE, Work, receipt_of};

/// `event state` or `event state:reason`, as listed.
fn states(rows: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let state = |row: &Value| match &row["reason"] {
        Value::Null => format!("{} {}", text(&row["event_id"]), text(&row["state"])),
        reason => format!("{} {}:{}", text(&row["event_id"]), text(&row["state"]), text(reason)),
    };
    rows.iter().map(state).collect()
}

#[test]
fn every_state_is_listed_as_it_is_shown() {
    let work = Work::full();
    let list = |args: &[&str]| states(&work.rows(args));
    assert_eq!(
        list(&[]),
        [
            "gone_new held:no-route",
            "slow_new held:paused",
            "slow_again held:paused",
            "mail_new received",
            "mail_busy processing",
            "mail_dead dead",
            "mail_stale skipped:stale",
            "mail_done processed",
            "bill_2 held:order",
            "bill_1 retrying",
        ]
    );
    assert_eq!(list(&["--state", "received"]), ["mail_new received"]);
    assert_eq!(list(&["--state", "retrying"]), ["bill_1 retrying"]);
    assert_eq!(list(&["--state", "dead"]), ["mail_dead dead"]);
    let held = [
        "gone_new held:no-route",
        "slow_new held:paused",
        "slow_again held:paused",
        "bill_2 held:order",
    ];
    assert_eq!(list(&["--state", "held"]), held);
    assert_eq!(list(&["--reason", "paused"]), ["slow_new held:paused", "slow_again held:paused"]);
    assert_eq!(list(&["--reason", "no-route"]), ["gone_new held:no-route"]);
    assert_eq!(list(&["--reason", "order"]), ["bill_2 held:order"]);
    assert_eq!(list(&["--reason", "stale"]), ["mail_stale skipped:stale"]);
    assert_eq!(list(&["--state", "dead", "--reason", "paused"]), [] as [&str; 0]);
    assert_eq!(list(&["--state", "held", "--route", "slow"]).len(), 2);
    assert_eq!(list(&["--state", "received", "--route", "slow"]), [] as [&str; 0]);
    assert_eq!(list(&["--route", "mail"]).len(), 5);
    assert_eq!(list(&["--source", "stripe-live", "--type", "invoice.*"]).len(), 10);
    assert_eq!(list(&["--type", "charge.*"]), [] as [&str; 0]);
    assert_eq!(list(&["--since", "1m"]), [] as [&str; 0]);
    assert_eq!(list(&["--until", "2025-10-10", "--limit", "2"]).len(), 2);
    assert_eq!(list(&["--state", "held", "--limit", "3"]), held[..3]);
}

#[test]
fn a_list_is_for_people_and_for_programs() {
    let work = Work::full();
    let row = work.rows(&["--state", "retrying"]).remove(0);
    let due = row["due_at"].as_str().unwrap();
    let delivery = work.delivery("bill_1");
    assert_eq!(
        row,
        json!({
            "delivery": delivery,
            "receipt": receipt_of(&delivery),
            "route": "billing",
            "source": "stripe-live",
            "event_id": "bill_1",
            "event_type": "invoice.paid",
            "object_id": "in_456",
            "object_version": null,
            "received_at": "2025-10-09T08:53:20Z",
            "state": "retrying",
            "reason": null,
            "attempts": 1,
            "failures": 1,
            "crashes": 0,
            "snoozes": 0,
            "replays": 0,
            "due_at": due,
            "lease_until": null,
            "worker": null,
            "finished_at": null,
            "detail": HOSTILE,
            "summary": null,
            "first": null,
            "waits_for": null,
            "behind": null,
            "oddity": null,
            "first_receipt": null,
        })
    );
    let table = work.run(&["deliveries", "list"]).exits(0).tells("10 deliveries");
    let table = table.prints("DELIVERY").prints("held (order)").prints("held (paused)");
    let table = table.prints("held (no-route)").prints("skipped (stale)").prints("retrying");
    assert_eq!(table.stdout.lines().count(), 11, "{table}");
    let few = work.run(&["deliveries", "list", "--limit", "2"]).exits(0);
    few.tells("2 deliveries; there may be more: --all");
    work.run(&["deliveries", "list", "--all"]).exits(0).tells("10 deliveries");
}

#[test]
fn what_is_misspelled_is_said() {
    let work = Work::full();
    let list = |args: &[&str]| {
        let args: Vec<_> = ["deliveries", "list"].iter().chain(args).copied().collect();
        work.run(&args)
    };
    list(&["--route", "biling"]).exits(3).tells("billing, gone, mail, slow");
    list(&["--source", "strip"]).exits(3).tells("stripe-live");
    list(&["--state", "lost"]).exits(2).tells("received");
    list(&["--reason", "bored"]).exits(2).tells("same-operation");
    list(&["--limit", "2", "--all"]).exits(2);
    work.run(&["deliveries"]).exits(2);
}

#[test]
fn empty_lists_are_no_failure() {
    let work = Work::empty();
    for (command, told) in [
        ("deliveries", "0 deliveries"),
        ("held", "0 deliveries"),
        ("audit", "0 acts"),
        ("token", "0 tokens"),
    ] {
        let run = work.run(&[command, "list"]).exits(0).tells(told);
        let json = work.run(&[command, "list", "--json", "--all"]).exits(0);
        assert_eq!((json.stdout.as_str(), json.stderr.as_str()), ("", ""), "{run}");
    }
    work.run(&["deliveries", "list", "--route", "billing"]).exits(3).tells("no routes yet");
}

#[test]
fn hostile_text_is_spelled_out_in_every_list() {
    let work = Work::full();
    let receipt = receipt_of(&work.delivery("mail_done"));
    for args in [
        &["deliveries", "list"] as &[&str],
        &["deliveries", "list", "--json"],
        &["held", "list"],
        &["receipts", "show", &receipt],
        &["receipts", "show", &receipt, "--json"],
        &["audit", "list"],
    ] {
        let run = work.run(args).exits(0);
        assert!(!run.stdout.contains(['\x1b', '\r', '\u{202e}']), "{run}");
    }
}

#[test]
fn the_held_are_listed_and_released() {
    let work = Work::full();
    let held = work.run(&["held", "list"]).exits(0).tells("4 deliveries");
    let held = held.prints("bill_2").prints("slow_new").prints("gone_new");
    let held = held.prints("WAITS FOR").prints("bill_1 (retrying)");
    held.prints("`routes resume`").prints("[routes.gone]");
    let only = work.run(&["held", "list", "--route", "billing", "--json"]).exits(0);
    assert_eq!(states(&only.json()), ["bill_2 held:order"]);

    let release = |id: &str| {
        let why = ["--reason", "the first was refunded", "--by", "ada"];
        let args: Vec<_> = ["held", "release", id].iter().chain(&why).copied().collect();
        work.run(&args)
    };
    let (id, paused) = (work.delivery("bill_2"), work.delivery("slow_new"));
    work.run(&["held", "release", &id]).exits(2).tells("--reason");
    release("evt_1").exits(3).tells("no receipt, delivery or event named `evt_1`");
    release(&work.delivery("mail_dead")).exits(1).tells("is dead");
    release(&paused).exits(1).tells("is held (paused)").tells("oncebox routes resume slow");
    release(&work.delivery("gone_new")).exits(1).tells("names `gone` again");
    let nobody = format!("{}.9", receipt_of(&id));
    release(&nobody).exits(3).tells("there is no delivery").tells("held list");

    let run = release(&id).exits(0).tells(&format!("released {id}"));
    assert_eq!(run.stdout, "", "{run}");
    assert_eq!(states(&work.rows(&["--route", "billing", "--state", "received"])).len(), 1);
    let acts = work.acts();
    assert_eq!(acts[0], format!("delivery.release {id} by ada: the first was refunded"));
    assert_eq!(acts.len(), 2, "what was not done is not audited: {acts:?}");
    release(&id).exits(1).tells("is received");
}

#[test]
fn a_receipt_is_shown_with_every_delivery_and_attempt() {
    let work = Work::full();
    let show = |event: &str| {
        let id = receipt_of(&work.delivery(event));
        work.run(&["receipts", "show", &id]).exits(0)
    };
    let retrying = show("bill_1").prints("billing: retrying, 1 attempt, 1 failure");
    let retrying = retrying.prints("due       20").prints("took 12ms, retry 500: no \\u{1b}[2J");
    retrying.prints(&work.delivery("bill_1"));
    show("bill_2").prints("billing: held (order), 0 attempts");
    show("slow_new").prints("slow: held (paused), 0 attempts");
    show("gone_new").prints("gone: held (no-route), 0 attempts");
    let busy = show("mail_busy").prints("mail: processing, 1 attempt");
    busy.prints("leased to worker-1").prints("until     20");
    let done = show("mail_done").prints("mail: processed, 1 attempt");
    done.prints("summary   summary no \\u{1b}").prints("attempt   1, 20").prints("processed");
    show("mail_dead").prints("mail: dead, 1 attempt, 1 failure").prints("dead");

    let id = receipt_of(&work.delivery("mail_dead"));
    let json = work.run(&["receipts", "show", &id, "--json"]).exits(0).json();
    let delivery = &json[0]["deliveries"][0];
    assert_eq!(delivery["state"], "dead");
    assert_eq!(delivery["delivery"], work.delivery("mail_dead"));
    let attempt = &delivery["history"][0];
    assert_eq!((&attempt["number"], &attempt["took_ms"]), (&json!(1), &json!(12)));
    assert_eq!((&attempt["outcome"], &attempt["detail"]), (&json!("dead"), &json!(HOSTILE)));
    assert_eq!(attempt["replay"], 0);
    assert!(attempt["ended_at"].as_str().is_some());

    let listed = work.run(&["receipts", "list", "--event-id", "slow_new"]).exits(0);
    listed.prints("held (paused)");
}
