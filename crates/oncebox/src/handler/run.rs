//! Handlers at work.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Handlers;
use crate::effect::OUTBOX;
use crate::limits;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{PostgresStore, SqliteStore, Store, StoreError};
use crate::worker::{WorkRoute, Worker, WorkerOptions};

/// How handlers work.
#[derive(Clone)]
pub struct HandlerOptions {
    /// Events handled at the same time, if not as many as suit the store: on PostgreSQL as many as
    /// there are [connections](crate::store::PostgresOptions::handlers) for it, on SQLite so many
    /// that a commit is shared by several.
    pub concurrency: Option<usize>,
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
            concurrency: None,
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
    rules: Arc<Rules>,
    grace: Duration,
    tasks: JoinSet<()>,
}

/// A store that handlers can share a transaction with.
pub trait HandlerStore: Store {
    /// Events that are handled at the same time unless somebody says otherwise.
    fn places(&self) -> usize;

    /// Whether the role this store was opened under may work on a route.
    fn may_work(&self, route: RouteNo) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

impl HandlerStore for SqliteStore {
    fn places(&self) -> usize {
        limits::SQLITE_HANDLERS
    }

    async fn may_work(&self, _: RouteNo) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl HandlerStore for PostgresStore {
    fn places(&self) -> usize {
        self.handlers()
    }

    async fn may_work(&self, route: RouteNo) -> Result<bool, StoreError> {
        self.may_work_on(route).await
    }
}

impl<S: HandlerStore> Handlers<S> {
    /// Starts to work on a route: one that `oncebox serve` has stored, with `pull = true` in its
    /// configuration, or that was registered by
    /// [`register_route`](crate::store::Store::register_route). One that is pushed is refused. Its
    /// rules are those of the store, and looked at again now and then.
    pub async fn start(
        self,
        route: &str,
        options: HandlerOptions,
    ) -> Result<HandlerWorker, StoreError> {
        let mut worker = self.at_work(route, options, Worker::start).await?;
        worker.tasks.spawn(follow(worker.rules.clone(), Arc::downgrade(&worker.worker)));
        Ok(worker)
    }

    /// As [`Self::start`], working only when it is told to, by [`HandlerWorker::work_off`]: for
    /// tests, and for jobs that come and go.
    pub async fn by_hand(
        self,
        route: &str,
        options: HandlerOptions,
    ) -> Result<HandlerWorker, StoreError> {
        self.at_work(route, options, Worker::by_hand).await
    }

    async fn at_work(
        self,
        route: &str,
        options: HandlerOptions,
        start: fn(Arc<dyn Store>, Vec<WorkRoute>, WorkerOptions) -> Worker,
    ) -> Result<HandlerWorker, StoreError> {
        let (own, places) = (self.store().clone(), self.store().places());
        let store: Arc<dyn Store> = own.clone();
        let (number, rules) = find_route(&*store, route).await?;
        if !own.may_work(number).await? {
            return Err(StoreError::unfit(
                format!("this role may not work on the route `{route}`"),
                format!(
                    "The owner of the schema allows it: \
                     SELECT oncebox.allow_handlers('ROLE', '{route}')."
                ),
            ));
        }
        let work = WorkRoute {
            number,
            name: route.into(),
            rules,
            concurrency: options.concurrency.unwrap_or(places).max(1),
            rate: options.rate,
            lease: None,
            consumer: Arc::new(self),
        };
        let worker = start(store.clone(), vec![work.clone()], options.worker);
        let rules = Arc::new(Rules { store, work: Mutex::new(work) });
        let (worker, tasks) = (Arc::new(worker), JoinSet::new());
        Ok(HandlerWorker { worker, rules, grace: options.grace, tasks })
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
    /// Handles what is due until nothing is. Returns how many deliveries that moved.
    pub async fn work_off(&self) -> Result<usize, StoreError> {
        let mut all = 0;
        loop {
            match self.worker.run_once().await? {
                0 => return Ok(all),
                moved => all += moved,
            }
        }
    }

    /// Looks whether the rules of the route have changed, and takes them on. Says whether they
    /// had.
    pub async fn look_at_rules(&self) -> Result<bool, StoreError> {
        self.rules.look(&self.worker).await
    }

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
    match routes.iter().find(|route| route.name == name) {
        Some(route) if route.rules.pulled => return Ok((route.route, route.rules)),
        Some(_) => return Err(pushed(name)),
        None => {}
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

/// What handlers took of a route that is pushed would never be.
fn pushed(name: &str) -> StoreError {
    let hint = match name.strip_prefix(OUTBOX) {
        Some(destination) => {
            format!("Messages go to the `url` of [destinations.{destination}]; name another route.")
        }
        None => format!(
            "Write `pull = true` instead of `push` into [routes.{name}] of the configuration, and \
             have `oncebox serve` read it."
        ),
    };
    StoreError::unfit(format!("the route `{name}` is pushed"), hint)
}

/// The route as it is worked on.
struct Rules {
    store: Arc<dyn Store>,
    work: Mutex<WorkRoute>,
}

impl Rules {
    /// Takes on rules that others have stored since. A route that has come to be pushed is left
    /// alone for as long as it is.
    async fn look(&self, worker: &Worker) -> Result<bool, StoreError> {
        let mut work = self.work.lock().await;
        let routes = self.store.routes().await?;
        let found = routes.into_iter().find(|route| route.route == work.number);
        let changed = found.filter(|now| now.rules != work.rules || *now.name != *work.name);
        let Some(now) = changed else { return Ok(false) };
        info!(route = now.name, "the rules of the route have changed");
        work.name = now.name.into();
        work.rules = now.rules;
        if !work.rules.pulled {
            warn!(route = %work.name, "the route is pushed now, so handlers take nothing from it");
        }
        worker.set_routes(work.rules.pulled.then(|| work.clone()).into_iter().collect());
        Ok(true)
    }
}

/// Looks at the rules now and then, for as long as somebody works by them.
async fn follow(rules: Arc<Rules>, worker: Weak<Worker>) {
    loop {
        tokio::time::sleep(limits::ROUTE_LOOK).await;
        let Some(worker) = worker.upgrade() else { return };
        if let Err(error) = rules.look(&worker).await {
            warn!(%error, "the rules of a route could not be looked at");
        }
    }
}
