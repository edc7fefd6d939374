//! The server under test: the real one, in a process of its own, on a store that is new.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use oncebox::clock::{Clock, SystemClock};
use oncebox::identity::IdentityKey;
use oncebox::ingest::IngestOptions;
use oncebox::store::{self, Act, NothingStore, Purpose, Store};
use oncebox::token::Scope;
use oncebox_server::api::token::mint;
use oncebox_server::config::{Config, Environment};
use oncebox_server::server::{Listeners, Server};

use super::bed::DESTINATION;
use super::load::{self, Ids};
use crate::exit::Failure;

/// The store a case runs on.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// A store that does nothing: the ceiling.
    Nothing,
    Sqlite(PathBuf),
    Postgres(String),
}

impl Subject {
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(url) => url.clone(),
        }
    }

    /// A token with which workers may pull, made in a store that nobody serves yet.
    pub(crate) async fn token(&self) -> Result<String, Failure> {
        let store = Self::open(&self.argument()).await?;
        let at = SystemClock.now();
        let (token, text) = mint("bench", vec![Scope::Pull(None)], at, None)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let act = Act { who: "bench".into(), via: "cli", why: None, at };
        store.create_token(&token, &act).await?;
        store.close().await;
        Ok(text)
    }

    async fn open(argument: &str) -> Result<Arc<dyn Store>, Failure> {
        match argument {
            "nothing" => Ok(Arc::new(NothingStore)),
            url => Ok(store::open(url, Purpose::Serve).await?),
        }
    }
}

/// The routes of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// How many, each for its own type of event.
    pub(crate) count: u64,
    /// Where they push to; pulled from, if nowhere.
    pub(crate) push: Option<SocketAddr>,
    /// Where outbox messages are pushed to.
    pub(crate) outbox: Option<SocketAddr>,
}

impl Routes {
    /// Their part of the configuration.
    fn configuration(count: u64, push: Option<SocketAddr>) -> String {
        let consumer = match push {
            // No more at the same time than one route alone would have.
            Some(to) => format!(
                "push = \"http://{to}/\"\nsecret = \"{}\"\nallow_private = true\nconcurrency = {}",
                load::SECRET,
                (64 / count.max(1)).max(4)
            ),
            None => "pull = true".to_owned(),
        };
        let route = |number: u64| {
            let events = if count == 1 { "*".to_owned() } else { format!("invoice.{number:03}") };
            format!(
                "[routes.bench-{number}]\nsources = [\"bench\"]\nevents = [\"{events}\"]\n{consumer}\n"
            )
        };
        (0..count).map(route).collect()
    }

    /// The destination of outbox messages in the configuration.
    fn destination(to: SocketAddr) -> String {
        format!(
            "[destinations.{DESTINATION}]\nurl = \"http://{to}/\"\nsecret = \"{}\"\n\
             allow_private = true\nconcurrency = 64\n",
            load::SECRET
        )
    }
}

/// Serves one benchmark case until its standard input closes. Not for people.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchServer {
    #[arg(long)]
    store: String,
    /// Events committed together at most
    #[arg(long)]
    batch: usize,
    #[arg(long)]
    routes: u64,
    #[arg(long)]
    push: Option<SocketAddr>,
    #[arg(long)]
    outbox: Option<SocketAddr>,
}

impl BenchServer {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let store = Subject::open(&self.store).await?;
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
             [log]\nlevel = \"warn\"\n\
             [sources.bench]\nprovider = \"stripe\"\nsecrets = [\"{}\"]\n{}{}",
            load::SECRET,
            Routes::configuration(self.routes, self.push),
            self.outbox.map(Routes::destination).unwrap_or_default()
        );
        let config = Config::parse("bench", &text, Environment::default())
            .map_err(|error| Failure::failed(error.to_string()))?;
        let listeners = Listeners::bind(&config).await?;
        let ingest = IngestOptions { batch_events: self.batch, ..IngestOptions::default() };
        let server = Server::start(config, store, Arc::new(SystemClock), ingest, listeners).await;
        let server = server.map_err(|error| Failure::failed(error.to_string()))?;
        println!("{} {}", server.public, server.admin);
        // The parent holds the other end: should it die, so do we.
        let parent = tokio::task::spawn_blocking(|| {
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
        });
        let _ = parent.await;
        server.stop().await;
        Ok(())
    }
}

/// A running server of a case.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where its API is.
    pub(crate) admin: SocketAddr,
}

impl Running {
    pub(crate) fn start(subject: &Subject, batch: usize, routes: &Routes) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench-server", "--batch", &batch.to_string()])
            .args(["--store", &subject.argument()])
            .args(["--routes", &routes.count.to_string()])
            .args(routes.push.map(|to| format!("--push={to}")))
            .args(routes.outbox.map(|to| format!("--outbox={to}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let addresses = line
            .trim()
            .split_once(' ')
            .and_then(|(public, admin)| Some((public.parse().ok()?, admin.parse().ok()?)));
        let (address, admin) = addresses.ok_or_else(|| {
            Failure::failed("the server under test did not start; its message is above")
        })?;
        Ok(Self { child, address, admin })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the server stop in order, so that its store is settled.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Identities remembered in one step.
const STEP: usize = 20_000;

/// Puts `count` identities into a store, as if that many events had come and expired.
///
/// Sorted, in two rounds: the second splits the pages that the first has filled, which leaves
/// them about as full as pages are after years of keys in random order.
pub(crate) async fn prefill(
    subject: &Subject,
    count: usize,
    ids: Ids,
    progress: &indicatif::ProgressBar,
) -> Result<(), Failure> {
    let store = Subject::open(&subject.argument()).await?;
    let source = store.register_source("bench", None).await?;
    let now = SystemClock.now();
    let start = now.as_second().unsigned_abs() - 30 * 86_400;
    // Spread over a month, in the order they would have come.
    let key = |n: usize| {
        let seconds = start + (n as u64) * 30 * 86_400 / (count as u64).max(1);
        IdentityKey::of_event(&load::event_id(ids, 0, seconds, n as u64))
    };
    for round in [0, 1] {
        let mut keys: Vec<_> =
            (0..count).filter(|n| (n % 10 >= 7) == (round == 1)).map(key).collect();
        keys.sort_unstable();
        for step in keys.chunks(STEP) {
            store.remember(source, step.to_vec(), now).await?;
            progress.inc(step.len() as u64);
        }
    }
    store.close().await;
    Ok(())
}

/// A folder for a case's files, removed afterwards.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(under: &Path, name: &str) -> Result<Self, Failure> {
        let folder = under.join(format!("oncebox-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
