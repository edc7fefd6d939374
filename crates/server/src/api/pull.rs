//! What a worker makes of a delivery it pulled, under the lease it was given: `fail`, `extend` and
//! `return`, and what they share with `complete`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::Request;
use axum::http::request::Parts;
use oncebox::delivery::{DeliveryId, Ending, Next, Outcome, State, next};
use oncebox::effect::EffectState;
use oncebox::limits::{API_BODY, CLAIM_ROWS};
use oncebox::store::{DeliveryFilter, DeliveryRow, EffectFilter, Finish, OUTSIDE, StoreError};
use oncebox::worker::chance;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::claim::lease_length;
use super::finisher::Finished;
use super::lease::Ticket;
use super::problem::Problem;
use super::{Api, Name, Route, body, segment};
use crate::config::Period;

pub(super) type Answer = Result<Json<Done>, Problem>;

/// Where a delivery stands now.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    pub(super) state: &'static str,
    /// How long until it is tried again, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_in_ms: Option<u64>,
    /// Until when the lease lasts, if it was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<String>,
}

impl Done {
    /// It stands there.
    fn at(state: State) -> Self {
        Self { state: state.as_str(), due_in_ms: None, lease_until: None }
    }

    fn after(next: Next) -> Self {
        let (state, pause) = match next {
            Next::Processed => (State::Processed, None),
            Next::Stale => (State::Skipped, None),
            Next::Retry(pause) | Next::Snooze(pause) => (State::Retrying, Some(pause)),
            Next::Dead => (State::Dead, None),
            Next::Return => (State::Received, None),
            Next::Damaged => (State::Held, None),
        };
        let pause = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        Self { due_in_ms: pause, ..Self::at(state) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    lease: String,
    #[serde(default)]
    class: Class,
    reason: Option<String>,
    retry_after: Option<Period>,
    snooze: Option<Period>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    #[default]
    Transient,
    Permanent,
}

impl Fail {
    fn outcome(&self) -> Result<Outcome, Problem> {
        match (self.class, self.retry_after, self.snooze) {
            (Class::Permanent, None, None) => Ok(Outcome::Dead),
            (Class::Permanent, _, _) => {
                Err(Problem::invalid("what failed for good has no `retry_after` and no `snooze`"))
            }
            (_, Some(_), Some(_)) => {
                Err(Problem::invalid("`retry_after` and `snooze` exclude each other"))
            }
            (_, _, Some(after)) => Ok(Outcome::Snooze { after: after.0 }),
            (_, after, None) => Ok(Outcome::Retry { after: after.map(|after| after.0) }),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extend {
    lease: String,
    by: Option<Period>,
}

/// The attempt failed, or asks to come back later.
pub(super) async fn fail(api: Shared<Arc<Api>>, id: Name, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Fail>(id, request).await?;
    let outcome = said.outcome()?;
    // Counts are the store's. Should another worker have the delivery by now, they are not those
    // of this attempt, and the lease does not fit either.
    let row = api.row(delivery).await?;
    let ticket = ticket(&said.lease)?;
    let counts = row.counts.after(ticket.age(api.inbox.clock.now()));
    let next = next(&route.rules, counts, &outcome, chance());
    let ending = api.ending(&route, delivery, ticket, next);
    let done = api.end(&route, Ending { detail: said.reason, ..ending }).await?;
    Ok(Json(match row.state {
        State::Processing => done,
        // Said again: what was decided the first time stands.
        state => Done::at(state),
    }))
}

/// The worker needs more time.
pub(super) async fn extend(api: Shared<Arc<Api>>, id: Name, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Extend>(id, request).await?;
    let ticket = ticket(&said.lease)?;
    let by = lease_length("by", said.by)?;
    let leases = [(delivery, ticket.lease)];
    let good = api.in_time(api.inbox.store.extend(&leases, by)).await?;
    match good.first() {
        Some(Some(until)) => {
            let lease_until = Some(until.to_string());
            Ok(Json(Done { lease_until, ..Done::at(State::Processing) }))
        }
        _ => Err(api.lost(&route, delivery).await?),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Return {
    lease: String,
}

/// The worker has not begun: the delivery is as if it had not been claimed.
pub(super) async fn give_back(api: Shared<Arc<Api>>, id: Name, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Return>(id, request).await?;
    let ticket = ticket(&said.lease)?;
    let filter = EffectFilter {
        receipt: Some(delivery.receipt),
        state: Some(EffectState::Started),
        limit: CLAIM_ROWS,
        ..EffectFilter::default()
    };
    let begun = api.in_time(api.inbox.store.effects(&filter)).await?;
    if let Some(effect) = begun.iter().find(|effect| effect.delivery == delivery) {
        return Err(Problem::begun(effect));
    }
    let row = api.row(delivery).await?;
    api.end(&route, api.ending(&route, delivery, ticket, Next::Return)).await?;
    Ok(Json(Done::at(match (row.state, row.counts.attempts) {
        (State::Processing, 0 | 1) => State::Received,
        (State::Processing, _) => State::Retrying,
        // Said again.
        (state, _) => state,
    })))
}

impl Api {
    /// What a request is about, the route of that, and what it says. Nothing is told of a delivery
    /// to a token that may not pull its route. Nothing is done to one that is pushed, as outbox
    /// messages are: a lease is a number that tells claims apart, and no secret. What a worker
    /// pulled it may end also once the route is pushed or not configured any more.
    pub(super) async fn about<T: DeserializeOwned>(
        &self,
        id: Name,
        request: Request<Body>,
    ) -> Result<(DeliveryId, Route, T), Problem> {
        self.about_within(id, request, API_BODY).await
    }

    /// As [`Self::about`], with a body of so many bytes at most.
    pub(super) async fn about_within<T: DeserializeOwned>(
        &self,
        id: Name,
        request: Request<Body>,
        most: usize,
    ) -> Result<(DeliveryId, Route, T), Problem> {
        let (parts, body): (Parts, Body) = request.into_parts();
        let token = self.authenticate(&parts.headers).await?;
        let delivery: DeliveryId = segment(id)?.parse().map_err(|_| Problem::no_delivery())?;
        let route = self.route_of(delivery.route).await?.ok_or_else(Problem::no_delivery)?;
        if !token.may_pull(&route.name) {
            return Err(Problem::forbidden(&format!("pull:{}", route.name)));
        }
        if !route.rules.pulled && !self.was_pulled(delivery).await? {
            return Err(Problem::not_a_pull_route(&route.name));
        }
        let request = Request::from_parts(parts, body);
        let said = body::read(request, most, self.inbox.live().body_timeout).await?;
        Ok((delivery, route, said))
    }

    /// Whether a worker that pulls has the delivery, though its route may be pushed by now.
    async fn was_pulled(&self, delivery: DeliveryId) -> Result<bool, Problem> {
        let worker = self.row(delivery).await?.worker;
        Ok(worker.is_some_and(|worker| worker.starts_with(OUTSIDE)))
    }

    /// The end of an attempt, without words.
    pub(super) fn ending(
        &self,
        route: &Route,
        delivery: DeliveryId,
        ticket: Ticket,
        next: Next,
    ) -> Ending {
        Ending {
            delivery,
            lease: ticket.lease,
            next,
            took: ticket.age(self.inbox.clock.now()),
            status: None,
            detail: None,
            summary: None,
            // It may have been claimed under other rules than those of now. The store looks after
            // that; where nothing is guarded, this saves it the search for what is.
            guarded: route.rules.is_guarded(),
        }
    }

    /// Ends an attempt. Says where its delivery stands then.
    pub(super) async fn end(&self, route: &Route, ending: Ending) -> Result<Done, Problem> {
        let (delivery, next) = (ending.delivery, ending.next);
        let finished = self.finisher.finish(&route.name, vec![ending]).await?;
        let finished = finished.into_iter().next().unwrap_or(Ok(Finish::Lost));
        self.told(route, delivery, next, finished).await?
    }

    /// What to say of the end of an attempt. If the store does not answer, nothing can be said of
    /// any.
    pub(super) async fn told(
        &self,
        route: &Route,
        delivery: DeliveryId,
        next: Next,
        finished: Finished,
    ) -> Result<Result<Done, Problem>, Problem> {
        match finished {
            Ok(Finish::Done) => Ok(Ok(Done::after(next))),
            // The pause of the first time stands.
            Ok(Finish::Before) => Ok(Ok(Done { due_in_ms: None, ..Done::after(next) })),
            Ok(Finish::Lost) => self.lost(route, delivery).await.map(Err),
            Ok(Finish::Locked) => Ok(Err(Problem::unavailable(
                "another transaction has locked what this delivery shares with others; try again",
            ))),
            Err(error @ StoreError::Data(_)) => Ok(Err(error.into())),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn row(&self, delivery: DeliveryId) -> Result<DeliveryRow, Problem> {
        let filter = DeliveryFilter {
            receipt: Some(delivery.receipt),
            limit: usize::from(i16::MAX.unsigned_abs()),
            ..DeliveryFilter::default()
        };
        let rows = self.in_time(self.inbox.store.deliveries(&filter)).await?;
        rows.into_iter().find(|row| row.delivery == delivery).ok_or_else(Problem::no_delivery)
    }

    /// What to say of a lease that does not hold.
    pub(super) async fn lost(
        &self,
        route: &Route,
        delivery: DeliveryId,
    ) -> Result<Problem, Problem> {
        let standing = self.in_time(self.inbox.store.standing(delivery)).await?;
        Ok(match standing {
            Some(standing) => {
                self.inbox.metrics.routes.lease_lost(&route.name);
                Problem::lease_lost(standing.state)
            }
            None => Problem::no_delivery(),
        })
    }
}

/// A lease as a worker names it.
pub(super) fn ticket(text: &str) -> Result<Ticket, Problem> {
    text.parse().map_err(|()| Problem::invalid("`lease` is none that a claim has given"))
}
