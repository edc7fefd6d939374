//! The dictionaries of structured fields (RFC 8941) that HTTP message signatures are written in,
//! as far as they need them: anything else is refused, never guessed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How many parts of a request one signature may cover.
const COMPONENTS_MAX: usize = 32;

/// What one signature covers, and how.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) label: &'a str,
    /// The list and its parameters exactly as sent, for they are signed so.
    pub(super) written: &'a str,
    pub(super) components: Vec<Component<'a>>,
    pub(super) created: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) keyid: Option<&'a str>,
    pub(super) alg: Option<&'a str>,
}

/// A part of the request: a header by its name in lower case, or one that begins with `@`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component<'a> {
    pub(super) name: &'a str,
}

/// Reads a `Signature-Input`; none if it is not written as it must be. A member that covers a part,
/// or has a parameter, that is not known here is left out while another remains.
pub(super) fn parse(text: &str) -> Option<Vec<Input<'_>>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut labels: Vec<&str> = Vec::new();
    let mut inputs: Vec<Input<'_>> = Vec::new();
    loop {
        let label = cursor.key()?;
        cursor.expect(b'=')?;
        if labels.contains(&label) {
            return None;
        }
        labels.push(label);
        let start = cursor.at;
        match cursor.input(label) {
            Some(input) => inputs.push(input),
            None => {
                cursor.at = start;
                cursor.skip_member()?;
            }
        }
        if !cursor.goes_on()? {
            return Some(inputs).filter(|inputs| !inputs.is_empty());
        }
    }
}

/// Reads a dictionary of byte sequences, such as `Signature` and `Content-Digest`.
pub(super) fn byte_sequences(text: &str) -> Option<Vec<(&str, Vec<u8>)>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut found: Vec<(&str, Vec<u8>)> = Vec::new();
    loop {
        let name = cursor.key()?;
        cursor.expect(b'=')?;
        cursor.expect(b':')?;
        let encoded = cursor.until(b':')?;
        let bytes = STANDARD.decode(encoded).ok()?;
        if found.iter().any(|(known, _)| *known == name) {
            return None;
        }
        found.push((name, bytes));
        if !cursor.goes_on()? {
            return Some(found);
        }
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&fits) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// What stands before `end`, and moves behind that.
    fn until(&mut self, end: u8) -> Option<&'a str> {
        let found = self.take(|byte| byte != end);
        self.expect(end)?;
        Some(found)
    }

    /// Moves to the end of a member: to the comma outside of its strings and lists.
    fn skip_member(&mut self) -> Option<()> {
        let (mut in_string, mut depth) = (false, 0_usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' if in_string => self.at += 1,
                b'"' => in_string = !in_string,
                b'(' if !in_string => depth += 1,
                b')' if !in_string => depth = depth.checked_sub(1)?,
                b',' if !in_string && depth == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        (!in_string && depth == 0).then_some(())
    }

    /// A key: lower-case letters, digits and a few signs.
    fn key(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        if !(first.is_ascii_lowercase() || first == b'*') {
            return None;
        }
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Some(self.take(plain))
    }

    /// Whether another member follows; none for what is neither a member nor the end.
    fn goes_on(&mut self) -> Option<bool> {
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        self.take(blank);
        if self.peek().is_none() {
            return Some(false);
        }
        self.expect(b',')?;
        self.take(blank);
        Some(true)
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let text = self.until(b'"')?;
        text.bytes().all(|byte| byte != b'\\' && (b' '..=b'~').contains(&byte)).then_some(text)
    }

    /// A list of parts, and its parameters.
    fn input(&mut self, label: &'a str) -> Option<Input<'a>> {
        let start = self.at;
        let components = self.components()?;
        let (mut created, mut expires, mut keyid, mut alg) = (None, None, None, None);
        while self.eat(b';') {
            let key = self.key()?;
            self.expect(b'=')?;
            let is_new = match (key, self.peek()?) {
                ("created", b'0'..=b'9') => created.replace(self.integer()?).is_none(),
                ("expires", b'0'..=b'9') => expires.replace(self.integer()?).is_none(),
                ("keyid", b'"') => keyid.replace(self.string()?).is_none(),
                ("alg", b'"') => alg.replace(self.string()?).is_none(),
                ("nonce" | "tag", b'"') => self.string().is_some(),
                _ => false,
            };
            is_new.then_some(())?;
        }
        let written = &self.text[start..self.at];
        Some(Input { label, written, components, created, expires, keyid, alg })
    }

    /// Names in quotes, separated by one space. None may be there twice, or have parameters.
    fn components(&mut self) -> Option<Vec<Component<'a>>> {
        self.expect(b'(')?;
        let mut components = Vec::new();
        while !self.eat(b')') {
            if !components.is_empty() {
                self.expect(b' ')?;
            }
            let component = Component { name: self.string()? };
            let plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
            let is_sound = !component.name.is_empty()
                && component.name.bytes().all(plain)
                && !components.contains(&component)
                && components.len() < COMPONENTS_MAX;
            is_sound.then_some(())?;
            components.push(component);
        }
        Some(components)
    }

    fn integer(&mut self) -> Option<i64> {
        let digits = self.take(|byte| byte.is_ascii_digit());
        if digits.len() > 15 { None } else { digits.parse().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_otherwise_is_refused() {
        let sound = r#"sig1=("@method" "content-digest");created=1;keyid="a";alg="ed25519""#;
        assert_eq!(parse(sound).unwrap()[0].components.len(), 2);
        assert_eq!(parse(sound).unwrap()[0].written, &sound["sig1=".len()..]);
        for text in [
            "",
            "sig1",
            "sig1=",
            r#"sig1=("a""#,
            r#"sig1=("a"  "b")"#,
            r#"sig1=("a" "a")"#,
            r#"sig1=("A")"#,
            r#"sig1=("a";sf)"#,
            r#"sig1=("@query-param";name="a")"#,
            r#"sig1=("a");created="1""#,
            r#"sig1=("a");created=1;created=2"#,
            r#"sig1=("a");created=1234567890123456"#,
            r#"sig1=("a");keyid="\"""#,
            r#"sig1=("a");other=1"#,
            r#"sig1=("a"),"#,
            r#"sig1=("a"), sig1=("b")"#,
            r#"Sig1=("a")"#,
            r#"sig1=("a") x"#,
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert_eq!(parse(r#"a=("a"), b=("b")"#).unwrap().len(), 2);
    }

    #[test]
    fn byte_sequences_are_read_strictly() {
        assert_eq!(byte_sequences("a=:AA==:, b=::").unwrap().len(), 2);
        for text in ["", "a", "a=AA==", "a=:AA==", "a=:!:", "a=:AA==:, a=:AA==:", "a=:AA==:;x"] {
            assert!(byte_sequences(text).is_none(), "{text}");
        }
    }
}
