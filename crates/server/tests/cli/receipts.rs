//! `oncebox receipts` over a store that the library has filled.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::SignedDuration;
use oncebox::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, Taker, encode_headers};
use oncebox::route::RouteRules;
use oncebox::store::{Purpose, Repeat, Store, open};
use oncebox_verify::Trust;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::bed::{Run, SECRET, noon, oncebox_in, signed};

const HOSTILE: &str = "evt\x1b[2J\r\n\u{202e}x";

/// A folder with a configuration and a store with a few receipts in it.
struct Inbox {
    dir: TempDir,
    /// The ids, in the order of arrival.
    ids: Vec<ReceiptId>,
}

impl Inbox {
    /// `evt_0` … as [`arrivals`] makes them.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = "[store]\nurl = \"sqlite://inbox.db\"\n\
                      [sources.shop]\nprovider = \"stripe\"\nsecrets = [\"env:CANARY\"]\n";
        fs::write(dir.path().join("oncebox.toml"), config).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ids = runtime.block_on(fill(dir.path()));
        Self { dir, ids }
    }

    fn run(&self, args: &[&str]) -> Run {
        let args: Vec<_> = ["receipts"].iter().chain(args).copied().collect();
        oncebox_in(self.dir.path(), &args, b"")
    }

    fn id(&self, number: usize) -> String {
        self.ids[number].to_string()
    }
}

async fn fill(dir: &Path) -> Vec<ReceiptId> {
    let url = format!("sqlite://{}", dir.join("inbox.db").display());
    let store = open(&url, Purpose::Serve).await.unwrap();
    let arrivals = arrivals(&store).await;
    let ids: Vec<_> = arrivals.iter().map(|arrival| arrival.receipt).collect();
    for recorded in store.record(arrivals.into()).await.unwrap() {
        assert_eq!(recorded, Recorded::Accepted);
    }
    let repeat = Repeat {
        receipt: ids[0],
        duplicates: 2,
        conflicts: 0,
        twins: 0,
        first_at: noon(),
        last_at: noon(),
    };
    store.add_repeats(vec![repeat]).await.unwrap();
    store.close().await;
    ids
}

/// A genuine event, one of another type about another object with a route, a hostile one, and one
/// whose stored body is not what arrived.
async fn arrivals(store: &Arc<dyn Store>) -> Vec<Arrival> {
    let source = store.register_source("shop", None).await.unwrap();
    let other = store.register_source("other", None).await.unwrap();
    let route = store.register_route("billing", None, &RouteRules::default()).await.unwrap();
    let secret = store.register_secret(source, "ab12cd34", noon()).await.unwrap();
    let mint = ReceiptMint::new();
    let draft = signed("stripe", SECRET, noon());
    let digest: [u8; 32] = Sha256::digest(&draft.body).into();
    let genuine = Arrival {
        receipt: mint.mint(noon()),
        source,
        received_at: noon(),
        event_id: "evt_1".to_owned(),
        trust: Trust::Signed,
        event_type: "invoice.paid".to_owned(),
        object: Some("in_1".to_owned()),
        version: Some(7),
        secret,
        signed_at: Some(noon()),
        headers: encode_headers(&draft.headers),
        body: Bytes::from(draft.body),
        digest,
        content: digest,
        guard: None,
        odd_rules: Default::default(),
        has_room: true,
        is_defective: false,
        takers: Vec::new(),
        part: None,
    };
    let later = noon().checked_add(SignedDuration::from_hours(1)).unwrap();
    let like = |event_id: &str| Arrival {
        receipt: mint.mint(later),
        received_at: later,
        event_id: event_id.to_owned(),
        ..genuine.clone()
    };
    let routed = Arrival {
        event_type: "customer.created".to_owned(),
        object: Some("cus_1".to_owned()),
        takers: vec![Taker::plain(route)],
        ..like("evt_2")
    };
    let hostile = Arrival {
        source: other,
        event_type: "t\x1b]0;owned\x07".to_owned(),
        object: Some("\u{2066}o".to_owned()),
        body: Bytes::from_static(b"{\"a\":\"\x1b[2J\xe2\x80\xae\"}"),
        digest: Sha256::digest(b"{\"a\":\"\x1b[2J\xe2\x80\xae\"}").into(),
        ..like(HOSTILE)
    };
    let damaged = Arrival { digest: [7; 32], source: other, ..like("evt_damaged") };
    vec![genuine, routed, hostile, damaged]
}

#[test]
fn a_list_has_the_fields_of_the_documentation() {
    let inbox = Inbox::new();
    let run = inbox.run(&["list", "--event-id", "evt_1", "--json"]).exits(0);
    let bytes = signed("stripe", SECRET, noon()).body.len();
    assert_eq!(
        run.json(),
        [json!({
            "receipt": inbox.id(0),
            "source": "shop",
            "event_id": "evt_1",
            "event_type": "invoice.paid",
            "trust": "signed",
            "object_id": "in_1",
            "object_version": 7,
            "oddity": null,
            "first_receipt": null,
            "received_at": "2025-10-09T08:53:20Z",
            "bytes": bytes,
            "duplicates": 2,
            "conflicts": 0,
            "twins": 0,
            "deliveries": [],
        })],
        "{run}"
    );
    let run = inbox.run(&["list", "--event-id", "evt_2", "--json"]).exits(0);
    let delivery = &run.json()[0]["deliveries"][0];
    assert_eq!(delivery["route"], "billing", "{run}");
    assert_eq!(delivery["attempts"], 0, "{run}");
}

#[test]
fn a_list_is_filtered_and_limited() {
    let inbox = Inbox::new();
    let events = |args: &[&str]| -> Vec<Value> {
        let args: Vec<_> = ["list", "--json"].iter().chain(args).copied().collect();
        let listed = inbox.run(&args).exits(0).json();
        listed.iter().map(|receipt| receipt["event_id"].clone()).collect()
    };
    assert_eq!(events(&["--source", "shop"]), ["evt_2", "evt_1"]);
    assert_eq!(events(&["--type", "invoice.*", "--source", "shop"]), ["evt_1"]);
    assert_eq!(events(&["--object", "cus_1"]), ["evt_2"]);
    assert_eq!(events(&["--until", "2025-10-09T09:00:00Z"]), ["evt_1"]);
    assert_eq!(events(&["--since", "2025-10-09T09:00:00Z"]).len(), 3);
    assert_eq!(events(&["--unrouted", "--source", "shop"]), ["evt_1"]);
    assert_eq!(events(&["--limit", "1"]), ["evt_damaged"]);
    assert_eq!(events(&["--all"]).len(), 4);
    assert_eq!(events(&["--since", "1m"]).len(), 0);
    inbox.run(&["list", "--limit", "2"]).exits(0).tells("2 receipts; there may be more");
    inbox
        .run(&["list"])
        .exits(0)
        .prints("RECEIPT")
        .prints("NOTE")
        .prints("2 dupli")
        .tells("4 receipts");
    inbox.run(&["list", "--source", "shp"]).exits(3).tells("shop");
    inbox.run(&["list", "--since", "yesterday"]).exits(2);
}

#[test]
fn show_finds_a_receipt_by_either_id() {
    let inbox = Inbox::new();
    let id = inbox.id(0);
    for args in [
        &["show", &id] as &[&str],
        &["show", &id[..13]],
        &["show", "evt_1", "--source", "shop"],
        &["show", "evt_1"],
    ] {
        inbox
            .run(args)
            .exits(0)
            .prints(&inbox.id(0))
            .prints("evt_1 (signed)")
            .prints("✓ matches")
            .prints("2 duplicates; first 2025-10-09 08:53:20Z")
            .prints("fingerprint ab12cd34")
            .prints("  stripe-signature: t=1760000000,v1=")
            .prints("\"amount_paid\":2000");
    }
    let raw = inbox.run(&["show", &inbox.id(0), "--raw"]).exits(0);
    assert_eq!(raw.stdout.as_bytes(), signed("stripe", SECRET, noon()).body, "{raw}");

    inbox.run(&["show", "evt_9", "--source", "shop"]).exits(3);
    inbox.run(&["show", "evt_9"]).exits(3).tells("no receipt, delivery or event named `evt_9`");
    inbox.run(&["show", "evt_1", "--source", "nowhere"]).exits(3).tells("shop");
    inbox.run(&["show", "0199c2f0-7e4a-7c3b-9d53-0242ac120002"]).exits(3);
}

#[test]
fn a_body_without_its_digest_is_a_loud_error() {
    let inbox = Inbox::new();
    for more in [&[] as &[&str], &["--raw"], &["--json"]] {
        let args: Vec<_> =
            ["show", "evt_damaged", "--source", "other"].iter().chain(more).collect();
        let args: Vec<&str> = args.into_iter().copied().collect();
        inbox.run(&args).exits(4).tells("IS DAMAGED");
    }
    inbox.run(&["export"]).exits(4).tells("IS DAMAGED").tells("4 receipts exported");
}

#[test]
fn hostile_text_is_spelled_out_wherever_it_is_shown() {
    let inbox = Inbox::new();
    let id = inbox.id(2);
    for args in [
        &["list"] as &[&str],
        &["list", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["export", "--source", "other", "--event-id", HOSTILE],
    ] {
        let run = inbox.run(args).exits(0);
        let treacherous = ['\x1b', '\x07', '\r', '\u{202e}', '\u{2066}', '\u{9b}'];
        assert!(!run.stdout.contains(treacherous), "{run}");
        assert!(!run.stderr.contains(treacherous), "{run}");
    }
    inbox.run(&["show", &id]).prints("evt\\u{1b}[2J\\u{d}\\u{a}\\u{202e}x");
    let json = inbox.run(&["show", &id, "--json"]).json();
    assert_eq!(json[0]["event_id"], HOSTILE);
    inbox.run(&["show", HOSTILE]).exits(0);
    let unknown = inbox.run(&["show", &format!("{HOSTILE}?")]).exits(3);
    assert!(!unknown.stderr.contains(['\x1b', '\u{202e}']), "{unknown}");
}

#[test]
fn an_export_holds_everything() {
    let inbox = Inbox::new();
    let run = inbox.run(&["export", "--source", "shop"]).exits(0).tells("2 receipts exported");
    let receipt = &run.json()[1];
    let body = STANDARD.decode(receipt["body_base64"].as_str().unwrap()).unwrap();
    assert_eq!(body, signed("stripe", SECRET, noon()).body, "{run}");
    let headers = receipt["headers"].as_array().unwrap();
    assert!(headers.iter().any(|header| header[0] == "stripe-signature"), "{run}");
}

#[test]
fn an_exported_request_still_verifies() {
    let inbox = Inbox::new();
    let args = ["export", "--event-id", "evt_1", "--out", "captures", "--format", "http"];
    let path = format!("captures/{}.http", inbox.id(0));
    inbox.run(&args).exits(0).prints(&path).tells("--at 1760000000");
    let args = ["verify", "--source", "shop", "--at", "1760000000", &path];
    oncebox_in(inbox.dir.path(), &args, b"").exits(0).prints("verified").prints("evt_1");
    inbox.run(&["export", "--format", "http"]).exits(2).tells("--out");
}

#[test]
fn a_store_that_is_not_there_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| oncebox_in(dir.path(), args, b"");
    fs::write(dir.path().join("c.toml"), "[store]\nurl = \"sqlite://none/inbox.db\"\n").unwrap();
    run(&["receipts", "list", "--config", "c.toml"]).exits(69).tells("error: ");
    fs::write(dir.path().join("c.toml"), "[stor]\n").unwrap();
    run(&["receipts", "list", "--config", "c.toml"]).exits(78).tells("stor");
    run(&["receipts", "list", "--config", "none.toml"]).exits(78).tells("none.toml");
}
