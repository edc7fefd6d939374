//! Numbers that are kept with the writes: they are what a count would find, and nothing is scanned
//! for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use oncebox::clock::ManualClock;
use oncebox::delivery::Next;
use oncebox::limits;
use oncebox::maintenance::Maintenance;
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::replay::{Fill, How, Reopened, ReplayFilter};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::{ExpireRange, PostgresOptions, PostgresStore, Purpose, Repeat, Span, Store};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, message, time};

for_each_store!(
    counts_are_what_a_scan_finds,
    deliveries_that_come_later_are_counted,
    arrivals_are_counted_by_minute_and_hour,
    types_beyond_the_bound_are_counted_together,
    old_counts_go,
);

/// Chance that can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// What a scan of both tables finds: route, state and reason, and how many.
fn scan(bed: &Bed) -> String {
    bed.query(
        "SELECT route, state, coalesce(reason, ''), count(*)
         FROM (
             SELECT route, state, reason FROM deliveries
             UNION ALL SELECT route, state, reason FROM finished
         ) AS d
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    )
}

async fn counted(bed: &Bed) -> String {
    let mut lines: Vec<String> = Vec::new();
    for tally in bed.store.tally().await.unwrap() {
        let reason = tally.reason.map_or("", |reason| reason.as_str());
        lines.push(format!("{}|{}|{reason}|{}", tally.route.0, tally.state, tally.count));
    }
    lines.join("\n")
}

/// A storm of all that changes deliveries, folded at any time in between.
async fn counts_are_what_a_scan_finds(bed: Bed) {
    let ordered = RouteRules { ordered: true, skip_stale: true, ..RouteRules::default() };
    let passing = RouteRules { on_dead: OnDead::Continue, ..ordered };
    let routes = [
        bed.route("plain", RouteRules::default()).await,
        bed.route("ordered", ordered).await,
        bed.route("passing", passing).await,
    ];
    for seed in 1..4 {
        let mut dice = Dice(seed);
        for n in 0..120 {
            storm(&bed, &routes, &mut dice, &format!("{seed}-{n}")).await;
        }
        assert_eq!(counted(&bed).await, scan(&bed), "seed {seed}");
    }
    bed.store.fold(time(NOON)).await.unwrap();
    assert_eq!(counted(&bed).await, scan(&bed));
    let gone = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(time(NOON + 86_400)),
        sources: vec![bed.source],
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    assert!(bed.store.expire_receipts(&gone).await.unwrap().removed > 0);
    assert_eq!(counted(&bed).await, scan(&bed));
}

/// Opened again, made for a route that was added later, or written as an outbox message.
async fn deliveries_that_come_later_are_counted(bed: Bed) {
    let first = bed.route("first", RouteRules::default()).await;
    let added = bed.route("added", RouteRules::default()).await;
    let mail = bed.destination("mail").await;
    let receipt = bed.due("evt_1", &[first]).await;
    bed.work_off(&first).await;
    let of_receipt = ReplayFilter { receipts: vec![receipt], ..Default::default() };
    let again = How { force: true, ..Default::default() };
    assert_eq!(bed.replay(of_receipt.clone(), again).await, [Reopened::Opened]);
    assert_eq!(counted(&bed).await, scan(&bed));

    let fill = Fill { route: added.no, source: bed.source, event_type: "*".to_owned() };
    let filling = ReplayFilter { routes: vec![added.no], fill: vec![fill], ..of_receipt };
    assert_eq!(bed.replay(filling, How::default()).await, [Reopened::Opened]);
    assert_eq!(counted(&bed).await, scan(&bed));

    let claimed = bed.take(&added).await;
    bed.write_new(&claimed, &message("mail", "m1", "{}")).await;
    assert_eq!(bed.states(&mail).await.len(), 1);
    assert_eq!(counted(&bed).await, scan(&bed));
}

async fn storm(bed: &Bed, routes: &[Route], dice: &mut Dice, name: &str) {
    let route = routes[dice.roll(routes.len())];
    match dice.roll(10) {
        0..4 => {
            let object = Some(format!("in_{}", dice.roll(3)));
            let version = Some(i64::try_from(dice.roll(9)).unwrap());
            let event = bed.event(name, routes);
            bed.record(vec![Arrival { object, version, ..event }]).await;
        }
        4..7 => {
            let retry = Next::Retry(Duration::from_secs(1));
            let endings = [Next::Processed, Next::Stale, Next::Dead, retry, Next::Return];
            for claimed in bed.claim(&route, 3).await.claimed {
                bed.finish(&claimed, endings[dice.roll(endings.len())]).await;
            }
        }
        7 => drop(bed.claim(&route, 2).await),
        8 => {
            bed.pass(100);
            bed.store.rescue(50).await.unwrap();
        }
        _ => {
            let filter = oncebox::store::DeliveryFilter { limit: 50, ..Default::default() };
            let rows = bed.store.deliveries(&filter).await.unwrap();
            if !rows.is_empty() {
                let row = &rows[dice.roll(rows.len())];
                let _ = match dice.roll(2) {
                    0 => bed.store.discard(row.delivery, &act("storm")).await.unwrap(),
                    _ => bed.store.release(row.delivery, &act("storm")).await.unwrap(),
                };
            }
            bed.store.fold(time(NOON)).await.unwrap();
        }
    }
}

async fn arrivals_are_counted_by_minute_and_hour(bed: Bed) {
    let minute = 60 * (NOON / 60);
    let mut receipts = Vec::new();
    for (n, at) in [minute, minute + 59, minute + 60, minute + 7200].into_iter().enumerate() {
        let arrival = bed.arrival_at(&format!("e{n}"), "{}", time(at));
        receipts.push(arrival.receipt);
        bed.record(vec![arrival]).await;
    }
    let repeat = Repeat {
        receipt: receipts[0],
        duplicates: 5,
        conflicts: 0,
        twins: 0,
        first_at: time(minute),
        last_at: time(minute + 1),
    };
    bed.store.add_repeats(vec![repeat]).await.unwrap();
    for _ in 0..2 {
        bed.store.fold(time(NOON)).await.unwrap();
        let all = (time(0), time(2 * NOON));
        let mut counts = Vec::new();
        for count in bed.store.arrival_counts(Span::Minute, all.0, all.1).await.unwrap() {
            assert_eq!(
                (count.source.as_str(), count.event_type.as_str()),
                ("stripe-live", "invoice.paid")
            );
            counts.push((count.start.as_second() - minute, count.outcome, count.count));
        }
        let found = |at, outcome: &str, count| (at, outcome.to_owned(), count);
        let accepted = |at, count| found(at, "accepted", count);
        let wanted = [accepted(0, 2), found(0, "duplicate", 5), accepted(60, 1), accepted(7200, 1)];
        assert_eq!(counts, wanted);
        let hours = bed.store.arrival_counts(Span::Hour, all.0, all.1).await.unwrap();
        let total: u64 = hours.iter().map(|hour| hour.count).sum();
        assert_eq!(total, 9);
        assert!(hours.iter().all(|hour| hour.start.as_second() % 3600 == 0));
    }
}

async fn types_beyond_the_bound_are_counted_together(bed: Bed) {
    let most = usize::try_from(limits::ROLLUP_TYPES).unwrap();
    for part in 0..2 {
        let batch = (0..most).map(|n| Arrival {
            event_type: format!("type-{part}-{n}"),
            ..bed.arrival(&format!("e{part}-{n}"), "{}")
        });
        bed.record(batch.collect()).await;
        bed.store.fold(time(NOON)).await.unwrap();
    }
    let counts = bed.store.arrival_counts(Span::Hour, time(0), time(2 * NOON)).await.unwrap();
    let by_type: BTreeMap<_, _> =
        counts.iter().map(|count| (count.event_type.as_str(), count.count)).collect();
    assert_eq!(by_type.len(), most + 1);
    assert_eq!(by_type[""], limits::ROLLUP_TYPES.unsigned_abs());
}

async fn old_counts_go(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    bed.store.fold(time(NOON)).await.unwrap();
    assert!(bed.rows("arrival_rollups") > 0 && bed.rows("delivery_rollups") > 0);
    let far = time(NOON + 400 * 86_400);
    bed.store.fold(far).await.unwrap();
    assert_eq!(bed.rows("arrival_rollups"), 0);
    assert_eq!(counted(&bed).await, scan(&bed));
}

/// However many are finished, counting them reads none of them.
#[tokio::test(flavor = "multi_thread")]
async fn no_table_is_scanned_for_a_tally() {
    let bed = Bed::postgres().await;
    bed.query(
        "INSERT INTO finished (receipt, created_at, finished_at, epoch, route, source, attempts,
             failures, crashes, snoozes, replays, laned, state)
         SELECT oncebox.new_id(), now(), now(), 1, 1, 1, 1, 0, 0, 0, 0, false, 'processed'
         FROM generate_series(1, 20000); ANALYZE finished",
    );
    let plan = bed.query(concat!("EXPLAIN ", include_str!("../src/store/postgres/sql/tally.sql")));
    // Days that are empty may be looked through.
    let day = bed.query("SELECT tableoid::regclass FROM finished LIMIT 1");
    assert!(!plan.contains(&format!("Seq Scan on {day} ")), "{plan}");
    assert!(!plan.contains("Seq Scan on deliveries"), "{plan}");
    assert!(plan.contains(&format!("Scan using {day}_route_receipt_idx")), "{plan}");

    let bed = Bed::sqlite().await;
    let sql = concat!("EXPLAIN QUERY PLAN ", include_str!("../src/store/sqlite/sql/tally.sql"));
    let plan = bed.query(sql);
    assert!(
        !plan.contains("SCAN d ") || plan.contains("SCAN d USING INDEX deliveries_leased"),
        "{plan}"
    );
    assert!(plan.contains("finished_skipped"), "{plan}");
}

/// A caller that gives up must not leave its question open on a connection that others get.
#[tokio::test(flavor = "multi_thread")]
async fn a_tally_that_is_given_up_is_in_no_ones_way() {
    let bed = Bed::postgres().await;
    let (client, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE oncebox.delivery_counts").await.unwrap();
    // As many as there are connections for lists.
    for _ in 0..4 {
        let tally = tokio::time::timeout(Duration::from_millis(20), bed.store.tally());
        let tally = tally.await;
        assert!(tally.is_err(), "it does not wait for the lock: {tally:?}");
    }
    // Sooner than the lock could be given up.
    let wait = limits::POSTGRES_LOCK_WAIT / 2;
    for _ in 0..limits::POSTGRES_CONNECTIONS {
        tokio::time::timeout(wait, bed.store.routes()).await.expect("at once").unwrap();
    }
    client.batch_execute("ROLLBACK").await.unwrap();
}

/// Two nodes: one leads until it is silent for too long, or resigns.
#[tokio::test(flavor = "multi_thread")]
async fn one_node_leads() {
    let bed = Bed::postgres().await;
    let other = PostgresStore::open(PostgresOptions::new(&bed.url), Purpose::Serve).await.unwrap();
    let other: Arc<dyn Store> = Arc::new(other);
    let clock = Arc::new(ManualClock::at(time(NOON)));
    let first = Maintenance::new(bed.store.clone(), clock.clone());
    let second = Maintenance::new(other, clock);
    assert!(first.run_once().await.unwrap() && first.leads());
    assert!(!second.run_once().await.unwrap() && !second.leads());
    assert!(first.run_once().await.unwrap());
    bed.query("UPDATE leaders SET until = now() - interval '1 second'");
    assert!(second.run_once().await.unwrap() && second.leads());
    assert!(!first.run_once().await.unwrap() && !first.leads());
    second.resign().await;
    assert!(!second.leads());
    assert!(first.run_once().await.unwrap());
}
