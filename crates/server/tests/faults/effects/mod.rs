//! Effects happen once: through each door, whoever dies, at whatever step.
//!
//! The business is the same behind every door: an event tells of a payment (a *fact*, of which two
//! events may tell) and of an account at a version. It is written to tables that would show a
//! second time. Doors are processes of their own: this test binary, run again as a worker.

mod door;
mod fact;
mod http_door;
mod kills;
mod rust_door;
mod sql_door;
mod storm;

use std::collections::{BTreeMap, BTreeSet};

use oncebox::store::{Purpose, open};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::store::{pass, query};
use oncebox_testkit::wait;
use tokio::runtime::Runtime;

use self::door::Door;
use self::fact::fact;
use crate::bed::{Bed, ROUTE, SOURCE};

/// Longer than any lease, in seconds.
const PAST_ANY_LEASE: u32 = 120;

/// How long what is left may take on a slow machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);

/// A store with the tables of a service beside it, and somebody who takes its mail.
struct Service {
    bed: Bed,
    mailer: Destination,
    door: Door,
}

impl Service {
    fn open(bed: Bed, door: Door) -> Self {
        let mailer = Destination::start();
        let to = mailer.address();
        // A delivery may be hit many times.
        let retry = "retry = { max_attempts = 1000, base = \"1ms\", cap = \"20ms\" }";
        bed.configure_routes(&format!(
            "[routes.{ROUTE}]\nsources = [\"{SOURCE}\"]\npull = true\n{retry}\n\
             [destinations.mailer]\nurl = \"http://{to}/\"\nallow_private = true\n{retry}\n\
             secret = \"whsec_ZmF1bHRzLWZhdWx0cy1mYXVsdHMtZmF1bHRzLTA=\"\n"
        ));
        // Makes the store.
        let mut server = bed.serve();
        server.terminate();
        assert!(server.wait().success());
        let service = Self { bed, mailer, door };
        service.make_tables();
        service
    }

    fn make_tables(&self) {
        let schema = schema(&self.tables());
        // Nothing is unique in the first: what happened twice is there twice.
        for sql in [
            format!("CREATE TABLE {schema}.paid (fact TEXT NOT NULL)"),
            format!("CREATE TABLE {schema}.keyed (fact TEXT PRIMARY KEY)"),
            format!("CREATE TABLE {schema}.accounts (id TEXT PRIMARY KEY, version BIGINT)"),
            format!("CREATE TABLE {schema}.advanced (account TEXT NOT NULL, version BIGINT)"),
        ] {
            query(&self.tables(), &sql);
        }
    }

    /// Where the tables of the service are: beside those of the store, unless a door cannot
    /// share a transaction with it.
    fn tables(&self) -> String {
        match self.door {
            Door::Http => {
                format!("sqlite://{}", self.bed.home.path().join("business.db").display())
            }
            Door::Rust | Door::Beside | Door::Sql => self.bed.url.clone(),
        }
    }

    fn look(&self, sql: &str) -> String {
        query(&self.bed.url, sql)
    }

    /// The first column of the service's own tables; `@` stands for their schema.
    fn look_at_business(&self, sql: &str) -> String {
        let tables = self.tables();
        query(&tables, &sql.replace('@', schema(&tables)))
    }

    /// Takes what workers left behind from them, at once.
    fn rescue(&self) {
        pass(&self.bed.url, PAST_ANY_LEASE);
        Runtime::new().expect("a runtime").block_on(async {
            let store = open(&self.bed.url, Purpose::Operate).await.expect("the store opens");
            store.rescue(1000).await.expect("leases are taken over");
            store.close().await;
        });
    }

    #[track_caller]
    fn wait_until_all_finished(&self) {
        let none_open = || self.look("SELECT 1 FROM deliveries LIMIT 1").is_empty();
        if !wait::holds_within(PATIENCE, none_open) {
            let left = "SELECT route, state, reason, count(*), max(detail) FROM deliveries
                        GROUP BY route, state, reason";
            panic!("deliveries are left: {}", self.look(left));
        }
    }

    /// Holds the tables of the service against what was recorded: everything that was
    /// acknowledged, and perhaps events whose acknowledgement got lost.
    #[track_caller]
    fn assert_once(&self, acknowledged: &[String]) {
        let lines = |text: String| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let recorded = "SELECT event_id FROM receipts WHERE event_type <> 'message'";
        let recorded = lines(self.look(recorded));
        let known: BTreeSet<&String> = recorded.iter().collect();
        assert!(acknowledged.iter().all(|id| known.contains(id)), "an acknowledged event is lost");
        let facts: BTreeSet<String> = recorded.iter().map(|id| fact(id).key).collect();
        let mut paid: BTreeMap<String, usize> = BTreeMap::new();
        for fact in lines(self.look_at_business("SELECT fact FROM @.paid")) {
            *paid.entry(fact).or_default() += 1;
        }
        assert!(paid.keys().eq(facts.iter()), "{} facts, {} paid", facts.len(), paid.len());
        if self.door == Door::Http {
            let keyed = self.look_at_business("SELECT fact FROM @.keyed ORDER BY fact");
            assert!(lines(keyed).iter().eq(facts.iter()), "the key makes it exact");
            self.assert_explained(&paid);
            self.assert_never_back();
        } else {
            paid.retain(|_, times| *times > 1);
            assert!(paid.is_empty(), "paid more than once: {paid:?}");
        }
        self.assert_newest(&recorded);
        self.assert_mailed(&facts);
    }

    /// What happened more than once is known to be unknown, as often as it did.
    #[track_caller]
    fn assert_explained(&self, paid: &BTreeMap<String, usize>) {
        let unknown = "SELECT key, unknowns FROM effects WHERE kind = 'once' AND unknowns > 0";
        let unknown = self.look(unknown);
        let mut unknowns: BTreeMap<&str, usize> = BTreeMap::new();
        for line in unknown.lines() {
            let (key, times) = line.split_once('|').expect("two columns");
            unknowns.insert(key, times.parse().expect("a count"));
        }
        let mut extras = 0;
        for (fact, times) in paid {
            let explained = unknowns.get(fact.as_str()).copied().unwrap_or(0);
            assert!(times - 1 <= explained, "{fact}: paid {times} times, {explained} unknown");
            extras += times - 1;
        }
        println!("{extras} extras, {} unknown", unknowns.values().sum::<usize>());
    }

    /// Nobody was told to go on with a version older than one before.
    #[track_caller]
    fn assert_never_back(&self) {
        let told = "SELECT account || ' ' || version FROM @.advanced ORDER BY rowid";
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for line in self.look_at_business(told).lines() {
            let (account, version) = line.split_once(' ').expect("two columns");
            let version: i64 = version.parse().expect("a version");
            let before = newest.insert(account.to_owned(), version).unwrap_or(version);
            assert!(before <= version, "{account} went from {before} back to {version}");
        }
    }

    /// Accounts are at the newest version anybody told of.
    #[track_caller]
    fn assert_newest(&self, recorded: &[String]) {
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for fact in recorded.iter().map(|id| fact(id)) {
            let version = newest.entry(fact.account).or_insert(fact.version);
            *version = fact.version.max(*version);
        }
        let accounts = self.look_at_business("SELECT id || ' ' || version FROM @.accounts");
        let accounts: BTreeSet<String> = accounts.lines().map(str::to_owned).collect();
        let expected = newest.iter().map(|(account, version)| format!("{account} {version}"));
        assert_eq!(accounts, expected.collect::<BTreeSet<_>>());
    }

    /// One message for each fact, under its key, and no other.
    #[track_caller]
    fn assert_mailed(&self, facts: &BTreeSet<String>) {
        let messages = self.look("SELECT count(*) FROM receipts WHERE event_type = 'message'");
        assert_eq!(messages, facts.len().to_string());
        let requests = self.mailer.requests();
        let keys = requests.iter().map(|mail| mail.header("idempotency-key").expect("a key"));
        let keys: BTreeSet<String> = keys.map(str::to_owned).collect();
        assert_eq!(keys, *facts);
    }
}

/// The schema a service has its tables in.
fn schema(url: &str) -> &'static str {
    if url.starts_with("sqlite://") { "main" } else { "public" }
}
