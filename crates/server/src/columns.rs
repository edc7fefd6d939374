//! How much room text takes on a terminal.

use std::io;

use terminal_size::terminal_size_of;
use unicode_width::UnicodeWidthStr;

/// The columns of a terminal that does not say how many it has.
const USUAL: usize = 80;

/// With fewer columns nothing can be told.
const LEAST: usize = 20;

/// Makes one picture of the characters around it.
const JOINER: char = '\u{200d}';

/// The columns there are: those of the terminal on stdout or stderr, else `$COLUMNS`, else 80.
pub fn terminal() -> usize {
    let shown = terminal_size_of(io::stdout()).or_else(|| terminal_size_of(io::stderr()));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let columns = shown.map(|(width, _)| usize::from(width.0)).or_else(said);
    columns.unwrap_or(USUAL).max(LEAST)
}

/// The columns that text takes on a terminal. It must be escaped: see [`escape`](crate::escape).
pub fn width(text: &str) -> usize {
    text.width()
}

/// Shortens text to at most so many columns; a `…` says that there was more.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        // Characters can change the width of those before them, so the text is measured.
        if width(&short) >= columns {
            short.pop();
            break;
        }
    }
    // What joined the characters goes with the one that was cut.
    while short.ends_with(JOINER) {
        short.pop();
    }
    short.push('…');
    short
}

/// Breaks text between words into lines of at most so many columns, where words allow it.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("größe"), 5);
        assert_eq!(width("漢字"), 4);
        assert_eq!(shorten("größe", 5), "größe");
        assert_eq!(shorten("größer", 5), "größ…");
        assert_eq!(shorten("漢字漢字", 8), "漢字漢字");
        assert_eq!(shorten("漢字漢字", 7), "漢字漢…");
        assert_eq!(shorten("漢字漢字", 6), "漢字…");
        assert_eq!(shorten("abc", 1), "…");
    }

    #[test]
    fn what_is_cut_is_never_wider_than_its_column() {
        let keycap = "1\u{fe0f}\u{20e3} first ".repeat(9);
        let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦".repeat(9);
        let sign = "\u{26a0}\u{fe0f} payment failed for customer number one".to_owned();
        for text in [sign, "\u{26a0}\u{fe0f}".repeat(30), keycap, family] {
            for columns in 1..60 {
                let short = shorten(&text, columns);
                assert!(width(&short) <= columns, "{short} in {columns}");
                assert!(short == text || short.ends_with('…'), "{short}");
            }
        }
    }
}
