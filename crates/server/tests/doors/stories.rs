//! Stories told behind each door, on each store it has.

use std::sync::Arc;

use oncebox::effect::EffectState;
use oncebox_testkit::store::Bed;

use crate::bed::{Door, Shop};
use crate::business::{Business, End, Plan, Told};

macro_rules! through_each_door {
    ($($story:ident),* $(,)?) => {
        through_each_door!(@ rust_on_sqlite, sqlite, Rust, $($story),*);
        through_each_door!(@ rust_on_postgres, postgres, Rust, $($story),*);
        through_each_door!(@ sql_on_postgres, postgres, Sql, $($story),*);
        through_each_door!(@ http_on_sqlite, sqlite, Http, $($story),*);
        through_each_door!(@ http_on_postgres, postgres, Http, $($story),*);
    };
    (@ $name:ident, $store:ident, $door:ident, $($story:ident),*) => {
        mod $name {
            use super::{Bed, Door};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(Bed::$store().await, Door::$door).await;
                }
            )*
        }
    };
}

through_each_door!(
    the_same_event_does_everything_once,
    events_of_the_same_fact_have_one_effect,
    an_older_event_replaces_nothing,
    a_replay_repeats_nothing,
    a_zombie_that_ends_late_leaves_nothing,
    only_the_stage_that_failed_is_run_again,
);

/// Versions are times, and kept in milliseconds.
const SECONDS: &str = "version / 1000";

async fn open(
    bed: Bed,
    door: Door,
    plan: impl Fn(&Told) -> Plan + Send + Sync + 'static,
) -> Arc<Shop> {
    Arc::new(Shop::open(bed, &[door], Business::new(1, plan), false).await)
}

/// Three workers at once, until nothing is left.
async fn work_off_together(shop: &Arc<Shop>, door: Door) {
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut worker = shop.worker(door).await;
        let shop = shop.clone();
        workers.spawn(async move { worker.work_off(&shop).await });
    }
    workers.join_all().await;
}

impl Shop {
    /// Each of these was paid once, and its customer has one e-mail.
    #[track_caller]
    fn assert_once(&self, door: Door, invoices: &[&str]) {
        assert_eq!(self.column(door, "paid", "invoice"), invoices, "{:?}", self.business.notes());
        assert_eq!(self.column(door, "emails", "invoice"), invoices);
        let invoices: Vec<String> = invoices.iter().map(|&invoice| invoice.to_owned()).collect();
        self.assert_mailed(&invoices);
    }
}

/// Sixteen times at once, while a worker is at it, and once more when it is through.
async fn the_same_event_does_everything_once(bed: Bed, door: Door) {
    let shop = open(bed, door, |_| Plan::default()).await;
    let mut posts = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let shop = shop.clone();
        posts.spawn(async move { shop.post("e1", "in_1", 1).await.status });
    }
    let mut worker = shop.worker(door).await;
    worker.work(1).await;
    let mut statuses = posts.join_all().await;
    statuses.push(shop.post("e1", "in_1", 1).await.status);
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[15], statuses[16]), (200, 200, 202));
    assert_eq!(worker.pass().await, 0);
    assert_eq!(shop.events(), 1);
    assert_eq!(shop.states(door).await, ["e1 processed"]);
    shop.assert_once(door, &["in_1"]);
}

async fn events_of_the_same_fact_have_one_effect(bed: Bed, door: Door) {
    let shop = open(bed, door, |_| Plan::default()).await;
    for n in 0..12 {
        shop.event(&format!("e{n}"), "in_1", 1).await;
    }
    work_off_together(&shop, door).await;
    let states = shop.states(door).await;
    assert_eq!(states.iter().filter(|state| state.ends_with(" processed")).count(), 12);
    shop.assert_once(door, &["in_1"]);
    let effect = shop.bed.effect("paid:in_1").await;
    assert_eq!((effect.state, effect.conflicts), (EffectState::Done, 11));
}

/// One after the other, and then all at once in any order.
async fn an_older_event_replaces_nothing(bed: Bed, door: Door) {
    let shop = open(bed, door, |_| Plan::default()).await;
    let mut worker = shop.worker(door).await;
    for (id, version, newest) in [("e1", 5, "5"), ("e2", 9, "9"), ("e3", 7, "9"), ("e4", 9, "9")] {
        shop.event(id, "in_1", version).await;
        worker.work(1).await;
        assert_eq!(shop.column(door, "invoices", SECONDS), [newest], "{id}");
    }
    let states = ["e1 processed", "e2 processed", "e3 skipped:stale", "e4 processed"];
    assert_eq!(shop.states(door).await, states);
    for version in [4, 9, 1, 7, 2, 8, 3, 6, 5] {
        shop.event(&format!("f{version}"), "in_2", version).await;
    }
    work_off_together(&shop, door).await;
    assert_eq!(shop.column(door, "invoices", SECONDS), ["9", "9"]);
    shop.assert_once(door, &["in_1", "in_2"]);
}

/// Of what was processed, dead, stale by its own word, and stale by its version.
async fn a_replay_repeats_nothing(bed: Bed, door: Door) {
    let shop = open(bed, door, |told| {
        let end = match (told.event_id.as_str(), told.replay) {
            ("e2", 0) => End::Dead,
            ("e3", 0) => End::Stale,
            _ => End::Processed,
        };
        Plan { stages: &["reserve"], end, ..Plan::default() }
    })
    .await;
    let mut worker = shop.worker(door).await;
    let mut receipts = Vec::new();
    for (id, invoice, version) in
        [("e1", "in_1", 5), ("e2", "in_2", 5), ("e3", "in_3", 5), ("e4", "in_1", 4)]
    {
        receipts.push(shop.event(id, invoice, version).await);
        worker.work(1).await;
    }
    let states = ["e1 processed", "e2 dead", "e3 skipped:stale", "e4 skipped:stale"];
    assert_eq!(shop.states(door).await, states);
    let effects = shop.bed.rows("effects");
    for _ in 0..2 {
        shop.replay(&receipts).await;
        worker.work(4).await;
        let states = ["e1 processed", "e2 processed", "e3 processed", "e4 skipped:stale"];
        assert_eq!(shop.states(door).await, states);
    }
    assert_eq!(shop.column(door, "stages", "name"), ["reserve"; 4]);
    assert_eq!(shop.column(door, "invoices", SECONDS), ["5"; 3]);
    assert_eq!(shop.bed.rows("effects"), effects);
    assert_eq!(shop.business.notes(), ["reserve came to 7"; 8]);
    shop.assert_once(door, &["in_1", "in_2", "in_3"]);
}

/// It comes back when another has done all of it. What it wrote beside the ledger is rolled back;
/// where no transaction is shared, the ledger has told the other to look first.
async fn a_zombie_that_ends_late_leaves_nothing(bed: Bed, door: Door) {
    let shop = open(bed, door, |told| Plan { pauses: told.attempt == 1, ..Plan::default() }).await;
    shop.event("e1", "in_1", 1).await;
    let mut zombie = shop.worker(door).await;
    let zombie = tokio::spawn(async move { zombie.pass().await });
    shop.business.paused.notified().await;
    shop.bed.lose_leases().await;
    shop.worker(door).await.work(1).await;
    assert_eq!(shop.states(door).await, ["e1 processed"]);
    shop.assert_once(door, &["in_1"]);

    shop.business.go_on.notify_one();
    zombie.await.unwrap();
    assert_eq!(shop.states(door).await, ["e1 processed"]);
    shop.assert_once(door, &["in_1"]);
    let effect = shop.bed.effect("paid:in_1").await;
    assert_eq!((effect.state, effect.attempt), (EffectState::Done, 2));
    if door == Door::Http {
        assert_eq!((effect.unknowns, effect.evidence.is_some()), (1, true));
        assert_eq!(shop.business.notes(), ["e1 lease_lost"]);
    } else {
        assert_eq!(effect.unknowns, 0);
        assert_eq!(shop.column(door, "visits", "event"), ["e1"]);
    }
}

async fn only_the_stage_that_failed_is_run_again(bed: Bed, door: Door) {
    let shop = open(bed, door, |told| Plan {
        stages: &["reserve", "charge", "ship"],
        fails_at: (told.attempt < 3).then_some("ship"),
        ..Plan::default()
    })
    .await;
    let receipt = shop.event("e1", "in_1", 1).await;
    shop.worker(door).await.work(3).await;
    assert_eq!(shop.column(door, "stages", "name"), ["charge", "reserve", "ship"]);
    let again = ["reserve came to 7", "charge came to 6"];
    let expected = [&["ship fails"][..], &again, &["ship fails"], &again].concat();
    assert_eq!(shop.business.notes(), expected);
    for (stage, attempt) in [("reserve", 1), ("charge", 1), ("ship", 3)] {
        let effect = shop.bed.effect(&format!("{receipt}/{}/{stage}", door.route())).await;
        assert_eq!((effect.attempt, effect.unknowns), (attempt, 0), "{stage}");
        assert_eq!(effect.result, Some(stage.len().to_string()));
    }
    assert_eq!(shop.states(door).await, ["e1 processed"]);
    shop.assert_once(door, &["in_1"]);
}
