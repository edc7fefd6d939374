//! Sessions that freeze, fall silent or break while they work on deliveries: the others go on, and
//! nobody is charged for it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oncebox::delivery::{Claimed, Next, Outcome, Payload, State};
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::store::{
    Claim, Finish, Pick, PostgresOptions, PostgresStore, Purpose, Queue, StoreError,
};
use oncebox::worker::{Consumer, Report, WorkRoute, Worker, WorkerOptions};
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::store::{Bed, LEASE, Route, ending, until};
use tokio::sync::watch;

const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

fn claim(routes: &[Route]) -> Claim {
    let wanted = routes.iter().map(|route| route.wanted(10)).collect();
    Claim { wanted, lease: LEASE, worker: "needle".into() }
}

async fn open(options: PostgresOptions) -> PostgresStore {
    PostgresStore::open(options, Purpose::Serve).await.expect("the store opens")
}

async fn ordered(bed: &Bed) -> Route {
    bed.route("ordered", RouteRules { ordered: true, ..RouteRules::default() }).await
}

fn about_x(bed: &Bed, id: &str, routes: &[Route]) -> Arrival {
    Arrival { object: Some("x".into()), version: None, ..bed.event(id, routes) }
}

/// A session that holds every lane until it is told to commit.
async fn lock_lanes(bed: &Bed) -> tokio_postgres::Client {
    lock_lanes_of(bed, "%").await
}

/// The same for lanes of objects that are like this.
async fn lock_lanes_of(bed: &Bed, object: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN").await.unwrap();
    let lock = "SELECT FROM oncebox.lanes WHERE object LIKE $1 FOR UPDATE";
    client.execute(lock, &[&object]).await.unwrap();
    client
}

/// Whoever waits for a lane sees what its last holder did, whatever the database takes for usual.
#[tokio::test(flavor = "multi_thread")]
async fn the_isolation_is_the_stores_own() {
    let bed = Bed::postgres().await;
    let route = ordered(&bed).await;
    bed.record(vec![about_x(&bed, "e1", &[route])]).await;
    let first = bed.take(&route).await;
    assert!(bed.finish(&first, Next::Retry(Duration::ZERO)).await);
    bed.record(vec![about_x(&bed, "e2", &[route])]).await;
    bed.query(
        "DO $$ BEGIN EXECUTE format(
            'ALTER DATABASE %I SET default_transaction_isolation = %L',
            current_database(), 'repeatable read'
        ); END $$",
    );
    let options = PostgresOptions { claim_wait: LONG, ..PostgresOptions::new(&bed.url) };
    let store = open(options).await;
    let holder = lock_lanes(&bed).await;
    // What this sees before it waits is not what it goes by.
    let claims = tokio::spawn(async move { store.claim(&claim(&[route])).await });
    until(|| bed.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1").await;
    let taken = "UPDATE oncebox.deliveries SET state = 'processing', epoch = epoch + (1 << 20),
        lease_until = now() + interval '1 hour' WHERE attempts = 1; COMMIT";
    holder.batch_execute(taken).await.unwrap();
    assert_eq!(claims.await.unwrap().unwrap().claimed, []);
    assert_eq!(bed.states(&route).await, ["e1 processing", "e2 held:order"]);
}

/// Somebody holds a lane and does not let go of it. Whoever needs it comes back later; whoever
/// does not need it is served.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_stops_nothing_else() {
    let bed = Bed::postgres().await;
    let routes = [ordered(&bed).await, bed.route("plain", RouteRules::default()).await];
    bed.record(vec![about_x(&bed, "e1", &routes)]).await;
    let store = open(PostgresOptions { lock_wait: SHORT, ..PostgresOptions::new(&bed.url) }).await;
    let claimed = store.claim(&claim(&routes)).await.unwrap().claimed;
    assert_eq!(claimed.len(), 2);
    bed.record(vec![about_x(&bed, "e2", &routes)]).await;

    let holder = lock_lanes(&bed).await;
    let more = store.claim(&claim(&routes)).await.unwrap().claimed;
    let of_routes: Vec<_> = more.iter().map(|claimed| claimed.delivery.route).collect();
    assert_eq!(of_routes, [routes[1].no]);
    assert_eq!(store.claim(&claim(&routes[..1])).await.unwrap().claimed, []);

    let endings: Vec<_> = claimed.iter().map(|c| ending(c, Next::Processed)).collect();
    let locked = store.finish(endings.clone()).await.unwrap();
    assert_eq!(locked, [Finish::Locked, Finish::Done]);
    for claimed in &claimed {
        let plain = claimed.delivery.route == routes[1].no;
        let expected = if plain { State::Processed } else { State::Processing };
        let standing = store.standing(claimed.delivery).await.unwrap().unwrap();
        assert_eq!(standing.state, expected);
    }

    holder.batch_execute("COMMIT").await.unwrap();
    let ended = store.finish(endings).await.unwrap();
    assert_eq!(ended, [Finish::Done, Finish::Before]);
    let next = store.claim(&claim(&routes)).await.unwrap().claimed;
    assert_eq!(next.len(), 1);
}

/// Handlers take their time after they have moved watermarks, of `x` and of `z`, which nobody knew.
/// Those behind them do not keep what is due of others from being claimed, however few are wanted;
/// nor does an ending behind them keep others from being written.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_stops_only_those_behind_it() {
    let bed = Bed::postgres().await;
    let route = ordered(&bed).await;
    let about = |object: &str, n: i64| Arrival {
        object: Some(object.into()),
        version: Some(n),
        ..bed.event(&format!("{object}{n}"), &[route])
    };
    let store = open(PostgresOptions { lock_wait: SHORT, ..PostgresOptions::new(&bed.url) }).await;
    bed.record(vec![about("x", 1), about("y", 1)]).await;
    let claimed = store.claim(&claim(&[route])).await.unwrap().claimed;
    assert_eq!(claimed.len(), 2);
    let holder = lock_lanes_of(&bed, "x").await;
    let new = "INSERT INTO oncebox.lanes (route, source, object, touched)
        SELECT route, source, 'z', touched FROM oncebox.lanes WHERE object = 'x'";
    holder.batch_execute(new).await.unwrap();
    let behind = [about("x", 2), about("x", 3), about("z", 1), about("z", 2)];
    bed.record(behind.into_iter().chain([about("v", 1), about("v", 2), about("w", 1)]).collect())
        .await;

    let two = Claim { wanted: vec![route.wanted(2)], ..claim(&[route]) };
    let claims = store.claim(&two).await.unwrap();
    let events: Vec<_> = claims.claimed.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!((events, claims.held.len()), (vec!["v1"], 1));
    let more = store.claim(&two).await.unwrap().claimed;
    assert_eq!(more.iter().map(|claimed| &claimed.event_id).collect::<Vec<_>>(), ["w1"]);

    let endings: Vec<_> = claimed.iter().map(|c| ending(c, Next::Processed)).collect();
    let locked = store.finish(endings.clone()).await.unwrap();
    assert_eq!(locked, [Finish::Locked, Finish::Done]);
    let mut states = bed.states(&route).await;
    states.retain(|state| state.starts_with("x1") || state.starts_with("y1"));
    assert_eq!(states, ["x1 processing", "y1 processed"]);

    holder.batch_execute("ROLLBACK").await.unwrap();
    let ended = store.finish(endings).await.unwrap();
    assert_eq!(ended, [Finish::Done, Finish::Before]);
    let all = store.claim(&claim(&[route])).await.unwrap().claimed;
    assert_eq!(all.iter().map(|claimed| &claimed.event_id).collect::<Vec<_>>(), ["x2", "z1"]);
}

/// A worker hangs in an SQL claim that it does not commit, so it holds the lane of what this worker
/// delivers. Endings of whatever route are written all the same, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn an_uncommitted_claim_holds_up_only_the_ending_behind_it() {
    let bed = Bed::postgres().await;
    let routes = [ordered(&bed).await, bed.route("plain", RouteRules::default()).await];
    let consumer = Arc::new(Waiting::default());
    let work = |route: &Route, name: &str| WorkRoute {
        number: route.no,
        name: name.into(),
        rules: route.rules,
        concurrency: 4,
        rate: None,
        lease: None,
        consumer: consumer.clone(),
    };
    let both = vec![work(&routes[0], "ordered"), work(&routes[1], "plain")];
    let worker = Worker::start(bed.store.clone(), both, WorkerOptions::default());
    let first = bed.send(about_x(&bed, "x1", &routes[..1])).await;
    let first = routes[0].of(first);
    let mut begun = consumer.begun.subscribe();
    begun.wait_for(|begun| *begun == 1).await.unwrap();

    let (client, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    // What it has of the ordered route is finished; it claims no more of it.
    worker.set_routes(vec![work(&routes[1], "plain")]);
    bed.send(about_x(&bed, "x2", &routes[..1])).await;
    client.batch_execute("BEGIN; SELECT FROM oncebox.claim('ordered')").await.unwrap();
    consumer.open.send_replace(true);
    for n in 0..5 {
        bed.due(&format!("e{n}"), &routes[1..]).await;
        until(|| bed.rows("finished") == n + 1).await;
        assert_eq!(bed.delivery(first).await.state, State::Processing);
    }
    client.batch_execute("COMMIT").await.unwrap();
    until(|| bed.rows("finished") == 6).await;
    assert_eq!(bed.delivery(first).await.state, State::Processed);
    worker.stop(Duration::from_secs(10)).await;
}

/// A consumer that waits until it is let go.
#[derive(Default)]
struct Waiting {
    begun: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

#[async_trait]
impl Consumer for Waiting {
    async fn deliver(&self, _: &Claimed, _: Payload) -> Report {
        self.begun.send_modify(|begun| *begun += 1);
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.expect("the consumer lives");
        Report::of(Outcome::Processed)
    }
}

/// A worker hangs in a transaction that has locked its lane, and its lease runs out. Those of the
/// others that ran out are rescued all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_keeps_nobody_else_from_rescue() {
    let bed = Bed::postgres().await;
    let routes = [ordered(&bed).await, bed.route("plain", RouteRules::default()).await];
    bed.record(vec![about_x(&bed, "e1", &routes)]).await;
    let store = open(PostgresOptions { lock_wait: SHORT, ..PostgresOptions::new(&bed.url) }).await;
    assert_eq!(store.claim(&claim(&routes)).await.unwrap().claimed.len(), 2);
    let holder = lock_lanes(&bed).await;
    bed.pass(120);
    assert_eq!(store.rescue(10).await.unwrap().retrying.len(), 1);
    assert_eq!(bed.states(&routes[0]).await, ["e1 processing"]);
    assert_eq!(bed.states(&routes[1]).await, ["e1 retrying"]);
    let locked = store.rescue(10).await;
    assert!(matches!(locked, Err(StoreError::Unavailable(_))), "{locked:?}");
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.rescue(10).await.unwrap().retrying.len(), 1);
    assert_eq!(bed.states(&routes[0]).await, ["e1 retrying"]);
}

/// A machine is cut off just after it has locked a lane. The server takes the lock away from it,
/// and the machine does not wait for its answer for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_idles_in_a_transaction_is_ended() {
    let bed = Bed::postgres().await;
    let route = ordered(&bed).await;
    bed.record(vec![about_x(&bed, "e1", &[route])]).await;
    let first = bed.store.claim(&claim(&[route])).await.unwrap().claimed;
    bed.store.finish(vec![ending(&first[0], Next::Processed)]).await.unwrap();
    bed.record(vec![about_x(&bed, "e2", &[route])]).await;

    let proxy = Proxy::to_url(&bed.url);
    let options = PostgresOptions {
        lock_wait: LONG,
        claim_wait: LONG,
        idle: SHORT,
        patience: 3 * SHORT,
        ..PostgresOptions::new(proxy.url(&bed.url))
    };
    let store = open(options).await;
    let options = PostgresOptions { claim_wait: LONG, ..PostgresOptions::new(&bed.url) };
    let patient = open(options).await;
    let holder = lock_lanes(&bed).await;
    let cut_off = tokio::spawn(async move { store.claim(&claim(&[route])).await });
    let sessions = |which: &str| {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        bed.query(&format!("{sql} AND {which}"))
    };
    until(|| sessions("wait_event_type = 'Lock'") == "1").await;
    proxy.stall();
    holder.batch_execute("COMMIT").await.unwrap();

    let claimed = patient.claim(&claim(&[route])).await.unwrap().claimed;
    assert_eq!(claimed.iter().map(|c| c.event_id.as_str()).collect::<Vec<_>>(), ["e2"]);
    assert_eq!(claimed[0].counts.attempts, 1);
    // The locks go a moment before the session.
    until(|| sessions("state = 'idle in transaction'") == "0").await;
    let cut_off = cut_off.await.unwrap();
    assert!(matches!(cut_off, Err(StoreError::UnknownOutcome(_))), "{cut_off:?}");
}

/// The connection stays open and nothing comes. What was asked on it is asked on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_left() {
    let bed = Bed::postgres().await;
    let route = bed.route("plain", RouteRules::default()).await;
    let event = bed.event("e1", &[route]);
    let receipts = [event.receipt];
    bed.record(vec![event]).await;
    let proxy = Proxy::to_url(&bed.url);
    let url = proxy.url(&bed.url);
    let store = open(PostgresOptions { patience: SHORT, ..PostgresOptions::new(url) }).await;
    let claimed = store.claim(&claim(&[route])).await.unwrap().claimed;
    let leases = [(claimed[0].delivery, claimed[0].lease)];

    proxy.stall();
    let silent = store.payloads(&receipts).await;
    assert!(matches!(silent, Err(StoreError::Unavailable(_))), "{silent:?}");
    proxy.flow();
    assert_eq!(store.payloads(&receipts).await.unwrap().len(), 1);

    proxy.stall();
    let silent = store.extend(&leases, LEASE).await;
    assert!(matches!(silent, Err(StoreError::UnknownOutcome(_))), "{silent:?}");
    proxy.flow();
    assert!(store.extend(&leases, LEASE).await.unwrap()[0].is_some());
}

/// The server commits a claim and nobody hears of it. What it took is given back, and was not
/// tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_is_lost_charges_nothing() {
    let bed = Bed::postgres().await;
    let plain = bed.route("plain", RouteRules::default()).await;
    let proxy = Proxy::to_url(&bed.url);
    let store = open(PostgresOptions::new(proxy.url(&bed.url))).await;
    // The last words of either way to claim.
    for (route, last) in [(plain, &b"needle"[..]), (ordered(&bed).await, b"COMMIT")] {
        let events = ["a", "b", "c"].map(|id| Arrival {
            object: Some(id.into()),
            ..bed.event(&format!("{id}-{}", route.no.0), &[route])
        });
        bed.record(events.into()).await;
        proxy.cut_after_client_bytes(last);
        let lost = store.claim(&claim(&[route])).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");

        let returned = format!(
            "SELECT count(*) FROM deliveries WHERE route = {} AND epoch > 0
             AND state = 'received' AND attempts = 0 AND worker IS NULL",
            route.no.0
        );
        until(|| bed.query(&returned) == "3").await;
        let claimed = store.claim(&claim(&[route])).await.unwrap().claimed;
        let counts: Vec<_> =
            claimed.iter().map(|c| (c.counts.attempts, c.counts.crashes)).collect();
        assert_eq!(counts, [(1, 0); 3]);
    }
}

/// The routes are probed, since their breakers are not closed. A handler holds the lane of the
/// first delivery that one of them would try.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_stops_no_probe_of_others() {
    let bed = Bed::postgres().await;
    let ordered = ordered(&bed).await;
    let fresh = RouteRules { skip_stale: true, ..RouteRules::default() };
    let other = bed.route("other", fresh).await;
    let about = |object: &str, id: &str, route| Arrival {
        object: Some(object.into()),
        ..bed.event(id, &[route])
    };
    bed.record(vec![about("x", "x1", ordered)]).await;
    let first = bed.take(&ordered).await;
    assert!(bed.finish(&first, Next::Processed).await);
    bed.send(about("x", "x2", ordered)).await;
    bed.send(about("y", "y1", ordered)).await;
    bed.send(about("x", "z1", other)).await;

    let store = open(PostgresOptions { lock_wait: SHORT, ..PostgresOptions::new(&bed.url) }).await;
    let holder = lock_lanes_of(&bed, "x").await;
    let mut probes = claim(&[ordered, other]);
    for wanted in &mut probes.wanted {
        (wanted.pick, wanted.most) = (Pick::UnfailedFirst, 1);
    }
    let mut claimed = store.claim(&probes).await.unwrap().claimed;
    claimed.sort_by_key(|claimed| claimed.delivery.route);
    let ids: Vec<_> = claimed.iter().map(|claimed| claimed.event_id.as_str()).collect();
    assert_eq!(ids, ["y1", "z1"]);
    holder.batch_execute("COMMIT").await.unwrap();
    let ids = async || {
        let claimed = store.claim(&probes).await.unwrap().claimed;
        claimed.into_iter().map(|claimed| claimed.event_id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["x2"]);
}

/// The safety net looks at held deliveries of all routes in one go.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_stops_no_safety_net_of_others() {
    let bed = Bed::postgres().await;
    let route = ordered(&bed).await;
    let about =
        |object: &str| Arrival { object: Some(object.into()), ..bed.event(object, &[route]) };
    bed.record(vec![about("x"), about("y")]).await;
    for claimed in bed.take_all(&route).await {
        assert!(bed.finish(&claimed, Next::Retry(Duration::ZERO)).await);
    }
    bed.query("UPDATE deliveries SET state = 'held', reason = 'order'");
    let store = open(PostgresOptions { lock_wait: SHORT, ..PostgresOptions::new(&bed.url) }).await;
    let holder = lock_lanes_of(&bed, "x").await;
    assert_eq!(store.release_unblocked(10).await.unwrap().released, 1);
    assert_eq!(bed.states(&route).await, ["x held:order", "y received"]);
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.release_unblocked(10).await.unwrap().released, 1);
}

/// A handler has locked its delivery while its route comes to guard objects. Others get theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_delivery_keeps_no_other_from_its_object() {
    let bed = Bed::postgres().await;
    let plain = bed.route("ordered", RouteRules::default()).await;
    bed.record((0..3).map(|n| about_x(&bed, &format!("e{n}"), &[plain])).collect()).await;
    let (holder, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; SELECT FROM oncebox.deliveries WHERE receipt = (
        SELECT receipt FROM oncebox.deliveries ORDER BY receipt OFFSET 1 LIMIT 1
    ) FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();

    let route = ordered(&bed).await;
    let unlaned = "SELECT count(*) FROM deliveries WHERE lane IS NULL";
    assert_eq!(bed.query(unlaned), "1");
    assert!(!bed.store.fill_lanes().await.unwrap(), "there is nothing to do at once");
    assert_eq!(bed.claim(&route, 10).await.claimed, []);
    holder.batch_execute("COMMIT").await.unwrap();
    while bed.store.fill_lanes().await.unwrap() {}
    assert_eq!(bed.query(unlaned), "0");
    assert_eq!(bed.work_off(&route).await, ["e0", "e1", "e2"]);
}
