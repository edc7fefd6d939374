//! Providers that tell their secret: heard in a window only, kept, and in force everywhere.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use oncebox::clock::{Clock, ManualClock};
use oncebox::receipt::SourceNo;
use oncebox::store::{PairedNo, ReceiptFilter, Store};
use oncebox_server::config::{Config, Environment};
use oncebox_server::pairing;
use oncebox_server::server::{Listeners, Server, ingest_options};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::for_each_store;
use oncebox_testkit::gate::Gate;
use oncebox_testkit::http::{Answer, AsyncConnection};
use oncebox_testkit::store::{Bed, NOON, act, time};
use oncebox_verify::{Keyring, Request, SampleEvent, Secret, catalogue, sample, sign, verify};
use tokio::net::TcpListener;

for_each_store!(
    a_source_that_was_never_paired_believes_nobody,
    a_handshake_is_heard_in_a_window_only,
    a_secret_is_never_replaced,
    of_two_at_once_one_wins,
    a_restart_keeps_the_secret,
    another_master_secret_opens_nothing,
    another_process_learns_of_it,
    a_reload_meanwhile_keeps_the_secret,
    strangers_wait_for_no_turn,
    who_failed_too_often_does_not_reach_the_store,
    secrets_that_cannot_be_opened_are_told_of,
    what_stands_in_for_a_name_is_told_nothing,
    a_forgotten_secret_is_believed_no_longer,
    the_token_of_notion_is_kept,
    configured_secrets_stay_good,
    pushes_are_signed_with_what_was_told,
    hostile_secrets_are_refused,
    a_store_that_is_down_says_so,
    the_command_opens_a_window_and_waits,
    the_command_shows_and_removes_secrets,
    commands_sign_and_check_with_what_was_told,
);

const MASTER: &str = "canary-master-secret-of-32-bytes-and-more";

const TOLD: &str = "canary-told-by-the-provider";

const SOURCES: &str = r#"
[sources.asana]
provider = "asana"

[sources.clio]
provider = "clio"
secrets = ["canary-configured-secret"]

[sources.notion]
provider = "notion"
"#;

struct Inbox {
    server: Server,
    clock: Arc<ManualClock>,
}

fn config(master: &str) -> Config {
    config_with(master, "")
}

fn config_with(master: &str, more: &str) -> Config {
    let text = format!("[store]\nmaster_secret = \"{master}\"\n{SOURCES}{more}");
    Config::parse("test.toml", &text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

impl Inbox {
    async fn start(bed: &Bed) -> Self {
        Self::under(bed, MASTER).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn under(bed: &Bed, master: &str) -> Result<Self, String> {
        Self::on(bed.store.clone(), config(master)).await
    }

    async fn on(store: Arc<dyn Store>, config: Config) -> Result<Self, String> {
        let clock = Arc::new(ManualClock::at(time(NOON)));
        let listeners = Listeners {
            public: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
            admin: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
        };
        let ingest = ingest_options(&config.server);
        let started = Server::start(config, store, clock.clone(), ingest, listeners);
        let server = started.await.map_err(|error| error.to_string())?;
        Ok(Self { server, clock })
    }

    async fn request(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = AsyncConnection::open(self.server.public).await.unwrap();
        connection.request("POST", path, headers, body).await.unwrap()
    }

    /// A handshake of Asana or Clio.
    async fn handshake(&self, source: &str, secret: &str) -> Answer {
        self.request(&format!("/in/{source}"), &[("X-Hook-Secret", secret)], b"").await
    }

    /// An event under this secret.
    async fn event(&self, source: &str, secret: &str, id: &str) -> u16 {
        let provider = catalogue::find(source).unwrap();
        let at = self.clock.now();
        let event = SampleEvent { id, event_type: "", at, object: Some(id) };
        let draft = sign(provider, &Secret::new(secret), sample(provider, &event), at).unwrap();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = draft.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name.as_str(), text(value))).collect();
        let headers: Vec<_> = headers.iter().map(|(name, text)| (*name, text.as_str())).collect();
        self.request(&format!("/in/{source}"), &headers, &draft.body).await.status
    }

    async fn number(&self, source: &str) -> SourceNo {
        let sources = self.server.inbox.store.sources().await.unwrap();
        sources.into_iter().find(|(_, name)| name == source).unwrap().0
    }

    async fn open(&self, source: &str) {
        let number = self.number(source).await;
        let store = &self.server.inbox.store;
        store.open_pairing(number, Duration::from_secs(600), &act("a test")).await.unwrap();
    }

    async fn secrets(&self, source: &str) -> usize {
        let number = self.number(source).await;
        self.server.inbox.store.paired_secrets(number).await.unwrap().len()
    }

    async fn metric(&self, line: &str) -> Option<u64> {
        let mut connection = AsyncConnection::open(self.server.admin).await.unwrap();
        let answer = connection.request("GET", "/metrics", &[], b"").await.unwrap();
        let text = answer.text();
        assert!(!text.contains("canary"), "{text}");
        let found = text.lines().find_map(|found| found.strip_prefix(line))?;
        Some(found.trim().parse().unwrap())
    }
}

#[track_caller]
fn assert_rejected(answer: &Answer) {
    assert_eq!(answer.status, 401, "{answer:?}");
    assert_eq!(answer.text(), r#"{"error":"invalid_signature"}"#);
    assert_eq!(answer.header("x-hook-secret"), None);
}

async fn a_source_that_was_never_paired_believes_nobody(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    for secret in [TOLD, MASTER, "x"] {
        assert_eq!(inbox.event("asana", secret, "1").await, 401);
    }
    assert_eq!(inbox.request("/in/asana", &[], b"{}").await.status, 401);
    let reason = "oncebox_rejections_total{source=\"asana\",reason=\"not_paired\"}";
    assert_eq!(inbox.metric(reason).await, Some(4));
    inbox.server.stop().await;
}

async fn a_handshake_is_heard_in_a_window_only(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    assert_rejected(&inbox.handshake("asana", TOLD).await);
    assert_eq!(inbox.secrets("asana").await, 0);
    let reason = "oncebox_rejections_total{source=\"asana\",reason=\"pairing_closed\"}";
    assert_eq!(inbox.metric(reason).await, Some(1));

    inbox.open("asana").await;
    let answer = inbox.handshake("asana", TOLD).await;
    assert_eq!((answer.status, answer.header("x-hook-secret")), (200, Some(TOLD)));
    assert_eq!(answer.text(), "");
    assert_eq!(inbox.event("asana", TOLD, "1").await, 202);
    assert_eq!(inbox.event("asana", "another-secret", "2").await, 401);

    let handshakes = "oncebox_received_total{source=\"asana\",outcome=\"handshake\"}";
    assert_eq!(inbox.metric(handshakes).await, Some(1));
    let filter = ReceiptFilter { limit: 10, ..ReceiptFilter::default() };
    let kept = inbox.server.inbox.store.receipts(&filter).await.unwrap();
    assert_eq!(kept.len(), 1, "a handshake is not recorded");
    let receipt = inbox.server.inbox.store.receipt(kept[0].receipt).await.unwrap().unwrap();
    assert_eq!(receipt.secret.1.as_deref(), Some(&*Secret::new(TOLD).fingerprint()));
    inbox.server.stop().await;
}

async fn a_secret_is_never_replaced(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    // The provider may repeat itself; nobody else is heard.
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    assert_rejected(&inbox.handshake("asana", "of-somebody-else").await);
    assert_eq!((inbox.secrets("asana").await, inbox.event("asana", TOLD, "1").await), (1, 202));
    assert_eq!(inbox.event("asana", "of-somebody-else", "2").await, 401);

    // Each webhook of Asana has a secret of its own: another window adds one.
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", "of-the-second-webhook").await.status, 200);
    assert_eq!(inbox.event("asana", "of-the-second-webhook", "3").await, 202);
    assert_eq!(inbox.event("asana", TOLD, "4").await, 202);
    inbox.server.stop().await;
}

async fn of_two_at_once_one_wins(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    let secrets: Vec<String> = (0..4).map(|number| format!("secret-number-{number}")).collect();
    let [a, b, c, d] = &secrets[..] else { panic!("four") };
    let tell = |secret| inbox.handshake("asana", secret);
    let (a, b, c, d) = tokio::join!(tell(a), tell(b), tell(c), tell(d));
    let answers = [a, b, c, d];
    let heard: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!((heard.len(), inbox.secrets("asana").await), (1, 1), "{answers:?}");
    // As many as may ask at the same time.
    assert!(answers.iter().all(|answer| [200, 401].contains(&answer.status)), "{answers:?}");
    for (secret, answer) in secrets.iter().zip(&answers) {
        let expected = if answer.status == 200 { 202 } else { 401 };
        assert_eq!(inbox.event("asana", secret, secret).await, expected);
    }
    inbox.server.stop().await;
}

async fn a_restart_keeps_the_secret(mut bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    inbox.server.stop().await;
    bed.reopen().await;
    let inbox = Inbox::start(&bed).await;
    assert_eq!(inbox.event("asana", TOLD, "1").await, 202);
    // A reload keeps it as well.
    inbox.server.reload(config(MASTER)).await.unwrap();
    assert_eq!(inbox.event("asana", TOLD, "2").await, 202);
    let wrong = inbox.server.reload(config(&MASTER.replace('c', "d"))).await.unwrap_err();
    assert!(wrong.to_string().contains("another master secret"), "{wrong}");
    assert_eq!(inbox.event("asana", TOLD, "3").await, 202);
    inbox.server.stop().await;
}

async fn another_master_secret_opens_nothing(mut bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    inbox.server.stop().await;
    bed.reopen().await;
    let error = Inbox::under(&bed, "another-master-secret-of-32-bytes").await.err().unwrap();
    for told in ["source `asana`", "another master secret", "oncebox sources forget asana 1"] {
        assert!(error.contains(told), "{told} in {error}");
    }
    assert!(!error.contains("canary"), "{error}");
}

async fn another_process_learns_of_it(bed: Bed) {
    let (one, other) = (Inbox::start(&bed).await, Inbox::start(&bed).await);
    one.open("asana").await;
    assert_eq!(one.handshake("asana", TOLD).await.status, 200);
    // The provider may come to the other one with the same handshake at once.
    assert_eq!(other.handshake("asana", TOLD).await.status, 200);
    one.open("asana").await;
    assert_eq!(one.handshake("asana", "of-the-second-webhook").await.status, 200);
    // And so may its first event, before anybody looked.
    assert_eq!(other.event("asana", "of-the-second-webhook", "1").await, 202);
    assert_eq!(other.event("asana", "of-somebody-else", "2").await, 401);
    one.open("notion").await;
    let body = format!(r#"{{"verification_token":"{TOLD}"}}"#);
    assert_eq!(one.request("/in/notion", &[], body.as_bytes()).await.status, 200);
    assert_eq!(other.event("notion", TOLD, "3").await, 202);
    let receipts = ReceiptFilter { limit: 10, ..ReceiptFilter::default() };
    let store = &other.server.inbox.store;
    let kept = store.receipts(&receipts).await.unwrap();
    let kept = store.receipt(kept[0].receipt).await.unwrap().unwrap();
    assert_eq!(kept.secret.1.as_deref(), Some(&*Secret::new(TOLD).fingerprint()));
    one.server.stop().await;
}

/// A handshake is under way while the configuration is replaced: what is in force afterwards knows
/// the secret.
async fn a_reload_meanwhile_keeps_the_secret(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let inbox = Inbox::on(gate.clone(), config(MASTER)).await.unwrap();
    inbox.open("asana").await;
    gate.hold();
    let reload = async {
        gate.await_held(1).await;
        inbox.server.reload(config(MASTER)).await.unwrap();
        gate.release();
    };
    let (answer, ()) = tokio::join!(inbox.handshake("asana", TOLD), reload);
    assert_eq!(answer.status, 200);
    let source = inbox.server.inbox.live().sources.find("asana").unwrap();
    assert_eq!(source.keyring.len(), 1);
    inbox.server.stop().await;
}

/// However many tell a secret, few ask the store, and nobody waits for that.
async fn strangers_wait_for_no_turn(bed: Bed) {
    let gate = Gate::before(bed.store.clone());
    let inbox = Inbox::on(gate.clone(), config(MASTER)).await.unwrap();
    gate.hold();
    let strangers = async {
        let tell = || inbox.handshake("asana", "of-a-stranger");
        tokio::join!(tell(), tell(), tell(), tell())
    };
    let another = async {
        gate.await_held(pairing::AT_ONCE).await;
        let refused = inbox.handshake("asana", TOLD).await;
        let event = inbox.event("asana", TOLD, "1").await;
        gate.release();
        (refused, event)
    };
    let (strangers, (refused, event)) = tokio::join!(strangers, another);
    let (a, b, c, d) = strangers;
    assert_eq!([a, b, c, d].map(|answer| answer.status), [401; pairing::AT_ONCE]);
    assert_eq!((refused.status, event), (503, 503));
    assert!(refused.header("retry-after").is_some());
    let busy = "oncebox_unavailable_total{source=\"asana\",reason=\"pairing_busy\"}";
    assert_eq!(inbox.metric(busy).await, Some(2));
    // Then there is a turn for the provider.
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    inbox.server.stop().await;
}

async fn who_failed_too_often_does_not_reach_the_store(bed: Bed) {
    let limit = "[limits]\nfailed_signatures_per_minute = 3\n";
    let gate = Gate::before(bed.store.clone());
    let inbox = Inbox::on(gate.clone(), config_with(MASTER, limit)).await.unwrap();
    for _ in 0..3 {
        assert_rejected(&inbox.handshake("asana", "of-a-stranger").await);
    }
    // A store that does not answer would be told of.
    gate.hold();
    bed.store.close().await;
    let answer = inbox.handshake("asana", TOLD).await;
    assert_eq!((answer.status, answer.header("retry-after").is_some()), (429, true));
    assert_eq!(inbox.event("asana", TOLD, "1").await, 429);
}

/// A process that was given another master secret than the one that paired.
async fn secrets_that_cannot_be_opened_are_told_of(bed: Bed) {
    let (inbox, wrong) = (Inbox::start(&bed).await, &MASTER.replace('c', "d"));
    let other = Inbox::under(&bed, wrong).await.unwrap();
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    assert_eq!(other.handshake("asana", TOLD).await.status, 503);
    assert_eq!(other.event("asana", TOLD, "1").await, 503);
    let failed = "oncebox_unavailable_total{source=\"asana\",reason=\"pairing_failed\"}";
    assert_eq!(other.metric(failed).await, Some(2));
    inbox.server.stop().await;
}

/// Where nobody may tell which sources exist, a source stands in for every name that is none.
async fn what_stands_in_for_a_name_is_told_nothing(bed: Bed) {
    let hidden = "[server]\nhide_unknown_sources = true\n";
    let inbox = Inbox::on(bed.store.clone(), config_with(MASTER, hidden)).await.unwrap();
    inbox.open("asana").await;
    inbox.open("clio").await;
    for number in 0..8 {
        assert_rejected(&inbox.handshake(&format!("no-source-{number}"), TOLD).await);
    }
    assert_eq!((inbox.secrets("asana").await, inbox.secrets("clio").await), (0, 0));
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    inbox.server.stop().await;
}

async fn a_forgotten_secret_is_believed_no_longer(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    let number = inbox.number("asana").await;
    let store = &inbox.server.inbox.store;
    assert!(store.remove_paired_secret(number, PairedNo(1), &act("old")).await.unwrap());
    pairing::refresh_all(&inbox.server.inbox).await;
    assert_eq!(inbox.event("asana", TOLD, "1").await, 401);
    assert_rejected(&inbox.handshake("asana", TOLD).await);
    inbox.server.stop().await;
}

async fn the_token_of_notion_is_kept(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    let body = format!(r#"{{"verification_token":"{TOLD}"}}"#);
    assert_rejected(&inbox.request("/in/notion", &[], body.as_bytes()).await);
    inbox.open("notion").await;
    let answer = inbox.request("/in/notion", &[], body.as_bytes()).await;
    assert_eq!((answer.status, answer.text()), (200, String::new()));
    assert_eq!(inbox.event("notion", TOLD, "1").await, 202);
    inbox.server.stop().await;
}

async fn configured_secrets_stay_good(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    assert_eq!(inbox.event("clio", "canary-configured-secret", "1").await, 202);
    inbox.open("clio").await;
    assert_eq!(inbox.handshake("clio", TOLD).await.status, 200);
    assert_eq!(inbox.event("clio", TOLD, "2").await, 202);
    assert_eq!(inbox.event("clio", "canary-configured-secret", "3").await, 202);
    inbox.server.stop().await;
}

/// A route that signs as the provider knows the secret as soon as the source does.
async fn pushes_are_signed_with_what_was_told(bed: Bed) {
    let destination = Destination::start();
    let route = format!(
        "[routes.app]\nsources = [\"asana\"]\nsign = \"provider\"\nallow_private = true\n\
         push = \"http://{}/\"\n",
        destination.address()
    );
    let inbox = Inbox::on(bed.store.clone(), config_with(MASTER, &route)).await.unwrap();
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    assert_eq!(inbox.event("asana", TOLD, "1").await, 202);
    let asked = tokio::task::spawn_blocking(move || destination.wait_for(1)).await.unwrap();
    let mut headers = http::HeaderMap::new();
    let signature = asked[0].header("x-hook-signature").expect("a signature of Asana");
    headers.insert("x-hook-signature", signature.parse().unwrap());
    let request = Request { method: "POST", url: "/", headers: &headers, body: &asked[0].body };
    let asana = catalogue::find("asana").unwrap();
    let keyring = Keyring::new(asana, vec![Secret::new(TOLD)]).unwrap();
    verify(asana, &keyring, &request, inbox.clock.now()).expect("the secret that was told");
    inbox.server.stop().await;
}

/// What no key can be made of, or what no provider sends, must not get into the store: the source
/// could not start again.
async fn hostile_secrets_are_refused(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    inbox.open("notion").await;
    let key = format!("whpk_{}", "A".repeat(43));
    let long = "x".repeat(1025);
    for secret in ["", "short", &long, &key, "whsk_abc-def-ghi", "caf\u{e9}-caf\u{e9}", "two words"]
    {
        assert_rejected(&inbox.handshake("asana", secret).await);
        let body = serde_json::json!({ "verification_token": secret }).to_string();
        assert_rejected(&inbox.request("/in/notion", &[], body.as_bytes()).await);
    }
    let twice = [("X-Hook-Secret", TOLD), ("X-Hook-Secret", "another-secret")];
    assert_rejected(&inbox.request("/in/asana", &twice, b"").await);
    for body in [
        r#"{"verification_token":["canary-told"]}"#,
        r#"{"verification_token":"line\nbreak"}"#,
        r#"{"verification_token":"<script>alert(1)</script>"#,
    ] {
        assert_rejected(&inbox.request("/in/notion", &[], body.as_bytes()).await);
    }
    assert_eq!((inbox.secrets("asana").await, inbox.secrets("notion").await), (0, 0));
    // The window was not used up.
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    inbox.server.stop().await;
}

async fn a_store_that_is_down_says_so(bed: Bed) {
    let inbox = Inbox::start(&bed).await;
    inbox.open("asana").await;
    bed.store.close().await;
    let answer = inbox.handshake("asana", TOLD).await;
    assert_eq!((answer.status, answer.text().as_str()), (503, r#"{"error":"unavailable"}"#));
    assert!(answer.header("retry-after").is_some());
    // Perhaps the secret of this one came by another process: where that cannot be read, nobody
    // can tell. A file can, though nothing is written to it any more.
    let is_file = bed.url.starts_with("sqlite");
    assert_eq!(inbox.event("asana", TOLD, "1").await, if is_file { 401 } else { 503 });
    let down = "oncebox_unavailable_total{source=\"asana\",reason=\"store_down\"}";
    assert_eq!(inbox.metric(down).await, Some(if is_file { 1 } else { 2 }));
}

/// A folder whose configuration names the store of a bed.
fn folder(bed: &Bed) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "[store]\nurl = \"{}\"\nmaster_secret = \"env:MASTER\"\n{SOURCES}\n\
         [sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"whsec_of_stripe\"]\n",
        bed.url
    );
    std::fs::write(dir.path().join("oncebox.toml"), text).unwrap();
    dir
}

/// The command, run there.
fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1").env("MASTER", MASTER);
    command.env_remove("ONCEBOX_CONFIG").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a run ended, what it found, and what it told beside that.
fn run(command: &mut Command) -> (i32, String, String) {
    ended(command.spawn().unwrap())
}

fn ended(child: Child) -> (i32, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

async fn the_command_opens_a_window_and_waits(bed: Bed) {
    let (inbox, dir) = (Inbox::start(&bed).await, folder(&bed));
    let sources = |args: &[&str]| run(&mut command(dir.path(), &[&["sources"], args].concat()));
    let waiting = command(dir.path(), &["sources", "pair", "notion"]).spawn().unwrap();
    let number = inbox.number("notion").await;
    let store = &inbox.server.inbox.store;
    while !store.pairing(number).await.unwrap().is_some_and(|window| window.is_open) {
        tokio::task::yield_now().await;
    }
    let (_, list, _) = sources(&["list"]);
    assert!(list.contains("notion") && list.contains("pairing ends"), "{list}");
    let body = format!(r#"{{"verification_token":"{TOLD}"}}"#);
    assert_eq!(inbox.request("/in/notion", &[], body.as_bytes()).await.status, 200);
    let (code, found, told) = ended(waiting);
    let print = Secret::new(TOLD).fingerprint();
    assert_eq!((code, found), (0, format!("paired: secret 1, fingerprint {print}\n")));
    for told_of in ["/in/notion", "make the webhook at Notion", "--reveal"] {
        assert!(told.contains(told_of), "{told_of} in {told}");
    }
    assert!(!told.contains("canary"), "{told}");

    let (code, _, told) = sources(&["pair", "asana", "--for", "1s"]);
    assert!(code == 1 && told.contains("the window has ended"), "{told}");
    assert_eq!(sources(&["pair", "asana", "--no-wait"]).0, 0);
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    assert_eq!(sources(&["pair", "asana", "--no-wait"]).0, 0);
    assert_eq!(sources(&["unpair", "asana"]).0, 0);
    assert_rejected(&inbox.handshake("asana", "of-another-webhook").await);
    assert_eq!(sources(&["unpair", "asana"]).0, 1);

    assert_eq!(sources(&["pair", "stripe"]).0, 2);
    assert_eq!(sources(&["pair", "nobody"]).0, 3);
    assert_eq!(sources(&["pair", "asana", "--for", "2d"]).0, 2);
    let mut unset = command(dir.path(), &["sources", "pair", "asana", "--no-wait"]);
    assert_eq!(run(unset.env_remove("MASTER")).0, 78);
    inbox.server.stop().await;
}

async fn the_command_shows_and_removes_secrets(bed: Bed) {
    let (inbox, dir) = (Inbox::start(&bed).await, folder(&bed));
    let sources = |args: &[&str]| run(&mut command(dir.path(), &[&["sources"], args].concat()));
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);

    let print = Secret::new(TOLD).fingerprint();
    for args in [&["secrets", "asana"][..], &["secrets", "asana", "--json"], &["list", "--json"]] {
        let (code, found, _) = sources(args);
        assert!(code == 0 && found.contains(&print), "{found}");
        assert!(!found.contains("canary"), "{found}");
    }
    let (code, found, _) = sources(&["secrets", "asana", "--reveal", "--reason", "a form"]);
    assert!(code == 0 && found.contains(TOLD), "{found}");
    let mut other = command(dir.path(), &["sources", "secrets", "asana", "--reveal"]);
    let (code, _, told) = run(other.env("MASTER", "another-master-secret-of-32-bytes"));
    assert!(code != 0 && told.contains("another master secret"), "{told}");

    assert_eq!(sources(&["forget", "asana", "2"]).0, 3);
    assert_eq!(sources(&["forget", "asana", "1", "--reason", "deleted"]).0, 0);
    assert_eq!((sources(&["forget", "asana", "1"]).0, inbox.secrets("asana").await), (3, 0));
    let audit = inbox.server.inbox.store.audit(None, 10).await.unwrap();
    let acts: Vec<_> = audit.iter().map(|row| row.act.as_str()).collect();
    assert_eq!(acts, ["secret.remove", "secret.reveal", "secret.paired", "source.pair"]);
    inbox.server.stop().await;
}

/// What a provider told is known to whoever plays the provider, and to whoever checks a capture.
async fn commands_sign_and_check_with_what_was_told(bed: Bed) {
    let (inbox, dir) = (Inbox::start(&bed).await, folder(&bed));
    let to = format!("http://{}/in/asana", inbox.server.public);
    let send = || command(dir.path(), &["send", "asana", "--to", &to]);
    let (code, _, told) = run(&mut send());
    assert!(code == 2 && told.contains("oncebox sources pair asana"), "{told}");
    inbox.open("asana").await;
    assert_eq!(inbox.handshake("asana", TOLD).await.status, 200);
    let (code, found, told) = run(&mut send());
    assert!(code == 0 && found.contains("202"), "{found}{told}");
    let (code, _, told) = run(send().env("MASTER", "another-master-secret-of-32-bytes"));
    assert!(code != 0 && told.contains("another master secret"), "{told}");

    let capture = dir.path().join("capture.http");
    let verify = || command(dir.path(), &["verify", "--source", "asana", "capture.http"]);
    for (secret, expected) in [(TOLD, 0), ("of-somebody-else", 4)] {
        std::fs::write(&capture, captured(secret)).unwrap();
        let (code, found, told) = run(&mut verify());
        assert_eq!(code, expected, "{found}{told}");
        assert!(!found.contains("canary") && !told.contains("canary"), "{found}{told}");
    }
    inbox.server.stop().await;
}

/// An event of Asana as on the wire.
fn captured(secret: &str) -> Vec<u8> {
    let (provider, at) = (catalogue::find("asana").unwrap(), time(NOON));
    let event = SampleEvent { id: "1", event_type: "", at, object: Some("1") };
    let draft = sign(provider, &Secret::new(secret), sample(provider, &event), at).unwrap();
    let mut bytes = b"POST /in/asana HTTP/1.1\r\n".to_vec();
    for (name, value) in &draft.headers {
        bytes.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes()].concat());
        bytes.extend_from_slice(b"\r\n");
    }
    [&bytes, &b"\r\n"[..], &draft.body].concat()
}

#[test]
fn a_master_secret_is_asked_for_where_it_is_needed() {
    let ready = |text: &str| {
        let config = Config::parse("test.toml", text, Environment::default()).unwrap();
        config.ready().map(drop).map_err(|error| error.to_string())
    };
    let alone = "[sources.asana]\nprovider = \"asana\"\n";
    let error = ready(alone).unwrap_err();
    assert!(error.contains("line 2") && error.contains("source `asana`"), "{error}");
    let told = ready(&format!("{alone}secrets = [\"canary-configured\"]\n"));
    assert_eq!(told, Ok(()), "a source with a secret of its own needs none");
    let short = ready("[store]\nmaster_secret = \"canary-too-short\"\n").unwrap_err();
    assert!(short.contains("needs 32 at least") && short.contains("line 2"), "{short}");
    let gone = ready("[store]\nmaster_secret = \"env:NONE\"\n").unwrap_err();
    assert!(gone.contains("NONE is not set"), "{gone}");
    for error in [error, short, gone] {
        assert!(!error.contains("canary"), "{error}");
    }
    let text = format!("[store]\nmaster_secret = \"{MASTER}\"\n{alone}");
    let config = Config::parse("test.toml", &text, Environment::default()).unwrap();
    assert!(config.ready().is_ok());
    assert!(config.print().contains("master_secret = \"***\""), "{}", config.print());
    assert!(!format!("{config:?}").contains("canary"));
}
