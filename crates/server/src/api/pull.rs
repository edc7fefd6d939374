//! What a worker makes of a delivery it pulled: `complete`, `fail` and `extend`, each under the
//! lease it was given.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Shared};
use axum::http::Request;
use axum::http::request::Parts;
use oncebox::delivery::{DeliveryId, Ending, Next, Outcome, State, next};
use oncebox::store::{DeliveryFilter, DeliveryRow};
use oncebox::worker::chance;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::claim::lease_length;
use super::lease::Ticket;
use super::problem::Problem;
use super::{Api, Route, body, segment};
use crate::config::Period;
use crate::logs;

type Id = Result<Path<String>, PathRejection>;
type Answer = Result<Json<Done>, Problem>;

/// Where a delivery stands now.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    state: &'static str,
    /// How long until it is tried again, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_in_ms: Option<u64>,
}

impl Done {
    fn after(next: Next) -> Self {
        let (state, pause) = match next {
            Next::Processed => (State::Processed, None),
            Next::Stale => (State::Skipped, None),
            Next::Retry(pause) | Next::Snooze(pause) => (State::Retrying, Some(pause)),
            Next::Dead => (State::Dead, None),
            Next::Return => (State::Received, None),
        };
        let pause = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        Self { state: state.as_str(), due_in_ms: pause }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    lease: String,
    #[serde(default)]
    outcome: Completed,
    summary: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Completed {
    #[default]
    Processed,
    Stale,
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

/// The delivery is done, or its consumer has newer state already.
pub(super) async fn complete(api: Shared<Arc<Api>>, id: Id, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Complete>(id, request).await?;
    let next = match said.outcome {
        Completed::Processed => Next::Processed,
        Completed::Stale => Next::Stale,
    };
    let ending = Ending { summary: said.summary, ..api.ending(delivery, &said.lease, next)? };
    api.end(&route.name, ending).await
}

/// The attempt failed, or asks to come back later.
pub(super) async fn fail(api: Shared<Arc<Api>>, id: Id, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Fail>(id, request).await?;
    let outcome = said.outcome()?;
    // Counts are the store's. Should another worker have the delivery by now, they are not those
    // of this attempt, and the lease does not fit either.
    let row = api.row(delivery).await?;
    let next = next(&route.rules, row.counts, &outcome, chance());
    let ending = Ending { detail: said.reason, ..api.ending(delivery, &said.lease, next)? };
    if row.state == State::Processing {
        return api.end(&route.name, ending).await;
    }
    // Said again: what was decided the first time stands, and is not counted twice.
    match api.finisher.finish(ending.clone()).await? {
        true => Ok(Json(Done { state: row.state.as_str(), due_in_ms: None })),
        false => Err(api.lost(&route.name, delivery).await?),
    }
}

/// The worker needs more time.
pub(super) async fn extend(api: Shared<Arc<Api>>, id: Id, request: Request<Body>) -> Answer {
    let (delivery, route, said) = api.about::<Extend>(id, request).await?;
    let ticket = ticket(&said.lease)?;
    let by = lease_length("by", said.by)?;
    let leases = [(delivery, ticket.lease)];
    let good = api.in_time(api.inbox.store.extend(&leases, by)).await?;
    match good.first() {
        Some(true) => Ok(Json(Done { state: State::Processing.as_str(), due_in_ms: None })),
        _ => Err(api.lost(&route.name, delivery).await?),
    }
}

impl Api {
    /// What a request is about, the route of that, and what it says. Nothing is told of a delivery
    /// to whoever may not pull from its route. Whether the route is pushed by now does not matter:
    /// the lease proves that the delivery was pulled.
    async fn about<T: DeserializeOwned>(
        &self,
        id: Id,
        request: Request<Body>,
    ) -> Result<(DeliveryId, Route, T), Problem> {
        let (parts, body): (Parts, Body) = request.into_parts();
        let token = self.authenticate(&parts.headers).await?;
        let unknown = || Problem::not_found("there is no such delivery");
        let delivery: DeliveryId = segment(id)?.parse().map_err(|_| unknown())?;
        let route = self.route_of(delivery.route).await?.ok_or_else(unknown)?;
        if !token.may_pull(&route.name) {
            return Err(Problem::forbidden(&format!("pull:{}", route.name)));
        }
        let request = Request::from_parts(parts, body);
        let said = body::read(request, self.inbox.live().body_timeout).await?;
        Ok((delivery, route, said))
    }

    fn ending(&self, delivery: DeliveryId, lease: &str, next: Next) -> Result<Ending, Problem> {
        let ticket = ticket(lease)?;
        Ok(Ending {
            delivery,
            lease: ticket.lease,
            next,
            took: ticket.age(self.inbox.clock.now()),
            status: None,
            detail: None,
            summary: None,
            // It may have been claimed under other rules than those of now.
            guarded: true,
        })
    }

    async fn end(&self, route: &str, ending: Ending) -> Answer {
        if !self.finisher.finish(ending.clone()).await? {
            return Err(self.lost(route, ending.delivery).await?);
        }
        let metrics = &self.inbox.metrics.routes;
        metrics.attempt(route, ending.next, ending.took);
        if matches!(ending.next, Next::Retry(_) | Next::Snooze(_)) {
            metrics.retry(route, ending.detail.as_deref().unwrap_or_default());
        }
        logs::pulled(route, &ending);
        Ok(Json(Done::after(ending.next)))
    }

    async fn row(&self, delivery: DeliveryId) -> Result<DeliveryRow, Problem> {
        let filter = DeliveryFilter {
            receipt: Some(delivery.receipt),
            limit: usize::from(i16::MAX.unsigned_abs()),
            ..DeliveryFilter::default()
        };
        let rows = self.in_time(self.inbox.store.deliveries(&filter)).await?;
        rows.into_iter()
            .find(|row| row.delivery == delivery)
            .ok_or_else(|| Problem::not_found("there is no such delivery"))
    }

    /// What to say of a lease that does not hold.
    async fn lost(&self, route: &str, delivery: DeliveryId) -> Result<Problem, Problem> {
        let standing = self.in_time(self.inbox.store.standing(delivery)).await?;
        Ok(match standing {
            Some(standing) => {
                self.inbox.metrics.routes.lease_lost(route);
                Problem::lease_lost(standing.state)
            }
            None => Problem::not_found("there is no such delivery"),
        })
    }
}

fn ticket(text: &str) -> Result<Ticket, Problem> {
    text.parse().map_err(|()| Problem::invalid("`lease` is none that a claim has given"))
}
