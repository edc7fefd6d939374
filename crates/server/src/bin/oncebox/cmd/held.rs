//! `oncebox held`: what waits for something other than time.

use std::sync::Arc;

use clap::{Args, Subcommand};
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{DeliveryId, Reason, State};
use oncebox::store::{Acted, DeliveryFilter, Store};

use super::dead::Discard;
use super::deliveries::view::Routes;
use super::deliveries::{Shape, Which, print_list};
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::ids;
use crate::listing::Listing;
use crate::operator::{Operator, reason};
use crate::output::{escape, notice};

/// List held deliveries, release one before its turn, or discard it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox held list --route billing
  oncebox held release evt_123 --reason 'the first was refunded'")]
pub(crate) struct Held {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Release(Release),
    Discard(Discard),
}

impl Held {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let routes = Routes::load(&*store, &config).await?;
        let done = match self.command {
            Command::List(list) => list.run(&store, &routes).await,
            Command::Release(release) => release.run(&store, &routes).await,
            Command::Discard(discard) => discard.run(&store, &routes).await,
        };
        store.close().await;
        done
    }
}

/// List held deliveries, newest receipt first, why they are held and what they wait for
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox held list
  oncebox held list --reason twin
  oncebox held list --route billing --all --json")]
struct List {
    /// Only held for this reason
    #[arg(long, value_name = "REASON", value_parser = held_for)]
    reason: Option<Reason>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let filter = DeliveryFilter {
            state: Some(State::Held),
            reason: self.reason,
            ..self.which.resolve(store, routes, SystemClock.now()).await?
        };
        print_list(store, routes, filter, &self.listing, Shape::Held).await
    }
}

/// The reasons a delivery itself is held for; a paused or missing route holds all of its
/// deliveries.
fn held_for(word: &str) -> Result<Reason, String> {
    let reasons = [
        Reason::Order,
        Reason::SameOperation,
        Reason::UnknownEffect,
        Reason::Twin,
        Reason::Conflict,
        Reason::Damaged,
    ];
    reasons.into_iter().find(|reason| reason.as_str() == word).ok_or_else(|| {
        let words: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
        format!("not a reason to hold a delivery; choose {}", words.join(", "))
    })
}

/// Release a held delivery before its turn
///
/// It passes the order of its object and the guard against repeated operations. While another
/// delivery of its object is being processed, it still waits for that one. A twin or conflict runs
/// as an event of its own, under its own Idempotency-Key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox held release evt_123 --reason 'the first was refunded'
  oncebox held release 0199c2f0-7e4a.1 --reason 'the first was refunded'

Exit codes: 0 released, 1 it is not held, 3 not found.")]
struct Release {
    /// The delivery, or the receipt or event if that has no other: its id, or the beginning of it
    #[arg(value_name = "DELIVERY")]
    id: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    #[command(flatten)]
    operator: Operator,
}

impl Release {
    async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let delivery = ids::delivery(store, routes, &self.id).await?;
        let act = self.operator.act(Some(&self.reason));
        match store.release(delivery, &act).await? {
            Acted::Done => {
                notice(format!("released {delivery}"));
                Ok(())
            }
            Acted::NotFound => Err(Failure::not_found(format!("there is no delivery {delivery}"))
                .hint("`oncebox held list` shows those that are held")),
            Acted::Not(state) => Err(not_held(delivery, state, routes)),
        }
    }
}

/// What to say of a delivery that is not held, or held with its whole route.
fn not_held(delivery: DeliveryId, state: State, routes: &Routes) -> Failure {
    let view = routes.views.iter().find(|view| view.route == delivery.route);
    let name = view.map_or("", |view| view.name.as_str());
    let shown = routes.shown(name, state, None);
    let failure = Failure::failed(format!("delivery {delivery} is {shown}"));
    match shown.reason {
        Some(Reason::Paused) => {
            failure.hint(format!("it goes on with `oncebox routes resume {}`", escape(name)))
        }
        Some(Reason::NoRoute) => failure
            .hint(format!("it goes on once the configuration names `{}` again", escape(name))),
        _ => failure.hint("only what is held can be released"),
    }
}
