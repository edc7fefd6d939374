//! Counts of the keys that sources asked their providers for.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What came of asking for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The provider served it.
    Fetched,
    /// The provider did not, or something else.
    Failed,
    /// It was kept from before.
    Cached,
    /// Another request was about to fetch it.
    Coalesced,
    /// It was kept from before and is due to be fetched again, but the provider is down.
    Stale,
    /// It was not asked for: the last time is a moment ago, or there were too many.
    Refused,
}

impl KeyOutcome {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Fetched, Self::Failed, Self::Cached, Self::Coalesced, Self::Stale, Self::Refused];

    /// Its word. Never renamed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Failed => "failed",
            Self::Cached => "cached",
            Self::Coalesced => "coalesced",
            Self::Stale => "stale",
            Self::Refused => "refused",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    source: String,
    outcome: &'static str,
}

/// The keys of all sources that fetch some.
#[derive(Debug)]
pub struct KeyMetrics {
    keys: Family<Labels, Counter>,
}

impl KeyMetrics {
    pub(super) fn new() -> Self {
        Self { keys: Family::default() }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let keys = "Keys of providers that requests needed, by where they came from";
        registry.register("keys", keys, self.keys.clone());
    }

    /// The counters of a source, at zero from the start.
    pub fn of_source(&self, source: &str) -> KeyCounters {
        KeyCounters(KeyOutcome::ALL.map(|outcome| {
            let labels = Labels { source: source.to_owned(), outcome: outcome.as_str() };
            self.keys.get_or_create(&labels).clone()
        }))
    }
}

/// The counters of one source, looked up once.
#[derive(Debug)]
pub struct KeyCounters([Counter; 6]);

impl KeyCounters {
    /// Counts one.
    pub fn count(&self, outcome: KeyOutcome) {
        self.0[outcome as usize].inc();
    }
}
