//! Retries as a person reads them: after which pauses, and for how long in all.

use std::fmt;
use std::time::Duration;

use super::RouteRules;

/// Pauses that are told one by one.
const TOLD: usize = 12;

/// When a delivery that keeps failing is tried again.
///
/// ```
/// use oncebox::route::RouteRules;
///
/// let schedule = RouteRules::default().schedule();
/// assert_eq!(
///     schedule.to_string(),
///     "after 5s, 20s, 1m 20s, 5m 20s, 21m 20s, 1h 25m, 5h 41m, then every 12h: 15 attempts in \
///      about 2d 20h"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The pauses, each at its longest: it is drawn between half and all of that.
    pub pauses: Vec<Duration>,
    /// How many attempts there are, the first included.
    pub attempts: u32,
    /// How long they last if each pause is half as long as it may be.
    pub shortest: Duration,
    /// How long they last on average.
    pub about: Duration,
    /// How long they last if each pause is as long as it may be.
    pub longest: Duration,
}

impl Schedule {
    pub(super) fn of(rules: &RouteRules) -> Self {
        let (attempts, about) = rules.play(0.5);
        Self {
            pauses: (1..attempts).map(|attempt| rules.pause(attempt)).collect(),
            attempts,
            shortest: rules.play(0.0).1,
            about,
            longest: rules.play(1.0).1,
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(last) = self.pauses.last() else { return f.write_str("never: 1 attempt") };
        let first_of_last = self.pauses.iter().position(|pause| pause == last).unwrap_or(0);
        let repeated = self.pauses.len() - first_of_last > 1;
        let single = if repeated { first_of_last } else { self.pauses.len() };
        f.write_str("after ")?;
        for (number, pause) in self.pauses[..single].iter().take(TOLD).enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}", in_words(*pause))?;
        }
        match (single, repeated) {
            (0, _) => write!(f, "{} each", in_words(*last))?,
            (_, true) => write!(f, ", then every {}", in_words(*last))?,
            (_, false) => {}
        }
        write!(f, ": {} attempts in about {}", self.attempts, in_words(self.about))
    }
}

/// A length of time in its two largest units, such as `5h 41m`.
pub fn in_words(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_millis());
    }
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let first = units.iter().position(|(size, _)| seconds >= *size).unwrap_or(units.len() - 1);
    let mut rest = seconds;
    let mut words = Vec::new();
    for (size, unit) in units.iter().skip(first).take(2) {
        if rest >= *size {
            words.push(format!("{}{unit}", rest / size));
        }
        rest %= size;
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn rules() -> RouteRules {
        RouteRules::default()
    }

    #[test]
    fn the_defaults_last_about_three_days() {
        let schedule = rules().schedule();
        assert_eq!(schedule.attempts, 15);
        assert!(schedule.pauses[..2].iter().all(|pause| *pause <= Duration::from_secs(20)));
        assert!((60 * HOUR..84 * HOUR).contains(&schedule.about), "{:?}", schedule.about);
        assert!(schedule.shortest > 45 * HOUR && schedule.longest < 96 * HOUR);
    }

    #[test]
    fn a_budget_ends_it_when_it_is_over_and_not_before_the_fifth_attempt() {
        let week = 7 * 24 * HOUR;
        let (base, cap) = (rules().base, rules().cap);
        let max_attempts = RouteRules::attempts_within(base, cap, week);
        let of_a_week = RouteRules { budget: Some(week), max_attempts, ..rules() }.schedule();
        assert_eq!((of_a_week.shortest, of_a_week.longest), (week, week));
        let short = RouteRules { budget: Some(Duration::from_secs(1)), ..rules() }.schedule();
        assert_eq!(short.attempts, 5);
    }

    #[test]
    fn schedules_are_told_in_words() {
        let told = |max_attempts, base, cap| {
            let (base, cap) = (Duration::from_secs(base), Duration::from_secs(cap));
            RouteRules { max_attempts, base, cap, ..rules() }.schedule().to_string()
        };
        assert_eq!(told(1, 1, 1), "never: 1 attempt");
        assert_eq!(told(3, 1, 3600), "after 1s, 4s: 3 attempts in about 3s");
        assert_eq!(told(4, 60, 60), "after 1m each: 4 attempts in about 2m 15s");
        assert_eq!(in_words(Duration::from_millis(250)), "250ms");
        assert_eq!(in_words(Duration::from_secs(86_400 + 59)), "1d");
    }
}
