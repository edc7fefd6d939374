//! A stored body that is no longer what arrived is handed to nobody.

use oncebox::delivery::{Next, Reason, State};
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::store::{Acted, Finish};
use oncebox::worker::{Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, act, ending};

use crate::bed::{Destination, Notes, options, work, work_off};

for_each_store!(
    a_damaged_body_is_held_and_not_delivered,
    what_was_mended_is_delivered_after_its_release,
    a_damaged_delivery_can_be_discarded,
    a_damaged_head_holds_its_object,
    ending_as_damaged_twice_is_once,
);

/// Writes another body than the one that arrived.
fn damage(bed: &Bed, event_id: &str, body: &str) {
    let body = match bed.on_sqlite() {
        true => format!("CAST('{body}' AS BLOB)"),
        false => format!("convert_to('{body}', 'UTF8')"),
    };
    bed.query(&format!("UPDATE receipts SET body = {body} WHERE event_id = '{event_id}'"));
}

async fn a_damaged_body_is_held_and_not_delivered(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let (destination, notes) = (Destination::new(), Notes::new());
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let worker =
        Worker::by_hand(bed.store.clone(), vec![work(route, "billing", &destination)], options);
    let receipt = bed.due("e1", &[route]).await;
    bed.due("e2", &[route]).await;
    damage(&bed, "e1", "{\"id\":\"e9\"}");
    work_off(&worker).await;
    assert_eq!(bed.states(&route).await, ["e1 held:damaged", "e2 processed"]);
    assert_eq!(destination.event_ids(), ["e2"]);
    assert_eq!(notes.lines(), ["billing e1 damaged", "billing e2 processed"]);
    assert!(bed.store.is_damaged(receipt).await.unwrap());
    assert!(bed.store.payloads(&[receipt]).await.unwrap().is_empty());
    let row = bed.delivery(route.of(receipt)).await;
    assert_eq!((row.state, row.reason), (State::Held, Some(Reason::Damaged)));
    assert_eq!(row.counts.attempts, 0);
    let tallies = bed.store.tally().await.unwrap();
    let held = tallies.iter().find(|tally| tally.reason == Some(Reason::Damaged)).unwrap();
    assert!(held.count == 1 && held.oldest.is_some(), "{held:?}");
    // Looking for what nothing is in the way of leaves it alone.
    assert_eq!(bed.store.release_unblocked(100).await.unwrap().released, 0);
}

async fn what_was_mended_is_delivered_after_its_release(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::by_hand(bed.store.clone(), routes, options());
    let receipt = bed.due("e1", &[route]).await;
    damage(&bed, "e1", "{}");
    work_off(&worker).await;
    let release = async || bed.store.release(route.of(receipt), &act("look again")).await.unwrap();
    assert_eq!(release().await, Acted::Done);
    work_off(&worker).await;
    assert_eq!(bed.states(&route).await, ["e1 held:damaged"]);
    damage(&bed, "e1", r#"{"id":"e1"}"#);
    assert_eq!(release().await, Acted::Done);
    work_off(&worker).await;
    assert_eq!(bed.states(&route).await, ["e1 processed"]);
    assert_eq!(destination.seen()[0].0.counts.attempts, 1);
}

async fn a_damaged_delivery_can_be_discarded(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let receipt = bed.due("e1", &[route]).await;
    let claimed = bed.take(&route).await;
    assert!(bed.finish(&claimed, Next::Damaged).await);
    let discarded = bed.store.discard(route.of(receipt), &act("it is lost")).await.unwrap();
    assert_eq!(discarded, Acted::Done);
    assert_eq!(bed.states(&route).await, ["e1 skipped:discarded"]);
}

async fn a_damaged_head_holds_its_object(bed: Bed) {
    let rules = RouteRules { ordered: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    for (event_id, version) in [("e1", 1), ("e2", 2)] {
        let (object, version) = (Some("a".to_owned()), Some(version));
        bed.send(Arrival { object, version, ..bed.event(event_id, &[route]) }).await;
    }
    damage(&bed, "e1", "{}");
    let destination = Destination::new();
    let routes = vec![work(route, "billing", &destination)];
    let worker = Worker::by_hand(bed.store.clone(), routes, options());
    work_off(&worker).await;
    assert_eq!(bed.states(&route).await, ["e1 held:damaged", "e2 held:order"]);
    let head = bed.receipts().await[0].receipt;
    bed.store.discard(route.of(head), &act("it is lost")).await.unwrap();
    work_off(&worker).await;
    assert_eq!(bed.states(&route).await, ["e1 skipped:discarded", "e2 processed"]);
}

/// The answer to a commit was lost, so it is asked about by ending again.
async fn ending_as_damaged_twice_is_once(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let claimed = bed.take(&route).await;
    let endings = || vec![ending(&claimed, Next::Damaged)];
    assert_eq!(bed.store.finish(endings()).await.unwrap(), [Finish::Done]);
    assert_eq!(bed.store.finish(endings()).await.unwrap(), [Finish::Before]);
    assert_eq!(bed.store.were_ended(&endings()).await.unwrap(), [true]);
    assert_eq!(bed.rows("attempts"), 0);
}
