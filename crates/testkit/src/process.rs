//! The real server as a process, and a folder for it to live in.
//!
//! ```no_run
//! use oncebox_testkit::{http, process::{Home, ServerProcess}};
//!
//! let home = Home::new();
//! home.configure("sqlite://oncebox.db", "[sources.demo]\nprovider = \"stripe\"\n");
//! # let binary = std::path::Path::new("oncebox");
//! let mut server = ServerProcess::serve(binary, &home, [("STRIPE_SECRET", "whsec_test")]);
//! assert_eq!(http::get(server.addresses().admin, "/livez").unwrap().status, 200);
//!
//! server.terminate();
//! assert!(server.wait().success());
//! ```

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::wait::{self, DEADLINE};
use crate::watchdog::Watchdog;

/// A running server. Killed with its guard, and with the test process.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    exit: Option<ExitStatus>,
    log: Arc<Log>,
    watchdog: Watchdog,
}

/// Ends this very process as a crash would: nothing is flushed, nobody is told.
///
/// # Panics
///
/// When the system refuses, which it does not.
pub fn die() -> ! {
    kill(Pid::this(), Signal::SIGKILL).expect("signal ourselves");
    unreachable!("nobody survives this signal")
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// For providers.
    pub public: SocketAddr,
    /// For operators.
    pub admin: SocketAddr,
}

impl ServerProcess {
    /// Runs a program. Its environment is the test's, without any of the variables that
    /// override configuration, and with `envs`.
    ///
    /// # Panics
    ///
    /// When there is no such program.
    pub fn spawn(
        binary: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        envs: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        let mut command = Command::new(binary);
        command.args(args);
        Self::start(command, envs)
    }

    /// Runs `serve` in `home`, with the configuration that is there.
    ///
    /// # Panics
    ///
    /// When there is no such program.
    pub fn serve(
        binary: &Path,
        home: &Home,
        envs: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        let mut command = Command::new(binary);
        command.arg("serve").arg("--config").arg(home.config()).current_dir(home.path());
        Self::start(command, envs)
    }

    fn start(
        mut command: Command,
        envs: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("ONCEBOX__")) {
                command.env_remove(name);
            }
        }
        let mut child = command
            .envs(envs)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let mut watchdog = Watchdog::killing();
        watchdog.watch(Some(child.id()));
        let log = Arc::new(Log::default());
        log.follow(child.stdout.take().expect("stdout is piped"));
        log.follow(child.stderr.take().expect("stderr is piped"));
        Self { child, exit: None, log, watchdog }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything written so far to standard output and error.
    pub fn log(&self) -> String {
        self.log.lock().lines.join("\n")
    }

    /// How many lines have been written; where to look on from, for [`Self::wait_for_after`].
    pub fn lines(&self) -> usize {
        self.log.lock().lines.len()
    }

    /// Waits for the first line in which `find` finds something.
    ///
    /// # Panics
    ///
    /// When the process ends or [`DEADLINE`] passes without it; the log is in the message.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, find: impl FnMut(&str) -> Option<T>) -> T {
        self.wait_for_after(0, what, find)
    }

    /// As [`Self::wait_for`], but passes over the first `seen` lines.
    ///
    /// # Panics
    ///
    /// As [`Self::wait_for`].
    #[track_caller]
    pub fn wait_for_after<T>(
        &self,
        seen: usize,
        what: &str,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> T {
        let (mut next, mut found) = (seen, None);
        let searching = |state: &mut LogState| {
            while found.is_none() && next < state.lines.len() {
                found = find(&state.lines[next]);
                next += 1;
            }
            found.is_none() && state.open > 0
        };
        let state = self.log.lock();
        let (state, waited) = self
            .log
            .changed
            .wait_timeout_while(state, DEADLINE, searching)
            .unwrap_or_else(PoisonError::into_inner);
        let end = if waited.timed_out() { "the deadline passed" } else { "the process ended" };
        let lines = state.lines.join("\n");
        drop(state);
        found.unwrap_or_else(|| panic!("{end} without {what}. Its log:\n{lines}"))
    }

    /// Waits for a JSON log line with this message, and returns its fields.
    ///
    /// # Panics
    ///
    /// As [`Self::wait_for`].
    #[track_caller]
    pub fn wait_for_message(&self, message: &str) -> Value {
        self.wait_for_message_after(0, message)
    }

    /// As [`Self::wait_for_message`], but passes over the first `seen` lines.
    ///
    /// # Panics
    ///
    /// As [`Self::wait_for`].
    #[track_caller]
    pub fn wait_for_message_after(&self, seen: usize, message: &str) -> Value {
        self.wait_for_after(seen, &format!("the message {message:?}"), |line| {
            fields(line).filter(|fields| fields["message"] == message)
        })
    }

    /// Waits until the server listens, and says where.
    ///
    /// # Panics
    ///
    /// As [`Self::wait_for`].
    #[track_caller]
    pub fn addresses(&self) -> Addresses {
        self.wait_for("a line that says where it listens", announced)
    }

    /// SIGKILL: no time to say goodbye. Returns when it is dead.
    pub fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::SIGKILL);
        self.wait()
    }

    /// SIGTERM: please finish. Returns at once.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// SIGHUP: reload. Returns at once.
    pub fn hang_up(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// SIGSTOP: freezes it, connections open.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT: ends a [`Self::stop`].
    pub fn cont(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// After [`DEADLINE`]; the log is in the message.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        if !wait::holds_within(DEADLINE, || self.has_ended()) {
            panic!("process {} did not end in {DEADLINE:?}. Its log:\n{}", self.pid(), self.log());
        }
        self.exit.expect("it has ended")
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("look at the process");
            if self.exit.is_some() {
                self.watchdog.watch(None);
            }
        }
        self.exit.is_some()
    }

    /// The most memory it ever held.
    ///
    /// # Panics
    ///
    /// When it has ended. Linux only.
    #[cfg(target_os = "linux")]
    pub fn memory_peak_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let kib: Option<u64> = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        kib.expect("a running process tells its peak memory") * 1024
    }

    fn signal(&self, signal: Signal) {
        // Once reaped, the number may be another's.
        if self.exit.is_none() {
            let pid = i32::try_from(self.pid()).expect("a process id fits");
            kill(Pid::from_raw(pid), signal).expect("signal the process");
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.watchdog.watch(None);
        }
        if std::thread::panicking() {
            eprintln!("--- log of process {}:\n{}\n---", self.pid(), self.log());
        }
    }
}

/// The fields of a JSON log line, which may be nested below `fields` or not.
fn fields(line: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let nested = value.get_mut("fields").map(Value::take);
    Some(nested.unwrap_or(value))
}

/// The addresses, if this is the line by which a server announces them.
fn announced(line: &str) -> Option<Addresses> {
    let fields = fields(line).filter(|fields| fields["message"] == "listening")?;
    let address = |name: &str| fields[name].as_str()?.parse().ok();
    Some(Addresses { public: address("public")?, admin: address("admin")? })
}

#[derive(Debug, Default)]
struct Log {
    state: Mutex<LogState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LogState {
    lines: Vec<String>,
    /// How many of the process's outputs are still open.
    open: usize,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(self: &Arc<Self>, output: impl Read + Send + 'static) {
        let log = Arc::clone(self);
        log.lock().open += 1;
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                log.lock().lines.push(String::from_utf8_lossy(&line).into_owned());
                log.changed.notify_all();
            }
            log.lock().open -= 1;
            log.changed.notify_all();
        });
    }
}

/// A temporary folder with an `oncebox.toml`.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty one.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("oncebox-home-").tempdir();
        Self { folder: folder.expect("make a temporary folder") }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.path().join("oncebox.toml")
    }

    /// Writes a configuration on this store, on free ports, with logs that
    /// [`ServerProcess::addresses`] can read; `rest` follows, from its own tables on.
    pub fn configure(&self, store_url: &str, rest: &str) {
        self.write_config(&format!(
            "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\n\
             [store]\nurl = {store_url:?}\n\n[log]\nformat = \"json\"\n\n{rest}"
        ));
    }

    /// Writes the whole configuration.
    pub fn write_config(&self, text: &str) {
        fs::write(self.config(), text).expect("write the configuration");
    }
}
