//! A reader that never ends keeps SQLite from resetting its write-ahead log.

use std::path::Path;

use oncebox::receipt::Arrival;
use oncebox::store::{Purpose, SqliteOptions, SqliteStore, Store as _, StoreError};
use oncebox_testkit::store::Bed;
use rusqlite::Connection;

const CHECKPOINT: u64 = 256 << 10;
const ALERT: u64 = 512 << 10;
const REFUSE: u64 = 2 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_never_ends_cannot_fill_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oncebox.db");
    let options = SqliteOptions {
        wal_checkpoint_bytes: CHECKPOINT,
        wal_alert_bytes: ALERT,
        wal_refuse_bytes: REFUSE,
        ..SqliteOptions::new(&path)
    };
    let store = SqliteStore::open(options, Purpose::Serve).await.unwrap();
    let source = store.register_source("stripe-live", None).await.unwrap();
    let bed = Bed::sqlite().await;
    let body = "x".repeat(10_000);
    let mut recorded = 0;
    let mut record = async || {
        recorded += 1;
        let arrival = bed.arrival(&format!("evt_{recorded}"), &body);
        store.record([Arrival { source, ..arrival }].into()).await
    };

    // Without a reader the log is reset again and again.
    for _ in 0..2 * REFUSE / 10_000 {
        record().await.unwrap();
    }
    assert_eq!(store.health().await.unwrap().warning, None);
    assert!(log_bytes(&path) < REFUSE, "{}", log_bytes(&path));

    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM receipts").unwrap();
    let mut refused = None;
    for _ in 0..10 * REFUSE / 10_000 {
        refused = record().await.err();
        if refused.is_some() {
            break;
        }
    }
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    let health = store.health().await.unwrap();
    let warning = health.warning.unwrap_or_default();
    assert!(warning.contains("write-ahead log"), "{warning:?}");
    for _ in 0..100 {
        assert!(matches!(record().await, Err(StoreError::Unavailable(_))));
    }
    assert!(log_bytes(&path) < REFUSE + CHECKPOINT, "{}", log_bytes(&path));

    // The reader goes, and the store comes back by itself: it takes events again, and resets the
    // log once all of it is copied.
    reader.execute_batch("COMMIT").unwrap();
    let deadline = std::time::Instant::now() + oncebox_testkit::wait::DEADLINE;
    loop {
        let recorded = record().await;
        if recorded.is_ok() && store.health().await.unwrap().warning.is_none() {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "still held up: {recorded:?}");
        tokio::task::yield_now().await;
    }
    for _ in 0..2 * REFUSE / 10_000 {
        record().await.unwrap();
    }
    assert_eq!(store.health().await.unwrap().warning, None);
}

fn log_bytes(path: &Path) -> u64 {
    path.with_extension("db-wal").metadata().unwrap().len()
}
