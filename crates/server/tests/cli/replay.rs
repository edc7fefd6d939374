//! `oncebox replay` and `oncebox replays` over a store that the library has filled.

use std::process::{Child, Command};

use oncebox_testkit::wait;
use serde_json::{Value, json};

use crate::desk::Desk;

const NOBODY: &str = "0199c2f0-7e4a-7c3b-9d53-0242ac120002";

#[test]
fn a_plan_is_printed_and_changes_nothing() {
    let desk = Desk::new();
    let run = desk.run(&["replay", "--route", "billing", "--dry-run", "--json"]).exits(0);
    let route = json!({
        "route": "billing",
        "opens": 1,
        "new": 0,
        "stale": 0,
        "repeated": 0,
        "held": 0,
        "processed": 1,
        "busy": 0,
        "expired": 0,
        "states": { "dead": 1, "processed": 1 },
    });
    let lines = run.json();
    assert_eq!((lines.len(), &lines[0]), (3, &route), "{run}");
    let plans: Vec<_> = lines[1..].iter().map(|line| (&line["state"], &line["plan"])).collect();
    let expected = [("dead", "run"), ("processed", "processed")];
    for (state, plan) in expected {
        assert!(plans.contains(&(&json!(state), &json!(plan))), "{run}");
    }
    let run = desk.run(&["replay", "--since", "2025-10-01", "--force", "--dry-run"]).exits(0);
    let table: Vec<Vec<&str>> =
        run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let headings = [
        "ROUTE",
        "WOULD",
        "OPEN",
        "NEW",
        "STALE",
        "REPEATED",
        "HELD",
        "PROCESSED",
        "BUSY",
        "EXPIRED",
    ];
    assert_eq!(table[0], headings);
    assert_eq!(table[1], ["billing", "2", "0", "0", "0", "0", "0", "0", "0"]);
    run.prints("DELIVERY").prints("PLAN");
    assert_eq!(desk.states(desk.dead), ["billing dead"]);
    assert_eq!(desk.states(desk.done), ["billing processed"]);
    assert!(desk.acts().is_empty());
    desk.run(&["replays", "list"]).exits(0).tells("0 replays");
}

#[test]
fn a_replay_needs_to_be_told_what() {
    let desk = Desk::new();
    desk.run(&["replay"]).exits(2).tells("--route");
    desk.run(&["replay", "--yes", "--force", "--rate", "5"]).exits(2);
    desk.run(&["replay", "--rate", "0", "--state", "dead"]).exits(2);
    desk.run(&["replay", "evt_5"]).exits(3).tells("no receipt, delivery or event named `evt_5`");
    let delivery = desk.delivery(desk.dead);
    desk.run(&["replay", &delivery, "--dry-run"]).exits(0).prints("billing");
    desk.run(&["replays", "show", "1"]).exits(3).tells("replays list");
    desk.run(&["receipts", "show", &delivery]).exits(0).prints("evt_dead");
    desk.run(&["replay", NOBODY]).exits(3).tells(NOBODY);
    desk.run(&["replay", "--route", "nowhere"]).exits(3).tells("billing");
    desk.run(&["replay", "--route", "later"]).exits(3).tells("reload the server");
    desk.run(&["replay", "--source", "nowhere"]).exits(3).tells("shop");
    assert!(desk.acts().is_empty());
}

#[test]
fn the_dead_are_opened_again_and_the_job_is_remembered() {
    let desk = Desk::new();
    let run = desk.run(&["replay", "--state", "dead", "--by", "ada", "--reason", "it is mended"]);
    let run = run.exits(0).prints("would open".to_uppercase().as_str());
    run.prints("1 delivery opened again");
    assert_eq!(desk.states(desk.dead), ["billing received"]);
    assert_eq!(desk.acts(), ["replay.create by ada"]);

    let listed = desk.run(&["replays", "list", "--json"]).exits(0).json();
    let job = &listed[0];
    for (field, value) in [
        ("phase", json!("done")),
        ("who", json!("ada")),
        ("why", json!("it is mended")),
        ("planned", json!(1)),
        ("opened", json!(1)),
        ("passed", json!(0)),
        ("state", json!("dead")),
        ("force", json!(false)),
    ] {
        assert_eq!(job[field], value, "{field} of {job}");
    }
    let id = job["replay"].as_str().unwrap();
    desk.run(&["replays", "list"]).exits(0).prints("PASSED");
    let listed_by_id = desk.run(&["replays", "list"]).exits(0).prints(&id[..13]);
    listed_by_id.prints("--state dead").tells("1 replay");
    desk.run(&["replays", "show", &id[..13]]).exits(0).prints(id);
    let shown = desk.run(&["replays", "show", id]).exits(0).prints("it is mended");
    shown.prints("phase       done");
    assert_eq!(desk.run(&["replays", "show", id, "--json"]).exits(0).json(), listed);
    desk.run(&["replays", "resume", id]).exits(0).tells("is through");
    desk.run(&["replays", "cancel", id]).exits(1).tells("is done already");
    desk.run(&["replays", "show", NOBODY]).exits(3);
    desk.run(&["replays", "cancel", NOBODY]).exits(3);
    desk.run(&["replays", "resume", NOBODY]).exits(3);
}

#[test]
fn what_was_processed_needs_force() {
    let desk = Desk::new();
    let receipt = desk.done.to_string();
    desk.run(&["replay", &receipt]).exits(1).tells("--force");
    desk.run(&["replay", "--state", "processed"]).exits(0).tells("--force");
    assert_eq!(desk.states(desk.done), ["billing processed"]);
    let run = desk.run(&["replay", &receipt, "--force", "--yes", "--json"]).exits(0);
    let lines = run.json();
    assert_eq!(lines[0]["opens"], 1, "{run}");
    assert_eq!(lines[1]["opened"], 1, "{run}");
    assert_eq!(lines[1]["receipts"], json!([receipt]), "{run}");
    assert_eq!(desk.states(desk.done), ["billing received"]);
    desk.run(&["replay", &receipt, "--force"]).exits(1).tells("open already");
}

/// What is opened and does not go out at once is not told as if it did.
#[test]
fn what_waits_for_its_route_is_told() {
    let desk = Desk::new();
    let held = ["replay", "--state", "held", "--dry-run"];
    let run = desk.run(&held).exits(0).tells("nothing to replay");
    assert!(!run.stderr.contains("hint"), "{run}");
    desk.run(&["routes", "pause", "billing"]).exits(0);
    let waits = "1 of them waits for its route, which is paused";
    desk.run(&["replay", "--state", "dead", "--dry-run"]).exits(0).tells(waits);
    let run = desk.run(&["replay", "--state", "dead"]).exits(0);
    run.prints("1 delivery opened again; ").prints(waits);
    desk.run(&held).exits(0).tells("nothing to replay").tells("oncebox routes resume");
}

#[test]
fn a_route_is_filled_with_what_it_takes() {
    let desk = Desk::new();
    let run = desk.run(&["replay", "--route", "mail", "--dry-run", "--json"]).exits(0);
    assert_eq!(run.json()[0]["new"], 3, "{run}");
    desk.run(&["replay", "--route", "mail", "--state", "dead"]).exits(0).tells("nothing to replay");
    let dry = ["replay", "--route", "mail", "--state", "dead", "--dry-run"];
    desk.run(&dry).exits(0).tells("nothing to replay");
    desk.run(&["replay", &desk.unrouted.to_string()]).exits(1).tells("--route");

    desk.run(&["replay", "--state", "unrouted", "--rate", "1000"])
        .exits(0)
        .prints("1 delivery opened again");
    assert_eq!(desk.states(desk.unrouted), ["mail received"], "billing does not take it");
    desk.run(&["replay", "--state", "unrouted"]).exits(0).tells("nothing to replay");
    desk.run(&["replay", "--route", "mail", "--type", "invoice.*"])
        .exits(0)
        .prints("2 deliveries opened again");
    assert_eq!(desk.states(desk.dead), ["billing dead", "mail received"]);
}

#[test]
fn a_conflict_is_released_replayed_or_discarded() {
    let desk = Desk::new();
    let id = desk.conflict.to_string();
    assert_eq!(desk.states(desk.conflict), ["billing held:conflict"]);
    let listed = desk.run(&["held", "list", "--reason", "conflict", "--json"]).exits(0);
    assert_eq!(listed.json()[0]["first_receipt"], desk.done.to_string(), "{listed}");
    let odd = desk.run(&["receipts", "list", "--odd", "--json"]).exits(0);
    assert_eq!((odd.json().len(), &odd.json()[0]["receipt"]), (1, &Value::from(id.as_str())));
    let shown = desk.run(&["receipts", "show", &id, "--json"]).exits(0);
    assert_eq!(shown.json()[0]["oddity"], "conflict", "{shown}");
    assert_eq!(shown.json()[0]["event_type"], "invoice.voided", "{shown}");
    desk.run(&["receipts", "show", &id]).exits(0).prints("conflict: the identity of receipt");

    desk.run(&["replay", "--state", "held"]).exits(0).tells("nothing to replay");
    let args = ["replay", "--state", "held", "--odd", "--reason", "the right one"];
    desk.run(&args).exits(0).prints("1 delivery opened again");
    assert_eq!(desk.states(desk.conflict), ["billing received"]);
    assert_eq!(desk.states(desk.done), ["billing processed"], "the first stays as it was");

    let desk = Desk::new();
    let delivery = desk.delivery(desk.conflict);
    desk.run(&["held", "discard", &delivery, "--reason", "a test"]).exits(0);
    assert_eq!(desk.states(desk.conflict), ["billing skipped:discarded"]);
    desk.run(&["held", "list", "--reason", "no-such"]).exits(2).tells("twin");
}

/// The only replay, once it has opened something.
fn begun(desk: &Desk) -> String {
    let mut id = String::new();
    wait::until("the replay has begun", || {
        let jobs = desk.run(&["replays", "list", "--json"]).exits(0).json();
        let job = jobs.first().filter(|job| job["opened"].as_u64() > Some(0));
        id = job.map_or_else(String::new, |job| job["replay"].as_str().unwrap().to_owned());
        !id.is_empty()
    });
    id
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn an_interrupted_replay_says_how_it_goes_on() {
    let desk = Desk::with_customers(50);
    let child = desk.start(&["replay", "--route", "mail", "--rate", "1"]);
    let id = begun(&desk);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for way in ["is not cancelled", &format!("replays resume {id}"), "replays cancel"] {
        assert!(told.contains(way), "{told}");
    }
    let cancel = ["replays", "cancel", &id, "--by", "ada", "--reason", "enough"];
    desk.run(&cancel).exits(0).tells("of 53");
    desk.run(&["replays", "show", &id]).exits(0).prints("phase       cancelled");
    desk.run(&["replays", "resume", &id]).exits(1).tells("was cancelled");
    assert_eq!(desk.acts()[0], "replay.cancel by ada");
}

#[test]
fn a_killed_replay_is_resumed_where_it_was() {
    let desk = Desk::with_customers(50);
    let mut child = desk.start(&["replay", "--route", "mail", "--rate", "1"]);
    let id = begun(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.expire_leases();
    let resume = ["replays", "resume", &id, "--json", "--by", "ada", "--reason", "killed"];
    let run = desk.run(&resume).exits(0);
    assert_eq!(desk.acts()[0], "replay.resume by ada");
    let job = &run.json()[0];
    assert_eq!((&job["phase"], &job["opened"]), (&json!("done"), &json!(53)), "{run}");
    let rows = desk.run(&["deliveries", "list", "--route", "mail", "--all", "--json"]);
    let rows = rows.exits(0).json();
    assert_eq!(rows.len(), 53);
    assert!(rows.iter().all(|row| row["state"] == "received"), "{rows:?}");
}

#[test]
fn a_server_goes_on_with_a_killed_replay() {
    let desk = Desk::with_customers(50);
    let mut child = desk.start(&["replay", "--route", "mail", "--rate", "1"]);
    let id = begun(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.expire_leases();
    let _server = desk.serve();
    wait::until("the server has driven it to its end", || {
        let run = desk.run(&["replays", "show", &id, "--json"]).exits(0);
        let job = &run.json()[0];
        job["phase"] == "done" && job["opened"] == 53
    });
}
