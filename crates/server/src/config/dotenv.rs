//! `.env` files: a variable in each line, values with or without quotes, and nothing else.
//!
//! A value means itself: `$WORD` is not replaced, since secrets may have a `$` in them. A line that
//! cannot be read is named by its number alone, since it may be one of a secret.

/// What a `.env` file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    /// Names and values, in the order of the file.
    pub(super) found: Vec<(String, String)>,
    /// The numbers of lines that cannot be read.
    pub(super) unread: Vec<usize>,
}

/// Reads the text of a file.
pub(super) fn parse(text: &str) -> Variables {
    let mut variables = Variables::default();
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let line = line.trim();
        let mut used = 1;
        if !line.is_empty() && !line.starts_with('#') {
            match variable(&lines[place..]) {
                Some((name, value, read)) => {
                    used = read;
                    variables.found.push((name, value));
                }
                None => variables.unread.push(place + 1),
            }
        }
        place += used;
    }
    variables
}

/// The variable that the first of these lines sets, and how many lines its value takes.
fn variable(lines: &[&str]) -> Option<(String, String, usize)> {
    let line = lines.first()?.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, rest) = line.split_once('=')?;
    let name = name.trim();
    let is_name = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_numeric()) {
        return None;
    }
    let rest = rest.trim_start();
    let Some(quote) = rest.chars().next().filter(|first| ['"', '\''].contains(first)) else {
        return Some((name.to_owned(), bare(rest).to_owned(), 1));
    };
    let mut text = rest[1..].to_owned();
    let mut read = 1;
    loop {
        if let Some((value, behind)) = quoted(&text, quote) {
            let behind = behind.trim();
            let is_over = behind.is_empty() || behind.starts_with('#');
            return is_over.then(|| (name.to_owned(), value, read));
        }
        text.push('\n');
        text.push_str(lines.get(read)?);
        read += 1;
    }
}

/// A value without quotes: up to a comment.
fn bare(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let end = text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len());
    text[..end].trim_end()
}

/// A value up to its closing quote, and what is behind that. In double quotes a backslash escapes.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return Some((value, &text[at + 1..])),
            '\\' if quote == '"' => match characters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let read = parse(text);
        assert_eq!(read.unread, [] as [usize; 0], "{text}");
        read.found
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_value_means_itself() {
        for (line, value) in [
            ("A=plain", "plain"),
            ("A = spaced # a comment", "spaced"),
            ("export A=b=c", "b=c"),
            ("A=", ""),
            ("A=a$HOME${X}#1", "a$HOME${X}#1"),
            ("A='a$b \\n #c' # d", "a$b \\n #c"),
            (r#"A="a$b \"c\" \\ \n""#, "a$b \"c\" \\ \n"),
            ("A=\"one\ntwo=2\n\"", "one\ntwo=2\n"),
            ("\u{feff}A=b\r", "b"),
        ] {
            assert_eq!(found(line), [pair("A", value)], "{line}");
        }
        let text = "# first\n\nA=1\nB='x\ny'\nC=3\n";
        assert_eq!(found(text), [pair("A", "1"), pair("B", "x\ny"), pair("C", "3")]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_numbered_and_passed_over() {
        let text = "A=1\na secret\n1=2\nB='open\nC=\"x\" y\nD=4\n=5";
        let read = parse(text);
        assert_eq!(read.found, [pair("A", "1"), pair("D", "4")]);
        assert_eq!(read.unread, [2, 3, 4, 5, 7]);
    }
}
