//! `oncebox.toml`: what it may say, read with every error at once.
//!
//! `oncebox.example.toml` documents each key in place. Environment variables override the file:
//! `ONCEBOX__SECTION__KEY`, in upper case, with two underscores between the parts. A value is read
//! as TOML, and as plain text if it is none; one value alone is a list of one. In the name of a
//! source, route or destination an underscore stands for a hyphen:
//!
//! ```sh
//! ONCEBOX__STORE__URL=postgres://oncebox@db/oncebox
//! ONCEBOX__SOURCES__STRIPE_LIVE__SECRETS='["env:STRIPE_NEW", "env:STRIPE_OLD"]'
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use oncebox::effect::OUTBOX;
use schemars::JsonSchema;
use serde::Serialize;

mod destination;
mod dotenv;
mod fetch;
mod generic;
mod load;
mod log;
mod master;
mod odd;
mod problem;
mod reader;
mod ready;
mod renames;
mod retention;
mod route;
mod secret;
mod sending;
mod server;
mod setting;
mod signing;
mod source;
mod tree;
mod values;

pub use destination::{DestinationConfig, carrier};
pub use fetch::{FetchConfig, HandOver, Missing};
pub use log::{LogConfig, LogFormat, LogLevel};
pub use odd::OddChoice;
pub use problem::{ConfigError, Problem};
pub use ready::{Keyrings, Readiness, Signers};
pub use retention::{RetentionConfig, RetentionOverride};
pub use route::{Order, RouteConfig, SameFields, SameOperation, SamePreset, Sign, Stale};
pub use secret::{SECRET_BYTES_MIN, SecretRef, StoreUrl};
pub use sending::{OnDead, Retry, Sending};
pub use server::{ServerConfig, TlsConfig};
pub use setting::{SettingRef, keys as setting_keys};
pub use source::{Ack, EACH_BURST, EACH_RATE, SourceConfig};
pub use tree::Environment;
pub use values::{Period, Size, is_name};

pub(crate) use problem::nearest;
use reader::{Findings, Section};
use retention::keep;
use tree::Document;

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "oncebox.toml";

/// What `oncebox config init` writes.
pub const STARTER: &str = include_str!("config/starter.toml");

/// The file whose variables `oncebox dev` reads.
pub const ENV_FILE: &str = ".env";

/// The variable that names the file.
pub const FILE_VARIABLE: &str = "ONCEBOX_CONFIG";

const ADDRESS: &str = "an address and a port, such as \"127.0.0.1:8080\"";
const COUNT: &str = "a whole number";
const PERIOD: &str = "a number and ms, s, m, h or d, such as \"30d\"";
const SIZE: &str = "a number and B, KiB, MiB or GiB, such as \"25MiB\"";
const TEXT: &str = "text in quotes";
const YES_OR_NO: &str = "true or false";

/// The whole configuration, defaults filled in.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "oncebox.toml", deny_unknown_fields)]
pub struct Config {
    /// The listeners and their limits.
    pub server: ServerConfig,
    /// Where receipts are kept.
    pub store: StoreConfig,
    /// What is logged, and how.
    pub log: LogConfig,
    /// Limits on senders.
    pub limits: LimitsConfig,
    /// How long what was received and done is kept.
    pub retention: RetentionConfig,
    /// Where webhooks come in.
    pub sources: BTreeMap<String, SourceConfig>,
    /// Where they go.
    pub routes: BTreeMap<String, RouteConfig>,
    /// Where outbox messages go.
    pub destinations: BTreeMap<String, DestinationConfig>,
    #[serde(skip)]
    document: Arc<Document>,
    #[serde(skip)]
    environment: Environment,
}

/// `[store]`: where receipts are kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct StoreConfig {
    /// `sqlite://PATH` or `postgres://…`.
    pub url: StoreUrl,
    /// What the secrets that providers tell are sealed under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_secret: Option<SecretRef>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { url: StoreUrl::new("sqlite://oncebox.db"), master_secret: None }
    }
}

/// `[limits]`: limits on senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Failed signatures per address and minute that are answered 401; more are answered 429.
    pub failed_signatures_per_minute: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { failed_signatures_per_minute: 60 }
    }
}

impl Config {
    /// The environment it was read in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The configuration as TOML with its defaults, secrets not told.
    pub fn print(&self) -> String {
        toml::to_string(self).expect("every configuration can be written as TOML")
    }

    /// The JSON Schema of the file.
    pub fn schema() -> serde_json::Value {
        generic::add_keys(setting::add_keys(schemars::schema_for!(Config).to_value()))
    }

    /// The name of the file it was read from.
    pub fn file(&self) -> &str {
        &self.document.file
    }

    fn read(mut root: Section<'_>) -> Self {
        let server = ServerConfig::read(root.section("server"));
        let store = StoreConfig::read(root.section("store"));
        let log = LogConfig::read(root.section("log"));
        let limits = LimitsConfig::read(root.section("limits"));
        let retention = RetentionConfig::read(root.section("retention"));
        let sources = root.named("sources").into_iter().filter_map(|(name, section)| {
            let source = SourceConfig::read(&name, section, &retention)?;
            Some((name, source))
        });
        let sources = sources.collect();
        let routes = root.named("routes").into_iter().filter_map(|(name, section)| {
            let route = RouteConfig::read(&name, section)?;
            Some((name, route))
        });
        let routes = routes.collect();
        let destinations = root.named("destinations").into_iter().filter_map(|(name, section)| {
            let destination = DestinationConfig::read(&name, section)?;
            Some((name, destination))
        });
        let destinations = destinations.collect();
        root.finish();
        Self {
            server,
            store,
            log,
            limits,
            retention,
            sources,
            routes,
            destinations,
            ..Self::default()
        }
    }

    /// Checks what a route says about sources.
    fn check_routes(&self, findings: &Findings<'_>) {
        for (name, route) in &self.routes {
            for (number, source) in route.sources.iter().enumerate() {
                let path = format!("routes.{name}.sources[{number}]");
                if findings.has_key("sources", source) {
                    continue;
                }
                let hint = match nearest(source, self.sources.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add [sources.{source}], or correct the name"),
                };
                let message = format!("route `{name}` takes from `{source}`, which is no source");
                findings.report(&path, Problem::error(message, hint));
            }
        }
        route::check_acks(findings, &self.sources, &self.routes);
        route::check_captures(findings, &self.sources, &self.routes);
    }

    /// Checks that no two names were one before.
    fn check_names(&self, findings: &Findings<'_>) {
        let sources = self.sources.iter().map(|(name, source)| (name, &source.renamed_from));
        let routes = self.routes.iter();
        let routes = routes.map(|(name, route)| (name, &route.sending.renamed_from));
        let destinations = self.destinations.iter();
        let destinations = destinations.map(|(name, to)| (name, &to.sending.renamed_from));
        renames::check(findings, "sources", &sources.collect());
        renames::check(findings, "routes", &routes.collect());
        renames::check(findings, "destinations", &destinations.collect());
    }

    /// Whether it names a route of the store, be it by a name that one had before. The messages
    /// of a destination have a route, too.
    pub fn names_route(&self, stored: &str) -> bool {
        let is_it = |name: &str, now: &str, sending: &Sending| {
            now == name || sending.renamed_from.as_deref() == Some(name)
        };
        match stored.strip_prefix(OUTBOX) {
            None => self.routes.iter().any(|(now, route)| is_it(stored, now, &route.sending)),
            Some(name) => self.destinations.iter().any(|(now, to)| is_it(name, now, &to.sending)),
        }
    }
}

impl StoreConfig {
    fn read(mut section: Section<'_>) -> Self {
        let url: Option<String> = section.get("url", "sqlite://PATH or postgres://…");
        if let Some(url) = &url {
            let known = ["sqlite://", "postgres://", "postgresql://"];
            let named = known.iter().find_map(|scheme| url.strip_prefix(scheme));
            if named.is_none_or(str::is_empty) || named == Some(":memory:") {
                section.report(
                    "url",
                    "`store.url` names no store",
                    "write sqlite://oncebox.db, or postgres://user@host1,host2/database",
                );
            }
        }
        let master: Option<String> = section.get("master_secret", "env:NAME, file:PATH or text");
        section.finish();
        Self {
            url: url.map_or_else(|| Self::default().url, StoreUrl::new),
            master_secret: master.as_deref().map(SecretRef::parse),
        }
    }
}

impl LimitsConfig {
    fn read(mut section: Section<'_>) -> Self {
        let default = Self::default().failed_signatures_per_minute;
        let failed = section.or("failed_signatures_per_minute", COUNT, default);
        if failed == 0 {
            let message = "`failed_signatures_per_minute` is 0";
            section.report("failed_signatures_per_minute", message, "at least 1");
        }
        section.finish();
        Self { failed_signatures_per_minute: failed }
    }
}
