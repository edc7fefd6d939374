//! The API of the admin listener: what workers that pull ask for.
//!
//! A request is bounded, then its token is looked up, then its scope is checked; only after that
//! does it learn whether what it names exists. Errors are `application/problem+json`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use oncebox::limits::{API_STORE_WAIT, PULL_MEMORY};
use oncebox::receipt::RouteNo;
use oncebox::route::RouteRules;
use oncebox::store::{RouteView, StoreError};
use tokio::sync::Semaphore;

use crate::state::Inbox;

mod advance;
mod auth;
mod body;
mod claim;
mod complete;
pub mod effects;
mod finisher;
mod gate;
mod lease;
mod problem;
mod pull;
mod send;
pub mod token;

use finisher::Finisher;
use gate::Gate;
use problem::Problem;

/// What the handlers of the API share.
pub(crate) struct Api {
    inbox: Arc<Inbox>,
    finisher: Finisher,
    gates: Mutex<HashMap<RouteNo, Arc<Gate>>>,
    /// Memory left for answers to claims, in bytes.
    memory: Arc<Semaphore>,
}

/// Every path below `/api/v1`.
pub fn router(inbox: Arc<Inbox>) -> Router {
    let api = Arc::new(Api {
        finisher: Finisher::start(&inbox),
        gates: Mutex::default(),
        memory: Arc::new(Semaphore::new(PULL_MEMORY)),
        inbox,
    });
    Router::new()
        .route("/routes/{route}/claim", post(claim::claim))
        .route("/routes/{route}/complete", post(complete::complete_all))
        .route("/deliveries/{id}/complete", post(complete::complete))
        .route("/deliveries/{id}/fail", post(pull::fail))
        .route("/deliveries/{id}/extend", post(pull::extend))
        .route("/deliveries/{id}/return", post(pull::give_back))
        .route("/deliveries/{id}/effects/begin", post(effects::begin))
        .route("/deliveries/{id}/effects/complete", post(effects::complete))
        .route("/deliveries/{id}/effects/abandon", post(effects::abandon))
        .route("/deliveries/{id}/advance", post(advance::advance))
        .route("/deliveries/{id}/send", post(send::send))
        .fallback(async || Problem::not_found("there is nothing here"))
        .method_not_allowed_fallback(async || Problem::method())
        .with_state(api)
}

/// The answer to a request under a name that is not the admin listener's.
pub(crate) fn unknown_host() -> Response {
    Problem::unknown_host().into_response()
}

/// A route as far as the API decides by it.
struct Route {
    number: RouteNo,
    name: String,
    rules: RouteRules,
}

impl Route {
    fn of(route: &crate::route::Route) -> Self {
        Self { number: route.number, name: route.name.to_string(), rules: route.rules }
    }
}

impl Api {
    /// The route of that name, if workers may pull from it here.
    fn pull_route(&self, name: &str) -> Result<Route, Problem> {
        let live = self.inbox.live();
        match live.routes.find(name) {
            Some(route) if route.config.pull => Ok(Route::of(route)),
            Some(_) => Err(Problem::not_a_pull_route(name)),
            None => Err(Problem::not_found("there is no such route")),
        }
    }

    /// The route of that number, be it one that the configuration does not name any more: what
    /// was claimed before may still be completed.
    async fn route_of(&self, number: RouteNo) -> Result<Option<Route>, Problem> {
        if let Some(route) = self.inbox.live().routes.of_number(number) {
            return Ok(Some(Route::of(route)));
        }
        self.stored_route(|route| route.route == number).await
    }

    /// As [`Self::route_of`], by name.
    async fn route_named(&self, name: &str) -> Result<Option<Route>, Problem> {
        if let Some(route) = self.inbox.live().routes.find(name) {
            return Ok(Some(Route::of(route)));
        }
        self.stored_route(|route| route.name == name).await
    }

    async fn stored_route(
        &self,
        is_it: impl Fn(&RouteView) -> bool,
    ) -> Result<Option<Route>, Problem> {
        let stored = self.in_time(self.inbox.store.routes()).await?.into_iter().find(is_it);
        let route = |it: RouteView| Route { number: it.route, name: it.name, rules: it.rules };
        Ok(stored.map(route))
    }

    /// Waits for the store, and not for ever.
    async fn in_time<T>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Problem> {
        match tokio::time::timeout(API_STORE_WAIT, asking).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(StoreError::Unavailable("it takes too long".to_owned()).into()),
        }
    }
}

/// The part of a path that names something.
type Name = Result<Path<String>, PathRejection>;

fn segment(path: Name) -> Result<String, Problem> {
    let Path(name) = path.map_err(|_| Problem::not_found("there is nothing here"))?;
    Ok(name)
}
