//! What people see and write: tables that fit, ids that are short, texts that say what to do.

use std::fs;

use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox_server::columns;
use serde_json::Value;

use crate::bed::{Run, noon, oncebox, oncebox_in, oncebox_with, signed, wire};
use crate::desk::Desk;
use crate::work::Work;

/// Every line fits a terminal of 80 columns.
#[track_caller]
fn fits(run: &Run) {
    let wide = run.stdout.lines().find(|line| columns::width(line) > 80);
    assert_eq!(wide, None, "{run}");
}

#[test]
fn tables_fit_eighty_columns() {
    let work = Work::full();
    for list in ["receipts", "deliveries", "held", "dead", "routes", "audit", "sources", "effects"]
    {
        fits(&work.run(&[list, "list"]).exits(0));
    }
    let desk = Desk::new();
    desk.run(&["replay", "--state", "dead", "--yes"]).exits(0);
    for list in ["receipts", "held", "replays", "audit"] {
        fits(&desk.run(&[list, "list"]).exits(0));
    }
    fits(&desk.run(&["replay", "--since", "2025-10-01", "--force", "--dry-run"]).exits(0));
    fits(&desk.run(&["sources", "rejected"]).exits(0));
    let token = ["token", "create", "a-worker-with-a-long-name-of-its-own"];
    let scope = ["--scope", "pull:billing", "--scope", "pull:mail", "--expires", "1d"];
    desk.run(&[&token[..], &scope].concat()).exits(0);
    fits(&desk.run(&["token", "list"]).exits(0));
    fits(&work.run(&["outbox", "list"]).exits(0));
    fits(&oncebox(&["providers"]).exits(0));
    // In a folder whose name is short, every line of it is ours.
    let dir = tempfile::tempdir().unwrap();
    let routes = "[sources.shop]\nprovider = \"stripe\"\nsecrets = [\"whsec_0123456789\"]\n\
                  [routes.a-route-with-a-name]\nsources = [\"shop\"]\npull = true\n";
    fs::write(dir.path().join("oncebox.toml"), routes).unwrap();
    let check = oncebox_in(dir.path(), &["check"], b"").exits(0).prints("retries");
    fits(&check);
    let capture = wire(&signed("stripe", "whsec_another_0123456789", noon()));
    let args = ["verify", "--provider", "stripe", "--secret", "env:CANARY", "-"];
    fits(&oncebox_in(dir.path(), &args, &capture).exits(4).prints("→ "));
}

/// What matters most is shown first, and the rest gives way to it.
#[test]
fn what_matters_is_shown_at_eighty_columns() {
    let work = Work::full();
    let deliveries = work.run(&["deliveries", "list"]).exits(0).prints("DETAIL");
    deliveries.prints("STATE").prints("NEXT");
    work.run(&["routes", "list"]).exits(0).prints("PAUSED");
    let held = work.run(&["held", "list", "--route", "slow"]).exits(0);
    held.prints("`routes resume`").prints("slow");
}

/// Some characters are wider than the sum of their parts.
#[test]
fn any_event_type_is_listed() {
    let work = Work::empty();
    let types = [
        "\u{26a0}\u{fe0f} payment failed for customer number one of a very long list",
        "1\u{fe0f}\u{20e3}2\u{fe0f}\u{20e3}3\u{fe0f}\u{20e3} keycaps of a type that is too long",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦👨\u{200d}👩\u{200d}👧 a family that is too long",
    ];
    work.block_on(async {
        let mail = work.bed.route("mail", RouteRules::default()).await;
        for (number, event_type) in types.into_iter().enumerate() {
            let event = work.bed.event(&format!("\u{26a0}\u{fe0f}{number}"), &[mail]);
            work.bed.send(Arrival { event_type: event_type.to_owned(), ..event }).await;
        }
    });
    for columns in 20..130 {
        let variables = [("COLUMNS", &*columns.to_string())];
        for list in
            [["receipts", "list"], ["deliveries", "list"]].iter().filter(|_| columns % 5 == 0)
        {
            let run = oncebox_with(work.dir(), list, &variables).exits(0);
            assert!(run.stdout.lines().all(|line| columns::width(line) <= columns), "{run}");
        }
    }
}

/// A list of several pages is one table.
#[test]
fn all_of_a_long_list_has_one_heading() {
    let desk = Desk::with_customers(600);
    let run = desk.run(&["receipts", "list", "--all"]).exits(0).tells("604 receipts");
    let headings = run.stdout.lines().filter(|line| line.starts_with("RECEIPT")).count();
    assert_eq!(headings, 1, "{run}");
}

#[test]
fn a_terminal_that_is_wider_shows_more() {
    let work = Work::full();
    let list = ["deliveries", "list"];
    let shown = |columns: &str| oncebox_with(work.dir(), &list, &[("COLUMNS", columns)]);
    let (narrow, wide) = (shown("60").exits(0), shown("200").exits(0));
    assert!(narrow.stdout.lines().all(|line| columns::width(line) <= 60), "{narrow}");
    assert!(!narrow.stdout.contains("TYPE"), "{narrow}");
    wide.prints("TYPE").prints("DETAIL");
}

/// Wherever an id is taken, any is that means one thing only.
#[test]
fn any_id_that_means_one_thing_is_taken() {
    let desk = Desk::new();
    let receipt = desk.dead.to_string();
    let delivery = desk.delivery(desk.dead);
    for id in [&receipt as &str, &delivery, "evt_dead", "evt_de"] {
        desk.run(&["receipts", "show", id]).exits(0).prints(&receipt);
        let shown = desk.run(&["deliveries", "show", id]).exits(0);
        shown.prints("billing: dead").prints("oncebox replay").prints("oncebox dead discard");
        desk.run(&["replay", id, "--dry-run"]).exits(0).prints("billing");
        desk.run(&["effects", "list", "--receipt", id]).exits(0);
    }
    let run = desk.run(&["deliveries", "show", "evt_dead", "--json"]).exits(0);
    let shown: Vec<Value> = run.json();
    assert_eq!(shown[0]["delivery"], delivery, "{run}");
    assert!(shown[0]["history"].as_array().is_some_and(|all| !all.is_empty()), "{run}");
    let discard = ["dead", "discard", "evt_dead", "--reason", "a test"];
    desk.run(&discard).exits(0).tells(&format!("discarded {delivery}"));
}

#[test]
fn what_means_several_is_refused_with_the_candidates() {
    let desk = Desk::new();
    for command in ["receipts", "deliveries"] {
        let run = desk.run(&[command, "show", "evt_d"]).exits(2).tells("means several:");
        run.tells("evt_dead").tells("evt_done").tells("write more of it");
    }
    let run = desk.run(&["receipts", "show", "evt_1"]).exits(3);
    run.tells("error: no receipt, delivery or event named `evt_1`");
    let unrouted = desk.run(&["deliveries", "show", "evt_unrouted"]).exits(3);
    unrouted.tells("no route took receipt");
}

#[test]
fn a_held_delivery_names_what_it_waits_for() {
    let work = Work::full();
    let shown = work.run(&["deliveries", "show", "bill_2"]).exits(0);
    let shown = shown.prints("behind    bill_1, receipt").prints("waits for   bill_1 (retrying)");
    shown.prints("oncebox held release");
    let run = work.run(&["held", "list", "--route", "billing", "--json"]).exits(0);
    let behind = &run.json()[0]["behind"];
    assert_eq!((&behind["event_id"], &behind["state"]), (&"bill_1".into(), &"retrying".into()));
    let desk = Desk::new();
    desk.run(&["held", "list"]).exits(0).prints("you: conflicts with");
}

/// A configuration elsewhere finds its files beside itself.
#[test]
fn paths_are_relative_to_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| oncebox_in(dir.path(), args, b"");
    fs::create_dir(dir.path().join("conf")).unwrap();
    fs::write(dir.path().join("conf/key"), "whsec_0123456789abcdef\n").unwrap();
    let config = "[store]\nurl = \"sqlite://inbox.db\"\n\
                  [sources.shop]\nprovider = \"stripe\"\nsecrets = [\"file:key\"]\n";
    fs::write(dir.path().join("conf/oncebox.toml"), config).unwrap();
    let check = run(&["check", "--config", "conf/oncebox.toml"]).exits(0);
    check.prints("sqlite://conf/inbox.db").tells("there is no route");
    run(&["migrate", "up", "--config", "conf/oncebox.toml"]).exits(0);
    assert!(dir.path().join("conf/inbox.db").exists());
    run(&["receipts", "list", "--config", "conf/oncebox.toml"]).exits(0);

    let wrong = config.replace("inbox.db", "nowhere/inbox.db");
    fs::write(dir.path().join("conf/oncebox.toml"), wrong).unwrap();
    let refused = run(&["migrate", "up", "--config", "conf/oncebox.toml"]).exits(69);
    refused.tells("there is no folder conf/nowhere").tells("[store] url");
    assert!(!dir.path().join("conf/nowhere").exists());
}

/// A store where the program is started, and none beside the configuration: an empty one beside it
/// would take every event for new.
#[test]
fn a_store_that_a_relative_path_no_longer_means_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| oncebox_in(&dir.path().join("work"), args, b"");
    for folder in ["conf", "work"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let config = dir.path().join("conf/oncebox.toml");
    let text = |url: &str| {
        format!(
            "[store]\nurl = \"sqlite://{url}\"\n\
             [sources.shop]\nprovider = \"stripe\"\nsecrets = [\"whsec_0123456789\"]\n"
        )
    };
    fs::write(&config, text("inbox.db")).unwrap();
    fs::copy(&config, dir.path().join("work/oncebox.toml")).unwrap();
    run(&["migrate", "up"]).exits(0);
    let config = config.to_str().unwrap();
    for command in [&["migrate", "up"] as &[&str], &["check"], &["serve"], &["receipts", "list"]] {
        let refused = run(&[command, &["--config", config]].concat()).exits(78);
        let refused = refused.tells("conf/inbox.db").tells("work/inbox.db");
        refused.tells("relative paths start beside the configuration");
    }
    assert!(!dir.path().join("conf/inbox.db").exists());
    let whole = dir.path().join("work/inbox.db");
    fs::write(config, text(whole.to_str().unwrap())).unwrap();
    run(&["receipts", "list", "--config", config]).exits(0);
    // Without a store in either folder, the path means the one beside the configuration.
    fs::write(config, text("other.db")).unwrap();
    run(&["migrate", "up", "--config", config]).exits(0);
    assert!(dir.path().join("conf/other.db").exists());
}

#[test]
fn a_secret_that_is_none_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let check = |secret: &str| {
        let secret = toml_text(secret);
        let config = format!("[sources.shop]\nprovider = \"stripe\"\nsecrets = [{secret}]\n");
        fs::write(dir.path().join("oncebox.toml"), config).unwrap();
        oncebox_in(dir.path(), &["check"], b"").exits(0)
    };
    check("\"whsec_0123456789\"").tells("its secret is in quotes");
    check("'whsec_0123456789'").tells("its secret is in quotes");
    check("sk_live_0123456789").tells("looks like an API key").tells("Stripe");
    let paystack = "[sources.shop]\nprovider = \"paystack\"\nsecrets = [\"sk_live_0123456789\"]\n";
    fs::write(dir.path().join("oncebox.toml"), paystack).unwrap();
    oncebox_in(dir.path(), &["check"], b"").exits(0).prints("0 warnings");
    let good = check("whsec_0123456789").prints("0 warnings");
    assert!(!good.stderr.contains("warning"), "{good}");
}

/// Text as TOML writes it.
fn toml_text(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn a_first_configuration_has_a_route_to_uncomment() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| oncebox_in(dir.path(), args, b"");
    run(&["config", "init", "--provider", "github"]).exits(0).tells("no route yet");
    let text = fs::read_to_string(dir.path().join("oncebox.toml")).unwrap();
    let route = text.find("# [routes.app]").expect("a commented route");
    let bare = |line: &str| format!("{}\n", line.strip_prefix("# ").unwrap_or(line));
    let uncommented: String = text[route..].lines().map(bare).collect();
    assert!(uncommented.contains("sources = [\"github\"]"), "{text}");
    let text = format!("{}{uncommented}", &text[..route]);
    fs::write(dir.path().join("oncebox.toml"), text).unwrap();
    let secrets = [
        ("GITHUB_SECRET", "0123456789"),
        ("APP_ROUTE_SECRET", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"),
    ];
    let check = oncebox_with(dir.path(), &["check"], &secrets).exits(0);
    check.prints("1 source and 1 route");
}

/// The error about an address in use names the address and its key.
#[test]
fn an_address_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = format!("[server]\nlisten = \"{address}\"\nadmin_listen = \"127.0.0.1:0\"\n");
    fs::write(dir.path().join("oncebox.toml"), config).unwrap();
    oncebox_in(dir.path(), &["serve"], b"")
        .exits(1)
        .tells(&format!("error: cannot listen on {address} (`[server] listen`): address in use"));
}
