//! Bad input: each has a clear error that names the remedy, and nothing is lost.

use oncebox::effect::{EffectState, Message, OnUnknown};
use oncebox::handler::{Event, Handlers, SqliteCx, Unhandled, apply};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::route::RouteRules;
use oncebox::worker::{Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Opened};

use crate::bed::{Answer, Op, Outside, Service, mark, no_handlers, work};

for_each_store!(
    a_payload_that_does_not_parse_is_dead_with_its_path,
    a_type_without_a_handler_is_dead_and_says_so,
    a_type_without_a_handler_may_pass,
    keys_that_cannot_be_are_refused,
    names_that_cannot_be_are_refused,
    messages_that_cannot_be_are_refused,
    a_result_that_is_too_large_is_refused,
    a_call_is_done_though_its_result_is_too_large,
    a_call_is_done_though_its_result_is_binary,
    a_destination_that_is_missing_is_named,
    what_is_wrong_is_mended_by_a_retry,
    a_version_in_another_unit_is_refused,
);

/// Seconds where the watermark is in milliseconds would be stale for ever.
async fn a_version_in_another_unit_is_refused(bed: Bed) {
    let service = Service::open(bed, |event| {
        let version = if event.event_id == "e1" { 1_760_000_000_000 } else { 1_760_000_001 };
        vec![Op::Advance("in_456", version)]
    })
    .await;
    service.due(&["e1"]).await;
    service.work().await;
    let receipts = service.due(&["e2"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 retrying"]);
    let detail = service.detail(receipts[0]).await;
    assert!(detail.contains("reads as seconds since 1970"), "{detail}");
    assert!(detail.contains("object_version"), "{detail}");
}

async fn a_payload_that_does_not_parse_is_dead_with_its_path(bed: Bed) {
    let service = Service::open(bed, |event| vec![mark(&event.data.amount.to_string())]).await;
    let event = |id: &str, body: &str| {
        let arrival = service.bed.event(id, &[service.route]);
        service.bed.with_body(arrival, body)
    };
    let bad = service.bed.send(event("e1", r#"{"amount": "a secret"}"#)).await;
    let worse = service.bed.send(event("e2", "amount=1")).await;
    service.bed.send(event("e3", r#"{"amount": 12, "more": {}}"#)).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 dead", "e2 dead", "e3 processed"]);
    assert_eq!(service.marks(), ["12"]);
    let detail = service.detail(bad).await;
    assert!(detail.contains("does not parse at `amount`: invalid type"), "{detail}");
    assert!(detail.contains("then replay it"), "{detail}");
    assert!(!detail.contains("secret"), "{detail}");
    assert!(service.detail(worse).await.contains("does not parse: "));
}

async fn unhandled(bed: Bed, unhandled: Unhandled) -> (Bed, ReceiptId, String) {
    let route = bed.route("billing", RouteRules::default()).await;
    let consumer = no_handlers(&bed.opened, unhandled);
    let options = WorkerOptions { lease: LEASE, ..WorkerOptions::default() };
    let worker = Worker::by_hand(bed.store.clone(), vec![work(route, consumer)], options);
    let receipt = bed.due("e1", &[route]).await;
    worker.run_once().await.unwrap();
    let row = bed.delivery(route.of(receipt)).await;
    let said = row.detail.or(row.summary).unwrap_or_default();
    (bed, receipt, format!("{}: {said}", row.state))
}

async fn a_type_without_a_handler_is_dead_and_says_so(bed: Bed) {
    let (_bed, _, said) = unhandled(bed, Unhandled::Dead).await;
    let expected = "dead: no handler takes `invoice.paid` of `stripe-live`; register one with \
                    `Handlers::on` and replay it";
    assert!(said.starts_with(expected), "{said}");
}

async fn a_type_without_a_handler_may_pass(bed: Bed) {
    let (_bed, _, said) = unhandled(bed, Unhandled::Processed).await;
    assert_eq!(said, "processed: no handler takes `invoice.paid` of `stripe-live`");
}

async fn keys_that_cannot_be_are_refused(bed: Bed) {
    let service = Service::open(bed, |event| {
        let key = match event.event_id.as_str() {
            "e1" => String::new(),
            "e2" => "k".repeat(limits::KEY_BYTES + 1),
            "e3" => "a\u{1}b".into(),
            "e4" => format!("{}/audit/charge", event.receipt),
            _ => "outbox/mailer/receipt".into(),
        };
        vec![mark("lost"), Op::Once(key)]
    })
    .await;
    let receipts = service.due(&["e1", "e2", "e3", "e4", "e5"]).await;
    service.work().await;
    let said =
        ["it is empty", "512 are allowed", "control character", "those of steps", "choose another"];
    for (receipt, said) in receipts.into_iter().zip(said) {
        let detail = service.detail(receipt).await;
        assert!(detail.contains(said), "{detail}");
    }
    assert!(service.states().await.iter().all(|state| state.ends_with("retrying")));
    assert_eq!((service.marks().len(), service.bed.rows("effects")), (0, 0));
}

/// Each event does as the plan of its number says. None gets through, nothing it wrote is kept,
/// and it is tried again.
async fn assert_refused(bed: Bed, cases: Vec<(Op, &'static str)>) {
    let ids: Vec<String> = (0..cases.len()).map(|n| format!("e{n}")).collect();
    let plans: Vec<Op> = cases.iter().map(|(op, _)| op.clone()).collect();
    let service = Service::open(bed, move |event| {
        let number: usize = event.event_id[1..].parse().unwrap();
        vec![mark("lost"), Op::Once(event.event_id.clone()), plans[number].clone()]
    })
    .await;
    let receipts = service.due(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    while service.work().await > 0 {}
    for (receipt, (_, said)) in receipts.into_iter().zip(&cases) {
        let detail = service.detail(receipt).await;
        assert!(detail.contains(said), "{said}: {detail}");
    }
    let states = service.states().await;
    assert!(states.iter().all(|state| state.ends_with(" retrying")), "{states:?}");
    assert_eq!((service.marks().len(), service.bed.rows("effects")), (0, 0));
    assert_eq!((service.bed.rows("lanes"), service.messages().await.len()), (0, 0));
}

/// Of steps, of objects, and of calls to the outside.
async fn names_that_cannot_be_are_refused(bed: Bed) {
    let long: &str = "k".repeat(limits::KEY_BYTES + 1).leak();
    let call = |key| {
        let (on_unknown, answer) = (OnUnknown::Retry, Answer::Done(1));
        Op::Call(Outside { key, is_step: true, on_unknown, answer })
    };
    let cases = vec![
        (Op::Step("", 1), "it is empty"),
        (Op::Step(long, 1), "512 are allowed"),
        (Op::Step("a\u{1}b", 1), "control character"),
        (Op::Advance("", 1), "the object is empty; name the thing"),
        (Op::Advance(long, 1), "the object is 513 bytes long"),
        (Op::Advance("a\0b", 1), "control character"),
        (call(""), "it is empty"),
        (call(long), "512 are allowed"),
        (call("a\nb"), "control character"),
    ];
    assert_refused(bed, cases).await;
}

/// Made by hand, past what [`Message::json`] looks at.
async fn messages_that_cannot_be_are_refused(bed: Bed) {
    let good = Message::json("mailer", "m1", &1).unwrap();
    let to = |name: &str| Op::Send(Message { destination: name.into(), ..good.clone() });
    let typed = |name: &str| Op::Send(Message { content_type: name.into(), ..good.clone() });
    let payload = vec![b'x'; limits::MESSAGE_BYTES + 1].into();
    let cases = vec![
        (to(""), "as in [destinations.mailer]"),
        (to("a\0b"), "as in [destinations.mailer]"),
        (typed(""), "content type"),
        (typed("text/plain\r\nx: y"), "content type"),
        (Op::Send(Message { payload, ..good.clone() }), "1048576"),
    ];
    assert_refused(bed, cases).await;
}

async fn a_result_that_is_too_large_is_refused(bed: Bed) {
    // The quotation marks count.
    let large = Op::Record("charge", limits::RESULT_BYTES - 1);
    assert_refused(bed, vec![(large, "record an id or a reference instead")]).await;
}

async fn a_call_is_done_though_its_result_is_too_large(bed: Bed) {
    done_without_its_result(bed, Answer::Large, "record an id or a reference instead").await;
}

async fn a_call_is_done_though_its_result_is_binary(bed: Bed) {
    done_without_its_result(bed, Answer::Binary, "has a NUL character").await;
}

/// What happened outside is not forgotten because its result cannot be kept.
async fn done_without_its_result(bed: Bed, answer: Answer, said: &str) {
    let (key, on_unknown) = ("refund:ch_1", OnUnknown::Ask);
    let call = Op::Call(Outside { key, is_step: false, on_unknown, answer });
    let service = Service::open(bed, move |_| vec![call.clone(), mark("told")]).await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    let detail = service.detail(receipts[0]).await;
    assert!(detail.contains(said), "{detail}");
    let effect = service.bed.effect(key).await;
    assert_eq!((effect.state, effect.result), (EffectState::Done, None));
    service.work_later().await;
    assert_eq!(service.marks(), ["told"]);
    let notes = service.notes();
    let made = notes.iter().filter(|note| note.starts_with("called"));
    assert_eq!(made.count(), 1, "{notes:?}");
}

async fn a_destination_that_is_missing_is_named(bed: Bed) {
    let message = Message::json("printer", "page:1", &1).unwrap();
    let service = Service::open(bed, move |_| vec![mark("e1"), Op::Send(message.clone())]).await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    let detail = service.detail(receipts[0]).await;
    assert!(detail.contains("no destination `printer`; add [destinations.printer]"), "{detail}");
    assert_eq!(service.marks(), [""; 0]);
    // Once it is there, the retry goes through.
    service.bed.destination("printer").await;
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1"]);
}

/// An unhandled event is as good as new once there is a handler.
async fn what_is_wrong_is_mended_by_a_retry(bed: Bed) {
    let (bed, receipt, _) = unhandled(bed, Unhandled::Dead).await;
    let service = Service::open(bed, |event| vec![mark(&event.event_id)]).await;
    service.replay(&[receipt]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1"]);
}

/// The first that matches has it, and one that names nothing reads nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_handler_that_matches_has_the_event() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    let route = bed.route("billing", RouteRules::default()).await;
    let says = |summary: &'static str| {
        apply(move |event: &Event<()>, _: &SqliteCx<'_>| {
            assert_eq!(event.raw(), b"a=1&b=2");
            assert_eq!(event.header("content-type").as_deref(), Some("application/json"));
            assert!(event.current().is_none() && event.current_as::<i64>()?.is_none());
            Ok(oncebox::handler::Decision::processed(summary))
        })
    };
    let handlers = Handlers::new(store.clone())
        .on("paypal", "*", says("wrong source"))
        .on("stripe-*", "invoice.paid", says("exact"))
        .on("stripe-*", "invoice.*", says("pattern"))
        .on("*", "*", says("rest"));
    let options = WorkerOptions { lease: LEASE, ..WorkerOptions::default() };
    let consumer = std::sync::Arc::new(handlers);
    let worker = Worker::by_hand(bed.store.clone(), vec![work(route, consumer)], options);
    for (event_type, expected) in
        [("invoice.paid", "exact"), ("invoice.voided", "pattern"), ("charge.made", "rest")]
    {
        let event = bed.with_body(bed.event(event_type, &[route]), "a=1&b=2");
        let receipt = bed.send(Arrival { event_type: event_type.into(), ..event }).await;
        worker.run_once().await.unwrap();
        let row = bed.delivery(route.of(receipt)).await;
        assert_eq!(row.summary.as_deref(), Some(expected));
    }
}
