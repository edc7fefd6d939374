//! Tables that fit the terminal: what matters most comes first, and what has no room is left out.

use oncebox::limits::LIST_PAGE;
use oncebox_server::columns::{shorten, width};
use oncebox_server::line::Colour;

/// Blanks between two columns.
const GAP: usize = 2;

/// Columns of the terminal that most texts fit in.
const COMFORTABLE: usize = 32;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    is_right: bool,
    is_extra: bool,
    least: Option<usize>,
}

impl Column {
    /// A column that is shown whole, or not at all.
    pub(crate) const fn new(heading: &'static str) -> Self {
        Self { heading, is_right: false, is_extra: false, least: None }
    }

    /// A column of numbers.
    pub(crate) const fn right(heading: &'static str) -> Self {
        Self { heading, is_right: true, is_extra: false, least: None }
    }

    /// A column whose text may be cut to so many columns of the terminal.
    pub(crate) const fn text(heading: &'static str, least: usize) -> Self {
        Self { heading, is_right: false, is_extra: false, least: Some(least) }
    }

    /// As [`Column::text`], shown only if those before it have all the room they need.
    pub(crate) const fn extra(heading: &'static str, least: usize) -> Self {
        Self { is_extra: true, ..Self::text(heading, least) }
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

/// The lines of a table that is at most so wide. What goes on with the table of `layout` keeps its
/// columns and has no headings, as long as its rows have room in them.
pub(crate) fn lines(
    columns: &[Column],
    rows: &[Vec<Cell>],
    most: usize,
    has_colour: bool,
    layout: &mut Option<Layout>,
) -> Vec<String> {
    let goes_on = layout.as_ref().is_some_and(|layout| layout.holds(columns, rows));
    if !goes_on {
        *layout = None;
    }
    let shown = &layout.get_or_insert_with(|| Layout::new(columns, rows, most)).shown;
    let heading = |column: &Column| Cell::from(column.heading.to_uppercase());
    let headings: Vec<Cell> = columns.iter().map(heading).collect();
    let line = |row: &Vec<Cell>| {
        let cells = shown.iter().filter_map(|(place, wide)| Some((row.get(*place)?, place, *wide)));
        let cells = cells.map(|(cell, place, wide)| {
            let text = shorten(&cell.text, wide);
            let blank = " ".repeat(wide.saturating_sub(width(&text)));
            let text = match cell.colour.filter(|_| has_colour) {
                Some(Colour(code)) => format!("\x1b[{code}m{text}\x1b[0m"),
                None => text,
            };
            if columns[*place].is_right { blank + &text } else { text + &blank }
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    };
    let headings = std::iter::once(&headings).filter(|_| !goes_on);
    headings.chain(rows).map(line).collect()
}

/// The columns of a table that are shown.
#[derive(Debug)]
pub(crate) struct Layout {
    headings: Vec<&'static str>,
    /// Which are shown, and how wide each is.
    shown: Vec<(usize, usize)>,
    /// Those that are left out because they are empty in every row.
    empty: Vec<usize>,
}

impl Layout {
    fn new(columns: &[Column], rows: &[Vec<Cell>], most: usize) -> Self {
        let is_empty = |place: &usize| is_left_out(rows, *place);
        Self {
            headings: columns.iter().map(|column| column.heading).collect(),
            shown: layout(columns, rows, most),
            empty: (0..columns.len()).filter(is_empty).collect(),
        }
    }

    /// Whether it is of this table, and hides nothing of these rows that it should show.
    fn holds(&self, columns: &[Column], rows: &[Vec<Cell>]) -> bool {
        let headings = columns.iter().map(|column| column.heading);
        let is_whole = |(place, wide): &(usize, usize)| {
            columns[*place].least.is_some() || widest(rows, *place) <= *wide
        };
        self.headings.iter().copied().eq(headings)
            && self.shown.iter().all(is_whole)
            && self.empty.iter().all(|place| widest(rows, *place) == 0)
    }
}

/// The columns of the terminal that the widest text of a column takes.
fn widest(rows: &[Vec<Cell>], place: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| width(&cell.text));
    cells.max().unwrap_or(0)
}

/// Whether a column has nothing to show. In the first of several pages that is not known yet.
fn is_left_out(rows: &[Vec<Cell>], place: usize) -> bool {
    (1..LIST_PAGE).contains(&rows.len()) && widest(rows, place) == 0
}

/// The columns that are shown, and how wide each is. One that is empty in every row is left out.
fn layout(columns: &[Column], rows: &[Vec<Cell>], most: usize) -> Vec<(usize, usize)> {
    let (mut used, mut wanted) = (0, 0);
    let mut shown: Vec<(usize, usize, usize)> = Vec::new();
    let mut has_room = true;
    for (place, column) in columns.iter().enumerate() {
        let widest = widest(rows, place);
        if is_left_out(rows, place) {
            continue;
        }
        let heading = width(column.heading);
        let whole = widest.max(heading);
        let least = column.least.map_or(whole, |least| least.max(heading).min(whole));
        let gap = if shown.is_empty() { 0 } else { GAP };
        let taken = if column.is_extra { wanted } else { used };
        let fits = taken + gap + least <= most && (has_room || !column.is_extra);
        if !shown.is_empty() && !fits {
            has_room = false;
            continue;
        }
        used += gap + least;
        wanted += gap + whole.min(least.max(COMFORTABLE));
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

    fn shown_in(columns: &[Column], rows: &[Vec<Cell>], most: usize, colour: bool) -> Vec<String> {
        lines(columns, rows, most, colour, &mut None)
    }

    fn row(id: &str, what: &str, tries: &str, detail: &str) -> Vec<Cell> {
        [id, what, tries, detail].map(Cell::from).into()
    }

    #[test]
    fn a_table_is_as_wide_as_it_needs_to_be() {
        let rows = [row("1", "ä", "12", "fine"), row("22", "漢字", "3", "")];
        let shown = shown_in(&COLUMNS, &rows, 80, false);
        assert_eq!(shown, ["ID  WHAT  TRIES  DETAIL", "1   ä        12  fine", "22  漢字      3",]);
    }

    #[test]
    fn what_has_no_room_is_cut_and_then_left_out() {
        let long = "x".repeat(50);
        let rows = [row("1", &long, "12", &long)];
        for most in [80, 60, 40, 30, 20, 12] {
            let shown = shown_in(&COLUMNS, &rows, most, false);
            assert!(shown.iter().all(|line| width(line) <= most), "{shown:#?}");
            assert!(shown[1].starts_with("1   xx"), "{shown:#?}");
        }
        assert!(shown_in(&COLUMNS, &rows, 20, false)[0].contains("TRIES"));
        assert!(!shown_in(&COLUMNS, &rows, 20, false)[0].contains("DETAIL"));
    }

    #[test]
    fn an_empty_column_is_left_out_and_colour_takes_no_room() {
        let state = vec![Cell::from("1"), Cell::state("dead (x)"), Cell::from(""), Cell::from("y")];
        let plain = shown_in(&COLUMNS, std::slice::from_ref(&state), 80, false);
        assert_eq!(plain, ["ID  WHAT      DETAIL", "1   dead (x)  y"]);
        let coloured = shown_in(&COLUMNS, &[state], 80, true);
        assert_eq!(coloured[1], "1   \x1b[31mdead (x)\x1b[0m  y");
    }

    #[test]
    fn what_matters_less_gives_way_first() {
        let columns = [Column::new("id"), Column::text("type", 6), Column::extra("object", 6)];
        let row = |kind: &str| [["1", kind, "in_1"].map(Cell::from).into()];
        let shown = shown_in(&columns, &row("invoice.payment_failed"), 30, false);
        assert_eq!(shown, ["ID  TYPE", "1   invoice.payment_failed"]);
        let shown = shown_in(&columns, &row("invoice.paid"), 30, false);
        assert_eq!(shown, ["ID  TYPE          OBJECT", "1   invoice.paid  in_1"]);
        // One that has no room leaves none to an extra one.
        let columns = [Column::new("id"), Column::text("detail", 20), Column::extra("type", 4)];
        let long = "x".repeat(30);
        let shown = shown_in(&columns, &[["1", &long, "a.b"].map(Cell::from).into()], 20, false);
        assert_eq!(shown, ["ID", "1"]);
    }

    #[test]
    fn the_next_page_goes_on_without_headings() {
        let mut layout = None;
        let mut page =
            |rows: &[Vec<Cell>]| lines(&COLUMNS, rows, 40, false, &mut layout).join("\n");
        let first = page(&[row("1", "paid", "", "fine")]);
        assert_eq!(first, "ID  WHAT  DETAIL\n1   paid  fine");
        assert_eq!(page(&[row("2", "refused", "", "no")]), "2   ref…  no");
        // What would be hidden, or an id that would be cut, begins anew.
        assert_eq!(page(&[row("3", "paid", "7", "")]), "ID  WHAT  TRIES\n3   paid      7");
        assert_eq!(page(&[row("444", "paid", "7", "")]), "ID   WHAT  TRIES\n444  paid      7");
    }
}
