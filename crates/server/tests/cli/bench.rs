//! `oncebox bench`: every row is there and was measured. How fast is for the bench itself to say.

use oncebox_testkit::postgres;
use serde_json::Value;

use crate::bed::oncebox_in;

/// The rows of a small run on both stores.
fn rows(args: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let database = postgres::shared().database();
    let mut words = vec!["bench", "--json", "--postgres", database.url()];
    words.extend(args.split(' '));
    oncebox_in(folder.path(), &words, b"").exits(0).json()
}

/// What rows say under some names, each row joined.
fn told(rows: &[Value], names: &[&str]) -> Vec<String> {
    let told = |row: &Value| {
        let words = names.iter().map(|name| row[name].to_string().replace('"', ""));
        words.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(told).collect()
}

#[track_caller]
fn assert_positive(rows: &[Value], name: &str) {
    for row in rows {
        assert!(row[name].as_f64().is_some_and(|figure| figure > 0.0), "{name}: {row}");
    }
}

#[test]
fn accepting_is_measured() {
    let rows = rows("--seconds 1 --connections 4");
    let cases = ["ceiling", "sqlite", "postgres", "sqlite-single", "postgres-single"];
    assert_eq!(told(&rows, &["case"]), cases);
    assert_positive(&rows, "events_per_second");
    assert_positive(&rows, "of_ceiling");
}

#[test]
fn the_whole_way_is_measured() {
    let rows = rows("--deliver --seconds 1 --connections 4");
    let cases = ["idle", "push", "push, paced", "push, paced, 100 routes", "pull"];
    let cases = ["sqlite", "postgres"].map(|store| cases.map(|case| format!("{store} {case}")));
    assert_eq!(told(&rows, &["store", "case"]), cases.concat());
    assert_positive(&rows, "delivered_per_second");
}

#[test]
fn claims_are_measured() {
    let rows = rows("--flat --finished 500 --pinned 1");
    let moments = [
        "sqlite empty",
        "sqlite 500 finished",
        "postgres empty",
        "postgres 500 finished",
        "postgres snapshot pinned for 1 s",
    ];
    assert_eq!(told(&rows, &["case", "when"]), moments);
    assert_positive(&rows, "claims");
}

#[test]
fn a_day_that_goes_is_measured() {
    let rows = rows("--day 500 --size 64 --seconds 1");
    assert_eq!(told(&rows, &["receipts"]), ["500"]);
    assert_positive(&rows, "commits");
    assert_positive(&rows, "take_out_ms");
    assert_positive(&rows, "drop_ms");
}

#[test]
fn effects_are_measured() {
    for ids in ["stripe", "random"] {
        let rows = rows(&format!("--effects --deliveries 20 --ledger 20000 --ids {ids}"));
        let (cases, look_ups) = rows.split_at(7);
        let expected = [
            "sqlite nothing",
            "sqlite handlers in Rust",
            "sqlite outbox relay",
            "postgres nothing",
            "postgres handlers in Rust",
            "postgres SQL, 8 connections",
            "postgres outbox relay",
        ];
        assert_eq!(told(cases, &["store", "case"]), expected);
        assert_positive(cases, "per_second");
        let expected = ["1 new", "1 known", "100 new", "100 known"];
        let expected =
            ["sqlite", "postgres"].map(|store| expected.map(|row| format!("{store} {row}")));
        assert_eq!(told(look_ups, &["store", "per_event", "keys"]), expected.concat());
        assert_positive(look_ups, "of_empty");
    }
}

#[test]
fn odd_arrivals_are_measured() {
    let rows = rows("--odd --deliveries 300");
    let arrivals = ["new", "duplicates", "twins", "conflicts"];
    let cases =
        ["sqlite", "postgres"].map(|store| arrivals.map(|arrivals| format!("{store} {arrivals}")));
    assert_eq!(told(&rows, &["case", "arrivals"]), cases.concat());
    assert_positive(&rows, "events_per_second");
}
