//! Every statement is a file, has its twin for the other database, and prepares.

use std::collections::BTreeMap;
use std::path::Path;

use oncebox_testkit::store::Bed;

/// Statements one database needs and the other does in another way: SQLite decides row by row in
/// its only writer, PostgreSQL batch by batch; only PostgreSQL needs a lock, a clock and blocks.
const ONLY_SQLITE: [&str; 8] = [
    "delete_identity",
    "delete_receipt",
    "insert_delivery",
    "insert_identity",
    "insert_receipt",
    "mark_repeats",
    "see_identity",
    "sweep_identities",
];
const ONLY_POSTGRES: [&str; 10] = [
    "claim_guard",
    "count_identity_blocks",
    "delete_identities",
    "delete_receipts",
    "find_repeats",
    "health",
    "lock_names",
    "record",
    "remember",
    "see_identities",
];

fn statements(database: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store").join(database).join("sql");
    let files = std::fs::read_dir(folder).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn every_statement_has_its_twin() {
    let shared = |database, alone: &[&str]| -> Vec<String> {
        let mut names: Vec<String> = statements(database).into_keys().collect();
        names.retain(|name| !alone.contains(&name.as_str()));
        names
    };
    assert_eq!(shared("sqlite", &ONLY_SQLITE), shared("postgres", &ONLY_POSTGRES));
}

#[test]
fn every_statement_is_used() {
    for database in ["sqlite", "postgres"] {
        let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
        let mut code = std::fs::read_to_string(store.join(format!("{database}.rs"))).unwrap();
        for file in std::fs::read_dir(store.join(database)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                code.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
        for name in statements(database).keys() {
            assert!(code.contains(&format!("sql/{name}.sql")), "{database}: {name} is not used");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_prepares_every_statement() {
    let bed = Bed::sqlite().await;
    let path = bed.url.strip_prefix("sqlite://").unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    for (name, sql) in statements("sqlite") {
        database.prepare(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_prepares_every_statement() {
    let bed = Bed::postgres().await;
    let (client, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for (name, sql) in statements("postgres") {
        client.prepare(&sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
