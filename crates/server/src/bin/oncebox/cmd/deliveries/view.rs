//! Deliveries as operators see them.
//!
//! What waits on a paused route, or on one that no configuration names, is stored as it was: a
//! resumed route goes on where it stopped. To whoever looks, it is held.

use std::collections::BTreeMap;
use std::fmt;

use oncebox::delivery::{Reason, State};
use oncebox::store::{DeliveryRow, DeliveryView, RouteView, Store, StoreError};
use oncebox_server::config::Config;

/// A state as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(reason) => write!(f, "{} ({reason})", self.state),
            None => self.state.fmt(f),
        }
    }
}

/// The routes of the store, and why what waits on them is held, if it is.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) views: Vec<RouteView>,
    held: BTreeMap<String, Reason>,
}

impl Routes {
    /// Those of a store, beside what the configuration names.
    pub(crate) async fn load(store: &dyn Store, config: &Config) -> Result<Self, StoreError> {
        Ok(Self::new(store.routes().await?, config))
    }

    fn new(views: Vec<RouteView>, config: &Config) -> Self {
        let held = views.iter().filter_map(|view| {
            let reason = match view.paused_at {
                _ if !config.names_route(&view.name) => Reason::NoRoute,
                Some(_) => Reason::Paused,
                None => return None,
            };
            Some((view.name.clone(), reason))
        });
        let held = held.collect();
        Self { views, held }
    }

    /// Whether the store has seen a route of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.views.iter().any(|view| view.name == name)
    }

    /// Why what waits on a route is held, if it is.
    pub(crate) fn why_held(&self, route: &str) -> Option<Reason> {
        self.held.get(route).copied()
    }

    /// A stored state as it is shown.
    pub(crate) fn shown(&self, route: &str, state: State, reason: Option<Reason>) -> Shown {
        match self.why_held(route) {
            Some(reason) if waits(state) => Shown { state: State::Held, reason: Some(reason) },
            _ => Shown { state, reason },
        }
    }

    /// The state of a delivery as it is shown.
    pub(crate) fn shown_of(&self, row: &DeliveryRow) -> Shown {
        self.shown(&row.route, row.state, row.reason)
    }

    /// Changes the states of deliveries beside their receipt to those that are shown.
    pub(crate) fn show(&self, deliveries: &mut [DeliveryView]) {
        for delivery in deliveries {
            let Some(state) = State::of(&delivery.state) else { continue };
            let reason = delivery.reason.as_deref().and_then(Reason::of);
            let shown = self.shown(&delivery.route, state, reason);
            delivery.state = shown.state.as_str().to_owned();
            delivery.reason = shown.reason.map(|reason| reason.as_str().to_owned());
        }
    }
}

/// Whether a delivery in this state waits for a claim.
pub(super) fn waits(state: State) -> bool {
    matches!(state, State::Received | State::Retrying)
}
