//! What Prometheus is told of fetches.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Where the current object of a delivery came from, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetched {
    /// A request found it.
    Found,
    /// A request found that there is none.
    Missing,
    /// A request brought nothing, or was not made in time.
    Failed,
    /// An answer was kept from before.
    Cached,
    /// Somebody else's request was shared.
    Coalesced,
}

impl Fetched {
    /// Every one of them.
    pub const ALL: [Self; 5] =
        [Self::Found, Self::Missing, Self::Failed, Self::Cached, Self::Coalesced];

    /// Its word. Never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Cached => "cached",
            Self::Coalesced => "coalesced",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    route: String,
    outcome: &'static str,
}

/// The fetches of all routes that fetch.
#[derive(Debug)]
pub struct FetchMetrics {
    fetches: Family<Outcome, Counter>,
    seconds: Family<OfRoute, Histogram>,
}

impl FetchMetrics {
    pub(super) fn new() -> Self {
        // From a millisecond to half a minute.
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        Self { fetches: Family::default(), seconds: Family::new_with_constructor(seconds) }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let fetches = "Current objects asked for, by what came of it";
        registry.register("fetches", fetches, self.fetches.clone());
        let seconds = "How long requests for current objects took";
        registry.register("fetch_seconds", seconds, self.seconds.clone());
    }

    /// Has everything about a route at zero from the start.
    pub fn prepare(&self, route: &str) {
        for fetched in Fetched::ALL {
            let (route, outcome) = (route.to_owned(), fetched.as_str());
            let _ = self.fetches.get_or_create(&Outcome { route, outcome });
        }
        let _ = self.seconds.get_or_create(&OfRoute { route: route.to_owned() });
    }

    /// Counts one.
    pub fn count(&self, route: &str, fetched: Fetched) {
        let (route, outcome) = (route.to_owned(), fetched.as_str());
        self.fetches.get_or_create(&Outcome { route, outcome }).inc();
    }

    /// Notes how long a request took.
    pub fn took(&self, route: &str, took: Duration) {
        let of_route = OfRoute { route: route.to_owned() };
        self.seconds.get_or_create(&of_route).observe(took.as_secs_f64());
    }
}
