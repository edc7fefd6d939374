//! Every answer of the API that is not what was asked for: `application/problem+json`, RFC 9457.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use oncebox::delivery::State;
use oncebox::effect::{Effect, OUTBOX};
use oncebox::limits::RETRY_AFTER_SECS;
use oncebox::store::StoreError;
use serde::{Serialize, Serializer};
use tracing::warn;

use super::effects::json::EffectJson;

/// The longest a detail gets: some of it may be the asker's own text.
const DETAIL_CHARS: usize = 300;

/// Why a request was not answered as it was meant.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    /// For programs; never renamed.
    code: &'static str,
    detail: String,
    /// Where the delivery stands, if it is about one.
    state: Option<State>,
    /// The effect, if it is about one.
    effect: Option<Box<EffectJson>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl AsRef<str>) -> Self {
        let detail = detail.as_ref().chars().take(DETAIL_CHARS).collect();
        Self { status, code, detail, state: None, effect: None }
    }

    /// The same, of a delivery that stands there.
    pub(super) fn standing(self, state: State) -> Self {
        Self { state: Some(state), ..self }
    }

    /// The same, about an effect.
    pub(super) fn about(self, effect: &Effect) -> Self {
        Self { effect: Some(Box::new(effect.into())), ..self }
    }

    /// The request is not one we understand, and never will be.
    pub(super) fn invalid(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    /// No token, or none that works. Which of the two is not told.
    pub(super) fn unauthorized() -> Self {
        let detail = "missing or invalid token; write Authorization: Bearer oncebox_…";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// The token works, and not for this.
    pub(super) fn forbidden(scope: &str) -> Self {
        let detail = format!("the token lacks the scope `{scope}`");
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// `Host` is a name that is not ours.
    pub(super) fn unknown_host() -> Self {
        let detail = "this is no name of the admin listener: ask by localhost or an address, or \
                      write the name into [server] admin_hosts";
        Self::new(StatusCode::FORBIDDEN, "unknown_host", detail)
    }

    /// What the path names is not there.
    pub(super) fn not_found(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// There is no such delivery, or none that the asker may know of.
    pub(super) fn no_delivery() -> Self {
        Self::not_found("there is no such delivery; write the id that the claim returned")
    }

    /// The path is there for another method.
    pub(super) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "write POST")
    }

    /// The route has another consumer.
    pub(super) fn not_a_pull_route(name: &str) -> Self {
        let way_out = match name.starts_with(OUTBOX) {
            true => "its messages go to the url of their destination",
            false => "write pull = true instead of push in the configuration to pull from it",
        };
        let detail = format!(
            "route `{name}` is pushed, so nothing of it can be claimed or ended here; {way_out}"
        );
        Self::new(StatusCode::CONFLICT, "not_a_pull_route", detail)
    }

    /// The lease does not hold: it ran out, or the delivery went on without it.
    pub(super) fn lease_lost(state: State) -> Self {
        let detail = "the lease ran out or was replaced, or the claim returned another; nothing was \
                      changed: stop work on this delivery, and extend the next in time or claim it \
                      for longer";
        Self { state: Some(state), ..Self::new(StatusCode::CONFLICT, "lease_lost", detail) }
    }

    /// An effect was begun under the lease; without the lease its outcome is unknown.
    pub(super) fn begun(effect: &Effect) -> Self {
        let detail = format!(
            "the effect `{}` was begun under this lease; complete or abandon it first: only what \
             was not begun is given back",
            effect.key
        );
        Self::new(StatusCode::CONFLICT, "effect_begun", detail).about(effect)
    }

    /// The body is larger than any of ours.
    pub(super) fn too_large(most: usize) -> Self {
        let detail = format!(
            "a request has at most {most} bytes here; keep what is large elsewhere and write where"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    /// The body did not come in time.
    pub(super) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not come in time")
    }

    /// The same, about one of several that the asker has named.
    pub(super) fn of(self, name: &str) -> Self {
        let detail = format!("`{name}`: {}", self.detail);
        Self { state: self.state, ..Self::new(self.status, self.code, detail) }
    }

    /// Not now.
    pub(super) fn unavailable(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

/// What is sent of a problem.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'a EffectJson>,
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = Told {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            state: self.state.map(State::as_str),
            effect: self.effect.as_deref(),
        };
        told.serialize(serializer)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // What a database says may name hosts and users; it is for the operator.
        warn!(%error, "the store did not do what a worker asked for");
        match error {
            StoreError::Data(_) => Self::invalid("the store refused a value of the request"),
            StoreError::UnknownOutcome(_) => Self::unavailable(
                "whether it was done is not known; ask again: what was done is told as done",
            ),
            _ => Self::unavailable("the store does not answer"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(&self)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"oncebox\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
        }
        response
    }
}
