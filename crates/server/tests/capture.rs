//! `provider = "capture"`: whatever comes is kept, marked, shown, exported, checked and sent again.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use oncebox::clock::{Clock, ManualClock};
use oncebox::receipt::decode_headers;
use oncebox::store::{Receipt, ReceiptFilter};
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::{Listeners, Server, ingest_options};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::for_each_store;
use oncebox_testkit::http::{Answer, AsyncConnection};
use oncebox_testkit::store::{Bed, NOON, time};
use oncebox_verify::{Draft, SampleEvent, Secret, Trust, catalogue, sample, sign};
use tokio::net::TcpListener;

for_each_store!(
    whatever_comes_is_kept_and_marked,
    nobody_can_take_the_mark_away,
    a_token_is_kept_as_a_fingerprint,
    a_capture_is_bounded,
    a_capture_is_exported_and_checked_until_it_is_understood,
    a_capture_is_sent_again_byte_for_byte,
    a_consumer_that_wants_captures_knows_what_they_are,
    an_item_of_a_batch_is_exported_whole,
);

const STRIPE: &str = "whsec_canary_stripe_secret";
const ASANA: &str = "canary-asana-secret";

struct Inbox {
    server: Server,
    clock: Arc<ManualClock>,
    dir: tempfile::TempDir,
}

impl Inbox {
    /// A server with a bin, and a folder whose configuration names the same store.
    async fn start(bed: &Bed, more: &str) -> Self {
        let text = format!(
            "[store]\nurl = \"{}\"\n\n[sources.bin]\nprovider = \"capture\"\n\
             allow_unverified = true\n\n[sources.asana]\nprovider = \"asana\"\n\
             secrets = [\"{ASANA}\"]\n{more}",
            bed.url
        );
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("oncebox.toml"), &text).unwrap();
        let config = Config::parse("test.toml", &text, Environment::default())
            .unwrap_or_else(|error| panic!("{}", error.render(false)));
        let clock = Arc::new(ManualClock::at(time(NOON)));
        let listeners = Listeners {
            public: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
            admin: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
        };
        let ingest = ingest_options(&config.server);
        let store = bed.store.clone();
        let server = Server::start(config, store, clock.clone(), ingest, listeners).await.unwrap();
        Self { server, clock, dir }
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut connection = AsyncConnection::open(self.server.public).await.unwrap();
        connection.request(method, path, headers, body).await.unwrap()
    }

    async fn send(&self, path: &str, draft: &Draft) -> Answer {
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = draft.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name.as_str(), text(value))).collect();
        let headers: Vec<_> = headers.iter().map(|(name, text)| (*name, text.as_str())).collect();
        self.request("POST", path, &headers, &draft.body).await
    }

    /// What is stored, oldest first.
    async fn stored(&self) -> Vec<Receipt> {
        let filter = ReceiptFilter { limit: 100, ..ReceiptFilter::default() };
        let store = &self.server.inbox.store;
        let mut receipts = Vec::new();
        for summary in store.receipts(&filter).await.unwrap().iter().rev() {
            receipts.push(store.receipt(summary.receipt).await.unwrap().unwrap());
        }
        receipts
    }

    /// Runs the command beside the server: what it prints, and how it ends.
    fn run(&self, args: &[&str]) -> (i32, String) {
        run(self.dir.path(), args)
    }
}

fn run(dir: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1").env("STRIPE", STRIPE);
    let output = command.env("ASANA", ASANA).env_remove("ONCEBOX_CONFIG").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

fn stripe(inbox: &Inbox) -> Draft {
    let (stripe, at) = (catalogue::find("stripe").unwrap(), inbox.clock.now());
    let event = SampleEvent { id: "evt_1", event_type: "", at, object: None };
    sign(stripe, &Secret::new(STRIPE), sample(stripe, &event), at).unwrap()
}

fn header(receipt: &Receipt, name: &str) -> Vec<String> {
    let headers = decode_headers(&receipt.headers).into_iter();
    let ours = headers.filter(|(known, _)| known == name);
    ours.map(|(_, value)| String::from_utf8(value).unwrap()).collect()
}

async fn whatever_comes_is_kept_and_marked(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let none: &[(&str, &str)] = &[];
    for (method, path, headers, body) in [
        ("POST", "/in/bin", none, &b"\x00\xffnot text"[..]),
        ("POST", "/in/bin", none, b"\x00\xffnot text"),
        ("PUT", "/in/bin?a=1&b=%20", &[("Content-Encoding", "gzip")], b"packed"),
        ("PATCH", "/in/bin", &[("X-Odd", "1")], b"{}"),
        ("GET", "/in/bin?challenge=abc", none, b""),
    ] {
        let answer = inbox.request(method, path, headers, body).await;
        assert_eq!(answer.status, 202, "{method} {path}: {answer:?}");
        assert_eq!(answer.json()["status"], "accepted");
    }
    for method in ["DELETE", "OPTIONS"] {
        let answer = inbox.request(method, "/in/bin", &[], b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, PUT, PATCH")));
    }
    let stored = inbox.stored().await;
    let kinds: Vec<_> = stored.iter().map(|receipt| receipt.summary.event_type.as_str()).collect();
    assert_eq!(
        kinds,
        ["capture.post", "capture.post", "capture.put", "capture.patch", "capture.get"]
    );
    for receipt in &stored {
        assert_eq!(receipt.summary.trust, Trust::Unverified);
        assert_eq!(receipt.summary.event_id, receipt.summary.receipt.to_string());
        assert_eq!(header(receipt, "oncebox-trust"), ["unverified"]);
    }
    assert_eq!(stored[0].body, b"\x00\xffnot text");
    assert_eq!(header(&stored[2], "oncebox-request"), ["PUT /in/bin?a=1&b=%20"]);
    assert_eq!(header(&stored[4], "oncebox-request"), ["GET /in/bin?challenge=abc"]);

    let (code, text) = inbox.run(&["receipts", "list"]);
    assert!(code == 0 && text.matches("unverified").count() == 5, "{text}");
    let (code, text) = inbox.run(&["receipts", "list", "--json", "--limit", "1"]);
    assert!(code == 0 && text.contains("\"trust\":\"unverified\""), "{text}");
    let id = stored[2].summary.receipt.to_string();
    let (code, text) = inbox.run(&["receipts", "show", &id]);
    assert!(code == 0 && text.contains("UNVERIFIED"), "{text}");
    assert!(text.contains("PUT /in/bin?a=1&b=%20"), "{text}");
    let (code, text) = inbox.run(&["sources", "list", "--json"]);
    assert!(code == 0 && text.contains("\"unverified\":true"), "{text}");
    inbox.server.stop().await;
}

/// A sender who calls its headers like ours does not speak for us.
async fn nobody_can_take_the_mark_away(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let forged = [
        ("Oncebox-Trust", "signed"),
        ("Oncebox-Request", "GET /admin"),
        ("Authorization", "Bearer canary-token"),
    ];
    assert_eq!(inbox.request("POST", "/in/bin", &forged, b"x").await.status, 202);
    let stored = inbox.stored().await;
    assert_eq!(header(&stored[0], "oncebox-trust"), ["unverified"]);
    assert_eq!(header(&stored[0], "oncebox-request"), ["POST /in/bin"]);
    assert!(!String::from_utf8_lossy(&stored[0].headers).contains("canary"));
    inbox.server.stop().await;
}

/// Whoever is sent here by a provider may have its token in a header of its own.
async fn a_token_is_kept_as_a_fingerprint(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let tokens = [
        ("X-Gitlab-Token", "canary-gitlab"),
        ("X-Telegram-Bot-Api-Secret-Token", "canary-telegram"),
        ("Cookie", "canary-cookie"),
        ("X-Hook-Secret", "canary-asana"),
    ];
    assert_eq!(inbox.request("POST", "/in/bin", &tokens, b"x").await.status, 202);
    let stored = inbox.stored().await;
    for (name, _) in tokens {
        let kept = header(&stored[0], &name.to_lowercase());
        assert!(kept.len() == 1 && kept[0].starts_with("fingerprint:"), "{name}: {kept:?}");
    }
    assert!(!String::from_utf8_lossy(&stored[0].headers).contains("canary"));
    inbox.server.stop().await;
}

async fn a_capture_is_bounded(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let config = inbox.server.config();
    let printed = config.print();
    assert!(printed.contains("quota = \"64MiB\""), "{printed}");
    assert!(printed.contains("payloads = \"1d\""), "{printed}");
    let large = vec![b'x'; (1 << 20) + 1];
    assert_eq!(inbox.request("POST", "/in/bin", &[], &large).await.status, 413);
    inbox.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_bin_takes_no_more() {
    let bed = Bed::sqlite().await;
    let more = "\n[sources.small]\nprovider = \"capture\"\nallow_unverified = true\n\
                quota = \"1KiB\"\n";
    let inbox = Inbox::start(&bed, more).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(inbox.request("POST", "/in/small", &[], &[b'x'; 512]).await.status);
    }
    assert_eq!(answers.first(), Some(&202));
    assert_eq!(answers.last(), Some(&503), "{answers:?}");
    inbox.server.stop().await;
}

async fn a_capture_is_exported_and_checked_until_it_is_understood(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let draft = stripe(&inbox);
    assert_eq!(inbox.send("/in/bin?from=stripe", &draft).await.status, 202);
    let args = ["receipts", "export", "--source", "bin", "--format", "http", "--out", "out"];
    let (code, text) = inbox.run(&args);
    assert!(code == 0 && text.contains("--provider NAME"), "{text}");
    let id = inbox.stored().await[0].summary.receipt;
    let file = inbox.dir.path().join(format!("out/{id}.http"));
    let wire = std::fs::read(&file).unwrap();
    assert!(wire.starts_with(b"POST /in/bin?from=stripe HTTP/1.1\r\n"));
    assert!(wire.ends_with(&draft.body));
    assert!(!String::from_utf8_lossy(&wire).contains("oncebox-"));

    let (file, at) = (file.display().to_string(), NOON.to_string());
    let verify = |provider: &str, secret: &str| {
        inbox.run(&["verify", "--provider", provider, "--secret", secret, "--at", &at, &file])
    };
    let (code, text) = verify("stripe", "env:STRIPE");
    assert!(code == 0 && text.contains("verified: it comes from Stripe"), "{text}");
    assert_eq!(verify("stripe", "env:ASANA").0, 4);
    assert_eq!(verify("github", "env:STRIPE").0, 4);
    inbox.server.stop().await;
}

async fn a_capture_is_sent_again_byte_for_byte(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let destination = Destination::start();
    let body = b"\x00\xff{ raw }\n";
    inbox.request("PUT", "/in/bin?a=1", &[("X-Signature", "abc")], body).await;
    let id = inbox.stored().await[0].summary.receipt.to_string();
    let to = format!("http://{}/hooks", destination.address());
    let (code, text) = inbox.run(&["receipts", "send", &id, "--to", &to]);
    assert!(code == 1 && text.contains("--allow-private"), "{text}");
    assert!(destination.requests().is_empty());

    let (code, text) = inbox.run(&["receipts", "send", &id, "--to", &to, "--allow-private"]);
    assert!(code == 0 && text.contains("200"), "{text}");
    let received = destination.wait_for(1).remove(0);
    assert_eq!((received.method.as_str(), received.target.as_str()), ("PUT", "/hooks"));
    assert_eq!(received.body, body);
    assert_eq!(received.header("x-signature"), Some("abc"));
    assert_eq!(
        (received.header("oncebox-trust"), received.header("oncebox-request")),
        (None, None)
    );

    destination.always(oncebox_testkit::destination::Behaviour::status(401));
    let args = ["receipts", "send", &id, "--to", &to, "--allow-private", "--json"];
    let (code, text) = inbox.run(&args);
    assert!(code == 4 && text.contains("\"status\":401"), "{text}");
    let nobody = "00000000-0000-7000-8000-000000000000";
    assert_eq!(inbox.run(&["receipts", "send", nobody, "--to", &to]).0, 3);
    inbox.server.stop().await;
}

async fn a_consumer_that_wants_captures_knows_what_they_are(bed: Bed) {
    let destination = Destination::start();
    let route = format!(
        "\n[routes.look]\nsources = [\"bin\"]\nallow_unverified = true\nallow_private = true\n\
         push = \"http://{}/\"\n",
        destination.address()
    );
    let inbox = Inbox::start(&bed, &route).await;
    inbox.request("PATCH", "/in/bin?a=1", &[("Oncebox-Trust", "signed")], b"{}").await;
    let received = destination.wait_for(1).remove(0);
    assert_eq!(received.all("oncebox-trust"), ["unverified"]);
    assert_eq!(received.header("oncebox-request"), Some("PATCH /in/bin?a=1"));
    assert_eq!(received.header("oncebox-event-type"), Some("capture.patch"));
    assert_eq!(received.body, b"{}");
    inbox.server.stop().await;
}

async fn an_item_of_a_batch_is_exported_whole(bed: Bed) {
    let inbox = Inbox::start(&bed, "").await;
    let (asana, at) = (catalogue::find("asana").unwrap(), inbox.clock.now());
    let item = |gid: &str| {
        format!(
            r#"{{"action":"changed","created_at":"2026-01-02T03:04:05Z","resource":{{"gid":"{gid}","resource_type":"task"}}}}"#
        )
    };
    let event = SampleEvent { id: "1", event_type: "", at, object: None };
    let mut draft = sample(asana, &event);
    let body = format!(r#"{{"events":[{},{},{}]}}"#, item("1"), item("2"), item("3"));
    draft.body = body.clone().into_bytes();
    let draft = sign(asana, &Secret::new(ASANA), draft, at).unwrap();
    assert_eq!(inbox.send("/in/asana", &draft).await.status, 202);
    let stored = inbox.stored().await;
    assert_eq!(stored.len(), 3);

    let second = stored[1].summary.receipt.to_string();
    let (code, text) = inbox.run(&["receipts", "show", &second]);
    assert!(code == 0 && text.contains("item 2 of 3"), "{text}");
    let (_, text) = inbox.run(&["receipts", "show", &second, "--json"]);
    assert!(text.contains("\"item\":2") && text.contains("\"items\":3"), "{text}");
    let args = ["receipts", "export", "--source", "asana", "--format", "http", "--out", "out"];
    assert_eq!(inbox.run(&args).0, 0);
    let file = inbox.dir.path().join(format!("out/{second}.http"));
    assert!(std::fs::read(&file).unwrap().ends_with(body.as_bytes()));
    let (file, at) = (file.display().to_string(), NOON.to_string());
    let (code, text) = inbox.run(&["verify", "--source", "asana", "--at", &at, &file]);
    assert_eq!(code, 0, "{text}");
    inbox.server.stop().await;
}

#[test]
fn captures_are_asked_for_and_go_nowhere_by_mistake() {
    let errors = |text: &str| {
        let parsed = Config::parse("test.toml", text, Environment::default());
        parsed.map(drop).map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let bin = "[sources.bin]\nprovider = \"capture\"\n";
    assert!(errors(bin).contains("verifies nothing"), "{}", errors(bin));
    let allowed = format!("{bin}allow_unverified = true\n");
    assert_eq!(errors(&allowed), "");
    let secret = errors(&format!("{allowed}secrets = [\"12345678\"]\n"));
    assert!(secret.contains("checks no secret"), "{secret}");
    let unknown = errors(&format!("{allowed}header = \"x\"\n"));
    assert!(unknown.contains("unknown key"), "{unknown}");
    let other = errors(
        "[sources.a]\nprovider = \"github\"\nsecrets = [\"12345678\"]\nallow_unverified = true\n",
    );
    assert!(other.contains("`allow_unverified` is for"), "{other}");
    let route = format!("{allowed}\n[routes.r]\nsources = [\"bin\"]\npull = true\n");
    let told = errors(&route);
    assert!(told.contains("route `r` takes from `bin`, which verifies nothing"), "{told}");
    assert_eq!(errors(&format!("{route}allow_unverified = true\n")), "");
    let config = Config::parse("test.toml", &allowed, Environment::default()).unwrap();
    assert!(config.ready().is_ok());
    let again = Config::parse("test.toml", &config.print(), Environment::default());
    assert!(again.is_ok(), "a printed configuration can be read");
}
