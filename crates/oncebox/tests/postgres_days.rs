//! Days of receipts on PostgreSQL: made ahead or when they are needed, and taken out whole.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::{Next, State};
use oncebox::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded};
use oncebox::replay::{How, Reopened, ReplayFilter};
use oncebox::retention::{Keep, Retention};
use oncebox::route::RouteRules;
use oncebox::store::{ExpireRange, Repeat};
use oncebox_testkit::postgres;
use oncebox_testkit::store::{Bed, Opened, Route};
use tokio_postgres::error::SqlState;

const DAY: i64 = 86_400;

fn days_from_now(days: i64) -> Timestamp {
    SystemClock.now() + SignedDuration::from_secs(days * DAY)
}

fn arrival(bed: &Bed, event_id: &str, at: Timestamp, routes: &[Route]) -> Arrival {
    let takers = routes.iter().map(Route::taker).collect();
    // The mint of a bed never goes back.
    let receipt = ReceiptMint::new().mint(at);
    Arrival {
        receipt,
        takers,
        ..bed.arrival_at(event_id, &format!("{{\"id\":\"{event_id}\"}}"), at)
    }
}

/// Everything that ends before a time.
fn before(bed: &Bed, end: Timestamp) -> ExpireRange {
    ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(end),
        sources: vec![bed.source],
        at: SystemClock.now(),
    }
}

/// Takes steps until all days before a time are gone. Says how many receipts went.
async fn expire_days(bed: &Bed, end: Timestamp) -> usize {
    let mut removed = 0;
    loop {
        let step = bed.store.expire_days(&before(bed, end)).await.unwrap();
        removed += step.removed;
        if step.floor.is_some() {
            return removed;
        }
    }
}

async fn replay(bed: &Bed, receipt: ReceiptId) -> Vec<Reopened> {
    let filter = ReplayFilter { receipts: vec![receipt], ..Default::default() };
    bed.replay(filter, How { force: true, ignore_stale: false }).await
}

/// How many deliveries are counted in a state.
async fn counted(bed: &Bed, state: State) -> u64 {
    let tallies = bed.store.tally().await.unwrap();
    tallies.iter().filter(|tally| tally.state == state).map(|tally| tally.count).sum()
}

fn days(bed: &Bed, state: &str) -> usize {
    let sql = format!("SELECT count(*) FROM oncebox.days WHERE state = '{state}'");
    postgres::query(&bed.url, &sql).parse().unwrap()
}

/// A day of finished deliveries, with one that is dead and one that waits: those two keep all that
/// belongs to them, and can be worked on and replayed; of the others only their identities stay.
#[tokio::test]
async fn a_day_goes_whole_but_for_what_is_unfinished() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let other = bed.route("archive", RouteRules::default()).await;
    let now = SystemClock.now();
    let mut receipts = Vec::new();
    for n in 0..5 {
        let at = now + SignedDuration::from_millis(n);
        let arrival = arrival(&bed, &format!("evt_{n}"), at, &[route, other]);
        receipts.push(arrival.receipt);
        assert_eq!(bed.record(vec![arrival]).await, [Recorded::Accepted]);
    }
    let bytes = 5 * bed.store.receipt(receipts[0]).await.unwrap().unwrap().body.len() + 5 * 31;
    bed.store.add_stored(vec![(bed.source, i64::try_from(bytes).unwrap())]).await.unwrap();
    let repeat = |receipt| Repeat {
        receipt,
        duplicates: 1,
        conflicts: 0,
        twins: 0,
        first_at: now,
        last_at: now,
    };
    bed.store.add_repeats(receipts.iter().copied().map(repeat).collect()).await.unwrap();
    for n in 0..5 {
        let claimed = bed.take(&other).await;
        assert!(bed.finish(&claimed, Next::Processed).await);
        let claimed = bed.take(&route).await;
        let next = match n {
            3 => Next::Dead,
            4 => Next::Retry(std::time::Duration::ZERO),
            _ => Next::Processed,
        };
        assert!(bed.finish(&claimed, next).await);
    }
    assert_eq!(counted(&bed, State::Processed).await, 8);

    assert_eq!(expire_days(&bed, days_from_now(2)).await, 3);
    assert_eq!(bed.event_ids().await, ["evt_3", "evt_4"]);
    assert_eq!((bed.rows("finished"), bed.rows("attempts"), bed.rows("repeats")), (2, 2, 2));
    assert_eq!((bed.rows("deliveries"), bed.rows("identities")), (2, 5));
    assert_eq!(counted(&bed, State::Processed).await, 2);
    let stored = bed.store.stored().await.unwrap();
    assert_eq!(stored, [(bed.source, i64::try_from(bytes).unwrap() / 5 * 2)]);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'oncebox'
        AND tablename ~ '^(receipts|requests|finished|attempts)_'";
    let left = 4 * (1 + days(&bed, "open"));
    assert_eq!(postgres::query(&bed.url, tables), left.to_string());

    // What went is known, and gone; what stayed goes on.
    let again = arrival(&bed, "evt_0", SystemClock.now(), &[route]);
    assert_eq!(bed.record(vec![again]).await, [Recorded::Duplicate { receipt: receipts[0] }]);
    assert_eq!(replay(&bed, receipts[0]).await, []);
    assert_eq!(replay(&bed, receipts[3]).await.len(), 2);
    for _ in 0..2 {
        let claimed = bed.take(&route).await;
        assert!(bed.finish(&claimed, Next::Processed).await);
    }
    // Both are finished but for a replayed one, and go one by one.
    let step = bed.store.expire_receipts(&before(&bed, days_from_now(2))).await.unwrap();
    assert_eq!(step.removed, 1);
    let claimed = bed.take(&other).await;
    assert!(bed.finish(&claimed, Next::Processed).await);
    let step = bed.store.expire_receipts(&before(&bed, days_from_now(2))).await.unwrap();
    assert_eq!(step.removed, 1);
    assert_eq!((bed.rows("receipts"), bed.rows("finished"), bed.rows("repeats")), (0, 0, 0));
}

/// A process that dies between the steps leaves a day that the next one goes on with.
#[tokio::test]
async fn a_day_that_is_out_is_counted_out_by_whoever_comes_next() {
    let mut bed = Bed::postgres().await;
    bed.record(vec![arrival(&bed, "evt_1", SystemClock.now(), &[])]).await;
    // The days before it have nothing.
    while days(&bed, "gone") == 0 || bed.rows("receipts") == 1 {
        assert_eq!(
            bed.store.expire_days(&before(&bed, days_from_now(2))).await.unwrap().floor,
            None
        );
    }
    assert_eq!(days(&bed, "gone"), 1);
    bed.reopen().await;
    assert_eq!(expire_days(&bed, days_from_now(2)).await, 1);
    assert_eq!((days(&bed, "gone"), days(&bed, "before")), (0, 1));
}

/// Between the mark and the removal nobody opens a delivery of the day again; and as long as
/// somebody is at it, the day is not marked.
#[tokio::test]
async fn a_delivery_of_a_day_that_closes_has_expired() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let arrival = arrival(&bed, "evt_1", SystemClock.now(), &[route]);
    let receipt = arrival.receipt;
    bed.record(vec![arrival]).await;
    let claimed = bed.take(&route).await;
    assert!(bed.finish(&claimed, Next::Processed).await);

    postgres::execute(&bed.url, "UPDATE oncebox.days SET state = 'closing' WHERE state = 'open'");
    assert_eq!(replay(&bed, receipt).await, [Reopened::Gone]);
    assert_eq!((bed.rows("deliveries"), bed.rows("finished")), (0, 1));

    postgres::execute(&bed.url, "UPDATE oncebox.days SET state = 'open' WHERE state = 'closing'");
    let (opening, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    opening.batch_execute("BEGIN; SELECT 1 FROM oncebox.days FOR SHARE").await.unwrap();
    assert_eq!(expire_days(&bed, days_from_now(2)).await, 0);
    assert_eq!(bed.rows("receipts"), 1);
    opening.batch_execute("COMMIT").await.unwrap();
    assert_eq!(replay(&bed, receipt).await, [Reopened::Opened]);
    assert_eq!(expire_days(&bed, days_from_now(2)).await, 0);
    assert_eq!((bed.rows("receipts"), bed.rows("deliveries")), (1, 1));
}

/// A backup or a report reads for hours: the day waits, and nobody waits for the day.
#[tokio::test]
async fn a_reader_holds_up_the_day_but_not_the_senders() {
    let bed = Bed::postgres().await;
    bed.record(vec![arrival(&bed, "evt_1", SystemClock.now(), &[])]).await;
    let (reader, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let read = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM oncebox.receipts";
    reader.batch_execute(read).await.unwrap();
    let step = bed.store.expire_days(&before(&bed, days_from_now(2))).await.unwrap();
    assert!(step.floor.is_some());
    assert_eq!((days(&bed, "closing"), days(&bed, "gone"), bed.rows("receipts")), (0, 0, 1));
    let next = arrival(&bed, "evt_2", SystemClock.now(), &[]);
    assert_eq!(bed.record(vec![next]).await, [Recorded::Accepted]);
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(expire_days(&bed, days_from_now(2)).await, 2);
}

/// Clocks that are far ahead or far behind, and two nodes at the same moment.
#[tokio::test]
async fn a_day_that_nobody_made_is_made_when_it_is_needed() {
    let bed = Bed::postgres().await;
    let there = Opened::open(&bed.url).await.store();
    let open = days(&bed, "open");
    let ours = arrival(&bed, "evt_1", days_from_now(400), &[]);
    let theirs = arrival(&bed, "evt_2", days_from_now(400), &[]);
    let (here, there) =
        tokio::join!(bed.store.record(Arc::from([ours])), there.record(Arc::from([theirs])));
    assert_eq!(
        (here.unwrap(), there.unwrap()),
        (vec![Recorded::Accepted], vec![Recorded::Accepted])
    );
    assert_eq!(days(&bed, "open"), open + 1);
    // Twins are recorded by another statement.
    let first = bed.unsigned_at("evt_3", "{}", days_from_now(0));
    let twin = bed.unsigned_at("evt_4", "{}", days_from_now(500));
    bed.record(vec![first.clone()]).await;
    assert_eq!(bed.record(vec![twin]).await, [Recorded::Twin { first: first.receipt }]);
    let old = arrival(&bed, "evt_5", days_from_now(-1000), &[]);
    assert_eq!(bed.record(vec![old]).await, [Recorded::Accepted]);
    assert_eq!((bed.rows("receipts"), days(&bed, "open")), (5, open + 2));
}

/// Days are made ahead by whoever leads; a second time there is nothing to make.
#[tokio::test]
async fn days_are_made_two_weeks_ahead() {
    let bed = Bed::postgres().await;
    let newest = "SELECT max(day) - oncebox.today() FROM oncebox.days";
    assert_eq!(postgres::query(&bed.url, newest), "14");
    let drop = "DROP TABLE oncebox.receipts_DAY, oncebox.requests_DAY, oncebox.finished_DAY,
        oncebox.attempts_DAY; DELETE FROM oncebox.days WHERE day = DAY";
    let last = postgres::query(&bed.url, "SELECT max(day) FROM oncebox.days");
    postgres::execute(&bed.url, &drop.replace("DAY", &last));
    assert_eq!(postgres::query(&bed.url, newest), "13");
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = bed.store.clone();
        nodes.spawn(async move { store.make_ready().await });
    }
    let made = nodes.join_all().await;
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    assert_eq!(postgres::query(&bed.url, newest), "14");
}

/// A request came just before midnight, and its last event just after.
#[tokio::test]
async fn a_request_is_kept_for_events_of_the_next_day() {
    let bed = Bed::postgres().await;
    let midnight = Timestamp::from_second(SystemClock.now().as_second() / DAY * DAY).unwrap();
    let mut arrivals = bed.request(&[("evt_1", "{}"), ("evt_2", "[]")]);
    let request = ReceiptId::floor(midnight - SignedDuration::from_millis(5));
    for (arrival, at) in arrivals.iter_mut().zip([-5, 5]) {
        arrival.receipt = ReceiptId::floor(midnight + SignedDuration::from_millis(at));
        arrival.part.as_mut().unwrap().request = request;
    }
    let (first, second) = (arrivals[0].receipt, arrivals[1].receipt);
    bed.record(arrivals).await;
    assert_eq!(expire_days(&bed, midnight).await, 1);
    assert!(bed.store.receipt(first).await.unwrap().is_none());
    let kept = bed.store.receipt(second).await.unwrap().unwrap();
    assert_eq!(kept.signed_body(), b"[{},[]]");
    assert_eq!(expire_days(&bed, days_from_now(2)).await, 1);
    assert_eq!(expire_days(&bed, days_from_now(3)).await, 0);
    assert_eq!((bed.rows("receipts"), bed.rows("requests")), (0, 0));
}

/// Makes days of the last so many, as if the store had been there for that long.
fn make_past_days(bed: &Bed, past: i64) {
    let sql = format!(
        "DO $$
        DECLARE
            oldest integer := (SELECT day + 1 FROM oncebox.days WHERE state = 'before');
            first integer := oncebox.today() - {past};
            parent text;
        BEGIN
            FOREACH parent IN ARRAY oncebox.daily() LOOP
                EXECUTE format(
                    'ALTER TABLE oncebox.%1$s DETACH PARTITION oncebox.%1$s_before_%2$s;
                    ALTER TABLE oncebox.%1$s_before_%2$s RENAME TO %1$s_before_%3$s;
                    ALTER TABLE oncebox.%1$s ATTACH PARTITION oncebox.%1$s_before_%3$s
                        FOR VALUES FROM (MINVALUE) TO (%4$L)',
                    parent, oldest, first, oncebox.first_of_day(first)
                );
            END LOOP;
            UPDATE oncebox.days SET day = first - 1 WHERE state = 'before';
            PERFORM oncebox.make_days(first, oldest);
        END $$"
    );
    postgres::execute(&bed.url, &sql);
}

/// What sources that keep longest received goes with its day, and what others received when its
/// window ends. If the longest window is shorter than a week, all of it ends on time.
#[tokio::test]
async fn a_long_window_lasts_until_the_end_of_its_day() {
    let bed = Bed::postgres().await;
    make_past_days(&bed, 40);
    let brief = bed.store.register_source("brief", None).await.unwrap();
    let midnight = SystemClock.now().as_second() / DAY * DAY - 30 * DAY;
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    // The first second of the day that ends within a day, and the last of the day before it.
    let young = arrival(&bed, "young", at(midnight), &[]);
    let old = arrival(&bed, "old", at(midnight - 1), &[]);
    let other = Arrival { source: brief, ..arrival(&bed, "other", at(midnight - DAY / 2), &[]) };
    let fresh = Arrival { source: brief, ..arrival(&bed, "fresh", at(midnight + DAY), &[]) };
    bed.record(vec![other, old, young, fresh]).await;
    let pass = async |longest: i64| {
        let keep = |window: i64| {
            let window = SignedDuration::from_secs(window);
            Keep { payloads: window, identities: window }
        };
        let windows =
            HashMap::from([("stripe-live".into(), keep(longest)), ("brief".into(), keep(DAY))]);
        let clock = Arc::new(SystemClock);
        let retention = Retention::new(bed.store.clone(), clock, Keep::default(), windows);
        retention.run_once(|_| {}).await.unwrap().receipts
    };
    assert_eq!(pass(31 * DAY).await, 2, "those of the other source");
    assert_eq!(bed.event_ids().await, ["old", "young"]);
    assert_eq!(pass(30 * DAY).await, 1);
    assert_eq!(bed.event_ids().await, ["young"]);
    assert_eq!((days(&bed, "before"), days(&bed, "gone")), (1, 0));
    assert_eq!(pass(6 * DAY).await, 1);
    assert_eq!(bed.rows("receipts"), 0);
}

/// Events come in and are worked on, those of today and older ones, while day after day is taken
/// out. Whatever is open has its receipt, whatever was counted is there, and nobody is refused.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_days_go() {
    const DAYS: i64 = 8;
    let bed = Arc::new(Bed::postgres().await);
    make_past_days(&bed, DAYS);
    let route = bed.route("billing", RouteRules::default()).await;
    let mut recorded = 0;
    for day in 1..=DAYS {
        let at = days_from_now(-day);
        let events = (0..40).map(|n| arrival(&bed, &format!("old_{day}_{n}"), at, &[route]));
        recorded += bed.record(events.collect()).await.len();
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let recording = tokio::spawn({
        let (bed, stopped) = (bed.clone(), stopped.clone());
        async move {
            while !*stopped.borrow() {
                let events = (0..8).map(|n| format!("evt_{recorded}_{n}"));
                let batch = events.map(|id| arrival(&bed, &id, SystemClock.now(), &[route]));
                let batch = bed.record(batch.collect()).await;
                assert_eq!(batch, [Recorded::Accepted; 8]);
                recorded += batch.len();
            }
            recorded
        }
    });
    let working = tokio::spawn({
        let (bed, stopped) = (bed.clone(), stopped.clone());
        async move {
            let mut processed = 0;
            while !*stopped.borrow() {
                for (n, claimed) in bed.take_all(&route).await.iter().enumerate() {
                    let next = match n % 4 {
                        0 => Next::Dead,
                        1 => Next::Retry(std::time::Duration::ZERO),
                        _ => Next::Processed,
                    };
                    assert!(bed.finish(claimed, next).await, "its lease is good");
                    processed += usize::from(next == Next::Processed);
                }
            }
            processed
        }
    });
    // A day of which somebody ends a delivery right now is busy, and tried again.
    let mut removed = 0;
    let end = days_from_now(0);
    let today = Timestamp::from_second(end.as_second() / DAY * DAY).unwrap();
    let last = format!("SELECT count(*) FROM oncebox.days WHERE day < {}", today.as_second() / DAY);
    for _ in 0..50 {
        removed += expire_days(&bed, today).await;
        // Only the last that went is left, to tell where days begin.
        if postgres_query(&bed, &last).await == "1" {
            break;
        }
    }
    stop.send_replace(true);
    let (recorded, processed) = (recording.await.unwrap(), working.await.unwrap());
    assert_eq!(postgres_query(&bed, &last).await, "1", "all days before today have gone");
    assert!(removed > 0 && processed >= removed, "{removed} of {processed}");
    assert_eq!(bed.rows("deliveries") + processed, recorded);
    assert_eq!(bed.rows("finished") + removed, processed);
    assert_eq!(bed.rows("receipts") + removed, recorded);
    let orphans = "deliveries AS d WHERE NOT EXISTS (SELECT 1 FROM receipts WHERE id = d.receipt)";
    assert_eq!(bed.rows(orphans), 0);
    let finished = u64::try_from(bed.rows("finished")).unwrap();
    assert_eq!(counted(&bed, State::Processed).await, finished);
}

async fn postgres_query(bed: &Bed, sql: &str) -> String {
    let (url, sql) = (bed.url.clone(), sql.to_owned());
    tokio::task::spawn_blocking(move || postgres::query(&url, &sql)).await.unwrap()
}

/// While a day waits for those who are writing, one of them commits an event of that day, under a
/// clock that is far behind: it is not taken out with the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_opened_while_a_day_waits_stays() {
    let bed = Bed::postgres().await;
    let connect = async || {
        let connected = tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    };
    let (writer, taker) = (connect().await, connect().await);
    let write = "BEGIN;
        INSERT INTO oncebox.receipts (id, received_at, source, secret, routes, trust, event_id,
            event_type, digest, headers, body)
        VALUES (oncebox.first_of_day(oncebox.today() - 1), now(), 1, 1, 1, 'signed', 'evt_1', 't',
            sha256('{}'), '', '{}');
        INSERT INTO oncebox.deliveries (receipt, route, source, state, created_at)
        SELECT id, 1, 1, 'received', now() FROM oncebox.receipts";
    writer.batch_execute(write).await.unwrap();
    let close = "UPDATE oncebox.days SET state = 'closing' WHERE day = oncebox.today() - 1";
    postgres_query(&bed, close).await;
    let taking = tokio::spawn(async move {
        let sql = "SELECT oncebox.take_out_day(oncebox.today() - 1, 100, '1 minute')";
        taker.batch_execute(sql).await
    });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while postgres_query(&bed, waits).await == "0" {}
    writer.batch_execute("COMMIT").await.unwrap();
    let refused = taking.await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{refused:?}");
    assert_eq!((bed.rows("receipts"), bed.rows("deliveries"), days(&bed, "gone")), (1, 1, 0));
}
