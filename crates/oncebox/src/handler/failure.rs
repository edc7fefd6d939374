//! Why a handler did not get through an event.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::Decision;
use crate::delivery::{Counts, Outcome};
use crate::effect::{BadKey, EffectName};
use crate::limits::BUSY_PAUSE;
use crate::store::StoreError;
use crate::worker::{Health, Report, Told, chance};

/// Why a handler did not get through an event. Whatever it wrote is rolled back.
///
/// Every error becomes one by `?`, and is taken to be transient: the event is tried again, with
/// growing pauses, until the attempts of its route are spent. What can never succeed says so.
///
/// Where somebody else was only at the same thing, as when a lock was not to be had in time, no
/// attempt is spent: the event is snoozed, for longer each time, until the route's snoozes are
/// spent.
///
/// Where what the handler needs is down for every event, as a service that it calls, it says so by
/// [`unavailable`](Self::unavailable): when most events fail so, the route is left alone for a
/// while. Time-outs count without being said; any other error is taken to be of this event alone.
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
    unavailable: bool,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// What follows from a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It is tried again.
    Retry { after: Option<Duration> },
    /// It is tried again, and nothing was wrong.
    Snooze { after: Duration },
    /// Somebody else is at the same thing: nothing is wrong, and it is tried again.
    Busy,
    /// Somebody has begun an effect and not said what came of it.
    Open(Box<Open>),
    /// It is given up.
    Dead,
    /// Somebody else has the delivery.
    LeaseLost,
    /// The delivery is held for an effect whose outcome is unknown.
    Parked,
}

/// An effect that somebody has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// How the handler named it.
    pub(crate) name: EffectName,
    /// Its key in the ledger.
    pub(crate) key: String,
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

    /// Nothing is wrong: come back after this long. Does not count as a failed attempt. To keep
    /// what was written, return [`Decision::snooze`](super::Decision::snooze).
    pub fn snooze(after: Duration, why: impl Into<String>) -> Self {
        Self::new(Course::Snooze { after }, why)
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

    /// Says that not this event is the reason, but something that every event needs, such as a
    /// service that is down.
    ///
    /// ```
    /// # use oncebox::handler::Failure;
    /// # fn charge() -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example() -> Result<(), Failure> {
    /// charge().map_err(|error| Failure::from(error).unavailable())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn unavailable(self) -> Self {
        Self { unavailable: true, ..self }
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
        let text = "the lease of the delivery is not good any more: another worker has it, or may; \
                    nothing of this attempt is kept, so return this error and leave it to that one";
        Self::new(Course::LeaseLost, text)
    }

    pub(crate) fn parked(key: &str) -> Self {
        let text = format!(
            "whether `{key}` happened is not known; find out, then `oncebox effects settle {key}` \
             with --done or --not-done"
        );
        Self::new(Course::Parked, text)
    }

    /// A stage was begun and did not come to its end, so nobody knows how much of it is written.
    pub(crate) fn cut_stage() -> Self {
        Self::retry(
            "a stage of `run_step` was cut short, and nobody knows how much of it was written; let \
             it come to its end: a limit of time, or the catching of a panic, goes into the stage",
        )
    }

    /// Somebody else is at the same thing.
    pub(crate) fn busy(why: impl Into<String>) -> Self {
        Self::new(Course::Busy, why)
    }

    pub(crate) fn open(name: &EffectName, key: &str) -> Self {
        let text = format!(
            "somebody has begun `{key}` and not said what came of it; it is tried again later, \
             and `oncebox effects settle {key}` ends the wait"
        );
        Self::new(Course::Open(Box::new(Open { name: name.clone(), key: key.to_owned() })), text)
    }

    /// The effect that is in the way, where somebody has begun one.
    pub(crate) fn is_open(&self) -> Option<&Open> {
        match &self.course {
            Course::Open(open) => Some(open),
            _ => None,
        }
    }

    /// A text that cannot be a key, or the name of a step.
    pub(crate) fn bad_key(what: &str, bad: BadKey) -> Self {
        Self::retry(format!("{what} cannot be used: {bad}"))
    }

    /// What a handler decides that keeps what it wrote before this. Not where it cannot decide: its
    /// lease is lost, its delivery has to be held, or nothing can be kept any more.
    pub(crate) fn decision(self, counts: Counts) -> Result<Decision, Self> {
        if self.fatal().is_some() {
            return Err(self);
        }
        match self.course {
            Course::Retry { after: None } => Ok(Decision::retry(self.text)),
            Course::Retry { after: Some(after) } => Ok(Decision::retry_after(after, self.text)),
            Course::Snooze { after } => Ok(Decision::snooze(after, self.text)),
            Course::Busy => Ok(Decision::busy(pause(counts.snoozes), self.text)),
            Course::Dead => Ok(Decision::dead(self.text)),
            Course::Open(_) | Course::LeaseLost | Course::Parked => Err(self),
        }
    }

    /// Why the store must not be used again, if a verb came upon that. What a handler says of its
    /// own statements may be about another database.
    pub(crate) fn fatal(&self) -> Option<&str> {
        match self.cause.as_deref()?.downcast_ref()? {
            StoreError::Fatal(reason) => Some(reason),
            _ => None,
        }
    }

    /// What the worker is told of it, for a delivery that was tried that often.
    pub(crate) fn report(&self, counts: Counts) -> Report {
        let (outcome, told) = match self.course {
            Course::Retry { after } => (Outcome::Retry { after }, Told::NotYet),
            Course::Snooze { after } => (Outcome::Snooze { after }, Told::NotYet),
            Course::Busy | Course::Open(_) => {
                (Outcome::Busy { after: pause(counts.snoozes) }, Told::NotYet)
            }
            Course::Dead => (Outcome::Dead, Told::NotYet),
            Course::LeaseLost => (Outcome::Retry { after: None }, Told::Lost),
            Course::Parked => (Outcome::Retry { after: None }, Told::Parked),
        };
        let health = if self.unavailable { Health::Failing } else { Health::Well };
        Report { detail: Some(self.text.clone()), told, health, ..Report::of(outcome) }
    }

    fn new(course: Course, why: impl Into<String>) -> Self {
        Self { text: why.into(), course, not_done: false, unavailable: false, cause: None }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = with_causes(&error);
        let failure = if is_contention(&error) { Self::busy(text) } else { Self::retry(text) };
        let unavailable = is_time_out(&error);
        Self { unavailable, cause: Some(Box::new(error)), ..failure }
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

/// How long to stay away after having met somebody that often: between half and all of what it may
/// be.
fn pause(times: u32) -> Duration {
    let (first, longest) = BUSY_PAUSE;
    let pause = first.saturating_mul(1 << times.min(20)).min(longest);
    pause.mul_f64(0.5 + chance() / 2.0)
}

/// Whether an error, or one that caused it, says no more than that somebody else was first: a lock
/// that was not to be had in time, a deadlock, a serialisation failure.
fn is_contention(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return error.code().is_some_and(is_lost_race);
        }
        if let Some(error) = error.downcast_ref::<rusqlite::Error>() {
            return error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        }
        match error.downcast_ref() {
            // The stores keep no more of it than its text.
            Some(StoreError::Unavailable(text)) => {
                text.contains(SqlState::LOCK_NOT_AVAILABLE.code())
                    || text.contains("database is locked")
            }
            _ => false,
        }
    })
}

/// Whether an error, or one that caused it, says that something did not answer in time.
fn is_time_out(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| {
        let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::TimedOut;
        error.is::<tokio::time::error::Elapsed>() || error.downcast_ref().is_some_and(is_late)
    })
}

fn is_lost_race(code: &SqlState) -> bool {
    *code == SqlState::LOCK_NOT_AVAILABLE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
        || code.code() == OPEN
}

/// What the functions of the schema say of an effect that somebody has begun; see the migrations.
const OPEN: &str = "OB425";

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

    fn report(failure: &Failure) -> Report {
        failure.report(Counts::default())
    }

    /// A stage that fails so must not be passed over: what would be kept cannot be.
    #[test]
    fn nothing_is_decided_once_the_store_has_failed() {
        let fatal = || Failure::from(StoreError::Fatal("a write failed".into()));
        assert_eq!(
            fatal().decision(Counts::default()).unwrap_err().fatal(),
            Some("a write failed")
        );
        let other = Failure::from(StoreError::Unavailable("later".into()));
        assert!(other.fatal().is_none() && other.decision(Counts::default()).is_ok());
    }

    #[test]
    fn failures_lead_where_they_say() {
        let said = report(&Failure::from(std::io::Error::other("the disk is gone")));
        assert_eq!(said.outcome, Outcome::Retry { after: None });
        assert_eq!(said.detail.as_deref(), Some("the disk is gone"));
        let said = report(&Failure::retry_after(Duration::from_secs(9), "later"));
        assert_eq!(said.outcome, Outcome::Retry { after: Some(Duration::from_secs(9)) });
        let said = report(&Failure::snooze(Duration::from_secs(9), "at noon"));
        assert_eq!(said.outcome, Outcome::Snooze { after: Duration::from_secs(9) });
        let said = report(&Failure::dead("never"));
        assert_eq!((said.outcome, said.told), (Outcome::Dead, Told::NotYet));
        assert_eq!(report(&Failure::lease_lost()).told, Told::Lost);
        assert_eq!(report(&Failure::parked("refund:1")).told, Told::Parked);
    }

    /// Errors of a service often wrap those of its database.
    #[derive(Debug, thiserror::Error)]
    #[error("the order could not be written")]
    struct Wrapped(#[source] rusqlite::Error);

    #[test]
    fn whoever_was_only_late_spends_no_attempt() {
        let sqlite = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let busy = || sqlite(rusqlite::ffi::SQLITE_BUSY);
        let locked = "canceling statement due to lock timeout (55P03)";
        let late: [Failure; 4] = [
            busy().into(),
            Wrapped(busy()).into(),
            StoreError::Unavailable(locked.into()).into(),
            Failure::busy("another delivery is at it"),
        ];
        for failure in late {
            let said = report(&failure);
            assert!(matches!(said.outcome, Outcome::Busy { .. }), "{failure}");
            assert_eq!(said.health, Health::Well, "{failure}");
        }
        let said = report(&sqlite(rusqlite::ffi::SQLITE_FULL).into());
        assert_eq!(said.outcome, Outcome::Retry { after: None });
    }

    /// Any error that a `?` brings may be of one event alone.
    #[test]
    fn only_what_is_said_to_be_unavailable_tells_of_the_destination() {
        let health = |failure: Failure| report(&failure).health;
        let broken = || std::io::Error::other("no such customer");
        assert_eq!(health(broken().into()), Health::Well);
        assert_eq!(health(Failure::retry("not yet")), Health::Well);
        assert_eq!(health(Failure::from(broken()).unavailable()), Health::Failing);
        assert_eq!(health(Failure::retry("the mailer is down").unavailable()), Health::Failing);
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert_eq!(health(late.into()), Health::Failing);
    }

    #[test]
    fn pauses_grow_until_they_are_long_enough() {
        let (first, longest) = BUSY_PAUSE;
        assert!((first / 2..=first).contains(&pause(0)));
        assert!((4 * first..=8 * first).contains(&pause(3)));
        assert!((longest / 2..=longest).contains(&pause(u32::MAX)));
        let all: Duration = (0..crate::limits::SNOOZES).map(pause).sum();
        assert!(all > Duration::from_secs(7 * 3600), "{all:?}");
    }
}
