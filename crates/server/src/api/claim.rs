//! `POST /api/v1/routes/{route}/claim`: due deliveries for a worker that pulls.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oncebox::delivery::{Claimed, DAMAGED, DeliveryId, Next, Payload, Reason};
use oncebox::limits::{
    API_BODY, API_STORE_WAIT, CLAIM_ROWS, LEASE, LONGEST_LEASE, POLL, PULL_BYTES, PULL_MEMORY,
    PULL_ROWS, PULL_WAIT, SHORTEST_LEASE,
};
use oncebox::receipt::{Oddity, RouteNo, decode_headers};
use oncebox::route::RouteRules;
use oncebox::store::{Claim, Finish, OUTSIDE, Wanted};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::error;

use super::gate::Gate;
use super::lease::{Ticket, Untold, ending, give_back};
use super::problem::Problem;
use super::{Api, Name, body};
use crate::config::Period;
use crate::line::Line;
use crate::logs;

/// What a worker asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    max: Option<usize>,
    lease: Option<Period>,
    wait: Option<Period>,
}

impl Ask {
    fn most(&self) -> Result<usize, Problem> {
        let most = self.max.unwrap_or(PULL_ROWS);
        let wrong = || Problem::invalid(format!("`max` must be between 1 and {CLAIM_ROWS}"));
        (1..=CLAIM_ROWS).contains(&most).then_some(most).ok_or_else(wrong)
    }

    fn wait(&self) -> Result<Duration, Problem> {
        let wait = self.wait.map_or(Duration::ZERO, |wait| wait.0);
        let wrong = || Problem::invalid(format!("`wait` must be at most {}", Period(PULL_WAIT)));
        (wait <= PULL_WAIT).then_some(wait).ok_or_else(wrong)
    }
}

/// A lease of a length within reason.
pub(super) fn lease_length(key: &str, asked: Option<Period>) -> Result<Duration, Problem> {
    let length = asked.map_or(LEASE, |asked| asked.0);
    if (SHORTEST_LEASE..=LONGEST_LEASE).contains(&length) {
        return Ok(length);
    }
    let (least, most) = (Period(SHORTEST_LEASE), Period(LONGEST_LEASE));
    Err(Problem::invalid(format!("`{key}` must be between {least} and {most}")))
}

/// How long a claim that asked for no wait goes on while it only moves others out of the way.
const MOVING: Duration = Duration::from_secs(1);

/// Gives a worker what is due, or waits for it.
pub(super) async fn claim(
    State(api): State<Arc<Api>>,
    name: Name,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (token, name) = api.may_pull(name, request.headers()).await?;
    let ask: Ask = body::read(request, API_BODY, api.inbox.live().body_timeout).await?;
    let (most, wait) = (ask.most()?, ask.wait()?);
    let route = api.pull_route(&name)?;
    let claim = Claim {
        wanted: vec![Wanted::new(route.number, most, route.rules)],
        lease: lease_length("lease", ask.lease)?,
        worker: format!("{OUTSIDE}{}", token.name),
    };
    let untold = api.wait_and_claim(&name, &claim, wait).await?;
    api.give(&name, &route.rules, untold).await
}

impl Api {
    /// Claims what is due; waits for it if there is nothing, until the time is over or the server
    /// stops.
    async fn wait_and_claim(
        &self,
        route: &str,
        claim: &Claim,
        wait: Duration,
    ) -> Result<Untold, Problem> {
        let started = Instant::now();
        let deadline = started + wait;
        // Registered before the first claim: what becomes due in between is not missed.
        let mut due = self.inbox.store.due();
        let gate = self.gate(claim.wanted[0].route);
        loop {
            if self.inbox.is_draining() {
                return Ok(Untold::new(self.inbox.store.clone(), Vec::new()));
            }
            let claiming = gate.claim(&self.inbox.store, claim, &mut due);
            let share = self.in_time(claiming).await?;
            self.count_skipped(route, &share.skipped);
            if !share.untold.claimed.is_empty() {
                return Ok(share.untold);
            }
            if share.more && Instant::now() < deadline.max(started + MOVING) {
                continue;
            }
            if Instant::now() >= deadline {
                return Ok(share.untold);
            }
            let look_again = deadline.min(Instant::now() + POLL);
            tokio::select! {
                Ok(()) = due.changed() => {}
                () = tokio::time::sleep_until(look_again) => {}
            }
        }
    }

    fn count_skipped(&self, route: &str, skipped: &[(DeliveryId, Reason)]) {
        for (delivery, reason) in skipped {
            if *reason == Reason::Stale {
                self.inbox.metrics.routes.stale(route);
            }
            logs::skipped(route, *delivery, *reason);
            self.inbox.activity.show(|| Line::skipped(route, delivery.receipt, *reason));
        }
    }

    fn gate(&self, route: RouteNo) -> Arc<Gate> {
        let mut gates = self.gates.lock().expect("no panic while looking");
        gates.entry(route).or_default().clone()
    }

    /// Fetches the payloads of what was claimed and tells the worker.
    async fn give(
        &self,
        route: &str,
        rules: &RouteRules,
        mut untold: Untold,
    ) -> Result<Response, Problem> {
        let (count, bytes) = fitting(&untold.claimed);
        untold.truncate(count);
        let share = self.in_memory(bytes).await?;
        let receipts: Vec<_> =
            untold.claimed.iter().map(|claimed| claimed.delivery.receipt).collect();
        let payloads = match receipts.is_empty() {
            true => Vec::new(),
            false => self.in_time(self.inbox.store.payloads(&receipts)).await?,
        };
        let payloads: HashMap<_, _> =
            payloads.into_iter().map(|payload| (payload.receipt, payload)).collect();
        let now = self.inbox.clock.now();
        let (claimed, gone): (Vec<_>, Vec<_>) = untold
            .told()
            .into_iter()
            .partition(|claimed| payloads.contains_key(&claimed.delivery.receipt));
        self.give_up(route, &gone).await?;
        self.count(route, rules, &claimed);
        let told = claimed.iter().filter_map(|claimed| {
            let payload = payloads.get(&claimed.delivery.receipt)?;
            Some(Told::new(route, claimed, payload, Ticket::new(claimed.lease, now)))
        });
        let answer = Answer { deliveries: told.collect() };
        let json = serde_json::to_vec(&answer)
            .map_err(|error| Problem::unavailable(format!("cannot be written: {error}")))?;
        let body = Body::from(Bytes::from_owner(Shared { json, _share: share }));
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }

    /// Counts what is tried for the first time now.
    fn count(&self, route: &str, rules: &RouteRules, claimed: &[Claimed]) {
        let metrics = &self.inbox.metrics.routes;
        let replayed = |one: &&Claimed| one.replays > 0 && one.counts.attempts == 1;
        claimed.iter().filter(replayed).for_each(|_| metrics.replayed());
        let unversioned = claimed.iter().filter(|one| rules.misses_version(one));
        unversioned.for_each(|_| metrics.unversioned(route));
    }

    /// Waits for memory that payloads of so many bytes may take.
    async fn in_memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let permits = u32::try_from(bytes.min(PULL_MEMORY)).unwrap_or(u32::MAX);
        let acquiring = self.memory.clone().acquire_many_owned(permits);
        let acquired = tokio::time::timeout(API_STORE_WAIT, acquiring).await;
        let busy = || Problem::unavailable("too many answers are on their way; read them first");
        Ok(acquired.map_err(|_| busy())?.expect("the semaphore stays open"))
    }

    /// What retention keeps for open deliveries is missing only if somebody removed it by hand, or
    /// if it is damaged: nobody is given that.
    async fn give_up(&self, route: &str, missing: &[Claimed]) -> Result<(), Problem> {
        let mut endings = Vec::with_capacity(missing.len());
        for claimed in missing {
            let delivery = claimed.delivery;
            let receipt = self.in_time(self.inbox.store.receipt(delivery.receipt)).await?;
            let (next, detail) = match receipt {
                None => (Next::Dead, "the payload of this event is gone"),
                Some(receipt) if receipt.is_intact() => (Next::Return, "it was read well later"),
                Some(_) => (Next::Damaged, DAMAGED),
            };
            error!(route, %delivery, receipt = %delivery.receipt, "not handed out: {detail}");
            if next == Next::Damaged {
                self.inbox.metrics.routes.damaged(route);
                self.inbox.awaited.wake(delivery.receipt);
            }
            endings.push(ending(claimed, next, Some(detail)));
        }
        if !endings.is_empty() {
            let store = self.inbox.store.clone();
            let ended = self.in_time(store.finish(endings.clone())).await?;
            let mut ended = ended.into_iter();
            endings.retain(|_| ended.next() == Some(Finish::Locked));
            tokio::spawn(async move { give_back(&*store, endings).await });
        }
        Ok(())
    }
}

/// How many of what was claimed fit into one answer, and their bytes. The first always does.
fn fitting(claimed: &[Claimed]) -> (usize, usize) {
    let mut total = 0_usize;
    for (index, claimed) in claimed.iter().enumerate() {
        let with = total.saturating_add(claimed.bytes);
        if index > 0 && with > PULL_BYTES {
            return (index, total);
        }
        total = with;
    }
    (claimed.len(), total)
}

/// An answer, with its share of the memory until it was sent.
struct Shared {
    json: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    deliveries: Vec<Told<'a>>,
}

/// A delivery as a worker is told of it; the fields are never renamed.
#[derive(Serialize)]
struct Told<'a> {
    delivery: String,
    lease: String,
    lease_until: String,
    route: &'a str,
    source: &'a str,
    event_id: &'a str,
    event_type: &'a str,
    object_id: Option<&'a str>,
    object_version: Option<i64>,
    receipt: String,
    received_at: String,
    attempt: u32,
    replay: u32,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    twin_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict_with: Option<String>,
    headers: Vec<(String, String)>,
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl<'a> Told<'a> {
    fn new(route: &'a str, claimed: &'a Claimed, payload: &'a Payload, ticket: Ticket) -> Self {
        let headers: Vec<(String, String)> = decode_headers(&payload.headers)
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
            .collect();
        let content_type = headers.iter().find(|(name, _)| name == "content-type");
        let content_type = content_type.map(|(_, value)| value.clone());
        let text = std::str::from_utf8(&payload.body).ok();
        let first = |oddity| {
            let mark = claimed.mark.filter(|mark| mark.oddity == oddity)?;
            mark.first.map(|first| first.to_string())
        };
        Self {
            delivery: claimed.delivery.to_string(),
            lease: ticket.to_string(),
            lease_until: claimed.lease_until.to_string(),
            route,
            source: &claimed.source_name,
            event_id: &claimed.event_id,
            event_type: &claimed.event_type,
            object_id: claimed.object.as_deref(),
            object_version: claimed.version,
            receipt: claimed.delivery.receipt.to_string(),
            received_at: claimed.received_at.to_string(),
            attempt: claimed.counts.attempts,
            replay: claimed.replays,
            key: &claimed.key,
            twin_of: first(Oddity::Twin),
            conflict_with: first(Oddity::Conflict),
            headers,
            content_type,
            body: text.map(Cow::Borrowed),
            body_base64: text.is_none().then(|| STANDARD.encode(&payload.body)),
        }
    }
}
