//! Replays: durable jobs that open deliveries again.
//!
//! A job is a row with a filter and a cursor. Whoever drives it, the command that made it or a
//! server after that command died, takes a lease on the row and does one bounded step after the
//! other; each step reopens a page of deliveries and moves the cursor in one transaction, so a
//! crash repeats nothing and leaves nothing out.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::delivery::{DeliveryId, Lease, State};
use crate::pattern;
use crate::receipt::{ReceiptId, ReceiptMint, RouteNo, SourceNo};
use crate::store::Act;

mod drive;
mod plan;

pub use drive::{Driver, Ended, Replays, Turn};
pub use plan::{Fate, Plan, Planned, RoutePlan, plan, plan_each};

/// The id of a replay job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplayId(pub uuid::Uuid);

impl fmt::Display for ReplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ReplayId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A replay job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Its id.
    pub id: ReplayId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub who: String,
    /// Why, where they said.
    pub why: Option<String>,
    /// What it is about.
    pub filter: ReplayFilter,
    /// How it treats what it finds.
    pub how: How,
    /// Deliveries a second at most.
    pub rate: Option<u32>,
    /// How far it is.
    pub phase: Phase,
    /// Deliveries it was about when it was planned.
    pub planned: u64,
    /// Deliveries opened again.
    pub opened: u64,
    /// Deliveries left as they were: already open, processed without force, or gone.
    pub passed: u64,
    /// The last delivery it has dealt with.
    pub cursor: Option<DeliveryId>,
    /// The lease it is driven under, once somebody took it.
    pub lease: Lease,
}

impl Replay {
    /// A job that has not begun, without a limit to its rate.
    pub fn new(filter: ReplayFilter, how: How, planned: u64, act: &Act) -> Self {
        Self {
            id: ReplayId(ReceiptMint::new().mint(act.at).as_uuid()),
            created_at: act.at,
            who: act.who.clone(),
            why: act.why.clone(),
            filter,
            how,
            rate: None,
            phase: Phase::Running,
            planned,
            opened: 0,
            passed: 0,
            cursor: None,
            lease: Lease(0),
        }
    }
}

/// Which deliveries a replay is about. Every part that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayFilter {
    /// Of these receipts; any, if empty.
    pub receipts: Vec<ReceiptId>,
    /// Of these routes; any the receipts were taken by, if empty.
    pub routes: Vec<RouteNo>,
    /// Of this source. Outbox messages are meant only where receipts, routes or a source are
    /// named.
    pub source: Option<String>,
    /// Of this type; `*` stands for any text.
    pub event_type: Option<String>,
    /// Received at or after this time.
    pub since: Option<Timestamp>,
    /// Received before this time.
    pub until: Option<Timestamp>,
    /// In this state.
    pub state: Option<State>,
    /// Also what is held as twin or conflict. What is named by its receipt always is.
    pub odd: bool,
    /// Only receipts that no route took. Goes with `fill`.
    pub unrouted: bool,
    /// Also receipts that the routes never took, where one of these takes them: fills a route
    /// that was added later. None, if empty.
    pub fill: Vec<Fill>,
}

/// Which events a route takes that is filled, as its configuration says when the job is made. The
/// job keeps it, so that whoever goes on with it fills the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The route.
    pub route: RouteNo,
    /// A source it takes events from.
    pub source: SourceNo,
    /// The type of those events; `*` stands for any text.
    pub event_type: String,
}

impl Fill {
    /// A list as text, to be stored: one line each.
    pub fn encode(list: &[Self]) -> String {
        let line = |fill: &Self| {
            let event_type = fill.event_type.replace('\\', "\\\\").replace('\n', "\\n");
            format!("{} {} {event_type}\n", fill.route.0, fill.source.0)
        };
        list.iter().map(line).collect()
    }

    /// The list a text stands for; `None` if [`encode`](Self::encode) did not write it.
    pub fn decode(text: &str) -> Option<Vec<Self>> {
        text.lines().map(Self::decode_line).collect()
    }

    fn decode_line(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let route = RouteNo(parts.next()?.parse().ok()?);
        let source = SourceNo(parts.next()?.parse().ok()?);
        let mut event_type = String::new();
        let mut characters = parts.next()?.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.next()? == 'n' => event_type.push('\n'),
                other => event_type.push(other),
            }
        }
        Some(Self { route, source, event_type })
    }

    fn takes(&self, route: RouteNo, source: SourceNo, event_type: &str) -> bool {
        self.route == route
            && self.source == source
            && pattern::matches(&self.event_type, event_type)
    }
}

impl ReplayFilter {
    /// Whether it may be about outbox messages. Whoever names no receipt, route or source means
    /// what was received.
    pub fn means_messages(&self) -> bool {
        !self.receipts.is_empty() || !self.routes.is_empty() || self.source.is_some()
    }

    /// Whether it is about what is held as twin or conflict.
    pub fn means_odd(&self) -> bool {
        self.odd || !self.receipts.is_empty()
    }

    /// Whether a route that never took an event takes it now.
    pub fn takes(&self, route: RouteNo, source: SourceNo, event_type: &str) -> bool {
        self.fill.iter().any(|fill| fill.takes(route, source, event_type))
    }
}

/// How a replay treats what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Whether what was processed is run again.
    pub force: bool,
    /// Whether the guards against stale and repeated events are passed.
    pub ignore_stale: bool,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Under way, or waiting for somebody to drive it.
    Running,
    /// Through.
    Done,
    /// Stopped by an operator.
    Cancelled,
}

impl Phase {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// The phase a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Cancelled].into_iter().find(|p| p.as_str() == word)
    }
}

/// One step of a job, as the store is told.
#[derive(Clone, Debug)]
pub struct ReplayStep {
    /// The job.
    pub id: ReplayId,
    /// The lease it is driven under.
    pub lease: Lease,
    /// Deliveries to open, with whether their route never took the receipt.
    pub open: Vec<(DeliveryId, bool)>,
    /// Further deliveries of this page, which are left alone. The store adds those it cannot open.
    pub passed: u64,
    /// Where the next page starts.
    pub cursor: Option<DeliveryId>,
    /// Whether this was the last.
    pub done: bool,
    /// How it treats what it finds.
    pub how: How,
}

/// What became of a delivery that was to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopened {
    /// It is due now, with a fresh budget of attempts.
    Opened,
    /// It was left as it was.
    Left(State),
    /// Its receipt has expired.
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_a_route_reads_as_it_was_written() {
        let fill = |route, source, event_type: &str| Fill {
            route: RouteNo(route),
            source: SourceNo(source),
            event_type: event_type.to_owned(),
        };
        let list = vec![fill(1, 2, "invoice.*"), fill(3, 4, ""), fill(5, 6, "a b\\n\n\\")];
        assert_eq!(Fill::decode(&Fill::encode(&list)), Some(list));
        assert_eq!(Fill::decode(""), Some(Vec::new()));
        assert_eq!(Fill::decode("1 x *"), None);
        assert_eq!(Fill::decode("1 2"), None);
    }

    #[test]
    fn a_filled_route_takes_what_its_patterns_say() {
        let fill = |source, event_type: &str| Fill {
            route: RouteNo(1),
            source: SourceNo(source),
            event_type: event_type.to_owned(),
        };
        let filter = ReplayFilter {
            fill: vec![fill(1, "invoice.*"), fill(1, "customer.*"), fill(2, "*")],
            ..ReplayFilter::default()
        };
        assert!(filter.takes(RouteNo(1), SourceNo(1), "customer.created"));
        assert!(filter.takes(RouteNo(1), SourceNo(2), "charge.failed"));
        assert!(!filter.takes(RouteNo(1), SourceNo(1), "charge.failed"));
        assert!(!filter.takes(RouteNo(2), SourceNo(2), "charge.failed"));
    }
}
