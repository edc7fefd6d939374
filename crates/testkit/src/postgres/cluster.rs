//! One private cluster: its folder, its postmaster, its death.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};

use super::binaries;
use crate::watchdog::Watchdog;
use crate::{ports, wait};

/// The superuser of a private cluster.
pub(super) const USER: &str = "oncebox";

/// Crash recovery of a well-filled log can take its time on a shared disk.
const START_LIMIT: Duration = Duration::from_secs(90);

/// A kind of stop, by the signal that asks the postmaster for it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    /// As in a crash: no checkpoint, recovery at the next start.
    Immediate,
    /// Connections are ended, then an orderly shutdown.
    Fast,
}

/// A data folder and the server that runs on it.
#[derive(Debug)]
pub(super) struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    owner: Option<Owner>,
    postmaster: Option<Child>,
    paused: bool,
    watchdog: Watchdog,
}

/// Whom the server runs as when we are root, which it refuses.
#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Creates and starts a cluster, with `settings` on top of the usual ones.
    pub(super) fn start(settings: &[(&str, &str)]) -> Self {
        let mut cluster = Self::new();
        cluster.initialise();
        cluster.configure(settings);
        cluster.start_on_free_port();
        cluster
    }

    /// Copies the cluster at `primary`, a port of this machine, and starts it as a streaming
    /// standby.
    pub(super) fn start_standby(primary: u16) -> Self {
        let mut cluster = Self::new();
        cluster.copy(primary);
        cluster.configure(&[]);
        cluster.start_on_free_port();
        cluster
    }

    fn new() -> Self {
        let owner = Owner::when_root();
        let folder = private_folder(owner);
        Self {
            programs: binaries::find(),
            port: ports::free_port(),
            owner,
            postmaster: None,
            paused: false,
            watchdog: Watchdog::over_cluster(&folder),
            folder,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn pid(&self) -> u32 {
        self.postmaster.as_ref().expect("the test stopped this PostgreSQL").id()
    }

    /// Starts the stopped server again, on the same port.
    pub(super) fn start_again(&mut self) {
        assert!(self.postmaster.is_none(), "this PostgreSQL is running already");
        if let Err(exit) = self.try_start() {
            panic!("PostgreSQL did not start again ({exit}). Its log:\n{}", self.log());
        }
    }

    pub(super) fn stop(&mut self, how: Stop) {
        self.resume();
        let mut postmaster = self.postmaster.take().expect("this PostgreSQL is stopped already");
        signal(postmaster.id(), how.signal());
        let gone =
            wait::holds_within(wait::DEADLINE, || matches!(postmaster.try_wait(), Ok(Some(_))));
        if !gone {
            // Then only the log can say what it was waiting for.
            let _ = postmaster.kill();
            let _ = postmaster.wait();
        }
        self.watchdog.watch(None);
        assert!(gone, "PostgreSQL ignored a stop ({how:?}). Its log:\n{}", self.log());
    }

    /// Freezes the postmaster, so that it starts nobody new, and then all its children.
    pub(super) fn pause(&mut self) {
        let postmaster = self.pid();
        signal(postmaster, Signal::SIGSTOP);
        self.paused = true;
        for child in children(postmaster) {
            signal(child, Signal::SIGSTOP);
        }
    }

    pub(super) fn resume(&mut self) {
        if !std::mem::take(&mut self.paused) {
            return;
        }
        let postmaster = self.pid();
        for child in children(postmaster) {
            signal(child, Signal::SIGCONT);
        }
        signal(postmaster, Signal::SIGCONT);
    }

    fn initialise(&mut self) {
        let mut initdb = self.command("initdb");
        // No sync: a cluster that dies before its first checkpoint is not worth keeping.
        initdb
            .args(["-A", "trust", "--no-locale", "-E", "UTF8", "-U", USER, "-k", "--no-sync", "-D"])
            .arg(self.data());
        self.run(initdb, "initdb");
    }

    fn copy(&mut self, primary: u16) {
        let mut copy = self.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-p", &primary.to_string(), "-U", USER, "-R", "--no-sync"])
            .args(["-X", "stream", "-c", "fast", "-D"])
            .arg(self.data());
        self.run(copy, "pg_basebackup");
    }

    /// Runs a program of the server to its end.
    fn run(&mut self, mut command: Command, name: &str) {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("run {name}: {error}"));
        self.watchdog.watch(Some(child.id()));
        let status = child.wait().unwrap_or_else(|error| panic!("wait for {name}: {error}"));
        self.watchdog.watch(None);
        assert!(status.success(), "{name} failed ({status}). Its output:\n{}", self.log());
    }

    fn configure(&self, settings: &[(&str, &str)]) {
        let sockets = self.folder.to_str().expect("the temporary folder's path is UTF-8");
        let usual = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", sockets),
            ("max_connections", "200"),
            ("shared_buffers", "32MB"),
            ("max_wal_size", "512MB"),
            // The store under test refuses to run without.
            ("fsync", "on"),
        ];
        let mut file = File::options()
            .append(true)
            .open(self.data().join("postgresql.conf"))
            .expect("open postgresql.conf");
        for (name, value) in usual.iter().chain(settings) {
            writeln!(file, "{name} = '{}'", value.replace('\'', "''")).expect("write settings");
        }
    }

    /// The port was free when picked and may be taken by now.
    fn start_on_free_port(&mut self) {
        for _ in 0..10 {
            let Err(exit) = self.try_start() else {
                return;
            };
            let log = self.log();
            assert!(
                log.contains("could not create any TCP/IP sockets"),
                "PostgreSQL did not start ({exit}). Its log:\n{log}"
            );
            fs::remove_file(self.folder.join("log")).expect("start a new log");
            self.port = ports::free_port();
        }
        panic!("PostgreSQL lost the race for ten ports in a row");
    }

    fn try_start(&mut self) -> Result<(), String> {
        let mut postmaster = self
            .command("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .spawn()
            .expect("run postgres");
        self.watchdog.watch(Some(postmaster.id()));
        let mut exit = None;
        let settled = wait::holds_within(START_LIMIT, || {
            exit = postmaster.try_wait().expect("look at postgres");
            exit.is_some() || self.says_ready(postmaster.id())
        });
        if settled && exit.is_none() {
            self.postmaster = Some(postmaster);
            return Ok(());
        }
        let _ = postmaster.kill();
        let _ = postmaster.wait();
        self.watchdog.watch(None);
        Err(exit.map_or_else(|| format!("not ready in {START_LIMIT:?}"), |exit| exit.to_string()))
    }

    /// The postmaster keeps its state in the eighth line of its pid file, as `pg_ctl` reads it.
    fn says_ready(&self, postmaster: u32) -> bool {
        let Ok(text) = fs::read_to_string(self.data().join("postmaster.pid")) else {
            return false;
        };
        let mut lines = text.lines();
        lines.next() == Some(postmaster.to_string().as_str())
            && lines.nth(6).is_some_and(|state| matches!(state.trim(), "ready" | "standby"))
    }

    /// A program of the server, run as its owner, logging into the folder, deaf to the settings
    /// that the test's environment may hold for other servers.
    fn command(&self, program: &str) -> Command {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("open the server's log");
        let mut command = Command::new(self.find(program));
        command
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("share the server's log"))
            .stderr(log);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    /// A program of the server. Its folder may hold links to only some of them.
    fn find(&self, program: &str) -> PathBuf {
        let here = self.programs.join(program);
        let linked =
            || Some(self.programs.join("initdb").canonicalize().ok()?.parent()?.join(program));
        let found = [Some(here), linked()].into_iter().flatten().find(|path| path.is_file());
        found.unwrap_or_else(|| program.into())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.postmaster.is_some() && !std::thread::panicking() {
            self.stop(Stop::Immediate);
        } else if let Some(mut postmaster) = self.postmaster.take() {
            // A second panic would abort the test run and hide the first.
            let _ = kill(pid(postmaster.id()), Signal::SIGQUIT);
            let _ = kill(pid(postmaster.id()), Signal::SIGCONT);
            let _ = postmaster.wait();
        }
    }
}

impl Stop {
    fn signal(self) -> Signal {
        match self {
            Self::Immediate => Signal::SIGQUIT,
            Self::Fast => Signal::SIGINT,
        }
    }
}

impl Owner {
    fn when_root() -> Option<Self> {
        if !Uid::effective().is_root() {
            return None;
        }
        let user = ["postgres", "nobody"]
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .expect("as root, a user `postgres` or `nobody` is needed to run PostgreSQL");
        Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() })
    }
}

/// A new folder under the temporary one that only the server's owner may enter.
fn private_folder(owner: Option<Owner>) -> PathBuf {
    let folder = tempfile::Builder::new()
        .prefix("oncebox-pg-")
        .tempdir_in(temporary_root(owner))
        .expect("make a temporary folder")
        // The watchdog removes it.
        .keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("close the folder");
    if let Some(owner) = owner {
        chown(&folder, Some(owner.uid), Some(owner.gid)).expect("give the folder away");
    }
    folder
}

/// Root's own temporary folder may be closed to the user the server runs as.
fn temporary_root(owner: Option<Owner>) -> PathBuf {
    let usual = std::env::temp_dir();
    let open = |folder: &Path| {
        folder.canonicalize().is_ok_and(|folder| {
            folder.ancestors().all(|folder| {
                fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
            })
        })
    };
    if owner.is_none() || open(&usual) { usual } else { PathBuf::from("/tmp") }
}

fn signal(process: u32, signal: Signal) {
    // A child that has just ended needs no signal.
    let _ = kill(pid(process), signal);
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).expect("a process id fits"))
}

/// Every backend leads a session of its own, so there is no process group to signal.
fn children(parent: u32) -> Vec<u32> {
    if let Some(children) = proc_children(parent) {
        return children;
    }
    let listing = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid="])
        .output()
        .expect("run `ps`, for lack of /proc");
    String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter_map(|line| {
            let (pid, ppid) = line.trim().split_once(char::is_whitespace)?;
            (ppid.trim().parse() == Ok(parent)).then(|| pid.parse().ok())?
        })
        .collect()
}

fn proc_children(parent: u32) -> Option<Vec<u32>> {
    let entries = fs::read_dir("/proc").ok()?;
    let processes: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if processes.is_empty() {
        return None;
    }
    Some(processes.into_iter().filter(|process| parent_of(*process) == Some(parent)).collect())
}

/// From `/proc/PID/stat`, after the name, which may hold spaces and brackets itself.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
