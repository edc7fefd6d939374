//! From what a command says to the filter of a job.

use std::sync::Arc;

use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{DeliveryId, State};
use oncebox::limits::REPLAY_RECEIPTS;
use oncebox::receipt::RouteNo;
use oncebox::replay::{Fill, ReplayFilter};
use oncebox::store::Store;
use oncebox_server::config::Config;

use super::{Replay, Wanted};
use crate::cmd::deliveries::no_route;
use crate::cmd::deliveries::view::Routes;
use crate::context;
use crate::exit::Failure;
use crate::ids;
use crate::output::escape;

impl Replay {
    /// The replay with the receipts that its ids mean. Where they are ids of deliveries, they name
    /// the route as well.
    pub(super) async fn resolved(mut self, store: &Arc<dyn Store>) -> Result<Self, Failure> {
        let mut named = Vec::new();
        for id in &self.ids {
            let (receipt, route) = ids::named(&**store, id, None).await?;
            if receipt.event.is_none() {
                return Err(ids::expired(id, receipt.receipt));
            }
            self.receipts.push(receipt.receipt);
            named.push(route);
        }
        named.dedup();
        match named.as_slice() {
            [] | [None] => Ok(self),
            [Some(_)] if !self.routes.is_empty() => Err(ids::route_twice()),
            [Some(route)] => {
                for receipt in &self.receipts {
                    let delivery = DeliveryId { receipt: *receipt, route: *route };
                    self.routes = vec![ids::route_of(&**store, delivery).await?];
                }
                Ok(self)
            }
            _ => Err(Failure::usage("the ids name several routes")
                .hint("name receipts, and their routes by --route")),
        }
    }

    pub(super) async fn filter(
        &self,
        store: &Arc<dyn Store>,
        config: &Config,
        routes: &Routes,
    ) -> Result<ReplayFilter, Failure> {
        self.check_receipts(store).await?;
        let sources = store.sources().await?;
        if let Some(name) = &self.source
            && !sources.iter().any(|(_, known)| known == name)
        {
            return Err(context::no_source(name, sources.iter().map(|(_, known)| known.as_str())));
        }
        let unrouted = self.state == Some(Wanted::Unrouted);
        let named = self.named(config, routes, unrouted)?;
        // A state asks for deliveries there are; only what is unrouted has none.
        let fills = unrouted || self.state.is_none();
        let mut fill = Vec::new();
        for (number, name) in named.iter().filter(|_| fills) {
            let Some(route) = config.routes.get(*name) else { continue };
            for (source, _) in sources.iter().filter(|(_, name)| route.sources.contains(name)) {
                fill.extend(route.events.iter().map(|event_type| Fill {
                    route: *number,
                    source: *source,
                    event_type: event_type.as_str().to_owned(),
                }));
            }
        }
        let now = SystemClock.now();
        let until = match self.manner.until {
            Some(when) => Some(when.before(now)),
            None if self.receipts.is_empty() => Some(after_newest(store, now).await?),
            None => None,
        };
        Ok(ReplayFilter {
            receipts: self.receipts.clone(),
            routes: named.iter().map(|(number, _)| *number).collect(),
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            since: self.manner.since.map(|when| when.before(now)),
            until,
            state: self.state.and_then(Wanted::state),
            odd: self.odd,
            unrouted,
            fill,
        })
    }

    /// A receipt that is not there is a mistake, and found before anything is done.
    async fn check_receipts(&self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        if self.receipts.len() > REPLAY_RECEIPTS {
            let message = format!("more than {REPLAY_RECEIPTS} receipts at once");
            return Err(Failure::usage(message).hint("say which by a filter, or in several turns"));
        }
        for id in &self.receipts {
            if store.receipt(*id).await?.is_none() {
                return Err(Failure::not_found(format!("there is no receipt {id}"))
                    .hint("`oncebox receipts list` shows those there are"));
            }
        }
        Ok(())
    }

    /// The routes the command names. What no route took may go to all that are configured.
    fn named<'a>(
        &'a self,
        config: &'a Config,
        routes: &Routes,
        unrouted: bool,
    ) -> Result<Vec<(RouteNo, &'a str)>, Failure> {
        let number = |name: &str| {
            let view = routes.views.iter().find(|view| view.name == name);
            view.map(|view| view.route)
        };
        if unrouted && self.routes.is_empty() {
            let all = config.routes.keys();
            let all: Vec<_> = all.filter_map(|name| Some((number(name)?, name.as_str()))).collect();
            if all.is_empty() {
                return Err(Failure::failed("there is no route to deliver to")
                    .hint("add [routes.NAME] to the configuration, and reload the server"));
            }
            return Ok(all);
        }
        let mut named = Vec::new();
        for name in &self.routes {
            match number(name) {
                Some(number) => named.push((number, name.as_str())),
                None if config.names_route(name) => {
                    let name = escape(name);
                    let message = format!("route `{name}` is configured and not served yet");
                    return Err(Failure::not_found(message)
                        .hint("start or reload the server, so that the store knows the route"));
                }
                None => return Err(no_route(name, routes)),
            }
        }
        named.sort_unstable();
        named.dedup();
        Ok(named)
    }
}

/// Where a replay without an end ends: after what there is when it is planned. It must not run
/// after events that come in meanwhile. The clock of the server may be ahead of ours.
async fn after_newest(store: &Arc<dyn Store>, now: Timestamp) -> Result<Timestamp, Failure> {
    let newest = store.newest().await?.map(|id| id.as_uuid().as_u64_pair().0 >> 16);
    let after = newest.and_then(|millis| i64::try_from(millis + 1).ok());
    let after = after.and_then(|millis| Timestamp::from_millisecond(millis).ok());
    Ok(after.map_or(now, |after| after.max(now)))
}

impl Wanted {
    /// The state as stored.
    fn state(self) -> Option<State> {
        match self {
            Self::Dead => Some(State::Dead),
            Self::Skipped => Some(State::Skipped),
            Self::Processed => Some(State::Processed),
            Self::Held => Some(State::Held),
            Self::Unrouted => None,
        }
    }
}
