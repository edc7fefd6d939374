//! The ledger as operators see it, and how long it remembers.

use jiff::{SignedDuration, Timestamp};
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Claimed, Next};
use oncebox::effect::{Begun, EffectKind, EffectState};
use oncebox::limits;
use oncebox::receipt::ReceiptId;
use oncebox::route::RouteRules;
use oncebox::store::{EffectFilter, SweepCursor};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Route, grouped, key, message, step};

for_each_store!(
    lists_are_in_the_order_of_keys,
    lists_filter,
    a_prefix_is_plain_text,
    lists_show_what_has_lapsed,
    lists_page,
    tallies_tell_the_oldest,
    what_is_old_is_forgotten,
    what_is_open_is_remembered,
    a_message_on_its_way_is_remembered,
    a_large_ledger_goes_in_steps,
    groups_are_forgotten_once_nothing_is_open,
);

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// Begins and completes effects.
async fn done(bed: &Bed, claimed: &Claimed, keys: &[&str]) {
    for one in keys {
        assert!(matches!(bed.begin(claimed, &key(one)).await, Begun::Yours { .. }));
        bed.complete(claimed, &key(one), None).await;
    }
}

async fn keys(bed: &Bed, filter: EffectFilter) -> Vec<String> {
    let limit = if filter.limit == 0 { 1000 } else { filter.limit };
    let effects = bed.store.effects(&EffectFilter { limit, ..filter }).await.unwrap();
    effects.into_iter().map(|effect| effect.key).collect()
}

/// By their bytes, whatever the language of the database.
async fn lists_are_in_the_order_of_keys(bed: Bed) {
    let claimed = bed.working_on("e1", &billing(&bed).await).await;
    done(&bed, &claimed, &["é", "b:1", "B:1", "a b", "a:2", "a-1", "a_1", "a:10"]).await;
    let ordered = ["B:1", "a b", "a-1", "a:10", "a:2", "a_1", "b:1", "é"];
    assert_eq!(keys(&bed, EffectFilter::default()).await, ordered);
}

async fn lists_filter(bed: Bed) {
    let route = billing(&bed).await;
    bed.destination("mailer").await;
    let first = bed.working_on("e1", &route).await;
    let second = bed.working_on("e2", &route).await;
    done(&bed, &first, &["mail:1", "mail:2"]).await;
    done(&bed, &second, &["mail:3", "pay:1"]).await;
    bed.begin(&second, &key("pay:2")).await;
    bed.begin(&first, &step("charge")).await;
    bed.write_new(&second, &message("mailer", "m1", "{}")).await;
    let charge = format!("{}/billing/charge", first.delivery.receipt);

    let all = || EffectFilter::default();
    let kind = |kind| EffectFilter { kind: Some(kind), ..all() };
    let once = ["mail:1", "mail:2", "mail:3", "pay:1", "pay:2"];
    assert_eq!(keys(&bed, kind(EffectKind::Once)).await, once);
    assert_eq!(keys(&bed, kind(EffectKind::Step)).await, [charge.as_str()]);
    assert_eq!(keys(&bed, kind(EffectKind::Message)).await, ["outbox/mailer/m1"]);
    let state = |state| EffectFilter { state: Some(state), ..all() };
    assert_eq!(keys(&bed, state(EffectState::Started)).await, [charge.as_str(), "pay:2"]);
    assert_eq!(keys(&bed, state(EffectState::Unknown)).await, [""; 0]);
    assert_eq!(keys(&bed, state(EffectState::Done)).await.len(), 5);
    let receipt = |claimed: &Claimed, state| EffectFilter {
        receipt: Some(claimed.delivery.receipt),
        state,
        ..all()
    };
    let of_second = ["mail:3", "outbox/mailer/m1", "pay:1", "pay:2"];
    assert_eq!(keys(&bed, receipt(&second, None)).await, of_second);
    assert_eq!(keys(&bed, receipt(&first, Some(EffectState::Done))).await, ["mail:1", "mail:2"]);
    assert_eq!(keys(&bed, receipt(&second, Some(EffectState::Started))).await, ["pay:2"]);
    let nobody = ReceiptId::from_bytes([7; 16]);
    assert_eq!(keys(&bed, EffectFilter { receipt: Some(nobody), ..all() }).await, [""; 0]);
    let prefix = |text: &str| EffectFilter { prefix: Some(text.into()), ..all() };
    assert_eq!(keys(&bed, prefix("mail:")).await, ["mail:1", "mail:2", "mail:3"]);
    let both = EffectFilter { kind: Some(EffectKind::Message), ..prefix("outbox/m") };
    assert_eq!(keys(&bed, both).await, ["outbox/mailer/m1"]);
    let neither = EffectFilter { kind: Some(EffectKind::Message), ..prefix("mail:") };
    assert_eq!(keys(&bed, neither).await, [""; 0]);
    let started = EffectFilter { state: Some(EffectState::Started), ..prefix("pay:") };
    assert_eq!(keys(&bed, started).await, ["pay:2"]);
}

async fn a_prefix_is_plain_text(bed: Bed) {
    let claimed = bed.working_on("e1", &billing(&bed).await).await;
    let all = ["a%b", "a*b", "a?b", "a[b]", "a\\b", "a_b", "axb", "ay\u{10ffff}z", "é", "éa"];
    done(&bed, &claimed, &all).await;
    let prefixed = async |text: &str| {
        keys(&bed, EffectFilter { prefix: Some(text.into()), ..EffectFilter::default() }).await
    };
    for one in ["a%", "a*", "a?", "a[", "a\\", "a_", "ax", "ay", "ay\u{10ffff}"] {
        let found = prefixed(one).await;
        assert_eq!(found.len(), 1, "{one}: {found:?}");
        assert!(found[0].starts_with(one));
    }
    assert_eq!(prefixed("a").await.len(), 8);
    assert_eq!(prefixed("é").await, ["é", "éa"]);
    assert_eq!(prefixed("\u{10ffff}").await, [""; 0]);
    assert_eq!(prefixed("").await.len(), all.len());
}

async fn lists_show_what_has_lapsed(bed: Bed) {
    let route = billing(&bed).await;
    let first = bed.working_on("e1", &route).await;
    bed.begin(&first, &key("a")).await;
    bed.lose_leases().await;
    let again = bed.take(&route).await;
    bed.begin(&again, &key("b")).await;
    let listed = bed.store.effects(&EffectFilter { limit: 10, ..Default::default() }).await;
    assert_eq!(listed.unwrap(), [bed.effect("a").await, bed.effect("b").await]);
    let receipt = Some(first.delivery.receipt);
    for receipt in [None, receipt] {
        for (state, expected) in [(EffectState::Unknown, "a"), (EffectState::Started, "b")] {
            let state = Some(state);
            let filter = EffectFilter { state, receipt, ..EffectFilter::default() };
            assert_eq!(keys(&bed, filter).await, [expected]);
        }
    }
}

/// Page by page, with and without the filters that are answered in another way.
async fn lists_page(bed: Bed) {
    let claimed = bed.working_on("e1", &billing(&bed).await).await;
    let names: Vec<String> = (0..25).map(|n| format!("k:{n:02}")).collect();
    for name in &names {
        bed.begin(&claimed, &key(name)).await;
    }
    done(&bed, &claimed, &["a", "z"]).await;
    let prefix = Some("k:".to_owned());
    let state = Some(EffectState::Started);
    let receipt = Some(claimed.delivery.receipt);
    for filter in [
        EffectFilter { prefix: prefix.clone(), ..EffectFilter::default() },
        EffectFilter { state, ..EffectFilter::default() },
        EffectFilter { prefix: prefix.clone(), receipt, ..EffectFilter::default() },
        EffectFilter { prefix, state, receipt, ..EffectFilter::default() },
    ] {
        let (mut after, mut seen): (Option<String>, Vec<String>) = (None, Vec::new());
        loop {
            let page = keys(&bed, EffectFilter { after, limit: 10, ..filter.clone() }).await;
            seen.extend(page.iter().cloned());
            if page.len() < 10 {
                break;
            }
            after = page.last().cloned();
        }
        assert_eq!(seen, names, "{filter:?}");
    }
    let after = Some("k:24".to_owned());
    assert_eq!(keys(&bed, EffectFilter { after, ..EffectFilter::default() }).await, ["z"]);
}

async fn tallies_tell_the_oldest(bed: Bed) {
    let route = billing(&bed).await;
    assert_eq!(bed.effects_in(EffectState::Unknown).await, 0);
    let first = bed.working_on("e1", &route).await;
    done(&bed, &first, &["done"]).await;
    bed.begin(&first, &key("a")).await;
    bed.begin(&first, &key("b")).await;
    assert!(bed.finish(&first, Next::Dead).await);
    let second = bed.working_on("e2", &route).await;
    bed.begin(&second, &key("c")).await;
    let tallies = bed.store.tally_effects().await.unwrap();
    let tally = |state| tallies.iter().find(|tally| tally.state == state);
    let unknown = tally(EffectState::Unknown).unwrap();
    assert_eq!((unknown.count, unknown.oldest), (2, Some(bed.effect("a").await.at)));
    let started = tally(EffectState::Started).unwrap();
    assert_eq!((started.count, started.oldest), (1, Some(bed.effect("c").await.at)));
    assert!(tally(EffectState::Done).is_none());
}

const KEPT: SignedDuration = SignedDuration::from_hours(24 * limits::EFFECT_DAYS as i64);

/// Makes an effect that many days older than it is.
fn age(bed: &Bed, key: &str, days: i64) {
    bed.query(&match bed.on_sqlite() {
        true => format!("UPDATE effects SET at = at - {days} * 86400000 WHERE key = '{key}'"),
        false => {
            format!("UPDATE effects SET at = at - interval '{days} days' WHERE key = '{key}'")
        }
    });
}

/// A whole sweep. Says how many were forgotten, and in how many steps.
async fn expire(bed: &Bed, done_before: Timestamp) -> (usize, usize) {
    let (mut removed, mut steps) = (0, 0);
    let mut cursor = Some(SweepCursor::default());
    while let Some(from) = cursor {
        let step = bed.store.expire_effects(from, done_before).await.unwrap();
        removed += step.removed;
        steps += 1;
        assert!(steps < 1000, "it comes to no end");
        cursor = step.next;
    }
    (removed, steps)
}

fn ago(time: SignedDuration) -> Timestamp {
    SystemClock.now().checked_sub(time).unwrap()
}

/// Only what is done, and only after its time. What is unknown stays until somebody settles it.
async fn what_is_old_is_forgotten(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    done(&bed, &claimed, &["old", "young"]).await;
    bed.begin(&claimed, &key("unknown")).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    let other = bed.working_on("e2", &route).await;
    assert!(matches!(bed.begin(&other, &key("old")).await, Begun::Done(_)));
    bed.begin(&other, &key("started")).await;
    for (key, days) in [("old", 401), ("young", 399), ("unknown", 4000), ("started", 4000)] {
        age(&bed, key, days);
    }
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 1);
    assert_eq!(keys(&bed, EffectFilter::default()).await, ["started", "unknown", "young"]);
    assert_eq!(bed.rows("effect_conflicts"), 0, "they go with it");
    assert!(matches!(bed.begin(&other, &key("old")).await, Begun::Yours { .. }));
}

/// A delivery that is retried after more than a year still repeats nothing.
async fn what_is_open_is_remembered(bed: Bed) {
    let route = billing(&bed).await;
    let processing = bed.working_on("e1", &route).await;
    done(&bed, &processing, &["a"]).await;
    let dead = bed.working_on("e2", &route).await;
    done(&bed, &dead, &["b"]).await;
    assert!(bed.finish(&dead, Next::Dead).await);
    for key in ["a", "b"] {
        age(&bed, key, 401);
    }
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 0);
    assert!(bed.finish(&processing, Next::Processed).await);
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 1);
    assert_eq!(keys(&bed, EffectFilter::default()).await, ["b"]);
}

/// Its key is taken as long as somebody may still get it, though who wrote it is done.
async fn a_message_on_its_way_is_remembered(bed: Bed) {
    let (route, outbox) = (billing(&bed).await, bed.destination("mailer").await);
    let cause = bed.working_on("e1", &route).await;
    bed.write_new(&cause, &message("mailer", "m1", "{}")).await;
    assert!(bed.finish(&cause, Next::Processed).await);
    age(&bed, "outbox/mailer/m1", 401);
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 0);
    assert_eq!(bed.work_off(&outbox).await, ["m1"]);
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 1);
    assert_eq!(bed.rows("effects"), 0);
}

async fn a_large_ledger_goes_in_steps(bed: Bed) {
    let route = billing(&bed).await;
    let claimed = bed.working_on("e1", &route).await;
    done(&bed, &claimed, &["k:0"]).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    let rows = 2 * limits::SWEEP_ROWS + 100;
    bed.query(&match bed.on_sqlite() {
        true => format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})
             INSERT INTO effects (key, kind, state, receipt, tail, route, epoch, attempt, at)
             SELECT 'k:' || n, kind, state, receipt, tail, route, epoch, attempt,
                    iif(n % 10 = 0, at, 0)
             FROM n CROSS JOIN effects WHERE key = 'k:0'"
        ),
        false => format!(
            "INSERT INTO effects (key, kind, state, receipt, route, epoch, attempt, at)
             SELECT 'k:' || n, kind, state, receipt, route, epoch, attempt,
                    CASE WHEN n % 10 = 0 THEN at ELSE 'epoch' END
             FROM generate_series(1, {rows}) AS n CROSS JOIN effects WHERE key = 'k:0'"
        ),
    });
    let left = 1 + rows as usize / 10;
    let (removed, steps) = expire(&bed, ago(KEPT)).await;
    assert_eq!(removed, rows as usize - rows as usize / 10);
    assert!(steps >= 2, "{steps}");
    assert_eq!(bed.rows("effects"), left);
    assert_eq!(expire(&bed, ago(KEPT)).await.0, 0);
}

/// Numbers must not begin again behind a message that waits.
async fn groups_are_forgotten_once_nothing_is_open(bed: Bed) {
    let (route, outbox) = (billing(&bed).await, bed.destination("mailer").await);
    let cause = bed.working_on("e1", &route).await;
    for (key, group) in [("m1", "done"), ("m2", "open"), ("m3", "young")] {
        bed.write_new(&cause, &grouped(message("mailer", key, "{}"), group)).await;
    }
    let claims = bed.take_all(&outbox).await;
    for claimed in claims.iter().filter(|claimed| claimed.event_id != "m2") {
        assert!(bed.finish(claimed, Next::Processed).await);
    }
    bed.query("UPDATE outbox_groups SET touched = touched - 401 WHERE name <> 'young'");
    expire(&bed, ago(KEPT)).await;
    let groups = bed.query("SELECT name FROM outbox_groups ORDER BY name");
    assert_eq!(groups, "open\nyoung");
}
