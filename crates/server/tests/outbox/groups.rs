//! Order: messages of a group go one after the other, and nobody else waits for them.

use oncebox::delivery::{Reason, State};
use oncebox_testkit::destination::Behaviour;
use oncebox_testkit::store::grouped;

use crate::bed::{Bed, Place, QUICK, mail, on_each_store};

on_each_store!(
    a_group_keeps_its_order_and_others_flow_past,
    a_dead_head_holds_its_group_until_it_is_replayed,
    a_discarded_head_lets_its_group_go_on,
    a_group_goes_on_without_its_dead_where_asked,
    a_long_group_arrives_in_its_order,
);

const HOUR: u32 = 3600;

/// `a1` has to wait for an hour. `a2` and `a3` wait behind it, `b1` and what has no group do not.
async fn a_group_keeps_its_order_and_others_flow_past(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::answer(503, &[("Retry-After", "3600")]));
    let a1 = bed.write(handler, &grouped(mail("a1"), "a")).await;
    bed.until(a1, State::Retrying).await;
    let a2 = bed.write(handler, &grouped(mail("a2"), "a")).await;
    let a3 = bed.write(handler, &grouped(mail("a3"), "a")).await;
    let b1 = bed.write(handler, &grouped(mail("b1"), "b")).await;
    let free = bed.write(handler, &mail("free")).await;
    bed.until(b1, State::Processed).await;
    bed.until(free, State::Processed).await;
    for id in [a2, a3] {
        assert_eq!(bed.until(id, State::Held).await.reason, Some(Reason::Order));
    }
    assert!(!bed.keys().iter().any(|key| key == "a2" || key == "a3"), "{:?}", bed.keys());

    bed.pass(HOUR).await;
    bed.until(a3, State::Processed).await;
    let of_a = bed.keys().into_iter().filter(|key| key.starts_with('a'));
    assert_eq!(of_a.collect::<Vec<_>>(), ["a1", "a1", "a2", "a3"]);
    let requests = bed.destination.requests();
    let told = requests.iter().filter(|one| one.header("oncebox-group") == Some("a"));
    let numbers: Vec<_> = told.filter_map(|one| one.header("oncebox-sequence")).collect();
    assert_eq!(numbers, ["1", "1", "2", "3"]);
    let b = requests.iter().find(|one| one.header("oncebox-group") == Some("b")).unwrap();
    assert_eq!(b.header("oncebox-sequence"), Some("1"));
    let alone = requests.iter().find(|one| one.header("idempotency-key") == Some("free")).unwrap();
    assert_eq!((alone.header("oncebox-group"), alone.header("oncebox-sequence")), (None, None));
}

async fn a_dead_head_holds_its_group_until_it_is_replayed(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(400));
    let first = bed.write(handler, &grouped(mail("a1"), "a")).await;
    bed.until(first, State::Dead).await;
    let second = bed.write(handler, &grouped(mail("a2"), "a")).await;
    assert_eq!(bed.until(second, State::Held).await.reason, Some(Reason::Order));
    bed.replay(first).await;
    bed.until(first, State::Processed).await;
    bed.until(second, State::Processed).await;
    assert_eq!(bed.keys(), ["a1", "a1", "a2"]);
}

async fn a_discarded_head_lets_its_group_go_on(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(400));
    let first = bed.write(handler, &grouped(mail("a1"), "a")).await;
    let dead = bed.until(first, State::Dead).await;
    let second = bed.write(handler, &grouped(mail("a2"), "a")).await;
    bed.until(second, State::Held).await;
    let why = oncebox_testkit::store::act("it was never meant to be sent");
    bed.store().discard(dead.delivery, &why).await.unwrap();
    bed.until(second, State::Processed).await;
    assert_eq!(bed.keys(), ["a1", "a2"]);
}

async fn a_group_goes_on_without_its_dead_where_asked(place: Place) {
    let bed = Bed::new(place, &format!("{QUICK}on_dead = \"continue\"\n")).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(400));
    let first = bed.write(handler, &grouped(mail("a1"), "a")).await;
    bed.until(first, State::Dead).await;
    let second = bed.write(handler, &grouped(mail("a2"), "a")).await;
    bed.until(second, State::Processed).await;
    assert_eq!(bed.keys(), ["a1", "a2"]);
}

/// Some of them fail on the way, and the destination has places for sixteen at a time.
async fn a_long_group_arrives_in_its_order(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    for status in [200, 503, 200, 200, 503, 500] {
        bed.destination.next(Behaviour::status(status));
    }
    let mut last = None;
    let keys: Vec<String> = (0..20).map(|number| format!("a{number:02}")).collect();
    for key in &keys {
        last = Some(bed.write(handler, &grouped(mail(key), "a")).await);
    }
    bed.until(last.unwrap(), State::Processed).await;
    let mut came = bed.keys();
    assert_eq!(came.len(), 23);
    came.dedup();
    assert_eq!(came, keys);
}
