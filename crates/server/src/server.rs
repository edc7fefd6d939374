//! Starting, reloading and stopping a whole server, without globals, so that a test can run
//! several.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::extract::ConnectInfo;
use axum::routing::any;
use axum::{Extension, Router};
use http::Request;
use hyper::body::Incoming;
use oncebox::clock::Clock;
use oncebox::ingest::IngestOptions;
use oncebox::limits;
use oncebox::replay::Replays;
use oncebox::retention::Retention;
use oncebox::store::{Store, StoreError};
use oncebox::worker::WorkerOptions;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::clock_watch;
use crate::config::{Config, ConfigError, Readiness, ServerConfig};
use crate::keys::{KeyOptions, Keys};
use crate::listener::{self, ListenerOptions, Tls};
use crate::metrics::Metrics;
use crate::push::Dial;
use crate::state::{Handlers, Inbox, Live, Means, Roles};
use crate::{activity, admin, dev, pairing, public, tallies, tls};

/// How long the store may take for what is queued, after the last sender was answered.
const INGEST_DRAIN: Duration = Duration::from_secs(10);

/// How long a reload may take.
const RELOAD_TIME: Duration = Duration::from_secs(30);

/// How a server is started.
pub struct StartOptions {
    /// What it does.
    pub roles: Roles,
    /// How what it receives is recorded.
    pub ingest: IngestOptions,
    /// How what it recorded is delivered.
    pub worker: WorkerOptions,
    /// How destinations are reached.
    pub dial: Dial,
    /// What works in this process on routes with `pull = true`.
    pub handlers: Handlers,
    /// Where the keys of providers come from.
    pub keys: KeyOptions,
}

/// Everything, with destinations reached as the system does.
impl From<IngestOptions> for StartOptions {
    fn from(ingest: IngestOptions) -> Self {
        let worker = WorkerOptions { name: worker_name(), ..WorkerOptions::default() };
        let (dial, handlers, keys) = (Dial::system(), Handlers::new(), KeyOptions::default());
        Self { roles: Roles::ALL, ingest, worker, dial, handlers, keys }
    }
}

/// Who holds leases: the machine and the process.
fn worker_name() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = if machine.trim().is_empty() { "worker" } else { machine.trim() };
    format!("{machine}-{}", std::process::id())
}

/// The sockets of a server.
#[derive(Debug)]
pub struct Listeners {
    /// Where webhooks come in, if they do.
    pub public: Option<TcpListener>,
    /// Where health and metrics are, if they are.
    pub admin: Option<TcpListener>,
}

impl Listeners {
    /// None: a service mounts [`Server::router`] beside its own routes.
    pub fn none() -> Self {
        Self { public: None, admin: None }
    }

    /// Binds the addresses of a configuration.
    pub async fn bind(config: &Config) -> io::Result<Self> {
        Self::bind_for(config, Roles::ALL).await
    }

    /// Binds the addresses that these roles need.
    pub async fn bind_for(config: &Config, roles: Roles) -> io::Result<Self> {
        let bind = async |key: &str, address: SocketAddr| {
            TcpListener::bind(address).await.map_err(|error| {
                let why = match error.kind() {
                    io::ErrorKind::AddrInUse => "address in use".to_owned(),
                    io::ErrorKind::AddrNotAvailable => {
                        "this machine has no such address".to_owned()
                    }
                    io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                    _ => error.to_string(),
                };
                let message = format!("cannot listen on {address} (`[server] {key}`): {why}");
                io::Error::new(error.kind(), message)
            })
        };
        Ok(Self {
            public: match roles.ingest {
                true => Some(bind("listen", config.server.listen).await?),
                false => None,
            },
            admin: Some(bind("admin_listen", config.server.admin_listen).await?),
        })
    }
}

/// Why a server did not start or reload.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be served.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store does not take what the configuration names.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A socket cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A server that runs. Dropping it stops nothing in an orderly way: see [`Server::stop`].
pub struct Server {
    /// What its handlers share.
    pub inbox: Arc<Inbox>,
    /// Where webhooks come in; as configured, if they do not.
    pub public: SocketAddr,
    /// Where health and metrics are.
    pub admin: SocketAddr,
    roles: Roles,
    config: Mutex<Config>,
    /// What is bound and open, whatever was loaded since.
    started: Config,
    tls: Option<Tls>,
    stop_public: watch::Sender<bool>,
    stop_admin: watch::Sender<bool>,
    stop_retention: Mutex<watch::Sender<bool>>,
    public_task: JoinSet<()>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server on an open store.
    pub async fn start(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: impl Into<StartOptions>,
        listeners: Listeners,
    ) -> Result<Self, StartError> {
        let StartOptions { roles, ingest, worker, dial, handlers, keys } = options.into();
        let is_handled = |route: &str| handlers.contains_key(route);
        let Readiness { keyrings, signers, warnings } = config.ready_for(&is_handled)?;
        for warning in &warnings {
            warn!(hint = warning.hint(), "{warning}");
        }
        let tls = load_tls(&config)?.map(|tls| Arc::new(ArcSwap::new(tls)));
        let metrics = Arc::new(Metrics::new());
        let keys = Keys::start(keys, &dial, clock.clone(), store.clone()).await;
        let means = Means { store, clock, metrics, dial, handlers };
        let worker = roles.worker.then_some(worker);
        let inbox = Inbox::start(&config, keyrings, signers, means, ingest, worker, keys).await?;
        // Before the first webhook: a clock that is wrong from the start would reject them all.
        inbox.watch_clock().await;
        inbox.tallies.begin(&inbox).await;
        let server = Self {
            inbox: Arc::new(inbox),
            public: address(listeners.public.as_ref(), config.server.listen)?,
            admin: address(listeners.admin.as_ref(), config.server.admin_listen)?,
            roles,
            tls,
            stop_public: watch::Sender::new(false),
            stop_admin: watch::Sender::new(false),
            stop_retention: Mutex::new(watch::Sender::new(false)),
            public_task: JoinSet::new(),
            tasks: JoinSet::new(),
            started: config.clone(),
            config: Mutex::new(config),
        };
        Ok(server.with_tasks(listeners))
    }

    fn with_tasks(mut self, listeners: Listeners) -> Self {
        let config = self.config();
        let options = ListenerOptions::from(&config.server);
        if let Some(listener) = listeners.public {
            let inbox = self.inbox.clone();
            let receive = move |peer: SocketAddr, request: Request<Incoming>| {
                public::receive(inbox.clone(), peer.ip(), request)
            };
            let stop = self.stop_public.subscribe();
            let tls = self.tls.clone();
            self.public_task.spawn(listener::serve(listener, options.clone(), tls, receive, stop));
        }

        if let Some(listener) = listeners.admin {
            self.serve_admin(listener, options);
        }

        self.now_and_then(clock_watch::INTERVAL, |inbox| async move { inbox.watch_clock().await });
        self.now_and_then(tallies::INTERVAL, |inbox| async move { inbox.tally().await });
        self.now_and_then(activity::INTERVAL, |inbox| async move {
            inbox.activity.flush(&*inbox.store).await;
        });
        self.now_and_then(pairing::INTERVAL, |inbox| async move {
            pairing::refresh_all(&inbox).await;
            let live = inbox.live();
            if let Err(error) = live.sources.refresh_strongest(&*inbox.store).await {
                debug!(%error, "required proofs were not read");
            }
        });
        if self.roles.worker {
            let replays = Replays::new(self.inbox.store.clone());
            self.tasks.spawn(replays.run(self.stop_admin.subscribe()));
        }
        self.tasks.spawn(self.inbox.maintenance.clone().run(self.stop_admin.subscribe()));
        self.restart_retention(&config);
        info!(
            public = %self.public,
            admin = %self.admin,
            sources = self.inbox.live().sources.len(),
            routes = self.inbox.live().routes.iter().count(),
            destinations = self.inbox.live().destinations.iter().count(),
            tls = self.tls.is_some(),
            store = %config.store.url,
            version = env!("CARGO_PKG_VERSION"),
            "listening"
        );
        self
    }

    fn serve_admin(&mut self, listener: TcpListener, options: ListenerOptions) {
        let (router, inbox) = (self.admin_router(), self.inbox.clone());
        let answer = move |peer: SocketAddr, request: Request<Incoming>| {
            let (router, live) = (router.clone(), inbox.live());
            async move { admin::host::answer(router, peer.ip(), &live.admin_hosts, request).await }
        };
        let stop = self.stop_admin.subscribe();
        self.tasks.spawn(listener::serve(listener, options, None, answer, stop));
    }

    /// The front door, to be mounted beside the routes of another service: `/in/{source}`. The
    /// address of the sender is known where that service gives its handlers
    /// [`ConnectInfo`]; limits per address need it.
    pub fn router(&self) -> Router {
        let inbox = self.inbox.clone();
        let receive = move |peer: Option<Extension<ConnectInfo<SocketAddr>>>, request| {
            let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |Extension(peer)| peer.0.ip());
            public::receive(inbox.clone(), peer, request)
        };
        Router::new().route("/in/{source}", any(receive))
    }

    /// What the admin listener answers: health, metrics and, in that role, the API.
    pub fn admin_router(&self) -> Router {
        match self.roles.console {
            true => admin::router(self.inbox.clone()),
            false => admin::health(self.inbox.clone()),
        }
    }

    /// Does something again and again until the server stops.
    fn now_and_then<F>(
        &mut self,
        interval: Duration,
        act: impl Fn(Arc<Inbox>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let inbox = self.inbox.clone();
        let mut stop = self.stop_admin.subscribe();
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
                act(inbox.clone()).await;
            }
        });
    }

    /// The configuration in force.
    pub fn config(&self) -> Config {
        self.config.lock().expect("no panic while reading").clone()
    }

    /// Puts another configuration in force without dropping a request. On an error everything
    /// stays as it was. Returns the keys whose change needs a restart.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, StartError> {
        // Secrets and certificates are files, and whatever they are on may hang.
        let handlers = self.inbox.means().handlers;
        let read = tokio::task::spawn_blocking(move || {
            let ready = config.ready_for(&|route| handlers.contains_key(route))?;
            let tls = load_tls(&config)?;
            Ok::<_, StartError>((config, ready, tls))
        });
        let (config, Readiness { keyrings, signers, warnings }, tls) =
            read.await.map_err(io::Error::other)??;
        let inbox = &self.inbox;
        let live = Live::build(&config, keyrings, signers, &inbox.means()).await?;
        for warning in &warnings {
            warn!(hint = warning.hint(), "{warning}");
        }
        let needs_restart = needs_restart(&self.started, &config);
        inbox.replace(live);
        if let (Some(current), Some(new)) = (&self.tls, tls) {
            current.store(new);
        }
        self.restart_retention(&config);
        *self.config.lock().expect("no panic while reading") = config;
        Ok(needs_restart)
    }

    /// Resolves with the reason once the store has failed for good.
    pub async fn failed(&self) -> String {
        let worker = async {
            match &self.inbox.worker {
                Some(worker) => worker.failed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reason = self.inbox.ingest.failed() => reason,
            reason = worker => reason,
        }
    }

    /// Stops accepting, lets requests under way finish, commits what is queued, lets deliveries
    /// under way end, returns the leases of the others and closes the store. Health says
    /// `unready` to the end, so that nobody is sent here meanwhile.
    pub async fn stop(mut self) {
        let wait = self.config().server.drain_timeout.0;
        self.inbox.start_draining();
        self.stop_public.send_replace(true);
        self.stop_retention.lock().expect("no panic while stopping").send_replace(true);
        while self.public_task.join_next().await.is_some() {}
        if tokio::time::timeout(INGEST_DRAIN.max(wait), self.inbox.ingest.drain()).await.is_err() {
            warn!("the store did not finish what was queued in time");
        }
        if let Some(worker) = &self.inbox.worker
            && tokio::time::timeout(INGEST_DRAIN + wait, worker.stop(wait)).await.is_err()
        {
            warn!("the store did not take back in time what is being delivered");
        }
        self.stop_admin.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        self.inbox.activity.flush(&*self.inbox.store).await;
        if tokio::time::timeout(INGEST_DRAIN, self.inbox.store.close()).await.is_err() {
            warn!("the store did not close in time");
        }
        info!("stopped");
    }

    /// Retention is told its rules when it starts, so new rules mean a new start.
    fn restart_retention(&self, config: &Config) {
        let (store, clock) = (self.inbox.store.clone(), self.inbox.clock.clone());
        let inbox = self.inbox.clone();
        let retention = Retention::new(store, clock, config.retention.keep(), config.keeps())
            .keeping_effects(config.retention.effects())
            .while_clock_is(move || inbox.clock_watch.trusts_for_deletion(&*inbox.clock))
            .by_leader(self.inbox.maintenance.clone());
        let stop = watch::Sender::new(false);
        tokio::spawn(retention.run(stop.subscribe()));
        let mut current = self.stop_retention.lock().expect("no panic while starting");
        current.send_replace(true);
        *current = stop;
    }
}

/// Where a listener is, or would be.
fn address(listener: Option<&TcpListener>, configured: SocketAddr) -> io::Result<SocketAddr> {
    listener.map_or(Ok(configured), TcpListener::local_addr)
}

/// How ingest is bounded under this configuration: whatever may be received can be queued. A
/// reload may raise `max_body` as far as the memory for bodies goes. The events of a form are
/// copies, beside the form itself.
pub fn ingest_options(server: &ServerConfig) -> IngestOptions {
    let bodies = server.memory_budget.bytes().saturating_mul(2);
    let largest = bodies.saturating_add(server.max_headers.bytes());
    let largest = largest.saturating_add(limits::BATCH_ITEMS_MAX * limits::EVENT_BYTES);
    let default = IngestOptions::default();
    IngestOptions { queue_bytes: default.queue_bytes.max(largest), ..default }
}

/// Reads the certificate. The configuration was found ready, so an error here is a file that
/// changed in between.
pub(crate) fn load_tls(config: &Config) -> Result<Option<Arc<rustls::ServerConfig>>, io::Error> {
    let load = |files| tls::load(files).map_err(|(message, _)| io::Error::other(message));
    config.server.tls.as_ref().map(load).transpose()
}

/// The keys that differ and are only read at the start.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let (a, b) = (&old.server, &new.server);
    [
        ("server.listen", a.listen != b.listen),
        ("server.admin_listen", a.admin_listen != b.admin_listen),
        ("server.tls", a.tls.is_some() != b.tls.is_some()),
        ("server.max_headers", a.max_headers != b.max_headers),
        ("server.header_timeout", a.header_timeout != b.header_timeout),
        ("server.max_connections", a.max_connections != b.max_connections),
        (
            "server.max_connections_per_address",
            a.max_connections_per_address != b.max_connections_per_address,
        ),
        ("server.memory_budget", a.memory_budget != b.memory_budget),
        ("server.drain_timeout", a.drain_timeout != b.drain_timeout),
        ("server.core_dumps", a.core_dumps != b.core_dumps),
        ("store.url", old.store.url != new.store.url),
        ("log", old.log != new.log),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}

/// Loads the configuration at `path` again and puts it in force; what goes wrong or takes too long
/// is logged, and the old one stays.
pub async fn reload_from(server: &Server, path: Option<PathBuf>) {
    let reload = async {
        let load = move || match path.as_deref() {
            Some(path) if dev::is_config_file(path) => Config::load_dev(path),
            path => Config::load(path),
        };
        let loaded = tokio::task::spawn_blocking(load).await;
        server.reload(loaded.map_err(io::Error::other)??).await
    };
    let outcome = tokio::time::timeout(RELOAD_TIME, reload).await;
    let outcome = outcome.unwrap_or_else(|_| {
        let slow = "the store or a file of the configuration does not answer";
        Err(io::Error::new(io::ErrorKind::TimedOut, slow).into())
    });
    match outcome {
        Ok(needs_restart) => {
            if !needs_restart.is_empty() {
                let keys = needs_restart.join(", ");
                warn!(keys, "these changes take effect after a restart");
            }
            info!(sources = server.inbox.live().sources.len(), "configuration reloaded");
        }
        Err(error) => {
            tracing::error!(%error, "the configuration was not reloaded; the old one stays");
        }
    }
}
