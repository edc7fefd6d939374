//! What only the shared store has to do for deliveries: several processes at once, whatever the
//! plan, over connections that break.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncebox::delivery::{DeliveryId, Next, State};
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::store::{
    self, Claim, Finish, PostgresOptions, PostgresStore, Purpose, Queue, Store, StoreError,
};
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::store::{Bed, LEASE, Route, ending, finish};

const CLAIM: &str = include_str!("../src/store/postgres/sql/claim.sql");

const MINUTE: Duration = Duration::from_secs(60);

fn claim(routes: &[Route], most: usize) -> Claim {
    let wanted = routes.iter().map(|route| route.wanted(most)).collect();
    Claim { wanted, lease: LEASE, worker: "worker-1".into() }
}

async fn another(bed: &Bed) -> Arc<dyn Store> {
    store::open(&bed.url, Purpose::Serve).await.expect("another process opens the store")
}

async fn several(bed: &Bed, count: usize) -> Vec<Route> {
    let mut routes = Vec::new();
    for n in 0..count {
        routes.push(bed.route(&format!("route-{n}"), RouteRules::default()).await);
    }
    routes
}

async fn record_many(bed: &Bed, routes: &[Route], count: usize) {
    let events = (0..count).map(|n| bed.event(&format!("e{n}"), routes));
    bed.record(events.collect()).await;
}

/// Two processes with several claims each: every delivery once, no claim above its limits.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_never_claim_the_same() {
    let bed = Bed::postgres().await;
    let routes = several(&bed, 3).await;
    record_many(&bed, &routes, 200).await;
    let stores = [bed.store.clone(), another(&bed).await];
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (store, claim) = (stores[n % 2].clone(), claim(&routes, 7));
        tasks.spawn(async move {
            let mut mine: Vec<DeliveryId> = Vec::new();
            loop {
                let claimed = store.claim(&claim).await.unwrap().claimed;
                for wanted in &claim.wanted {
                    let of_route = claimed.iter().filter(|c| c.delivery.route == wanted.route);
                    assert!(of_route.count() <= 7);
                }
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|claimed| claimed.delivery));
            }
        });
    }
    let all: Vec<DeliveryId> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), 600);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 600);
}

/// A planner that may join in one way only must not make a claim take more than wanted.
#[tokio::test(flavor = "multi_thread")]
async fn no_plan_makes_a_claim_exceed_its_limit() {
    let bed = Bed::postgres().await;
    let routes = several(&bed, 2).await;
    record_many(&bed, &routes, 250).await;
    bed.query("ANALYZE deliveries");
    let ways = [
        "SELECT 1",
        "SET enable_hashjoin = off; SET enable_mergejoin = off",
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off",
        "SET enable_nestloop = off; SET enable_mergejoin = off",
        "SET enable_nestloop = off; SET enable_hashjoin = off",
        "SET enable_indexscan = off; SET enable_bitmapscan = off",
    ];
    let numbers: Vec<i16> = routes.iter().map(|route| route.no.0).collect();
    for (n, way) in ways.iter().enumerate() {
        let (client, connection) =
            tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(way).await.unwrap();
        let floors = vec![jiff::Timestamp::UNIX_EPOCH; 2];
        let rows = client
            .query(CLAIM, &[&numbers, &vec![3_i64, 5], &floors, &vec![60_000_i64; 2], &"worker"])
            .await
            .unwrap();
        assert_eq!(rows.len(), 8, "{way}");
        let leased = bed.query("SELECT count(*) FROM deliveries WHERE state = 'processing'");
        assert_eq!(leased, (8 * (n + 1)).to_string(), "{way}");
    }
}

/// Among many deliveries the claim goes along the index of those that are due, and sorts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn claims_go_along_the_index_of_what_is_due() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.query(&format!(
        "INSERT INTO deliveries (receipt, created_at, route, source, state, due_at)
         SELECT gen_random_uuid(), now(), {}, 1, 'received', now() - n * interval '1 second'
         FROM generate_series(1, 50000) AS n",
        route.no.0
    ));
    bed.query("ANALYZE deliveries");
    let plan = bed.query(&format!(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE claim AS {CLAIM}
         EXPLAIN EXECUTE claim (
             ARRAY[1], ARRAY[10], ARRAY[now() - interval '1 hour'], ARRAY[1000], 'w'
         )"
    ));
    assert!(plan.contains("Index Scan using deliveries_due on deliveries"), "{plan}");
    assert!(!plan.contains("Seq Scan on deliveries"), "{plan}");
    assert!(!plan.contains("Incremental Sort"), "{plan}");
}

/// What connections for deliveries are planned with.
const WORKING: &str = "SET search_path TO oncebox; SET enable_seqscan = off;
    SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan";

/// The statements that run on those connections, and the indexes some of them go along. The others
/// may only use an index by its whole key.
const STATEMENTS: [(&str, &[&str]); 37] = [
    ("claim", &["deliveries_due", "deliveries_lost"]),
    ("delete_receipts", &[]),
    ("expirable_receipts", &[]),
    ("extend_leases", &[]),
    ("fill_deliveries", &[]),
    ("find_candidates", &["deliveries_due", "deliveries_lost"]),
    ("find_ended", &[]),
    ("find_expired_leases", &["deliveries_leased"]),
    (
        "find_facts",
        &[
            "deliveries_lane",
            "deliveries_lane_leased",
            "deliveries_operation",
            "finished_operation",
        ],
    ),
    ("find_free_candidates", &[]),
    ("find_guards", &[]),
    ("find_held", &["deliveries_held"]),
    ("find_locked", &[]),
    ("find_payloads", &[]),
    ("find_reopened_guards", &[]),
    ("find_standing", &[]),
    ("find_standings", &[]),
    ("find_unfailed", &["deliveries_due", "deliveries_received"]),
    ("finish", &[]),
    ("hasten", &[]),
    ("hold_deliveries", &[]),
    ("lease_deliveries", &[]),
    ("lock_candidates", &[]),
    ("lock_expired", &[]),
    ("lock_free_lanes", &[]),
    ("lock_free_operations", &[]),
    ("lock_receipts", &[]),
    ("move_watermark", &[]),
    ("release_deliveries", &[]),
    ("release_lane_head", &["deliveries_lane", "deliveries_lane_leased"]),
    ("release_operation", &["deliveries_operation"]),
    ("remember_operation", &[]),
    ("reopen_finished", &[]),
    ("reopen_open", &[]),
    ("rescue_deliveries", &[]),
    ("skip_deliveries", &[]),
    ("step_replay", &[]),
];

/// A plan is made once, when a table may be empty, and must do when it holds a million. So every
/// statement leaves the planner no choice, whatever it believes.
#[tokio::test(flavor = "multi_thread")]
async fn plans_go_by_keys_whatever_the_planner_believes() {
    let bed = Bed::postgres().await;
    bed.query("ANALYZE");
    for (name, along) in STATEMENTS {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/postgres/sql");
        let sql = std::fs::read_to_string(format!("{folder}/{name}.sql")).unwrap();
        let values = (1..20).take_while(|n| sql.contains(&format!("${n}"))).map(|_| "NULL");
        let values = values.collect::<Vec<_>>().join(", ");
        let explain = format!("{WORKING}; PREPARE it AS {sql} EXPLAIN EXECUTE it ({values})");
        let plan = bed.query(&explain);
        let lines: Vec<&str> = plan.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            assert!(!line.contains("Seq Scan on"), "{name}:\n{plan}");
            let Some((_, index)) = line.split_once("Scan using ") else { continue };
            let index = index.split_whitespace().next().unwrap();
            // There are few of these, and they do not come with the deliveries.
            if ["routes_pkey", "sources_pkey"].contains(&index) {
                continue;
            }
            let cond = lines.get(n + 1).filter(|next| next.contains("Index Cond"));
            // A key of a delivery that is told by its route alone is walked over.
            let of_delivery = ["deliveries_pkey", "finished_pkey", "attempts_pkey"];
            let whole =
                !of_delivery.contains(&index) || cond.is_some_and(|c| c.contains("receipt"));
            assert!(cond.is_some() && whole, "{name} walks along {index}:\n{plan}");
            let expected = index.ends_with("_pkey") || along.contains(&index);
            assert!(expected, "{name} uses {index}:\n{plan}");
        }
    }
}

/// What one process records is announced to another, and so is what it lets go.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_hears_of_what_is_due() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let other = another(&bed).await;
    let mut due = other.due();
    // It listens once it has said so itself.
    due.wait_for(|count| *count > 0).await.unwrap();
    due.mark_unchanged();
    bed.due("e1", &[route]).await;
    tokio::time::timeout(MINUTE, due.changed()).await.expect("announced").unwrap();

    let claimed = bed.take(&route).await;
    due.mark_unchanged();
    assert!(bed.finish(&claimed, Next::Return).await);
    tokio::time::timeout(MINUTE, due.changed()).await.expect("announced").unwrap();
}

/// An operator's command has nobody to wake and wakes others before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_hears_of_what_a_command_did() {
    let bed = Bed::postgres().await;
    bed.route("billing", RouteRules::default()).await;
    let mut due = bed.store.due();
    due.wait_for(|count| *count > 0).await.unwrap();
    let command = store::open(&bed.url, Purpose::Operate).await.unwrap();
    let act = oncebox_testkit::store::act("");
    assert!(command.pause_route("billing", true, &act).await.unwrap());
    due.mark_unchanged();
    assert!(command.pause_route("billing", false, &act).await.unwrap());
    command.close().await;
    tokio::time::timeout(MINUTE, due.changed()).await.expect("announced").unwrap();
}

/// While nobody listened something may have been said: the signal moves once one does again.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_was_cut_off_comes_back() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    let mut due = store.due();
    due.wait_for(|count| *count > 0).await.unwrap();
    due.mark_unchanged();
    proxy.cut();
    tokio::time::timeout(MINUTE, due.changed()).await.expect("it listens again").unwrap();
    due.mark_unchanged();
    bed.due("e1", &[route]).await;
    tokio::time::timeout(MINUTE, due.changed()).await.expect("announced").unwrap();
}

/// A store that reaches the bed's database through a proxy.
async fn through(proxy: &Proxy, bed: &Bed) -> PostgresStore {
    let options = PostgresOptions::new(proxy.url(&bed.url));
    PostgresStore::open(options, Purpose::Serve).await.expect("the store opens")
}

/// The connection breaks while outcomes are committed. Told again, the store knows them for what
/// they are: ended by this very lease. Another outcome of the same lease comes too late.
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_whose_answer_is_lost_is_ours_when_told_again() {
    let bed = Bed::postgres().await;
    for (name, rules) in [
        ("plain", RouteRules::default()),
        ("ordered", RouteRules { ordered: true, ..RouteRules::default() }),
    ] {
        let route = bed.route(name, rules).await;
        let event = |id: &str| Arrival {
            object: Some(id.to_owned()),
            ..bed.event(&format!("{name}-{id}"), &[route])
        };
        bed.record(["a", "b", "c", "d"].map(event).into()).await;
        let proxy = Proxy::to_url(&bed.url);
        let store = through(&proxy, &bed).await;
        let claims = store.claim(&claim(&[route], 10)).await.unwrap().claimed;
        let nexts = [Next::Processed, Next::Retry(MINUTE), Next::Dead, Next::Return];
        let mut endings: Vec<_> = claims.iter().zip(nexts).map(|(c, n)| ending(c, n)).collect();
        // The last words of either way to end a batch.
        endings[0].summary = Some("needle".into());
        let needle = if route.rules.is_guarded() { &b"COMMIT"[..] } else { b"needle" };
        proxy.cut_after_client_bytes(needle);
        let lost = store.finish(endings.clone()).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
        assert_eq!(store.finish(endings.clone()).await.unwrap(), [Finish::Before; 4], "{name}");
        for ending in &mut endings {
            ending.next = Next::Stale;
        }
        assert_eq!(store.finish(endings).await.unwrap(), [Finish::Lost; 4], "{name}");
        let states = bed.states(&route).await;
        let expected = ["processed", "retrying", "dead", "received"];
        for (state, expected) in states.iter().zip(expected) {
            assert!(state.ends_with(expected), "{states:?}");
        }
    }
}

/// One object that everything is about, and every call at the same time from two processes.
/// Nobody is refused, and the object's events are processed once each, one at a time, in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_lane_is_worked_off_in_order() {
    const EVENTS: usize = 120;
    let bed = Bed::postgres().await;
    let rules = RouteRules { ordered: true, skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let event = |n: usize| Arrival {
        object: Some("hot".into()),
        version: i64::try_from(n).ok(),
        ..bed.event(&format!("e{n}"), &[route])
    };
    bed.record((0..EVENTS).map(event).collect()).await;
    let stores = [bed.store.clone(), another(&bed).await];
    let done: Arc<Mutex<Vec<i64>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let (store, done) = (stores[n % 2].clone(), done.clone());
        tasks.spawn(async move {
            while done.lock().unwrap().len() < EVENTS {
                work(&*store, &route, &done).await;
            }
        });
    }
    for n in 0..4 {
        let (store, done) = (stores[n % 2].clone(), done.clone());
        tasks.spawn(async move {
            while done.lock().unwrap().len() < EVENTS {
                store.rescue(10).await.unwrap();
                store.release_unblocked(10).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let expected: Vec<i64> = (0..).take(EVENTS).collect();
    assert_eq!(*done.lock().unwrap(), expected);
    let processed = State::Processed.as_str();
    let sql = format!("SELECT count(*) FROM finished WHERE state = '{processed}' AND crashes = 0");
    assert_eq!(bed.query(&sql), EVENTS.to_string());
}

/// Claims some, extends their leases while they end, and fails every fifth the first time.
async fn work(store: &dyn Store, route: &Route, done: &Mutex<Vec<i64>>) {
    for claimed in store.claim(&claim(&[*route], 3)).await.unwrap().claimed {
        let version = claimed.version.unwrap();
        let fails = version % 5 == 0 && claimed.counts.attempts == 1;
        if !fails {
            done.lock().unwrap().push(version);
        }
        let next = if fails { Next::Retry(Duration::ZERO) } else { Next::Processed };
        let leases = [(claimed.delivery, claimed.lease)];
        let (_, ended) =
            tokio::join!(store.extend(&leases, LEASE), finish(store, ending(&claimed, next)));
        assert_eq!(ended, Finish::Done);
    }
}
