//! Effects of workers that pull. A call to the outside is begun before it is made, and completed
//! or abandoned after. If neither comes before the lease is over, what came of it is unknown.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::Request;
use oncebox::delivery::{DeliveryId, Reason};
use oncebox::effect::{Begun, Effect, EffectKey, EffectName, OUTBOX, OnUnknown, Settled, Under};
use oncebox::limits::{API_BODY, API_RESULT_BODY};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::problem::Problem;
use super::pull::ticket;
use super::{Api, Name, Route};
use crate::logs;
use crate::metrics::EffectCall;

pub mod json;
mod problem;

use json::{EffectJson, EvidenceJson};
pub(super) use problem::key;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    lease: String,
    key: Option<String>,
    step: Option<String>,
    #[serde(default)]
    on_unknown: Policy,
}

/// What to do if it was begun before and nobody knows what came of that.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    #[default]
    Retry,
    Ask,
}

impl From<Policy> for OnUnknown {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Retry => Self::Retry,
            Policy::Ask => Self::Ask,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    lease: String,
    key: Option<String>,
    step: Option<String>,
    result: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Abandon {
    lease: String,
    key: Option<String>,
    step: Option<String>,
}

/// What beginning an effect came to, if the caller can go on by it.
#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub(super) enum ToldOfBegin {
    /// The caller's to do.
    Begun {
        key: String,
        unknowns: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        evidence: Option<EvidenceJson>,
    },
    /// It is done.
    Done { effect: EffectJson },
}

/// What became of an effect.
#[derive(Debug, Serialize)]
pub(super) struct ToldOfEnd {
    status: &'static str,
}

/// Begins an effect or a step. Said again under the same lease it is the caller's again.
pub(super) async fn begin(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Result<Json<ToldOfBegin>, Problem> {
    let (delivery, route, said) = api.about_within::<Begin>(id, request, API_BODY).await?;
    let name = name(said.key.as_deref(), said.step.as_deref())?;
    let under = Under { delivery, lease: ticket(&said.lease)?.lease };
    let begun = api.inbox.store.begin_effect(under, &name, said.on_unknown.into());
    match api.in_time(begun).await? {
        Begun::Yours { key, unknowns, evidence } => {
            api.count_call(&route, EffectCall::Begun);
            let evidence = evidence.as_ref().map(EvidenceJson::from);
            Ok(Json(ToldOfBegin::Begun { key, unknowns, evidence }))
        }
        Begun::Done(effect) => {
            api.count_call(&route, EffectCall::Found);
            Ok(Json(ToldOfBegin::Done { effect: EffectJson::from(&effect) }))
        }
        Begun::Busy(effect) => {
            api.count_call(&route, EffectCall::Busy);
            Err(Problem::busy(&effect))
        }
        Begun::Parked(effect) => {
            api.count_call(&route, EffectCall::Parked);
            logs::parked(&route.name, delivery, &effect.key);
            Err(Problem::unknown_effect(&effect))
        }
        Begun::LeaseLost => Err(match api.parked_for(&route, delivery, &name).await? {
            // Said again, as when the answer was lost.
            Some(effect) => Problem::unknown_effect(&effect),
            None => api.lost(&route, delivery).await?,
        }),
    }
}

/// Says that an effect happened.
pub(super) async fn complete(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Result<Json<ToldOfEnd>, Problem> {
    let (delivery, route, said) =
        api.about_within::<Complete>(id, request, API_RESULT_BODY).await?;
    let name = name(said.key.as_deref(), said.step.as_deref())?;
    let under = Under { delivery, lease: ticket(&said.lease)?.lease };
    let result = said.result.map(|result| json::result(result.get())).transpose()?.flatten();
    let completed = api.inbox.store.complete_effect(under, &name, result.as_deref());
    match api.in_time(completed).await? {
        Settled::Done => {
            api.count_call(&route, EffectCall::Done);
            Ok(Json(ToldOfEnd { status: "done" }))
        }
        Settled::Late => {
            api.count_call(&route, EffectCall::Late);
            api.inbox.metrics.routes.lease_lost(&route.name);
            Err(api.of_delivery(delivery, Problem::evidence).await?)
        }
        Settled::NotBegun => Err(api.of_delivery(delivery, Problem::not_begun).await?),
    }
}

/// Says that an effect did not happen.
pub(super) async fn abandon(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Result<Json<ToldOfEnd>, Problem> {
    let (delivery, route, said) = api.about_within::<Abandon>(id, request, API_BODY).await?;
    let name = name(said.key.as_deref(), said.step.as_deref())?;
    let under = Under { delivery, lease: ticket(&said.lease)?.lease };
    match api.in_time(api.inbox.store.abandon_effect(under, &name)).await? {
        Settled::Done => {
            api.count_call(&route, EffectCall::Abandoned);
            Ok(Json(ToldOfEnd { status: "abandoned" }))
        }
        Settled::Late => {
            api.count_call(&route, EffectCall::Late);
            Err(api.lost(&route, delivery).await?)
        }
        Settled::NotBegun => Err(api.of_delivery(delivery, Problem::not_begun).await?),
    }
}

/// The effect that is meant.
fn name(of_business: Option<&str>, of_delivery: Option<&str>) -> Result<EffectName, Problem> {
    match (of_business, of_delivery) {
        (Some(text), None) if text.starts_with(OUTBOX) => Err(Problem::invalid(format!(
            "`key`: those that begin with `{OUTBOX}` are of messages; send one, or name it \
             otherwise"
        ))),
        (Some(text), None) => match key("key", text)? {
            key if key.is_like_a_step() => Err(Problem::invalid(
                "`key`: those that begin with a UUID and `/` are of steps; say `step` if it is one \
                 of this delivery, or put a word before it, as in `order:UUID`",
            )),
            key => Ok(EffectName::Key(key)),
        },
        (None, Some(text)) => Ok(EffectName::Step(key("step", text)?)),
        (None, None) => Err(Problem::invalid(
            "name the effect: `key` if others may come to do the same, `step` if it is of this \
             delivery alone",
        )),
        (Some(_), Some(_)) => Err(Problem::invalid("`key` and `step` exclude each other")),
    }
}

impl Api {
    pub(super) fn count_call(&self, route: &Route, call: EffectCall) {
        self.inbox.metrics.effects.call(&route.name, call);
    }

    /// What to say of a delivery that the call could not be about, knowing its state.
    async fn of_delivery(
        &self,
        delivery: DeliveryId,
        say: impl Fn(oncebox::delivery::State) -> Problem,
    ) -> Result<Problem, Problem> {
        let standing = self.in_time(self.inbox.store.standing(delivery)).await?;
        Ok(standing.map_or_else(Problem::no_delivery, |standing| say(standing.state)))
    }

    /// The effect of that name, if the delivery is held for it.
    async fn parked_for(
        &self,
        route: &Route,
        delivery: DeliveryId,
        name: &EffectName,
    ) -> Result<Option<Effect>, Problem> {
        let standing = self.in_time(self.inbox.store.standing(delivery)).await?;
        if standing.and_then(|standing| standing.reason) != Some(Reason::UnknownEffect) {
            return Ok(None);
        }
        let Some(key) = self.row(delivery).await?.waits_for else { return Ok(None) };
        let is_it = match name {
            EffectName::Key(name) => {
                let live = self.inbox.live();
                let route = live.routes.find(&route.name);
                let service = route.and_then(|route| route.config.service.as_deref());
                key == EffectKey::of_service(service.unwrap_or_default(), name)
            }
            EffectName::Step(step) => {
                let of_delivery = format!("{}/", delivery.receipt);
                let end = format!("/{step}");
                key.starts_with(&of_delivery) && key.ends_with(&end)
            }
        };
        if !is_it {
            return Ok(None);
        }
        self.in_time(self.inbox.store.effect(&key)).await
    }
}
