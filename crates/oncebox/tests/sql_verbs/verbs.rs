//! What each verb does, and what is there afterwards.

use oncebox::delivery::Next;
use oncebox::effect::{Begun, EffectKind, EffectState, OnUnknown, Settled};
use oncebox::receipt::decode_headers;
use oncebox::store::EffectFilter;

use crate::bed::{Desk, entering, key, under};

/// Marks an invoice, queues an e-mail, and moves the watermark, next to the worker's own table: all
/// of it, or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn verbs_commit_with_what_is_written_beside_them() {
    let desk = Desk::new().await;
    desk.bed.query("CREATE TABLE invoices (id text)");
    let claimed = desk.claimed("e1").await;
    let session = desk.session().await;
    let delivery = claimed.delivery;
    for last in ["ROLLBACK", "COMMIT"] {
        session.enter(&claimed).await;
        session.run("INSERT INTO oncebox.invoices VALUES ('in_456')").await;
        assert!(session.yes("once('receipt-email:in_456', '{\"n\": 1}')").await);
        assert!(session.yes(&format!("step('{delivery}', 'charge')")).await);
        session.run(&format!("SELECT oncebox.set_result('{delivery}', 'charge', '7')")).await;
        assert!(session.yes("send('mailer', 'receipt-email:in_456', '{\"a\": 1}')").await);
        assert!(session.yes("advance('in_456', 3)").await);
        session.run(last).await;
        let kept = usize::from(last == "COMMIT");
        let tables = ["invoices", "lanes"].map(|table| desk.bed.rows(table));
        assert_eq!((tables, desk.bed.rows("effects")), ([kept; 2], 3 * kept), "{last}");
        // The event itself and the message.
        assert_eq!(desk.bed.rows("receipts"), 1 + kept);
    }

    let filter = EffectFilter { limit: 10, ..EffectFilter::default() };
    let effects = desk.bed.store.effects(&filter).await.unwrap();
    let known: Vec<_> = effects.iter().map(|e| (e.key.as_str(), e.kind)).collect();
    let charge = format!("{}/billing/charge", delivery.receipt);
    let step = (charge.as_str(), EffectKind::Step);
    let message = ("outbox/mailer/receipt-email:in_456", EffectKind::Message);
    assert_eq!(known, [step, message, ("receipt-email:in_456", EffectKind::Once)]);
    for effect in &effects {
        assert_eq!((effect.delivery, effect.attempt), (delivery, 1));
        assert_eq!((effect.state, effect.route.as_str()), (EffectState::Done, "billing"));
    }
    assert_eq!(effects[0].result.as_deref(), Some("7"));
    assert_eq!(effects[2].result.as_deref(), Some("{\"n\": 1}"));
}

/// True for the first, false ever after, and the ledger says who it was. Another delivery that
/// comes too late is noted, the same one is not.
#[tokio::test(flavor = "multi_thread")]
async fn once_is_true_for_the_first() {
    let desk = Desk::new().await;
    let first = desk.claimed("e1").await;
    let session = desk.session().await;
    session.enter(&first).await;
    assert!(session.yes("once('k')").await);
    assert!(!session.yes("once('k')").await);
    session.commit().await;
    session.enter(&first).await;
    assert!(!session.yes("once('k', '1')").await);
    session.commit().await;
    assert!(desk.bed.store.effect_conflicts("k", 9).await.unwrap().is_empty());

    let second = desk.at_work("e2").await;
    assert!(!second.yes("once('k')").await);
    assert!(!second.yes("once('k')").await);
    let who = "SELECT receipt || ' ' || state || ' ' || route || ' ' || attempt || kind";
    let who = second.text(&format!("{who} FROM oncebox.effect('k')")).await;
    assert_eq!(who, Some(format!("{} done billing 1once", first.delivery.receipt)));
    second.commit().await;
    let conflicts = desk.bed.store.effect_conflicts("k", 9).await.unwrap();
    assert_eq!(conflicts.len(), 1);
    assert_eq!((conflicts[0].route.as_str(), conflicts[0].differs), ("billing", false));
    assert_ne!(conflicts[0].receipt, first.delivery.receipt);
}

/// What another delivery has begun outside a transaction is open, and nobody is told a lie about
/// it. What the same lease has begun is its own to do.
#[tokio::test(flavor = "multi_thread")]
async fn once_meets_what_was_begun_elsewhere() {
    let desk = Desk::new().await;
    let mine = desk.claimed("e1").await;
    let session = desk.session().await;
    let store = &desk.bed.store;
    let begun = store.begin_effect(under(&mine), &key("k"), OnUnknown::Retry).await.unwrap();
    assert!(matches!(begun, Begun::Yours { .. }), "{begun:?}");

    let other = desk.at_work("e2").await;
    let (code, hint) = other.refusal("SELECT oncebox.once('k')").await;
    assert_eq!(code, "OB425");
    assert!(hint.contains("oncebox effects settle"), "{hint}");
    other.roll_back().await;

    session.enter(&mine).await;
    assert!(session.yes("once('k', '1')").await);
    session.commit().await;
    let done = store.complete_effect(under(&mine), &key("k"), None).await.unwrap();
    assert_eq!(done, Settled::Done);
    let effect = store.effect("k").await.unwrap().unwrap();
    assert_eq!((effect.state, effect.result.as_deref()), (EffectState::Done, Some("1")));
}

/// Attempt one does stage one and dies in stage two. Attempt two skips stage one and has its
/// result.
#[tokio::test(flavor = "multi_thread")]
async fn steps_and_their_results_survive_a_retry() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let delivery = claimed.delivery;
    let session = desk.session().await;
    let charge = format!("step('{delivery}', 'charge')");
    let mail = format!("step('{delivery}', 'mail')");
    session.enter(&claimed).await;
    assert!(session.yes(&charge).await);
    let nothing = session.text(&format!("oncebox.get_result('{delivery}', 'charge')")).await;
    assert_eq!(nothing, None);
    let set = format!("SELECT oncebox.set_result('{delivery}', 'charge', '{{\"id\": \"ch_1\"}}')");
    session.run(&set).await;
    session.commit().await;
    session.enter(&claimed).await;
    assert!(session.yes(&mail).await);
    session.roll_back().await;

    let again = desk.retry(&claimed).await;
    session.enter(&again).await;
    assert!(!session.yes(&charge).await);
    let id = format!("oncebox.get_result('{delivery}', 'charge') ->> 'id'");
    assert_eq!(session.text(&id).await.as_deref(), Some("ch_1"));
    assert!(session.yes(&mail).await);
    // What the first attempt has recorded is not for the second to change.
    let (code, hint) = session.refusal(&set).await;
    assert_eq!(code, "OB404");
    assert!(hint.contains("oncebox.step"), "{hint}");
    session.commit().await;
    let steps = "SELECT attempt FROM effects ORDER BY key";
    assert_eq!(desk.bed.query(steps), "1\n2");
}

/// One key, one message, whoever writes it and however the payload is typed. Another payload under
/// the same key is noted, and the first stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_written_once() {
    let desk = Desk::new().await;
    let session = desk.at_work("e1").await;
    assert!(session.yes("send('mailer', 'm1', '{\"a\": 1}')").await);
    assert!(!session.yes("send('mailer', 'm1', '{\"a\": 1}'::text)").await);
    assert!(!session.yes("send('mailer', 'm1', '{\"a\":  1}'::jsonb)").await);
    assert!(!session.yes("send('mailer', 'm1', convert_to('{\"a\": 1}', 'UTF8'))").await);
    session.commit().await;
    assert_eq!(desk.bed.rows("effect_conflicts"), 0);

    let same = desk.at_work("e2").await;
    assert!(!same.yes("send('mailer', 'm1', '{\"a\": 1}')").await);
    same.commit().await;
    let other = desk.at_work("e3").await;
    assert!(!other.yes("send('mailer', 'm1', '{\"a\": 2}')").await);
    other.commit().await;
    let differs = "SELECT differs FROM effect_conflicts ORDER BY at";
    assert_eq!(desk.bed.query(differs), "f\nt");

    let relayed = desk.bed.take(&desk.outbox).await;
    assert_eq!((relayed.key.as_str(), relayed.event_type.as_str()), ("m1", "message"));
    let payload = desk.bed.store.payloads(&[relayed.delivery.receipt]).await.unwrap();
    assert_eq!(payload[0].body, b"{\"a\": 1}");
    assert_eq!(desk.bed.rows("deliveries"), 4);
}

/// A message goes the way of an event: claimed in the order of its group, under its key, with what
/// it was written for.
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_group_are_relayed_in_order() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let session = desk.session().await;
    session.enter(&claimed).await;
    for n in 1..=3 {
        let typed = "content_type => 'text/plain'";
        let send = format!("send('mailer', 'm{n}', '{n}', \"group\" => 'g', {typed})");
        assert!(session.yes(&send).await);
    }
    session.commit().await;
    let first = desk.bed.take(&desk.outbox).await;
    assert_eq!((first.key.as_str(), first.object.as_deref()), ("m1", Some("g")));
    assert_eq!((first.version, first.guarded), (Some(1), true));
    assert!(desk.bed.take_if_any(&desk.outbox).await.is_none());
    let payload = desk.bed.store.payloads(&[first.delivery.receipt]).await.unwrap().remove(0);
    let headers = decode_headers(&payload.headers);
    let cause = claimed.delivery.to_string().into_bytes();
    let typed = ("content-type".to_owned(), b"text/plain".to_vec());
    assert_eq!(headers, [typed, ("oncebox-cause".to_owned(), cause)]);
    assert!(desk.bed.finish(&first, Next::Processed).await);
    assert_eq!(desk.bed.work_off(&desk.outbox).await, ["m2", "m3"]);
}

/// An older version is stale, an equal one is not, and each route and source has its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_watermark_never_goes_back() {
    let desk = Desk::new().await;
    let session = desk.at_work("e1").await;
    for (version, newest) in [(5, true), (5, true), (4, false), (i64::MIN, false), (6, true)] {
        assert_eq!(session.yes(&format!("advance('x', {version})")).await, newest, "{version}");
    }
    assert!(session.yes("advance('y', 1)").await);
    session.commit().await;
    assert_eq!(desk.bed.query("SELECT object, applied FROM lanes ORDER BY 1"), "x|6\ny|1");
}

/// Several deliveries in one transaction, one after the other: each verb is about the last that was
/// entered, and what is rolled back to before it is not entered.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_may_enter_one_delivery_after_the_other() {
    let desk = Desk::new().await;
    let (first, second) = (desk.claimed("e1").await, desk.claimed("e2").await);
    let session = desk.session().await;
    session.enter(&first).await;
    assert!(session.yes("once('a')").await);
    session.run(&format!("SAVEPOINT s; {}", entering(&second))).await;
    assert!(session.yes("once('b')").await);
    assert!(!session.yes("once('a')").await);
    session.run("ROLLBACK TO s").await;
    assert!(session.yes("once('c')").await);
    session.commit().await;
    let owners = format!("SELECT key FROM effects WHERE receipt = '{}'", first.delivery.receipt);
    assert_eq!(desk.bed.query(&format!("{owners} ORDER BY key")), "a\nc");
    assert_eq!(desk.bed.rows("effect_conflicts"), 0);
}

/// Ids of messages are those of receipts: of their time, and of the right version.
#[tokio::test(flavor = "multi_thread")]
async fn new_ids_tell_their_time() {
    let desk = Desk::new().await;
    let session = desk.session().await;
    let check = "SELECT bool_and(
            abs(extract(epoch FROM clock_timestamp()) * 1000
                - ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint) < 60000
            AND substr(id::text, 15, 1) = '7'
            AND substr(id::text, 20, 1) IN ('8', '9', 'a', 'b')
        ) AND count(DISTINCT id) = 1000
        FROM (SELECT oncebox.new_id() AS id FROM generate_series(1, 1000)) AS ids";
    assert_eq!(session.text(check).await.as_deref(), Some("true"));
}

/// Names come from the columns of others, collated as those are.
#[tokio::test(flavor = "multi_thread")]
async fn keys_may_be_collated() {
    let desk = Desk::new().await;
    desk.bed.query("CREATE TABLE keys (key text COLLATE \"POSIX\")");
    desk.bed.query("INSERT INTO keys VALUES ('k')");
    let session = desk.at_work("e1").await;
    for first in [true, false] {
        for verb in ["once(key)", "send('mailer', key, 'payload'::text, key)"] {
            let said = session.text(&format!("SELECT oncebox.{verb} FROM oncebox.keys")).await;
            assert_eq!(said, Some(first.to_string()), "{verb}");
        }
        let advanced = "SELECT oncebox.advance(key, 1) FROM oncebox.keys";
        assert_eq!(session.text(advanced).await.as_deref(), Some("true"));
    }
    let state = "SELECT e.state FROM oncebox.keys AS k, oncebox.effect(k.key) AS e";
    assert_eq!(session.text(state).await.as_deref(), Some("done"));
}
