//! Routes as they run: what the configuration says, beside their stored numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use oncebox::receipt::RouteNo;
use oncebox::route::RouteRules;
use oncebox::store::{Store, StoreError};

use crate::config::{Config, RouteConfig};

/// One route, as it runs.
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub name: Arc<str>,
    /// Its number in the store.
    pub number: RouteNo,
    /// What the store and the worker decide by.
    pub rules: RouteRules,
    /// What the configuration says of it.
    pub config: RouteConfig,
}

/// Every route of a configuration.
#[derive(Debug)]
pub struct Routes {
    by_name: BTreeMap<String, Arc<Route>>,
}

impl Routes {
    /// Registers the routes of a configuration, with their rules.
    pub async fn build(config: &Config, store: &dyn Store) -> Result<Self, StoreError> {
        let mut by_name = BTreeMap::new();
        for (name, config) in &config.routes {
            let rules = config.rules();
            let renamed_from = config.renamed_from.as_deref();
            let number = store.register_route(name, renamed_from, &rules).await?;
            let route = Route { name: name.as_str().into(), number, rules, config: config.clone() };
            by_name.insert(name.clone(), Arc::new(route));
        }
        Ok(Self { by_name })
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
}
