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

/// Decides where a delivery goes. `counts` include the attempt that ended and the time it took;
/// `chance` is between 0 and 1 and spreads retries over half the pause, so that what failed
/// together does not come back together.
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
        Outcome::Retry { .. } if rules.is_spent(counts.spent(), counts.tried) => Next::Dead,
        Outcome::Retry { after } => {
            let pause = rules.jittered_pause(counts.spent(), counts.tried, chance);
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

    fn rules() -> RouteRules {
        RouteRules { max_attempts: 3, max_snoozes: 2, base: SECOND, ..RouteRules::default() }
    }

    fn after(attempts: u32, outcome: &Outcome) -> Next {
        next(&rules(), Counts { attempts, ..Counts::default() }, outcome, 1.0)
    }

    #[test]
    fn pauses_grow_until_the_attempts_are_spent() {
        let failed = Outcome::Retry { after: None };
        assert_eq!(after(1, &failed), Next::Retry(SECOND));
        assert_eq!(after(2, &failed), Next::Retry(4 * SECOND));
        assert_eq!(after(3, &failed), Next::Dead);
    }

    /// Attempts that take no time, with the longest pauses, until the delivery is dead.
    fn play(rules: &RouteRules) -> Vec<u64> {
        let (mut counts, mut pauses) = (Counts::default(), Vec::new());
        loop {
            counts.attempts += 1;
            match next(rules, counts, &Outcome::Retry { after: None }, 1.0) {
                Next::Retry(pause) => {
                    pauses.push(pause.as_secs());
                    counts = counts.after(pause);
                }
                _ => return pauses,
            }
        }
    }

    #[test]
    fn a_budget_ends_with_an_attempt_and_never_before_the_fifth() {
        let budget = |seconds| RouteRules {
            max_attempts: 100,
            budget: Some(Duration::from_secs(seconds)),
            cap: 60 * SECOND,
            ..rules()
        };
        assert_eq!(play(&budget(100)), [1, 4, 16, 60, 19]);
        assert_eq!(play(&budget(1)), [1, 4, 16, 60]);
        let consumer_asks = Outcome::Retry { after: Some(900 * SECOND) };
        let counts = Counts { attempts: 5, tried: 99 * SECOND, ..Counts::default() };
        assert_eq!(next(&budget(100), counts, &consumer_asks, 0.0), Next::Retry(900 * SECOND));
    }

    #[test]
    fn whoever_is_in_the_way_spends_snoozes_and_then_attempts() {
        let rules = RouteRules { max_attempts: 4, ..rules() };
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
        let rules = rules();
        let snooze = Outcome::Snooze { after: SECOND };
        let counts = |attempts, snoozes| Counts { attempts, snoozes, ..Counts::default() };
        assert_eq!(next(&rules, counts(2, 1), &snooze, 1.0), Next::Snooze(SECOND));
        assert_eq!(next(&rules, counts(3, 2), &snooze, 1.0), Next::Dead);
        let failed = Outcome::Retry { after: None };
        assert_eq!(next(&rules, counts(4, 2), &failed, 1.0), Next::Retry(4 * SECOND));
        assert_eq!(next(&rules, counts(5, 2), &failed, 1.0), Next::Dead);
    }

    #[test]
    fn chance_spreads_the_pause_from_half_to_all_of_it() {
        let counts = Counts { attempts: 2, ..Counts::default() };
        let failed = Outcome::Retry { after: None };
        assert_eq!(next(&rules(), counts, &failed, 0.0), Next::Retry(2 * SECOND));
        assert_eq!(next(&rules(), counts, &failed, 0.5), Next::Retry(3 * SECOND));
        assert_eq!(next(&rules(), counts, &failed, 1.0), Next::Retry(4 * SECOND));
    }

    #[test]
    fn what_was_not_begun_goes_back() {
        assert_eq!(after(3, &Outcome::Unstarted), Next::Return);
        assert_eq!(after(1, &Outcome::Dead), Next::Dead);
    }
}
