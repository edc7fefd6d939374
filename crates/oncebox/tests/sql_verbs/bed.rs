//! Sessions of a worker that speaks SQL.

use oncebox::delivery::{Claimed, Next};
use oncebox::effect::{EffectName, Under};
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route};
use oncebox_testkit::wait;
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, NoTls};

/// A bed with a route that workers claim from, and a destination.
pub(crate) struct Desk {
    pub(crate) bed: Bed,
    pub(crate) route: Route,
    pub(crate) outbox: Route,
}

impl Desk {
    pub(crate) async fn new() -> Self {
        let bed = Bed::postgres().await;
        let route = bed.route("billing", RouteRules::default()).await;
        bed.store.register_source("outbox/mailer", None).await.unwrap();
        let ordered = RouteRules { ordered: true, ..RouteRules::default() };
        let outbox = bed.route("outbox/mailer", ordered).await;
        Self { bed, route, outbox }
    }

    /// A delivery under a lease.
    pub(crate) async fn claimed(&self, event_id: &str) -> Claimed {
        self.bed.due(event_id, &[self.route]).await;
        self.bed.take(&self.route).await
    }

    /// A session that works on a new delivery, its transaction begun.
    pub(crate) async fn at_work(&self, event_id: &str) -> Session {
        let claimed = self.claimed(event_id).await;
        let session = self.session().await;
        session.enter(&claimed).await;
        session
    }

    pub(crate) async fn session(&self) -> Session {
        let (client, connection) = tokio_postgres::connect(&self.bed.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        Session { client, pid }
    }

    /// Ends an attempt so that the delivery comes back at once, and claims it again.
    pub(crate) async fn retry(&self, claimed: &Claimed) -> Claimed {
        assert!(self.bed.finish(claimed, Next::Retry(std::time::Duration::ZERO)).await);
        let again = self.bed.take(&self.route).await;
        assert_eq!(again.delivery, claimed.delivery);
        again
    }

    /// Lets a lease end, and no other.
    pub(crate) fn lapse(&self, claimed: &Claimed) {
        let ended = "UPDATE deliveries SET lease_until = now() - interval '1 millisecond'";
        self.bed.query(&format!("{ended} WHERE receipt = '{}'", claimed.delivery.receipt));
    }

    /// Waits until a session waits for somebody's lock.
    pub(crate) fn until_waiting(&self, pid: i32) {
        let sql = format!("SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}");
        wait::until("a session waits for a lock", || self.bed.query(&sql) == "Lock");
    }
}

/// What somebody works on, as the store is told.
pub(crate) fn under(claimed: &Claimed) -> Under {
    Under { delivery: claimed.delivery, lease: claimed.lease }
}

pub(crate) fn key(key: &str) -> EffectName {
    EffectName::Key(key.parse().unwrap())
}

/// A connection.
pub(crate) struct Session {
    client: Client,
    pub(crate) pid: i32,
}

impl Session {
    pub(crate) async fn run(&self, sql: &str) {
        self.try_to(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    }

    pub(crate) async fn try_to(&self, sql: &str) -> Result<(), DbError> {
        let outcome = self.client.batch_execute(sql).await;
        outcome.map_err(|error| error.as_db_error().expect("the server's answer").clone())
    }

    /// Begins a transaction and enters a delivery.
    pub(crate) async fn enter(&self, claimed: &Claimed) {
        self.run(&format!("BEGIN; {}", entering(claimed))).await;
    }

    pub(crate) async fn commit(&self) {
        self.run("COMMIT").await;
    }

    pub(crate) async fn roll_back(&self) {
        self.run("ROLLBACK").await;
    }

    /// What a call answers that says yes or no.
    pub(crate) async fn yes(&self, call: &str) -> bool {
        self.text(&format!("oncebox.{call}")).await.as_deref() == Some("true")
    }

    /// A value as text.
    pub(crate) async fn text(&self, expression: &str) -> Option<String> {
        let sql = format!("SELECT ({expression})::text");
        let row = self.client.query_one(&sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}\n{error:?}")).get(0)
    }

    /// The code and the hint that a statement is refused with. The transaction is rolled back to
    /// before it.
    pub(crate) async fn refusal(&self, sql: &str) -> (String, String) {
        self.run("SAVEPOINT here").await;
        let error = self.try_to(sql).await.expect_err(sql);
        self.run("ROLLBACK TO here").await;
        let hint = error.hint().unwrap_or_else(|| panic!("{sql}\n{error:?} has no hint"));
        (error.code().code().to_owned(), hint.to_owned())
    }
}

/// The call that enters a delivery.
pub(crate) fn entering(claimed: &Claimed) -> String {
    format!("SELECT oncebox.enter('{}', {})", claimed.delivery, claimed.lease)
}
