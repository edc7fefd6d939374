//! The same happens to the same deliveries whether they are worked on through SQL or by the store:
//! random routes, events, endings and acts of operators, done to two databases, one through each
//! door; then every row is compared.

use std::time::Duration;

use oncebox::delivery::{Claimed, DeliveryId, Ending, Outcome, next};
use oncebox::receipt::{Arrival, Taker};
use oncebox::replay::{How, Replay, ReplayFilter, ReplayStep};
use oncebox::route::{OnDead, RouteRules};
use oncebox::store::Store;
use oncebox_testkit::store::{Bed, LEASE, NOON, Route, act, ending, time};

use super::session::{Session, Work};

const SCENARIOS: u64 = 75;
const STEPS: usize = 18;
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn both_doors_come_to_the_same_1() {
    compare(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_doors_come_to_the_same_2() {
    compare(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_doors_come_to_the_same_3() {
    compare(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_doors_come_to_the_same_4() {
    compare(4).await;
}

/// Many scenarios one after the other in one pair of databases, each on a route of its own.
async fn compare(part: u64) {
    let pair = Pair::new().await;
    for n in 0..SCENARIOS {
        let seed = part * 1000 + n;
        Scenario::new(&pair, seed).await.play().await;
    }
    // Chance has been everywhere.
    let ways = "SELECT string_agg(DISTINCT coalesce(reason, state), ' '
        ORDER BY coalesce(reason, state)) FROM finished";
    assert_eq!(pair.sql.query(ways), "discarded processed same-operation stale");
    let outcomes = "SELECT string_agg(DISTINCT outcome, ' ' ORDER BY outcome) FROM attempts
        WHERE outcome NOT IN ('processed', 'stale')";
    assert_eq!(pair.sql.query(outcomes), "dead lost retry snooze");
}

/// Chance that can be had again.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn is(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.roll(u64::try_from(length).unwrap())).unwrap()
    }
}

/// Two databases that hold the same, receipts and numbers included.
struct Pair {
    /// Worked on by the store.
    rust: Bed,
    /// Worked on through SQL.
    sql: Bed,
    beside: Session,
    session: Session,
}

impl Pair {
    async fn new() -> Self {
        let (rust, sql) = (Bed::postgres().await, Bed::postgres().await);
        let (beside, session) = (Session::open(&rust).await, Session::open(&sql).await);
        Self { rust, sql, beside, session }
    }

    fn stores(&self) -> [&dyn Store; 2] {
        [&*self.rust.store, &*self.sql.store]
    }

    async fn on_both(&self, sql: &str) {
        self.beside.run(sql).await;
        self.session.run(sql).await;
    }
}

/// Everything that is kept of the deliveries of a route, but for times and chance. Objects and
/// operations of which nothing was processed are rows to lock, and nothing more.
const ROWS: &str = "SELECT ROW('delivery', receipt, source, state, reason, attempts, failures,
        crashes, snoozes, replays, lost, ignores_stale, ignores_order, lane, place, operation,
        detail, epoch >> 20, created_at, due_at <= clock_timestamp(), lease_until > now(),
        lease_until IS NULL)::text AS row
    FROM oncebox.deliveries WHERE route = $1
    UNION ALL
    SELECT ROW('finished', receipt, source, state, reason, first, attempts, failures, crashes,
        snoozes, replays, laned, operation, detail, summary, epoch >> 20, created_at, status,
        took_ms IS NULL)::text
    FROM oncebox.finished WHERE route = $1
    UNION ALL
    SELECT ROW('attempt', receipt, epoch >> 20, number, replays, outcome, detail, status,
        took_ms IS NULL)::text
    FROM oncebox.attempts WHERE route = $1
    UNION ALL
    SELECT ROW('lane', source, object, applied, touched)::text
    FROM oncebox.lanes WHERE route = $1 AND applied IS NOT NULL
    UNION ALL
    SELECT ROW('operation', key, receipt, received_at, touched)::text
    FROM oncebox.operations WHERE route = $1 AND receipt IS NOT NULL
    ORDER BY row";

async fn rows(session: &Session, route: &Route) -> Vec<String> {
    let rows = session.rows(ROWS, &[&route.no.0]).await;
    rows.iter().map(|row| row.get(0)).collect()
}

/// A delivery claimed in both databases.
#[derive(Clone)]
struct Leased {
    claimed: Claimed,
    work: Work,
}

struct Scenario<'a> {
    pair: &'a Pair,
    seed: u64,
    dice: Dice,
    name: String,
    route: Route,
    events: usize,
    leased: Vec<Leased>,
    /// Ended so before, since the rules last changed.
    ended: Vec<(Leased, Outcome)>,
    log: Vec<String>,
}

impl<'a> Scenario<'a> {
    async fn new(pair: &'a Pair, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let name = format!("route-{seed}");
        let rules = some_rules(&mut dice);
        let route = pair.rust.route(&name, rules).await;
        assert_eq!(pair.sql.route(&name, rules).await.no, route.no);
        let log = vec![format!("{rules:?}")];
        let (leased, ended) = (Vec::new(), Vec::new());
        Self { pair, seed, dice, name, route, events: 0, leased, ended, log }
    }

    async fn play(mut self) {
        self.record().await;
        for _ in 0..STEPS {
            match self.dice.roll(100) {
                0..16 => self.record().await,
                16..46 => self.claim().await,
                46..72 => self.end().await,
                72..75 => self.end_again().await,
                75..78 => self.let_pass(61).await,
                78..82 => self.let_pass(3600).await,
                82..89 => self.release().await,
                89..95 => self.replay().await,
                95..97 => self.discard().await,
                97..99 => self.change_rules().await,
                _ => self.unblock().await,
            }
        }
        let (rust, sql) = (
            rows(&self.pair.beside, &self.route).await,
            rows(&self.pair.session, &self.route).await,
        );
        assert_eq!(rust, sql, "seed {}: rust, sql\n{}", self.seed, self.log.join("\n"));
        self.pair.on_both("DELETE FROM oncebox.deliveries").await;
    }

    /// Events about few objects and operations, received at various times.
    async fn record(&mut self) {
        let count = 1 + self.dice.roll(4);
        let mut batch = Vec::new();
        for _ in 0..count {
            let id = format!("{}-{}", self.name, self.events);
            let received = NOON + [0, 30, 50, 200][self.dice.index(4)];
            let object = [Some("a"), Some("b"), None][self.dice.index(3)];
            let version = self.dice.is(80).then(|| i64::try_from(self.dice.roll(3)).unwrap());
            let operation = [None, Some([1; 16]), Some([1; 16]), Some([2; 16])][self.dice.index(4)];
            let bed = &self.pair.rust;
            let arrival = bed.arrival_at(&id, &format!("{{{id}}}"), time(received));
            self.events += 1;
            self.log.push(format!(
                "record {} at {received} {object:?} {version:?} {operation:?}",
                arrival.receipt
            ));
            batch.push(Arrival {
                object: object.map(str::to_owned),
                version,
                takers: vec![Taker { operation, ..self.route.taker() }],
                ..arrival
            });
        }
        self.pair.rust.record(batch.clone()).await;
        self.pair.sql.record(batch).await;
    }

    /// Claims until something is given or nothing is moved.
    async fn claim(&mut self) {
        // An act that found nothing to do may be about to let go what it has locked.
        self.pair.on_both("SELECT FROM oncebox.deliveries FOR UPDATE").await;
        let most = 1 + self.dice.index(4);
        let claimed = loop {
            let claims = self.pair.rust.claim(&self.route, most).await;
            let moved = !claims.held.is_empty() || !claims.skipped.is_empty();
            if !claims.claimed.is_empty() || !moved {
                break claims.claimed;
            }
        };
        let work = self.claim_through_sql(i32::try_from(most).unwrap()).await;
        let given: Vec<(&str, i64)> =
            work.iter().map(|work| (work.event_id.as_str(), i64::from(work.attempt))).collect();
        let expected: Vec<(&str, i64)> = claimed
            .iter()
            .map(|claimed| (claimed.event_id.as_str(), i64::from(claimed.counts.attempts)))
            .collect();
        self.log.push(format!("claim {most}: {expected:?}"));
        assert_eq!(given, expected, "seed {}: sql, rust\n{}", self.seed, self.log.join("\n"));
        let leased = claimed.into_iter().zip(work).map(|(claimed, work)| Leased { claimed, work });
        self.leased.extend(leased);
    }

    /// A claim goes on by itself while it only moves others, but not for ever: on a machine that
    /// is slow today it is called again.
    async fn claim_through_sql(&self, most: i32) -> Vec<Work> {
        let sql = "SELECT count(*) FROM oncebox.deliveries
            WHERE route = $1 AND state IN ('received', 'retrying') AND due_at <= clock_timestamp()";
        let mut due = i64::MAX;
        loop {
            let work = self.pair.session.claim(&self.name, most).await;
            let left = self.pair.session.rows(sql, &[&self.route.no.0]).await[0].get(0);
            if !work.is_empty() || left >= due || left == 0 {
                return work;
            }
            due = left;
        }
    }

    /// Ends an attempt, some of them not under a good lease any more.
    async fn end(&mut self) {
        if self.leased.is_empty() {
            return;
        }
        let leased = self.leased.swap_remove(self.dice.index(self.leased.len()));
        let outcome = match self.dice.roll(10) {
            0..5 => Outcome::Processed,
            5 => Outcome::Stale,
            6 => Outcome::Retry { after: None },
            7 => Outcome::Retry { after: Some(HOUR) },
            8 => Outcome::Snooze { after: HOUR },
            _ => Outcome::Dead,
        };
        self.tell(&leased, &outcome).await;
        self.ended.push((leased, outcome));
    }

    async fn end_again(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let (leased, outcome) = self.ended[self.dice.index(self.ended.len())].clone();
        self.tell(&leased, &outcome).await;
    }

    async fn tell(&mut self, leased: &Leased, outcome: &Outcome) {
        let note = format!("note {}", self.log.len());
        let (claimed, work) = (&leased.claimed, &leased.work);
        // With pauses of less than a millisecond nothing is left to chance.
        let next = next(&self.route.rules, claimed.counts, outcome, 0.5);
        let is_processed = *outcome == Outcome::Processed;
        let ending = Ending {
            detail: (!is_processed).then(|| note.clone()),
            summary: is_processed.then(|| note.clone()),
            ..ending(claimed, next)
        };
        let good = self.pair.rust.store.finish(vec![ending]).await.unwrap()[0].is_good();
        let (word, after) = match outcome {
            Outcome::Processed => ("processed", None),
            Outcome::Stale => ("stale", None),
            Outcome::Retry { after } => ("retry", after.map(|_| "1 hour")),
            Outcome::Snooze { .. } => ("snooze", Some("1 hour")),
            _ => ("dead", None),
        };
        let told = self.pair.session.finish_with(work, word, Some(&note), after).await;
        self.log.push(format!("end {} {word} {after:?}: {next:?} {good}", work.event_id));
        match told {
            Ok(_) => assert!(good, "seed {}\n{}", self.seed, self.log.join("\n")),
            Err(refused) => {
                assert_eq!(refused.code, "OB409", "{refused:?}");
                assert!(!good, "seed {}: {refused:?}\n{}", self.seed, self.log.join("\n"));
            }
        }
    }

    /// Time passes, and leases that ran out are taken away. What is due thereby is due now: the
    /// order in which things happened is the same in both databases, how long they took is not.
    async fn let_pass(&mut self, seconds: u32) {
        self.log.push(format!("{seconds} s pass"));
        let by = format!("interval '{seconds} seconds'");
        let pass = format!(
            "UPDATE oncebox.deliveries SET lease_until = lease_until - {by},
             retrying_since = retrying_since - {by}, due_at = CASE
             WHEN due_at > now() THEN greatest(due_at - {by}, now()) ELSE due_at END"
        );
        self.pair.on_both(&pass).await;
        if self.dice.is(80) {
            for store in self.pair.stores() {
                store.rescue(100).await.unwrap();
            }
        }
    }

    /// One of the deliveries in a state, if there are any.
    async fn some(&mut self, states: &str) -> Option<DeliveryId> {
        let sql = format!(
            "SELECT receipt FROM (
                 SELECT receipt, state FROM oncebox.deliveries WHERE route = $1
                 UNION ALL SELECT receipt, state FROM oncebox.finished WHERE route = $1
             ) AS d WHERE state IN ({states}) ORDER BY receipt"
        );
        let rows = self.pair.beside.rows(&sql, &[&self.route.no.0]).await;
        let row = (!rows.is_empty()).then(|| &rows[self.dice.index(rows.len())]);
        row.map(|row| self.route.of(row.get::<_, uuid::Uuid>(0).into()))
    }

    async fn release(&mut self) {
        let Some(delivery) = self.some("'held'").await else { return };
        self.log.push(format!("release {delivery}"));
        for store in self.pair.stores() {
            store.release(delivery, &act("urgent")).await.unwrap();
        }
    }

    async fn discard(&mut self) {
        let Some(delivery) = self.some("'held', 'dead'").await else { return };
        self.log.push(format!("discard {delivery}"));
        for store in self.pair.stores() {
            store.discard(delivery, &act("useless")).await.unwrap();
        }
    }

    async fn replay(&mut self) {
        let states = "'held', 'dead', 'processed', 'skipped'";
        let Some(delivery) = self.some(states).await else { return };
        let how = How { force: self.dice.is(50), ignore_stale: self.dice.is(50) };
        self.log.push(format!("replay {delivery} {how:?}"));
        for store in self.pair.stores() {
            replay(store, delivery, how).await;
        }
    }

    async fn change_rules(&mut self) {
        let rules = some_rules(&mut self.dice);
        self.log.push(format!("rules {rules:?}"));
        for store in self.pair.stores() {
            store.register_route(&self.name, None, &rules).await.unwrap();
        }
        self.route.rules = rules;
        self.ended.clear();
    }

    async fn unblock(&mut self) {
        self.log.push("unblock".to_owned());
        for store in self.pair.stores() {
            store.release_unblocked(100).await.unwrap();
        }
    }
}

/// Rules whose pauses are too short to matter.
fn some_rules(dice: &mut Dice) -> RouteRules {
    RouteRules {
        max_attempts: 1 + u32::try_from(dice.roll(4)).unwrap(),
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
        longest_wait: HOUR,
        max_snoozes: u32::try_from(dice.roll(3)).unwrap(),
        ordered: dice.is(60),
        skip_stale: dice.is(60),
        on_dead: if dice.is(50) { OnDead::Hold } else { OnDead::Continue },
        same_operation: dice.is(60).then_some(Duration::from_secs(60)),
        hold_for: if dice.is(50) { HOUR } else { Duration::from_secs(30) },
        budget: dice.is(30).then_some(HOUR),
        pulled: true,
    }
}

/// Opens one delivery again, whatever has become of it.
async fn replay(store: &dyn Store, delivery: DeliveryId, how: How) {
    let job = Replay::new(ReplayFilter::default(), how, 1, &act("again"));
    store.create_replay(&job, &act("again")).await.unwrap();
    let job = store.take_replay(Some(job.id), LEASE).await.unwrap().expect("ours");
    let step = ReplayStep {
        id: job.id,
        lease: job.lease,
        open: vec![(delivery, false)],
        passed: 0,
        cursor: Some(delivery),
        done: true,
        how: job.how,
    };
    assert!(store.step_replay(&step).await.unwrap().is_some());
}
