//! What this worker holds leases on, and the heartbeat that keeps them good.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tracing::warn;

use super::Shared;
use crate::delivery::{Claimed, DeliveryId, Lease};
use crate::receipt::RouteNo;
use crate::store::StoreError;

/// Every lease this worker holds, from the claim until its ending is known to the store. The times
/// are of this process's steady clock, and only say when it is time to ask; whether a lease is
/// good is the store's to say.
pub(super) struct Leases {
    held: Mutex<HashMap<Key, Entry>>,
    count: watch::Sender<usize>,
}

type Key = (DeliveryId, Lease);

struct Entry {
    good_until: Instant,
    /// How long it is good for when it is extended.
    length: Duration,
    lost: bool,
    cut: Option<oneshot::Sender<Cut>>,
}

/// Why an attempt is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its lease is no longer ours.
    Lost,
    /// The worker stops, and its grace is over.
    Stopped,
    /// The worker is gone.
    Abandoned,
}

/// A delivery this worker holds.
pub(super) struct Held {
    pub(super) claimed: Claimed,
    cut: oneshot::Receiver<Cut>,
}

impl Held {
    /// Resolves once the attempt is to be cut short.
    pub(super) async fn cut(&mut self) -> Cut {
        (&mut self.cut).await.unwrap_or(Cut::Abandoned)
    }
}

impl Leases {
    pub(super) fn new() -> Self {
        Self { held: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Notes what was claimed when the store was asked at that time, under leases as long as those
    /// of its route are.
    pub(super) fn hold(
        &self,
        claimed: Vec<Claimed>,
        asked_at: Instant,
        length: impl Fn(RouteNo) -> Duration,
    ) -> Vec<Held> {
        let mut all = self.lock();
        let mut held = Vec::with_capacity(claimed.len());
        for claimed in claimed {
            let (sender, cut) = oneshot::channel();
            let length = length(claimed.delivery.route);
            let good_until = asked_at + length;
            let entry = Entry { good_until, length, lost: false, cut: Some(sender) };
            all.insert((claimed.delivery, claimed.lease), entry);
            held.push(Held { claimed, cut });
        }
        self.count.send_replace(all.len());
        held
    }

    /// Forgets a lease: the store knows its ending, or it is lost.
    pub(super) fn let_go(&self, claimed: &Claimed) {
        let mut all = self.lock();
        all.remove(&(claimed.delivery, claimed.lease));
        self.count.send_replace(all.len());
    }

    /// Whether a lease should still be good, as far as this process can tell.
    pub(super) fn is_good(&self, claimed: &Claimed, now: Instant) -> bool {
        let all = self.lock();
        let entry = all.get(&(claimed.delivery, claimed.lease));
        entry.is_some_and(|entry| entry.good_until > now)
    }

    /// Cuts every attempt short.
    pub(super) fn cut_all(&self, why: Cut) {
        for entry in self.lock().values_mut() {
            if let Some(cut) = entry.cut.take() {
                // Nobody listens once the attempt has ended.
                let _ = cut.send(why);
            }
        }
    }

    /// How many leases are held.
    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Resolves once no lease is held.
    pub(super) async fn none_held(&self) {
        let mut count = self.count.subscribe();
        count.wait_for(|count| *count == 0).await.expect("the sender lives in self");
    }

    /// Leases to be extended, by how long they are good for then.
    fn ageing(&self, which: Which, now: Instant) -> BTreeMap<Duration, Vec<Key>> {
        let mut ageing: BTreeMap<Duration, Vec<Key>> = BTreeMap::new();
        for (key, entry) in self.lock().iter().filter(|(_, entry)| !entry.lost) {
            if which == Which::All || entry.good_until <= now + entry.length / 2 {
                ageing.entry(entry.length).or_default().push(*key);
            }
        }
        ageing
    }

    fn extended(&self, keys: &[Key], good: &[bool], good_until: Instant) {
        let mut all = self.lock();
        for (key, good) in keys.iter().zip(good) {
            let Some(entry) = all.get_mut(key) else { continue };
            if *good {
                entry.good_until = good_until;
                continue;
            }
            // An attempt that has ended meanwhile is past being cut; its ending is told to the
            // store all the same, which knows best.
            entry.lost = true;
            if let Some(cut) = entry.cut.take() {
                let _ = cut.send(Cut::Lost);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.held.lock().expect("no panic while noting")
    }
}

/// Which leases are extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that have less than half their time left.
    Ageing,
    /// All of them.
    All,
}

/// Extends leases, those of one length in one call. Returns how many it asked for. Those of another
/// length are extended also if that fails.
pub(super) async fn extend(shared: &Shared, which: Which) -> Result<usize, StoreError> {
    let (mut asked, mut failed) = (0, None);
    for (length, keys) in shared.leases.ageing(which, Instant::now()) {
        // From before the question: the store's lease never ends earlier than we believe.
        let good_until = Instant::now() + length;
        match shared.store.extend(&keys, length).await {
            Ok(good) => {
                let good: Vec<bool> = good.iter().map(Option::is_some).collect();
                shared.leases.extended(&keys, &good, good_until);
            }
            Err(error) => failed = Some(error),
        }
        asked += keys.len();
    }
    failed.map_or(Ok(asked), Err)
}

/// Beats until the worker is gone. Between half and two thirds of its time each lease is asked
/// for, so that there is a third left to ask again.
pub(super) async fn keep(shared: Arc<Shared>) {
    loop {
        let shortest = shared.slots().shortest_lease();
        let shortest = shortest.map_or(shared.options.lease, |own| own.min(shared.options.lease));
        tokio::time::sleep(shortest / 6).await;
        if let Err(error) = extend(&shared, Which::Ageing).await {
            warn!(%error, "leases could not be extended; trying again");
        }
    }
}
