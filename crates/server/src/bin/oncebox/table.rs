//! Tables that fit the terminal: what matters most comes first, and what has no room is left out.

use oncebox_server::columns::{shorten, width};
use oncebox_server::line::Colour;

/// Blanks between two columns.
const GAP: usize = 2;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    is_right: bool,
    least: Option<usize>,
}

impl Column {
    /// A column that is shown whole, or not at all.
    pub(crate) const fn new(heading: &'static str) -> Self {
        Self { heading, is_right: false, least: None }
    }

    /// A column of numbers.
    pub(crate) const fn right(heading: &'static str) -> Self {
        Self { heading, is_right: true, least: None }
    }

    /// A column whose text may be cut to so many columns of the terminal.
    pub(crate) const fn text(heading: &'static str, least: usize) -> Self {
        Self { heading, is_right: false, least: Some(least) }
    }
}

/// What a table shows in one place. The text must be ours or escaped.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    /// Text in a colour, if it has one.
    pub(crate) fn coloured(text: impl Into<String>, colour: Option<Colour>) -> Self {
        Self { text: text.into(), colour }
    }

    /// A state or an outcome, in its colour; what follows the first word explains it.
    pub(crate) fn state(text: impl Into<String>) -> Self {
        let text = text.into();
        let colour = text.split([' ', ',']).next().and_then(Colour::of_outcome);
        Self { text, colour }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), colour: None }
    }
}

/// The lines of a table that is at most so wide.
pub(crate) fn lines(
    columns: &[Column],
    rows: &[Vec<Cell>],
    most: usize,
    has_colour: bool,
) -> Vec<String> {
    let shown = layout(columns, rows, most);
    let heading = |place: usize| Cell::from(columns[place].heading.to_uppercase());
    let headings: Vec<Cell> = (0..columns.len()).map(heading).collect();
    let line = |row: &Vec<Cell>| {
        let cells = shown.iter().filter_map(|(place, wide)| Some((row.get(*place)?, place, *wide)));
        let cells = cells.map(|(cell, place, wide)| {
            let text = shorten(&cell.text, wide);
            let blank = " ".repeat(wide - width(&text));
            let text = match cell.colour.filter(|_| has_colour) {
                Some(Colour(code)) => format!("\x1b[{code}m{text}\x1b[0m"),
                None => text,
            };
            if columns[*place].is_right { blank + &text } else { text + &blank }
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    };
    std::iter::once(&headings).chain(rows).map(line).collect()
}

/// The columns that are shown, and how wide each is. One that is empty in every row is left out.
fn layout(columns: &[Column], rows: &[Vec<Cell>], most: usize) -> Vec<(usize, usize)> {
    let mut used = 0;
    let mut shown: Vec<(usize, usize, usize)> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| width(&cell.text));
        let widest = cells.max().unwrap_or(0);
        if widest == 0 && !rows.is_empty() {
            continue;
        }
        let heading = width(column.heading);
        let whole = widest.max(heading);
        let least = column.least.map_or(whole, |least| least.max(heading).min(whole));
        let gap = if shown.is_empty() { 0 } else { GAP };
        if !shown.is_empty() && used + gap + least > most {
            continue;
        }
        used += gap + least;
        shown.push((place, least, whole));
    }
    // What is left goes to those that were cut, the first ones first: up to twice the least, so
    // that a long text in front does not take everything, and then as much as they need.
    for twice in [true, false] {
        for (_, now, whole) in &mut shown {
            let wanted = if twice { (*whole).min(*now * 2) } else { *whole };
            let more = (wanted - *now).min(most.saturating_sub(used));
            *now += more;
            used += more;
        }
    }
    shown.into_iter().map(|(place, now, _)| (place, now.min(most))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::new("id"),
        Column::text("what", 6),
        Column::right("tries"),
        Column::text("detail", 8),
    ];

    fn row(id: &str, what: &str, tries: &str, detail: &str) -> Vec<Cell> {
        [id, what, tries, detail].map(Cell::from).into()
    }

    #[test]
    fn a_table_is_as_wide_as_it_needs_to_be() {
        let rows = [row("1", "ä", "12", "fine"), row("22", "漢字", "3", "")];
        let shown = lines(&COLUMNS, &rows, 80, false);
        assert_eq!(shown, ["ID  WHAT  TRIES  DETAIL", "1   ä        12  fine", "22  漢字      3",]);
    }

    #[test]
    fn what_has_no_room_is_cut_and_then_left_out() {
        let long = "x".repeat(50);
        let rows = [row("1", &long, "12", &long)];
        for most in [80, 60, 40, 30, 20, 12] {
            let shown = lines(&COLUMNS, &rows, most, false);
            assert!(shown.iter().all(|line| width(line) <= most), "{shown:#?}");
            assert!(shown[1].starts_with("1   xx"), "{shown:#?}");
        }
        assert!(lines(&COLUMNS, &rows, 20, false)[0].contains("TRIES"));
        assert!(!lines(&COLUMNS, &rows, 20, false)[0].contains("DETAIL"));
    }

    #[test]
    fn an_empty_column_is_left_out_and_colour_takes_no_room() {
        let state = vec![Cell::from("1"), Cell::state("dead (x)"), Cell::from(""), Cell::from("y")];
        let plain = lines(&COLUMNS, std::slice::from_ref(&state), 80, false);
        assert_eq!(plain, ["ID  WHAT      DETAIL", "1   dead (x)  y"]);
        let coloured = lines(&COLUMNS, &[state], 80, true);
        assert_eq!(coloured[1], "1   \x1b[31mdead (x)\x1b[0m  y");
    }
}
