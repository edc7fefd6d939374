//! One delivery, and a worker that dies, hangs, stops, or wakes up again.

use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::http;
use oncebox_testkit::store::pass;
use oncebox_testkit::wait;
use serde_json::Value;

use super::PAST_ANY_LEASE;
use crate::bed::{Bed, assert_says, post};

#[test]
fn a_worker_killed_before_the_answer_is_followed_by_another_on_sqlite() {
    killed_before_the_answer(&Bed::sqlite());
}

#[test]
fn a_worker_killed_before_the_answer_is_followed_by_another_on_postgres() {
    killed_before_the_answer(&Bed::postgres());
}

/// The destination has done its part and the answer never arrives.
fn killed_before_the_answer(bed: &Bed) {
    let destination = Destination::start();
    bed.push_to(&destination, "");
    destination.next(Behaviour::Hang);
    let mut server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_1").status, 202);
    destination.wait_for(1);
    server.kill();

    pass(&bed.url, PAST_ANY_LEASE);
    let server = bed.serve();
    let requests = destination.wait_for(2);
    bed.wait_until_all_finished();
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[1].header("oncebox-attempt"), Some("2"));
    assert_eq!(bed.finished(), "processed|2|0|1");
    assert_eq!(bed.look("SELECT number, outcome FROM attempts"), "1|lost");
    drop(server);
}

#[test]
fn a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes() {
    let bed = Bed::postgres();
    let destination = Destination::start();
    bed.push_to(&destination, "timeout = \"100s\"");
    destination.next(Behaviour::Hang);
    let frozen = bed.serve();
    assert_eq!(post(frozen.addresses().public, "evt_1").status, 202);
    destination.wait_for(1);
    frozen.stop();

    pass(&bed.url, PAST_ANY_LEASE);
    let other = bed.serve();
    let requests = destination.wait_for(2);
    bed.wait_until_all_finished();
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    let before = bed.look("SELECT * FROM finished");

    frozen.cont();
    assert_says(&frozen, "the lease was lost");
    assert_eq!(bed.look("SELECT * FROM finished"), before);
    assert_eq!(bed.look("SELECT count(*) FROM deliveries"), "0");
    assert_eq!(bed.look("SELECT number, outcome FROM attempts"), "1|lost");
    assert_eq!(destination.requests().len(), 2);
    drop(other);
}

#[test]
fn a_stopping_server_gives_its_leases_back_on_sqlite() {
    stopped(&Bed::sqlite());
}

#[test]
fn a_stopping_server_gives_its_leases_back_on_postgres() {
    stopped(&Bed::postgres());
}

fn stopped(bed: &Bed) {
    let destination = Destination::start();
    bed.push_to(&destination, "concurrency = 2\ntimeout = \"100s\"");
    destination.always(Behaviour::Hang);
    let mut server = bed.serve();
    for number in 0..6 {
        assert_eq!(post(server.addresses().public, &format!("evt_{number}")).status, 202);
    }
    destination.wait_for(2);
    server.terminate();
    assert!(server.wait().success());
    // What was with the destination has failed; the rest was never begun.
    let states = "SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state";
    assert_eq!(bed.look(states), "received|4\nretrying|2");
    assert_eq!(bed.look("SELECT sum(attempts) FROM deliveries"), "2");

    destination.always(Behaviour::status(204));
    let server = bed.serve();
    bed.wait_until_all_finished();
    drop(server);
}

#[test]
fn an_event_that_failed_and_comes_again_is_acknowledged_and_retried() {
    let bed = Bed::sqlite();
    let destination = Destination::start();
    bed.push_to(&destination, "");
    destination.next(Behaviour::status(503));
    let server = bed.serve();
    let addr = server.addresses().public;
    assert_eq!(post(addr, "evt_1").status, 202);
    destination.wait_for(1);
    assert_eq!(post(addr, "evt_1").status, 200);
    let requests = destination.wait_for(2);
    bed.wait_until_all_finished();
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(bed.finished(), "processed|2|1|0");
    drop(server);
}

#[test]
fn a_lease_from_before_a_restored_backup_is_worth_nothing() {
    let bed = Bed::sqlite();
    let mut server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_1").status, 202);
    let run = bed.oncebox(&["token", "create", "worker", "--scope", "pull"]);
    assert_eq!(run.code, Some(0), "{run}");
    let token = run.stdout.trim().to_owned();
    server.terminate();
    assert!(server.wait().success());
    let backup = bed.home.path().join("backup.db");
    std::fs::copy(bed.file(), &backup).expect("a settled file can be copied");

    let claim = |server: &oncebox_testkit::process::ServerProcess| -> Value {
        let path = "/api/v1/routes/billing/claim";
        let answer = api(server.addresses().admin, path, &token, "{}");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["deliveries"][0].clone()
    };
    let mut server = bed.serve();
    let old = claim(&server);
    server.kill();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", bed.file().display()));
    }
    std::fs::copy(&backup, bed.file()).expect("the backup is restored");

    let server = bed.serve();
    let new = claim(&server);
    assert_eq!(old["delivery"], new["delivery"]);
    assert_ne!(old["lease"], new["lease"]);
    let path = format!("/api/v1/deliveries/{}/complete", new["delivery"].as_str().expect("an id"));
    let complete = |lease: &Value| {
        let body = format!("{{\"lease\":{lease}}}");
        api(server.addresses().admin, &path, &token, &body).status
    };
    assert_eq!(complete(&old["lease"]), 409);
    assert_eq!(bed.look("SELECT state FROM deliveries"), "processing");
    assert_eq!(complete(&new["lease"]), 200);
    wait::until("it is finished", || bed.finished() == "processed|1|0|0");
}

fn api(addr: std::net::SocketAddr, path: &str, token: &str, body: &str) -> http::Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    http::post(addr, path, &headers, body.as_bytes()).expect("the server answers")
}
