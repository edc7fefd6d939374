//! Conflicts that came in a request with others: each is a receipt of its own, and the whole
//! request tells what it is.

use std::path::Path;

use ::http::header::CONTENT_TYPE;
use oncebox::clock::{Clock, SystemClock};
use oncebox_testkit::http;
use oncebox_testkit::process::{Home, ServerProcess};
use oncebox_verify::{Draft, Secret, sign};
use serde_json::{Value, json};

use crate::bed::{SECRET, oncebox_in, provider};

const SOURCES: &str = r#"
[sources.meta]
provider = "meta"
secrets = ["env:CANARY"]

[sources.x]
provider = "x"
secrets = ["env:CANARY"]

[sources.salesforce-outbound]
provider = "salesforce-outbound"
secrets = ["env:CANARY"]

[sources.mandrill]
provider = "mandrill"
public_url = "https://example.com/in/mandrill"
secrets = ["env:CANARY"]

[routes.all]
sources = ["meta", "x", "salesforce-outbound", "mandrill"]
events = ["page", "favorite_events", "unknown", "open"]
pull = true
"#;

#[test]
fn a_conflict_among_others_is_kept_as_what_it_is_on_sqlite() {
    each_is_what_it_was("sqlite://oncebox.db");
}

#[test]
fn a_conflict_among_others_is_kept_as_what_it_is_on_postgres() {
    let database = oncebox_testkit::store::database();
    each_is_what_it_was(database.url());
}

fn each_is_what_it_was(url: &str) {
    let inbox = Inbox::on(url);
    let messaged = json!(["m_1", "page", "11", 1_760_000_000_123_i64]);
    inbox.keeps("meta", meta, &messaged, "received");
    let liked = json!(["f1:7:favorite_events", "favorite_events", "f1", null]);
    inbox.keeps("x", x, &liked, "held");
    let notified = json!(["04l1", "unknown", "003A", null]);
    inbox.keeps("salesforce-outbound", soap, &notified, "held");
    let opened = json!(["a:open:1760000000", "open", "a", 1_760_000_000_000_i64]);
    inbox.keeps("mandrill", mandrill, &opened, "received");
}

/// A server, and a folder to run commands in.
struct Inbox {
    home: Home,
    server: ServerProcess,
}

impl Inbox {
    fn on(url: &str) -> Self {
        let home = Home::new();
        home.configure(url, SOURCES);
        let binary = Path::new(env!("CARGO_BIN_EXE_oncebox"));
        let server = ServerProcess::serve(binary, &home, [("CANARY", SECRET)]);
        server.addresses();
        Self { home, server }
    }

    /// Sends an event, then another body under its identity, second in its request: a receipt with
    /// an id, type, object and version of its own, held or delivered as the entry says.
    fn keeps(&self, source: &str, body: fn(&str) -> Draft, told: &Value, state: &str) {
        let first = self.send(source, body("one"));
        self.send(source, body("other"));
        let odd = self.show(&first)["odd_receipts"][0]["receipt"].as_str().unwrap().to_owned();
        let kept = self.show(&odd);
        let fields = ["event_id", "event_type", "object_id", "object_version"];
        assert_eq!(json!(fields.map(|field| &kept[field])), *told, "{source}: {kept}");
        assert_eq!((&kept["item"], &kept["items"]), (&json!(2), &json!(2)), "{source}");
        assert_eq!((&kept["oddity"], &kept["first_receipt"]), (&json!("conflict"), &json!(first)));
        assert!(kept["secret_fingerprint"].is_string(), "{source}: {kept}");
        assert_eq!(kept["digest_matches"], true, "{source}");
        assert_eq!(kept["deliveries"][0]["state"], state, "{source}");
    }

    /// The receipt of the second event.
    fn send(&self, source: &str, draft: Draft) -> String {
        let draft = sign(provider(source), &Secret::new(SECRET), draft, SystemClock.now());
        let draft = draft.unwrap();
        let path = draft.url.strip_prefix("https://example.com").unwrap();
        let headers: Vec<_> =
            draft.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        let answer = http::post(self.server.addresses().public, path, &headers, &draft.body);
        let answer = answer.unwrap();
        assert!((200..300).contains(&answer.status), "{source}: {answer:?}");
        let list = ["receipts", "list", "--source", source, "--json"];
        let rows = oncebox_in(self.home.path(), &list, b"").exits(0).json();
        rows[0]["receipt"].as_str().unwrap().to_owned()
    }

    fn show(&self, receipt: &str) -> Value {
        let run = oncebox_in(self.home.path(), &["receipts", "show", receipt, "--json"], b"");
        run.exits(0).json().remove(0)
    }
}

fn draft(source: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Draft {
    Draft {
        method: "POST".to_owned(),
        url: format!("https://example.com/in/{source}"),
        headers: [(CONTENT_TYPE, content_type.parse().unwrap())].into_iter().collect(),
        body: body.into(),
    }
}

fn meta(text: &str) -> Draft {
    let message = |mid: &str, text: &str| json!({"timestamp": 1_760_000_000_123_i64, "message": {"mid": mid, "text": text}});
    let body = json!({"object": "page", "entry": [
        {"id": "10", "messaging": [message(&format!("new_{text}"), "new")]},
        {"id": "11", "messaging": [message("m_1", text)]},
    ]});
    draft("meta", "application/json", body.to_string())
}

fn x(text: &str) -> Draft {
    let new = format!("new_{text}");
    let body = json!({"for_user_id": "7", "favorite_events": [
        {"id": new, "text": "new"}, {"id": "f1", "text": text},
    ]});
    draft("x", "application/json", body.to_string())
}

fn soap(text: &str) -> Draft {
    let notice = |id: &str, text: &str| {
        format!(
            "<Notification><Id>{id}</Id><sObject><sf:Id>003A</sf:Id><sf:N>{text}</sf:N></sObject>\
             </Notification>"
        )
    };
    let body = format!(
        r#"<s:Envelope xmlns:s="urn:s" xmlns:sf="urn:sf"><s:Body><notifications xmlns="urn:o">
           {}{}</notifications></s:Body></s:Envelope>"#,
        notice(&format!("new_{text}"), text),
        notice("04l1", text)
    );
    draft("salesforce-outbound", "text/xml", body)
}

fn mandrill(text: &str) -> Draft {
    let events = json!([
        {"event": "open", "ts": 1_760_000_000, "_id": format!("new_{text}")},
        {"event": "open", "ts": 1_760_000_000, "_id": "a", "text": text},
    ]);
    let events: String = events.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
    draft("mandrill", "application/x-www-form-urlencoded", format!("mandrill_events={events}"))
}
