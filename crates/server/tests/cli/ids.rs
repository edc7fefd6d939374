//! Ids that mean less than they seem to, or something else.

use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox_testkit::store::{NOON, message, time};

use crate::desk::Desk;
use crate::work::Work;

/// The id of a delivery that there is not means no other.
#[test]
fn a_delivery_that_there_is_not_is_not_replayed() {
    let desk = Desk::new();
    for number in [9, desk.billing.0 + 1] {
        let id = format!("{}.{number}", desk.dead);
        let run = desk.run(&["replay", &id, "--yes"]).exits(3);
        run.tells(&format!("there is no delivery {id}"));
    }
    assert_eq!(desk.states(desk.dead), ["billing dead"]);
    assert!(desk.acts().is_empty());
}

#[test]
fn the_id_of_a_delivery_and_a_route_are_refused_together() {
    let desk = Desk::new();
    let id = desk.delivery(desk.dead);
    for route in ["mail", "billing"] {
        let twice = "names its route, and so does --route";
        desk.run(&["replay", &id, "--route", route, "--yes"]).exits(2).tells(twice);
        let discard = ["dead", "discard", &id, "--route", route, "--reason", "a test"];
        desk.run(&discard).exits(2).tells(twice);
    }
    assert_eq!(desk.states(desk.dead), ["billing dead"]);
    assert!(desk.acts().is_empty());
}

/// Ids of some providers are times with a fraction.
#[test]
fn an_event_id_with_a_dot_names_no_route() {
    let work = Work::empty();
    let (first, second) = work.block_on(async {
        let first = work.bed.route("billing", RouteRules::default()).await;
        let second = work.bed.route("mail", RouteRules::default()).await;
        work.bed.due("1700000000.123456", &[first, second]).await;
        (first.no, second.no)
    });
    let id = format!("1700000000.{}", first.0);
    let discard = |id: &str| work.run(&["dead", "discard", id, "--reason", "a test"]);
    discard(&id).exits(2).tells("has several deliveries");
    assert_eq!((first.0, second.0), (1, 2));
    assert!(work.rows(&[]).iter().all(|row| row["state"] == "received"));
    assert!(work.acts().is_empty());
}

/// Twenty newer receipts of another source do not hide that a beginning is ambiguous.
#[test]
fn a_beginning_that_may_mean_more_is_refused() {
    let work = Work::empty();
    let begin = work.block_on(async {
        let bed = &work.bed;
        let other = bed.store.register_source("other", None).await.unwrap();
        let mut ids = Vec::new();
        for number in 0..2 {
            let event_id = format!("evt_{number}");
            ids.push(bed.send(bed.arrival_at(&event_id, "{}", time(NOON + 1))).await);
        }
        for number in 0..19 {
            let arrival = bed.arrival_at(&format!("other_{number}"), "{}", time(NOON + 2));
            bed.send(Arrival { source: other, ..arrival }).await;
        }
        ids[0].to_string()[..6].to_owned()
    });
    let show = |source: &str| work.run(&["receipts", "show", &begin, "--source", source]);
    show("stripe-live").exits(2).tells("too many ids begin").tells("the whole event id");
    show("other").exits(2).tells("means several");
}

/// An ambiguous id of a message is not called unknown.
#[test]
fn the_beginning_of_two_messages_is_ambiguous() {
    let work = Work::configured(
        "[destinations.mailer]\nurl = \"https://mailer.example.com/\"\nsecret = \"env:CANARY\"\n",
    );
    let begin = work.block_on(async {
        let bed = &work.bed;
        let handler = bed.route("mail", RouteRules::default()).await;
        bed.destination("mailer").await;
        let claimed = bed.working_on("evt_1", &handler).await;
        let first = bed.write_new(&claimed, &message("mailer", "mail:1", "{}")).await;
        bed.write_new(&claimed, &message("mailer", "mail:2", "{}")).await;
        first.to_string()[..8].to_owned()
    });
    let show = work.run(&["outbox", "show", "mailer", &begin]);
    show.exits(2).tells("means several").tells("mail:1");
}
