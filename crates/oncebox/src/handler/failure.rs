//! Why a handler did not get through an event.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::delivery::Outcome;
use crate::effect::BadKey;
use crate::worker::{Report, Told};

/// Why a handler did not get through an event. Whatever it wrote is rolled back.
///
/// Every error becomes one by `?`, and is taken to be transient: the event is tried again, with
/// growing pauses, until the attempts of its route are spent. What can never succeed says so.
///
/// ```
/// use std::time::Duration;
/// use oncebox::handler::Failure;
///
/// fn amount(text: &str) -> Result<i64, Failure> {
///     let amount = text.parse()?; // any error: tried again
///     if amount < 0 {
///         return Err(Failure::dead("the amount is negative"));
///     }
///     if amount == 0 {
///         return Err(Failure::retry_after(Duration::from_secs(60), "not settled yet"));
///     }
///     Ok(amount)
/// }
///
/// assert_eq!(amount("12").unwrap(), 12);
/// assert_eq!(amount("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert!(amount("-1").unwrap_err().is_dead());
/// ```
pub struct Failure {
    text: String,
    course: Course,
    not_done: bool,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It is tried again.
    Retry { after: Option<Duration> },
    /// It is given up.
    Dead,
    /// Somebody else has the delivery.
    LeaseLost,
    /// The delivery is held for an effect whose outcome is unknown.
    Parked,
}

impl Failure {
    /// Not this time.
    pub fn retry(why: impl Into<String>) -> Self {
        Self::new(Course::Retry { after: None }, why)
    }

    /// Not this time, and not before this long from now.
    pub fn retry_after(after: Duration, why: impl Into<String>) -> Self {
        Self::new(Course::Retry { after: Some(after) }, why)
    }

    /// Never: the delivery is dead until somebody replays or discards it.
    pub fn dead(why: impl Into<String>) -> Self {
        Self::new(Course::Dead, why)
    }

    /// Says of a call to the outside that it certainly did not happen, as when the other side
    /// refused it. Without this its outcome is unknown; see [`Calls`](super::Calls).
    pub fn not_done(self) -> Self {
        Self { not_done: true, ..self }
    }

    /// Whether the delivery is given up because of it.
    pub fn is_dead(&self) -> bool {
        self.course == Course::Dead
    }

    /// Whether another worker has the delivery by now.
    pub fn is_lease_lost(&self) -> bool {
        self.course == Course::LeaseLost
    }

    /// Whether a call certainly did not happen.
    pub(crate) fn is_not_done(&self) -> bool {
        self.not_done
    }

    pub(crate) fn lease_lost() -> Self {
        let text = "the lease of the delivery is not good any more: another worker has it, or may";
        Self::new(Course::LeaseLost, text)
    }

    pub(crate) fn parked(key: &str) -> Self {
        let text = format!(
            "whether `{key}` happened is not known; find out, then `oncebox effects settle {key}` \
             with --done or --not-done"
        );
        Self::new(Course::Parked, text)
    }

    /// A text that cannot be a key, or the name of a step.
    pub(crate) fn bad_key(what: &str, bad: BadKey) -> Self {
        Self::retry(format!("{what} cannot be used: {bad}"))
    }

    /// The error it was made of.
    pub(crate) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }

    /// What the worker is told of it.
    pub(crate) fn report(&self) -> Report {
        let (outcome, told) = match self.course {
            Course::Retry { after } => (Outcome::Retry { after }, Told::NotYet),
            Course::Dead => (Outcome::Dead, Told::NotYet),
            Course::LeaseLost => (Outcome::Retry { after: None }, Told::Lost),
            Course::Parked => (Outcome::Retry { after: None }, Told::Parked),
        };
        // An error nobody foresaw may be the database's, and then everybody has it.
        let healthy = self.cause.is_none();
        Report { detail: Some(self.text.clone()), told, healthy, ..Report::of(outcome) }
    }

    fn new(course: Course, why: impl Into<String>) -> Self {
        Self { text: why.into(), course, not_done: false, cause: None }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = with_causes(&error);
        Self { cause: Some(Box::new(error)), ..Self::retry(text) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?}: {})", self.course, self.text)
    }
}

/// An error with what caused it, each said once.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_lead_where_they_say() {
        let report = Failure::from(std::io::Error::other("the disk is gone")).report();
        assert_eq!(report.outcome, Outcome::Retry { after: None });
        assert_eq!(report.detail.as_deref(), Some("the disk is gone"));
        assert!(!report.healthy);
        let report = Failure::retry_after(Duration::from_secs(9), "later").report();
        assert_eq!(report.outcome, Outcome::Retry { after: Some(Duration::from_secs(9)) });
        assert!(report.healthy);
        let report = Failure::dead("never").report();
        assert_eq!((report.outcome, report.told), (Outcome::Dead, Told::NotYet));
        assert_eq!(Failure::lease_lost().report().told, Told::Lost);
        assert_eq!(Failure::parked("refund:1").report().told, Told::Parked);
    }
}
