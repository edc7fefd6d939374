//! `oncebox routes` and `oncebox audit`.

use std::process::Command;
use std::time::Duration;

use oncebox::store::BreakerNote;
use serde_json::{Value, json};

use crate::bed::oncebox_with;
use crate::work::Work;

/// A terminal with room for every column.
const WIDE: [(&str, &str); 1] = [("COLUMNS", "200")];

fn routes(work: &Work, more: &[&str]) -> Vec<Value> {
    let args: Vec<_> = ["routes", "list", "--json"].iter().chain(more).copied().collect();
    work.run(&args).exits(0).json()
}

#[test]
fn routes_are_listed_with_what_waits_on_them() {
    let work = Work::full();
    let mut all = routes(&work, &[]);
    for route in &mut all {
        let retries = route.as_object_mut().unwrap().remove("retries").unwrap();
        assert_eq!(retries["attempts"], 15);
    }
    let names: Vec<_> = all.iter().map(|route| route["route"].as_str().unwrap()).collect();
    assert_eq!(names, ["billing", "gone", "later", "mail", "slow"]);
    let none = json!({
        "received": 0, "processing": 0, "retrying": 0, "held": 0, "dead": 0, "skipped": 0,
    });
    let with = |counts: &[(&str, u64)]| {
        let mut all = none.clone();
        for (state, count) in counts {
            all[state] = json!(count);
        }
        all
    };
    let oldest = "2025-10-09T08:53:20Z";
    assert_eq!(
        all[0],
        json!({
            "route": "billing",
            "consumer": "https://app.example.com/webhooks",
            "configured": true,
            "destination": null,
            "paused_at": null,
            "filling": false,
            "deliveries": with(&[("retrying", 1), ("held", 1)]),
            "held": { "order": 1 },
            "oldest_received_at": oldest,
            "breakers": [],
        })
    );
    assert_eq!(
        all[1],
        json!({
            "route": "gone",
            "consumer": "no-route",
            "configured": false,
            "destination": null,
            "paused_at": null,
            "filling": false,
            "deliveries": with(&[("held", 1)]),
            "held": { "no-route": 1 },
            "oldest_received_at": oldest,
            "breakers": [],
        })
    );
    assert_eq!(all[2]["deliveries"], none);
    assert_eq!(all[2]["oldest_received_at"], Value::Null);
    let counts = [("received", 1), ("processing", 1), ("dead", 1), ("skipped", 1)];
    assert_eq!((&all[3]["deliveries"], &all[3]["consumer"]), (&with(&counts), &json!("pull")));
    assert_eq!(all[4]["held"], json!({ "paused": 2 }));
    assert!(all[4]["paused_at"].as_str().is_some());

    let processed = routes(&work, &["--processed"]);
    assert_eq!(processed[3]["deliveries"]["processed"], 1);
    assert_eq!(routes(&work, &["--limit", "2"]).len(), 2);
    let list = ["routes", "list", "--processed"];
    let table = oncebox_with(work.dir(), &list, &WIDE).exits(0).tells("5 routes");
    let table = table.prints("ROUTE").prints("OLDEST").prints("PROCESSED").prints("no-route");
    table.prints("https://app.example.com/webhooks");
    let few = work.run(&["routes", "list", "--limit", "1"]).exits(0);
    few.tells("1 route; there may be more: --all");
}

#[test]
fn breakers_and_retries_are_shown() {
    let work = Work::full();
    let schedule = "after 5s, 20s, 1m 20s, 5m 20s, 21m 20s, 1h 25m, 5h 41m, then every 12h: \
                    15 attempts in about 2d 20h";
    let list = || oncebox_with(work.dir(), &["routes", "list"], &WIDE).exits(0);
    let closed = list().prints(&format!("billing, gone, later, mail, slow retry {schedule}"));
    assert!(!closed.stdout.contains("breaker"), "{closed}");
    let check = oncebox_with(work.dir(), &["check"], &WIDE).exits(0);
    check.prints(&format!("billing retries {schedule}"));

    let stored = work.block_on(work.store().routes()).unwrap();
    let route = stored.iter().find(|route| route.name == "billing").unwrap().route;
    let reason = "12 of the last 15 deliveries failed (answered 503)";
    let next_probe = Some(Duration::from_secs(45));
    let note = BreakerNote { route, state: "open", reason: reason.into(), next_probe };
    work.block_on(work.store().tell_breakers("node-1", &[note])).unwrap();
    list().prints(&format!("billing: breaker open on node-1: {reason}; next probe in "));
    let told = routes(&work, &[])[0]["breakers"][0].clone();
    assert_eq!((&told["state"], &told["reason"]), (&json!("open"), &json!(reason)));
    assert_eq!(told["worker"], "node-1");
    assert!(told["next_probe_at"].as_str().is_some());
}

#[test]
fn a_route_is_paused_and_resumed() {
    let work = Work::full();
    let pause = ["routes", "pause", "mail", "--reason", "the database moves", "--by", "ada"];
    let run = work.run(&pause).exits(0).tells("paused mail");
    assert_eq!(run.stdout, "", "{run}");
    let since = routes(&work, &[])[3]["paused_at"].clone();
    assert!(since.as_str().is_some());
    assert_eq!(routes(&work, &[])[3]["held"], json!({ "paused": 1 }));
    // Pausing again changes nothing of it.
    work.run(&["routes", "pause", "mail", "--by", "bob"]).exits(0);
    assert_eq!(routes(&work, &[])[3]["paused_at"], since);
    let paused = oncebox_with(work.dir(), &["routes", "list"], &WIDE).exits(0);
    paused.prints("WHY PAUSED").prints("the database moves");

    work.run(&["routes", "resume", "mail", "--by", "ada"]).exits(0).tells("resumed mail");
    assert_eq!(routes(&work, &[])[3]["paused_at"], Value::Null);
    let resumed = work.run(&["routes", "list"]).exits(0);
    assert!(!resumed.stdout.contains("the database moves"), "{resumed}");
    assert_eq!(
        work.acts()[..3],
        [
            "route.resume mail by ada: -",
            "route.pause mail by bob: -",
            "route.pause mail by ada: the database moves",
        ]
    );
    work.run(&["routes", "pause", "mial"]).exits(3).tells("billing, gone, mail, slow");
    work.run(&["routes", "resume", "later"]).exits(3).tells("no server has served");
    work.run(&["routes", "pause", "mail", "--reason", " "]).exits(2).tells("empty");
    work.run(&["routes", "pause"]).exits(2);
    assert_eq!(work.acts().len(), 4);
}

#[test]
fn whoever_acts_is_in_the_audit() {
    let work = Work::full();
    let resume = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
        command.args(["routes", "resume", "slow"]).current_dir(work.dir());
        command.env_remove("USER").env_remove("ONCEBOX_OPERATOR");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    resume(&[]);
    resume(&[("USER", "carol")]);
    resume(&[("USER", "carol"), ("ONCEBOX_OPERATOR", "deploy bot")]);
    let by = ["deploy bot", "carol", "unknown"].map(|who| format!("route.resume slow by {who}: -"));
    assert_eq!(work.acts()[..3], by);

    let table = work.run(&["audit", "list"]).exits(0).tells("4 acts");
    table
        .prints("WHO")
        .prints("deploy bot")
        .prints("route.pause")
        .prints("it is slow")
        .prints("cli");
    let few = work.run(&["audit", "list", "--limit", "2"]).exits(0).tells("2 acts; there may be");
    assert_eq!(few.stdout.lines().count(), 3, "{few}");
    let json = work.run(&["audit", "list", "--json", "--limit", "1"]).exits(0).json();
    assert_eq!((&json[0]["via"], &json[0]["subject"]), (&json!("cli"), &json!("slow")));
    assert!(json[0]["at"].as_str().is_some() && json[0]["no"].as_i64().is_some());
}
