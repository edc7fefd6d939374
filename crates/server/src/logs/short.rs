//! Log lines for a narrow terminal: one short line per decision and attempt, and whatever else
//! there is to say in one line each.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::{DECISION, DELIVERY};
use crate::columns::{terminal, wrap};
use crate::escape::escape;
use crate::line::{Colour, Line};

/// Writes events as short lines.
pub(super) struct Short;

impl<S, N> FormatEvent<S, N> for Short
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let colour = writer.has_ansi_escapes();
        let metadata = event.metadata();
        if [DECISION, DELIVERY].contains(&metadata.target()) {
            let mut line = Line::new("");
            event.record(&mut Told(&mut line));
            return writeln!(writer, "{}", line.text(terminal(), colour));
        }
        let mut others = Others::default();
        event.record(&mut others);
        let level = *metadata.level();
        let (word, code) = match level {
            Level::ERROR => ("error: ", Some(Colour::BAD)),
            Level::WARN => ("warning: ", Some(Colour::WAITS)),
            _ => ("", None),
        };
        let time = Line::new("").time();
        let Others { message, fields, hint } = others;
        // Warnings and errors need the details; other lines do not.
        let details = fields
            .iter()
            .filter(|(_, value)| level <= Level::WARN && !message.contains(value.as_str()));
        let details = details.map(|(name, value)| format!(", {name} {value}"));
        let text = format!("{word}{message}{}", details.collect::<String>());
        let hint = hint.map(|hint| format!("→ {hint}"));
        let room = terminal().saturating_sub(INDENT).max(INDENT);
        let mut lines = wrap(&text, room);
        lines.extend(hint.iter().flat_map(|hint| wrap(hint, room)));
        if let (Some(Colour(code)), Some(first)) = (code.filter(|_| colour), lines.first_mut()) {
            let word = word.trim_end();
            *first = first.replacen(word, &format!("\x1b[{code}m{word}\x1b[0m"), 1);
        }
        let mut front = format!("{time}  ");
        for line in lines {
            writeln!(writer, "{front}{line}")?;
            front = " ".repeat(INDENT);
        }
        Ok(())
    }
}

/// Columns of the time, and two blanks.
const INDENT: usize = 10;

/// Reads what a decision or an attempt says into a line.
struct Told<'a>(&'a mut Line);

impl Visit for Told<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let value = value.to_owned();
        let line = &mut self.0;
        match field.name() {
            "outcome" => line.outcome = value,
            "source" => line.source = Some(value),
            "route" => line.route = Some(value),
            "event_id" => line.event_id = Some(value),
            "event_type" => line.event_type = Some(value),
            "reason" => line.reason = Some(value),
            "hint" | "detail" | "effect" => line.detail = Some(value),
            "receipt" => line.receipt = Some(value),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let line = &mut self.0;
        match field.name() {
            "events" => line.events = Some(value),
            "attempt" => line.attempt = u32::try_from(value).ok(),
            "status" => line.status = u16::try_from(value).ok(),
            "retry_ms" => line.retry_ms = Some(value),
            "took_ms" => line.took_ms = Some(value),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "receipt" {
            self.0.receipt = Some(format!("{value:?}"));
        }
    }
}

/// Everything that some other event says.
#[derive(Default)]
struct Others {
    message: String,
    fields: Vec<(&'static str, String)>,
    hint: Option<String>,
}

impl Visit for Others {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "hint" => self.hint = Some(escape(value).into_owned()),
            name => self.fields.push((name, escape(value).into_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = escape(&value).into_owned(),
            name => self.fields.push((name, escape(&value).into_owned())),
        }
    }
}
