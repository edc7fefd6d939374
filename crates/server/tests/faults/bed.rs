//! A store, a configuration, and the real command on them.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use oncebox::clock::{Clock as _, SystemClock};
use oncebox_testkit::http::{self, Answer};
use oncebox_testkit::postgres::Database;
use oncebox_testkit::process::{Home, ServerProcess};
use oncebox_verify::{Draft, Provider, Secret, catalogue, sign};

/// The source every event comes in by, and the route that takes it.
pub(crate) const SOURCE: &str = "stripe-live";
pub(crate) const ROUTE: &str = "billing";
pub(crate) const SECRET: &str = "whsec_faults_0";

static STRIPE: LazyLock<&Provider> =
    LazyLock::new(|| catalogue::find("stripe").expect("stripe is in the catalogue"));

/// A store and the folder its server runs in.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) home: Home,
    pub(crate) url: String,
    /// Held for its drop.
    _database: Option<Database>,
}

impl Bed {
    pub(crate) fn sqlite() -> Self {
        let home = Home::new();
        let url = format!("sqlite://{}", home.path().join("oncebox.db").display());
        Self::with(home, url, None)
    }

    /// In a database of its own on the shared PostgreSQL.
    pub(crate) fn postgres() -> Self {
        let database = oncebox_testkit::store::database();
        Self::with(Home::new(), database.url().to_owned(), Some(database))
    }

    /// On a PostgreSQL of the test's own, or a proxy before one.
    pub(crate) fn at(url: impl Into<String>) -> Self {
        Self::with(Home::new(), url.into(), None)
    }

    fn with(home: Home, url: String, database: Option<Database>) -> Self {
        let bed = Self { home, url, _database: database };
        bed.configure(&[SECRET]);
        bed
    }

    /// Writes the configuration anew, with these secrets.
    pub(crate) fn configure(&self, secrets: &[&str]) {
        let route = format!("[routes.{ROUTE}]\nsources = [\"{SOURCE}\"]\npull = true\n");
        self.write_configuration(secrets, &route);
    }

    /// Writes the configuration anew, with these routes.
    pub(crate) fn configure_routes(&self, routes: &str) {
        self.write_configuration(&[SECRET], routes);
    }

    fn write_configuration(&self, secrets: &[&str], routes: &str) {
        let source =
            format!("[sources.{SOURCE}]\nprovider = \"stripe\"\nsecrets = {secrets:?}\n\n");
        self.home.configure(&self.url, &(source + routes));
    }

    /// Starts a server and returns once it listens.
    pub(crate) fn serve(&self) -> ServerProcess {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, envs: &[(String, String)]) -> ServerProcess {
        let server = self.start_with(envs);
        server.addresses();
        server
    }

    /// Starts a server that may refuse to run.
    pub(crate) fn start_with(&self, envs: &[(String, String)]) -> ServerProcess {
        ServerProcess::serve(binary(), &self.home, envs.to_vec())
    }

    /// Runs the command to its end.
    pub(crate) fn oncebox(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().expect("run oncebox");
        Run::from(output)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).arg("--config").arg(self.home.config()).current_dir(self.home.path());
        command.env("NO_COLOR", "1");
        command
    }

    /// The SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        self.home.path().join("oncebox.db")
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_oncebox"))
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { code, stdout, stderr } = self;
        write!(f, "exit {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// The body of an event, always the same for the same id.
pub(crate) fn body(id: &str) -> Vec<u8> {
    let filling = "x".repeat(64 + id.len() * 37 % 512);
    format!(
        "{{\"id\":\"{id}\",\"object\":\"event\",\"type\":\"invoice.paid\",\"created\":1760000000,\
         \"data\":{{\"object\":{{\"id\":\"in_{id}\",\"memo\":\"{filling}\"}}}}}}"
    )
    .into_bytes()
}

/// The bytes of a request with this body, signed now.
pub(crate) fn signed_request(body: Vec<u8>, secret: &str) -> Vec<u8> {
    let draft = Draft {
        method: "POST".into(),
        url: format!("https://oncebox.test/in/{SOURCE}"),
        headers: http_headers(),
        body,
    };
    let secret = Secret::new(secret);
    let draft = sign(*STRIPE, &secret, draft, SystemClock.now()).expect("the event can be signed");
    let headers: Vec<(&str, &str)> = draft
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().expect("signatures are text")))
        .collect();
    http::request_bytes("POST", &format!("/in/{SOURCE}"), &headers, &draft.body)
}

fn http_headers() -> ::http::HeaderMap {
    let json = ::http::HeaderValue::from_static("application/json");
    [(::http::header::CONTENT_TYPE, json)].into_iter().collect()
}

/// Posts one event on a connection of its own.
#[track_caller]
pub(crate) fn post(addr: SocketAddr, id: &str) -> Answer {
    try_post(addr, id).unwrap_or_else(|error| panic!("{id} got no answer: {error}"))
}

pub(crate) fn try_post(addr: SocketAddr, id: &str) -> std::io::Result<Answer> {
    let mut connection = http::Connection::open(addr)?;
    connection.send(&signed_request(body(id), SECRET))?;
    connection.answer()
}

/// The receipt an acknowledgement names.
#[track_caller]
pub(crate) fn receipt(answer: &Answer) -> String {
    let receipt = answer.json()["receipt"].as_str().map(str::to_owned);
    receipt.unwrap_or_else(|| panic!("no receipt in {answer:?}"))
}

/// Asserts that a server tells this in its log, to the last line it wrote before it ended.
#[track_caller]
pub(crate) fn assert_says(server: &ServerProcess, text: &str) {
    server.wait_for(&format!("{text:?}"), |line| line.contains(text).then_some(()));
}

/// Asserts that an answer says: our trouble, come back.
#[track_caller]
pub(crate) fn assert_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let after = answer.header("retry-after").and_then(|value| value.parse::<u32>().ok());
    assert!(after.is_some_and(|seconds| seconds > 0), "no Retry-After in {answer:?}");
}
