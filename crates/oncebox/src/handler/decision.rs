//! What a handler makes of an event.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{Clock, SystemClock};
use crate::delivery::Outcome;
use crate::worker::{Report, Told};

/// What a handler makes of an event: the last of the five verbs, *finish*. It commits together
/// with everything the handler wrote, whichever it is.
///
/// ```
/// use oncebox::handler::Decision;
///
/// let paid = Decision::processed("invoice in_456 paid");
/// let later = Decision::snooze_until("2030-01-01T00:00:00Z".parse().unwrap(), "not before 2030");
/// assert_ne!(paid, later);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub(crate) outcome: Outcome,
    /// What was done, or why not. Operators see it.
    pub(crate) note: Option<String>,
}

impl Decision {
    /// It is done. The summary is kept with the delivery; an empty one is none.
    pub fn processed(summary: impl Into<String>) -> Self {
        Self::of(Outcome::Processed, summary)
    }

    /// Newer state was applied before: the delivery is skipped.
    pub fn stale(why: impl Into<String>) -> Self {
        Self::of(Outcome::Stale, why)
    }

    /// What was written so far stands, and the rest is for another attempt, after the pause of
    /// the route. Counts as a failed attempt.
    pub fn retry(why: impl Into<String>) -> Self {
        Self::of(Outcome::Retry { after: None }, why)
    }

    /// As [`Self::retry`], and not before this long from now.
    pub fn retry_after(after: Duration, why: impl Into<String>) -> Self {
        Self::of(Outcome::Retry { after: Some(after) }, why)
    }

    /// Nothing is wrong: come back after this long. Does not count as a failed attempt.
    pub fn snooze(after: Duration, why: impl Into<String>) -> Self {
        Self::of(Outcome::Snooze { after }, why)
    }

    /// As [`Self::snooze`], until a time of this machine's clock.
    pub fn snooze_until(until: Timestamp, why: impl Into<String>) -> Self {
        let after = until.duration_since(SystemClock.now());
        Self::snooze(Duration::try_from(after).unwrap_or_default(), why)
    }

    /// Somebody else is at the same thing.
    pub(crate) fn busy(after: Duration, why: impl Into<String>) -> Self {
        Self::of(Outcome::Busy { after }, why)
    }

    /// It can never succeed: the delivery is dead until somebody replays or discards it.
    pub fn dead(why: impl Into<String>) -> Self {
        Self::of(Outcome::Dead, why)
    }

    fn of(outcome: Outcome, note: impl Into<String>) -> Self {
        Self { outcome, note: Some(note.into()).filter(|note| !note.is_empty()) }
    }

    /// What the worker is told of it.
    pub(crate) fn report(&self, told: Told) -> Report {
        let (detail, summary) = (self.detail(), self.summary());
        Report {
            detail: detail.map(str::to_owned),
            summary: summary.map(str::to_owned),
            told,
            ..Report::of(self.outcome.clone())
        }
    }

    /// The note as a summary, where it is done.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.note.as_deref().filter(|_| self.outcome == Outcome::Processed)
    }

    /// The note as a reason, where it is not.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.note.as_deref().filter(|_| self.outcome != Outcome::Processed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_summaries_or_reasons() {
        let done = Decision::processed("paid");
        assert_eq!((done.summary(), done.detail()), (Some("paid"), None));
        let not = Decision::retry("no stock");
        assert_eq!((not.summary(), not.detail()), (None, Some("no stock")));
        assert_eq!(Decision::processed("").note, None);
    }

    #[test]
    fn what_is_past_is_snoozed_for_no_time() {
        let long_ago = Timestamp::from_second(0).unwrap();
        let outcome = Decision::snooze_until(long_ago, "").outcome;
        assert_eq!(outcome, Outcome::Snooze { after: Duration::ZERO });
    }
}
