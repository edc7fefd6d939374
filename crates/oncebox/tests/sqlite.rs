//! What only the embedded store has to see to.

use std::sync::Arc;

use oncebox::delivery::{Counts, Next, State};
use oncebox::receipt::Recorded;
use oncebox::route::RouteRules;
use oncebox::store::{self, Purpose, SqliteOptions, SqliteStore, Store, StoreError};
use oncebox_testkit::store::{Bed, LEASE, act};

fn path(bed: &Bed) -> &str {
    bed.url.strip_prefix("sqlite://").unwrap()
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let bed = Bed::sqlite().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    for file in [path(&bed).to_owned(), format!("{}-wal", path(&bed))] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_a_file_and_others_may_look() {
    let bed = Bed::sqlite().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    let second = store::open(&bed.url, Purpose::Serve).await.err().expect("refused");
    assert!(second.to_string().contains("another oncebox serves"), "{second}");
    let beside = store::open(&bed.url, Purpose::Operate).await.unwrap();
    assert_eq!(beside.receipts(&filter()).await.unwrap().len(), 1);
    beside.close().await;
    assert_eq!(bed.record(vec![bed.arrival("evt_2", "{}")]).await, [Recorded::Accepted]);
}

/// A task that still knows a closed store does not keep another from serving the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_gives_its_file_up() {
    let bed = Bed::sqlite().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    bed.store.close().await;
    let next = store::open(&bed.url, Purpose::Serve).await.unwrap();
    assert_eq!(next.receipts(&filter()).await.unwrap().len(), 1);
    let late = bed.store.record([bed.arrival("evt_2", "{}")].into()).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    next.close().await;
}

fn filter() -> store::ReceiptFilter {
    store::ReceiptFilter { limit: 10, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_there_is_not_made_by_looking() {
    let folder = Bed::sqlite().await;
    let missing = format!("{}-missing", path(&folder));
    let url = format!("sqlite://{missing}");
    let refused = store::open(&url, Purpose::Operate).await.err().expect("refused");
    assert!(refused.to_string().contains("no store at"), "{refused}");
    assert!(!std::path::Path::new(&missing).exists());
}

/// A batch of nothing but repeats writes, so that their answers follow a synced commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_moves_the_log() {
    let bed = Bed::sqlite().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    let log = || std::fs::metadata(format!("{}-wal", path(&bed))).unwrap().len();
    let before = log();
    let again = bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    assert!(matches!(again[..], [Recorded::Duplicate { .. }]));
    assert!(log() > before);
}

/// Once stopped in order, the file stands alone: a copy of it is a backup.
#[tokio::test(flavor = "multi_thread")]
async fn closing_copies_the_log_back() {
    let bed = Bed::sqlite().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    bed.store.close().await;
    let log = std::fs::metadata(format!("{}-wal", path(&bed))).map_or(0, |file| file.len());
    assert_eq!(log, 0);
}

/// A reader that never ends keeps the log from being reset. The log stays bounded, health says
/// why, and the end of the reader is the end of the trouble.
#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_log_is_bounded() {
    let bed = Bed::sqlite().await;
    let file = std::path::Path::new(path(&bed)).with_file_name("pinned.db");
    let mut options = SqliteOptions::new(&file);
    options.wal_checkpoint_bytes = 64 << 10;
    options.wal_alert_bytes = 256 << 10;
    options.wal_refuse_bytes = 1 << 20;
    let store = SqliteStore::open(options, Purpose::Serve).await.unwrap();
    let source = store.register_source("stripe-live", None).await.unwrap();
    assert_eq!(source, bed.source);

    let reader = rusqlite::Connection::open(&file).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM receipts").unwrap();
    let body = "x".repeat(8000);
    let mut refused = None;
    for n in 0..1000 {
        match store.record(Arc::from([bed.arrival(&format!("evt_{n}"), &body)])).await {
            Ok(_) => {}
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    let log = std::fs::metadata(file.with_extension("db-wal")).unwrap().len();
    assert!(log < 2 << 20, "{log}");
    assert!(store.health().await.unwrap().warning.is_some());

    reader.execute_batch("COMMIT").unwrap();
    // A commit beside the copy may still append to the old log; the one after it starts anew.
    let patience = std::time::Instant::now() + oncebox_testkit::wait::DEADLINE;
    loop {
        let recorded = store.record(Arc::from([bed.arrival("after", "{}")])).await;
        if recorded.is_ok() && store.health().await.unwrap().warning.is_none() {
            break;
        }
        assert!(std::time::Instant::now() < patience, "never recovered");
        tokio::task::yield_now().await;
    }
    store.close().await;
}

/// Without readers the log never grows far beyond the point where it is copied back.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_log_is_reset() {
    let bed = Bed::sqlite().await;
    let file = std::path::Path::new(path(&bed)).with_file_name("busy.db");
    let mut options = SqliteOptions::new(&file);
    options.wal_checkpoint_bytes = 256 << 10;
    let store = SqliteStore::open(options, Purpose::Serve).await.unwrap();
    store.register_source("stripe-live", None).await.unwrap();
    let body = "x".repeat(4000);
    for n in 0..2000 {
        store.record(Arc::from([bed.arrival(&format!("evt_{n}"), &body)])).await.unwrap();
    }
    let log = std::fs::metadata(file.with_extension("db-wal")).unwrap().len();
    assert!(log < 8 << 20, "{log}");
    store.close().await;
}

/// What the planner makes of a statement, one line per step.
/// A clock that was an hour ahead is corrected, and the server starts again.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_delays_nothing() {
    let mut bed = Bed::sqlite().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let tried = bed.take(&route).await;
    assert!(bed.finish(&tried, Next::Retry(LEASE)).await);
    bed.due("e2", &[route]).await;
    bed.query("UPDATE deliveries SET due_at = due_at + 3600000");
    bed.query("UPDATE attempts SET ended_at = ended_at + 3600000");
    bed.reopen().await;
    assert_eq!(bed.work_off(&route).await, ["e2"]);
    // What is put off is put off by as much as it was.
    bed.pass(60);
    assert_eq!(bed.work_off(&route).await, ["e1"]);
}

fn plan(bed: &Bed, name: &str) -> Vec<String> {
    let file = format!("{}/src/store/sqlite/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    let sql = std::fs::read_to_string(file).unwrap();
    let database = rusqlite::Connection::open(path(bed)).unwrap();
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get(3));
    steps.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_searches_what_is_due() {
    let bed = Bed::sqlite().await;
    let due = plan(&bed, "find_candidates");
    let search =
        "SEARCH d USING INDEX deliveries_due (route=? AND lost=? AND due_at>? AND due_at<?)";
    assert!(due.iter().any(|step| step == search), "{due:#?}");
    assert!(!due.iter().any(|step| step.contains("TEMP B-TREE")), "{due:#?}");
    let lost = plan(&bed, "find_lost");
    assert_eq!(lost, ["SEARCH deliveries USING INDEX deliveries_due (route=? AND lost>?)"]);
}

/// However much is open or finished, what workers do costs the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_workers_do_never_scans() {
    let bed = Bed::sqlite().await;
    let statements = [
        "find_lost",
        "find_candidates",
        "find_facts",
        "claim",
        "hold_delivery",
        "find_open",
        "remove_open",
        "retry_delivery",
        "kill_delivery",
        "return_delivery",
        "release_lane_head",
        "find_lane_passing",
        "find_operation_waiting",
        "extend_lease",
        "find_expired_leases",
        "rescue_delivery",
        "find_held",
        "find_payload",
        "find_standing",
        "hasten",
    ];
    for name in statements {
        for step in plan(&bed, name) {
            let scans = ["deliveries", "finished", "receipts", "lanes", "operations"]
                .iter()
                .any(|table| step.starts_with(&format!("SCAN {table}")));
            let scans = scans || ["d", "r", "f"].iter().any(|name| step == format!("SCAN {name}"));
            assert!(!scans, "{name}: {step}");
        }
    }
}

/// Its worker died with the process, so the attempt counts and the next one is made alone.
#[tokio::test(flavor = "multi_thread")]
async fn leases_are_void_when_the_file_is_served_again() {
    let mut bed = Bed::sqlite().await;
    let rules = RouteRules { max_attempts: 2, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let receipt = bed.due("evt_1", &[route]).await;
    let first = bed.take(&route).await;
    bed.due("evt_2", &[route]).await;

    let beside = store::open(&bed.url, Purpose::Operate).await.unwrap();
    assert_eq!(bed.delivery(route.of(receipt)).await.state, State::Processing);
    beside.close().await;

    bed.reopen().await;
    let row = bed.delivery(route.of(receipt)).await;
    let crashed = Counts { attempts: 1, crashes: 1, ..Counts::default() };
    assert_eq!((row.state, row.counts), (State::Retrying, crashed));
    assert!(!bed.finish(&first, Next::Processed).await);
    let again = bed.claim(&route, 5).await.claimed;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].delivery, route.of(receipt));
    assert!(again[0].lease > first.lease);

    bed.reopen().await;
    assert_eq!(bed.delivery(route.of(receipt)).await.state, State::Dead);
    let outcomes: Vec<_> = bed.store.attempts(receipt).await.unwrap();
    assert!(outcomes.iter().all(|attempt| attempt.outcome == "lost"), "{outcomes:?}");
    assert_eq!(outcomes.len(), 2);
    assert_eq!(bed.work_off(&route).await, ["evt_2"]);
}

/// The wall clock may be set, or the machine may sleep, while the store is served. The times that
/// operators write are the server's all the same, so that what they make due is due for it.
#[tokio::test(flavor = "multi_thread")]
async fn operators_go_by_the_clock_of_the_server() {
    let bed = Bed::sqlite().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let receipt = bed.due("evt_1", &[route]).await;
    let server = bed.delivery(route.of(receipt)).await.due_at.expect("due");
    // As a server writes down that has slept for an hour.
    bed.query("UPDATE marks SET value = -3600000 WHERE name = 'clock'");
    let beside = store::open(&bed.url, Purpose::Operate).await.unwrap();
    assert!(beside.pause_route("billing", true, &act("a break")).await.unwrap());
    let paused_at = beside.routes().await.unwrap()[0].paused_at.expect("paused");
    beside.close().await;
    let behind = server.duration_since(paused_at);
    assert!(behind.as_mins() >= 50, "{behind}");
}

/// The clock was an hour ahead for a moment; then the server was started again. Row numbers are the
/// first halves of ids, so none may come twice when that hour has come.
#[tokio::test(flavor = "multi_thread")]
async fn ids_of_a_blip_are_passed_over_after_a_restart() {
    use oncebox::clock::{Clock, SystemClock};
    use oncebox::receipt::{Arrival, ReceiptId, ReceiptMint};

    let mut bed = Bed::sqlite().await;
    let now = SystemClock.now();
    let ahead = now + jiff::SignedDuration::from_hours(1);
    let wrong = ReceiptMint::new();
    let arrivals = (0..500).map(|n| Arrival {
        receipt: wrong.mint(ahead + jiff::SignedDuration::from_millis(n / 10)),
        ..bed.arrival(&format!("evt_{n}"), "{}")
    });
    bed.record(arrivals.collect()).await;
    bed.reopen().await;
    let mint = bed.store.mint();
    let soon = ReceiptId::floor(now + jiff::SignedDuration::from_mins(2));
    assert!(mint.mint(SystemClock.now()) < soon, "ids stay ahead");
    let later = (0..500).map(|n| Arrival {
        receipt: mint.mint(ahead + jiff::SignedDuration::from_millis(n / 10)),
        ..bed.arrival(&format!("later_{n}"), "{}")
    });
    let recorded = bed.store.record(later.collect::<Vec<_>>().into()).await.unwrap();
    assert!(recorded.iter().all(|one| *one == Recorded::Accepted));
    assert_eq!(bed.rows("receipts"), 1000);
}
