//! The plan of a replay, as it is shown.

use std::collections::BTreeMap;

use oncebox::delivery::State;
use oncebox::effect::{Effect, EffectState};
use oncebox::receipt::RouteNo;
use oncebox::replay::{Plan, Planned};
use serde_json::json;

use crate::cmd::deliveries::view::Routes;
use crate::exit::Failure;
use crate::ids::short_deliveries;
use crate::output::{Cell, Column, Screen, escape, notice};

/// Prints a plan: what would become of the deliveries of each route.
pub(super) fn plan(
    screen: &mut Screen,
    plan: &Plan,
    routes: &Routes,
    as_json: bool,
) -> Result<(), Failure> {
    tell_of_operations(plan, routes);
    if as_json {
        for (number, route) in &plan.routes {
            let states: BTreeMap<_, _> =
                route.states.iter().map(|(state, count)| (state.as_str(), count)).collect();
            screen.json(&json!({
                "route": name(routes, *number),
                "opens": route.opens,
                "new": route.fills,
                "stale": route.stale,
                "repeated": route.repeated,
                "held": route.held,
                "processed": route.processed,
                "busy": route.busy,
                "expired": route.expired,
                "states": states,
            }))?;
        }
        return Ok(());
    }
    let headings =
        ["would open", "new", "stale", "repeated", "held", "processed", "busy", "expired"];
    let columns: Vec<Column> =
        [Column::text("route", 8)].into_iter().chain(headings.map(Column::right)).collect();
    let rows = plan.routes.iter().map(|(number, route)| {
        let touched = [route.opens, route.fills, route.stale, route.repeated, route.held];
        let left = [route.processed, route.busy, route.expired];
        let numbers = touched.iter().chain(&left).map(|number| Cell::from(number.to_string()));
        [Cell::from(escape(&name(routes, *number)))].into_iter().chain(numbers).collect()
    });
    if !plan.routes.is_empty() {
        screen.fitted(&columns, rows)?;
    }
    Ok(())
}

const DELIVERIES: [Column; 6] = [
    Column::new("delivery"),
    Column::text("event", 10),
    Column::new("state"),
    Column::new("plan"),
    Column::text("done already", 12),
    Column::text("not known", 12),
];

/// Prints what would become of each delivery, and what the ledger has of it.
pub(super) fn deliveries(
    screen: &mut Screen,
    planned: &[Planned],
    routes: &Routes,
    as_json: bool,
) -> Result<(), Failure> {
    if as_json {
        for one in planned {
            let effect = |it: &Effect| {
                let (kind, state) = (it.kind.as_str(), it.state.as_str());
                json!({ "key": it.key, "kind": kind, "state": state })
            };
            let effects: Vec<_> = one.effects.iter().map(effect).collect();
            screen.json(&json!({
                "delivery": one.delivery.to_string(),
                "route": name(routes, one.delivery.route),
                "event_id": one.event_id,
                "state": one.state.map(State::as_str),
                "plan": one.fate.as_str(),
                "effects": effects,
            }))?;
        }
        return Ok(());
    }
    let ids: Vec<_> = planned.iter().map(|one| one.delivery).collect();
    let rows = planned.iter().zip(short_deliveries(&ids)).map(|(one, id)| {
        vec![
            id.into(),
            escape(&one.event_id).into(),
            Cell::state(one.state.map_or("", State::as_str)),
            one.fate.as_str().into(),
            keys(one, |state| state == EffectState::Done).into(),
            keys(one, |state| state != EffectState::Done).into(),
        ]
    });
    screen.line("")?;
    Ok(screen.fitted(&DELIVERIES, rows)?)
}

/// The keys of the effects of a delivery that are in such a state.
fn keys(planned: &Planned, is_meant: impl Fn(EffectState) -> bool) -> String {
    let effects = planned.effects.iter().filter(|effect| is_meant(effect.state));
    effects.map(|effect| escape(&effect.key)).collect::<Vec<_>>().join(", ")
}

/// What an operation is goes by the body of an event, and is noted when that is recorded.
fn tell_of_operations(plan: &Plan, routes: &Routes) {
    let filled = |number: &RouteNo| plan.routes.get(number).is_some_and(|route| route.fills > 0);
    for view in routes.views.iter().filter(|view| filled(&view.route)) {
        if view.rules.same_operation.is_some() {
            let name = escape(&view.name);
            notice(format!("what is new to `{name}` is compared with no other by same_operation"));
        }
    }
}

/// The name of a route, or its number where the store has none.
pub(super) fn name(routes: &Routes, number: RouteNo) -> String {
    let view = routes.views.iter().find(|view| view.route == number);
    view.map_or_else(|| number.0.to_string(), |view| view.name.clone())
}
