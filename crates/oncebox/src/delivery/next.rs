//! After the attempt: where does the delivery go?

use std::time::Duration;

use super::Counts;
use crate::route::RouteRules;

/// What a consumer made of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Processed,
    /// The consumer has newer state already.
    Stale,
    /// Not this time; perhaps at the time the consumer names.
    Retry {
        /// The pause the consumer asks for.
        after: Option<Duration>,
    },
    /// Nothing is wrong: come back later.
    Snooze {
        /// When.
        after: Duration,
    },
    /// Somebody else is at the same thing: come back later. A snooze, until the route has had
    /// enough of those; then a failed attempt, for nothing says that it can never succeed.
    Busy {
        /// When.
        after: Duration,
    },
    /// It can never succeed.
    Dead,
    /// The attempt was not begun, as when a worker stops: it does not count.
    Unstarted,
    /// The attempt was not begun, since the stored body does not match its digest.
    Damaged,
}

/// Where a delivery goes after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Finished: done.
    Processed,
    /// Finished: skipped as stale.
    Stale,
    /// Due again after a pause; the attempt failed.
    Retry(Duration),
    /// Due again after a pause; the attempt did not fail.
    Snooze(Duration),
    /// Given up.
    Dead,
    /// Back as if it had not been claimed.
    Return,
    /// Held for a person to look at: the stored body does not match its digest.
    Damaged,
}

impl Next {
    /// The word for the attempt's end, in lists and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Stale => "stale",
            Self::Retry(_) => "retry",
            Self::Snooze(_) => "snooze",
            Self::Dead => "dead",
            Self::Return => "returned",
            Self::Damaged => "damaged",
        }
    }
}

/// Decides where a delivery goes. `counts` include the attempt that ended; `chance` is between 0
/// and 1 and spreads retries over the whole pause, so that what failed together does not come
/// back together.
pub fn next(rules: &RouteRules, counts: Counts, outcome: &Outcome, chance: f64) -> Next {
    match outcome {
        Outcome::Processed => Next::Processed,
        Outcome::Stale => Next::Stale,
        Outcome::Dead => Next::Dead,
        Outcome::Unstarted => Next::Return,
        Outcome::Damaged => Next::Damaged,
        Outcome::Snooze { .. } if counts.snoozes >= rules.max_snoozes => Next::Dead,
        Outcome::Snooze { after } => Next::Snooze((*after).min(rules.longest_wait)),
        Outcome::Busy { after } => {
            let after = *after;
            let outcome = match counts.snoozes < rules.max_snoozes {
                true => Outcome::Snooze { after },
                false => Outcome::Retry { after: Some(after) },
            };
            next(rules, counts, &outcome, chance)
        }
        Outcome::Retry { .. } if counts.spent() >= rules.max_attempts => Next::Dead,
        Outcome::Retry { after } => {
            let pause = rules.pause(counts.spent()).mul_f64(chance.clamp(0.0, 1.0));
            // A consumer that names a time knows more than we do; it cannot park an event for
            // ever, though.
            let asked = after.unwrap_or_default().min(rules.longest_wait);
            Next::Retry(pause.max(asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(attempts: u32, outcome: &Outcome) -> Next {
        let rules = RouteRules { max_attempts: 3, max_snoozes: 2, ..RouteRules::default() };
        next(&rules, Counts { attempts, ..Counts::default() }, outcome, 1.0)
    }

    #[test]
    fn pauses_double_until_the_attempts_are_spent() {
        let failed = Outcome::Retry { after: None };
        assert_eq!(after(1, &failed), Next::Retry(SECOND));
        assert_eq!(after(2, &failed), Next::Retry(2 * SECOND));
        assert_eq!(after(3, &failed), Next::Dead);
    }

    #[test]
    fn whoever_is_in_the_way_spends_snoozes_and_then_attempts() {
        let rules = RouteRules { max_attempts: 4, max_snoozes: 2, ..RouteRules::default() };
        let met = |attempts, snoozes| {
            let counts = Counts { attempts, snoozes, ..Counts::default() };
            next(&rules, counts, &Outcome::Busy { after: 9 * SECOND }, 1.0)
        };
        assert_eq!(met(1, 0), Next::Snooze(9 * SECOND));
        assert_eq!(met(2, 1), Next::Snooze(9 * SECOND));
        assert_eq!(met(3, 2), Next::Retry(9 * SECOND));
        assert_eq!(met(6, 2), Next::Dead);
    }

    #[test]
    fn the_consumer_may_ask_for_a_longer_pause_within_reason() {
        let asked = |seconds| Outcome::Retry { after: Some(Duration::from_secs(seconds)) };
        assert_eq!(after(1, &asked(30)), Next::Retry(30 * SECOND));
        assert_eq!(after(1, &asked(0)), Next::Retry(SECOND));
        let longest = RouteRules::default().longest_wait;
        assert_eq!(after(1, &asked(u64::MAX)), Next::Retry(longest));
    }

    #[test]
    fn snoozes_spend_no_attempts_and_have_an_end() {
        let rules = RouteRules { max_attempts: 3, max_snoozes: 2, ..RouteRules::default() };
        let snooze = Outcome::Snooze { after: SECOND };
        let counts = |attempts, snoozes| Counts { attempts, snoozes, ..Counts::default() };
        assert_eq!(next(&rules, counts(2, 1), &snooze, 1.0), Next::Snooze(SECOND));
        assert_eq!(next(&rules, counts(3, 2), &snooze, 1.0), Next::Dead);
        let failed = Outcome::Retry { after: None };
        assert_eq!(next(&rules, counts(4, 2), &failed, 1.0), Next::Retry(2 * SECOND));
        assert_eq!(next(&rules, counts(5, 2), &failed, 1.0), Next::Dead);
    }

    #[test]
    fn chance_spreads_the_pause_from_nothing_to_all_of_it() {
        let rules = RouteRules::default();
        let counts = Counts { attempts: 3, ..Counts::default() };
        let failed = Outcome::Retry { after: None };
        assert_eq!(next(&rules, counts, &failed, 0.0), Next::Retry(Duration::ZERO));
        assert_eq!(next(&rules, counts, &failed, 0.5), Next::Retry(2 * SECOND));
    }

    #[test]
    fn what_was_not_begun_goes_back() {
        assert_eq!(after(3, &Outcome::Unstarted), Next::Return);
        assert_eq!(after(1, &Outcome::Dead), Next::Dead);
    }
}
