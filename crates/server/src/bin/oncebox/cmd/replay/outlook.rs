//! What becomes of deliveries after a replay has opened them, where that is not a push.

use oncebox::delivery::{Reason, State};
use oncebox::replay::Plan;

use super::show::name;
use crate::cmd::deliveries::view::Routes;

/// How many of the deliveries that a replay opens are not simply delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outlook {
    stale: u64,
    repeated: u64,
    waits: u64,
    held: u64,
    paused: u64,
    no_route: u64,
}

impl Outlook {
    pub(super) fn of(plan: &Plan, routes: &Routes) -> Self {
        let mut outlook = Self::default();
        for (number, route) in &plan.routes {
            outlook.stale += route.stale;
            outlook.repeated += route.repeated;
            outlook.waits += route.held;
            let held = route.states.get(&State::Held).copied().unwrap_or(0);
            outlook.held += held.saturating_sub(route.held);
            match routes.why_held(&name(routes, *number)) {
                Some(Reason::Paused) => outlook.paused += route.touched(),
                Some(_) => outlook.no_route += route.touched(),
                None => {}
            }
        }
        outlook
    }

    /// A clause for each thing that becomes of some of them.
    pub(super) fn clauses(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        let mut say = |number: u64, one: &str, more: &str| match number {
            0 => {}
            1 => clauses.push(format!("1 of them {one}")),
            _ => clauses.push(format!("{number} of them {more}")),
        };
        say(
            self.stale,
            "is stale and will be skipped: --ignore-stale delivers it",
            "are stale and will be skipped: --ignore-stale delivers them",
        );
        say(
            self.repeated,
            "repeats an operation and will be skipped: --ignore-stale delivers it",
            "repeat an operation and will be skipped: --ignore-stale delivers them",
        );
        say(
            self.waits,
            "waits for an earlier event of its object",
            "wait for earlier events of their objects",
        );
        say(
            self.held,
            "was held; it is judged again and may be held again: `oncebox held release` lets it go",
            "were held; they are judged again and may be held again: `oncebox held release` lets \
             one go",
        );
        say(
            self.paused,
            "waits for its route, which is paused: `oncebox routes resume`",
            "wait for their route, which is paused: `oncebox routes resume`",
        );
        say(
            self.no_route,
            "waits for its route, which is not configured",
            "wait for their route, which is not configured",
        );
        clauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_simply_delivered_is_told() {
        assert!(Outlook::default().clauses().is_empty());
        let outlook = Outlook { stale: 1, repeated: 2, ..Outlook::default() };
        assert_eq!(
            outlook.clauses(),
            [
                "1 of them is stale and will be skipped: --ignore-stale delivers it",
                "2 of them repeat an operation and will be skipped: --ignore-stale delivers them",
            ]
        );
    }
}
