//! `oncebox outbox`, and what other commands make of messages.

use oncebox::delivery::Next;
use oncebox::effect::Message;
use oncebox::receipt::ReceiptId;
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route, grouped, message};
use serde_json::{Value, json};

use crate::work::Work;

const DESTINATIONS: &str = r#"
[destinations.mailer]
url = "https://mailer.example.com/messages"
secret = "env:CANARY"

[destinations.later]
url = "https://later.example.com/"
secret = "env:CANARY"
"#;

/// `mail:1` was sent; `mail:2` of the group `ada` is dead and holds `mail:3`; `mail:4` waits.
/// `old:1` waits for a destination that is not configured.
struct Outbox {
    work: Work,
    cause: String,
    ids: Vec<ReceiptId>,
}

impl Outbox {
    fn new() -> Self {
        let work = Work::configured(DESTINATIONS);
        let (cause, ids) = work.block_on(fill(&work.bed));
        Self { work, cause, ids }
    }

    /// `oncebox outbox list --json` with more arguments: `key state`.
    #[track_caller]
    fn list(&self, more: &[&str]) -> Vec<String> {
        self.rows(more).iter().map(told).collect()
    }

    #[track_caller]
    fn rows(&self, more: &[&str]) -> Vec<Value> {
        let args: Vec<_> = ["outbox", "list", "--json"].iter().chain(more).copied().collect();
        self.work.run(&args).exits(0).json()
    }
}

fn told(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
    match &row["reason"] {
        Value::String(reason) => format!("{} {}:{reason}", text("key"), text("state")),
        _ => format!("{} {}", text("key"), text("state")),
    }
}

async fn fill(bed: &Bed) -> (String, Vec<ReceiptId>) {
    let handler = bed.route("mail", RouteRules::default()).await;
    let (mailer, _) = (bed.destination("mailer").await, bed.destination("gone").await);
    let claimed = bed.working_on("evt_1", &handler).await;
    let write = async |message: Message| bed.write_new(&claimed, &message).await;
    let mail = |key: &str| message("mailer", key, &format!("{{\"mail\":\"{key}\"}}"));
    let mut ids = vec![write(mail("mail:1")).await];
    end(bed, &mailer, Next::Processed).await;
    ids.push(write(grouped(mail("mail:2"), "ada")).await);
    end(bed, &mailer, Next::Dead).await;
    ids.push(write(grouped(mail("mail:3"), "ada")).await);
    assert!(bed.take_if_any(&mailer).await.is_none(), "the third is held");
    ids.push(write(mail("mail:4")).await);
    ids.push(write(message("gone", "old:1", "not JSON")).await);
    // Another handler writes the first again, with other bytes.
    let other = bed.working_on("evt_2", &handler).await;
    bed.write(&other, &message("mailer", "mail:1", "another")).await;
    (claimed.delivery.to_string(), ids)
}

async fn end(bed: &Bed, route: &Route, next: Next) {
    let claimed = bed.take(route).await;
    assert!(bed.finish(&claimed, next).await);
}

#[test]
fn messages_are_listed_newest_first() {
    let outbox = Outbox::new();
    let all = [
        "old:1 held:no-route",
        "mail:4 received",
        "mail:3 held:order",
        "mail:2 dead",
        "mail:1 processed",
    ];
    assert_eq!(outbox.list(&[]), all);
    assert_eq!(outbox.list(&["--destination", "mailer"]), all[1..]);
    assert_eq!(outbox.list(&["--destination", "gone"]), all[..1]);
    assert_eq!(outbox.list(&["--group", "ada"]), all[2..4]);
    assert_eq!(outbox.list(&["--key", "old:"]), all[..1]);
    assert_eq!(outbox.list(&["--key", "mail:", "--limit", "2"]), all[1..3]);
    assert_eq!(outbox.list(&["--state", "held"]), [all[0], all[2]]);
    assert_eq!(outbox.list(&["--state", "received"]), [all[1]]);
    assert_eq!(outbox.list(&["--state", "dead", "--destination", "gone"]), [""; 0]);
    assert_eq!(outbox.list(&["--until", "1d"]), [""; 0]);

    let row = &outbox.rows(&["--state", "dead"])[0];
    assert_eq!(row["message"], outbox.ids[1].to_string());
    assert_eq!(row["delivery"].as_str().unwrap().split('.').next(), row["message"].as_str());
    assert_eq!((&row["destination"], &row["group"]), (&json!("mailer"), &json!("ada")));
    assert_eq!((&row["sequence"], &row["attempts"]), (&json!(1), &json!(1)));

    let table = outbox.work.run(&["outbox", "list"]).exits(0).tells("5 messages");
    table.prints("  TO  ").prints("ada #2").prints("held (order)").prints("mail:4");
    let few = outbox.work.run(&["outbox", "list", "--limit", "1"]).exits(0);
    few.tells("1 message; there may be more: --all");
    let unknown = outbox.work.run(&["outbox", "list", "--destination", "mialer"]).exits(3);
    unknown.tells("there is no destination `mialer`").tells("gone, mailer");
    outbox.work.run(&["outbox", "list", "--state", "unrouted"]).exits(2);
}

#[test]
fn an_empty_outbox_is_an_empty_list() {
    let work = Work::configured(DESTINATIONS);
    work.run(&["outbox", "list"]).exits(0).tells("0 messages");
    let unknown = work.run(&["outbox", "show", "mailer", "a"]).exits(3);
    unknown.tells("[destinations.NAME]").tells("reload the server");
}

#[test]
fn a_message_is_shown_with_all_that_became_of_it() {
    let outbox = Outbox::new();
    let (dead, id) = ("mail:2", outbox.ids[1].to_string());
    let show = |key: &str, more: &[&str]| {
        let args: Vec<_> = ["outbox", "show", "mailer", key].iter().chain(more).copied().collect();
        outbox.work.run(&args)
    };
    let shown = show(dead, &[]).exits(0).prints("destination mailer").prints("mail:2");
    let shown = shown.prints("ada").prints(&outbox.cause).prints("application/json");
    shown.prints("dead, 1 attempt").prints("✓ matches").prints("payload (17 bytes)");
    let delivery = outbox.rows(&["--state", "dead"])[0]["delivery"].as_str().unwrap().to_owned();
    let by_key = show(dead, &["--json"]).exits(0).json();
    for other in [&id, &delivery] {
        assert_eq!(show(other, &["--json"]).exits(0).json(), by_key, "{other}");
    }
    assert_eq!((&by_key[0]["message"], &by_key[0]["cause"]), (&json!(id), &json!(outbox.cause)));
    assert_eq!(by_key[0]["deliveries"][0]["history"][0]["outcome"], "dead");
    assert_eq!(show(dead, &["--raw"]).exits(0).stdout, "{\"mail\":\"mail:2\"}");

    let first = show("mail:1", &["--json"]).exits(0).json();
    assert_eq!(first[0]["conflicts"][0]["differs"], true);
    show("mail:1", &[]).exits(0).prints("wrote it").prints("with another payload");

    show("mail:9", &[]).exits(3).tells("`mailer` has no message `mail:9`");
    show(&outbox.ids[4].to_string(), &[]).exits(3).tells("has no message");
    show("", &[]).exits(3);
    outbox.work.run(&["outbox", "show", "mailer"]).exits(2);
    outbox.work.run(&["outbox", "show", "nobody", "mail:1"]).exits(3).tells("gone, mailer");

    // What was forgotten as a key is still there as a message, until it expires.
    let act = oncebox_testkit::store::act("it must go again");
    let forgotten = outbox.work.store();
    outbox.work.block_on(forgotten.forget_effect("outbox/mailer/mail:1", &act)).unwrap();
    show("mail:1", &[]).exits(0).prints("processed");
}

#[test]
fn a_message_whose_payload_expired_is_said_to_be_so() {
    let outbox = Outbox::new();
    outbox.work.bed.query("DELETE FROM receipts WHERE event_id = 'mail:1'");
    let gone = outbox.work.run(&["outbox", "show", "mailer", "mail:1"]).exits(3);
    gone.tells("its payload has expired").tells(&outbox.ids[0].to_string());
}

#[test]
fn messages_are_replayed_by_key_or_state() {
    let outbox = Outbox::new();
    let replay = |more: &[&str]| {
        let args: Vec<_> =
            ["outbox", "replay", "mailer", "--by", "ada"].iter().chain(more).copied().collect();
        outbox.work.run(&args)
    };
    replay(&["--state", "dead", "--dry-run"]).exits(0).prints("outbox/mailer");
    assert_eq!(outbox.list(&["--state", "dead"]).len(), 1);
    replay(&["mail:1"]).exits(1).tells("only with --force");
    replay(&["mail:9"]).exits(3).tells("has no message");
    replay(&["mail:1", "--state", "unrouted"]).exits(2);

    replay(&["--state", "dead", "--reason", "it is back"]).exits(0).prints("1 delivery opened");
    assert_eq!(outbox.list(&["--key", "mail:2"]), ["mail:2 received"]);
    let force = replay(&["mail:1", "--force", "--json"]).exits(0).json();
    assert_eq!((&force[0]["route"], &force[0]["opens"]), (&json!("outbox/mailer"), &json!(1)));
    assert_eq!(outbox.list(&["--key", "mail:1"]), ["mail:1 received"]);
    let acts = outbox.work.acts();
    assert!(acts[0].starts_with("replay.create") && acts[0].contains("by ada"), "{acts:?}");
    assert!(acts[1].ends_with("it is back"), "{acts:?}");
}

#[test]
fn other_commands_tell_messages_from_events() {
    let outbox = Outbox::new();
    let run = |args: &[&str]| outbox.work.run(args);
    let ids = |args: &[&str]| {
        let rows = run(args).exits(0).json();
        rows.iter().map(|row| row["event_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["receipts", "list", "--json"]), ["evt_2", "evt_1"]);
    assert_eq!(ids(&["receipts", "export"]), ["evt_2", "evt_1"]);
    let of_mailer = ["receipts", "list", "--json", "--source", "outbox/mailer"];
    assert_eq!(ids(&of_mailer), ["mail:4", "mail:3", "mail:2", "mail:1"]);
    assert!(ids(&["receipts", "list", "--json", "--unrouted"]).is_empty());
    run(&["replay", "--state", "dead"]).exits(0).tells("nothing to replay");
    run(&["send", "outbox/mailer"]).exits(3);

    let id = outbox.ids[1].to_string();
    let by_key = ["receipts", "show", "mail:2", "--source", "outbox/mailer"];
    for by in [&by_key[..], &["receipts", "show", &id]] {
        let shown = run(by).exits(0).prints(&format!("cause       delivery {}", outbox.cause));
        assert!(!shown.stdout.contains("fingerprint"), "{shown}");
    }
    assert_eq!(ids(&["dead", "list", "--json"]), ["mail:2"]);
    assert_eq!(ids(&["held", "list", "--json"]), ["old:1", "mail:3"]);
    assert_eq!(ids(&["deliveries", "list", "--json", "--route", "outbox/mailer"]).len(), 4);

    let routes = run(&["routes", "list", "--json"]).exits(0).json();
    let route = |name: &str| routes.iter().find(|route| route["route"] == name).unwrap();
    let mailer = route("outbox/mailer");
    assert_eq!(mailer["consumer"], "https://mailer.example.com/messages");
    assert_eq!((&mailer["destination"], &mailer["configured"]), (&json!("mailer"), &json!(true)));
    assert_eq!(mailer["held"], json!({ "order": 1 }));
    let gone = route("outbox/gone");
    assert_eq!((&gone["consumer"], &gone["configured"]), (&json!("no-route"), &json!(false)));
    assert_eq!(route("outbox/later")["deliveries"]["received"], 0);
    assert_eq!(route("mail")["destination"], Value::Null);
    run(&["check"]).exits(0).prints("1 source, 4 routes and 2 destinations");
}

#[test]
fn a_dead_message_is_discarded_and_its_group_goes_on() {
    let outbox = Outbox::new();
    let delivery = outbox.rows(&["--state", "dead"])[0]["delivery"].as_str().unwrap().to_owned();
    let discard = ["dead", "discard", &delivery, "--reason", "she left", "--by", "ada"];
    outbox.work.run(&discard).exits(0).tells("discarded");
    let group = outbox.list(&["--group", "ada"]);
    assert_eq!(group, ["mail:3 received", "mail:2 skipped:discarded"]);
}
