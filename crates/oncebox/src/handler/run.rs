//! Handlers at work.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Handlers;
use crate::limits;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{Store, StoreError};
use crate::worker::{Consumer, WorkRoute, Worker, WorkerOptions};

/// How handlers work.
#[derive(Clone)]
pub struct HandlerOptions {
    /// Events handled at the same time. On PostgreSQL more than
    /// [`PostgresOptions::handlers`](crate::store::PostgresOptions::handlers) only wait for a
    /// connection.
    pub concurrency: usize,
    /// Events per second, if they are limited.
    pub rate: Option<NonZeroU32>,
    /// How long handlers may go on once they are told to stop.
    pub grace: Duration,
    /// How the worker around them works.
    pub worker: WorkerOptions,
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            concurrency: limits::HANDLERS,
            rate: None,
            grace: limits::HANDLER_GRACE,
            worker: WorkerOptions::default(),
        }
    }
}

/// Handlers at work on a route. Dropped without being stopped they are gone at once, as in a
/// crash.
pub struct HandlerWorker {
    worker: Arc<Worker>,
    grace: Duration,
    /// Looks for changed rules.
    tasks: JoinSet<()>,
}

impl<S: Store> Handlers<S> {
    /// Starts to work on a route: one that `oncebox serve` has stored, with `pull = true` in its
    /// configuration, or that was registered by
    /// [`register_route`](crate::store::Store::register_route). Its rules are those of the store,
    /// and looked at again now and then.
    pub async fn start(
        self,
        route: &str,
        options: HandlerOptions,
    ) -> Result<HandlerWorker, StoreError> {
        let store: Arc<dyn Store> = self.store().clone();
        let (number, rules) = find_route(&*store, route).await?;
        let consumer: Arc<dyn Consumer> = Arc::new(self);
        let work = WorkRoute {
            number,
            name: route.into(),
            rules,
            concurrency: options.concurrency.max(1),
            rate: options.rate,
            consumer,
        };
        let worker = Worker::start(store.clone(), vec![work.clone()], options.worker);
        let worker = Arc::new(worker);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_rules(store, Arc::downgrade(&worker), work));
        Ok(HandlerWorker { worker, grace: options.grace, tasks })
    }

    /// Works on a route until `stop` resolves, then lets handlers end what they have begun. Fails
    /// if there is no such route, or once the store has failed for good.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use oncebox::handler::{HandlerOptions, Handlers};
    /// # use oncebox::store::{PostgresOptions, PostgresStore, Purpose, StoreError};
    /// # async fn example() -> Result<(), StoreError> {
    /// let options = PostgresOptions::new("postgres://orders@localhost/orders");
    /// let store = Arc::new(PostgresStore::open(options, Purpose::Serve).await?);
    /// let handlers = Handlers::new(store); // .on(…)
    /// let stop = async { drop(tokio::signal::ctrl_c().await) };
    /// handlers.run("billing", HandlerOptions::default(), stop).await
    /// # }
    /// ```
    pub async fn run(
        self,
        route: &str,
        options: HandlerOptions,
        stop: impl Future<Output = ()>,
    ) -> Result<(), StoreError> {
        let worker = self.start(route, options).await?;
        let failed = tokio::select! {
            () = stop => None,
            reason = worker.failed() => Some(reason),
        };
        worker.stop().await;
        failed.map_or(Ok(()), |reason| Err(StoreError::Fatal(reason)))
    }
}

impl HandlerWorker {
    /// Waits until nothing is being handled.
    pub async fn idle(&self) {
        self.worker.idle().await;
    }

    /// Resolves with the reason once the store has failed for good.
    pub async fn failed(&self) -> String {
        self.worker.failed().await
    }

    /// Takes no more events, and lets handlers end what they have begun.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.worker.stop(self.grace).await;
    }
}

async fn find_route(store: &dyn Store, name: &str) -> Result<(RouteNo, RouteRules), StoreError> {
    let routes = store.routes().await?;
    if let Some(route) = routes.iter().find(|route| route.name == name) {
        return Ok((route.route, route.rules));
    }
    let names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
    let there = match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    Err(StoreError::unfit(
        format!("the store has no route `{name}`; {there}"),
        format!(
            "Add [routes.{name}] with `pull = true` to the configuration and start \
             `oncebox serve`, or call `register_route`."
        ),
    ))
}

/// Takes on rules that others have stored since.
async fn follow_rules(store: Arc<dyn Store>, worker: std::sync::Weak<Worker>, mut work: WorkRoute) {
    loop {
        tokio::time::sleep(limits::ROUTE_LOOK).await;
        let routes = match store.routes().await {
            Ok(routes) => routes,
            Err(error) => {
                warn!(%error, "the rules of a route could not be looked at");
                continue;
            }
        };
        let found = routes.into_iter().find(|route| route.route == work.number);
        let (Some(found), Some(worker)) = (found, worker.upgrade()) else { return };
        if found.rules != work.rules || *found.name != *work.name {
            info!(route = found.name, "the rules of the route have changed");
            work = WorkRoute { name: found.name.into(), rules: found.rules, ..work };
            worker.set_routes(vec![work.clone()]);
        }
    }
}
