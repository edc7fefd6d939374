//! Writing JSON text anew as common encoders do, in the order it has.

/// How an encoder puts space between values.
#[derive(Clone, Copy)]
pub(super) enum Space {
    /// None at all.
    Compact,
    /// One after every comma and colon.
    Spaced,
    /// A line for each value, indented by so many spaces.
    Indented(usize),
}

/// The same JSON with other space in it. Text that is no JSON gives some text.
pub(super) fn respace(text: &str, space: Space) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut chars = text.chars().filter(move |&c| {
        let keep = in_string || !c.is_ascii_whitespace();
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        keep
    });
    let line = |out: &mut String, depth: usize| {
        if let Space::Indented(width) = space {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth.min(128)));
        }
    };
    let (mut in_string, mut escaped, mut opened) = (false, false, false);
    for c in &mut chars {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if opened && !closes {
            line(&mut out, depth);
        }
        if closes {
            depth = depth.saturating_sub(1);
            if !opened {
                line(&mut out, depth);
            }
        }
        opened = matches!(c, '{' | '[');
        out.push(c);
        match c {
            '"' => in_string = true,
            '{' | '[' => depth += 1,
            ',' if matches!(space, Space::Spaced) => out.push(' '),
            ',' => line(&mut out, depth),
            ':' if !matches!(space, Space::Compact) => out.push(' '),
            _ => {}
        }
    }
    out
}

/// Every letter outside ASCII as `\u` and four hex digits.
pub(super) fn ascii_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "b":[1, 2],"a":{},"c":"x, \": y" }"#;

    #[test]
    fn space_changes_and_nothing_else() {
        assert_eq!(respace(TEXT, Space::Compact), r#"{"b":[1,2],"a":{},"c":"x, \": y"}"#);
        assert_eq!(respace(TEXT, Space::Spaced), r#"{"b": [1, 2], "a": {}, "c": "x, \": y"}"#);
        assert_eq!(
            respace(TEXT, Space::Indented(2)),
            "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {},\n  \"c\": \"x, \\\": y\"\n}"
        );
    }

    #[test]
    fn ascii_only_uses_pairs_for_rare_letters() {
        assert_eq!(ascii_only("é😀"), "\\u00e9\\ud83d\\ude00");
    }
}
