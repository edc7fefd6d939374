//! Why there is nothing to hand over, and what that means for the delivery.

use std::time::Duration;

use http::StatusCode;
use oncebox::delivery::Outcome;
use oncebox::worker::{Health, Report};

/// A fetch that brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// A word for metrics, after `fetch_`.
    reason: String,
    detail: String,
    outcome: Outcome,
    /// What tells of the API, of its key or of the way to it would happen to the next delivery as
    /// well; the rest tells of this event only.
    health: Health,
}

impl Failure {
    /// There was no answer.
    pub(super) fn unanswered(reason: &str, detail: impl Into<String>) -> Self {
        Self::new(reason, detail, Outcome::Retry { after: None }, Health::Failing)
    }

    /// There was no connection.
    pub(super) fn unreachable(reason: &str, detail: impl Into<String>) -> Self {
        Self::new(reason, detail, Outcome::Retry { after: None }, Health::Unreachable)
    }

    /// The answer is one that no retry mends.
    pub(super) fn permanent(reason: &str, detail: impl Into<String>) -> Self {
        Self::new(reason, detail, Outcome::Dead, Health::Well)
    }

    /// The answer cannot be used, perhaps the next one can.
    pub(super) fn unusable(reason: &str, detail: impl Into<String>) -> Self {
        Self::new(reason, detail, Outcome::Retry { after: None }, Health::Well)
    }

    /// The answer is neither the object nor that there is none.
    pub(super) fn status(status: StatusCode, after: Option<Duration>) -> Self {
        let name = status.canonical_reason().unwrap_or_default();
        let mut detail = format!("answered {} {name}", status.as_u16()).trim_end().to_owned();
        let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_refusal {
            detail.push_str("; check `bearer` and `headers` of `fetch`");
        } else if status.is_redirection() {
            detail.push_str("; redirects are not followed, correct `url` of `fetch`");
        }
        let is_about_all = is_refusal || status.is_server_error() || status.is_redirection();
        let health = match status {
            StatusCode::TOO_MANY_REQUESTS => Health::Overloaded,
            _ if is_about_all => Health::Failing,
            _ => Health::Well,
        };
        let reason = format!("status_{}", status.as_u16());
        Self::new(&reason, detail, Outcome::Retry { after }, health)
    }

    /// The rate of the route let nothing through for that long.
    pub(super) fn no_turn(rate: u32, waited: Duration) -> Self {
        let detail = format!("no turn within {waited:?} at {rate} per second; raise `rate`");
        Self::new("rate", detail, Outcome::Retry { after: None }, Health::Overloaded)
    }

    /// Whoever made the request is gone.
    pub(super) fn broken_off() -> Self {
        Self::unanswered("broken_answer", "the request was broken off")
    }

    fn new(reason: &str, detail: impl Into<String>, outcome: Outcome, health: Health) -> Self {
        let detail = format!("fetch: {}", detail.into());
        Self { reason: format!("fetch_{reason}"), detail, outcome, health }
    }

    /// A word for why the delivery is to be repeated, if it is.
    pub(super) fn retry_reason(&self) -> Option<&str> {
        (self.outcome != Outcome::Dead).then_some(self.reason.as_str())
    }

    /// What the attempt came to. The consumer has answered nothing, so there is no status.
    pub(super) fn report(&self) -> Report {
        let detail = Some(self.detail.clone());
        Report { detail, health: self.health, ..Report::of(self.outcome.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: u16, after: Option<u64>) -> Report {
        let status = StatusCode::from_u16(status).unwrap();
        Failure::status(status, after.map(Duration::from_secs)).report()
    }

    #[test]
    fn failures_say_that_it_was_the_fetch_and_what_to_do() {
        let detail = |status| report(status, None).detail.unwrap();
        assert_eq!(detail(500), "fetch: answered 500 Internal Server Error");
        assert_eq!(detail(599), "fetch: answered 599");
        let told = "fetch: answered 401 Unauthorized; check `bearer` and `headers` of `fetch`";
        assert_eq!(detail(401), told);
        assert!(detail(403).contains("`bearer`"));
        assert!(detail(302).contains("redirects are not followed"));
    }

    #[test]
    fn what_would_happen_to_every_delivery_leaves_the_route_alone() {
        for status in [301, 401, 403, 500, 503] {
            assert_eq!(report(status, None).health, Health::Failing, "{status}");
        }
        for status in [400, 405, 409, 418, 422] {
            assert_eq!(report(status, None).health, Health::Well, "{status}");
        }
        let slow = Failure::no_turn(1, Duration::from_secs(5)).report();
        assert_eq!((slow.health, report(429, None).health), (Health::Overloaded, slow.health));
        assert_eq!(Failure::permanent("too_large", "").report().health, Health::Well);
        assert_eq!(Failure::unreachable("connect", "").report().health, Health::Unreachable);
    }

    #[test]
    fn the_time_the_api_names_is_kept() {
        let after = Some(Duration::from_secs(9));
        assert_eq!(report(429, Some(9)).outcome, Outcome::Retry { after });
        let failure = Failure::permanent("too_large", "x");
        assert_eq!((failure.report().outcome, failure.retry_reason()), (Outcome::Dead, None));
        let failure = Failure::status(StatusCode::CONFLICT, None);
        assert_eq!(failure.retry_reason(), Some("fetch_status_409"));
    }
}
