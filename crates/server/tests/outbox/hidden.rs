//! Messages are not webhooks: nobody can post them, and lists of what was received leave them out.

use oncebox::delivery::State;
use oncebox::replay::{How, ReplayFilter, plan};
use oncebox::store::{DeliveryFilter, ReceiptFilter};
use oncebox_testkit::destination::Behaviour;
use oncebox_testkit::http;

use crate::bed::{Bed, Place, QUICK, mail, on_each_store};

on_each_store!(
    nobody_can_post_a_message,
    receipts_are_listed_without_messages,
    a_replay_of_everything_leaves_messages_out,
);

async fn nobody_can_post_a_message(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let (public, admin) = (bed.server.public, bed.server.admin);
    let ask = move || {
        let in_public = ["/in/outbox%2Fmailer", "/in/outbox/mailer", "/in/mailer"]
            .map(|path| http::post(public, path, &[], b"{}").unwrap().status);
        let claim = "/api/v1/routes/outbox%2Fmailer/claim";
        (in_public, http::post(admin, claim, &[], b"{}").unwrap().status)
    };
    let (in_public, claim) = tokio::task::spawn_blocking(ask).await.unwrap();
    assert_eq!(in_public, [404; 3]);
    assert_eq!(claim, 401, "without a token nobody hears what there is");
    let none = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
    assert!(bed.store().deliveries(&none).await.unwrap().is_empty());
}

async fn receipts_are_listed_without_messages(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    let id = bed.write(handler, &mail("m1")).await;
    bed.until(id, State::Processed).await;
    let listed = async |filter: ReceiptFilter| {
        let filter = ReceiptFilter { limit: 9, ..filter };
        let receipts = bed.store().receipts(&filter).await.unwrap();
        receipts.into_iter().map(|one| one.event_id).collect::<Vec<_>>()
    };
    assert_eq!(listed(ReceiptFilter::default()).await, ["evt_1"]);
    let unrouted = ReceiptFilter { unrouted: true, ..ReceiptFilter::default() };
    assert!(listed(unrouted).await.is_empty());
    let source = Some("outbox/mailer".to_owned());
    assert_eq!(listed(ReceiptFilter { source, ..ReceiptFilter::default() }).await, ["m1"]);
    let message = bed.store().receipt(id).await.unwrap().unwrap();
    let headers = format!("content-type: application/json\noncebox-cause: {}\n", handler.delivery);
    assert_eq!(message.headers, headers.into_bytes());

    // Every delivery is a delivery: lists and counts of those have messages, too.
    let all = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
    let rows = bed.store().deliveries(&all).await.unwrap();
    let routes: Vec<_> = rows.iter().map(|row| row.route.as_str()).collect();
    assert_eq!(routes, ["outbox/mailer", "app"]);
    let by = |key: &str, group: Option<&str>| DeliveryFilter {
        event_id_prefix: Some(key.to_owned()),
        object: group.map(str::to_owned),
        ..all.clone()
    };
    for (filter, count) in [(by("m", None), 1), (by("m2", None), 0), (by("", Some("a")), 0)] {
        assert_eq!(bed.store().deliveries(&filter).await.unwrap().len(), count, "{filter:?}");
    }
}

async fn a_replay_of_everything_leaves_messages_out(place: Place) {
    let bed = Bed::new(place, QUICK).await;
    let handler = bed.handler("evt_1").await;
    bed.destination.next(Behaviour::status(400));
    let dead = bed.write(handler, &mail("m1")).await;
    let route = bed.until(dead, State::Dead).await.delivery.route;
    let sent = bed.write(handler, &mail("m2")).await;
    bed.until(sent, State::Processed).await;
    let touched = async |filter: ReplayFilter| {
        let how = How { force: true, ignore_stale: false };
        plan(&**bed.store(), &filter, how).await.unwrap().touched()
    };
    let of = |state| ReplayFilter { state, ..ReplayFilter::default() };
    assert_eq!(touched(of(Some(State::Dead))).await, 0);
    assert_eq!(touched(of(Some(State::Processed))).await, 0);
    let event_type = Some("*".to_owned());
    assert_eq!(touched(ReplayFilter { event_type, ..of(None) }).await, 0);

    assert_eq!(touched(ReplayFilter { routes: vec![route], ..of(None) }).await, 2);
    let source = Some("outbox/mailer".to_owned());
    assert_eq!(touched(ReplayFilter { source, ..of(Some(State::Dead)) }).await, 1);
    assert_eq!(touched(ReplayFilter { receipts: vec![sent], ..of(None) }).await, 1);
}
