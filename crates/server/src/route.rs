//! Routes as they run: rules, guards, stored numbers and consumers together.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use oncebox::receipt::{RouteNo, Taker};
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox::worker::{Consumer, WorkRoute};
use oncebox_verify::Event;
use sha2::{Digest, Sha256};

use crate::config::{Config, RouteConfig, SameOperation, SamePreset, Signers};
use crate::fetch::{Fetcher, Fetching};
use crate::pattern::any_matches;
use crate::push::Push;
use crate::state::Means;

/// One route, as it runs.
pub struct Route {
    /// Its name.
    pub name: Arc<str>,
    /// Its number in the store.
    pub number: RouteNo,
    /// What the store and the worker decide by.
    pub rules: RouteRules,
    /// What the configuration says of it.
    pub config: RouteConfig,
    /// What its deliveries are handed to; none if workers elsewhere pull from it.
    consumer: Option<Arc<dyn Consumer>>,
}

impl Route {
    /// What it goes by with an event, if it takes it.
    pub fn taker(&self, event: &Event<'_>, body: &[u8]) -> Option<Taker> {
        let same = self.config.same_operation.as_ref();
        any_matches(&self.config.events, &event.event_type).then(|| Taker {
            route: self.number,
            operation: same.and_then(|same| operation(same, event, body)),
        })
    }

    /// As the worker needs it; none if it does not work on it.
    fn work(&self) -> Option<WorkRoute> {
        Some(WorkRoute {
            number: self.number,
            name: self.name.clone(),
            rules: self.rules,
            concurrency: self.config.sending.concurrency,
            rate: self.config.sending.rate.and_then(NonZeroU32::new),
            lease: self.config.push.as_ref().map(|_| self.config.sending.lease()),
            consumer: self.consumer.clone()?,
        })
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, number, rules, .. } = self;
        write!(f, "Route({name}, {number:?}, {rules:?})")
    }
}

/// What makes an event the same operation as another of its type. Without the object or one of
/// the fields it is compared with nothing.
fn operation(same: &SameOperation, event: &Event<'_>, body: &[u8]) -> Option<[u8; 16]> {
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    };
    add(&event.event_type);
    match same {
        SameOperation::Preset(SamePreset::Object) => add(event.object.as_deref()?),
        SameOperation::Fields(same) => {
            let pointers: Vec<&str> = same.fields.iter().map(String::as_str).collect();
            oncebox_verify::fields(body, &pointers)?.into_iter().for_each(add);
        }
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize()[..16]);
    Some(key)
}

/// Every route of a configuration.
#[derive(Debug)]
pub struct Routes {
    by_name: BTreeMap<String, Arc<Route>>,
}

impl Routes {
    /// Makes the routes of a configuration ready to push. Those that are new are registered; what
    /// is stored of the others stays as it is until [`Self::put_in_force`].
    pub async fn build(
        config: &Config,
        signers: &mut Signers,
        means: &Means,
    ) -> Result<Self, StoreError> {
        check_handlers(config, means)?;
        let mut numbers = Numbers::load(means).await?;
        let mut by_name = BTreeMap::new();
        for (name, config) in &config.routes {
            let rules = config.rules();
            let number = match numbers.find(name, config.sending.renamed_from.as_deref()) {
                Some(number) => number,
                None => means.store.register_route(name, None, &rules).await?,
            };
            let secret = signers.remove(name);
            let push = config.push.as_ref();
            let push = push.and_then(|url| Push::new(name, url, &config.sending, secret, means));
            let hand_over = config.fetch.as_ref().map(|fetch| fetch.hand_over);
            let push = push.map(|push| push.handing_over(hand_over.unwrap_or_default()));
            let push = match signers.providers(name) {
                Some(providers) => push.map(|push| push.signing_as(providers)),
                None => push,
            };
            let push = push.map(|push| Arc::new(push) as Arc<dyn Consumer>);
            let consumer = push.or_else(|| means.handlers.get(name).cloned());
            let fetcher = Fetcher::new(name, config, signers.credentials(name), means);
            let consumer = match (consumer, fetcher) {
                (Some(inner), Some(fetcher)) => Some(Arc::new(Fetching::new(inner, fetcher)) as _),
                (consumer, _) => consumer,
            };
            let (named, config) = (name.as_str().into(), config.clone());
            let route = Route { name: named, number, rules, config, consumer };
            by_name.insert(name.clone(), Arc::new(route));
        }
        Ok(Self { by_name })
    }

    /// Stores the names and rules of all routes. The last thing a reload does that can fail: until
    /// then the store decides by the rules that were in force before.
    pub async fn put_in_force(&self, means: &Means) -> Result<(), StoreError> {
        // All of them first: one that is refused leaves the rules of the others alone.
        for route in self.iter().filter(|route| route.config.pull) {
            let service = route.config.service.as_deref().unwrap_or_default();
            means.store.assign_service(route.number, service).await?;
        }
        for route in self.iter() {
            let old = route.config.sending.renamed_from.as_deref();
            put_in_force(means, &route.name, old, &route.rules, route.number).await?;
            means.metrics.effects.prepare(&route.name);
        }
        Ok(())
    }

    /// The route of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Route>> {
        self.by_name.get(name)
    }

    /// The route of that number.
    pub fn of_number(&self, number: RouteNo) -> Option<&Arc<Route>> {
        self.iter().find(|route| route.number == number)
    }

    /// Each of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Route>> {
        self.by_name.values()
    }

    /// Those the worker works on.
    pub fn work(&self) -> Vec<WorkRoute> {
        self.iter().filter_map(|route| route.work()).collect()
    }
}

/// A handler without a route would never be called, and nobody would know why.
fn check_handlers(config: &Config, means: &Means) -> Result<(), StoreError> {
    let is_pulled = |name: &String| config.routes.get(name).is_some_and(|route| route.pull);
    match means.handlers.keys().find(|name| !is_pulled(name)) {
        None => Ok(()),
        Some(name) => Err(StoreError::Unfit {
            problem: format!("there is a handler for `{name}`, and no such route to pull from"),
            hint: format!("Add [routes.{name}] with `pull = true` to the configuration."),
        }),
    }
}

/// Stores the name and rules of a route that was found or made under a number.
pub(crate) async fn put_in_force(
    means: &Means,
    name: &str,
    renamed_from: Option<&str>,
    rules: &RouteRules,
    number: RouteNo,
) -> Result<(), StoreError> {
    if means.store.register_route(name, renamed_from, rules).await? != number {
        let why = format!("somebody else has just made another route `{name}`");
        return Err(StoreError::Unavailable(why));
    }
    means.metrics.routes.prepare(name);
    Ok(())
}

/// The numbers of stored routes, by name.
pub(crate) struct Numbers(HashMap<String, RouteNo>);

impl Numbers {
    pub(crate) async fn load(means: &Means) -> Result<Self, StoreError> {
        let stored = means.store.routes().await?;
        Ok(Self(stored.into_iter().map(|route| (route.name, route.route)).collect()))
    }

    /// The number of a route under its name or the one it is renamed from. Whoever renames a
    /// route takes its number along.
    pub(crate) fn find(&mut self, name: &str, renamed_from: Option<&str>) -> Option<RouteNo> {
        if !self.0.contains_key(name) {
            let number = self.0.remove(renamed_from?)?;
            self.0.insert(name.to_owned(), number);
        }
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use oncebox_verify::Trust;

    use super::*;
    use crate::config::{Period, SameFields};

    fn event<'a>(event_type: &'a str, object: Option<&'a str>) -> Event<'a> {
        Event {
            id: "evt_1".into(),
            trust: Trust::Signed,
            event_type: event_type.into(),
            object: object.map(Into::into),
            version: None,
        }
    }

    #[test]
    fn a_renamed_route_takes_its_number_along() {
        let numbers = [("old".to_owned(), RouteNo(1)), ("kept".to_owned(), RouteNo(2))];
        let mut numbers = Numbers(HashMap::from(numbers));
        assert_eq!(numbers.find("new", Some("old")), Some(RouteNo(1)));
        assert_eq!(numbers.find("old", None), None, "it would be another route");
        assert_eq!(numbers.find("new", Some("old")), Some(RouteNo(1)));
        assert_eq!(numbers.find("kept", Some("new")), Some(RouteNo(2)));
        assert_eq!(numbers.find("newest", Some("never")), None);
    }

    #[test]
    fn the_same_operation_has_the_same_fields_and_type() {
        let fields = vec!["/customer".to_owned(), "/amount".to_owned()];
        let same = SameOperation::Fields(SameFields { fields, window: Period::secs(300) });
        let of =
            |event_type, body: &str| operation(&same, &event(event_type, None), body.as_bytes());
        let first = of("paid", r#"{"id":1,"customer":"a","amount":5}"#);
        assert!(first.is_some());
        assert_eq!(first, of("paid", r#"{"id":2,"amount":5,"customer":"a"}"#));
        assert_ne!(first, of("refunded", r#"{"id":2,"customer":"a","amount":5}"#));
        assert_ne!(first, of("paid", r#"{"customer":"a","amount":50}"#));
        assert_ne!(first, of("paid", r#"{"customer":"a","amount":"5"}"#));
        for nothing in [r#"{"customer":"a"}"#, r#"{"customer":null,"amount":5}"#, "a=b", "[]"] {
            assert_eq!(of("paid", nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_object_is_an_operation_of_its_own() {
        let same = SameOperation::Preset(SamePreset::Object);
        let of = |event_type, object| operation(&same, &event(event_type, object), b"{}");
        assert_eq!(of("paid", Some("in_1")), of("paid", Some("in_1")));
        assert_ne!(of("paid", Some("in_1")), of("paid", Some("in_2")));
        assert_ne!(of("paid", Some("in_1")), of("voided", Some("in_1")));
        assert_eq!(of("paid", None), None);
    }
}
