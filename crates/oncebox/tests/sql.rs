//! Every statement is a file, has its twin for the other database, and prepares.

use std::collections::BTreeMap;
use std::path::Path;

use oncebox_testkit::store::Bed;

/// Statements one database needs and the other does in another way: SQLite decides row by row in
/// its only writer, whose clock it keeps; PostgreSQL batch by batch, with locks taken in one order,
/// and its verbs are functions that every door calls.
const ONLY_SQLITE: [&str; 69] = [
    "clear_arrivals",
    "count_arrivals",
    "count_deliveries",
    "count_repeats",
    "count_twin",
    "delete_attempts",
    "delete_finished",
    "delete_group",
    "delete_guard",
    "delete_identity",
    "delete_lane",
    "delete_operation",
    "delete_own_guard",
    "delete_receipt",
    "delete_request",
    "expire_effect",
    "extend_lease",
    "fill_delivery",
    "find_clock",
    "find_destination",
    "find_guard",
    "find_lane_passing",
    "find_lost",
    "find_open",
    "find_operation_waiting",
    "find_payload",
    "find_rules",
    "find_stop",
    "find_versions",
    "find_work",
    "finish_delivery",
    "forget_breakers",
    "hold_damaged",
    "hold_delivery",
    "insert_attempt",
    "insert_delivery",
    "insert_effect",
    "insert_guard",
    "insert_identity",
    "insert_receipt",
    "insert_request",
    "keep_attempt",
    "kill_delivery",
    "mark_folded",
    "mark_repeats",
    "mark_routed",
    "mark_stop",
    "next_receipt",
    "number_in_group",
    "point_guard",
    "pull_near",
    "release_delivery",
    "remove_finished",
    "remove_open",
    "rescue_delivery",
    "resume_leases",
    "retry_delivery",
    "return_delivery",
    "see_first_identity",
    "see_guard",
    "see_identity",
    "set_clock",
    "sweep_effects",
    "sweep_groups",
    "sweep_guards",
    "sweep_identities",
    "sweep_lanes",
    "sweep_operations",
    "take_stop",
];
const ONLY_POSTGRES: [&str; 84] = [
    "begin_effect",
    "claim_guards",
    "count_ledger_blocks",
    "count_out_day",
    "count_swept_blocks",
    "count_twins",
    "delete_effects",
    "delete_groups",
    "delete_guards",
    "delete_identities",
    "delete_lanes",
    "delete_operations",
    "delete_receipts",
    "end_older_sessions",
    "enter",
    "extend_leases",
    "fill_deliveries",
    "find_adoption",
    "find_claimed",
    "find_claimed_by",
    "find_done",
    "find_epoch",
    "find_free_candidates",
    "find_guards",
    "find_left_behind",
    "find_locked",
    "find_max_snoozes",
    "find_missing",
    "find_odd_of_day",
    "find_pause",
    "find_payloads",
    "find_place",
    "find_reopened_guards",
    "find_repeats",
    "find_standings",
    "find_stored",
    "finish",
    "finish_entered",
    "forget_stranded",
    "forget_windows",
    "health",
    "hold_deliveries",
    "lead",
    "lease_deliveries",
    "leave_requests",
    "list_days",
    "lock_candidates",
    "lock_days",
    "lock_delivery",
    "lock_effect",
    "lock_expired",
    "lock_free_lanes",
    "lock_free_operations",
    "lock_guards",
    "lock_lanes",
    "lock_leases",
    "lock_names",
    "lock_operations",
    "lock_pairing",
    "lock_receipts",
    "lock_replay",
    "lock_unlaned",
    "make_days",
    "make_days_ahead",
    "make_lanes",
    "make_operations",
    "mark_day",
    "may_work",
    "prove_commit",
    "raise_epoch",
    "record",
    "record_odd",
    "record_parts",
    "release_deliveries",
    "release_operation",
    "remember",
    "rescue_deliveries",
    "resign",
    "see_guards",
    "see_identities",
    "send",
    "skip_deliveries",
    "take_effect",
    "take_out_day",
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

/// `IN` with three or more words in a CHECK or the condition of an index makes SQLite fill a
/// table for each row that is written.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_fills_no_table_to_write_a_row() {
    let bed = Bed::sqlite().await;
    let path = bed.url.strip_prefix("sqlite://").unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    let mut writes = statements("sqlite");
    writes.retain(|name, sql| name.starts_with("insert_") && sql.contains("VALUES"));
    for hot in ["insert_receipt", "insert_identity", "insert_delivery"] {
        assert!(writes.contains_key(hot), "{hot}");
    }
    for (name, sql) in writes {
        let mut steps = database.prepare(&format!("EXPLAIN {sql}")).unwrap();
        let values = vec![rusqlite::types::Null; steps.parameter_count()];
        let steps = steps.query_map(rusqlite::params_from_iter(values), |step| step.get(1));
        let steps: Vec<String> = steps.unwrap().collect::<Result<_, _>>().unwrap();
        assert!(!steps.contains(&"OpenEphemeral".to_owned()), "{name} fills a table");
    }
}
