//! Moving an object's watermark: whether what a worker is about to write is stale.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::Request;
use oncebox::effect::Under;
use oncebox::limits::{API_BODY, API_STORE_WAIT, NAME_BYTES};
use oncebox::store::StoreError;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::pull::ticket;
use super::{Api, Name};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    lease: String,
    object: String,
    version: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct Told {
    advanced: bool,
}

/// Moves the watermark of an object forward, unless it is past that version already.
pub(super) async fn advance(
    Shared(api): Shared<Arc<Api>>,
    id: Name,
    request: Request<Body>,
) -> Result<Json<Told>, Problem> {
    let (delivery, route, said) = api.about_within::<Advance>(id, request, API_BODY).await?;
    let under = Under { delivery, lease: ticket(&said.lease)?.lease };
    let length = said.object.len();
    if !(1..=NAME_BYTES).contains(&length) {
        let wrong = format!("`object` must have between 1 and {NAME_BYTES} bytes, not {length}");
        return Err(Problem::invalid(wrong));
    }
    if said.object.chars().any(char::is_control) {
        return Err(Problem::invalid("`object` has a control character; ids are plain text"));
    }
    let advanced = api.inbox.store.advance(under, &said.object, said.version);
    let advanced = tokio::time::timeout(API_STORE_WAIT, advanced).await;
    match advanced {
        // The store says why, and it is about the caller's own values.
        Ok(Err(StoreError::Data(why))) => Err(Problem::invalid(why)),
        Ok(advanced) => match advanced? {
            Some(advanced) => Ok(Json(Told { advanced })),
            None => Err(api.lost(&route, delivery).await?),
        },
        Err(_) => Err(Problem::unavailable("the store does not answer")),
    }
}
