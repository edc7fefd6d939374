//! How much of each route may be claimed, and what may begin.
//!
//! A route has places: so many deliveries may be with its consumer. Claims fill them, and for a
//! quick consumer a little ahead. A slow, hanging or dead destination keeps its own places and
//! nobody else's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::breaker::{Breaker, BreakerChange, BreakerView, End, Pass};
use super::chance::chance;
use super::leases::Held;
use super::memory::Room;
use super::throttle::Throttle;
use super::{Health, WorkRoute};
use crate::delivery::Payload;
use crate::limits::{ALONE_FOR, CLAIM_AHEAD, CLAIM_AHEAD_FOR, CLAIM_ROWS};
use crate::receipt::RouteNo;
use crate::store::{Claims, Wanted};

/// A delivery with its payload, ready to begin.
pub(super) struct Loaded {
    pub(super) held: Held,
    pub(super) payload: Payload,
    pub(super) room: Room,
}

/// A delivery that has its place with the consumer.
pub(super) struct Begun {
    pub(super) route: Arc<WorkRoute>,
    pub(super) pass: Pass,
    pub(super) loaded: Loaded,
}

/// What a look at a route's queue came to.
#[derive(Default)]
pub(super) struct Turn {
    /// To be handed to the consumer.
    pub(super) begun: Vec<Begun>,
    /// To be returned: the breaker opened, the route was removed, or the worker stops.
    pub(super) back: Vec<Loaded>,
}

/// The places of every route.
pub(super) struct Slots {
    routes: BTreeMap<RouteNo, Slot>,
    /// Whose turn it is to be served first when there is not enough for all.
    turn: usize,
    stopping: bool,
}

struct Slot {
    route: Arc<WorkRoute>,
    breaker: Breaker,
    throttle: Throttle,
    /// With the consumer.
    running: usize,
    /// Claimed and not begun: being loaded, or in the queue.
    waiting: usize,
    queue: VecDeque<Loaded>,
    /// How long attempts take, smoothed; unknown before the first.
    pace: Option<Duration>,
    /// Claims that are on their way.
    asked: usize,
    /// Whether more may be due than was claimed.
    more: bool,
    /// Until when deliveries whose last worker died are left alone, unless they end before.
    alone_until: Option<Instant>,
    removed: bool,
}

impl Slots {
    pub(super) fn new(routes: Vec<WorkRoute>, now: Instant) -> Self {
        let mut slots = Self { routes: BTreeMap::new(), turn: 0, stopping: false };
        slots.set_routes(routes, now);
        slots
    }

    /// Replaces the routes; see [`Worker::set_routes`](super::Worker::set_routes).
    pub(super) fn set_routes(&mut self, routes: Vec<WorkRoute>, now: Instant) {
        for slot in self.routes.values_mut() {
            slot.removed = true;
        }
        for route in routes {
            match self.routes.get_mut(&route.number) {
                Some(slot) => slot.change(route, now),
                None => drop(self.routes.insert(route.number, Slot::new(route, now))),
            }
        }
        self.forget_removed();
    }

    /// Nothing is claimed or begun from now on.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    /// The routes there are slots for, the removed ones that still have work included.
    pub(super) fn numbers(&self) -> Vec<RouteNo> {
        self.routes.keys().copied().collect()
    }

    /// A route, also if it was removed while it has work.
    pub(super) fn route(&self, number: RouteNo) -> Option<Arc<WorkRoute>> {
        self.routes.get(&number).map(|slot| slot.route.clone())
    }

    pub(super) fn breakers(&self, now: Instant) -> Vec<(Arc<WorkRoute>, BreakerView)> {
        let there = self.routes.values().filter(|slot| !slot.removed);
        there.map(|slot| (slot.route.clone(), slot.view(now))).collect()
    }

    /// The shortest lease of all routes, where any has one of its own.
    pub(super) fn shortest_lease(&self) -> Option<Duration> {
        self.routes.values().filter_map(|slot| slot.route.lease).min()
    }

    /// What to claim now.
    pub(super) fn wanted(&mut self, now: Instant) -> Vec<Wanted> {
        if self.stopping {
            return Vec::new();
        }
        let mut asking = Vec::new();
        for (number, slot) in self.routes.iter_mut().filter(|(_, slot)| !slot.removed) {
            let room = slot.room(now);
            if room > 0 {
                asking.push(Asking { route: *number, room, more: slot.more });
            } else {
                // It is not asked for now, so nobody knows.
                slot.more = true;
            }
        }
        self.turn = self.turn.wrapping_add(1);
        let shares = share_out(&asking, CLAIM_ROWS, self.turn);
        let mut wanted = Vec::with_capacity(asking.len());
        for (asking, most) in asking.iter().zip(shares) {
            let slot = self.routes.get_mut(&asking.route).expect("it was asked for");
            slot.asked += 1;
            let (lease, pick) = (slot.route.lease, slot.breaker.pick(now));
            wanted.push(Wanted { route: asking.route, most, rules: slot.route.rules, lease, pick });
        }
        wanted
    }

    /// Takes note of what a claim came to; of nothing, if it failed.
    pub(super) fn claimed(&mut self, wanted: &[Wanted], claims: Option<&Claims>, now: Instant) {
        for wanted in wanted {
            let slot = self.routes.get_mut(&wanted.route);
            let slot = slot.expect("a route that is asked for is not forgotten");
            slot.asked -= 1;
            match claims {
                Some(claims) => slot.claimed(wanted, claims, now),
                None => slot.more = true,
            }
        }
        self.forget_removed();
    }

    /// When to look again without being told, if that is not a matter of somebody's poll.
    pub(super) fn next_look(&mut self, now: Instant) -> Option<Instant> {
        let wanting = self.routes.values_mut().filter(|slot| slot.more && !slot.removed);
        wanting.filter_map(|slot| slot.next_look(now)).min()
    }

    /// Queues a delivery that is ready.
    pub(super) fn queue(&mut self, loaded: Loaded) {
        let route = loaded.held.claimed.delivery.route;
        let slot = self.routes.get_mut(&route).expect("a route with work is not forgotten");
        slot.queue.push_back(loaded);
    }

    /// Lets begin what may begin of a route, and gives back what may not for some time.
    pub(super) fn turn(&mut self, route: RouteNo, now: Instant) -> Turn {
        let Some(slot) = self.routes.get_mut(&route) else { return Turn::default() };
        let unwell = slot.breaker.opens_until(now).is_some();
        if self.stopping || slot.removed || unwell {
            return Turn { begun: Vec::new(), back: slot.queue.drain(..).collect() };
        }
        let mut begun = Vec::new();
        while let Some(one) = slot.begin(now) {
            begun.push(one);
        }
        Turn { begun, back: Vec::new() }
    }

    /// A claimed delivery is not going to begin.
    pub(super) fn gave_back(&mut self, route: RouteNo) {
        let slot = self.routes.get_mut(&route).expect("a route with work is not forgotten");
        slot.waiting -= 1;
        slot.throttle.refund(1);
        self.forget_removed();
    }

    /// An attempt of a route ended, and took that long.
    pub(super) fn ended(
        &mut self,
        route: RouteNo,
        pass: &Pass,
        end: &End<'_>,
        took: Duration,
    ) -> AfterEnd {
        let slot = self.routes.get_mut(&route).expect("a route with work is not forgotten");
        slot.running -= 1;
        let change = slot.breaker.end(pass, end, slot.route.concurrency, chance());
        let slowed = match end.health {
            Some(Health::Overloaded) => slot.throttle.slow_down(end.at),
            _ => None,
        };
        slot.note_pace(took);
        let claim = slot.more && slot.room(end.at) > 0;
        let after = AfterEnd { claim, change, slowed, view: slot.view(end.at) };
        self.forget_removed();
        after
    }

    fn forget_removed(&mut self) {
        self.routes.retain(|_, slot| !slot.removed || slot.is_busy());
    }
}

/// What follows from the end of an attempt.
pub(super) struct AfterEnd {
    /// Whether it is a reason to claim.
    pub(super) claim: bool,
    /// What it did to the breaker.
    pub(super) change: Option<BreakerChange>,
    /// The rate that the route goes at from now on, if the destination asked for less.
    pub(super) slowed: Option<f64>,
    pub(super) view: BreakerView,
}

impl Slot {
    fn new(route: WorkRoute, now: Instant) -> Self {
        Self {
            throttle: Throttle::new(route.rate, now),
            route: Arc::new(route),
            breaker: Breaker::new(),
            running: 0,
            waiting: 0,
            queue: VecDeque::new(),
            pace: None,
            asked: 0,
            more: true,
            alone_until: None,
            removed: false,
        }
    }

    fn is_busy(&self) -> bool {
        self.running + self.waiting + self.asked > 0
    }

    fn claimed(&mut self, wanted: &Wanted, claims: &Claims, now: Instant) {
        let ours = claims.claimed.iter().filter(|claimed| claimed.delivery.route == wanted.route);
        let got = ours.count();
        // What was lost before is claimed apart. If it was what killed its worker, it should not
        // take others with it; it has some time to show.
        let alone = got > 0 && claims.alone.contains(&wanted.route);
        self.alone_until = alone.then(|| now + ALONE_FOR);
        let mut moved = claims.skipped.iter().chain(&claims.held);
        let moved = moved.any(|(delivery, _)| delivery.route == wanted.route);
        self.more = got >= wanted.most || alone || moved;
        self.waiting += got;
        self.throttle.spend(got, now);
    }

    fn view(&self, now: Instant) -> BreakerView {
        BreakerView { slowed_to: self.throttle.slowed_to(now), ..self.breaker.view(now) }
    }

    /// Until when nothing more is claimed, for the sake of what is to be left alone.
    fn is_alone(&self, now: Instant) -> Option<Instant> {
        self.alone_until.filter(|until| *until > now && self.running + self.waiting > 0)
    }

    fn change(&mut self, route: WorkRoute, now: Instant) {
        self.throttle.set_rate(route.rate, now);
        self.route = Arc::new(route);
        // Perhaps the change mends it.
        self.breaker.probe_now(now);
        self.removed = false;
        self.more = true;
    }

    /// How many more to claim.
    fn room(&mut self, now: Instant) -> usize {
        if self.is_alone(now).is_some() {
            return 0;
        }
        let places = self.places(now);
        let ahead = self.ahead();
        // Claimed in larger parts, not one by one as they begin.
        if ahead > 0 && self.waiting > ahead / 2 {
            return 0;
        }
        let room = (places + ahead).saturating_sub(self.waiting).min(CLAIM_ROWS);
        self.throttle.available(now).map_or(room, |available| room.min(available))
    }

    /// How many more may begin.
    fn places(&self, now: Instant) -> usize {
        let concurrency = self.route.concurrency;
        let free = concurrency.saturating_sub(self.running);
        self.breaker.room(now, concurrency).min(free)
    }

    /// How many to claim beyond those with the consumer.
    fn ahead(&self) -> usize {
        let Some(pace) = self.pace.filter(|_| self.breaker.is_closed()) else { return 0 };
        let times = CLAIM_AHEAD_FOR.as_micros() / pace.as_micros().max(1);
        let times = usize::try_from(times).unwrap_or(usize::MAX).min(CLAIM_AHEAD);
        self.route.concurrency * times
    }

    fn next_look(&mut self, now: Instant) -> Option<Instant> {
        if let Some(until) = self.breaker.opens_until(now).or(self.is_alone(now)) {
            return Some(until);
        }
        if self.room(now) > 0 {
            return Some(now);
        }
        // If places are what is missing, the end of an attempt is the reason to look.
        self.throttle.next_at(now)
    }

    fn begin(&mut self, now: Instant) -> Option<Begun> {
        if self.queue.is_empty() || self.running >= self.route.concurrency {
            return None;
        }
        let pass = self.breaker.begin(now, self.route.concurrency)?;
        let loaded = self.queue.pop_front().expect("looked before");
        self.waiting -= 1;
        self.running += 1;
        Some(Begun { route: self.route.clone(), pass, loaded })
    }

    fn note_pace(&mut self, took: Duration) {
        // Slower is believed at once, quicker by and by.
        let smoothed = self.pace.map_or(took, |pace| (pace * 7 + took) / 8);
        self.pace = Some(smoothed.max(took));
    }
}

/// A route that has room.
struct Asking {
    route: RouteNo,
    room: usize,
    more: bool,
}

/// Shares the rows of a claim out: the same for each, then what is left to those that are known
/// to have more, beginning with another one each `turn`. Each gets at least one, so with very
/// many routes it is more than `rows`.
fn share_out(asking: &[Asking], rows: usize, turn: usize) -> Vec<usize> {
    if asking.is_empty() {
        return Vec::new();
    }
    let fair = (rows / asking.len()).max(1);
    let mut shares: Vec<usize> = asking.iter().map(|asking| asking.room.min(fair)).collect();
    let mut left = rows.saturating_sub(shares.iter().sum());
    let first = turn % asking.len();
    let in_turn = || (first..asking.len()).chain(0..first);
    let busy = in_turn().filter(|&i| asking[i].more);
    let quiet = in_turn().filter(|&i| !asking[i].more);
    for i in busy.chain(quiet) {
        let extra = left.min(asking[i].room - shares[i]);
        shares[i] += extra;
        left -= extra;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(rooms: &[(usize, bool)]) -> Vec<Asking> {
        let numbered = (1..).map(RouteNo).zip(rooms);
        numbered.map(|(route, &(room, more))| Asking { route, room, more }).collect()
    }

    #[test]
    fn everybody_gets_everything_if_there_is_enough() {
        assert_eq!(share_out(&asking(&[(16, true), (4, false), (9, true)]), 256, 0), [16, 4, 9]);
        assert_eq!(share_out(&[], 256, 0), Vec::<usize>::new());
    }

    #[test]
    fn what_the_quiet_leave_goes_to_the_busy() {
        let mut rooms = vec![(128, false); 100];
        rooms[42] = (128, true);
        let shares = share_out(&asking(&rooms), 256, 7);
        assert_eq!((shares[42], shares[41]), (58, 2));
        assert_eq!(shares.iter().sum::<usize>(), 256);
    }

    #[test]
    fn nobody_is_left_out_however_many_there_are() {
        let shares = share_out(&asking(&vec![(16, true); 300]), 256, 0);
        assert!(shares.iter().all(|share| *share == 1));
    }

    #[test]
    fn the_first_turn_goes_round() {
        let rooms = asking(&[(200, true), (200, true), (200, true)]);
        assert_eq!(share_out(&rooms, 256, 0), [86, 85, 85]);
        assert_eq!(share_out(&rooms, 256, 1), [85, 86, 85]);
    }
}
