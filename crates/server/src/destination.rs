//! Destinations as they run: where the relay takes outbox messages.
//!
//! A message is a receipt of a source that nobody can post to, with one delivery on a route of its
//! own. Both are called `outbox/` and the name of the destination. So the worker is the relay:
//! leases, retries, order, dead letters and replay are those of every delivery.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use oncebox::receipt::RouteNo;
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox::worker::{Consumer, WorkRoute};

use crate::config::{Config, DestinationConfig, Signers, carrier};
use crate::push::Push;
use crate::route::{Numbers, put_in_force};
use crate::state::Means;

/// One destination, as it runs.
pub struct Destination {
    /// The name of the source and the route that carry its messages.
    pub carrier: Arc<str>,
    /// The number of that route in the store.
    pub number: RouteNo,
    /// What the store and the worker decide by.
    pub rules: RouteRules,
    /// What the configuration says of it.
    pub config: DestinationConfig,
    consumer: Option<Arc<dyn Consumer>>,
}

impl Destination {
    /// As the worker needs it.
    fn work(&self) -> Option<WorkRoute> {
        Some(WorkRoute {
            number: self.number,
            name: self.carrier.clone(),
            rules: self.rules,
            concurrency: self.config.sending.concurrency,
            rate: self.config.sending.rate.and_then(NonZeroU32::new),
            lease: Some(self.config.sending.lease()),
            consumer: self.consumer.clone()?,
        })
    }

    /// What carries its messages if it was called otherwise before.
    fn renamed_from(&self) -> Option<String> {
        self.config.sending.renamed_from.as_deref().map(carrier)
    }
}

impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { carrier, number, rules, .. } = self;
        write!(f, "Destination({carrier}, {number:?}, {rules:?})")
    }
}

/// Every destination of a configuration.
#[derive(Debug)]
pub struct Destinations {
    by_name: BTreeMap<String, Destination>,
}

impl Destinations {
    /// Makes the destinations of a configuration ready. Those that are new are registered, so that
    /// messages can be written for them; what is stored of the others stays as it is until
    /// [`Self::put_in_force`].
    pub async fn build(
        config: &Config,
        signers: &mut Signers,
        means: &Means,
    ) -> Result<Self, StoreError> {
        let mut numbers = Numbers::load(means).await?;
        let mut by_name = BTreeMap::new();
        for (name, config) in &config.destinations {
            let old = config.sending.renamed_from.as_deref().map(carrier);
            let (carrier, rules) = (carrier(name), config.rules());
            let number = match numbers.find(&carrier, old.as_deref()) {
                Some(number) => number,
                None => means.store.register_destination(name, &rules).await?,
            };
            let secret = signers.remove(&carrier);
            let push = Push::new(&carrier, &config.url, &config.sending, secret, means);
            let consumer = push.map(|push| Arc::new(push) as Arc<dyn Consumer>);
            let (carrier, config) = (carrier.into(), config.clone());
            let destination = Destination { carrier, number, rules, config, consumer };
            by_name.insert(name.clone(), destination);
        }
        Ok(Self { by_name })
    }

    /// Stores the names and rules of all destinations. A message can be written where both the
    /// source and the route are there under its name, and the route comes last.
    pub async fn put_in_force(&self, means: &Means) -> Result<(), StoreError> {
        for destination in self.iter() {
            let Destination { carrier, number, rules, .. } = destination;
            let old = destination.renamed_from();
            means.store.register_source(carrier, old.as_deref()).await?;
            put_in_force(means, carrier, old.as_deref(), rules, *number).await?;
        }
        Ok(())
    }

    /// The destination whose messages go by that route.
    pub fn of_number(&self, number: RouteNo) -> Option<&Destination> {
        self.iter().find(|destination| destination.number == number)
    }

    /// Each of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Destination> {
        self.by_name.values()
    }

    /// As the worker needs them.
    pub fn work(&self) -> Vec<WorkRoute> {
        self.iter().filter_map(Destination::work).collect()
    }
}
