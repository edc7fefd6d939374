//! What was accepted reaches the destination, whatever dies on the way.

mod backlog;
mod crash;
mod routes;
mod storm;

use std::collections::HashMap;
use std::time::Duration;

use oncebox_testkit::destination::{Destination, Received};
use oncebox_testkit::store::query;
use oncebox_testkit::wait;

use crate::bed::{Bed, SOURCE, body};

/// How long a long backlog may take on a slow machine.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(600);

/// Longer than any lease, in seconds.
const PAST_ANY_LEASE: u32 = 120;

impl Bed {
    /// Writes a configuration with one route to a destination, and whatever else it says.
    fn push_to(&self, destination: &Destination, more: &str) {
        self.configure_routes(&route("billing", destination, more));
    }

    /// The first column of a query beside the server.
    fn look(&self, sql: &str) -> String {
        query(&self.url, sql)
    }

    /// Waits until no delivery is open.
    #[track_caller]
    fn wait_until_all_finished(&self) {
        wait::until("every delivery is finished", || {
            self.look("SELECT count(*) FROM deliveries") == "0"
        });
    }

    /// As [`Self::wait_until_all_finished`], with a long backlog to work off first.
    #[track_caller]
    fn wait_until_backlog_is_finished(&self) {
        let none_open = || self.look("SELECT count(*) FROM deliveries") == "0";
        if !wait::holds_within(BACKLOG_PATIENCE, none_open) {
            let left = "SELECT state, count(*), max(attempts) FROM deliveries GROUP BY state";
            panic!("deliveries are left: {}", self.look(left));
        }
    }

    /// How the deliveries ended: state, attempts and crashes, a line each.
    fn finished(&self) -> String {
        self.look("SELECT state, attempts, failures, crashes FROM finished ORDER BY receipt")
    }
}

/// The part of a configuration that makes a route.
fn route(name: &str, destination: &Destination, more: &str) -> String {
    let to = destination.address();
    format!(
        "[routes.{name}]\nsources = [\"{SOURCE}\"]\npush = \"http://{to}/{name}\"\n\
         secret = \"whsec_ZmF1bHRzLWZhdWx0cy1mYXVsdHMtZmF1bHRzLTA=\"\nallow_private = true\n{more}\n"
    )
}

/// Every request by the event it is about.
fn by_event(requests: Vec<Received>) -> HashMap<String, Vec<Received>> {
    let mut all: HashMap<String, Vec<Received>> = HashMap::new();
    for request in requests {
        let id = request.header("oncebox-event-id").expect("it names its event").to_owned();
        all.entry(id).or_default().push(request);
    }
    all
}

/// Asserts that each of these events came, byte for byte, always under one key of its own.
#[track_caller]
fn assert_delivered(destination: &Destination, ids: &[String]) {
    let came = by_event(destination.requests());
    let mut keys = HashMap::new();
    for id in ids {
        let requests = came.get(id).unwrap_or_else(|| panic!("{id} never came"));
        let key = requests[0].header("idempotency-key").expect("it has a key");
        assert!(requests.iter().all(|each| each.header("idempotency-key") == Some(key)), "{id}");
        assert!(requests.iter().all(|each| each.body == body(id)), "{id} came changed");
        assert_eq!(keys.insert(key.to_owned(), id), None, "{id} shares its key");
    }
}
