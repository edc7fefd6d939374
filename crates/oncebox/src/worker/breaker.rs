//! The circuit breaker of a route.

use std::time::Duration;

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerView {
    /// Everything.
    Closed,
    /// Nothing, for this long.
    Open(Duration),
    /// One delivery, to see.
    HalfOpen,
    /// This many at a time: the destination has only just come back.
    Ramping(usize),
}

impl BreakerView {
    /// A stable word for lists and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open(_) => "open",
            Self::HalfOpen => "half-open",
            Self::Ramping(_) => "ramping",
        }
    }

    /// Whether deliveries of the route wait because its destination is unwell.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open(_) | Self::HalfOpen)
    }
}
