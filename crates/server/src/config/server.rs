//! `[server]`: the listeners and their limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use super::reader::Section;
use super::values::{Period, Size};
use super::{ADDRESS, COUNT, PERIOD, SIZE, YES_OR_NO};

/// `[server]`: the listeners and their limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ServerConfig {
    /// The public address; only `/in/*` answers there.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The address for health, metrics and, later, the console.
    #[schemars(with = "String")]
    pub admin_listen: SocketAddr,
    /// Certificate and key of the public listener; without them it speaks plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// The largest body.
    pub max_body: Size,
    /// The largest request line and headers together.
    pub max_headers: Size,
    /// How long a request's headers may take to arrive; also how long an idle connection lives.
    pub header_timeout: Period,
    /// How long its body may take. For a quarter of it a body may come slower than
    /// `min_upload_rate`.
    pub body_timeout: Period,
    /// Bytes of a body that have to come in a second; 0 asks for none.
    pub min_upload_rate: Size,
    /// Connections at the same time, on each listener.
    pub max_connections: usize,
    /// Of these, connections of one address; not counted for loopback and `trusted_proxies`.
    pub max_connections_per_address: usize,
    /// Networks whose `X-Forwarded-For` is believed.
    #[schemars(with = "Vec<String>")]
    pub trusted_proxies: Vec<IpNet>,
    /// Whether an unknown source is answered like a wrong signature.
    pub hide_unknown_sources: bool,
    /// How long requests may take to finish when the server stops.
    pub drain_timeout: Period,
    /// Memory for bodies that are being received, of all connections together. Those that come in
    /// several pieces have three quarters of it, and at least `max_body`.
    pub memory_budget: Size,
    /// Of that, the share of one address; a quarter, and at least `max_body`, unless it is said.
    /// Loopback and `trusted_proxies` have no share: many senders have their address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_address: Option<Size>,
    /// Names that the admin listener goes by, beside `localhost` and addresses: a connection from
    /// this machine with another `Host` is refused.
    pub admin_hosts: Vec<String>,
    /// Whether a crash may write the memory of the process, secrets included, to a file, and
    /// debuggers may attach to it.
    pub core_dumps: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            admin_listen: SocketAddr::from(([127, 0, 0, 1], 8081)),
            tls: None,
            max_body: Size(25 << 20),
            max_headers: Size(64 << 10),
            header_timeout: Period::secs(10),
            body_timeout: Period::secs(20),
            min_upload_rate: Size(8 << 10),
            max_connections: 4096,
            max_connections_per_address: 512,
            trusted_proxies: Vec::new(),
            hide_unknown_sources: false,
            drain_timeout: Period::secs(10),
            memory_budget: Size(64 << 20),
            memory_per_address: None,
            admin_hosts: Vec::new(),
            core_dumps: false,
        }
    }
}

/// `server.tls`: PEM files, read again on SIGHUP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TlsConfig {
    /// The certificate and the chain behind it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ServerConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let default = Self::default();
        let server = Self {
            listen: section.or("listen", ADDRESS, default.listen),
            admin_listen: section.or("admin_listen", ADDRESS, default.admin_listen),
            tls: section.has("tls").then(|| TlsConfig::read(section.section("tls"))).flatten(),
            max_body: section.or("max_body", SIZE, default.max_body),
            max_headers: section.or("max_headers", SIZE, default.max_headers),
            header_timeout: section.or("header_timeout", PERIOD, default.header_timeout),
            body_timeout: section.or("body_timeout", PERIOD, default.body_timeout),
            max_connections: section.or("max_connections", COUNT, default.max_connections),
            max_connections_per_address: section.or(
                "max_connections_per_address",
                COUNT,
                default.max_connections_per_address,
            ),
            trusted_proxies: section
                .list("trusted_proxies", "a network, such as \"10.0.0.0/8\"")
                .unwrap_or_default(),
            hide_unknown_sources: section.or("hide_unknown_sources", YES_OR_NO, false),
            drain_timeout: section.or("drain_timeout", PERIOD, default.drain_timeout),
            memory_budget: section.or("memory_budget", SIZE, default.memory_budget),
            memory_per_address: section.get("memory_per_address", SIZE),
            min_upload_rate: section.or("min_upload_rate", SIZE, default.min_upload_rate),
            admin_hosts: section
                .list("admin_hosts", "a name, such as \"oncebox.internal\"")
                .unwrap_or_default(),
            core_dumps: section.or("core_dumps", YES_OR_NO, default.core_dumps),
        };
        section.expect("tls");
        server.check(&section);
        section.finish();
        server
    }

    /// The memory that bodies of one address may take together.
    pub fn memory_share(&self) -> usize {
        let quarter = Size(self.memory_budget.0 / 4).max(self.max_body);
        self.memory_per_address.unwrap_or(quarter).bytes()
    }

    /// The memory that bodies which come in several pieces may take together: three quarters. The
    /// rest is for those that come in one piece, unless the largest body needs it.
    pub fn waiting_memory(&self) -> usize {
        Size(self.memory_budget.0 / 4 * 3).max(self.max_body).bytes()
    }

    fn check(&self, section: &Section<'_>) {
        let least = |key: &str, holds: bool, least: &str| {
            if !holds {
                section.report(
                    key,
                    format!("`server.{key}` is too small"),
                    format!("at least {least}"),
                );
            }
        };
        least("max_body", self.max_body.0 >= 1 << 10, "1KiB");
        // Hyper reads headers into a buffer that cannot be smaller than this.
        least("max_headers", self.max_headers.0 >= 8 << 10, "8KiB");
        least("max_connections", self.max_connections >= 1, "1");
        least("max_connections_per_address", self.max_connections_per_address >= 1, "1");
        least("header_timeout", !self.header_timeout.0.is_zero(), "1ms");
        least("body_timeout", !self.body_timeout.0.is_zero(), "1ms");
        if self.memory_budget < self.max_body {
            let hint = "a single body may need all of `max_body`";
            section.report("memory_budget", "`memory_budget` is less than `max_body`", hint);
        }
        if self.memory_budget.0 > u64::from(u32::MAX) {
            let hint = "at most 4095MiB";
            section.report("memory_budget", "`memory_budget` is too large", hint);
        }
        let share = self.memory_per_address;
        if share.is_some_and(|share| share < self.max_body || share > self.memory_budget) {
            let message = "`memory_per_address` is not between `max_body` and `memory_budget`";
            let hint = "a single body may need all of `max_body`";
            section.report("memory_per_address", message, hint);
        }
        if let Some(name) = self.admin_hosts.iter().find(|name| !is_host(name)) {
            let message = format!("`admin_hosts` has `{name}`, which is no name of a host");
            section.report("admin_hosts", message, "write a name without a scheme or a port");
        }
        let same = self.listen == self.admin_listen && self.listen.port() != 0;
        if same {
            let hint = "the admin listener must not be public; give it another port";
            section.report("admin_listen", "`admin_listen` is the same as `listen`", hint);
        }
    }
}

/// Whether it is a name as `Host` has it, without a port.
fn is_host(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

impl TlsConfig {
    fn read(mut section: Section<'_>) -> Option<Self> {
        let cert = section.get("cert", "the path of a PEM file");
        let key = section.get("key", "the path of a PEM file");
        for name in ["cert", "key"] {
            if !section.has(name) {
                let hint = "write tls = { cert = \"cert.pem\", key = \"key.pem\" }";
                section.report(name, format!("`tls` has no `{name}`"), hint);
            }
        }
        section.finish();
        Some(Self { cert: cert?, key: key? })
    }
}
