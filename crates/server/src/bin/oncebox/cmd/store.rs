//! `oncebox store`: the hosts of the store, and which of them is the primary.

use clap::{Args, Subcommand};
use oncebox::store::{self, HostState, HostView};
use serde_json::{Value, json};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::operator::{Operator, confirm, reason};
use crate::output::Screen;

/// Show the hosts of a PostgreSQL store, or adopt one as the primary
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox store hosts
  oncebox store adopt --host db1:5432 --reason 'restored from the backup of Monday'")]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Hosts(Hosts),
    Adopt(Adopt),
}

/// Ask every host of the store URL what it is
#[derive(Debug, Args)]
struct Hosts {
    /// Print one JSON object per host
    #[arg(long)]
    json: bool,
}

/// Have running nodes take a primary that they refuse
///
/// A node refuses a primary of another cluster, and one on a lower timeline than it has seen: what
/// it acknowledged may be missing there. Restore what is missing first; the log of each node names
/// it after the change.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox store adopt --host db1:5432 --reason 'restored from the backup of Monday'

Exit codes: 0 adopted, 1 it is not clear which host, 69 store unavailable.")]
struct Adopt {
    /// The host, as `oncebox store hosts` names it [default: the only primary]
    #[arg(long, value_name = "HOST:PORT")]
    host: Option<String>,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    operator: Operator,
}

impl Store {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let url = config.store.url.as_str();
        match self.command {
            Command::Hosts(hosts) => hosts.run(url).await,
            Command::Adopt(adopt) => adopt.run(url).await,
        }
    }
}

impl Hosts {
    async fn run(self, url: &str) -> Result<(), Failure> {
        let hosts = store::hosts(url).await?;
        let mut screen = Screen::stdout();
        if self.json {
            for host in &hosts {
                screen.json(&object(host))?;
            }
        } else {
            let rows = hosts.iter().map(|host| vec![host.host.clone(), words(&host.state)]);
            screen.table(&["host", "state"], &[], rows)?;
        }
        screen.flush()?;
        Ok(())
    }
}

impl Adopt {
    async fn run(self, url: &str) -> Result<(), Failure> {
        if store::host_count(url)? < 2 {
            return Err(Failure::failed("the store URL names one host, which is never refused"));
        }
        let host = self.choose(store::hosts(url).await?)?;
        let name = &host.host;
        confirm(self.yes, &format!("Adopt {name}, {}?", words(&host.state)))?;
        let place = store::adopt(url, &host, &self.operator.act(self.reason.as_deref())).await?;
        let mut screen = Screen::stdout();
        screen.line(format!(
            "adopted {name} ({place}); nodes that refuse it take it within seconds"
        ))?;
        screen.flush()?;
        Ok(())
    }

    /// The host that was named, or the only one that takes writes.
    fn choose(&self, hosts: Vec<HostView>) -> Result<HostView, Failure> {
        let named = |host: &HostView| self.host.as_ref().is_none_or(|name| *name == host.host);
        let is_primary = |host: &HostView| matches!(host.state, HostState::Primary { .. });
        let mut fitting: Vec<HostView> =
            hosts.into_iter().filter(|host| named(host) && is_primary(host)).collect();
        match (fitting.pop(), fitting.len()) {
            (Some(host), 0) => Ok(host),
            (Some(_), _) => Err(Failure::failed("several hosts take writes")
                .hint("name the right one with --host; `oncebox store hosts` shows them")),
            (None, _) => Err(Failure::failed("no such host takes writes")
                .hint("`oncebox store hosts` shows what the hosts are")),
        }
    }
}

/// What a host is, for people.
pub(crate) fn words(state: &HostState) -> String {
    match state {
        HostState::Primary { system, timeline } => {
            format!("primary on timeline {timeline} of cluster {system}")
        }
        HostState::Standby { system } => format!("standby of cluster {system}"),
        HostState::Untold => "does not tell its timeline to this role".to_owned(),
        HostState::Silent(reason) => format!("no answer: {reason}"),
    }
}

fn object(host: &HostView) -> Value {
    let (system, timeline, reason) = match &host.state {
        HostState::Primary { system, timeline } => (Some(system), Some(timeline), None),
        HostState::Standby { system } => (Some(system), None, None),
        HostState::Untold => (None, None, None),
        HostState::Silent(reason) => (None, None, Some(reason)),
    };
    let system = system.map(ToString::to_string);
    json!({ "host": host.host, "state": host.state.as_str(), "system": system,
        "timeline": timeline, "reason": reason })
}
