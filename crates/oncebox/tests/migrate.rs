//! A store of the first release, with a delivery in it that nobody has worked on yet.

use oncebox::route::RouteRules;
use oncebox::store::{self, Claim, Purpose, Wanted};
use oncebox_testkit::postgres;
use oncebox_testkit::store::{LEASE, query};

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

async fn goes_on(url: &str) {
    let refused = store::open(url, Purpose::Operate).await.err().expect("it is behind");
    assert!(refused.to_string().contains("migrate up"), "{refused}");
    // Several nodes start at once; one of them migrates.
    let store = store::open(url, Purpose::Serve).await.unwrap();
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
