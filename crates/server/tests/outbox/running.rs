//! Destinations of a running server: removed, renamed, paused, and told apart in metrics.

use oncebox::delivery::State;
use oncebox::effect::{Message, Sent};
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::store::act;

use crate::bed::{Bed, Place, QUICK, destinations, mail, named, on_each_store};

on_each_store!(
    a_removed_destination_keeps_what_it_owes,
    a_renamed_destination_keeps_its_messages_and_keys,
    a_paused_destination_waits,
    a_destination_nobody_configured_is_refused,
    a_reload_changes_where_messages_go,
);

const HELD: &str = "oncebox_deliveries{route=\"outbox/mailer\",state=\"held\"}";

/// What was written before and after it was removed is held, and goes out when it is back.
async fn a_removed_destination_keeps_what_it_owes(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::answer(503, &[("Retry-After", "1")]));
    let before = bed.write(handler, &mail("m1")).await;
    bed.until(before, State::Retrying).await;
    bed.reload("").await;
    let after = bed.write(handler, &mail("m2")).await;
    assert_eq!(bed.delivery(after).await.state, State::Received);
    assert_eq!(bed.metric(HELD).await, Some(2.0));
    assert_eq!(bed.metric("oncebox_outbox_pending").await, Some(2.0));
    assert_eq!(bed.keys(), ["m1"]);

    bed.reload(&destinations(&bed.destination, QUICK)).await;
    bed.pass(1).await;
    for id in [before, after] {
        bed.until(id, State::Processed).await;
    }
    assert_eq!(bed.keys().len(), 3);
}

/// The old name is gone, and a key that was used under it is not used again.
async fn a_renamed_destination_keeps_its_messages_and_keys(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let sent = bed.write(handler, &mail("m1")).await;
    bed.until(sent, State::Processed).await;
    bed.reload("").await;
    let open = bed.write(handler, &mail("m2")).await;

    let renamed = format!("{QUICK}renamed_from = \"mailer\"\n");
    bed.reload(&named("post", &bed.destination, &renamed)).await;
    bed.until(open, State::Processed).await;
    let last = bed.destination.requests().pop().unwrap();
    assert_eq!(last.header("idempotency-key"), Some("m2"));
    assert_eq!(last.header("oncebox-destination"), Some("post"));

    let post = |key: &str| Message { destination: "post".into(), ..mail(key) };
    assert_eq!(bed.send(handler, &post("m1")).await, Sent::Before(sent));
    assert_eq!(bed.send(handler, &mail("m3")).await, Sent::NoDestination);
    let new = bed.write(handler, &post("m3")).await;
    bed.until(new, State::Processed).await;
    assert_eq!(bed.keys(), ["m1", "m2", "m3"]);
}

async fn a_paused_destination_waits(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let why = act("it moves");
    assert!(bed.store().pause_route("outbox/mailer", true, &why).await.unwrap());
    let id = bed.write(handler, &mail("m1")).await;
    assert_eq!(bed.metric(HELD).await, Some(1.0));
    assert_eq!(bed.delivery(id).await.state, State::Received);
    assert!(bed.store().pause_route("outbox/mailer", false, &why).await.unwrap());
    bed.until(id, State::Processed).await;
}

async fn a_destination_nobody_configured_is_refused(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let lost = Message { destination: "malier".into(), ..mail("m1") };
    assert_eq!(bed.send(handler, &lost).await, Sent::NoDestination);
    assert_eq!(bed.store().effect("outbox/malier/m1").await.unwrap(), None);
}

async fn a_reload_changes_where_messages_go(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let first = bed.write(handler, &mail("m1")).await;
    bed.until(first, State::Processed).await;
    let other = Destination::start();
    bed.reload(&destinations(&other, QUICK)).await;
    let second = bed.write(handler, &mail("m2")).await;
    bed.until(second, State::Processed).await;
    assert_eq!((bed.destination.requests().len(), other.requests().len()), (1, 1));
}
