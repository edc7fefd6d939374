//! Several at once: on an empty store, and on a file that is taken.

use std::process::Stdio;
use std::sync::Barrier;

use oncebox::store;
use oncebox_testkit::postgres;

use crate::bed::{Bed, Run, assert_says, post};
use crate::chance::rounds;
use crate::checker::{block_on, rows};

const NODES: usize = 4;

#[test]
fn migrations_that_start_at_once_run_once_on_sqlite() {
    for _ in 0..rounds(3, 20) {
        migrate_at_once(&Bed::sqlite());
    }
}

#[test]
fn migrations_that_start_at_once_run_once_on_postgres() {
    for _ in 0..rounds(3, 20) {
        let bed = Bed::postgres();
        let known = migrate_at_once(&bed);
        let applied = postgres::query(&bed.url, "SELECT count(*) FROM oncebox.migrations");
        assert_eq!(applied, known.to_string());
    }
}

/// Closer together than processes can start: SQLite tells some of them that the new file is busy,
/// at once and whatever the timeout.
#[test]
fn a_new_sqlite_file_can_be_opened_by_many_at_once() {
    for _ in 0..rounds(100, 500) {
        let bed = Bed::sqlite();
        let everybody = Barrier::new(NODES);
        std::thread::scope(|scope| {
            for _ in 0..NODES {
                scope.spawn(|| {
                    everybody.wait();
                    block_on(store::migrate(&bed.url)).expect("it is migrated");
                });
            }
        });
    }
}

/// Returns how many migrations there are.
fn migrate_at_once(bed: &Bed) -> usize {
    let children: Vec<_> = (0..NODES)
        .map(|_| {
            let mut command = bed.command(&["migrate", "up"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("run oncebox")
        })
        .collect();
    for child in children {
        let run = Run::from(child.wait_with_output().expect("it ends"));
        assert_eq!(run.code, Some(0), "{run}");
    }
    let status = bed.oncebox(&["migrate", "status", "--json"]);
    assert_eq!(status.code, Some(0), "{status}");
    let pending = |line: &str| line.contains("\"applied_at\":null");
    assert!(!status.stdout.is_empty() && !status.stdout.lines().any(pending), "{status}");
    status.stdout.lines().count()
}

#[test]
fn servers_that_start_at_once_on_an_empty_postgres_all_serve() {
    let bed = Bed::postgres();
    let servers: Vec<_> = (0..NODES).map(|_| bed.start_with(&[])).collect();
    for (n, server) in servers.iter().enumerate() {
        let answer = post(server.addresses().public, "evt_everywhere");
        assert_eq!(answer.status, if n == 0 { 202 } else { 200 }, "{answer:?}");
    }
    assert_eq!(rows(&bed.url).len(), 1);
}

#[test]
fn a_second_server_on_a_sqlite_file_is_refused_and_an_operator_is_not() {
    let bed = Bed::sqlite();
    let mut first = bed.serve();
    assert_eq!(post(first.addresses().public, "evt_first").status, 202);

    let mut second = bed.start_with(&[]);
    assert_eq!(second.wait().code(), Some(69), "{}", second.log());
    assert_says(&second, "another oncebox serves");

    let run = bed.oncebox(&["receipts", "list", "--json"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("evt_first"), "{run}");
    assert_eq!(post(first.addresses().public, "evt_second").status, 202);

    // A dead server's lock is no lock.
    first.kill();
    let third = bed.serve();
    assert_eq!(post(third.addresses().public, "evt_second").status, 200);
}

/// Whatever path leads to a file, it is one file, and one server serves it.
#[test]
fn a_second_server_through_another_path_is_refused() {
    use std::os::unix::fs::symlink;

    let bed = Bed::sqlite();
    let home = bed.home.path();
    let first = bed.serve();
    assert_eq!(post(first.addresses().public, "evt_first").status, 202);
    symlink(bed.file(), home.join("link.db")).unwrap();
    symlink(home, home.join("folder")).unwrap();
    let paths = ["sqlite://link.db", "sqlite://oncebox.db", "sqlite://folder/link.db"];
    for url in paths {
        let mut second = bed.start_with(&[("ONCEBOX__STORE__URL".into(), url.into())]);
        assert_eq!(second.wait().code(), Some(69), "{url}: {}", second.log());
        assert_says(&second, "another oncebox serves");
    }
    // SQLite would keep a log for each name.
    std::fs::hard_link(bed.file(), home.join("hard.db")).unwrap();
    let url = ("ONCEBOX__STORE__URL".to_owned(), "sqlite://hard.db".to_owned());
    let mut second = bed.start_with(&[url]);
    assert_eq!(second.wait().code(), Some(69), "{}", second.log());
    assert_says(&second, "hard links");
    std::fs::remove_file(home.join("hard.db")).unwrap();
    assert_eq!(post(first.addresses().public, "evt_first").status, 200);
}

/// A link may lead to where the file is to be.
#[test]
fn a_link_to_a_file_that_is_not_there_yet_is_followed() {
    let bed = Bed::sqlite();
    let home = bed.home.path();
    std::os::unix::fs::symlink(bed.file(), home.join("link.db")).unwrap();
    let url = ("ONCEBOX__STORE__URL".to_owned(), "sqlite://link.db".to_owned());
    let first = bed.serve_with(&[url]);
    assert_eq!(post(first.addresses().public, "evt_first").status, 202);
    let mut second = bed.start_with(&[]);
    assert_eq!(second.wait().code(), Some(69), "{}", second.log());
}
