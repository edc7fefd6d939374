//! What can be wrong with a call on an effect.

use axum::http::StatusCode;
use oncebox::delivery::State;
use oncebox::effect::{BadKey, Effect, EffectKey};

use super::json::BadResult;
use crate::api::problem::Problem;

impl Problem {
    /// Another lease that is still good has the effect.
    pub(super) fn busy(effect: &Effect) -> Self {
        let detail = format!(
            "delivery {} is at it, under a lease that is still good; come back when that is over",
            effect.delivery
        );
        Self::new(StatusCode::CONFLICT, "busy", detail).about(effect)
    }

    /// What came of the effect is not known, and the delivery waits for a person to say.
    pub(super) fn unknown_effect(effect: &Effect) -> Self {
        let detail = "what came of it is not known; the delivery is held until a person has said: \
                      oncebox effects settle KEY --done or --not-done";
        let problem = Self::new(StatusCode::CONFLICT, "unknown_effect", detail).about(effect);
        problem.standing(State::Held)
    }

    /// There is nothing to complete or to abandon.
    pub(super) fn not_begun(state: State) -> Self {
        let detail = "the effect was not begun under this lease, or it was abandoned; begin it";
        Self::new(StatusCode::CONFLICT, "not_begun", detail).standing(state)
    }

    /// The lease was over when the effect was said to be done.
    pub(super) fn evidence(state: State) -> Self {
        let detail = "the lease ran out or was replaced; what you say is kept as evidence for \
                      whoever decides, and makes nothing done: stop work on this delivery, and \
                      extend the next in time or claim it for longer";
        Self::new(StatusCode::CONFLICT, "lease_lost", detail).standing(state)
    }

    /// Part of a request is larger than what is kept of it.
    pub(in crate::api) fn part_too_large(detail: &str) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }
}

impl From<BadResult> for Problem {
    fn from(bad: BadResult) -> Self {
        let detail = format!("`result`: {bad}");
        match bad {
            BadResult::TooLarge(_) => Self::part_too_large(&detail),
            BadResult::NotJson(_) | BadResult::Nul => Self::invalid(detail),
        }
    }
}

/// Reads a key, the name of a step, or a group: whatever the field is.
pub(in crate::api) fn key(field: &str, text: &str) -> Result<EffectKey, Problem> {
    text.parse().map_err(|bad: BadKey| Problem::invalid(format!("`{field}`: {bad}")))
}
