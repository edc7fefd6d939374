//! The admin listener: health, metrics and the API. The console will join them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde::Serialize;

use crate::api;
use crate::state::Inbox;

pub(crate) mod host;

/// How long a look at the store may take before it counts as unhealthy.
const HEALTH_WAIT: Duration = Duration::from_secs(3);

/// Every path of the admin listener.
pub fn router(inbox: Arc<Inbox>) -> Router {
    health(inbox.clone()).nest("/api/v1", api::router(inbox))
}

/// What the admin listener answers without the API: health and metrics.
pub fn health(inbox: Arc<Inbox>) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(inbox)
}

/// The process runs and answers.
async fn livez() -> Response {
    Json(serde_json::json!({ "status": "live" })).into_response()
}

#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    /// Why it is not ready.
    reasons: Vec<String>,
    /// What an operator should look at, though it is ready.
    warnings: Vec<String>,
}

/// Whether events can be recorded now.
async fn readyz(State(inbox): State<Arc<Inbox>>) -> Response {
    let mut reasons = Vec::new();
    let mut warnings = Vec::new();
    if inbox.is_draining() {
        reasons.push("the server is stopping".to_owned());
    }
    if let Some(reason) = inbox.failure() {
        reasons.push(format!("the store has failed: {reason}"));
    }
    let health = tokio::time::timeout(HEALTH_WAIT, inbox.store.health());
    let (health, proof) = tokio::join!(health, inbox.ingest.prove());
    match health {
        Ok(Ok(health)) => warnings.extend(health.warning),
        Ok(Err(error)) => reasons.push(error.to_string()),
        Err(_) => reasons.push("the store does not answer".to_owned()),
    }
    reasons.extend(proof.err());
    // A proof that has just succeeded ends the trouble.
    if let Some(reason) = inbox.ingest.trouble() {
        reasons.push(format!("the last commit failed: {reason}"));
    }
    if inbox.clock_watch.is_suspect() {
        let warning = "the clock is suspect: check the time synchronisation of this machine";
        warnings.push(warning.to_owned());
    }
    warnings.extend(inbox.activity.rejecting());
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
    };
    (code, Json(Readiness { status, reasons, warnings })).into_response()
}

async fn metrics(State(inbox): State<Arc<Inbox>>) -> Response {
    let waiting = i64::try_from(inbox.ingest.waiting()).unwrap_or(i64::MAX);
    inbox.metrics.queue_waiting.set(waiting);
    for source in inbox.live().sources.iter() {
        source.metrics.stored_bytes.set(inbox.ingest.stored_bytes(source.number));
    }
    inbox.tally().await;
    if let Ok(Ok(health)) = tokio::time::timeout(HEALTH_WAIT, inbox.store.health()).await {
        inbox.metrics.health(&health);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], inbox.metrics.encode()).into_response()
}
