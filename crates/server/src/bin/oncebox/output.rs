//! What commands print: tables for people, one JSON object per line for programs.
//!
//! Whoever sends a webhook chooses much of the text shown here, and a terminal obeys some of what
//! it is shown. So everything that came from outside passes through [`escape`] first. JSON is
//! escaped the same way where JSON itself would let it through.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use jiff::Timestamp;
use serde::Serialize;

use oncebox_server::columns::{self, width};
pub(crate) use oncebox_server::columns::{shorten, wrap};
pub(crate) use oncebox_server::escape::escape;
use oncebox_server::escape::is_treacherous;

use crate::exit::no_colour;
use crate::table;
pub(crate) use crate::table::{Cell, Column};

/// Where results go. Errors of writing are returned, so that a closed pipe ends a command early
/// and quietly; whoever prints through it calls [`Screen::flush`] at the end.
pub(crate) struct Screen {
    out: BufWriter<StdoutLock<'static>>,
    is_terminal: bool,
    colour: bool,
    /// Of the last table, for the next page of it.
    layout: Option<table::Layout>,
}

impl Screen {
    /// The standard output.
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let colour = is_terminal && !no_colour();
        Self { out: BufWriter::new(stdout.lock()), is_terminal, colour, layout: None }
    }

    /// Whether a person is likely to look at it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line. The text must be ours or escaped.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.out.write_all(text.as_ref().trim_end_matches(' ').as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes bytes exactly as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Writes one object on a line of its own.
    pub(crate) fn json(&mut self, object: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(object)?;
        self.line(escape_json(&text))
    }

    /// Writes rows under their headings, as wide as they are. Columns named in `right` are numbers.
    /// A column that is empty in every row is left out.
    pub(crate) fn table(
        &mut self,
        headings: &[&'static str],
        right: &[usize],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> io::Result<()> {
        let column = |(place, heading): (usize, &&'static str)| match right.contains(&place) {
            true => Column::right(heading),
            false => Column::new(heading),
        };
        let columns: Vec<Column> = headings.iter().enumerate().map(column).collect();
        let cells = |row: Vec<String>| row.into_iter().map(Cell::from).collect();
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(cells).collect();
        self.lines(table::lines(&columns, &rows, usize::MAX, self.colour, &mut None))
    }

    /// Writes rows under their headings, as wide as the terminal at most. The next page of the same
    /// table follows in the same columns.
    pub(crate) fn fitted(
        &mut self,
        columns: &[Column],
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> io::Result<()> {
        let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let (most, layout) = (columns::terminal(), &mut self.layout);
        let lines = table::lines(columns, &rows, most, self.colour, layout);
        self.lines(lines)
    }

    fn lines(&mut self, lines: Vec<String>) -> io::Result<()> {
        lines.into_iter().try_for_each(|line| self.line(line))
    }

    /// Whether it is shown in colour.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour
    }

    /// Writes a text below a label, broken between words so that it fits the terminal.
    pub(crate) fn paragraph(&mut self, label: &str, text: &str) -> io::Result<()> {
        let room = columns::terminal().saturating_sub(width(label)).max(20);
        let mut label = label.to_owned();
        for line in wrap(text, room) {
            self.line(format!("{label}{line}"))?;
            label = " ".repeat(width(&label));
        }
        Ok(())
    }

    /// Marks something that holds.
    pub(crate) fn good(&self, text: &str) -> String {
        self.painted("32", text)
    }

    /// Marks something that does not hold.
    pub(crate) fn bad(&self, text: &str) -> String {
        self.painted("31", text)
    }

    /// Marks a heading.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.painted("1", text)
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Makes sure that everything was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Tells something beside the result, on stderr. The text must be ours or escaped.
pub(crate) fn notice(text: impl AsRef<str>) {
    // Nobody to tell is no reason to fail.
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
}

/// Bytes from outside as text that is safe to show; bytes that are not UTF-8 become `\xNN`.
pub(crate) fn escape_bytes(bytes: &[u8]) -> String {
    let mut safe = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        safe.push_str(&escape(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(safe, "\\x{byte:02x}");
        }
    }
    safe
}

/// Words of somebody outside in one line: line breaks become a space, the rest as in [`escape`].
pub(crate) fn escape_note(text: &str) -> String {
    let lines = text.split(['\r', '\n']).filter(|line| !line.is_empty());
    lines.map(escape).collect::<Vec<_>>().join(" ")
}

/// Several lines from outside: line breaks and tabs stay, the rest as in [`escape`].
pub(crate) fn escape_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| line.split('\t').map(escape).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// JSON text stays the same JSON, but shows nothing treacherous: JSON escapes control characters
/// by itself, and lets the rest, which can only be inside its strings, be written as `\uNNNN`.
fn escape_json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_treacherous) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_treacherous(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// A time to the second, in UTC: `2026-01-02 03:04:05Z`.
pub(crate) fn absolute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// How long before `now` a time was: `12s ago`, `3h ago`, `in 5m`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - time.as_second();
    if seconds < 0 {
        return format!("in {}", span(seconds.unsigned_abs()));
    }
    format!("{} ago", span(seconds.unsigned_abs()))
}

/// How long ago a time was, for a column of ages: `12s`, `3h`.
pub(crate) fn age(time: Timestamp, now: Timestamp) -> String {
    span(u64::try_from(now.as_second() - time.as_second()).unwrap_or(0))
}

/// A length of time by its largest unit.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A count with its noun: `1 receipt`, `2 receipts`, `3 deliveries`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if noun.ends_with("sh") => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(escape("evt_1"), "evt_1");
        assert_eq!(escape("größe 漢字 🎉"), "größe 漢字 🎉");
        assert_eq!(escape("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(escape("a\r\nb\tc\0"), "a\\u{d}\\u{a}b\\u{9}c\\u{0}");
        assert_eq!(escape("\u{202e}fdp\u{2066}\u{9b}"), "\\u{202e}fdp\\u{2066}\\u{9b}");
        assert_eq!(escape_bytes(b"ok\xff\x1b"), "ok\\xff\\u{1b}");
        assert_eq!(escape_lines("a\tb\n\x07"), "a\tb\n\\u{7}");
        assert_eq!(escape_note("a: b\r\n\n\x1b[2Jc\td\n"), "a: b \\u{1b}[2Jc\\u{9}d");
    }

    #[test]
    fn json_stays_the_same_json() {
        let object = serde_json::json!({ "id": "\u{202e}\u{1b}\u{e0041}x" });
        let text = object.to_string();
        let safe = escape_json(&text);
        assert!(!safe.chars().any(is_treacherous), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), object);
    }

    #[test]
    fn times_are_told_by_their_largest_unit() {
        let now = Timestamp::from_second(1_760_000_000).unwrap();
        let at = |seconds: i64| Timestamp::from_second(1_760_000_000 - seconds).unwrap();
        assert_eq!(relative(at(0), now), "0s ago");
        assert_eq!(relative(at(90), now), "1m ago");
        assert_eq!(relative(at(7_200), now), "2h ago");
        assert_eq!(relative(at(300_000), now), "3d ago");
        assert_eq!(relative(at(-61), now), "in 1m");
        assert_eq!(absolute(now), "2025-10-09 08:53:20Z");
    }

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(count(1, "delivery"), "1 delivery");
        assert_eq!(count(2, "delivery"), "2 deliveries");
        assert_eq!(count(0, "replay"), "0 replays");
        assert_eq!(count(3, "crash"), "3 crashes");
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(shorten("größe", 5), "größe");
        assert_eq!(shorten("größer", 5), "größ…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
    }
}
