//! How much room text takes on a terminal.

use std::io;

use terminal_size::terminal_size_of;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns of a terminal that does not say how many it has.
const USUAL: usize = 80;

/// With fewer columns nothing can be told.
const LEAST: usize = 20;

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
    let mut taken = 0;
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken >= columns {
            break;
        }
        short.push(character);
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
}
