//! Stores of earlier releases: a delivery that nobody has worked on yet, and what was kept aside.

use std::sync::Arc;

use oncebox::receipt::{Arrival, ReceiptId, SourceNo};
use oncebox::route::RouteRules;
use oncebox::store::{self, Claim, ExpireRange, Purpose, Store, StoreError, Wanted};
use oncebox_testkit::postgres;
use oncebox_testkit::store::{LEASE, act, query};

/// What the first release left: the schema as it was, one event, one delivery.
const SQLITE: &str = "
    CREATE TABLE migrations (
        version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
    ) STRICT;
    INSERT INTO migrations VALUES (1, 'receive', 0);
    INSERT INTO sources (no, name) VALUES (1, 'stripe-live');
    INSERT INTO routes (no, name) VALUES (1, 'billing');
    INSERT INTO receipts VALUES (
        7, 9, 1, 1760000000000, 'evt_1', 'signed', 'invoice.paid', 'in_1', 3, 1, NULL, 1,
        zeroblob(32), x'', x'7b7d'
    );
    INSERT INTO deliveries VALUES (7, 1, 'received', 0, 1760000000000);";

const POSTGRES: &str = "
    CREATE TABLE oncebox.migrations (
        version integer PRIMARY KEY, name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO oncebox.migrations VALUES (1, 'receive', now());
    INSERT INTO oncebox.sources (no, name) VALUES (1, 'stripe-live');
    INSERT INTO oncebox.routes (no, name) VALUES (1, 'billing');
    INSERT INTO oncebox.receipts VALUES (
        '00000000-0000-0007-0000-000000000009', now(), NULL, 3, 1, 1, 1, 'signed', 'evt_1',
        'invoice.paid', 'in_1', decode(repeat('00', 32), 'hex'), '', '{}'
    );
    INSERT INTO oncebox.deliveries
    VALUES ('00000000-0000-0007-0000-000000000009', now(), 1, 0, 'received');";

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_the_first_release_go_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oncebox.db");
    let schema = include_str!("../src/store/sqlite/migrations/0001_receive.sql");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch(schema).unwrap();
    database.execute_batch(SQLITE).unwrap();
    drop(database);
    goes_on(&format!("sqlite://{}", path.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_the_first_release_go_on_postgres() {
    let database = tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap();
    let url = database.url().to_owned();
    let schema = include_str!("../src/store/postgres/migrations/0001_receive.sql");
    postgres::query(&url, &format!("CREATE SCHEMA oncebox; {schema}; {POSTGRES}"));
    goes_on(&url).await;
}

/// Opened to serve: a file is migrated by that, a PostgreSQL waits for `migrate up`.
async fn migrated(url: &str) -> Arc<dyn Store> {
    if url.starts_with("postgres") {
        let waits = store::open(url, Purpose::Serve).await.err();
        assert!(matches!(waits, Some(StoreError::NotMigrated)), "{waits:?}");
        store::migrate(url).await.unwrap();
    }
    store::open(url, Purpose::Serve).await.unwrap()
}

async fn goes_on(url: &str) {
    let refused = store::open(url, Purpose::Operate).await.err().expect("it is behind");
    assert!(refused.to_string().contains("migrate up"), "{refused}");
    let store = migrated(url).await;
    assert!(store::schema(url).await.unwrap().is_current());
    let rules = RouteRules::default();
    let route = store.register_route("billing", None, &rules).await.unwrap();
    let claim = Claim {
        wanted: vec![Wanted { route, most: 10, rules }],
        lease: LEASE,
        worker: "test".into(),
    };
    let claimed = store.claim(&claim).await.unwrap().claimed;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!((claimed[0].event_id.as_str(), claimed[0].version), ("evt_1", Some(3)));
    let key = oncebox::delivery::idempotency_key("stripe-live", "evt_1", "billing");
    assert_eq!(claimed[0].key, key);
    assert_eq!(query(url, "SELECT state, attempts FROM deliveries"), "processing|1");
    store.close().await;
}

/// What the version before `kept_aside` left: an event, another body under its identity, kept
/// aside, and the request of a second event.
const SIXTH_ON_SQLITE: &str = "
    CREATE TABLE migrations (
        version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL
    ) STRICT;
    INSERT INTO migrations VALUES (1, '', 0), (2, '', 0), (3, '', 0), (5, '', 0), (6, '', 0);
    INSERT INTO sources (no, name, stored) VALUES (1, 'stripe-live', 10);
    INSERT INTO receipts VALUES (
        7, 9, 1, 1760000000000, 'evt_1', 'signed', 'invoice.paid', 'in_1', 3, 1, NULL, 0,
        zeroblob(32), x'', x'7b7d', NULL, NULL
    ), (
        8, 9, 1, 1760000000000, 'evt_2', 'signed', 'invoice.paid', 'in_1', 3, 1, NULL, 0,
        zeroblob(32), x'', x'7b7d', 8, 0
    );
    INSERT INTO requests VALUES (8, 9, 1, 2, x'5b7b7d2c7b7d5d');
    INSERT INTO odd_arrivals VALUES (
        11, 9, 7, 1, 'conflict', 'evt_1', zeroblob(16), 1760000000000, x'', x'5b5d'
    );";

const SIXTH_ON_POSTGRES: &str = "
    CREATE TABLE oncebox.migrations (
        version integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO oncebox.migrations VALUES (1, ''), (2, ''), (3, ''), (5, ''), (6, '');
    INSERT INTO oncebox.sources (no, name, stored, born_as)
    VALUES (1, 'stripe-live', 10, 'stripe-live');
    INSERT INTO oncebox.receipts VALUES (
        '00000000-0000-0007-0000-000000000009', now(), NULL, 3, 1, 1, 0, 'signed', 'evt_1',
        'invoice.paid', 'in_1', decode(repeat('00', 32), 'hex'), '', '{}', NULL, NULL
    ), (
        '00000000-0000-0008-0000-000000000009', now(), NULL, 3, 1, 1, 0, 'signed', 'evt_2',
        'invoice.paid', 'in_1', decode(repeat('00', 32), 'hex'), '', '{}',
        '00000000-0000-0008-0000-000000000009', 0
    );
    INSERT INTO oncebox.requests
    VALUES ('00000000-0000-0008-0000-000000000009', 2, 1, 1, '[{},{}]');
    INSERT INTO oncebox.odd_arrivals VALUES (
        '00000000-0000-000b-0000-000000000009', '00000000-0000-0007-0000-000000000009',
        gen_random_uuid(), now(), 1, 'conflict', 'evt_1', '', '[]'
    );";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_aside_before_stays_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oncebox.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    for schema in [
        include_str!("../src/store/sqlite/migrations/0001_receive.sql"),
        include_str!("../src/store/sqlite/migrations/0002_process.sql"),
        include_str!("../src/store/sqlite/migrations/0003_effects.sql"),
        include_str!("../src/store/sqlite/migrations/0005_providers.sql"),
        include_str!("../src/store/sqlite/migrations/0006_captures.sql"),
        SIXTH_ON_SQLITE,
    ] {
        database.execute_batch(schema).unwrap();
    }
    drop(database);
    stays_aside(&format!("sqlite://{}", path.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_aside_before_stays_on_postgres() {
    let database = tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap();
    let url = database.url().to_owned();
    let schema = concat!(
        "CREATE SCHEMA oncebox;",
        include_str!("../src/store/postgres/migrations/0001_receive.sql"),
        include_str!("../src/store/postgres/migrations/0002_process.sql"),
        include_str!("../src/store/postgres/migrations/0003_effects.sql"),
        include_str!("../src/store/postgres/migrations/0003_checks.sql"),
        include_str!("../src/store/postgres/migrations/0003_ledger.sql"),
        include_str!("../src/store/postgres/migrations/0003_verbs.sql"),
        include_str!("../src/store/postgres/migrations/0003_guards.sql"),
        include_str!("../src/store/postgres/migrations/0003_claim.sql"),
        include_str!("../src/store/postgres/migrations/0003_work.sql"),
        include_str!("../src/store/postgres/migrations/0005_providers.sql"),
        include_str!("../src/store/postgres/migrations/0006_captures.sql"),
    );
    postgres::query(&url, &format!("{schema}{SIXTH_ON_POSTGRES}"));
    stays_aside(&url).await;
}

/// It has no request to show, becomes a receipt all the same, and what was counted is given back.
async fn stays_aside(url: &str) {
    let store = migrated(url).await;
    assert!(store::schema(url).await.unwrap().is_current());
    let id: ReceiptId = "00000000-0000-000b-0000-000000000009".parse().unwrap();
    let kept = store.odd_arrival(id).await.unwrap().unwrap();
    assert_eq!((kept.part, &kept.arrival.body[..]), (None, &b"[]"[..]));
    let source = SourceNo(1);
    let arrival = Arrival::new(id, source, kept.arrival.received_at, "evt_1", "t", "[]");
    assert!(store.promote(arrival, &act("the right one")).await.unwrap());
    assert_eq!(store.receipt(id).await.unwrap().unwrap().part, None);
    assert_eq!(store.stored().await.unwrap(), [(source, 12)]);
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(kept.arrival.received_at),
        sources: vec![source],
    };
    assert_eq!(store.expire_receipts(&range).await.unwrap().removed, 3);
    assert_eq!(store.stored().await.unwrap(), [(source, 0)]);
    assert_eq!(query(url, "SELECT count(*) FROM requests"), "0");
    store.close().await;
}
