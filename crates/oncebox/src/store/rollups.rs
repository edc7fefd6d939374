//! What stores count while they write, by minutes and hours.

use jiff::Timestamp;

use crate::delivery::{Reason, State};
use crate::limits;
use crate::receipt::RouteNo;

/// How long the stretches are that a rollup counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A minute each, kept for [`limits::ROLLUP_MINUTES_KEPT`].
    Minute,
    /// An hour each, kept for [`limits::ROLLUP_HOURS_KEPT`].
    Hour,
}

impl Span {
    /// Its length in minutes, as it is stored.
    pub(super) fn minutes(self) -> i16 {
        match self {
            Self::Minute => 1,
            Self::Hour => 60,
        }
    }
}

/// What came in during one stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalCount {
    /// When the stretch began.
    pub start: Timestamp,
    /// The name of the source.
    pub source: String,
    /// `accepted`, `duplicate`, `conflict` or `twin`.
    pub outcome: String,
    /// The type; empty for those beyond
    /// [`limits::ROLLUP_TYPES`].
    pub event_type: String,
    /// How many.
    pub count: u64,
}

/// How many deliveries of a route came into a state during one stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFlow {
    /// When the stretch began.
    pub start: Timestamp,
    /// The route.
    pub route: RouteNo,
    /// The state they came into.
    pub state: State,
    /// Why, where the state has a reason.
    pub reason: Option<Reason>,
    /// How many.
    pub count: u64,
}

/// The minute of a time, as minutes are stored: counted from 1970.
pub(super) fn minute_of(at: Timestamp) -> i32 {
    i32::try_from(at.as_second().div_euclid(60)).unwrap_or(i32::MAX)
}

/// When a stored minute began.
pub(super) fn minute_start(minute: i32) -> Timestamp {
    Timestamp::from_second(i64::from(minute) * 60).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The first minute, and the first minute of an hour, that rollups are kept of.
pub(super) fn oldest_kept(now: Timestamp) -> [i32; 2] {
    let minutes = |kept: std::time::Duration| i32::try_from(kept.as_secs() / 60).unwrap_or(0);
    let now = minute_of(now);
    [limits::ROLLUP_MINUTES_KEPT, limits::ROLLUP_HOURS_KEPT]
        .map(|kept| now.saturating_sub(minutes(kept)))
}
