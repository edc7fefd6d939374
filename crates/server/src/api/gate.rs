//! Where the claims on a route meet: whatever workers asked for while the last claim ran is the
//! next one. There is no timer, so a lone worker's claim is made at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use oncebox::delivery::{DeliveryId, Reason};
use oncebox::limits::{CLAIM_ROWS, POLL, PULL_CLAIMS};
use oncebox::store::{Claim, Claims, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;

use super::lease::Untold;

/// The claims on one route, and what is known of a route that gave nothing: many workers that wait
/// for it cost one claim.
pub(super) struct Gate {
    claims: Arc<Semaphore>,
    waiting: Mutex<VecDeque<Waiting>>,
    /// What [`Queue::due`](oncebox::store::Queue::due) said when it last gave nothing, and when
    /// that was.
    empty: Mutex<Option<(u64, Instant)>>,
}

/// What a worker asked for, and where it waits for its share.
struct Waiting {
    claim: Claim,
    tell: oneshot::Sender<Result<Share, StoreError>>,
}

/// What a worker gets of a claim.
pub(super) struct Share {
    pub(super) untold: Untold,
    /// Finished by the claim. One of those who share it is told.
    pub(super) skipped: Vec<(DeliveryId, Reason)>,
    /// Whether the claim has not seen everything that is due: it only moved others out of the way,
    /// or took one that is claimed alone.
    pub(super) more: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            claims: Arc::new(Semaphore::new(PULL_CLAIMS)),
            waiting: Mutex::default(),
            empty: Mutex::default(),
        }
    }
}

impl Gate {
    /// Claims for one worker, together with others that ask for the same, unless it is known that
    /// there is nothing.
    pub(super) async fn claim(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        claim: &Claim,
        due: &mut watch::Receiver<u64>,
    ) -> Result<Share, StoreError> {
        let (tell, mut told) = oneshot::channel();
        // Seen before anybody claims: what becomes due after that is noticed.
        due.mark_unchanged();
        self.waiting
            .lock()
            .expect("no panic while asking")
            .push_back(Waiting { claim: claim.clone(), tell });
        let lost = |_| StoreError::Unavailable("a claim ended without a result".to_owned());
        loop {
            let place = tokio::select! {
                biased;
                share = &mut told => return share.map_err(lost)?,
                place = self.claims.clone().acquire_owned() => place,
            };
            let place = place.expect("the semaphore stays open");
            let together = self.together();
            if together.is_empty() {
                // Somebody claims for this worker already.
                drop(place);
                return told.await.map_err(lost)?;
            }
            // For those who have waited longest; this worker may still have to wait.
            let version = *due.borrow();
            match self.is_known_empty(version) {
                true => share(store, together, Ok(Claims::default())),
                false => self.start(store, together, version, place),
            }
        }
    }

    /// Takes those who have waited longest and ask for the same, as many as one transaction serves.
    fn together(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().expect("no panic while taking");
        // Whoever hung up wants nothing any more.
        waiting.retain(|one| !one.tell.is_closed());
        let Some(first) = waiting.pop_front() else { return Vec::new() };
        let (mut rows, mut together) = (first.most(), vec![first]);
        while let Some(next) = waiting.front()
            && rows + next.most() <= CLAIM_ROWS
            && next.is_like(&together[0])
        {
            rows += next.most();
            together.extend(waiting.pop_front());
        }
        together
    }

    /// Claims in a task of its own: whoever hangs up meanwhile must not leave leases behind. The
    /// place goes along, so that a store that does not answer is not asked more and more.
    fn start(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        together: Vec<Waiting>,
        version: u64,
        place: OwnedSemaphorePermit,
    ) {
        let (gate, store) = (self.clone(), store.clone());
        let mut claim = together[0].claim.clone();
        claim.wanted[0].most = together.iter().map(Waiting::most).sum();
        tokio::spawn(async move {
            let claims = store.claim(&claim).await;
            if let Ok(claims) = &claims {
                gate.remember(claims, version);
            }
            drop(place);
            share(&store, together, claims);
        });
    }

    fn is_known_empty(&self, version: u64) -> bool {
        let empty = *self.empty.lock().expect("no panic while looking");
        empty.is_some_and(|(seen, at)| seen == version && at.elapsed() < POLL)
    }

    fn remember(&self, claims: &Claims, version: u64) {
        let is_empty = claims.claimed.is_empty() && !has_more(claims);
        let empty = is_empty.then(|| (version, Instant::now()));
        *self.empty.lock().expect("no panic while remembering") = empty;
    }
}

impl Waiting {
    fn most(&self) -> usize {
        self.claim.wanted[0].most
    }

    /// Whether one claim can serve both.
    fn is_like(&self, other: &Self) -> bool {
        let (a, b) = (&self.claim, &other.claim);
        a.lease == b.lease && a.worker == b.worker && a.wanted[0].rules == b.wanted[0].rules
    }
}

fn has_more(claims: &Claims) -> bool {
    !(claims.held.is_empty() && claims.skipped.is_empty() && claims.alone.is_empty())
}

/// Tells each worker its share, those first who have waited longest.
fn share(store: &Arc<dyn Store>, together: Vec<Waiting>, claims: Result<Claims, StoreError>) {
    let mut claims = match claims {
        Ok(claims) => claims,
        Err(error) => {
            for waiting in together {
                let _ = waiting.tell.send(Err(error.clone()));
            }
            return;
        }
    };
    let more = has_more(&claims);
    for waiting in together {
        let rest = claims.claimed.split_off(waiting.most().min(claims.claimed.len()));
        let claimed = std::mem::replace(&mut claims.claimed, rest);
        let untold = Untold::new(store.clone(), claimed);
        let skipped = std::mem::take(&mut claims.skipped);
        // What nobody hears of is dropped here, and goes back.
        let _ = waiting.tell.send(Ok(Share { untold, skipped, more }));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oncebox::limits::LEASE;
    use oncebox::route::RouteRules;
    use oncebox_testkit::gate::Gate as Before;
    use oncebox_testkit::store::{Bed, Route, until};
    use tokio::task::JoinSet;

    use super::*;

    fn claim(route: &Route, most: usize) -> Claim {
        Claim { wanted: vec![route.wanted(most)], lease: LEASE, worker: "a test".to_owned() }
    }

    async fn billing(bed: &Bed, events: usize) -> Route {
        let route = bed.route("billing", RouteRules::default()).await;
        for number in 0..events {
            bed.due(&format!("evt_{number}"), &[route]).await;
        }
        route
    }

    /// Whoever gives up on a store that does not answer makes no room for one more claim.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_claim_keeps_its_place_until_the_store_answers() {
        let bed = Bed::sqlite().await;
        let route = billing(&bed, 0).await;
        let held = Before::before(bed.store.clone());
        held.hold_claims(true);
        let (gate, store) = (Arc::new(Gate::default()), held.clone() as Arc<dyn Store>);
        let (claim, mut due) = (claim(&route, 1), store.due());
        tokio::select! {
            _ = gate.claim(&store, &claim, &mut due) => panic!("the claim is held up"),
            () = held.await_claims_held(1) => {}
        }
        assert_eq!(gate.claims.available_permits(), PULL_CLAIMS - 1);

        held.hold_claims(false);
        let all = u32::try_from(PULL_CLAIMS).unwrap();
        drop(gate.claims.acquire_many(all).await.unwrap());
    }

    /// While every place is taken three ask, one of whom hangs up. The others share what is due.
    #[tokio::test(flavor = "multi_thread")]
    async fn those_who_wait_share_a_claim() {
        let bed = Bed::sqlite().await;
        let route = billing(&bed, 5).await;
        let (gate, store) = (Arc::new(Gate::default()), bed.store.clone());
        let all = u32::try_from(PULL_CLAIMS).unwrap();
        let places = gate.claims.clone().acquire_many_owned(all).await.unwrap();
        let mut workers = JoinSet::new();
        let mut ask = || {
            let (gate, store, claim) = (gate.clone(), store.clone(), claim(&route, 3));
            let mut due = store.due();
            workers.spawn(async move {
                let share = gate.claim(&store, &claim, &mut due).await.unwrap();
                share.untold.told().len()
            })
        };
        let gone = ask();
        until(|| gate.waiting.lock().unwrap().len() == 1).await;
        ask();
        ask();
        until(|| gate.waiting.lock().unwrap().len() == 3).await;
        gone.abort();
        assert!(workers.join_next().await.unwrap().is_err());

        drop(places);
        let mut shares: Vec<_> = workers.join_all().await;
        shares.sort_unstable();
        assert_eq!(shares, [2, 3]);
        let ends = bed.query("SELECT count(DISTINCT lease_until) FROM deliveries");
        assert_eq!(ends, "1", "one claim for both");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_those_who_ask_for_the_same_claim_together() {
        let bed = Bed::sqlite().await;
        let route = billing(&bed, 0).await;
        let gate = Gate::default();
        let mut told = Vec::new();
        let mut ask = |claim: Claim| {
            let (tell, hears) = oneshot::channel();
            told.push(hears);
            gate.waiting.lock().unwrap().push_back(Waiting { claim, tell });
        };
        let ours = |most| claim(&route, most);
        let longer = Claim { lease: LEASE + Duration::from_secs(1), ..ours(1) };
        let theirs = Claim { worker: "another".to_owned(), ..ours(1) };
        for one in [ours(200), ours(56), ours(1), ours(2), longer, theirs.clone(), theirs, ours(9)]
        {
            ask(one);
        }
        let groups: Vec<Vec<usize>> = std::iter::repeat_with(|| gate.together())
            .take_while(|together| !together.is_empty())
            .map(|together| together.iter().map(Waiting::most).collect())
            .collect();
        assert_eq!(groups, [vec![200, 56], vec![1, 2], vec![1], vec![1, 1], vec![9]]);
    }

    /// A delivery whose last worker died is claimed alone. Who gets nothing for that asks again.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_is_left_out_for_one_that_is_alone_is_told_of_more() {
        let bed = Bed::sqlite().await;
        let route = billing(&bed, 1).await;
        bed.take(&route).await;
        bed.pass(61);
        bed.store.rescue(1).await.unwrap();
        bed.due("evt_next", &[route]).await;
        let claims = bed.claim(&route, 6).await;
        assert_eq!((claims.claimed.len(), claims.alone.len()), (1, 1));

        let (mut together, mut told) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (tell, hears) = oneshot::channel();
            told.push(hears);
            together.push(Waiting { claim: claim(&route, 3), tell });
        }
        share(&bed.store, together, Ok(claims));
        let shares = told.into_iter().map(|mut hears| hears.try_recv().unwrap().unwrap());
        let shares: Vec<_> = shares.map(|it| (it.more, it.untold.told().len())).collect();
        assert_eq!(shares, [(true, 1), (true, 0)]);
    }
}
