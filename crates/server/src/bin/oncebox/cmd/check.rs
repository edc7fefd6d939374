//! `oncebox check`: is the configuration right?

use std::io::{self, IsTerminal};

use clap::Args;
use oncebox::route::RouteRules;
use oncebox::store::{self, HostState};
use oncebox_server::config::{Config, Readiness, carrier};

use super::store::words;
use crate::Global;
use crate::exit::{Failure, no_colour};
use crate::output::{Screen, count, notice};

/// Validate the configuration and explain every error
///
/// Secrets are fetched and decoded, certificates parsed, names compared. Nothing is changed, and
/// nothing is opened unless `--connect` says so. The fingerprints it prints are those that
/// `oncebox receipts show` names.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 it can be served, 78 it cannot.")]
pub(crate) struct Check {
    /// Also ask the hosts of a PostgreSQL store whether they tell their timelines
    #[arg(long)]
    connect: bool,
}

impl Check {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let (config, Readiness { warnings, keyrings, .. }) =
            Config::load_ready(global.config.as_deref())?;
        let colour = io::stderr().is_terminal() && !no_colour();
        for warning in &warnings {
            notice(warning.render(colour));
        }
        let mut screen = Screen::stdout();
        let good = screen.good("ok");
        let sources = count(config.sources.len(), "source");
        let routes = count(config.routes.len(), "route");
        let has = match config.destinations.len() {
            0 => format!("{sources} and {routes}"),
            number => format!("{sources}, {routes} and {}", count(number, "destination")),
        };
        let warned = count(warnings.len(), "warning");
        screen.line(format!("{good}: {} with {has}, {warned}", config.file()))?;
        screen.line(format!("  listens on {} (public)", config.server.listen))?;
        screen.line(format!("  listens on {} (admin)", config.server.admin_listen))?;
        screen.line(format!("  keeps events in {}", config.store.url))?;
        for line in self.primary(config.store.url.as_str()).await? {
            screen.line(format!("  {line}"))?;
        }
        for (name, source) in &config.sources {
            let Some(keyring) = keyrings.get(name) else { continue };
            for (place, secret) in source.secrets.iter().zip(keyring.secrets()) {
                let fingerprint = secret.fingerprint();
                screen.line(format!("  {name} takes {place}, fingerprint {fingerprint}"))?;
            }
            for (key, place) in &source.settings {
                screen.line(format!("  {name} takes {key} {place}"))?;
            }
            if source.is_capture() {
                screen.line(format!("  {name} takes whatever is sent, unverified"))?;
            } else if source.waits_for_secret() {
                screen.line(format!("  {name} takes the secret that its provider tells"))?;
            } else if source.secrets.is_empty() && source.settings.is_empty() {
                screen.line(format!("  {name} takes the keys that its provider publishes"))?;
            }
        }
        for (name, rules) in retries(&config) {
            screen.paragraph("  ", &format!("{name} retries {}", rules.schedule()))?;
        }
        screen.flush()?;
        if config.routes.is_empty() && !config.sources.is_empty() {
            notice("note: there is no route, so events are recorded and delivered nowhere");
        }
        Ok(())
    }

    /// Whether nodes tell an old primary from the new one.
    async fn primary(&self, url: &str) -> Result<Vec<String>, Failure> {
        let count = store::host_count(url)?;
        let hosts = match self.connect {
            true => store::hosts(url).await?,
            false => Vec::new(),
        };
        let mut lines: Vec<String> =
            hosts.iter().map(|host| format!("{}: {}", host.host, words(&host.state))).collect();
        if count == 1 {
            lines.push("does not compare primaries: the store URL names one host".to_owned());
        } else if hosts.iter().any(|host| host.state == HostState::Untold) {
            let refused = "does not compare primaries: a host refuses pg_control_system() or \
                           pg_walfile_name() to this role";
            lines.push(refused.to_owned());
        } else if count > 1 {
            lines.push(format!("compares the timelines of {count} hosts"));
        }
        Ok(lines)
    }
}

/// What routes and destinations retry by.
fn retries(config: &Config) -> Vec<(String, RouteRules)> {
    let routes = config.routes.iter().map(|(name, route)| (name.clone(), route.rules()));
    let destinations = config.destinations.iter();
    routes.chain(destinations.map(|(name, it)| (carrier(name), it.rules()))).collect()
}
