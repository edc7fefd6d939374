//! At the claim: may this delivery run, must it wait, or is it too late for it?

use super::Reason;
use crate::receipt::ReceiptId;
use crate::route::{OnDead, RouteRules};

/// What the store knows of a candidate while it holds the rows of its object and operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The candidate itself.
    pub receipt: Option<ReceiptId>,
    /// Whether it has an object that its route guards.
    pub laned: bool,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// The newest version of its object that was processed on this route.
    pub applied: Option<i64>,
    /// Whether another delivery of its object is under a lease.
    pub in_flight: bool,
    /// Whether an earlier delivery of its object is open and not dead.
    pub earlier_open: bool,
    /// Whether an earlier delivery of its object is dead.
    pub earlier_dead: bool,
    /// The receipt of the same operation that was processed within the window.
    pub same_processed: Option<ReceiptId>,
    /// Whether an earlier delivery of the same operation is open within the window, and not dead.
    pub same_open: bool,
    /// Whether an earlier delivery of the same operation is dead within the window.
    pub same_dead: bool,
    /// Whether an operator let it pass the guards against stale and repeated events.
    pub ignores_stale: bool,
    /// Whether an operator let it pass the order.
    pub ignores_order: bool,
}

/// What is to be done with a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It runs.
    Run,
    /// It waits until what it waits for is out of its way.
    Hold(Reason),
    /// It is finished without being delivered. For a repeated operation, the receipt of the first.
    Skip(Reason, Option<ReceiptId>),
}

/// Judges a candidate.
pub fn judge(rules: &RouteRules, facts: &Facts) -> Judgement {
    if !facts.ignores_stale {
        if facts.laned && rules.skip_stale && is_stale(facts) {
            return Judgement::Skip(Reason::Stale, None);
        }
        match facts.same_processed {
            // A delivery that is replayed is not a repetition of itself.
            Some(first) if Some(first) != facts.receipt => {
                return Judgement::Skip(Reason::SameOperation, Some(first));
            }
            _ => {}
        }
    }
    if facts.laned && must_wait_in_lane(rules, facts) {
        return Judgement::Hold(Reason::Order);
    }
    let same_in_the_way = facts.same_open || facts.same_dead && rules.on_dead == OnDead::Hold;
    if same_in_the_way && !facts.ignores_stale && !facts.ignores_order {
        return Judgement::Hold(Reason::SameOperation);
    }
    Judgement::Run
}

/// Whether a newer event of the object was processed. An equal version passes: providers send
/// several events within the same second.
fn is_stale(facts: &Facts) -> bool {
    matches!((facts.version, facts.applied), (Some(version), Some(applied)) if version < applied)
}

fn must_wait_in_lane(rules: &RouteRules, facts: &Facts) -> bool {
    if facts.in_flight {
        return true;
    }
    let dead_in_the_way = facts.earlier_dead && rules.on_dead == OnDead::Hold;
    rules.ordered && !facts.ignores_order && (facts.earlier_open || dead_in_the_way)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered() -> RouteRules {
        RouteRules { ordered: true, skip_stale: true, ..RouteRules::default() }
    }

    fn facts() -> Facts {
        Facts { laned: true, version: Some(5), ..Facts::default() }
    }

    #[test]
    fn an_older_version_is_stale_and_an_equal_one_is_not() {
        let at = |applied| judge(&ordered(), &Facts { applied, ..facts() });
        assert_eq!(at(Some(6)), Judgement::Skip(Reason::Stale, None));
        assert_eq!(at(Some(5)), Judgement::Run);
        assert_eq!(at(None), Judgement::Run);
        let unversioned = Facts { version: None, applied: Some(6), ..facts() };
        assert_eq!(judge(&ordered(), &unversioned), Judgement::Run);
        let passes = Facts { applied: Some(6), ignores_stale: true, ..facts() };
        assert_eq!(judge(&ordered(), &passes), Judgement::Run);
        let deliver = RouteRules { skip_stale: false, ..ordered() };
        assert_eq!(judge(&deliver, &Facts { applied: Some(6), ..facts() }), Judgement::Run);
    }

    #[test]
    fn one_delivery_of_an_object_is_in_flight() {
        let busy = Facts { in_flight: true, ignores_order: true, ..facts() };
        assert_eq!(judge(&ordered(), &busy), Judgement::Hold(Reason::Order));
        let stale_only = RouteRules { ordered: false, ..ordered() };
        assert_eq!(judge(&stale_only, &busy), Judgement::Hold(Reason::Order));
    }

    #[test]
    fn only_an_ordered_route_waits_for_what_is_earlier() {
        let waiting = Facts { earlier_open: true, ..facts() };
        assert_eq!(judge(&ordered(), &waiting), Judgement::Hold(Reason::Order));
        let stale_only = RouteRules { ordered: false, ..ordered() };
        assert_eq!(judge(&stale_only, &waiting), Judgement::Run);
        let released = Facts { ignores_order: true, ..waiting };
        assert_eq!(judge(&ordered(), &released), Judgement::Run);
    }

    #[test]
    fn a_dead_head_holds_unless_the_route_goes_on() {
        let behind = Facts { earlier_dead: true, ..facts() };
        assert_eq!(judge(&ordered(), &behind), Judgement::Hold(Reason::Order));
        let goes_on = RouteRules { on_dead: OnDead::Continue, ..ordered() };
        assert_eq!(judge(&goes_on, &behind), Judgement::Run);
    }

    #[test]
    fn a_repeated_operation_waits_for_the_first_and_is_skipped_after_it() {
        let rules = RouteRules::default();
        let (first, second) = (ReceiptId::from_bytes([1; 16]), ReceiptId::from_bytes([2; 16]));
        let open = Facts { receipt: Some(second), same_open: true, ..Facts::default() };
        assert_eq!(judge(&rules, &open), Judgement::Hold(Reason::SameOperation));
        let done = Facts { same_processed: Some(first), same_open: false, ..open };
        assert_eq!(judge(&rules, &done), Judgement::Skip(Reason::SameOperation, Some(first)));
        let itself = Facts { same_processed: Some(second), ..done };
        assert_eq!(judge(&rules, &itself), Judgement::Run);
        assert_eq!(judge(&rules, &Facts { ignores_stale: true, ..done }), Judgement::Run);
        let dead = Facts { same_dead: true, same_open: false, ..open };
        assert_eq!(judge(&rules, &dead), Judgement::Hold(Reason::SameOperation));
        let goes_on = RouteRules { on_dead: OnDead::Continue, ..rules };
        assert_eq!(judge(&goes_on, &dead), Judgement::Run);
    }
}
