//! `oncebox serve`: the server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use oncebox::clock::SystemClock;
use oncebox::store::Store;
use oncebox_server::config::Config;
use oncebox_server::logs;
use oncebox_server::server::{
    Listeners, Server, StartError, StartOptions, ingest_options, reload_from,
};
use oncebox_server::state::Roles;
use oncebox_server::waiting;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use crate::exit::{Code, Failure};
use crate::{Global, core_dumps};

/// Receive webhooks and deliver them
///
/// SIGHUP reads the configuration again; should it be wrong, the old one stays. SIGTERM and SIGINT
/// finish what is under way and stop; a second one stops at once.
///
/// A SQLite store is migrated, and an empty PostgreSQL gets its schema. With migrations pending on
/// a PostgreSQL it answers 503 and waits until `oncebox migrate up` has run.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// What this process does; several processes may share the work on PostgreSQL
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ROLES",
          default_values = ["ingest", "worker", "console"])]
    role: Vec<Role>,
}

/// A part of the work. Health and metrics are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Receive and record events
    Ingest,
    /// Push them, and drive replays
    Worker,
    /// Answer the API, for workers that pull
    Console,
}

impl Serve {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let has = |role| self.role.contains(&role);
        let roles = Roles {
            ingest: has(Role::Ingest),
            worker: has(Role::Worker),
            console: has(Role::Console),
        };
        // Before any secret is read.
        let dumps = core_dumps::forbid()?;
        // Everything that may be wrong with it is told before anything is opened.
        let (config, _) = Config::load_ready(global.config.as_deref())?;
        if config.server.core_dumps {
            dumps.restore()?;
        }
        let mut signals = Signals::listen()?;
        let logs = logs::init(&config.log)?;
        let ended = match start_unless_stopped(config, roles, &mut signals).await {
            Ok(Some(server)) => until_stopped(server, signals, global.config.clone()).await,
            Ok(None) => Ok(()),
            Err(failure) => Err(failure),
        };
        drop(logs);
        ended
    }
}

/// Starts, unless a signal asks to stop before that is done: a store that does not answer may
/// take its time.
pub(crate) async fn start_unless_stopped(
    config: Config,
    roles: Roles,
    signals: &mut Signals,
) -> Result<Option<Server>, Failure> {
    let mut opened = None;
    tokio::select! {
        server = start(config, roles, &mut opened) => return server.map(Some),
        () = signals.stop.asked() => {}
    }
    // An orderly end: workers elsewhere keep their leases.
    if let Some(store) = opened {
        store.close().await;
    }
    info!("stopped before it had started");
    Ok(None)
}

/// Binds the listeners, opens the store and starts. The caller closes the store that was `opened`
/// if it does not wait for the end of this.
async fn start(
    config: Config,
    roles: Roles,
    opened: &mut Option<Arc<dyn Store>>,
) -> Result<Server, Failure> {
    let mut listeners = Listeners::bind_for(&config, roles).await.map_err(|error| {
        let failure = Failure::failed(error.to_string());
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.hint("is another server running there?"),
            io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 need a right"),
            _ => failure,
        }
    })?;
    let store = waiting::open_store(&config, &mut listeners).await?;
    *opened = Some(store.clone());
    let clock = Arc::new(SystemClock);
    let options = StartOptions { roles, ..ingest_options(&config.server).into() };
    let started = Server::start(config, store.clone(), clock, options, listeners).await;
    if started.is_err() {
        // An orderly end: workers elsewhere keep their leases.
        store.close().await;
    }
    Ok(started?)
}

/// Runs until a signal or a failed store ends it.
pub(crate) async fn until_stopped(
    server: Server,
    mut signals: Signals,
    file: Option<PathBuf>,
) -> Result<(), Failure> {
    let reloads = async {
        while let Some(()) = signals.reload.recv().await {
            reload_from(&server, file.clone()).await;
        }
        std::future::pending().await
    };
    // A reload that hangs holds up neither.
    let failure = tokio::select! {
        () = signals.stop.asked() => None,
        reason = server.failed() => Some(reason),
        never = reloads => never,
    };
    match &failure {
        Some(reason) => error!(reason, "the store has failed; stopping, a restart recovers it"),
        None => info!("stopping: no new connections, requests under way are finished"),
    }
    tokio::select! {
        () = server.stop() => {}
        () = signals.stop.asked() => {
            warn!("stopped at once");
            return Err(Failure::failed("stopped at once, before requests under way were finished"));
        }
    }
    match failure {
        None => Ok(()),
        Some(reason) => {
            Err(Failure::new(Code::StoreUnavailable, format!("the store has failed: {reason}"))
                .hint("nothing acknowledged is lost; start it again when the disk is well"))
        }
    }
}

/// The signals a server obeys. They are listened to before it says that it is there.
pub(crate) struct Signals {
    reload: Signal,
    stop: Stop,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self { reload: signal(SignalKind::hangup())?, stop: Stop::new()? })
    }
}

/// The signals that ask to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::Store(error) => error.into(),
            StartError::Io(error) => error.into(),
        }
    }
}
