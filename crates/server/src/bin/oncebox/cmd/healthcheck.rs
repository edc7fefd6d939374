//! `oncebox healthcheck`: is the server ready? For containers, which have no curl.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use oncebox_drill::explain;
use oncebox_server::config::{DEFAULT_FILE, ServerConfig};
use oncebox_server::dev;
use reqwest::Url;
use toml::de::DeTable;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, escape, shorten};

/// The variable that overrides the address in the file.
const VARIABLE: &str = "ONCEBOX__SERVER__ADMIN_LISTEN";

/// Ask the server of the configuration whether it is ready
///
/// Of the configuration only `admin_listen` is read, so that it answers even where the rest is
/// broken or its secrets are out of reach.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox healthcheck
  oncebox healthcheck --url 127.0.0.1:8081

Exit codes: 0 ready, 1 not ready or not there.")]
pub(crate) struct Healthcheck {
    /// Ask there instead: HOST:PORT or a URL; without a path, /readyz is asked
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
}

impl Healthcheck {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let url = match &self.url {
            Some(url) => readyz(url)?,
            None => readyz(&reachable(admin_address(global)?).to_string())?,
        };
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(self.timeout))
            // The server is ours and near; a proxy from the environment is for others.
            .no_proxy()
            .build()
            .map_err(|error| Failure::failed(explain(&error)))?;
        let answer = client.get(url.clone()).send().await;
        let answer = answer
            .map_err(|error| Failure::failed(format!("no answer from {url}: {}", explain(&error))));
        let answer = answer?;
        let ready = answer.status().is_success();
        let status = answer.status();
        let body = answer.text().await.unwrap_or_default();
        let body = shorten(&escape(body.trim()), 500);
        if !ready {
            return Err(Failure::failed(format!("not ready ({status}): {body}")));
        }
        let mut screen = Screen::stdout();
        screen.line(body)?;
        screen.flush()?;
        Ok(())
    }
}

/// The URL somebody means who writes as much of it as is needed.
fn readyz(text: &str) -> Result<Url, Failure> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&whole).map_err(|error| {
        Failure::failed(format!("`{}` is no URL: {error}", escape(text)))
            .hint("write HOST:PORT or http://HOST:PORT/readyz")
    })?;
    if url.path() == "/" {
        url.set_path("/readyz");
    }
    Ok(url)
}

/// Where the admin listener is, as far as anybody has said.
fn admin_address(global: &Global) -> Result<SocketAddr, Failure> {
    if let Ok(text) = std::env::var(VARIABLE) {
        return address(text.trim().trim_matches('"'), VARIABLE);
    }
    let file = match (&global.config, dev::config_file()) {
        (Some(file), _) => file.clone(),
        (None, Some(file)) if !context::is_configured(global) => file,
        (None, _) if Path::new(DEFAULT_FILE).exists() => DEFAULT_FILE.into(),
        (None, _) => return Ok(ServerConfig::default().admin_listen),
    };
    let text = fs::read_to_string(&file).map_err(|error| {
        Failure::failed(format!("cannot read {}: {error}", file.display()))
            .hint("say where the server is with --url HOST:PORT")
    })?;
    match admin_listen(&text) {
        Some(written) => address(&written, &format!("`admin_listen` in {}", file.display())),
        None => Ok(ServerConfig::default().admin_listen),
    }
}

/// What the file says, however broken the rest of it is.
fn admin_listen(text: &str) -> Option<String> {
    let (root, _) = DeTable::parse_recoverable(text);
    let server = root.get_ref().get("server")?.get_ref().as_table()?;
    Some(server.get("admin_listen")?.get_ref().as_str()?.to_owned())
}

fn address(text: &str, place: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::failed(format!("{place} is `{}`, which is no address", escape(text)))
            .hint("write an address and a port, such as 127.0.0.1:8081")
    })
}

/// The address to call for one that is listened on.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_of_a_url_is_written_as_is_needed() {
        for (written, asked) in [
            ("127.0.0.1:1", "http://127.0.0.1:1/readyz"),
            ("localhost:1", "http://localhost:1/readyz"),
            ("[::1]:1", "http://[::1]:1/readyz"),
            ("http://h:1/", "http://h:1/readyz"),
            ("https://h/livez", "https://h/livez"),
        ] {
            assert_eq!(readyz(written).unwrap().as_str(), asked);
        }
        assert!(readyz("").is_err());
    }

    #[test]
    fn the_address_is_found_in_a_broken_file() {
        let found = |text| admin_listen(text);
        let address = Some("127.0.0.1:9".to_owned());
        assert_eq!(found("[server]\nadmin_listen = \"127.0.0.1:9\"\nmax_body = 7\n"), address);
        assert_eq!(found("x =\n[server]\nadmin_listen = \"127.0.0.1:9\"\n[so"), address);
        assert_eq!(found("[store]\nurl = 1"), None);
    }
}
