//! What stories about workers and operators need of a bed: routes, claims, endings, and time that
//! passes without anybody waiting for it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use oncebox::delivery::{Claimed, DeliveryId, Ending, Lease, Next};
use oncebox::receipt::{Arrival, ReceiptId, Recorded, RouteNo, Taker};
use oncebox::replay::{How, Reopened, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
use oncebox::store::{Act, Claim, Claims, DeliveryFilter, DeliveryRow, Finish, Store, Wanted};
use sha2::{Digest, Sha256};

use super::{Bed, NOON, time};
use crate::postgres;
use crate::wait::DEADLINE;

/// How long the leases of stories are.
pub const LEASE: Duration = Duration::from_secs(60);

/// A route of a story.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Its number.
    pub no: RouteNo,
    /// Its rules.
    pub rules: RouteRules,
}

impl Route {
    /// This route as one that takes an event.
    pub fn taker(&self) -> Taker {
        Taker::plain(self.no)
    }

    /// The delivery of a receipt through this route.
    pub fn of(&self, receipt: ReceiptId) -> DeliveryId {
        DeliveryId { receipt, route: self.no }
    }

    /// This route as a worker asks for it.
    pub fn wanted(&self, most: usize) -> Wanted {
        Wanted::new(self.no, most, self.rules)
    }
}

impl Bed {
    /// Registers a route.
    pub async fn route(&self, name: &str, rules: RouteRules) -> Route {
        let no = self.store.register_route(name, None, &rules).await.expect("a route");
        Route { no, rules }
    }

    /// An event about nothing in particular that the given routes take.
    pub fn event(&self, event_id: &str, routes: &[Route]) -> Arrival {
        Arrival {
            object: None,
            version: None,
            takers: routes.iter().map(Route::taker).collect(),
            ..self.arrival(event_id, &format!(r#"{{"id":"{event_id}"}}"#))
        }
    }

    /// The same event with another body.
    pub fn with_body(&self, arrival: Arrival, body: impl AsRef<[u8]>) -> Arrival {
        let digest: [u8; 32] = Sha256::digest(&body).into();
        let guard = arrival.guard.map(|_| digest);
        let body = Bytes::copy_from_slice(body.as_ref());
        Arrival { body, digest, content: digest, guard, ..arrival }
    }

    /// Records an event that must be new.
    pub async fn send(&self, arrival: Arrival) -> ReceiptId {
        let receipt = arrival.receipt;
        assert_eq!(self.record(vec![arrival]).await, [Recorded::Accepted]);
        receipt
    }

    /// Records an event about nothing in particular that the given routes take.
    pub async fn due(&self, event_id: &str, routes: &[Route]) -> ReceiptId {
        self.send(self.event(event_id, routes)).await
    }

    /// Claims once on one route.
    pub async fn claim(&self, route: &Route, most: usize) -> Claims {
        self.claim_many(vec![route.wanted(most)]).await
    }

    /// Claims once on several routes.
    pub async fn claim_many(&self, wanted: Vec<Wanted>) -> Claims {
        let claim = Claim { wanted, lease: LEASE, worker: "worker-1".into() };
        self.store.claim(&claim).await.expect("a claim")
    }

    /// Claims one delivery, passing over those that the claim skips or holds.
    pub async fn take_if_any(&self, route: &Route) -> Option<Claimed> {
        loop {
            let mut claims = self.claim(route, 1).await;
            assert!(claims.claimed.len() <= 1, "{claims:?}");
            match claims.claimed.pop() {
                Some(claimed) => return Some(claimed),
                None if claims.held.is_empty() && claims.skipped.is_empty() => return None,
                None => {}
            }
        }
    }

    /// Claims the one delivery that must be due next.
    pub async fn take(&self, route: &Route) -> Claimed {
        self.take_if_any(route).await.expect("something is due")
    }

    /// Claims whatever is due.
    pub async fn take_all(&self, route: &Route) -> Vec<Claimed> {
        let mut all = Vec::new();
        loop {
            let claims = self.claim(route, 50).await;
            if claims.claimed.is_empty() && claims.held.is_empty() && claims.skipped.is_empty() {
                return all;
            }
            all.extend(claims.claimed);
        }
    }

    /// Makes leases last for another [`LEASE`]. Says which were still good.
    pub async fn extend(&self, leases: &[(DeliveryId, Lease)]) -> Vec<bool> {
        let extended = self.store.extend(leases, LEASE).await.expect("an extension");
        extended.iter().map(Option::is_some).collect()
    }

    /// Ends an attempt, once what it needs is not locked. Says whether its lease was good.
    pub async fn finish(&self, claimed: &Claimed, next: Next) -> bool {
        finish(&*self.store, ending(claimed, next)).await.is_good()
    }

    /// Processes one delivery after the other until none is due; tells their event ids.
    pub async fn work_off(&self, route: &Route) -> Vec<String> {
        let mut done = Vec::new();
        while let Some(claimed) = self.take_if_any(route).await {
            assert!(self.finish(&claimed, Next::Processed).await);
            done.push(claimed.event_id);
        }
        done
    }

    /// Claims the next delivery and gives it up.
    pub async fn kill(&self, route: &Route) -> DeliveryId {
        let claimed = self.take(route).await;
        assert!(self.finish(&claimed, Next::Dead).await);
        claimed.delivery
    }

    /// A delivery as lists show it.
    pub async fn delivery(&self, delivery: DeliveryId) -> DeliveryRow {
        let filter = DeliveryFilter {
            receipt: Some(delivery.receipt),
            limit: 100,
            ..DeliveryFilter::default()
        };
        let rows = self.store.deliveries(&filter).await.expect("a list");
        let mut rows = rows.into_iter().filter(|row| row.delivery == delivery);
        rows.next().unwrap_or_else(|| panic!("there is no delivery {delivery}"))
    }

    /// Every delivery of a route, oldest first: `evt_1 held:order`.
    pub async fn states(&self, route: &Route) -> Vec<String> {
        let filter = DeliveryFilter { limit: 10_000, ..DeliveryFilter::default() };
        let rows = self.store.deliveries(&filter).await.expect("a list");
        let rows = rows.iter().rev().filter(|row| row.delivery.route == route.no);
        rows.map(|row| match row.reason {
            Some(reason) => format!("{} {}:{reason}", row.event_id, row.state),
            None => format!("{} {}", row.event_id, row.state),
        })
        .collect()
    }

    /// Lets time pass; see [`pass`].
    pub fn pass(&self, seconds: u32) {
        pass(&self.url, seconds);
    }

    /// Makes the open deliveries of an event due that much earlier than they are.
    pub fn backdate(&self, event_id: &str, milliseconds: u32) {
        self.query(&match self.on_sqlite() {
            true => format!(
                "UPDATE deliveries SET due_at = due_at - {milliseconds} WHERE receipt IN
                 (SELECT head FROM receipts WHERE event_id = '{event_id}')"
            ),
            false => format!(
                "UPDATE deliveries SET due_at = due_at - interval '{milliseconds} milliseconds'
                 WHERE receipt IN (SELECT id FROM receipts WHERE event_id = '{event_id}')"
            ),
        });
    }

    /// Runs a statement beside the store; see [`query`].
    pub fn query(&self, sql: &str) -> String {
        query(&self.url, sql)
    }

    /// Replays what a filter says in one step, and tells what became of each.
    pub async fn replay(&self, filter: ReplayFilter, how: How) -> Vec<Reopened> {
        let page = self.store.replay_page(&filter, None, 1000).await.expect("a page");
        let open = page.iter().map(|found| (found.delivery, found.state.is_none())).collect();
        let job = Replay::new(filter, how, 0, &act("try again"));
        self.store.create_replay(&job, &act("try again")).await.expect("a job");
        let job = self.store.take_replay(Some(job.id), LEASE).await.expect("a job");
        let job = job.expect("no other has it");
        let cursor = page.last().map(|found| found.delivery);
        let step =
            ReplayStep { id: job.id, lease: job.lease, open, passed: 0, cursor, done: true, how };
        self.store.step_replay(&step).await.expect("a step").expect("the lease is ours")
    }

    /// How many rows a table has.
    pub fn rows(&self, table: &str) -> usize {
        self.query(&format!("SELECT count(*) FROM {table}")).parse().expect("a count")
    }

    /// Whether the bed stands on SQLite.
    pub fn on_sqlite(&self) -> bool {
        self.url.starts_with("sqlite://")
    }
}

/// Lets time pass in a store: due times, leases and the memory of haste come nearer by that much.
///
/// What thereby becomes due was due a tenth of a second ago. A claim need not look further back
/// than it has looked before, and in a world where time really passes it never has to.
pub fn pass(url: &str, seconds: u32) {
    let ms = i64::from(seconds) * 1000;
    let on_sqlite = url.starts_with("sqlite://");
    let (now, moment, by) = match on_sqlite {
        true => ("CAST(unixepoch('subsec') * 1000 AS INTEGER)", "100", ms.to_string()),
        false => ("now()", "interval '0.1 second'", format!("interval '{ms} milliseconds'")),
    };
    let later = if on_sqlite { "max" } else { "greatest" };
    query(
        url,
        &format!(
            "UPDATE deliveries SET
                due_at = CASE WHEN due_at > {now}
                    THEN {later}(due_at - {by}, {now} - {moment}) ELSE due_at END,
                lease_until = lease_until - {by},
                hastened_at = hastened_at - {by},
                retrying_since = retrying_since - {by},
                failed_at = failed_at - {by}"
        ),
    );
    query(url, &format!("UPDATE replays SET lease_until = lease_until - {by}"));
}

/// Runs a statement beside a store. A line per row, columns divided by `|`, NULL as nothing, as
/// [`postgres::query`] tells them.
///
/// # Panics
///
/// When the database refuses.
pub fn query(url: &str, sql: &str) -> String {
    match url.strip_prefix("sqlite://") {
        Some(path) => sqlite_query(path, sql).unwrap_or_else(|error| panic!("{sql}\n{error}")),
        None => postgres::query(url, &format!("SET search_path TO oncebox; {sql}")),
    }
}

fn sqlite_query(path: &str, sql: &str) -> rusqlite::Result<String> {
    use rusqlite::types::ValueRef;

    let database = rusqlite::Connection::open(path)?;
    database.busy_timeout(crate::wait::DEADLINE)?;
    let mut statement = database.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let mut line = Vec::new();
        for column in 0..columns {
            line.push(match row.get_ref(column)? {
                ValueRef::Null => String::new(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    String::from_utf8_lossy(bytes).into_owned()
                }
            });
        }
        lines.push(line.join("|"));
    }
    Ok(lines.join("\n"))
}

/// Ends an attempt, as soon as what it needs is not locked.
///
/// # Panics
///
/// When that is never, or the store does not answer.
pub async fn finish(store: &dyn Store, ending: Ending) -> Finish {
    let patience = Instant::now() + DEADLINE;
    loop {
        let done = store.finish(vec![ending.clone()]).await.expect("an ending");
        assert_eq!(done.len(), 1);
        if done[0] != Finish::Locked {
            return done[0];
        }
        assert!(Instant::now() < patience, "what it needs stays locked");
        tokio::task::yield_now().await;
    }
}

/// The end of an attempt that took 12 ms.
pub fn ending(claimed: &Claimed, next: Next) -> Ending {
    Ending {
        delivery: claimed.delivery,
        lease: claimed.lease,
        next,
        took: Duration::from_millis(12),
        status: None,
        detail: None,
        summary: None,
        guarded: claimed.guarded,
    }
}

/// Something an operator does, for a reason.
pub fn act(why: &str) -> Act {
    Act { who: "ada".into(), via: "cli", why: Some(why.into()), at: time(NOON + 3600) }
}
