//! Starting, reloading and stopping a whole server, without globals, so that a test can run
//! several.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use oncebox::clock::Clock;
use oncebox::ingest::IngestOptions;
use oncebox::retention::Retention;
use oncebox::store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;
use tracing::{info, warn};

use crate::clock_watch;
use crate::config::{Config, ConfigError, Readiness, ServerConfig};
use crate::listener::{self, ListenerOptions, Tls};
use crate::state::{Inbox, Live};
use crate::{admin, public, tls};

/// How long the store may take for what is queued, after the last sender was answered.
const INGEST_DRAIN: Duration = Duration::from_secs(10);

/// How long a reload may take.
const RELOAD_TIME: Duration = Duration::from_secs(30);

/// What an event weighs in the queue beside its body and headers: its identity, type and object.
const EVENT_BYTES_MORE: usize = 4 << 10;

/// The two sockets of a server.
#[derive(Debug)]
pub struct Listeners {
    /// Where webhooks come in.
    pub public: TcpListener,
    /// Where health and metrics are.
    pub admin: TcpListener,
}

impl Listeners {
    /// Binds the addresses of a configuration.
    pub async fn bind(config: &Config) -> io::Result<Self> {
        let bind = async |key: &str, address: SocketAddr| {
            TcpListener::bind(address)
                .await
                .map_err(|error| io::Error::new(error.kind(), format!("{key} {address}: {error}")))
        };
        Ok(Self {
            public: bind("listen", config.server.listen).await?,
            admin: bind("admin_listen", config.server.admin_listen).await?,
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
    /// Where webhooks come in.
    pub public: SocketAddr,
    /// Where health and metrics are.
    pub admin: SocketAddr,
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
        ingest: IngestOptions,
        listeners: Listeners,
    ) -> Result<Self, StartError> {
        let Readiness { keyrings, signers: _, warnings } = config.ready()?;
        for warning in &warnings {
            warn!(hint = warning.hint(), "{warning}");
        }
        let tls = load_tls(&config)?.map(|tls| Arc::new(ArcSwap::new(tls)));
        let inbox = Inbox::start(&config, keyrings, store, clock, ingest).await?;
        // Before the first webhook: a clock that is wrong from the start would reject them all.
        inbox.watch_clock().await;
        let server = Self {
            inbox: Arc::new(inbox),
            public: listeners.public.local_addr()?,
            admin: listeners.admin.local_addr()?,
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
        let inbox = self.inbox.clone();
        let receive = move |peer: SocketAddr, request: Request<Incoming>| {
            public::receive(inbox.clone(), peer.ip(), request)
        };
        let stop = self.stop_public.subscribe();
        let public =
            listener::serve(listeners.public, options.clone(), self.tls.clone(), receive, stop);
        self.public_task.spawn(public);

        let router = admin::router(self.inbox.clone());
        let answer = move |_: SocketAddr, request: Request<Incoming>| {
            let answer = router.clone().oneshot(request.map(Body::new));
            async move { answer.await.unwrap_or_else(|never| match never {}) }
        };
        let stop = self.stop_admin.subscribe();
        self.tasks.spawn(listener::serve(listeners.admin, options, None, answer, stop));

        let inbox = self.inbox.clone();
        let mut stop = self.stop_admin.subscribe();
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(clock_watch::INTERVAL) => {}
                    _ = stop.wait_for(|stop| *stop) => return,
                }
                inbox.watch_clock().await;
            }
        });
        self.restart_retention(&config);
        info!(
            public = %self.public,
            admin = %self.admin,
            sources = self.inbox.live().sources.len(),
            tls = self.tls.is_some(),
            store = %config.store.url,
            version = env!("CARGO_PKG_VERSION"),
            "listening"
        );
        self
    }

    /// The configuration in force.
    pub fn config(&self) -> Config {
        self.config.lock().expect("no panic while reading").clone()
    }

    /// Puts another configuration in force without dropping a request. On an error everything
    /// stays as it was. Returns the keys whose change needs a restart.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, StartError> {
        // Secrets and certificates are files, and whatever they are on may hang.
        let read = tokio::task::spawn_blocking(move || {
            let ready = config.ready()?;
            let tls = load_tls(&config)?;
            Ok::<_, StartError>((config, ready, tls))
        });
        let (config, Readiness { keyrings, signers: _, warnings }, tls) =
            read.await.map_err(io::Error::other)??;
        let inbox = &self.inbox;
        let live =
            Live::build(&config, keyrings, &*inbox.store, &*inbox.clock, &inbox.metrics).await?;
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
        self.inbox.ingest.failed().await
    }

    /// Stops accepting, lets requests under way finish, commits what is queued and closes the
    /// store. Health says `unready` to the end, so that nobody is sent here meanwhile.
    pub async fn stop(mut self) {
        let wait = self.config().server.drain_timeout.0;
        self.inbox.start_draining();
        self.stop_public.send_replace(true);
        self.stop_retention.lock().expect("no panic while stopping").send_replace(true);
        while self.public_task.join_next().await.is_some() {}
        if tokio::time::timeout(INGEST_DRAIN.max(wait), self.inbox.ingest.drain()).await.is_err() {
            warn!("the store did not finish what was queued in time");
        }
        self.stop_admin.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        if tokio::time::timeout(INGEST_DRAIN, self.inbox.store.close()).await.is_err() {
            warn!("the store did not close in time");
        }
        info!("stopped");
    }

    /// Retention is told its rules when it starts, so new rules mean a new start.
    fn restart_retention(&self, config: &Config) {
        let by_source: HashMap<_, _> = config
            .sources
            .iter()
            .map(|(name, source)| (name.clone(), source.keep(&config.retention)))
            .collect();
        let (store, clock) = (self.inbox.store.clone(), self.inbox.clock.clone());
        let inbox = self.inbox.clone();
        let retention = Retention::new(store, clock, config.retention.keep(), by_source)
            .while_clock_is(move || inbox.clock_watch.trusts_for_deletion(&*inbox.clock));
        let stop = watch::Sender::new(false);
        tokio::spawn(retention.run(stop.subscribe()));
        let mut current = self.stop_retention.lock().expect("no panic while starting");
        current.send_replace(true);
        *current = stop;
    }
}

/// How ingest is bounded under this configuration: whatever may be received can be queued. A
/// reload may raise `max_body` as far as the memory for bodies goes.
pub fn ingest_options(server: &ServerConfig) -> IngestOptions {
    let largest = server.memory_budget.bytes().saturating_add(server.max_headers.bytes());
    let default = IngestOptions::default();
    let queue_bytes = default.queue_bytes.max(largest.saturating_add(EVENT_BYTES_MORE));
    IngestOptions { queue_bytes, ..default }
}

/// Reads the certificate. The configuration was found ready, so an error here is a file that
/// changed in between.
fn load_tls(config: &Config) -> Result<Option<Arc<rustls::ServerConfig>>, io::Error> {
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
        ("server.memory_budget", a.memory_budget != b.memory_budget),
        ("server.drain_timeout", a.drain_timeout != b.drain_timeout),
        ("store.url", old.store != new.store),
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
        let loaded = tokio::task::spawn_blocking(move || Config::load(path.as_deref())).await;
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
