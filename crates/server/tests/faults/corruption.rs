//! Damaged files: found, told, never repaired by deleting.

use std::fs;

use oncebox_testkit::faultfs::flip_byte;
use oncebox_testkit::http::Connection;
use rusqlite::Connection as Database;

use crate::bed::{Bed, SECRET, assert_says, assert_unavailable, body, post, signed_request};

const PAGE: u64 = 8192;

/// A store with some events in it, copied back into its one file.
fn filled() -> Bed {
    let bed = Bed::sqlite();
    let mut server = bed.serve();
    for n in 0..20 {
        assert_eq!(post(server.addresses().public, &format!("evt_{n}")).status, 202);
    }
    server.terminate();
    assert!(server.wait().success());
    bed
}

/// The first page of a table, counted from 0.
fn root_page(bed: &Bed, table: &str) -> u64 {
    let database = Database::open(bed.file()).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: i64 = database.query_row(root, [table], |row| row.get(0)).unwrap();
    u64::try_from(page - 1).unwrap()
}

#[test]
fn a_damaged_page_keeps_the_server_from_starting() {
    for table in ["receipts", "identities", "deliveries"] {
        let bed = filled();
        flip_byte(bed.file(), root_page(&bed, table) * PAGE);
        let damaged = fs::read(bed.file()).unwrap();
        let mut server = bed.start_with(&[]);
        assert_eq!(server.wait().code(), Some(69), "{table}: {}", server.log());
        assert_says(&server, "damaged");
        assert_eq!(fs::read(bed.file()).unwrap(), damaged, "{table}: the file was changed");
    }
}

#[test]
fn a_file_whose_head_is_damaged_is_left_as_it_is() {
    let bed = filled();
    flip_byte(bed.file(), 0);
    let damaged = fs::read(bed.file()).unwrap();
    let mut server = bed.start_with(&[]);
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());
    assert_eq!(fs::read(bed.file()).unwrap(), damaged, "the file was changed");
}

/// A large file is not read through at every start; its damage is met later.
#[test]
fn a_damaged_page_met_while_serving_stops_the_server() {
    let bed = Bed::sqlite();
    let mut server = bed.serve();
    for n in 0..3 {
        let filling = "x".repeat(24 << 20);
        let body = format!("{{\"id\":\"evt_{n}\",\"type\":\"invoice.paid\",\"x\":\"{filling}\"}}");
        let mut connection = Connection::open(server.addresses().public).unwrap();
        connection.send(&signed_request(body.into_bytes(), SECRET)).unwrap();
        assert_eq!(connection.answer().unwrap().status, 202);
    }
    server.terminate();
    assert!(server.wait().success());
    let length = fs::metadata(bed.file()).unwrap().len();

    flip_byte(bed.file(), root_page(&bed, "identities") * PAGE);
    let mut server = bed.serve();
    assert_unavailable(&post(server.addresses().public, "evt_met"));
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());
    assert!(fs::metadata(bed.file()).unwrap().len() >= length);
}

#[test]
fn a_damaged_body_is_found_when_it_is_shown() {
    let bed = filled();
    let file = fs::read(bed.file()).unwrap();
    let text = body("evt_7");
    // Pages that were split hold old copies, too.
    let places = file.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    for (place, _) in places {
        flip_byte(bed.file(), u64::try_from(place + text.len() - 10).unwrap());
    }

    let server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_7").status, 200);
    let show = |id| bed.oncebox(&["receipts", "show", id, "--source", "stripe-live"]);
    let run = show("evt_7");
    assert_eq!(run.code, Some(4), "{run}");
    assert!(run.stderr.contains("DAMAGED"), "{run}");
    let run = show("evt_8");
    assert_eq!(run.code, Some(0), "{run}");
}
