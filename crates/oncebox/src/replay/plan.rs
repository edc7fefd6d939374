//! What a replay would do, told before it does anything.

use std::collections::BTreeMap;

use super::{How, ReplayFilter};
use crate::delivery::{DeliveryId, State};
use crate::effect::Effect;
use crate::limits::REPLAY_ROWS;
use crate::receipt::RouteNo;
use crate::store::{EffectFilter, ReplayCandidate, Store, StoreError};

/// What a replay makes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is opened again.
    Opens,
    /// It is made: its route never took the receipt.
    Fills,
    /// It is opened or made, and will be skipped again: a newer event was processed.
    Stale,
    /// It is opened, and will be skipped again: its operation was processed already.
    Repeated,
    /// It is opened or made, and will wait: an earlier event of its object is open.
    Held,
    /// It is left, for it was processed and nobody said to run it again.
    Processed,
    /// It is left, for it is open already.
    Busy,
    /// It is left, for its receipt has expired.
    Expired,
}

impl Fate {
    /// What becomes of a delivery; `None` if the replay is not about it.
    pub fn of(filter: &ReplayFilter, how: How, candidate: &ReplayCandidate) -> Option<Self> {
        let fate = match candidate.state {
            _ if candidate.expired => Self::Expired,
            None => {
                let route = candidate.delivery.route;
                if !filter.takes(route, candidate.source, &candidate.event_type) {
                    return None;
                }
                Self::Fills
            }
            Some(State::Dead | State::Held | State::Skipped) => Self::Opens,
            Some(State::Processed) if how.force => Self::Opens,
            Some(State::Processed) => Self::Processed,
            Some(State::Received | State::Processing | State::Retrying) => Self::Busy,
        };
        let touches = matches!(fate, Self::Opens | Self::Fills);
        let is_guarded = touches && !how.ignore_stale;
        Some(match fate {
            _ if is_guarded && candidate.stale => Self::Stale,
            _ if is_guarded && candidate.repeated => Self::Repeated,
            _ if touches && candidate.held => Self::Held,
            fate => fate,
        })
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opens => "run",
            Self::Fills => "new",
            Self::Stale => "stale",
            Self::Repeated => "repeated",
            Self::Held => "held",
            Self::Processed => "processed",
            Self::Busy => "busy",
            Self::Expired => "expired",
        }
    }

    /// Whether the delivery is left as it is.
    pub fn is_left(self) -> bool {
        matches!(self, Self::Processed | Self::Busy | Self::Expired)
    }
}

/// What a replay would do on one route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePlan {
    /// Deliveries opened again.
    pub opens: u64,
    /// Deliveries made for receipts the route never took.
    pub fills: u64,
    /// Deliveries that would be skipped again as stale.
    pub stale: u64,
    /// Deliveries that would be skipped again, for another of their operation was processed.
    pub repeated: u64,
    /// Deliveries that would wait for an earlier event of their object.
    pub held: u64,
    /// Deliveries left because they were processed.
    pub processed: u64,
    /// Deliveries left because they are open already.
    pub busy: u64,
    /// Deliveries left because their receipt has expired.
    pub expired: u64,
    /// How many it found in each state.
    pub states: BTreeMap<State, u64>,
}

impl RoutePlan {
    fn count(&mut self, fate: Fate, state: Option<State>) {
        let counter = match fate {
            Fate::Opens => &mut self.opens,
            Fate::Fills => &mut self.fills,
            Fate::Stale => &mut self.stale,
            Fate::Repeated => &mut self.repeated,
            Fate::Held => &mut self.held,
            Fate::Processed => &mut self.processed,
            Fate::Busy => &mut self.busy,
            Fate::Expired => &mut self.expired,
        };
        *counter += 1;
        if let Some(state) = state {
            *self.states.entry(state).or_default() += 1;
        }
    }

    /// Deliveries the replay would touch.
    pub fn touched(&self) -> u64 {
        self.opens + self.fills + self.stale + self.repeated + self.held
    }

    /// Deliveries the replay is about.
    pub fn total(&self) -> u64 {
        self.touched() + self.processed + self.busy + self.expired
    }
}

/// What a replay would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By route.
    pub routes: BTreeMap<RouteNo, RoutePlan>,
}

impl Plan {
    /// Deliveries the replay would touch.
    pub fn touched(&self) -> u64 {
        self.routes.values().map(RoutePlan::touched).sum()
    }

    /// Deliveries the replay is about.
    pub fn total(&self) -> u64 {
        self.routes.values().map(RoutePlan::total).sum()
    }
}

/// Looks at everything a replay would be about, and changes nothing.
pub async fn plan(store: &dyn Store, filter: &ReplayFilter, how: How) -> Result<Plan, StoreError> {
    let mut plan = Plan::default();
    let mut after = None;
    loop {
        let page = Page::read(store, filter, after).await?;
        for candidate in &page.candidates {
            if let Some(fate) = Fate::of(filter, how, candidate) {
                let route = plan.routes.entry(candidate.delivery.route).or_default();
                route.count(fate, candidate.state);
            }
        }
        after = page.candidates.last().map(|candidate| candidate.delivery).or(after);
        if page.is_last {
            return Ok(plan);
        }
    }
}

/// What a replay would make of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The delivery; for a route that never took the receipt, the one that would be made.
    pub delivery: DeliveryId,
    /// The provider's id of the event.
    pub event_id: String,
    /// Its state now; none if the route never took the receipt.
    pub state: Option<State>,
    /// What becomes of it.
    pub fate: Fate,
    /// What the ledger has of it: effects that are done are not repeated, whatever runs again.
    pub effects: Vec<Effect>,
}

/// As [`plan`], delivery by delivery, against the ledger: at most `limit` of them. Says whether
/// there are more.
pub async fn plan_each(
    store: &dyn Store,
    filter: &ReplayFilter,
    how: How,
    limit: usize,
) -> Result<(Vec<Planned>, bool), StoreError> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut after = None;
    loop {
        let page = Page::read(store, filter, after).await?;
        after = page.candidates.last().map(|candidate| candidate.delivery).or(after);
        let fate = |candidate| Some((Fate::of(filter, how, &candidate)?, candidate));
        for (fate, candidate) in page.candidates.into_iter().filter_map(fate) {
            if planned.len() == limit {
                return Ok((planned, true));
            }
            let effects = effects_of(store, candidate.delivery).await?;
            let ReplayCandidate { delivery, event_id, state, .. } = candidate;
            planned.push(Planned { delivery, event_id, state, fate, effects });
        }
        if page.is_last {
            return Ok((planned, false));
        }
    }
}

/// What the ledger has of a delivery.
async fn effects_of(store: &dyn Store, delivery: DeliveryId) -> Result<Vec<Effect>, StoreError> {
    let receipt = Some(delivery.receipt);
    let filter = EffectFilter { receipt, limit: REPLAY_ROWS, ..EffectFilter::default() };
    let mut effects = store.effects(&filter).await?;
    effects.retain(|effect| effect.delivery == delivery);
    Ok(effects)
}

/// Some of the deliveries a replay is about. A receipt is never spread over two pages, so that
/// what is unrouted is so for all of its routes.
pub(super) struct Page {
    pub(super) candidates: Vec<ReplayCandidate>,
    pub(super) is_last: bool,
}

impl Page {
    pub(super) async fn read(
        store: &dyn Store,
        filter: &ReplayFilter,
        after: Option<DeliveryId>,
    ) -> Result<Self, StoreError> {
        let limit = REPLAY_ROWS.max(filter.routes.len() + 1);
        let mut candidates = store.replay_page(filter, after, limit).await?;
        let is_last = candidates.len() < limit;
        if !is_last {
            drop_incomplete(&mut candidates);
        }
        Ok(Self { candidates, is_last })
    }
}

/// Leaves the last receipt of a full page to the next one, unless the page has no other.
fn drop_incomplete(candidates: &mut Vec<ReplayCandidate>) {
    let Some(last) = candidates.last().map(|candidate| candidate.delivery.receipt) else { return };
    let whole = candidates.partition_point(|candidate| candidate.delivery.receipt < last);
    if whole > 0 {
        candidates.truncate(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::{ReceiptId, SourceNo};
    use crate::replay::Fill;

    fn candidate(receipt: u8, route: i16, state: Option<State>) -> ReplayCandidate {
        ReplayCandidate {
            delivery: DeliveryId {
                receipt: ReceiptId::from_bytes([receipt; 16]),
                route: RouteNo(route),
            },
            source: SourceNo(1),
            event_type: "invoice.paid".to_owned(),
            state,
            reason: None,
            stale: false,
            repeated: false,
            held: false,
            expired: false,
            event_id: format!("evt_{receipt}"),
        }
    }

    fn fate(how: How, state: Option<State>, stale: bool) -> Option<Fate> {
        let fill = Fill { route: RouteNo(1), source: SourceNo(1), event_type: "*".to_owned() };
        let filter = ReplayFilter { fill: vec![fill], ..ReplayFilter::default() };
        Fate::of(&filter, how, &ReplayCandidate { stale, ..candidate(1, 1, state) })
    }

    #[test]
    fn what_is_over_or_stuck_is_opened_and_what_is_open_is_left() {
        let plain = How::default();
        for state in [State::Dead, State::Held, State::Skipped] {
            assert_eq!(fate(plain, Some(state), false), Some(Fate::Opens));
        }
        for state in [State::Received, State::Processing, State::Retrying] {
            assert_eq!(fate(How { force: true, ..plain }, Some(state), true), Some(Fate::Busy));
        }
        assert_eq!(fate(plain, None, false), Some(Fate::Fills));
    }

    #[test]
    fn what_was_processed_needs_force() {
        let forced = How { force: true, ignore_stale: false };
        assert_eq!(fate(How::default(), Some(State::Processed), true), Some(Fate::Processed));
        assert_eq!(fate(forced, Some(State::Processed), false), Some(Fate::Opens));
        assert_eq!(fate(forced, Some(State::Processed), true), Some(Fate::Stale));
    }

    #[test]
    fn stale_events_are_skipped_again_unless_the_guard_is_passed() {
        let passes = How { ignore_stale: true, ..How::default() };
        assert_eq!(fate(How::default(), Some(State::Dead), true), Some(Fate::Stale));
        assert_eq!(fate(How::default(), None, true), Some(Fate::Stale));
        assert_eq!(fate(passes, Some(State::Dead), true), Some(Fate::Opens));
        assert_eq!(fate(passes, None, true), Some(Fate::Fills));
    }

    #[test]
    fn repeated_operations_are_skipped_again_unless_the_guard_is_passed() {
        let repeated = ReplayCandidate { repeated: true, ..candidate(1, 1, Some(State::Skipped)) };
        let fate = |how| Fate::of(&ReplayFilter::default(), how, &repeated);
        assert_eq!(fate(How::default()), Some(Fate::Repeated));
        assert_eq!(fate(How { ignore_stale: true, ..How::default() }), Some(Fate::Opens));
    }

    #[test]
    fn what_waits_for_its_object_is_told_and_what_has_expired_is_left() {
        let dead = candidate(1, 1, Some(State::Dead));
        let fate = |candidate| Fate::of(&ReplayFilter::default(), How::default(), &candidate);
        let held = ReplayCandidate { held: true, ..dead.clone() };
        assert_eq!(fate(held.clone()), Some(Fate::Held));
        assert_eq!(fate(ReplayCandidate { stale: true, ..held.clone() }), Some(Fate::Stale));
        assert_eq!(fate(ReplayCandidate { expired: true, ..held }), Some(Fate::Expired));
    }

    #[test]
    fn a_route_is_not_filled_with_what_it_does_not_take() {
        let filter = ReplayFilter::default();
        assert_eq!(Fate::of(&filter, How::default(), &candidate(1, 1, None)), None);
    }

    #[test]
    fn a_receipt_stays_on_one_page() {
        let page = |receipts: &[u8]| {
            let each = receipts.iter().enumerate();
            let mut page: Vec<_> = each
                .map(|(route, receipt)| candidate(*receipt, i16::try_from(route).unwrap(), None))
                .collect();
            drop_incomplete(&mut page);
            page.len()
        };
        assert_eq!(page(&[1, 1, 2, 2]), 2);
        assert_eq!(page(&[1, 2, 3]), 2);
        assert_eq!(page(&[1, 1, 1]), 3);
        assert_eq!(page(&[]), 0);
    }
}
