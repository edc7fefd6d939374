//! `oncebox dead`: deliveries that were given up.

use std::sync::Arc;

use clap::{Args, Subcommand};
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{DeliveryId, State};
use oncebox::store::{Acted, DeliveryFilter, Store};

use super::deliveries::view::Routes;
use super::deliveries::{Shape, Which, no_route, print_list};
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::ids;
use crate::listing::Listing;
use crate::operator::{Operator, reason};
use crate::output::notice;

/// List deliveries that were given up, or discard them for good
///
/// A dead delivery waits for a person: `oncebox replay` tries it again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox dead list --route billing --since 1d
  oncebox replay --route billing --state dead --since 1d
  oncebox dead discard evt_123 --reason 'a test event'")]
pub(crate) struct Dead {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Discard(Discard),
}

impl Dead {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let routes = Routes::load(&*store, &config).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &routes).await,
            Command::Discard(discard) => discard.run(&store, &routes).await,
        };
        store.close().await;
        done
    }
}

/// List dead deliveries, newest receipt first, with the last thing that went wrong
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox dead list
  oncebox dead list --route billing --type 'invoice.*' --all --json")]
struct List {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let filter = DeliveryFilter {
            state: Some(State::Dead),
            ..self.which.resolve(store, routes, SystemClock.now()).await?
        };
        print_list(store, routes, filter, &self.listing, Shape::Dead).await
    }
}

/// Give up open deliveries for good, unless a worker has them
///
/// They become `skipped (discarded)`. What was held behind them goes on, and a replay can still
/// open them again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox dead discard evt_123 --reason 'a test event'
  oncebox dead discard 0199c2f0-7e4a --route billing --reason refunded

Exit codes: 0 discarded, 1 one is being processed or finished, 3 not found.")]
pub(super) struct Discard {
    /// Deliveries, or receipts and events that have no other: ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// The route, where a receipt or event has several
    #[arg(long, value_name = "NAME")]
    route: Option<String>,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    #[command(flatten)]
    operator: Operator,
}

impl Discard {
    pub(super) async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let deliveries = self.deliveries(store, routes).await?;
        let act = self.operator.act(Some(&self.reason));
        let mut failed = None;
        for delivery in deliveries {
            let failure = match store.discard(delivery, &act).await? {
                Acted::Done => {
                    notice(format!("discarded {delivery}"));
                    continue;
                }
                Acted::NotFound => Failure::not_found(format!("there is no delivery {delivery}"))
                    .hint("`oncebox deliveries list` shows those there are"),
                Acted::Not(state) => Failure::failed(format!("delivery {delivery} is {state}"))
                    .hint("only what is open and not being processed can be discarded"),
            };
            // The others are discarded all the same.
            if let Some(failure) = failed.replace(failure) {
                failure.print();
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Every delivery that is meant, before any of them is touched.
    async fn deliveries(
        &self,
        store: &Arc<dyn Store>,
        routes: &Routes,
    ) -> Result<Vec<DeliveryId>, Failure> {
        let route = match &self.route {
            None => None,
            Some(name) => match routes.views.iter().find(|view| view.name == *name) {
                Some(view) => Some(view.route),
                None => return Err(no_route(name, routes)),
            },
        };
        let mut deliveries = Vec::new();
        for id in &self.ids {
            let delivery = match route {
                None => ids::delivery(store, routes, id).await?,
                Some(route) => {
                    let (named, own) = ids::named(&**store, id, None).await?;
                    if own.is_some() {
                        return Err(ids::route_twice());
                    }
                    DeliveryId { receipt: named.receipt, route }
                }
            };
            deliveries.push(delivery);
        }
        Ok(deliveries)
    }
}
