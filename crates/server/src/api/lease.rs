//! Leases: as workers are told of them, and those nobody was told of yet.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oncebox::delivery::{Claimed, Ending, Lease, Next};
use oncebox::limits::ASIDE_RETRY;
use oncebox::store::{Finish, Store};
use tracing::debug;

/// A lease as a worker names it. It carries when it was given, so that whichever node hears of
/// the end can tell how long the attempt took; nothing is decided by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) lease: Lease,
    given_at: i64,
}

impl Ticket {
    pub(super) fn new(lease: Lease, now: Timestamp) -> Self {
        Self { lease, given_at: now.as_millisecond() }
    }

    /// How long ago it was given.
    pub(super) fn age(self, now: Timestamp) -> Duration {
        let age = now.as_millisecond().saturating_sub(self.given_at);
        Duration::from_millis(u64::try_from(age).unwrap_or(0)).min(LONGEST_TOOK)
    }
}

/// A ticket that says more than this is made up.
const LONGEST_TOOK: Duration = Duration::from_secs(7 * 86_400);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.lease, self.given_at)
    }
}

impl FromStr for Ticket {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (lease, given_at) = text.split_once('.').ok_or(())?;
        let read = |text: &str| text.parse::<i64>().map_err(drop);
        Ok(Self { lease: Lease(read(lease)?), given_at: read(given_at)? })
    }
}

/// Leases that their worker was not told of yet. Those that are dropped go back as if they had
/// not been claimed: whoever hung up while they were fetched must not cost them an attempt.
pub(super) struct Untold {
    store: Arc<dyn Store>,
    pub(super) claimed: Vec<Claimed>,
}

impl Untold {
    pub(super) fn new(store: Arc<dyn Store>, claimed: Vec<Claimed>) -> Self {
        Self { store, claimed }
    }

    /// Keeps the first of them.
    pub(super) fn truncate(&mut self, most: usize) {
        let rest = self.claimed.split_off(most.min(self.claimed.len()));
        drop(Self::new(self.store.clone(), rest));
    }

    /// The worker is told of them now.
    pub(super) fn told(mut self) -> Vec<Claimed> {
        std::mem::take(&mut self.claimed)
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if claimed.is_empty() {
            return;
        }
        let store = self.store.clone();
        runtime.spawn(async move {
            let endings = claimed.iter().map(|claimed| ending(claimed, Next::Return, None));
            give_back(&*store, endings.collect()).await;
        });
    }
}

/// Ends attempts that no worker has begun, those last for which something is locked that they need.
pub(super) async fn give_back(store: &dyn Store, mut endings: Vec<Ending>) {
    let mut pause = ASIDE_RETRY.0;
    while !endings.is_empty() && pause <= 2 * ASIDE_RETRY.1 {
        match store.finish(endings.clone()).await {
            Ok(each) => {
                let mut each = each.into_iter();
                endings.retain(|_| each.next() == Some(Finish::Locked));
            }
            Err(error) => return debug!(%error, "leases could not be returned; they will run out"),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// The end of an attempt that no worker has seen.
pub(super) fn ending(claimed: &Claimed, next: Next, detail: Option<&str>) -> Ending {
    Ending {
        delivery: claimed.delivery,
        lease: claimed.lease,
        next,
        took: Duration::ZERO,
        status: None,
        detail: detail.map(str::to_owned),
        summary: None,
        guarded: claimed.guarded,
    }
}

#[cfg(test)]
mod tests {
    use oncebox::delivery::State;
    use oncebox::route::RouteRules;
    use oncebox_testkit::store::Bed;

    use super::*;

    /// A worker that hung up while its claim was made costs the delivery nothing.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_nobody_was_told_of_goes_back() {
        let bed = Bed::sqlite().await;
        let route = bed.route("billing", RouteRules::default()).await;
        for event in ["evt_1", "evt_2"] {
            bed.due(event, &[route]).await;
        }
        let claimed = bed.claim(&route, 2).await.claimed;
        let (first, second) = (claimed[0].delivery, claimed[1].delivery);
        let mut due = bed.store.due();
        due.mark_unchanged();
        let mut untold = Untold::new(bed.store.clone(), claimed);
        untold.truncate(1);
        due.changed().await.unwrap();
        let row = bed.delivery(second).await;
        assert_eq!((row.state, row.counts.attempts), (State::Received, 0));

        assert_eq!(untold.told().len(), 1);
        let row = bed.delivery(first).await;
        assert_eq!((row.state, row.counts.attempts), (State::Processing, 1));
    }

    #[test]
    fn tickets_read_as_they_are_written() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let ticket = Ticket::new(Lease(7 << 20 | 3), at(1000));
        assert_eq!(ticket.to_string().parse(), Ok(ticket));
        assert_eq!(ticket.age(at(1002)), Duration::from_secs(2));
        assert_eq!(ticket.age(at(900)), Duration::ZERO);
        let made_up: Ticket = "1.-9223372036854775808".parse().unwrap();
        assert_eq!(made_up.age(at(1000)), LONGEST_TOOK);
        for text in ["", "1", "1.", ".1", "a.b", "1.2.3", "99999999999999999999.1"] {
            assert_eq!(text.parse::<Ticket>(), Err(()), "{text}");
        }
    }
}
