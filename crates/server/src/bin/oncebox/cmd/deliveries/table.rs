//! Deliveries in a table: what one wants to know of them depends on what they are.

use jiff::Timestamp;
use oncebox::delivery::{Reason, State};
use oncebox::lookup::short_ids;
use oncebox::receipt::Oddity;
use oncebox::store::DeliveryRow;

use super::view::{Routes, Shown};
use crate::exit::Failure;
use crate::ids::short_deliveries;
use crate::output::{Cell, Column, Screen, age, escape, escape_note, relative};

/// What a list is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Deliveries in any state.
    All,
    /// Those that were given up: what went wrong matters.
    Dead,
    /// Those that wait: what for matters.
    Held,
}

const DELIVERY: Column = Column::new("delivery");
const AGE: Column = Column::new("age");
const EVENT: Column = Column::text("event id", 10);
const ROUTE: Column = Column::text("route", 7);
const TRIES: Column = Column::right("tries");
const TYPE: Column = Column::extra("type", 10);

const ALL: [Column; 9] = [
    DELIVERY,
    AGE,
    Column::text("event id", 8),
    Column::text("state", 15),
    ROUTE,
    Column::new("next"),
    Column::text("detail", 8),
    TRIES,
    TYPE,
];

const DEAD: [Column; 7] = [DELIVERY, AGE, EVENT, ROUTE, TRIES, Column::text("detail", 22), TYPE];

const HELD: [Column; 7] =
    [DELIVERY, AGE, EVENT, Column::new("why"), Column::text("waits for", 18), ROUTE, TYPE];

/// Prints a page of deliveries.
pub(super) fn print(
    screen: &mut Screen,
    routes: &Routes,
    page: &[DeliveryRow],
    shape: Shape,
    now: Timestamp,
) -> Result<(), Failure> {
    let ids: Vec<_> = page.iter().map(|row| row.delivery).collect();
    let rows = page.iter().zip(short_deliveries(&ids)).map(|(row, id)| {
        let shown = routes.shown_of(row);
        let text = |text: &str| Cell::from(escape(text));
        let front = [Cell::from(id), age(row.received_at, now).into(), text(&row.event_id)];
        let (route, event_type) = (text(&row.route), text(&row.event_type));
        let tries = Cell::from(row.counts.attempts.to_string());
        let back = match shape {
            Shape::Dead => vec![route, tries, detail(row), event_type],
            Shape::Held => {
                let why = shown.reason.map_or("", Reason::as_str);
                let waits = waits_for(row, shown).unwrap_or_default();
                vec![why.into(), waits.into(), route, event_type]
            }
            Shape::All => {
                let due = due(row, shown, now).unwrap_or_default();
                let state = Cell::state(shown.to_string());
                vec![state, route, due.into(), detail(row), tries, event_type]
            }
        };
        front.into_iter().chain(back).collect()
    });
    match shape {
        Shape::All => screen.fitted(&ALL, rows)?,
        Shape::Dead => screen.fitted(&DEAD, rows)?,
        Shape::Held => screen.fitted(&HELD, rows)?,
    }
    Ok(())
}

/// What there is to say of it: the effect that it waits for, or the last words of its consumer.
fn detail(row: &DeliveryRow) -> Cell {
    let text = row.waits_for.as_deref().or(row.detail.as_deref()).or(row.summary.as_deref());
    text.map(escape_note).unwrap_or_default().into()
}

/// What a held delivery waits for; none if it is not held.
pub(crate) fn waits_for(row: &DeliveryRow, shown: Shown) -> Option<String> {
    let first = || {
        let first = row.mark.and_then(|mark| mark.first);
        first.map(|first| short_ids(&[first]).concat()).unwrap_or_default()
    };
    let route = escape(&row.route);
    let words = match shown.reason.filter(|_| shown.state == State::Held)? {
        // The route has a column of its own.
        Reason::Paused => "`routes resume`".to_owned(),
        Reason::NoRoute => format!("[routes.{route}] in the configuration"),
        Reason::UnknownEffect => {
            format!("effect {}", escape(row.waits_for.as_deref().unwrap_or("unknown")))
        }
        Reason::Damaged => "you: its body is damaged".to_owned(),
        Reason::Twin | Reason::Conflict => match row.mark.map(|mark| mark.oddity) {
            Some(Oddity::Conflict) => format!("you: conflicts with {}", first()),
            _ => format!("you: twin of {}", first()),
        },
        _ => match &row.behind {
            Some(behind) => format!("{} ({})", escape(&behind.event_id), behind.state),
            None => "its turn".to_owned(),
        },
    };
    Some(words)
}

/// When something happens to it next, if time alone is what it waits for.
pub(crate) fn due(row: &DeliveryRow, shown: Shown, now: Timestamp) -> Option<String> {
    match shown.state {
        State::Received | State::Retrying => match row.due_at? {
            due if due.as_second() <= now.as_second() => Some("now".to_owned()),
            due => Some(relative(due, now)),
        },
        _ => None,
    }
}
