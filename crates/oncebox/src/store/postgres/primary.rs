//! One primary: a node never goes back to an older timeline, nor to another cluster.
//!
//! After a failover the old primary may come back and take writes. A connection to it works, and
//! whatever it records is lost when the old primary is rebuilt. So each connection tells the
//! cluster and the timeline of its server, and the node keeps to the highest timeline it has seen.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tracing::{error, warn};

use super::connect::with_causes;

/// The cluster and the timeline of a server that can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The system identifier: all copies of a cluster have the same.
    pub(super) system: i64,
    /// Raised by each promotion.
    pub(super) timeline: u32,
}

impl fmt::Display for Place {
    /// As it is shown to operators and named in the audit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.system.cast_unsigned(), self.timeline)
    }
}

/// What a server says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It can be written to.
    Primary(Place),
    /// It is in recovery: of which cluster is known, and it has no vote about the timeline.
    Standby(i64),
    /// It does not let this role ask, as some managed servers.
    Untold,
}

impl Standing {
    /// Asks the server of a connection.
    pub(super) async fn of(client: &Client) -> Result<Self, String> {
        let row = match client.query_one(include_str!("sql/find_place.sql"), &[]).await {
            Ok(row) => row,
            Err(error) if is_refusal(error.code()) => return Ok(Self::Untold),
            Err(error) => return Err(with_causes(&error)),
        };
        let system: i64 = row.get(0);
        let Some(digits) = row.get::<_, Option<&str>>(1) else {
            return Ok(Self::Standby(system));
        };
        let timeline = u32::from_str_radix(digits, 16)
            .map_err(|error| format!("the timeline {digits:?} cannot be read: {error}"))?;
        Ok(Self::Primary(Place { system, timeline }))
    }
}

/// Whether a server does not have the functions, or not for this role.
fn is_refusal(code: Option<&SqlState>) -> bool {
    [
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::FEATURE_NOT_SUPPORTED,
    ]
    .iter()
    .any(|refusal| code == Some(refusal))
}

/// What this process knows of the primary, and the connections that depend on it.
pub(super) struct Primary {
    /// Whether servers are compared: the URL names several hosts, and they tell.
    compares: AtomicBool,
    state: Mutex<State>,
    /// How often another primary was taken.
    changes: watch::Sender<u64>,
    /// Acknowledged receipts that a new primary did not have.
    pub(super) missing: AtomicU64,
}

#[derive(Default)]
struct State {
    known: Option<Place>,
    /// Open connections to a primary, and how to close each.
    open: Vec<(Place, AbortHandle)>,
    /// The last place refused, so that the log names it once.
    refused: Option<Place>,
}

impl Primary {
    pub(super) fn new(compares: bool) -> Self {
        Self {
            compares: AtomicBool::new(compares),
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            missing: AtomicU64::new(0),
        }
    }

    pub(super) fn compares(&self) -> bool {
        self.compares.load(Ordering::Relaxed)
    }

    /// Compares servers no more: one of them does not tell.
    pub(super) fn compare_no_more(&self) {
        if self.compares.swap(false, Ordering::Relaxed) {
            warn!(
                "PostgreSQL does not let this role call pg_control_system and pg_walfile_name: \
                 an old primary that returns is not told apart"
            );
        }
    }

    /// Changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How often another primary was taken.
    pub(super) fn changed(&self) -> u64 {
        *self.changes.borrow()
    }

    /// The primary as far as known.
    pub(super) fn known(&self) -> Option<Place> {
        self.lock().known
    }

    /// Lets a new connection be used, unless its server is an old primary or of another cluster.
    /// It is closed as soon as a higher timeline is seen anywhere.
    pub(super) fn admit(&self, standing: Standing, driver: AbortHandle) -> Result<(), String> {
        match standing {
            Standing::Primary(place) => {
                let mut state = self.lock();
                self.compare(&mut state, place)?;
                state.open.retain(|(_, driver)| !driver.is_finished());
                state.open.push((place, driver));
                Ok(())
            }
            Standing::Standby(system) => match self.known() {
                Some(known) if known.system != system => Err(other_cluster(system, known)),
                _ => Ok(()),
            },
            Standing::Untold if self.compares() => {
                Err("it does not tell its timeline, though others do".into())
            }
            Standing::Untold => Ok(()),
        }
    }

    /// Learns that there is a primary at this place. `Err` says why it is refused.
    pub(super) fn learn(&self, place: Place) -> Result<(), String> {
        self.compare(&mut self.lock(), place)
    }

    /// Takes a primary that would be refused, because an operator said so.
    pub(super) fn adopt(&self, place: Place) {
        let mut state = self.lock();
        if let Some(known) = state.known
            && known != place
        {
            self.take(&mut state, place, known, "an operator adopted it");
        }
    }

    fn compare(&self, state: &mut State, place: Place) -> Result<(), String> {
        let Some(known) = state.known else {
            state.known = Some(place);
            return Ok(());
        };
        let refusal = if place.system != known.system {
            other_cluster(place.system, known)
        } else if place.timeline > known.timeline {
            self.take(state, place, known, "it is on a higher timeline");
            return Ok(());
        } else if place.timeline < known.timeline {
            let (old, new) = (place.timeline, known.timeline);
            format!("it is an old primary on timeline {old}; the primary is on timeline {new}")
        } else {
            return Ok(());
        };
        if state.refused.replace(place) != Some(place) {
            error!(
                reason = refusal,
                "refused a PostgreSQL that takes writes; restart, or run `oncebox store adopt`, \
                 if it is the right one"
            );
        }
        Err(refusal)
    }

    /// Goes over to another primary. What is under way on connections to others has an unknown
    /// outcome.
    fn take(&self, state: &mut State, place: Place, known: Place, why: &str) {
        let before = state.open.len();
        state.open.retain(|(at, driver)| {
            if *at != place {
                driver.abort();
            }
            *at == place
        });
        let closed = before - state.open.len();
        state.known = Some(place);
        state.refused = None;
        self.changes.send_modify(|changes| *changes += 1);
        warn!(from = %known, to = %place, closed, why, "changed to another PostgreSQL primary");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while comparing")
    }
}

fn other_cluster(system: i64, known: Place) -> String {
    let (system, known) = (system.cast_unsigned(), known.system.cast_unsigned());
    format!("it belongs to another cluster: its system identifier is {system}, not {known}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(system: i64, timeline: u32) -> Place {
        Place { system, timeline }
    }

    #[tokio::test]
    async fn a_higher_timeline_closes_connections_to_lower_ones() {
        let primary = Primary::new(true);
        let old = tokio::spawn(std::future::pending::<()>());
        primary.admit(Standing::Primary(place(7, 1)), old.abort_handle()).unwrap();
        let new = tokio::spawn(std::future::pending::<()>());
        primary.admit(Standing::Primary(place(7, 2)), new.abort_handle()).unwrap();
        assert!(old.await.unwrap_err().is_cancelled());
        assert!(!new.is_finished());
        assert_eq!((primary.known(), primary.changed()), (Some(place(7, 2)), 1));
    }

    #[tokio::test]
    async fn lower_timelines_and_other_clusters_are_refused_until_adopted() {
        let primary = Primary::new(true);
        primary.learn(place(7, 3)).unwrap();
        let driver = || tokio::spawn(std::future::pending::<()>()).abort_handle();
        for refused in [place(7, 2), place(8, 3), place(8, 9)] {
            assert!(primary.admit(Standing::Primary(refused), driver()).is_err(), "{refused}");
        }
        assert!(primary.admit(Standing::Standby(8), driver()).is_err());
        assert!(primary.admit(Standing::Standby(7), driver()).is_ok());
        assert!(primary.admit(Standing::Untold, driver()).is_err());
        primary.adopt(place(8, 1));
        assert!(primary.admit(Standing::Primary(place(8, 1)), driver()).is_ok());
        assert!(primary.admit(Standing::Primary(place(7, 3)), driver()).is_err());
    }
}
