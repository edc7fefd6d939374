//! What was pulled is done: one delivery, or several of a route in one request.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::Request;
use oncebox::delivery::{DeliveryId, Ending, Next};
use oncebox::limits::{API_BATCH_BODY, CLAIM_ROWS};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::pull::{Answer, Done, ticket};
use super::{Api, Name, Route, body};

/// What is said of one delivery.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    lease: String,
    #[serde(default)]
    outcome: Outcome,
    summary: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    #[default]
    Processed,
    Stale,
}

impl Outcome {
    fn next(self) -> Next {
        match self {
            Self::Processed => Next::Processed,
            Self::Stale => Next::Stale,
        }
    }
}

/// What is said of several.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    deliveries: Vec<Entry>,
}

/// As [`Said`], and of which delivery.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    delivery: String,
    lease: String,
    #[serde(default)]
    outcome: Outcome,
    summary: Option<String>,
}

/// What came of several, in the order they were named.
#[derive(Serialize)]
pub(super) struct Told {
    deliveries: Vec<ToldOfOne>,
}

#[derive(Serialize)]
struct ToldOfOne {
    /// As it was named.
    delivery: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

/// The delivery is done, or its consumer has newer state already.
pub(super) async fn complete(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Answer {
    let (delivery, route, said) = api.about::<Said>(id, request).await?;
    let ending = api.ending(&route, delivery, ticket(&said.lease)?, said.outcome.next());
    api.end(&route, Ending { summary: said.summary, ..ending }).await.map(Json)
}

/// The same of several deliveries of a route. Each stands for itself: one whose lease was lost
/// does not fail its neighbours. Whether the route is still configured does not matter; once it
/// is pushed, its deliveries are completed one by one.
pub(super) async fn complete_all(
    Shared(api): Shared<Arc<Api>>,
    name: Name,
    request: Request<Body>,
) -> Result<Json<Told>, Problem> {
    let (_, name) = api.may_pull(name, request.headers()).await?;
    let batch: Batch = body::read(request, API_BATCH_BODY, api.inbox.live().body_timeout).await?;
    let route = api.route_named(&name).await?;
    let route = route.ok_or_else(|| Problem::not_found("there is no such route"))?;
    if !route.rules.pulled {
        return Err(Problem::not_a_pull_route(&name));
    }
    let (entries, endings) = read(&api, &route, batch)?;
    let mut finished = api.finisher.finish(&route.name, endings).await?.into_iter();
    let mut deliveries = Vec::with_capacity(entries.len());
    for (name, ended) in entries {
        let told = match (ended, ended.and_then(|_| finished.next())) {
            (Some((delivery, next)), Some(finished)) => {
                api.told(&route, delivery, next, finished).await?
            }
            _ => Err(Problem::no_delivery()),
        };
        deliveries.push(ToldOfOne::new(name, told));
    }
    Ok(Json(Told { deliveries }))
}

/// A delivery as it was named, and how it ends if it is one of the route.
type Named = (String, Option<(DeliveryId, Next)>);

/// Reads all of a batch, or nothing of it.
fn read(api: &Api, route: &Route, batch: Batch) -> Result<(Vec<Named>, Vec<Ending>), Problem> {
    let count = batch.deliveries.len();
    if !(1..=CLAIM_ROWS).contains(&count) {
        let wrong = format!("`deliveries` must be between 1 and {CLAIM_ROWS}, not {count}");
        return Err(Problem::invalid(wrong));
    }
    let mut seen = HashSet::with_capacity(count);
    let (mut entries, mut endings) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for Entry { delivery: name, lease, outcome, summary } in batch.deliveries {
        let ticket = ticket(&lease).map_err(|problem| problem.of(&name))?;
        let delivery: Option<DeliveryId> = name.parse().ok();
        if delivery.is_some_and(|delivery| !seen.insert(delivery)) {
            return Err(Problem::invalid("it is there twice").of(&name));
        }
        let (ours, next) = (delivery.filter(|it| it.route == route.number), outcome.next());
        if let Some(delivery) = ours {
            endings.push(Ending { summary, ..api.ending(route, delivery, ticket, next) });
        }
        entries.push((name, ours.map(|delivery| (delivery, next))));
    }
    Ok((entries, endings))
}

impl ToldOfOne {
    fn new(delivery: String, told: Result<Done, Problem>) -> Self {
        match told {
            Ok(done) => Self { delivery, state: Some(done.state), error: None },
            Err(problem) => Self { delivery, state: None, error: Some(problem) },
        }
    }
}
