//! The plan of a replay, as it is shown.

use std::collections::BTreeMap;

use oncebox::receipt::RouteNo;
use oncebox::replay::Plan;
use serde_json::json;

use crate::cmd::deliveries::view::Routes;
use crate::exit::Failure;
use crate::output::{Screen, escape, notice};

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
                "processed": route.processed,
                "busy": route.busy,
                "states": states,
            }))?;
        }
        return Ok(());
    }
    let headings = ["route", "would open", "new", "stale", "repeated", "processed", "busy"];
    let rows = plan.routes.iter().map(|(number, route)| {
        let touched = [route.opens, route.fills, route.stale, route.repeated];
        let mut cells = vec![escape(&name(routes, *number)).into_owned()];
        let left = [route.processed, route.busy];
        cells.extend(touched.iter().chain(&left).map(u64::to_string));
        cells
    });
    if !plan.routes.is_empty() {
        screen.table(&headings, &[1, 2, 3, 4, 5, 6], rows)?;
    }
    Ok(())
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
