//! A service behind each of the doors, on one store, for the same events: each fact happens behind
//! one of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, Opened, until};

use crate::bed::{Door, Shop};
use crate::business::{Business, Plan, Told};

for_each_store!(doors_race_for_many_facts, doors_meet_at_one_key);

/// The doors that a store has; the first is in the server.
fn doors(bed: &Bed) -> &'static [Door] {
    match bed.opened {
        Opened::Postgres(_) => &[Door::Rust, Door::Sql, Door::Http],
        _ => &[Door::Rust, Door::Http],
    }
}

async fn open(bed: Bed, plan: impl Fn(&Told) -> Plan + Send + Sync + 'static) -> Arc<Shop> {
    let doors = doors(&bed);
    Arc::new(Shop::open(bed, doors, Business::new(doors.len(), plan), true).await)
}

/// Works behind the doors that are not in the server while events come, and until nothing is left.
async fn work_off(shop: &Arc<Shop>, workers: usize, coming: impl Future<Output = ()>) {
    let all_came = Arc::new(AtomicBool::new(false));
    let mut crew = tokio::task::JoinSet::new();
    for door in doors(&shop.bed)[1..].repeat(workers) {
        let (mut worker, shop, all_came) =
            (shop.worker(door).await, shop.clone(), all_came.clone());
        crew.spawn(async move {
            while !all_came.load(Ordering::SeqCst) {
                worker.pass().await;
            }
            worker.work_off(&shop).await;
        });
    }
    coming.await;
    all_came.store(true, Ordering::SeqCst);
    crew.join_all().await;
}

impl Shop {
    /// Each invoice was paid behind one door: the one that the ledger names. The others are in its
    /// list of conflicts.
    async fn assert_one_winner(&self, invoices: &[String], begins_first: fn(&str) -> bool) {
        let mut paid = self.column(Door::Rust, "paid", "invoice || ' ' || route");
        paid.extend(self.column(Door::Http, "paid", "invoice || ' ' || route"));
        paid.sort_unstable();
        let winners: BTreeMap<&str, &str> =
            paid.iter().map(|line| line.split_once(' ').unwrap()).collect();
        assert_eq!(paid.len(), winners.len(), "something was paid twice: {paid:?}");
        assert!(winners.keys().eq(invoices), "{winners:?}");
        let mut mails = self.column(Door::Rust, "emails", "invoice");
        mails.extend(self.column(Door::Http, "emails", "invoice"));
        mails.sort_unstable();
        assert_eq!(mails, invoices);

        let mut routes: Vec<&str> = doors(&self.bed).iter().map(|door| door.route()).collect();
        routes.sort_unstable();
        let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
        for (invoice, winner) in &winners {
            *wins.entry(winner).or_default() += 1;
            assert!(!begins_first(invoice) || *winner == "http", "{invoice}: {winner}");
            let key = format!("paid:{invoice}");
            let effect = self.bed.effect(&key).await;
            assert_eq!((effect.route.as_str(), effect.unknowns), (*winner, 0), "{invoice}");
            let conflicts = self.bed.store.effect_conflicts(&key, 10).await.unwrap();
            let mut losers: Vec<&str> =
                conflicts.iter().map(|conflict| conflict.route.as_str()).collect();
            losers.push(winner);
            losers.sort_unstable();
            assert_eq!(losers, routes, "{invoice}");
        }
        println!("{wins:?}");
        assert_eq!(self.bed.query("SELECT count(*) FROM effects WHERE state <> 'done'"), "0");
        self.assert_mailed(invoices);
    }
}

/// Facts that the HTTP door has begun when the others come to the key: it is theirs to wait.
fn is_begun_first(invoice: &str) -> bool {
    invoice.ends_with(['2', '6'])
}

/// Every second fact is met by all of them before any takes its key, or when one has begun it; for
/// the others they come as they come.
async fn doors_race_for_many_facts(bed: Bed) {
    let plan = |told: &Told| Plan {
        meets: told.attempt == 1 && told.invoice.ends_with(['0', '2', '4', '6', '8']),
        begins_first: is_begun_first(&told.invoice),
        ..Plan::default()
    };
    let shop = open(bed, plan).await;
    let invoices: Vec<String> = (0..200).map(|n| format!("in_{n:03}")).collect();
    let coming = async {
        for (n, invoice) in invoices.iter().enumerate() {
            shop.event(&format!("e{n}"), invoice, 1).await;
        }
    };
    work_off(&shop, 2, coming).await;
    assert_eq!(shop.events(), 200);
    shop.assert_one_winner(&invoices, is_begun_first).await;
}

/// One key at a time, and nothing else to do.
async fn doors_meet_at_one_key(bed: Bed) {
    let shop = open(bed, |told| Plan { meets: told.attempt == 1, ..Plan::default() }).await;
    let invoices: Vec<String> = (0..10).map(|n| format!("in_{n:03}")).collect();
    let coming = async {
        for (n, invoice) in invoices.iter().enumerate() {
            shop.event(&format!("e{n}"), invoice, 1).await;
            until(|| shop.left() == 0).await;
        }
    };
    work_off(&shop, 1, coming).await;
    shop.assert_one_winner(&invoices, |_| false).await;
}
