//! Handlers written with the official SDKs of providers, behind a route that signs as they do.
//!
//! `make test` installs the SDKs from their registry. Without them, and without the means to get
//! them, these tests say so and are left out.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use ::http::HeaderValue;
use jiff::SignedDuration;
use oncebox::clock::{Clock as _, ManualClock, SystemClock};
use oncebox::delivery::State;
use oncebox::store::{DeliveryFilter, DeliveryRow};
use oncebox_drill::{Event, Simulator};
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::Server;
use oncebox_server::state::Roles;
use oncebox_testkit::ports::free_port;
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::{http, wait};
use oncebox_verify::{Draft, Secret, catalogue};

use crate::bed::Place;
use crate::clocks::serve;

/// The provider, the secret of the source, and that of the route, which the handler knows.
const SDKS: [(&str, &str, &str); 6] = [
    ("stripe", "whsec_canary_of_the_source", "whsec_canary_of_the_handler"),
    ("github", "canary-of-the-source", "canary-of-the-handler"),
    ("shopify", "canary-of-the-source", "canary-of-the-handler"),
    ("slack", "canary-of-the-source", "canary-of-the-handler"),
    ("svix", "whsec_Y2FuYXJ5LW9mLXRoZS1zb3VyY2U=", "whsec_Y2FuYXJ5LW9mLXRoZS1oYW5kbGVy"),
    ("twilio", "canary-of-the-source", "canary-of-the-handler"),
];

/// What Twilio's handler believes to be called by: it stands behind a proxy.
const TWILIO_URL: &str = "https://app.example.com/webhooks/twilio";

const PUBLIC: &str = "https://hooks.example.com/in";

/// Where the SDKs are; none if they are not to be had and need not be.
fn sdks() -> Option<PathBuf> {
    static READY: OnceLock<bool> = OnceLock::new();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let is_ready = READY.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ensure-sdks");
        let done = Command::new(script).env("CARGO_TARGET_DIR", target).status();
        done.expect("a shell").success()
    });
    if !is_ready {
        let is_full = std::env::var_os("ONCEBOX_TEST_FULL").is_some();
        assert!(!is_full, "scripts/ensure-sdks failed");
        eprintln!("left out: the SDKs of providers could not be installed");
    }
    is_ready.then(|| target.join("sdks"))
}

/// The handlers, each on a path that is called like its provider.
fn start_handlers(sdks: &Path, port: u16) -> ServerProcess {
    let script = sdks.join("handlers.mjs");
    let secrets = SDKS.map(|(name, _, secret)| (format!("{name}_secret").to_uppercase(), secret));
    let mut variables: Vec<(String, String)> =
        secrets.map(|(name, secret)| (name, secret.to_owned())).into();
    variables.push(("TWILIO_URL".into(), TWILIO_URL.into()));
    variables.push(("PORT".into(), port.to_string()));
    let handlers = ServerProcess::spawn(Path::new("node"), [script.as_os_str()], variables);
    handlers.wait_for("its first line", |line| line.contains("listening").then_some(()));
    handlers
}

fn config(port: u16, sign: &str) -> Config {
    let mut text =
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n".to_owned();
    for (name, source, handler) in SDKS {
        let signs_url = catalogue::find(name).unwrap().signs_url();
        let public =
            if signs_url { format!("public_url = \"{PUBLIC}/{name}\"\n") } else { "".into() };
        let url = match signs_url && sign == "provider" {
            true => format!("sign_url = \"{TWILIO_URL}\"\n"),
            false => String::new(),
        };
        let secret = match sign {
            "provider" => format!("secret = \"{handler}\"\n"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "[sources.{name}]\nprovider = \"{name}\"\nsecrets = [\"{source}\"]\n{public}\
             [routes.{name}]\nsources = [\"{name}\"]\nallow_private = true\nsign = \"{sign}\"\n\
             push = \"http://127.0.0.1:{port}/{name}\"\n{url}{secret}\
             retry = {{ max_attempts = 100, base = \"20ms\", cap = \"100ms\" }}\n"
        ));
    }
    Config::parse("test.toml", &text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// An event as its provider sends it at that time.
fn draft(name: &str, secret: &str, at: jiff::Timestamp) -> Draft {
    let provider = catalogue::find(name).unwrap().clone();
    let simulator = Simulator::new(provider, Secret::new(secret)).unwrap();
    let mut draft = simulator.draft(&format!("{PUBLIC}/{name}"), &Event::new("evt_1"), at).unwrap();
    if name == "shopify" {
        // Its SDK asks for more than the sample says.
        for (name, value) in
            [("x-shopify-api-version", "2026-01"), ("x-shopify-shop-domain", "a.myshopify.com")]
        {
            draft.headers.insert(name, HeaderValue::from_static(value));
        }
    }
    draft
}

fn post(port: u16, path: &str, draft: &Draft) -> u16 {
    let headers = draft.headers.iter();
    let headers: Vec<_> =
        headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    http::post((Ipv4Addr::LOCALHOST, port).into(), path, &headers, &draft.body).unwrap().status
}

async fn deliveries(server: &Server) -> Vec<DeliveryRow> {
    let filter = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
    server.inbox.store.deliveries(&filter).await.unwrap()
}

/// Waits until something holds of every delivery.
async fn until_all(server: &Server, what: &str, holds: impl Fn(&DeliveryRow) -> bool) {
    let patience = std::time::Instant::now() + wait::DEADLINE;
    loop {
        let rows = deliveries(server).await;
        if rows.len() == SDKS.len() && rows.iter().all(&holds) {
            return;
        }
        assert!(std::time::Instant::now() < patience, "waited in vain until {what}: {rows:#?}");
        tokio::task::yield_now().await;
    }
}

/// Receives an event of each provider two days ago, when no handler answers.
async fn received_two_days_ago(place: &Place, config: &Config, port: u16) -> Vec<Draft> {
    let then = SystemClock.now() - SignedDuration::from_hours(48);
    let server = serve(config, place, Roles::ALL, Arc::new(ManualClock::at(then))).await;
    let public = server.public.port();
    let drafts = SDKS.map(|(name, secret, _)| draft(name, secret, then));
    tokio::task::block_in_place(|| {
        for (draft, (name, ..)) in drafts.iter().zip(SDKS) {
            let status = post(public, &format!("/in/{name}"), draft);
            assert!((200..300).contains(&status), "{name}: {status}");
        }
    });
    assert_ne!(port, public);
    until_all(&server, "each was tried", |row| row.state == State::Retrying).await;
    server.stop().await;
    drafts.into()
}

/// The first attempt meets a handler that is down. Two days later the retry comes, and the SDK
/// takes it for what the provider sent a moment ago.
#[tokio::test(flavor = "multi_thread")]
async fn official_sdks_take_a_retry_two_days_later() {
    let Some(sdks) = sdks() else { return };
    let (place, port) = (Place::sqlite(), free_port());
    let config = config(port, "provider");
    let drafts = received_two_days_ago(&place, &config, port).await;
    let handlers = start_handlers(&sdks, port);
    tokio::task::block_in_place(|| {
        for (draft, (name, ..)) in drafts.iter().zip(SDKS) {
            let status = post(port, &format!("/{name}"), draft);
            assert_eq!(status, 400, "{name}: what came two days ago is refused");
        }
    });
    let server = serve(&config, &place, Roles::ALL, Arc::new(SystemClock)).await;
    until_all(&server, "each is processed", |row| row.state == State::Processed).await;
    for row in deliveries(&server).await {
        assert!(row.counts.attempts > 1, "{row:?}");
        let said = row.summary.as_deref().unwrap_or_default();
        assert!(said.starts_with(&format!("{} took ", row.source)), "{row:?}");
    }
    server.stop().await;
    drop(handlers);
}

/// Without `sign = "provider"` the same handlers refuse it, and an event is dead.
#[tokio::test(flavor = "multi_thread")]
async fn official_sdks_refuse_what_is_not_signed_for_them() {
    let Some(sdks) = sdks() else { return };
    let (place, port) = (Place::sqlite(), free_port());
    let config = config(port, "standard");
    received_two_days_ago(&place, &config, port).await;
    let handlers = start_handlers(&sdks, port);
    let server = serve(&config, &place, Roles::ALL, Arc::new(SystemClock)).await;
    until_all(&server, "each is dead", |row| row.state == State::Dead).await;
    server.stop().await;
    drop(handlers);
}
