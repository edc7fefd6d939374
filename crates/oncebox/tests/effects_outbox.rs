//! Watermarks moved by handlers, and messages: written once, and then on the way of every event.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use bytes::Bytes;
use oncebox::delivery::{Claimed, Next, Reason, State};
use oncebox::effect::{EffectActed, EffectKind, EffectState, Message, Sent, Under};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId, decode_headers};
use oncebox::replay::{How, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::{ExpireRange, ReceiptFilter, StoreError};
use oncebox::verify::Trust;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, LEASE, Route, act, grouped, message, under};
use tokio::sync::watch;

for_each_store!(
    a_watermark_never_goes_back,
    a_watermark_is_of_its_route_source_and_object,
    a_watermark_that_was_moved_guards_the_claim,
    a_watermark_needs_a_lease,
    objects_are_plain_names,
    a_message_is_kept_as_an_event,
    a_message_is_claimed_under_its_key,
    one_key_is_one_message,
    the_first_payload_stands,
    each_destination_has_its_own_keys,
    a_renamed_destination_keeps_its_keys,
    a_known_destination_keeps_its_rules,
    names_that_would_share_keys_are_refused,
    a_message_outlives_its_payload_as_a_key,
    a_message_needs_a_destination,
    a_message_needs_a_lease,
    messages_of_a_group_go_in_order,
    a_dead_message_holds_its_group,
    a_dead_message_is_replayed_under_its_key,
    a_new_message_is_announced,
    one_of_many_writes_a_message,
    a_group_is_numbered_without_gaps,
    a_forgotten_message_may_be_written_again,
    bad_messages_are_refused,
);

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

async fn working(bed: &Bed) -> Claimed {
    let route = billing(bed).await;
    bed.working_on("e1", &route).await
}

async fn advance(bed: &Bed, claimed: &Claimed, object: &str, version: i64) -> Option<bool> {
    bed.store.advance(under(claimed), object, version).await.unwrap()
}

fn watermark(bed: &Bed, object: &str) -> String {
    bed.query(&format!("SELECT applied FROM lanes WHERE object = '{object}'"))
}

/// Whoever only writes messages registers the destination, too, and knows nothing of how the server
/// relays them.
async fn a_known_destination_keeps_its_rules(bed: Bed) {
    let rules = RouteRules {
        on_dead: OnDead::Continue,
        max_attempts: 3,
        skip_stale: true,
        same_operation: Some(LEASE),
        ..RouteRules::default()
    };
    let number = bed.store.register_destination("mailer", &rules).await.unwrap();
    let again = bed.store.register_destination("mailer", &RouteRules::default()).await.unwrap();
    assert_eq!(again, number);
    let routes = bed.store.routes().await.unwrap();
    let stored = routes.iter().find(|route| route.route == number).expect("it is kept").rules;
    assert_eq!((stored.on_dead, stored.max_attempts), (OnDead::Continue, 3));
    // No message is stale, or the same as another under another key.
    assert_eq!((stored.skip_stale, stored.same_operation), (false, None));
}

/// `a` with the key `b/c`, and `a/b` with the key `c`.
async fn names_that_would_share_keys_are_refused(bed: Bed) {
    let store = &bed.store;
    for name in ["a/b", "", "a\nb"] {
        let destination = store.register_destination(name, &RouteRules::default()).await;
        let route = store.register_route(name, None, &RouteRules::default()).await;
        for refused in [destination, route] {
            let Err(StoreError::Data(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("choose another"), "{why}");
        }
        assert!(store.register_source(name, None).await.is_err());
    }
    assert_eq!(bed.query("SELECT count(*) FROM routes"), "0");
}

async fn a_watermark_never_goes_back(bed: Bed) {
    let claimed = working(&bed).await;
    for (version, advanced, now_at) in [
        (5, true, "5"),
        (4, false, "5"),
        (5, true, "5"),
        (6, true, "6"),
        (i64::MIN, false, "6"),
        (i64::MAX, true, "9223372036854775807"),
        (6, false, "9223372036854775807"),
    ] {
        assert_eq!(advance(&bed, &claimed, "in_1", version).await, Some(advanced), "{version}");
        assert_eq!(watermark(&bed, "in_1"), now_at);
    }
    assert_eq!(advance(&bed, &claimed, "in_2", i64::MIN).await, Some(true));
    assert_eq!(watermark(&bed, "in_2"), "-9223372036854775808");
}

async fn a_watermark_is_of_its_route_source_and_object(bed: Bed) {
    let (billing, audit) = (billing(&bed).await, bed.route("audit", RouteRules::default()).await);
    let test = bed.store.register_source("stripe-test", None).await.unwrap();
    let here = bed.working_on("e1", &billing).await;
    let other_route = bed.working_on("e2", &audit).await;
    bed.send(Arrival { source: test, ..bed.event("e3", &[billing]) }).await;
    let other_source = bed.take(&billing).await;
    assert_eq!(advance(&bed, &here, "in_1", 9).await, Some(true));
    for (claimed, object) in [(&other_route, "in_1"), (&other_source, "in_1"), (&here, "in_2")] {
        assert_eq!(advance(&bed, claimed, object, 1).await, Some(true));
    }
    assert_eq!(advance(&bed, &here, "in_1", 8).await, Some(false));
    assert_eq!(bed.rows("lanes"), 4);
}

/// What a handler says it has seen counts as processed.
async fn a_watermark_that_was_moved_guards_the_claim(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let claimed = bed.working_on("e1", &route).await;
    assert_eq!(advance(&bed, &claimed, "in_456", 8).await, Some(true));
    let stale = bed.arrival("e2", "{}");
    assert_eq!(stale.version, Some(7));
    let stale = bed.send(Arrival { takers: vec![route.taker()], ..stale }).await;
    assert_eq!(bed.take_if_any(&route).await, None);
    let row = bed.delivery(route.of(stale)).await;
    assert_eq!((row.state, row.reason), (State::Skipped, Some(Reason::Stale)));
}

async fn a_watermark_needs_a_lease(bed: Bed) {
    let claimed = working(&bed).await;
    let good = under(&claimed);
    let wrong = Under { lease: oncebox::delivery::Lease(good.lease.0 + 1), ..good };
    assert_eq!(bed.store.advance(wrong, "in_1", 1).await.unwrap(), None);
    bed.pass(61);
    assert_eq!(advance(&bed, &claimed, "in_1", 1).await, None);
    assert_eq!(bed.rows("lanes"), 0);
}

async fn objects_are_plain_names(bed: Bed) {
    let claimed = working(&bed).await;
    let longest = "o".repeat(limits::NAME_BYTES);
    assert_eq!(advance(&bed, &claimed, &longest, 1).await, Some(true));
    for bad in ["", "a\0b", "a\nb", &format!("{longest}o")] {
        let refused = bed.store.advance(under(&claimed), bad, 1).await;
        assert!(matches!(refused, Err(StoreError::Data(_))), "{bad:?}: {refused:?}");
    }
    assert_eq!(bed.rows("lanes"), 1);
}

async fn a_message_is_kept_as_an_event(mut bed: Bed) {
    let route = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let payload = r#"{"to":"a@b.c"}"#;
    let letter = Message {
        content_type: "application/cloudevents+json; charset=utf-8".into(),
        ..grouped(message("mailer", "mail:in_1", payload), "a@b.c")
    };
    let id = bed.write_new(&claimed, &letter).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    bed.reopen().await;

    let effect = bed.effect("outbox/mailer/mail:in_1").await;
    assert_eq!((effect.kind, effect.state), (EffectKind::Message, EffectState::Done));
    assert_eq!((effect.delivery, effect.attempt), (claimed.delivery, 1));
    assert_eq!(effect.result, Some(format!("\"{id}\"")));

    let receipt = bed.store.receipt(id).await.unwrap().expect("a receipt");
    let summary = &receipt.summary;
    assert_eq!(summary.source, "outbox/mailer");
    assert_eq!((summary.event_id.as_str(), summary.event_type.as_str()), ("mail:in_1", "message"));
    assert_eq!((summary.object.as_deref(), summary.version), (Some("a@b.c"), Some(1)));
    assert_eq!(summary.trust, Trust::Signed);
    assert_eq!(summary.deliveries.len(), 1);
    assert_eq!(receipt.body, payload.as_bytes());
    let headers = [
        ("content-type", letter.content_type.clone()),
        ("oncebox-cause", claimed.delivery.to_string()),
    ];
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    assert_eq!(decode_headers(&receipt.headers), headers);
    let row = bed.delivery(route.of(id)).await;
    assert_eq!((row.state, row.source.as_str()), (State::Received, "outbox/mailer"));
}

async fn a_message_is_claimed_under_its_key(bed: Bed) {
    let route = bed.destination("mailer").await;
    let cause = working(&bed).await;
    let id = bed.write_new(&cause, &message("mailer", "mail:in_1", "{}")).await;
    let claimed = bed.take(&route).await;
    assert_eq!((claimed.delivery, claimed.key.as_str()), (route.of(id), "mail:in_1"));
    assert_eq!(claimed.source_name, "outbox/mailer");
    assert_eq!((claimed.object.as_deref(), claimed.version), (None, None));
    let payloads = bed.store.payloads(&[id]).await.unwrap();
    assert_eq!(payloads[0].body, b"{}");
    let again = bed.try_again(&claimed, &route).await;
    assert_eq!((again.key.as_str(), again.counts.attempts), ("mail:in_1", 2));
    assert!(bed.finish(&again, Next::Processed).await);
    assert_eq!(bed.states(&route).await, ["mail:in_1 processed"]);
}

/// Whoever writes it again: the same attempt, the next one, another delivery.
async fn one_key_is_one_message(bed: Bed) {
    let (outbox, route) = (bed.destination("mailer").await, billing(&bed).await);
    let first = bed.working_on("e1", &route).await;
    let letter = message("mailer", "mail:in_1", "{}");
    let id = bed.write_new(&first, &letter).await;
    assert_eq!(bed.write(&first, &letter).await, Sent::Before(id));
    let again = bed.try_again(&first, &route).await;
    assert_eq!(bed.write(&again, &letter).await, Sent::Before(id));
    let key = "outbox/mailer/mail:in_1";
    assert_eq!(bed.effect(key).await.conflicts, 0);

    let second = bed.working_on("e2", &route).await;
    assert_eq!(bed.write(&second, &letter).await, Sent::Before(id));
    let other = Message { content_type: "text/plain".into(), ..grouped(letter, "group") };
    assert_eq!(bed.write(&second, &other).await, Sent::Before(id), "the payload decides");
    let conflicts = bed.store.effect_conflicts(key, 10).await.unwrap();
    assert_eq!(conflicts.len(), 1);
    assert_eq!((conflicts[0].receipt, conflicts[0].differs), (second.delivery.receipt, false));
    assert_eq!(bed.states(&outbox).await, ["mail:in_1 received"]);
    assert_eq!(bed.rows("outbox_groups"), 0);
    assert_eq!(messages(&bed).await, 1);
}

/// How many messages are kept for the mailer.
async fn messages(bed: &Bed) -> usize {
    let source = Some("outbox/mailer".to_owned());
    let filter = ReceiptFilter { source, limit: 1000, ..ReceiptFilter::default() };
    bed.store.receipts(&filter).await.unwrap().len()
}

async fn the_first_payload_stands(bed: Bed) {
    let (outbox, route) = (bed.destination("mailer").await, billing(&bed).await);
    let first = bed.working_on("e1", &route).await;
    let id = bed.write_new(&first, &message("mailer", "m1", "first")).await;
    let second = bed.working_on("e2", &route).await;
    let other = grouped(message("mailer", "m1", "second"), "group");
    assert_eq!(bed.write(&second, &other).await, Sent::Conflict(id));
    assert_eq!(bed.write(&second, &other).await, Sent::Conflict(id));
    assert_eq!(bed.write(&first, &other).await, Sent::Conflict(id));
    let conflicts = bed.store.effect_conflicts("outbox/mailer/m1", 10).await.unwrap();
    assert_eq!(conflicts.len(), 1);
    assert_eq!((conflicts[0].receipt, conflicts[0].differs), (second.delivery.receipt, true));
    assert_eq!(bed.store.payloads(&[id]).await.unwrap()[0].body, b"first");
    assert_eq!(bed.states(&outbox).await, ["m1 received"]);
    assert_eq!((messages(&bed).await, bed.rows("outbox_groups")), (1, 0));
}

async fn each_destination_has_its_own_keys(bed: Bed) {
    let (mailer, broker) = (bed.destination("mailer").await, bed.destination("broker").await);
    let claimed = working(&bed).await;
    let ids = [
        bed.write_new(&claimed, &grouped(message("mailer", "m1", "{}"), "g")).await,
        bed.write_new(&claimed, &grouped(message("broker", "m1", "{}"), "g")).await,
    ];
    assert_eq!(bed.take(&mailer).await.delivery, mailer.of(ids[0]));
    let second = bed.take(&broker).await;
    assert_eq!((second.delivery, second.version), (broker.of(ids[1]), Some(1)));
}

/// What was sent under the old name is not sent again under the new one.
async fn a_renamed_destination_keeps_its_keys(bed: Bed) {
    let route = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let id = bed.write_new(&claimed, &grouped(message("mailer", "m1", "{}"), "g")).await;
    let (old, new) = (Some("outbox/mailer"), "outbox/post");
    bed.store.register_source(new, old).await.unwrap();
    bed.store.register_route(new, old, &route.rules).await.unwrap();
    assert_eq!(bed.write(&claimed, &message("post", "m1", "{}")).await, Sent::Before(id));
    assert_eq!(bed.write(&claimed, &message("mailer", "m1", "{}")).await, Sent::NoDestination);
    bed.write_new(&claimed, &grouped(message("post", "m2", "{}"), "g")).await;
    assert_eq!(bed.work_off(&route).await, ["m1", "m2"]);
    assert_eq!(bed.query("SELECT last FROM outbox_groups"), "2");
}

async fn a_message_outlives_its_payload_as_a_key(bed: Bed) {
    let route = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let letter = message("mailer", "m1", "{}");
    let id = bed.write_new(&claimed, &letter).await;
    let all = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::from_bytes([0x7f; 16]),
        sources: bed.store.sources().await.unwrap().into_iter().map(|(no, _)| no).collect(),
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    assert_eq!(bed.store.expire_receipts(&all).await.unwrap().removed, 0, "it is on its way");
    assert_eq!(bed.work_off(&route).await, ["m1"]);
    assert_eq!(bed.store.expire_receipts(&all).await.unwrap().removed, 1);
    assert_eq!(bed.store.receipt(id).await.unwrap(), None);
    assert_eq!(bed.write(&claimed, &letter).await, Sent::Before(id));
    let other = message("mailer", "m1", "other");
    assert_eq!(bed.write(&claimed, &other).await, Sent::Conflict(id));
}

async fn a_message_needs_a_destination(bed: Bed) {
    let claimed = working(&bed).await;
    let letter = message("mailer", "m1", "{}");
    assert_eq!(bed.write(&claimed, &letter).await, Sent::NoDestination);
    bed.store.register_source("outbox/mailer", None).await.unwrap();
    assert_eq!(bed.write(&claimed, &letter).await, Sent::NoDestination);
    bed.store.register_route("mailer", None, &RouteRules::default()).await.unwrap();
    assert_eq!(bed.write(&claimed, &letter).await, Sent::NoDestination);
    assert_eq!(bed.rows("effects"), 0);
    bed.destination("mailer").await;
    assert!(matches!(bed.write(&claimed, &letter).await, Sent::New(_)));
}

async fn a_message_needs_a_lease(bed: Bed) {
    let route = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let letter = grouped(message("mailer", "m1", "{}"), "g");
    let good = under(&claimed);
    let wrong = Under { lease: oncebox::delivery::Lease(good.lease.0 + 1), ..good };
    assert_eq!(bed.store.send(wrong, &letter).await.unwrap(), Sent::LeaseLost);
    bed.pass(61);
    assert_eq!(bed.write(&claimed, &letter).await, Sent::LeaseLost);
    assert_eq!((bed.rows("effects"), bed.rows("outbox_groups")), (0, 0));
    assert_eq!(bed.states(&route).await, [""; 0]);
}

/// Whatever is due first: numbers decide inside a group, and groups do not wait for each other.
async fn messages_of_a_group_go_in_order(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    for (key, group) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a"), ("b2", "b")] {
        bed.write_new(&claimed, &grouped(message("mailer", key, "{}"), group)).await;
    }
    bed.write_new(&claimed, &message("mailer", "alone", "{}")).await;
    for (key, ms) in [("a3", 900), ("a2", 600), ("b2", 300)] {
        bed.backdate(key, ms);
    }
    let numbers = bed.query("SELECT name, last FROM outbox_groups ORDER BY name");
    assert_eq!(numbers, "a|3\nb|2");

    let heads = bed.take_all(&outbox).await;
    let ids: BTreeSet<_> = heads.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!(ids, BTreeSet::from(["a1", "alone", "b1"]));
    let of = |id: &str| heads.iter().find(|claimed| claimed.event_id == id).unwrap();
    assert!(bed.finish(of("a1"), Next::Processed).await);
    let second = bed.take(&outbox).await;
    assert_eq!((second.event_id.as_str(), second.version), ("a2", Some(2)));
    assert!(bed.finish(&second, Next::Retry(Duration::from_secs(600))).await);
    assert_eq!(bed.take_if_any(&outbox).await, None, "a retrying head holds its group");
    assert!(bed.finish(of("b1"), Next::Processed).await);
    assert_eq!(bed.work_off(&outbox).await, ["b2"]);
    bed.pass(600);
    assert_eq!(bed.work_off(&outbox).await, ["a2", "a3"]);
}

async fn a_dead_message_holds_its_group(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    for key in ["a1", "a2"] {
        bed.write_new(&claimed, &grouped(message("mailer", key, "{}"), "a")).await;
    }
    let dead = bed.kill(&outbox).await;
    assert_eq!(bed.take_if_any(&outbox).await, None);
    assert_eq!(bed.states(&outbox).await, ["a1 dead", "a2 held:order"]);
    assert_eq!(replay(&bed, dead.receipt, &outbox).await, [Reopened::Opened]);
    assert_eq!(bed.work_off(&outbox).await, ["a1", "a2"]);
}

async fn replay(bed: &Bed, receipt: ReceiptId, route: &Route) -> Vec<Reopened> {
    let filter = ReplayFilter { receipts: vec![receipt], ..Default::default() };
    let job = Replay::new(filter, How::default(), 1, &act("again"));
    bed.store.create_replay(&job, &act("again")).await.unwrap();
    let job = bed.store.take_replay(Some(job.id), LEASE).await.unwrap().expect("taken");
    let step = ReplayStep {
        id: job.id,
        lease: job.lease,
        open: vec![(route.of(receipt), false)],
        passed: 0,
        cursor: Some(route.of(receipt)),
        done: true,
        how: How::default(),
    };
    bed.store.step_replay(&step).await.unwrap().expect("the lease is ours")
}

async fn a_dead_message_is_replayed_under_its_key(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let cause = working(&bed).await;
    let letter = message("mailer", "m1", "{}");
    let id = bed.write_new(&cause, &letter).await;
    bed.kill(&outbox).await;
    assert_eq!(bed.write(&cause, &letter).await, Sent::Before(id), "dead is not forgotten");
    assert_eq!(replay(&bed, id, &outbox).await, [Reopened::Opened]);
    let again = bed.take(&outbox).await;
    assert_eq!((again.key.as_str(), again.replays, again.counts.attempts), ("m1", 1, 1));
    assert_eq!(bed.store.payloads(&[id]).await.unwrap()[0].body, b"{}");
    assert!(bed.finish(&again, Next::Processed).await);
}

async fn a_new_message_is_announced(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let mut due = bed.store.due();
    due.mark_unchanged();
    bed.write_new(&claimed, &message("mailer", "m1", "{}")).await;
    announced(&mut due).await;
    assert_eq!(bed.work_off(&outbox).await, ["m1"]);
}

/// Something is announced, sooner or later.
async fn announced(due: &mut watch::Receiver<u64>) {
    let heard = tokio::time::timeout(oncebox_testkit::wait::DEADLINE, due.changed());
    heard.await.expect("an announcement").expect("the store is open");
}

async fn one_of_many_writes_a_message(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let route = billing(&bed).await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        let (store, claimed) = (bed.store.clone(), bed.working_on(&format!("e{n}"), &route).await);
        tasks.push(tokio::spawn(async move {
            let mut sent = Vec::new();
            for m in 0..10 {
                let letter = grouped(message("mailer", &format!("m{m}"), "{}"), "group");
                sent.push(store.send(under(&claimed), &letter).await.unwrap());
            }
            sent
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    for m in 0..10 {
        let sent: Vec<Sent> = all.iter().map(|sent| sent[m]).collect();
        let new: Vec<_> = sent.iter().filter(|sent| matches!(sent, Sent::New(_))).collect();
        let [Sent::New(id)] = new[..] else { panic!("{sent:?}") };
        assert_eq!(sent.iter().filter(|sent| **sent == Sent::Before(*id)).count(), 3);
        assert_eq!(bed.effect(&format!("outbox/mailer/m{m}")).await.conflicts, 3);
    }
    assert_eq!(bed.states(&outbox).await.len(), 10);
    assert_eq!(bed.query("SELECT last FROM outbox_groups"), "10");
}

/// Several write to one group at once: each message has a number of its own, and none is left out.
async fn a_group_is_numbered_without_gaps(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let route = billing(&bed).await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        let (store, claimed) = (bed.store.clone(), bed.working_on(&format!("e{n}"), &route).await);
        tasks.push(tokio::spawn(async move {
            for m in 0..10 {
                let letter = grouped(message("mailer", &format!("m{n}_{m}"), "{}"), "group");
                let sent = store.send(under(&claimed), &letter).await.unwrap();
                assert!(matches!(sent, Sent::New(_)), "{sent:?}");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut numbers = Vec::new();
    while let Some(claimed) = bed.take_if_any(&outbox).await {
        numbers.push(claimed.version.unwrap());
        assert!(bed.finish(&claimed, Next::Processed).await);
    }
    assert_eq!(numbers, (1..=40).collect::<Vec<i64>>());
    let ids: HashSet<_> = bed.states(&outbox).await.into_iter().collect();
    assert_eq!(ids.len(), 40);
}

/// What was sent is not taken back by that.
async fn a_forgotten_message_may_be_written_again(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let letter = message("mailer", "m1", "{}");
    let first = bed.write_new(&claimed, &letter).await;
    let acted = bed.store.forget_effect("outbox/mailer/m1", &act("send it again")).await.unwrap();
    assert_eq!(acted, EffectActed::Done { released: 0 });
    let second = bed.write_new(&claimed, &letter).await;
    assert_ne!(first, second);
    assert_eq!(bed.work_off(&outbox).await, ["m1", "m1"]);
}

async fn bad_messages_are_refused(bed: Bed) {
    let outbox = bed.destination("mailer").await;
    let claimed = working(&bed).await;
    let letter = message("mailer", "m1", "{}");
    let payload = Bytes::from(vec![b'x'; limits::MESSAGE_BYTES + 1]);
    for bad in [
        Message { payload, ..letter.clone() },
        Message { content_type: String::new(), ..letter.clone() },
        Message { content_type: "a/b\nx-evil: 1".into(), ..letter.clone() },
        Message { content_type: "x".repeat(256), ..letter.clone() },
    ] {
        let refused = bed.store.send(under(&claimed), &bad).await;
        assert!(matches!(refused, Err(StoreError::Data(_))), "{refused:?}");
    }
    let long = bed.destination(&"d".repeat(600)).await;
    let key = "k".repeat(limits::KEY_BYTES);
    for destination in ["d".repeat(600), "d".repeat(5000)] {
        let too_long = message(&destination, &key, "{}");
        let refused = bed.store.send(under(&claimed), &too_long).await;
        let Err(StoreError::Data(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("choose shorter ones"), "{why}");
    }
    assert_eq!((bed.rows("effects"), messages(&bed).await), (0, 0));
    assert_eq!(bed.states(&long).await, [""; 0]);

    let payload = Bytes::from(vec![b'x'; limits::MESSAGE_BYTES]);
    let largest = bed.write_new(&claimed, &Message { payload, ..letter.clone() }).await;
    let nothing = Message { payload: Bytes::new(), ..message("mailer", "m2", "") };
    let nothing = bed.write_new(&claimed, &nothing).await;
    let claims = bed.claim(&outbox, 10).await.claimed;
    let ids: HashSet<_> = claims.iter().map(|claimed| claimed.delivery.receipt).collect();
    assert_eq!(ids, HashSet::from([largest, nothing]));
}
