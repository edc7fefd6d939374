//! A real PostgreSQL for tests.
//!
//! [`shared`] is one server per test process, for tests that only need a database of their own:
//!
//! ```
//! use oncebox_testkit::postgres;
//!
//! let database = postgres::shared().database();
//! postgres::execute(database.url(), "CREATE TABLE receipts (id int)");
//! postgres::execute(database.url(), "INSERT INTO receipts VALUES (1), (2)");
//! assert_eq!(postgres::query(database.url(), "SELECT count(*) FROM receipts"), "2");
//! ```
//!
//! [`Server::start`] is a server of the test's own, to be stopped, frozen and started again.
//!
//! With `ONCEBOX_TEST_POSTGRES` set to a URL, [`shared`] is that server, whose user must be allowed
//! to create databases. Otherwise clusters are private: made in a temporary folder from the
//! programs on this machine, on loopback only, and removed when the test process ends, however it
//! ends.

mod binaries;
mod cluster;

use std::env;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_postgres::{NoTls, SimpleQueryMessage};

use cluster::{Cluster, Stop, USER};

use crate::ports;

/// Names a server to use instead of a private one.
const URL_VARIABLE: &str = "ONCEBOX_TEST_POSTGRES";

/// The server that the tests of this process share. Not to be stopped or paused.
pub fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| match env::var(URL_VARIABLE) {
        Ok(url) if !url.is_empty() => Server { kind: Kind::External(url) },
        _ => Server::start(),
    })
}

/// Whether a test that stops its server has to be skipped: only a server that is not ours is
/// given, and there are no programs to start another. Says so on standard error.
///
/// ```
/// # use oncebox_testkit::postgres::{self, Server};
/// if postgres::must_skip_own_server() {
///     return;
/// }
/// let server = Server::start();
/// ```
pub fn must_skip_own_server() -> bool {
    let skip = env::var(URL_VARIABLE).is_ok_and(|url| !url.is_empty()) && !binaries::are_there();
    if skip {
        eprintln!("skipped: {URL_VARIABLE} is set, and no PostgreSQL programs are on this machine");
    }
    skip
}

/// A PostgreSQL server, private unless it came from the environment.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Private(Mutex<Cluster>),
    External(String),
}

impl Server {
    /// Starts a private server.
    ///
    /// # Panics
    ///
    /// When there are no server programs or the server does not start; its log is in the message.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a private server with settings of its own.
    ///
    /// ```
    /// use oncebox_testkit::postgres::{Server, query};
    /// # if oncebox_testkit::postgres::must_skip_own_server() { return }
    ///
    /// let server = Server::start_with(&[("synchronous_commit", "off")]);
    /// assert_eq!(query(&server.url(), "SHOW synchronous_commit"), "off");
    /// server.stop_immediate();
    /// server.start_again();
    /// assert_eq!(query(&server.url(), "SHOW fsync"), "on");
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        Self { kind: Kind::Private(Mutex::new(Cluster::start(settings))) }
    }

    /// Starts a private streaming standby of a private server.
    ///
    /// ```
    /// use oncebox_testkit::postgres::{Server, query};
    /// # if oncebox_testkit::postgres::must_skip_own_server() { return }
    ///
    /// let primary = Server::start();
    /// let standby = Server::standby_of(&primary);
    /// assert_eq!(query(&standby.url(), "SELECT pg_is_in_recovery()"), "t");
    /// standby.promote();
    /// assert_eq!(query(&standby.url(), "SELECT pg_is_in_recovery()"), "f");
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Server::start`].
    pub fn standby_of(primary: &Self) -> Self {
        Self { kind: Kind::Private(Mutex::new(Cluster::start_standby(primary.port()))) }
    }

    /// Makes a standby the primary of a new timeline; returns when it can be written to.
    pub fn promote(&self) {
        execute(&self.url(), "SELECT pg_promote(true, 60)");
    }

    /// Whether it was started for the tests, and goes with them.
    pub fn is_private(&self) -> bool {
        matches!(self.kind, Kind::Private(_))
    }

    /// Where the server is, with its maintenance database.
    pub fn url(&self) -> String {
        match &self.kind {
            Kind::Private(_) => format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port()),
            Kind::External(url) => url.clone(),
        }
    }

    /// Creates an empty database under a name nobody else uses.
    pub fn database(&self) -> Database {
        self.database_like("template1")
    }

    /// Creates a copy of a database in which nobody is.
    pub fn database_like(&self, template: &str) -> Database {
        let name = format!("oncebox_test_{}_{:016x}", std::process::id(), ports::random());
        let maintenance = self.url();
        execute(&maintenance, &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        let url = with_database(&maintenance, &name);
        // A private cluster goes as a whole; dropping database by database would only cost
        // checkpoints.
        let dropped_through = matches!(self.kind, Kind::External(_)).then_some(maintenance);
        Database { name, url, dropped_through }
    }

    /// Stops as in a crash: everyone is cut off, nothing is flushed, the next start recovers.
    pub fn stop_immediate(&self) {
        self.cluster().stop(Stop::Immediate);
    }

    /// Ends all connections and shuts down in order.
    pub fn stop_fast(&self) {
        self.cluster().stop(Stop::Fast);
    }

    /// Starts the stopped server, at the same address.
    pub fn start_again(&self) {
        self.cluster().start_again();
    }

    /// Freezes all of the server's processes: connections stay open, nothing answers.
    pub fn pause(&self) {
        self.cluster().pause();
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        self.cluster().resume();
    }

    /// The postmaster's process id.
    pub fn pid(&self) -> u32 {
        self.cluster().pid()
    }

    /// The server's TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.cluster().port()
    }

    /// The cluster's folder, which also holds its unix socket.
    pub fn folder(&self) -> PathBuf {
        self.cluster().folder().to_owned()
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        self.cluster().log()
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        match &self.kind {
            // A test that failed while it held the server leaves it usable for its clean-up.
            Kind::Private(cluster) => cluster.lock().unwrap_or_else(PoisonError::into_inner),
            Kind::External(_) => panic!("the server in {URL_VARIABLE} is not ours to handle"),
        }
    }
}

/// A database of one test. Dropped with its guard when the server is not ours.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    dropped_through: Option<String>,
}

impl Database {
    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name on its server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(maintenance) = &self.dropped_through {
            let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
            // Best effort: the server may be gone, and the name says what it was.
            let _ = simple_query(maintenance, &drop);
        }
    }
}

/// Runs statements, from synchronous and asynchronous tests alike.
///
/// # Panics
///
/// When the server cannot be reached or refuses.
#[track_caller]
pub fn execute(url: &str, sql: &str) {
    query(url, sql);
}

/// The rows of a query as text: a line per row, columns divided by `|`, NULL as nothing.
///
/// # Panics
///
/// As [`execute`].
#[track_caller]
pub fn query(url: &str, sql: &str) -> String {
    match simple_query(url, sql) {
        Ok(rows) => rows.join("\n"),
        Err(error) => panic!("{sql}\nfailed on {url}: {error:?}"),
    }
}

/// On a thread of its own, since a test may already be inside a runtime.
fn simple_query(url: &str, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let run = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("build a runtime")
            .block_on(async {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
                tokio::spawn(connection);
                client.simple_query(sql).await
            })
    };
    let messages = std::thread::scope(|scope| scope.spawn(run).join().expect("query thread"))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let columns: Vec<&str> =
                (0..row.len()).map(|column| row.get(column).unwrap_or_default()).collect();
            Some(columns.join("|"))
        }
        _ => None,
    });
    Ok(rows.collect())
}

/// The same server, another database.
fn with_database(url: &str, name: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_else(|| {
        panic!("{URL_VARIABLE} must be a URL such as postgres://user@host/postgres")
    });
    let (place, parameters) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
    let authority = place.split_once('/').map_or(place, |(authority, _)| authority);
    let parameters = parameters.map(|text| format!("?{text}")).unwrap_or_default();
    format!("{scheme}://{authority}/{name}{parameters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_moved_to_another_database() {
        for (url, expected) in [
            ("postgres://u@h:5/postgres", "postgres://u@h:5/x"),
            ("postgres://u:p@h", "postgres://u:p@h/x"),
            ("postgres://h?sslmode=disable", "postgres://h/x?sslmode=disable"),
            ("postgres://a,b:6/d?host=/tmp", "postgres://a,b:6/x?host=/tmp"),
        ] {
            assert_eq!(with_database(url, "x"), expected);
        }
    }
}
