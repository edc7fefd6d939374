//! A new release on a database that is in use: who waits, and who goes on.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::mpsc;

use oncebox_testkit::http;
use oncebox_testkit::postgres;
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::wait;

use crate::bed::{Bed, Run, assert_unavailable, post};
use crate::chance::Chance;
use crate::load::{Ledger, Load};

/// Has the migrations from this one on to be run again. They can.
const PENDING: &str = "DELETE FROM oncebox.migrations WHERE version >= 2";

/// Where a server answers that waits for migrations.
fn waiting(server: &ServerProcess) -> (SocketAddr, SocketAddr) {
    let line = server.wait_for_message("not ready: answering 503 until migrations have run");
    let address = |name: &str| line[name].as_str().expect("an address").parse().unwrap();
    (address("public"), address("admin"))
}

#[test]
fn a_server_waits_for_migrations_and_then_goes_on() {
    let bed = Bed::postgres();
    let mut old = bed.serve();
    assert_eq!(post(old.addresses().public, "evt_1").status, 202);
    old.terminate();
    old.wait();
    postgres::execute(&bed.url, PENDING);

    let server = bed.start_with(&[]);
    let (public, admin) = waiting(&server);
    assert_unavailable(&post(public, "evt_2"));
    let health = http::get(admin, "/readyz").unwrap();
    assert_eq!(health.status, 503);
    assert!(health.text().contains("migrate up"), "{health:?}");
    assert_eq!(http::get(admin, "/livez").unwrap().status, 200);

    let run = bed.oncebox(&["migrate", "up"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("running migration 2"), "{run}");
    let addresses = server.addresses();
    assert_eq!((addresses.public, addresses.admin), (public, admin));
    assert_eq!(post(public, "evt_2").status, 202);
    assert_eq!(post(public, "evt_1").status, 200);
    assert_eq!(http::get(admin, "/readyz").unwrap().status, 200);
}

#[test]
fn a_server_that_waits_for_migrations_can_be_stopped() {
    let bed = Bed::postgres();
    bed.oncebox(&["migrate", "up"]);
    postgres::execute(&bed.url, PENDING);
    let mut server = bed.start_with(&[]);
    waiting(&server);
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
}

/// A reader, as `pg_dump`, holds every table; a node of the new release starts, and `migrate up`
/// runs: the node of the old release goes on recording.
#[test]
fn a_running_node_never_waits_behind_a_migration() {
    let bed = Bed::postgres();
    let node = bed.serve();
    postgres::execute(&bed.url, PENDING);
    let reader = Reader::of_everything(&bed.url);
    let newer = bed.start_with(&[]);
    let (_, admin) = waiting(&newer);
    let mut migrating = bed.command(&["migrate", "up"]);
    let mut migrating =
        migrating.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run oncebox");

    let ledger = Ledger::new();
    let mut chance = Chance::new();
    let load = Load::on(&ledger, node.addresses().public, &mut chance);
    // As long as three tries of the migration take.
    let locks = "SELECT count(*) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
        WHERE c.relname = 'deliveries' AND l.mode = 'AccessExclusiveLock' AND NOT l.granted";
    for _ in 0..3 {
        wait::until("the migration waits", || postgres::query(&bed.url, locks) != "0");
        wait::until("it has given up", || postgres::query(&bed.url, locks) == "0");
    }
    ledger.wait_for_acks(100);
    assert!(migrating.try_wait().unwrap().is_none(), "it ran although a reader was in its way");
    assert_eq!(http::get(admin, "/readyz").unwrap().status, 503);
    reader.end();
    let run = Run::from(migrating.wait_with_output().expect("it ends"));
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("waiting for another session"), "{run}");
    newer.addresses();
    ledger.wait_for_acks(100);
    load.stop();
    let answers = ledger.answers();
    assert_eq!((answers.unavailable, ledger.wrong()), (0, Vec::new()), "{answers:?}");
}

/// A session that has read every table and does not end.
struct Reader {
    end: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Reader {
    fn of_everything(url: &str) -> Self {
        let (end, ended) = mpsc::channel();
        let (begun, began) = mpsc::channel();
        let url = url.to_owned();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
                let (client, connection) = connected.unwrap();
                let connection = tokio::spawn(connection);
                let lock = "BEGIN; DO $$ DECLARE t regclass; BEGIN
                    FOR t IN SELECT c.oid FROM pg_class AS c
                        WHERE c.relnamespace = 'oncebox'::regnamespace AND c.relkind = 'r'
                    LOOP EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', t); END LOOP;
                    END $$";
                client.batch_execute(lock).await.unwrap();
                begun.send(()).unwrap();
                ended.recv().unwrap();
                client.batch_execute("COMMIT").await.unwrap();
                connection.abort();
            });
        });
        began.recv().expect("the reader has begun");
        Self { end, thread }
    }

    fn end(self) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap();
    }
}
