//! A worker that pulls over HTTP holds a delivery while its server is restarted.

use std::net::SocketAddr;

use oncebox_testkit::http::{self, Answer};
use oncebox_testkit::process::ServerProcess;
use serde_json::{Value, json};

use crate::bed::{Bed, ROUTE, post};

#[test]
fn a_lease_outlasts_an_orderly_restart_on_sqlite() {
    outlasts_an_orderly_restart(&Bed::sqlite());
}

#[test]
fn a_lease_outlasts_an_orderly_restart_on_postgres() {
    outlasts_an_orderly_restart(&Bed::postgres());
}

fn outlasts_an_orderly_restart(bed: &Bed) {
    let (mut server, mut worker) = Worker::with_a_refund_begun(bed);
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());

    let server = bed.serve();
    worker.address = server.addresses().admin;
    let unknown = bed.oncebox(&["effects", "list", "--state", "unknown", "--json"]);
    assert_eq!(unknown.stdout, "", "{unknown}");
    let done = worker.say("effects/complete", json!({"key": "refund:ch_1"}));
    assert_eq!((done.status, done.json()), (200, json!({"status": "done"})));
    let done = worker.say("complete", json!({}));
    assert_eq!((done.status, done.json()), (200, json!({"state": "processed"})));
}

/// The time since the process died is unknown, so its leases are void, and so are those that came
/// through an orderly restart before.
#[test]
fn a_kill_voids_leases_on_sqlite() {
    let bed = Bed::sqlite();
    let (mut server, mut worker) = Worker::with_a_refund_begun(&bed);
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    bed.serve().kill();

    let server = bed.serve();
    worker.address = server.addresses().admin;
    let late = worker.say("complete", json!({}));
    assert_eq!((late.status, late.json()["code"].as_str()), (409, Some("lease_lost")));
    let unknown = bed.oncebox(&["effects", "list", "--state", "unknown", "--json"]);
    assert!(unknown.stdout.contains("refund:ch_1"), "{unknown}");
}

/// A worker elsewhere, with the delivery it has claimed.
struct Worker {
    address: SocketAddr,
    token: String,
    claimed: Value,
}

impl Worker {
    /// Starts a server and has a worker claim a delivery and begin an effect.
    fn with_a_refund_begun(bed: &Bed) -> (ServerProcess, Self) {
        let server = bed.serve();
        let token = bed.oncebox(&["token", "create", "worker", "--scope", "pull"]);
        assert_eq!(token.code, Some(0), "{token}");
        assert_eq!(post(server.addresses().public, "evt_1").status, 202);
        let address = server.addresses().admin;
        let token = token.stdout.trim().to_owned();
        let mut worker = Self { address, token, claimed: Value::Null };
        let ask = json!({"max": 1, "lease": "10m", "wait": "20s"});
        let claim = worker.post(&format!("routes/{ROUTE}/claim"), &ask);
        worker.claimed = claim.json()["deliveries"][0].clone();
        let begun = worker.say("effects/begin", json!({"key": "refund:ch_1"}));
        assert_eq!(begun.json()["status"], "begun", "{begun:?}");
        (server, worker)
    }

    /// Says something of the delivery under its lease.
    fn say(&self, verb: &str, mut body: Value) -> Answer {
        body["lease"] = self.claimed["lease"].clone();
        let delivery = self.claimed["delivery"].as_str().expect("a delivery");
        self.post(&format!("deliveries/{delivery}/{verb}"), &body)
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let path = format!("/api/v1/{path}");
        http::post(self.address, &path, &headers, body.to_string().as_bytes()).expect("an answer")
    }
}
