//! `oncebox outbox replay`: sending messages again.

use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use oncebox::store::Store;
use oncebox_server::config::Config;

use super::{Named, find, no_message};
use crate::cmd::deliveries::view::Routes;
use crate::cmd::replay::{Manner, Replay as Deliveries};
use crate::exit::Failure;

/// Send messages again: by key, or by a filter
///
/// Dead, held and skipped messages are opened again, with a fresh number of attempts and under the
/// same Idempotency-Key. What was sent is left alone without --force. It is `oncebox replay` with
/// the route of a destination, and its job is shown by `oncebox replays`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox outbox replay mailer --state dead --dry-run
  oncebox outbox replay mailer --state dead --since 1d --rate 50 --reason 'the mailer is back'
  oncebox outbox replay mailer receipt-email:in_456 --force

Exit codes: 0 done, 1 interrupted, refused or nothing to do for the messages named, 3 not found.")]
pub(super) struct Replay {
    /// The destination
    #[arg(value_name = "DESTINATION")]
    destination: String,

    /// Keys of messages, or their ids; all of them if none is named
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = states())]
    state: Option<String>,

    #[command(flatten)]
    manner: Manner,
}

/// The words for states that can be replayed; for clap.
fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(["dead", "skipped", "processed", "held"])
}

impl Replay {
    pub(super) async fn run(
        self,
        config: &Config,
        store: &Arc<dyn Store>,
        routes: &Routes,
    ) -> Result<(), Failure> {
        let carrier = find(routes, &self.destination)?;
        let mut receipts = Vec::new();
        for key in &self.keys {
            let named = Named::find(&**store, carrier, key).await?;
            receipts.push(named.ok_or_else(|| no_message(carrier, key))?.receipt);
        }
        let route = carrier.name.clone();
        let replay = Deliveries::on_route(route, receipts, self.state.as_deref(), self.manner);
        replay.replay(config, store).await
    }
}
