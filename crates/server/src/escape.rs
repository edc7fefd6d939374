//! Making text from outside safe to read, in a log and on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text from outside in which whatever could move a cursor, change colours, begin a new line or
/// reorder what is read is written as `\u{..}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_treacherous) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_treacherous(character) {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// Control characters, bidirectional marks and overrides, invisible characters and separators,
/// language tags: nothing an id needs and everything a forged line is made of.
pub fn is_treacherous(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
