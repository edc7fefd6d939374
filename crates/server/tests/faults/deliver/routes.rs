//! Routes do not hinder each other, and do not vanish with what they still have to do.

use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::wait;

use super::{assert_delivered, route};
use crate::bed::{Bed, post};
use crate::chance::rounds;

/// Of these one hangs.
const ROUTES: usize = 100;

#[test]
fn one_hanging_destination_of_a_hundred_delays_no_other_on_sqlite() {
    one_hangs(&Bed::sqlite());
}

#[test]
fn one_hanging_destination_of_a_hundred_delays_no_other_on_postgres() {
    one_hangs(&Bed::postgres());
}

fn one_hangs(bed: &Bed) {
    let (good, hanging) = (Destination::start(), Destination::start());
    hanging.always(Behaviour::Hang);
    let others = (1..ROUTES).map(|number| route(&format!("route-{number}"), &good, ""));
    let routes: String = others.collect();
    bed.configure_routes(&(route("stuck", &hanging, "timeout = \"100s\"") + &routes));
    let server = bed.serve();
    let events = rounds(5, 20);
    let ids: Vec<String> = (0..events).map(|number| format!("evt_{number}")).collect();
    for id in &ids {
        assert_eq!(post(server.addresses().public, id).status, 202);
    }
    good.wait_for(events * (ROUTES - 1));
    wait::until("all others are finished", || {
        bed.look("SELECT count(*) FROM deliveries") == events.to_string()
    });
    // All of that while the first request to the other was still without an answer.
    let stuck = "SELECT count(*) FROM finished AS f JOIN routes AS r ON r.no = f.route
                 WHERE r.name = 'stuck'";
    assert_eq!(bed.look(stuck), "0");
    assert!(!hanging.requests().is_empty());
    assert_eq!(bed.look("SELECT count(*) FROM finished"), (events * (ROUTES - 1)).to_string());
}

#[test]
fn a_route_that_is_removed_keeps_its_deliveries_in_sight() {
    let bed = Bed::sqlite();
    let server = bed.serve();
    let ids: Vec<String> = (0..3).map(|number| format!("evt_{number}")).collect();
    for id in &ids {
        assert_eq!(post(server.addresses().public, id).status, 202);
    }
    bed.configure_routes("");
    server.hang_up();
    server.wait_for_message("configuration reloaded");

    let run = bed.oncebox(&["routes", "list", "--json"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("no-route") && run.stdout.contains("billing"), "{run}");
    let run = bed.oncebox(&["deliveries", "list", "--state", "held", "--json"]);
    assert_eq!(run.stdout.matches("\"no-route\"").count(), 3, "{run}");

    // It comes back as another kind of route, and they go on where they were.
    let destination = Destination::start();
    bed.push_to(&destination, "");
    let seen = server.lines();
    server.hang_up();
    server.wait_for_message_after(seen, "configuration reloaded");
    bed.wait_until_all_finished();
    assert_delivered(&destination, &ids);
}

#[test]
fn an_event_nobody_acknowledged_in_time_is_held_up_and_not_lost() {
    let bed = Bed::sqlite();
    let destination = Destination::start();
    destination.always(Behaviour::status(503));
    bed.push_to(&destination, "retry = { max_attempts = 1 }");
    let server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_1").status, 202);
    wait::until("it is dead", || bed.look("SELECT state FROM deliveries") == "dead");
    let run = bed.oncebox(&["dead", "list", "--json"]);
    assert!(run.stdout.contains("evt_1") && run.stdout.contains("503"), "{run}");

    destination.always(Behaviour::status(204));
    let run = bed.oncebox(&["replay", "--state", "dead", "--yes", "--reason", "it is up again"]);
    assert_eq!(run.code, Some(0), "{run}");
    bed.wait_until_all_finished();
    let requests = destination.requests();
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(requests[0].header("oncebox-replay"), None);
    assert_eq!(requests[1].header("oncebox-replay"), Some("1"));
    let run = bed.oncebox(&["audit", "list", "--json"]);
    assert!(run.stdout.contains("it is up again"), "{run}");
}
