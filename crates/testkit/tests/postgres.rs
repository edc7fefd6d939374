//! The private PostgreSQL: databases apart, stops and freezes, and nothing left behind.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use oncebox_testkit::postgres::{self, Server, execute, query};
use oncebox_testkit::wait;

#[test]
fn databases_do_not_see_each_other() {
    let (one, two) = (postgres::shared().database(), postgres::shared().database());
    execute(one.url(), "CREATE TABLE receipts ()");

    let count = "SELECT count(*) FROM pg_tables WHERE tablename = 'receipts'";
    assert_eq!(query(one.url(), count), "1");
    assert_eq!(query(two.url(), count), "0");
}

#[tokio::test]
async fn it_can_be_used_inside_a_runtime() {
    let database = postgres::shared().database();
    assert_eq!(
        query(database.url(), "SELECT 1, NULL, 'a' UNION SELECT 2, NULL, 'b'"),
        "1||a\n2||b"
    );
}

#[test]
fn a_private_server_is_as_durable_as_a_real_one() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    for (setting, value) in
        [("fsync", "on"), ("synchronous_commit", "on"), ("data_checksums", "on")]
    {
        assert_eq!(query(&server.url(), &format!("SHOW {setting}")), value, "{setting}");
    }
    assert_eq!(query(&server.url(), "SELECT inet_server_addr()"), "127.0.0.1");
}

#[test]
fn what_was_committed_survives_both_stops() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    let database = server.database();
    execute(database.url(), "CREATE TABLE kept (id int)");
    let before = server.pid();

    execute(database.url(), "INSERT INTO kept VALUES (1)");
    server.stop_immediate();
    server.start_again();
    execute(database.url(), "INSERT INTO kept VALUES (2)");
    server.stop_fast();
    server.start_again();

    assert_eq!(query(database.url(), "SELECT count(*) FROM kept"), "2");
    assert_ne!(server.pid(), before);
    assert!(server.log().contains("automatic recovery in progress"), "{}", server.log());
}

/// Linux only in its look at the process state; the freeze itself is portable.
#[cfg(target_os = "linux")]
#[test]
fn a_paused_server_answers_after_it_resumes() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    let database = server.database();
    let frozen = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        stat.rsplit_once(')').unwrap().1.trim_start().starts_with('T')
    };

    server.pause();
    wait::until("the postmaster is stopped", frozen);
    let (sender, answers) = mpsc::channel();
    let url = database.url().to_owned();
    let asking = std::thread::spawn(move || sender.send(query(&url, "SELECT 'late'")));
    assert!(answers.try_recv().is_err());
    server.resume();

    assert_eq!(answers.recv_timeout(wait::DEADLINE).unwrap(), "late");
    asking.join().unwrap().unwrap();
}

#[test]
fn a_paused_server_can_be_stopped() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    server.pause();
    server.stop_immediate();
    server.start_again();
    server.pause();
    // And the drop has to cope with a frozen one.
}

#[test]
fn a_dropped_server_leaves_nothing() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    let folder = server.folder();
    assert!(!processes_of(&folder).is_empty());
    drop(server);
    assert!(!folder.exists());
    assert_eq!(processes_of(&folder), Vec::<u32>::new());
}

#[test]
fn a_killed_test_process_leaves_nothing() {
    if postgres::must_skip_own_server() {
        return;
    }
    for frozen in ["no", "yes"] {
        let (mut child, folder) = start_in_child(frozen);
        assert!(folder.join("data").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        wait::until("the folder is removed", || !folder.exists());
        wait::until("the server is gone", || processes_of(&folder).is_empty());
    }
}

/// With a URL in the environment the server is somebody's own: its databases are removed one by
/// one, also under an open connection.
#[test]
fn databases_on_a_given_server_are_dropped() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = Server::start();
    let names = "SELECT count(*) FROM pg_database WHERE datname LIKE 'oncebox_test_%'";
    assert_eq!(query(&server.url(), names), "0");
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "in_a_child_the_given_server_is_used", "--nocapture"])
        .env("ONCEBOX_TEST_POSTGRES", server.url())
        .env(CHILD, server.port().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(server.log().contains("terminating connection due to administrator command"));
    assert_eq!(query(&server.url(), names), "0");
}

/// Not a test of its own: what the child above runs.
#[tokio::test]
async fn in_a_child_the_given_server_is_used() {
    let Ok(port) = env::var(CHILD) else {
        return;
    };
    if env::var("ONCEBOX_TEST_POSTGRES").is_err() {
        return;
    }
    let database = postgres::shared().database();
    assert!(database.name().starts_with("oncebox_test_"));
    assert!(database.url().contains(&port), "{}", database.url());
    let open = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    drop(database);
    drop(open);
}

const CHILD: &str = "ONCEBOX_TESTKIT_CHILD";

/// Not a test of its own: what the child above runs until it is killed.
#[test]
fn in_a_child_a_server_runs() {
    let Ok(frozen) = env::var(CHILD) else {
        return;
    };
    let server = Server::start();
    if frozen == "yes" {
        server.pause();
    }
    println!("\nfolder {}", server.folder().display());
    loop {
        std::thread::park();
    }
}

fn start_in_child(frozen: &str) -> (Child, PathBuf) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "in_a_child_a_server_runs", "--nocapture"])
        .env(CHILD, frozen)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(PathBuf::from(line.strip_prefix("folder ")?)))
        .expect("the child names its folder");
    (child, folder)
}

/// The processes that name `folder` in their command line: the postmaster and its watchdog.
fn processes_of(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap();
    let Ok(entries) = fs::read_dir("/proc") else {
        let listing = Command::new("ps").args(["-A", "-o", "pid=,args="]).output().unwrap();
        return String::from_utf8_lossy(&listing.stdout)
            .lines()
            .filter(|line| line.contains(folder))
            .filter_map(|line| line.trim().split_once(' ')?.0.parse().ok())
            .collect();
    };
    entries
        .flatten()
        .filter(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(folder))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
