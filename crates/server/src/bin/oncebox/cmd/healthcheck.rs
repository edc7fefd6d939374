//! `oncebox healthcheck`: is the server ready? For containers, which have no curl.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, escape, shorten};

/// Ask the server of the configuration whether it is ready
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 ready, 1 not ready or not there.")]
pub(crate) struct Healthcheck {
    /// Ask at this URL instead
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
}

impl Healthcheck {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let url = match self.url {
            Some(url) => url,
            None => {
                format!("http://{}/readyz", reachable(context::config(global)?.server.admin_listen))
            }
        };
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(self.timeout))
            // The server is ours and near; a proxy from the environment is for others.
            .no_proxy()
            .build()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let answer = client.get(&url).send().await.map_err(|error| {
            Failure::failed(format!("no answer from {url}: {}", error.without_url()))
        })?;
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
