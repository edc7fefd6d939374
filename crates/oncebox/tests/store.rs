//! What a store promises, told once and run on each.

use std::sync::Arc;

use oncebox::identity::IdentityKey;
use oncebox::receipt::{Arrival, Mark, Oddity, ReceiptId, Recorded, Taker};
use oncebox::route::RouteRules;
use oncebox::store::{
    ExpireRange, Purpose, ReceiptFilter, Repeat, Store, StoreError, SweepCursor, day_of,
};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    a_new_event_is_kept_whole,
    one_identity_gets_one_receipt,
    a_repeat_outlives_a_restart,
    repeats_inside_a_batch_are_settled_there,
    concurrent_copies_have_one_winner,
    the_same_id_with_another_body_is_a_conflict,
    every_conflict_is_a_receipt,
    an_unsigned_id_does_not_let_a_body_in_twice,
    a_conflict_does_not_claim_its_body,
    a_guard_holds_whatever_the_content,
    sources_do_not_share_identities,
    deliveries_commit_with_their_receipt,
    a_batch_tried_again_keeps_its_receipts,
    one_bad_row_changes_nothing,
    repeats_are_added_up,
    lists_page_and_filter,
    a_rename_keeps_identities,
    a_name_given_up_leads_to_the_same_source,
    names_and_secrets_keep_their_numbers,
    the_strongest_proof_stays_required,
    a_full_source_takes_only_repeats,
    the_newest_receipt_is_known,
    payloads_expire_before_identities,
    an_open_delivery_keeps_its_receipt_and_identity,
    a_repeat_keeps_an_identity_young,
    both_keys_of_an_event_age_from_when_it_was_seen,
    a_conflict_with_a_receipt_that_expired_is_kept,
    removed_rows_make_room,
    remembered_ids_are_duplicates,
    a_store_without_migrations_is_refused,
);

/// Every field comes back as it went in.
async fn a_new_event_is_kept_whole(bed: Bed) {
    let mut arrival = bed.arrival("evt_1", r#"{"id":"evt_1"}"#);
    arrival.signed_at = Some(time(NOON - 3));
    arrival.headers = bytes::Bytes::from_static(b"x-a: 1\nx-b: caf\xe9\n");
    arrival.body = vec![0, 255, b'{', 10, 13].into();
    let secret = bed.store.register_secret(bed.source, "0badcafe", time(NOON)).await.unwrap();
    arrival.secret = secret;

    assert_eq!(bed.record(vec![arrival.clone()]).await, [Recorded::Accepted]);

    let receipt = bed.store.receipt(arrival.receipt).await.unwrap().unwrap();
    assert_eq!(receipt.summary.receipt, arrival.receipt);
    assert_eq!(receipt.summary.source, "stripe-live");
    assert_eq!(receipt.summary.event_id, "evt_1");
    assert_eq!(receipt.summary.trust, arrival.trust);
    assert_eq!(receipt.summary.event_type, "invoice.paid");
    assert_eq!(receipt.summary.object.as_deref(), Some("in_456"));
    assert_eq!(receipt.summary.version, Some(7));
    assert_eq!(receipt.summary.received_at, arrival.received_at);
    assert_eq!(receipt.summary.bytes, 5);
    assert_eq!(receipt.summary.repeats, None);
    assert_eq!(receipt.secret, (secret, Some("0badcafe".into())));
    assert_eq!(receipt.signed_at, arrival.signed_at);
    assert_eq!(receipt.headers, arrival.headers);
    assert_eq!(receipt.body, &arrival.body[..]);
    assert_eq!(receipt.digest, arrival.digest);
    assert_eq!(bed.store.receipt(ReceiptId::floor(time(0))).await.unwrap(), None);
}

async fn one_identity_gets_one_receipt(bed: Bed) {
    let first = bed.arrival("evt_1", "{}");
    let again = bed.arrival("evt_1", "{}");
    let receipt = first.receipt;
    assert_eq!(bed.record(vec![first]).await, [Recorded::Accepted]);
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt }]);
    assert_eq!(bed.event_ids().await, ["evt_1"]);
    assert_eq!(bed.store.identity(bed.source, "evt_1").await.unwrap(), Some(receipt));
    assert_eq!(bed.store.identity(bed.source, "evt_2").await.unwrap(), None);
}

async fn a_repeat_outlives_a_restart(mut bed: Bed) {
    let first = bed.arrival("evt_1", "{}");
    let receipt = first.receipt;
    bed.record(vec![first]).await;
    bed.reopen().await;
    let again = bed.arrival("evt_1", "{}");
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt }]);
    assert_eq!(bed.event_ids().await, ["evt_1"]);
}

async fn repeats_inside_a_batch_are_settled_there(bed: Bed) {
    let batch: Vec<Arrival> =
        ["b", "a", "b", "a", "b"].iter().map(|id| bed.arrival(id, "{}")).collect();
    let (b, a) = (batch[0].receipt, batch[1].receipt);
    let outcomes = bed.record(batch).await;
    assert_eq!(
        outcomes,
        [
            Recorded::Accepted,
            Recorded::Accepted,
            Recorded::Duplicate { receipt: b },
            Recorded::Duplicate { receipt: a },
            Recorded::Duplicate { receipt: b },
        ]
    );
    assert_eq!(bed.event_ids().await, ["b", "a"]);
}

/// Eight tasks race with batches of the same fifty events, in different orders.
async fn concurrent_copies_have_one_winner(bed: Bed) {
    let bed = Arc::new(bed);
    let mut tasks = tokio::task::JoinSet::new();
    for turn in 0..8 {
        let bed = bed.clone();
        tasks.spawn(async move {
            let mut batch: Vec<Arrival> =
                (0..50).map(|n| bed.arrival(&format!("evt_{n}"), "{}")).collect();
            batch.rotate_left(turn * 6);
            if turn % 2 == 0 {
                batch.reverse();
            }
            bed.record(batch).await
        });
    }
    let outcomes: Vec<Recorded> = tasks.join_all().await.concat();
    let accepted = outcomes.iter().filter(|outcome| **outcome == Recorded::Accepted).count();
    assert_eq!((accepted, outcomes.len()), (50, 400));
    assert_eq!(bed.receipts().await.len(), 50);
}

async fn the_same_id_with_another_body_is_a_conflict(bed: Bed) {
    let first = bed.arrival("evt_1", r#"{"amount":1}"#);
    let other = bed.arrival("evt_1", r#"{"amount":2}"#);
    let (receipt, odd) = (first.receipt, other.receipt);
    bed.record(vec![first]).await;
    assert_eq!(bed.record(vec![other]).await, [Recorded::Conflict { first: receipt }]);

    let kept = bed.store.receipt(receipt).await.unwrap().unwrap();
    assert_eq!(kept.body, br#"{"amount":1}"#);
    assert_eq!(kept.odd.len(), 1);
    assert_eq!((kept.odd[0].receipt, kept.odd[0].oddity), (odd, Oddity::Conflict));
    let other = bed.store.receipt(odd).await.unwrap().unwrap();
    assert_eq!(other.body, br#"{"amount":2}"#);
    let mark = Mark { oddity: Oddity::Conflict, first: Some(receipt) };
    assert_eq!(other.summary.mark, Some(mark));
    assert_eq!(bed.event_ids().await, ["evt_1", "evt_1"]);
}

/// Each new content is a receipt; a copy of one is its duplicate.
async fn every_conflict_is_a_receipt(bed: Bed) {
    let first = bed.send(bed.arrival("evt_1", "0")).await;
    for n in 1..=30 {
        let (other, copy) = (n.to_string(), n.to_string());
        let other = bed.arrival("evt_1", &other);
        let receipt = other.receipt;
        assert_eq!(bed.record(vec![other]).await, [Recorded::Conflict { first }]);
        let copy = bed.arrival("evt_1", &copy);
        assert_eq!(bed.record(vec![copy]).await, [Recorded::Duplicate { receipt }]);
    }
    assert_eq!(bed.store.receipt(first).await.unwrap().unwrap().odd.len(), 30);
    assert_eq!(bed.receipts().await.len(), 31);
}

/// A captured body under a new unsigned id is a twin, in the same batch or later.
async fn an_unsigned_id_does_not_let_a_body_in_twice(bed: Bed) {
    let first = bed.unsigned("d-1", "body");
    let receipt = first.receipt;
    let outcomes = bed.record(vec![first, bed.unsigned("d-2", "body")]).await;
    assert_eq!(outcomes, [Recorded::Accepted, Recorded::Twin { first: receipt }]);
    let twin = bed.unsigned("d-3", "body");
    let own = twin.receipt;
    assert_eq!(bed.record(vec![twin]).await, [Recorded::Twin { first: receipt }]);
    // A copy of it is its duplicate.
    let outcomes = bed.record(vec![bed.unsigned("d-3", "body"), bed.unsigned("d-4", "new")]).await;
    assert_eq!(outcomes, [Recorded::Duplicate { receipt: own }, Recorded::Accepted]);

    assert_eq!(bed.event_ids().await, ["d-1", "d-2", "d-3", "d-4"]);
    let odd = bed.store.receipt(receipt).await.unwrap().unwrap().odd;
    let odd: Vec<_> = odd.iter().map(|odd| (odd.event_id.as_str(), odd.oddity)).collect();
    assert_eq!(odd, [("d-2", Oddity::Twin), ("d-3", Oddity::Twin)]);
}

/// Somebody sends a captured body under an id that is already taken. When the genuine event
/// comes under its own id, it must get in.
async fn a_conflict_does_not_claim_its_body(bed: Bed) {
    bed.record(vec![bed.unsigned("d-1", "first")]).await;
    let outcomes = bed.record(vec![bed.unsigned("d-1", "second")]).await;
    assert!(matches!(outcomes[..], [Recorded::Conflict { .. }]));
    assert_eq!(bed.record(vec![bed.unsigned("d-2", "second")]).await, [Recorded::Accepted]);
}

/// Where the guard is something else than the body, as a token that was signed: a token of a
/// retry guards as well, and another body under a known token is a twin.
async fn a_guard_holds_whatever_the_content(bed: Bed) {
    let with = |id: &str, body: &str, token: u8| Arrival {
        guard: Some([token; 32]),
        ..bed.unsigned(id, body)
    };
    let first = with("e-1", "body", 1);
    let receipt = first.receipt;
    bed.record(vec![first]).await;
    assert_eq!(bed.record(vec![with("e-1", "body", 2)]).await, [Recorded::Duplicate { receipt }]);
    for token in [1, 2] {
        let forged = with(&format!("forged-{token}"), "forged", token);
        assert_eq!(bed.record(vec![forged]).await, [Recorded::Twin { first: receipt }]);
    }
    assert_eq!(bed.record(vec![with("e-2", "body", 3)]).await, [Recorded::Accepted]);
    assert_eq!(bed.event_ids().await, ["e-1", "forged-1", "forged-2", "e-2"]);
}

async fn sources_do_not_share_identities(bed: Bed) {
    let other = bed.store.register_source("stripe-test", None).await.unwrap();
    let first = bed.arrival("evt_1", "{}");
    let second = Arrival { source: other, ..bed.arrival("evt_1", "{}") };
    assert_eq!(bed.record(vec![first, second]).await, [Recorded::Accepted; 2]);
    assert_eq!(bed.receipts().await.len(), 2);
}

async fn deliveries_commit_with_their_receipt(bed: Bed) {
    let billing = bed.store.register_route("billing", None, &RouteRules::default()).await.unwrap();
    let audit = bed.store.register_route("audit", None, &RouteRules::default()).await.unwrap();
    let routed = Arrival {
        takers: vec![Taker::plain(billing), Taker::plain(audit)],
        ..bed.arrival("evt_1", "{}")
    };
    let again = Arrival { takers: vec![Taker::plain(billing)], ..bed.arrival("evt_1", "{}") };
    bed.record(vec![routed, bed.arrival("evt_2", "{}"), again]).await;

    let receipts = bed.receipts().await;
    let states: Vec<_> = receipts[0]
        .deliveries
        .iter()
        .map(|delivery| (delivery.route.as_str(), delivery.state.as_str(), delivery.attempts))
        .collect();
    assert_eq!(states, [("audit", "received", 0), ("billing", "received", 0)]);
    assert!(receipts[1].deliveries.is_empty());
    let unrouted = ReceiptFilter { unrouted: true, limit: 10, ..Default::default() };
    let unrouted = bed.store.receipts(&unrouted).await.unwrap();
    assert_eq!(unrouted.len(), 1);
    assert_eq!(unrouted[0].event_id, "evt_2");
}

/// What ingest does when the outcome of a commit is unknown: the same batch again. What is ours
/// is accepted, a twin stays a twin.
async fn a_batch_tried_again_keeps_its_receipts(bed: Bed) {
    let batch = vec![
        bed.arrival("evt_1", "{}"),
        bed.unsigned("d-1", "body"),
        bed.unsigned("d-2", "body"),
        bed.arrival("evt_1", "{}"),
    ];
    let first = bed.record(batch.clone()).await;
    let again = bed.record(batch.clone()).await;
    assert_eq!(first[..2], [Recorded::Accepted; 2]);
    assert_eq!(again[..2], [Recorded::Accepted; 2]);
    assert_eq!(first[3], Recorded::Duplicate { receipt: batch[0].receipt });
    assert_eq!(again[3], first[3]);
    assert_eq!(first[2], Recorded::Twin { first: batch[1].receipt });
    assert_eq!(again[2], first[2]);
    assert_eq!(bed.event_ids().await, ["evt_1", "d-1", "d-2"]);
}

/// A value the database refuses takes its batch with it, whole, and is told as such.
async fn one_bad_row_changes_nothing(bed: Bed) {
    let bad = Arrival { event_id: String::new(), ..bed.arrival("evt_2", "{}") };
    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("evt_1", "{}"), bad]);
    let error = bed.store.record(batch).await.unwrap_err();
    assert!(matches!(error, StoreError::Data(_)), "{error:?}");
    assert!(bed.receipts().await.is_empty());
    assert_eq!(bed.store.identity(bed.source, "evt_1").await.unwrap(), None);
}

async fn repeats_are_added_up(bed: Bed) {
    let first = bed.arrival("evt_1", "{}");
    let receipt = first.receipt;
    bed.record(vec![first]).await;
    let repeat = |duplicates, from, to| Repeat {
        receipt,
        duplicates,
        conflicts: 1,
        twins: 0,
        first_at: time(NOON + from),
        last_at: time(NOON + to),
    };
    bed.store.add_repeats(vec![repeat(2, 10, 20)]).await.unwrap();
    bed.store.add_repeats(vec![repeat(3, 5, 15)]).await.unwrap();
    let sum = bed.receipts().await[0].repeats;
    assert_eq!(sum, Some(Repeat { conflicts: 2, ..repeat(5, 5, 20) }));
}

async fn lists_page_and_filter(bed: Bed) {
    for n in 0..5 {
        let mut arrival = bed.arrival_at(&format!("evt_{n}"), "{}", time(NOON + n));
        arrival.event_type = if n % 2 == 0 { "a_b.c" } else { "axb.c" }.into();
        arrival.object = (n == 3).then(|| "in_3".into());
        bed.record(vec![arrival]).await;
    }
    let list = async |filter: ReceiptFilter| -> Vec<String> {
        let receipts = bed.store.receipts(&filter).await.unwrap();
        receipts.into_iter().map(|receipt| receipt.event_id).collect()
    };
    let all = || ReceiptFilter { limit: 10, ..Default::default() };
    assert_eq!(list(ReceiptFilter { limit: 2, ..all() }).await, ["evt_4", "evt_3"]);
    let page = bed.store.receipts(&ReceiptFilter { limit: 2, ..all() }).await.unwrap();
    let before = Some(page[1].receipt);
    assert_eq!(list(ReceiptFilter { before, ..all() }).await, ["evt_2", "evt_1", "evt_0"]);
    let event_type = Some("a_b*".into());
    assert_eq!(list(ReceiptFilter { event_type, ..all() }).await, ["evt_4", "evt_2", "evt_0"]);
    let event_type = Some("A_B*".into());
    assert!(list(ReceiptFilter { event_type, ..all() }).await.is_empty());
    let (since, until) = (Some(time(NOON + 1)), Some(time(NOON + 3)));
    assert_eq!(list(ReceiptFilter { since, until, ..all() }).await, ["evt_2", "evt_1"]);
    let object = Some("in_3".into());
    assert_eq!(list(ReceiptFilter { object, ..all() }).await, ["evt_3"]);
    let event_id = Some("evt_1".into());
    assert_eq!(list(ReceiptFilter { event_id, ..all() }).await, ["evt_1"]);
    let source = Some("nobody".into());
    assert!(list(ReceiptFilter { source, ..all() }).await.is_empty());
}

async fn a_rename_keeps_identities(bed: Bed) {
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    let renamed = bed.store.register_source("payments", Some("stripe-live")).await.unwrap();
    assert_eq!(renamed, bed.source);
    assert_eq!(bed.receipts().await[0].source, "payments");
    // Said again at the next start, it changes nothing.
    let again = bed.store.register_source("payments", Some("stripe-live")).await.unwrap();
    assert_eq!(again, bed.source);
}

/// A node starts with the old configuration while others have the new one, or all are set back.
async fn a_name_given_up_leads_to_the_same_source(bed: Bed) {
    let rules = RouteRules::default();
    let route = bed.store.register_route("billing", None, &rules).await.unwrap();
    bed.store.register_source("payments", Some("stripe-live")).await.unwrap();
    bed.store.register_route("invoices", Some("billing"), &rules).await.unwrap();
    assert_eq!(bed.store.register_source("stripe-live", None).await.unwrap(), bed.source);
    assert_eq!(bed.store.register_route("billing", None, &rules).await.unwrap(), route);
    assert_eq!(bed.store.register_source("payments", None).await.unwrap(), bed.source);
    assert_eq!(bed.store.sources().await.unwrap(), [(bed.source, "payments".into())]);
    // Twice renamed, and back.
    bed.store.register_source("money", Some("payments")).await.unwrap();
    assert_eq!(bed.store.register_source("stripe-live", None).await.unwrap(), bed.source);
    bed.store.register_source("stripe-live", Some("money")).await.unwrap();
    assert_eq!(bed.store.sources().await.unwrap(), [(bed.source, "stripe-live".into())]);
    assert_eq!(bed.store.register_source("payments", None).await.unwrap(), bed.source);
    // A name that another one takes over by a rename is its own.
    let other = bed.store.register_source("github", None).await.unwrap();
    assert_eq!(bed.store.register_source("money", Some("github")).await.unwrap(), other);
    assert_eq!(bed.store.register_source("money", None).await.unwrap(), other);
}

async fn names_and_secrets_keep_their_numbers(mut bed: Bed) {
    let store = bed.store.clone();
    let billing = store.register_route("billing", None, &RouteRules::default()).await.unwrap();
    let audit = store.register_route("audit", None, &RouteRules::default()).await.unwrap();
    let old = store.register_secret(bed.source, "aaaaaaaa", time(NOON)).await.unwrap();
    let new = store.register_secret(bed.source, "bbbbbbbb", time(NOON + 9)).await.unwrap();
    assert_ne!((billing, old), (audit, new));
    drop(store);
    bed.reopen().await;
    assert_eq!(
        bed.store.register_route("audit", None, &RouteRules::default()).await.unwrap(),
        audit
    );
    assert_eq!(
        bed.store
            .register_route("invoices", Some("billing"), &RouteRules::default())
            .await
            .unwrap(),
        billing
    );
    let again = bed.store.register_secret(bed.source, "aaaaaaaa", time(NOON + 99)).await.unwrap();
    assert_eq!(again, old);
    assert_eq!(bed.store.sources().await.unwrap(), [(bed.source, "stripe-live".into())]);
}

async fn the_strongest_proof_stays_required(mut bed: Bed) {
    let other = bed.store.register_source("gitlab", None).await.unwrap();
    assert_eq!(bed.store.requiring_strongest().await.unwrap(), []);
    assert!(bed.store.require_strongest(other).await.unwrap());
    assert!(!bed.store.require_strongest(other).await.unwrap());
    bed.reopen().await;
    assert_eq!(bed.store.requiring_strongest().await.unwrap(), [other]);
    let renamed = bed.store.register_source("gitlab-live", Some("gitlab")).await.unwrap();
    assert_eq!(bed.store.requiring_strongest().await.unwrap(), [renamed]);
}

/// Without room only what is kept already is answered; nothing authentic is answered and dropped.
async fn a_full_source_takes_only_repeats(bed: Bed) {
    let receipt = bed.send(bed.unsigned("d-1", "one")).await;
    bed.record(vec![bed.unsigned("d-2", "one")]).await;
    let full = |arrival: Arrival| Arrival { has_room: false, ..arrival };
    let batch = vec![
        full(bed.unsigned("d-1", "one")),
        full(bed.unsigned("d-1", "another")),
        full(bed.unsigned("d-3", "one")),
        full(bed.unsigned("d-4", "new")),
        full(bed.unsigned("d-2", "one")),
    ];
    let outcomes = bed.record(batch).await;
    assert_eq!(outcomes[0], Recorded::Duplicate { receipt });
    assert_eq!(outcomes[1..4], [Recorded::NoRoom; 3]);
    assert!(matches!(outcomes[4], Recorded::Duplicate { .. }), "{outcomes:?}");
    assert_eq!(bed.event_ids().await, ["d-1", "d-2"]);
    // With room again they are what they would have been.
    let outcomes = bed.record(vec![bed.unsigned("d-1", "another"), bed.unsigned("d-4", "n")]).await;
    assert_eq!(outcomes, [Recorded::Conflict { first: receipt }, Recorded::Accepted]);
}

async fn the_newest_receipt_is_known(bed: Bed) {
    assert_eq!(bed.store.newest().await.unwrap(), None);
    let batch = vec![bed.arrival("evt_1", "{}"), bed.arrival("evt_2", "{}")];
    let newest = batch[1].receipt;
    bed.record(batch).await;
    assert_eq!(bed.store.newest().await.unwrap(), Some(newest));
}

const DAY: i64 = 86_400;

/// Removes every receipt of the bed's source older than `before`, and counts them.
async fn expire_receipts(bed: &Bed, before: i64) -> usize {
    let mut range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(before)),
        sources: vec![bed.source],
        at: time(NOON),
    };
    let mut removed = 0;
    loop {
        let step = bed.store.expire_receipts(&range).await.unwrap();
        removed += step.removed;
        let Some(next) = step.next else { return removed };
        range.after = next;
    }
}

/// Forgets every identity of the bed's source last seen before a day, and counts them.
async fn expire_identities(bed: &Bed, before: i64) -> usize {
    let bounds = [(bed.source, day_of(time(before)))];
    let mut cursor = SweepCursor::default();
    let mut removed = 0;
    loop {
        let step = bed.store.expire_identities(cursor, &bounds).await.unwrap();
        removed += step.removed;
        let Some(next) = step.next else { return removed };
        cursor = next;
    }
}

async fn payloads_expire_before_identities(bed: Bed) {
    let old = bed.arrival_at("old", "{}", time(NOON - 40 * DAY));
    let odd = bed.arrival_at("old", "odd", time(NOON - 40 * DAY));
    let receipt = old.receipt;
    bed.record(vec![old, odd]).await;
    bed.record(vec![bed.arrival_at("new", "{}", time(NOON))]).await;
    let repeat = Repeat {
        receipt,
        duplicates: 1,
        conflicts: 0,
        twins: 0,
        first_at: time(NOON),
        last_at: time(NOON),
    };
    bed.store.add_repeats(vec![repeat]).await.unwrap();

    assert_eq!(expire_receipts(&bed, NOON - 30 * DAY).await, 2);
    assert_eq!(bed.event_ids().await, ["new"]);
    assert_eq!(bed.store.receipt(receipt).await.unwrap(), None);
    // The identity is still known, and says so.
    let again = bed.arrival_at("old", "{}", time(NOON - 39 * DAY));
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt }]);

    assert_eq!(expire_identities(&bed, NOON - 35 * DAY).await, 2);
    assert_eq!(bed.record(vec![bed.arrival("old", "{}")]).await, [Recorded::Accepted]);
    assert_eq!(bed.receipts().await.len(), 2);
}

async fn an_open_delivery_keeps_its_receipt_and_identity(bed: Bed) {
    let route = bed.store.register_route("billing", None, &RouteRules::default()).await.unwrap();
    let long_ago = time(NOON - 90 * DAY);
    let open =
        Arrival { takers: vec![Taker::plain(route)], ..bed.arrival_at("open", "{}", long_ago) };
    bed.record(vec![open, bed.arrival_at("done", "{}", long_ago)]).await;
    assert_eq!(expire_receipts(&bed, NOON).await, 1);
    assert_eq!(expire_identities(&bed, NOON).await, 1);
    assert_eq!(bed.event_ids().await, ["open"]);
    let again = bed.record(vec![bed.arrival("open", "{}")]).await;
    assert!(matches!(again[..], [Recorded::Duplicate { .. }]));
}

/// Identities age from the last time they were seen.
async fn a_repeat_keeps_an_identity_young(bed: Bed) {
    let (then, later) = (time(NOON - 40 * DAY), time(NOON - 10 * DAY));
    bed.record(vec![bed.arrival_at("evt_1", "{}", then)]).await;
    bed.record(vec![bed.unsigned("d-1", "body")]).await;
    bed.record(vec![bed.arrival_at("evt_1", "{}", later)]).await;
    assert_eq!(expire_identities(&bed, NOON - 35 * DAY).await, 0);
    assert_eq!(expire_identities(&bed, NOON - 9 * DAY).await, 1);
}

/// Redelivered or sent as a twin, the guard of a body is as young as the last time it was seen.
async fn both_keys_of_an_event_age_from_when_it_was_seen(bed: Bed) {
    let day = |day: i64| time(NOON + day * DAY);
    // Redelivered on day 30 under its own id; another body came as a twin on day 30.
    bed.record(vec![bed.unsigned_at("d-1", "one", day(0)), bed.unsigned_at("d-2", "two", day(0))])
        .await;
    let seen = vec![bed.unsigned_at("d-1", "one", day(30)), bed.unsigned_at("d-3", "two", day(30))];
    bed.record(seen).await;
    expire_identities(&bed, NOON + 20 * DAY).await;
    let captured =
        vec![bed.unsigned_at("x-1", "one", day(37)), bed.unsigned_at("x-2", "two", day(37))];
    let outcomes = bed.record(captured).await;
    assert!(matches!(outcomes[..], [Recorded::Twin { .. }, Recorded::Twin { .. }]), "{outcomes:?}");
    assert_eq!(bed.event_ids().await, ["d-1", "d-2", "d-3", "x-1", "x-2"]);
}

/// The identity outlives the payload. A conflict is a receipt of its own then as well; counts of
/// the first have nothing to be kept with.
async fn a_conflict_with_a_receipt_that_expired_is_kept(bed: Bed) {
    let first = bed.arrival_at("evt_1", "one", time(NOON));
    let receipt = first.receipt;
    bed.record(vec![first]).await;
    assert_eq!(expire_receipts(&bed, NOON + DAY).await, 1);
    let other = bed.arrival_at("evt_1", "another", time(NOON + 2 * DAY));
    assert_eq!(bed.record(vec![other]).await, [Recorded::Conflict { first: receipt }]);
    assert_eq!(bed.receipts().await[0].mark.unwrap().first, Some(receipt));
    let repeat = Repeat {
        receipt,
        duplicates: 1,
        conflicts: 1,
        twins: 0,
        first_at: time(NOON),
        last_at: time(NOON),
    };
    bed.store.add_repeats(vec![repeat]).await.unwrap();
    assert_eq!(rows(&bed, "repeats"), 0);
}

/// How many rows a table has.
fn rows(bed: &Bed, table: &str) -> i64 {
    match bed.url.strip_prefix("sqlite://") {
        Some(path) => {
            let database = rusqlite::Connection::open(path).unwrap();
            let sql = format!("SELECT count(*) FROM {table}");
            database.query_row(&sql, [], |row| row.get(0)).unwrap()
        }
        None => {
            let sql = format!("SELECT count(*) FROM oncebox.{table}");
            oncebox_testkit::postgres::query(&bed.url, &sql).trim().parse().unwrap()
        }
    }
}

/// Rounds of filling and expiring do not make the store grow.
async fn removed_rows_make_room(bed: Bed) {
    let body = "x".repeat(3000);
    let mut sizes = Vec::new();
    for round in 0..6_i64 {
        let at = time(NOON + round * DAY);
        let batch: Vec<Arrival> =
            (0..400).map(|n| bed.arrival_at(&format!("evt_{round}_{n}"), &body, at)).collect();
        bed.record(batch).await;
        sizes.push(size(&bed));
        assert_eq!(expire_receipts(&bed, NOON + (round + 1) * DAY).await, 400);
        assert_eq!(expire_identities(&bed, NOON + (round + 1) * DAY).await, 400);
        if bed.url.starts_with("postgres") {
            oncebox_testkit::postgres::execute(&bed.url, "VACUUM oncebox.receipts");
            oncebox_testkit::postgres::execute(&bed.url, "VACUUM oncebox.identities");
        }
    }
    // PostgreSQL gives pages of an index out again only when no transaction of the whole server is
    // older than their removal, so a busy server lags behind. Without room it would be threefold.
    assert!(sizes[5] < 2 * sizes[1], "{sizes:?}");
}

/// Bytes the store takes, its log not counted.
fn size(bed: &Bed) -> u64 {
    match bed.url.strip_prefix("sqlite://") {
        Some(path) => {
            let database = rusqlite::Connection::open(path).unwrap();
            let count = |pragma| database.pragma_query_value(None, pragma, |row| row.get(0));
            let (pages, bytes): (i64, i64) =
                (count("page_count").unwrap(), count("page_size").unwrap());
            (pages * bytes).unsigned_abs()
        }
        None => {
            let sql = "SELECT sum(pg_total_relation_size(p.relid))::bigint::text \
                       FROM unnest(ARRAY['receipts', 'identities']) AS t, \
                           pg_partition_tree(('oncebox.' || t)::regclass) AS p";
            oncebox_testkit::postgres::query(&bed.url, sql).trim().parse().unwrap()
        }
    }
}

/// Ids taken over from another receiver.
async fn remembered_ids_are_duplicates(bed: Bed) {
    let keys = vec![IdentityKey::of_event("evt_1"), IdentityKey::of_event("evt_2")];
    bed.store.remember(bed.source, keys, time(NOON)).await.unwrap();
    let outcomes = bed.record(vec![bed.arrival("evt_1", "{}"), bed.arrival("evt_3", "{}")]).await;
    assert!(matches!(outcomes[..], [Recorded::Duplicate { .. }, Recorded::Accepted]));
    assert_eq!(bed.event_ids().await, ["evt_3"]);
}

/// An operator's command does not migrate behind the server's back.
async fn a_store_without_migrations_is_refused(bed: Bed) {
    let url = match bed.url.strip_prefix("sqlite://") {
        Some(path) => {
            let path = std::path::Path::new(path).with_file_name("empty.db");
            rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
            format!("sqlite://{}", path.display())
        }
        None => {
            oncebox_testkit::postgres::execute(&bed.url, "DROP SCHEMA oncebox CASCADE");
            bed.url.clone()
        }
    };
    let opened = oncebox::store::open(&url, Purpose::Operate).await;
    let error = opened.err().expect("refused");
    assert!(error.to_string().contains("migrate up"), "{error}");
    assert!(!oncebox::store::schema(&url).await.unwrap().is_current());
    assert!(oncebox::store::migrate(&url).await.unwrap().is_current());
    assert!(oncebox::store::schema(&url).await.unwrap().is_current());
    let store: Arc<dyn Store> = oncebox::store::open(&url, Purpose::Operate).await.unwrap();
    store.close().await;
}
