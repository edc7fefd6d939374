//! A server in the test's own process, with routes to pull from and a token that may.

use std::sync::Arc;

use oncebox::clock::{Clock, ManualClock};
use oncebox::receipt::ReceiptId;
use oncebox::token::Scope;
use oncebox_server::api::token::mint;
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::{Listeners, Server, ingest_options};
use oncebox_testkit::http::{Answer, AsyncConnection};
use oncebox_testkit::store::{Bed, NOON, Route, act, time};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Two routes to pull from, and one that is pushed.
const CONFIG: &str = r#"
[server]
body_timeout = "300ms"

[sources.stripe-live]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]

[routes.billing]
sources = ["stripe-live"]
pull = true
retry = { max_attempts = 3, base = "10s", cap = "1h" }
max_snoozes = 2

[routes.ledger]
sources = ["stripe-live"]
pull = true

[routes.mailer]
sources = ["stripe-live"]
push = "http://127.0.0.1:9/"
allow_private = true
"#;

/// A server on a bed.
pub(crate) struct Api {
    pub(crate) bed: Bed,
    pub(crate) server: Server,
    pub(crate) clock: Arc<ManualClock>,
    /// May pull from every route.
    pub(crate) token: String,
}

pub(crate) fn configuration(text: &str) -> Config {
    Config::parse("test.toml", text, Environment::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// The usual configuration without one of its sections.
pub(crate) fn without(section: &str) -> Config {
    let parts = CONFIG.split("\n[").filter(|part| !part.starts_with(section));
    configuration(&parts.collect::<Vec<_>>().join("\n["))
}

/// The usual configuration with one more line in a section.
pub(crate) fn with(section: &str, line: &str) -> Config {
    let heading = format!("[{section}]\n");
    assert!(CONFIG.contains(&heading));
    configuration(&CONFIG.replace(&heading, &format!("{heading}{line}\n")))
}

impl Api {
    /// Serves on a bed.
    pub(crate) async fn start(bed: Bed) -> Self {
        Self::start_with(bed, configuration(CONFIG)).await
    }

    /// Serves on a bed with another configuration.
    pub(crate) async fn start_with(bed: Bed, config: Config) -> Self {
        let clock = Arc::new(ManualClock::at(time(NOON)));
        let listeners = Listeners {
            public: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
            admin: Some(TcpListener::bind("127.0.0.1:0").await.unwrap()),
        };
        let ingest = ingest_options(&config.server);
        let server =
            Server::start(config, bed.store.clone(), clock.clone(), ingest, listeners).await;
        let mut api = Self { bed, server: server.unwrap(), clock, token: String::new() };
        api.token = api.make_token(&["pull"], None).await;
        api
    }

    /// A token with these scopes, which ends some seconds from now if it does.
    pub(crate) async fn make_token(&self, scopes: &[&str], ends_in: Option<i64>) -> String {
        let scopes: Vec<Scope> = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        let now = self.clock.now();
        let ends = ends_in.map(|seconds| now + jiff::SignedDuration::from_secs(seconds));
        let (token, text) = mint("worker", scopes, now, ends).unwrap();
        self.bed.store.create_token(&token, &act("a test")).await.unwrap();
        text
    }

    /// The route of that name, as the server has registered it.
    pub(crate) fn route(&self, name: &str) -> Route {
        let live = self.server.inbox.live();
        let route = live.routes.find(name).unwrap();
        Route { no: route.number, rules: route.rules }
    }

    /// Records an event that one route takes.
    pub(crate) async fn event(&self, event_id: &str, route: &str) -> ReceiptId {
        self.bed.due(event_id, &[self.route(route)]).await
    }

    /// Posts to the API with a token.
    pub(crate) async fn post_as(&self, token: &str, path: &str, body: &str) -> Answer {
        let mut connection = AsyncConnection::open(self.server.admin).await.unwrap();
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let path = format!("/api/v1{path}");
        connection.request("POST", &path, &headers, body.as_bytes()).await.unwrap()
    }

    /// Posts to the API with the token that may pull from every route.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_as(&self.token, path, &body.to_string()).await
    }

    /// Claims from a route.
    pub(crate) async fn claim(&self, route: &str, body: &Value) -> Vec<Value> {
        let answer = self.post(&format!("/routes/{route}/claim"), body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.json()["deliveries"].as_array().unwrap().clone()
    }

    /// Claims the one delivery that must be due on a route.
    pub(crate) async fn take(&self, route: &str) -> Value {
        let mut claimed = self.claim(route, &json!({ "lease": "60s" })).await;
        assert_eq!(claimed.len(), 1, "{claimed:?}");
        claimed.remove(0)
    }

    /// Says something of a delivery under the lease it was claimed with.
    pub(crate) async fn say(&self, claimed: &Value, verb: &str, more: Value) -> Answer {
        let mut body = more;
        body["lease"] = claimed["lease"].clone();
        let id = claimed["delivery"].as_str().unwrap();
        self.post(&format!("/deliveries/{id}/{verb}"), &body).await
    }

    /// A line of the metrics.
    pub(crate) async fn metric(&self, name: &str) -> String {
        let mut connection = AsyncConnection::open(self.server.admin).await.unwrap();
        let text = connection.request("GET", "/metrics", &[], b"").await.unwrap().text();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
    }

    /// Where the one delivery of a receipt on a route stands.
    pub(crate) async fn row(&self, receipt: ReceiptId, route: &str) -> oncebox::store::DeliveryRow {
        self.bed.delivery(self.route(route).of(receipt)).await
    }
}

/// Asserts a problem of this status and code, and returns what it says.
#[track_caller]
pub(crate) fn assert_problem(answer: &Answer, status: u16, code: &str) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let body = answer.json();
    assert_eq!(body["type"], "about:blank", "{body}");
    assert_eq!(body["status"], status, "{body}");
    assert_eq!(body["code"], code, "{body}");
    assert!(!body["title"].as_str().unwrap().is_empty(), "{body}");
    body["detail"].as_str().unwrap().to_owned()
}
