//! `oncebox dead` over a store that the library has filled.

use crate::desk::Desk;

#[test]
fn the_dead_are_listed_with_what_went_wrong() {
    let desk = Desk::new();
    let run = desk.run(&["dead", "list", "--json"]).exits(0);
    let rows = run.json();
    assert_eq!(rows.len(), 1, "{run}");
    assert_eq!(rows[0]["receipt"], desk.dead.to_string());
    assert_eq!(rows[0]["delivery"], desk.delivery(desk.dead));
    assert_eq!(rows[0]["route"], "billing");
    assert_eq!(rows[0]["state"], "dead");
    assert_eq!(rows[0]["attempts"], 1);
    let table = desk.run(&["dead", "list", "--route", "billing", "--type", "invoice.*"]).exits(0);
    let table = table.prints("evt_dead").prints("out of order \\u{1b}[2J").tells("1 delivery");
    assert!(!table.stdout.contains("evt_done"), "{table}");

    desk.run(&["dead", "list", "--source", "shop", "--until", "2025-01-01"])
        .exits(0)
        .tells("0 deliveries");
    desk.run(&["dead", "list", "--route", "biling"]).exits(3).tells("billing");
}

#[test]
fn the_dead_are_discarded_by_either_id() {
    let desk = Desk::new();
    let receipt = desk.dead.to_string();
    let reason = ["--reason", "a test", "--by", "ada"];
    let discard = |args: &[&str]| {
        let all: Vec<_> = ["dead", "discard"].iter().chain(args).chain(&reason).copied().collect();
        desk.run(&all)
    };
    discard(&["no-id"]).exits(3).tells("no receipt, delivery or event named `no-id`");
    desk.run(&["dead", "discard", &desk.delivery(desk.dead)]).exits(2).tells("--reason");
    discard(&[&desk.delivery(desk.done)]).exits(1).tells("is processed");
    discard(&[&desk.delivery(desk.unrouted)]).exits(3);
    assert_eq!(desk.states(desk.dead), ["billing dead"]);
    assert!(desk.acts().is_empty(), "what was not done is not audited");

    // One that cannot be discarded does not keep the others.
    let done = desk.done.to_string();
    let run = discard(&[&done, &receipt, "--route", "billing"]).exits(1);
    run.tells(&format!("discarded {}", desk.delivery(desk.dead)));
    assert_eq!(desk.states(desk.dead), ["billing skipped:discarded"]);
    assert_eq!(desk.acts(), ["delivery.discard by ada"]);
    desk.run(&["dead", "list"]).exits(0).tells("0 deliveries");
}
