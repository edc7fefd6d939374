//! A worker behind one of the doors: this test binary in a process of its own, which dies where it
//! is told to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oncebox_testkit::process::{self, ServerProcess};

use super::{Service, http_door, rust_door, sql_door};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Handlers in the server.
    Rust,
    /// Handlers in a process of their own, while a server receives.
    Beside,
    Sql,
    Http,
}

impl Door {
    /// Where a worker behind this door may die, in the order it comes along there. What ends the
    /// attempt of a handler commits with it, beyond the reach of handlers: `killed_around_commits`
    /// is about those steps.
    pub(super) fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Rust | Self::Beside => &["claimed", "entered", "state", "once", "sent"],
            Self::Sql => &["claimed", "entered", "state", "once", "sent", "finished", "committed"],
            Self::Http => &["claimed", "entered", "state", "once", "advanced", "sent", "finished"],
        }
    }
}

const DOOR: &str = "ONCEBOX_TEST_DOOR";
const DEATH: &str = "ONCEBOX_TEST_DEATH";
const TABLES: &str = "ONCEBOX_TEST_TABLES";
const API: &str = "ONCEBOX_TEST_API";
const CONFIG: &str = "ONCEBOX_TEST_CONFIG";
const STORE: &str = "ONCEBOX_TEST_STORE";

/// Where and when to die: at the n-th time a worker comes to a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) step: &'static str,
    pub(super) time: usize,
}

/// What a worker is told.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) store: String,
    pub(super) tables: String,
    pub(super) config: String,
    /// The address of the API and a token for it.
    pub(super) api: Option<(std::net::SocketAddr, String)>,
}

impl Service {
    /// Starts a worker. With the Rust door it is a server too.
    pub(super) fn work(&self, death: Option<Death>, api: Option<&str>) -> ServerProcess {
        self.work_on(&self.bed.url, death, api)
    }

    /// Starts a worker that comes to the store by a way of its own.
    pub(super) fn work_on(
        &self,
        store: &str,
        death: Option<Death>,
        api: Option<&str>,
    ) -> ServerProcess {
        let mut envs = vec![
            (DOOR, format!("{:?}", self.door)),
            (STORE, store.to_owned()),
            (TABLES, self.tables()),
            (CONFIG, self.bed.home.config().display().to_string()),
        ];
        envs.extend(death.map(|death| (DEATH, format!("{} {}", death.step, death.time))));
        envs.extend(api.map(|api| (API, api.to_owned())));
        let this = std::env::current_exe().expect("a path to ourselves");
        let args = ["--exact", "effects::door::works_if_told_to", "--nocapture"];
        ServerProcess::spawn(Path::new(&this), args, envs)
    }
}

/// No test: a worker, where the environment says so.
#[test]
fn works_if_told_to() {
    let Ok(door) = std::env::var(DOOR) else { return };
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let api = std::env::var(API).ok().map(|api| {
        let (address, token) = api.split_once(' ').expect("an address and a token");
        (address.parse().expect("an address"), token.to_owned())
    });
    let told = Told { store: var(STORE), tables: var(TABLES), config: var(CONFIG), api };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match door.as_str() {
        "Rust" => runtime.block_on(rust_door::work(&told)),
        "Beside" => runtime.block_on(rust_door::work_beside(&told)),
        "Sql" => runtime.block_on(sql_door::work(&told)),
        "Http" => http_door::work(&told),
        other => panic!("there is no door {other}"),
    }
}

static MORTAL: AtomicBool = AtomicBool::new(false);

/// From here on the worker may die: whoever waits for it to be there has seen it.
pub(super) fn may_die() {
    MORTAL.store(true, Ordering::SeqCst);
}

/// The worker has come to a step, and may not survive it.
pub(super) fn at(step: &str) {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let Ok(death) = std::env::var(DEATH) else { return };
    if !MORTAL.load(Ordering::SeqCst) {
        return;
    }
    let (where_to, time) = death.split_once(' ').expect("a step and a number");
    if step != where_to {
        return;
    }
    let time: usize = time.parse().expect("a number");
    if TIMES.fetch_add(1, Ordering::SeqCst) + 1 == time {
        process::die();
    }
}
