//! JSON laid out for reading without changing a single token.
//!
//! Parsing and printing again would sort keys, drop repeated ones and round numbers: exactly what
//! somebody who looks at a stored body must be able to see.

/// Deeper levels are no longer indented; a body chosen by a stranger may nest far.
const INDENT_MAX: usize = 32;

/// The text with line breaks and indentation between its tokens.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                copy_string(&mut characters, &mut out);
            }
            '{' | '[' => {
                out.push(character);
                skip_space(&mut characters);
                if matches!(characters.peek(), Some('}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

/// Copies the rest of a string, its closing quote included.
fn copy_string(characters: &mut impl Iterator<Item = char>, out: &mut String) {
    while let Some(character) = characters.next() {
        out.push(character);
        match character {
            '\\' => out.extend(characters.next()),
            '"' => return,
            _ => {}
        }
    }
}

fn skip_space(characters: &mut std::iter::Peekable<impl Iterator<Item = char>>) {
    while characters.peek().is_some_and(char::is_ascii_whitespace) {
        characters.next();
    }
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(INDENT_MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_as_they_were_sent() {
        let text = r#"{"b":1.50,"a":"x,\"{",  "b":[1, 2],"e":{},"f":[ ]}"#;
        let expected = [
            "{",
            "  \"b\": 1.50,",
            "  \"a\": \"x,\\\"{\",",
            "  \"b\": [",
            "    1,",
            "    2",
            "  ],",
            "  \"e\": {},",
            "  \"f\": []",
            "}",
        ]
        .join("\n");
        assert_eq!(pretty(text), expected);
    }

    #[test]
    fn deep_nesting_does_not_grow_without_bound() {
        let text = "[".repeat(10_000);
        assert!(pretty(&text).len() < 10_000 * (2 * INDENT_MAX + 2) + 2);
    }
}
