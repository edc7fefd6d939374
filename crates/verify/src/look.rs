//! One pass over a JSON body for the few values we need.
//!
//! Nothing is built for the rest: it is checked to be JSON and skipped.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::malformed::Malformed;

/// How deep a body may nest.
pub(crate) const DEPTH_MAX: usize = 128;

/// A JSON value exactly as it is written in the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The text of a string, or the digits of a number; none for anything else.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self.0.as_bytes().first()? {
            b'"' if !self.0.contains('\\') => Some(Cow::Borrowed(&self.0[1..self.0.len() - 1])),
            b'"' => serde_json::from_str(self.0).ok().map(Cow::Owned),
            b'-' | b'0'..=b'9' => Some(Cow::Borrowed(self.0)),
            _ => None,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Where in `body`, which it was read from, the value is.
    pub(crate) fn span(self, body: &[u8]) -> std::ops::Range<usize> {
        let start = self.0.as_ptr() as usize - body.as_ptr() as usize;
        start..start + self.0.len()
    }
}

/// Finds the values at `pointers`, in their order. The whole body must be one JSON
/// object or array, and no key on the way to a pointer may be repeated.
pub(crate) fn look<'a>(
    body: &'a [u8],
    pointers: &[&str],
) -> Result<Vec<Option<Raw<'a>>>, Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| Malformed::NotUtf8)?;
    if depth_exceeds(body, DEPTH_MAX) {
        return Err(Malformed::TooDeep { limit: DEPTH_MAX });
    }
    let mut found = vec![None; pointers.len()];
    let mut duplicate = None;
    let wanted: Vec<(usize, &str)> =
        pointers.iter().enumerate().filter_map(|(n, p)| Some((n, p.strip_prefix('/')?))).collect();
    let escapes = pointers.iter().any(|pointer| pointer.contains('~'));
    let node = Node { wanted: &wanted, escapes, found: &mut found, duplicate: &mut duplicate };
    let mut parser = serde_json::Deserializer::from_str(text);
    let outcome = node.deserialize(&mut parser).and_then(|()| parser.end());
    match (outcome, duplicate) {
        (Ok(()), _) if !matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[')) => {
            Err(Malformed::NotObject)
        }
        (Ok(()), _) => Ok(found),
        (Err(_), Some(key)) => Err(Malformed::DuplicateKey { key }),
        (Err(error), None) => {
            Err(Malformed::NotJson { line: error.line(), column: error.column() })
        }
    }
}

/// Whether the brackets nest deeper than `limit`.
///
/// Few bodies hold more than `limit` brackets at all, and counting them is much
/// faster than following them, so that comes first.
fn depth_exceeds(body: &[u8], limit: usize) -> bool {
    // `[` and `{` differ in one bit. Adding up bytes in short runs is what compilers
    // turn into vector instructions.
    let opening: usize = body
        .chunks(255)
        .map(|run| usize::from(run.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>()))
        .sum();
    if opening <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

/// An object or array on the way to some pointers. It holds what is left of each.
struct Node<'n, 'a> {
    wanted: &'n [(usize, &'n str)],
    /// Whether any pointer holds a `~`, which makes comparing slow.
    escapes: bool,
    found: &'n mut [Option<Raw<'a>>],
    duplicate: &'n mut Option<String>,
}

/// Where the pointers of a node go below one key.
struct Below<'n> {
    /// Which pointers, by their place in the node.
    mask: u64,
    /// Pointers that end here.
    ending: Vec<usize>,
    /// Pointers that go on, and what is left of them.
    going_on: Vec<(usize, &'n str)>,
}

impl<'n, 'a> Node<'n, 'a> {
    fn below(&self, key: &str) -> Below<'n> {
        let mut below = Below { mask: 0, ending: Vec::new(), going_on: Vec::new() };
        for (place, &(number, pointer)) in self.wanted.iter().enumerate() {
            let Some(rest) = rest_after(pointer, key, self.escapes) else { continue };
            below.mask |= 1 << (place % 64);
            match rest {
                Some(rest) => below.going_on.push((number, rest)),
                None => below.ending.push(number),
            }
        }
        below
    }

    fn child<'c>(&'c mut self, wanted: &'c [(usize, &'c str)]) -> Node<'c, 'a> {
        Node { wanted, escapes: self.escapes, found: self.found, duplicate: self.duplicate }
    }

    /// Keeps a value at which pointers end, and looks inside it for those that go on.
    fn keep<E: serde::de::Error>(
        &mut self,
        below: &Below<'_>,
        value: &'a RawValue,
    ) -> Result<(), E> {
        for &number in &below.ending {
            self.found[number] = Some(Raw(value.get()));
        }
        if below.going_on.is_empty() {
            return Ok(());
        }
        let mut parser = serde_json::Deserializer::from_str(value.get());
        self.child(&below.going_on).deserialize(&mut parser).map_err(E::custom)
    }
}

/// What is left of a pointer below `key`, if it leads there.
///
/// This runs for every key of an object, so it must be quick to say no: most keys
/// differ from most pointers in their first letter.
fn rest_after<'n>(pointer: &'n str, key: &str, escapes: bool) -> Option<Option<&'n str>> {
    if escapes {
        // A slash inside a key is written `~1` in a pointer, a tilde `~0`.
        let (token, rest) = pointer.split_once('/').map_or((pointer, None), |(t, r)| (t, Some(r)));
        return (token.replace("~1", "/").replace("~0", "~") == key).then_some(rest);
    }
    let rest = pointer.strip_prefix(key)?;
    match rest.strip_prefix('/') {
        // Without escapes no pointer means a key with a slash in it.
        _ if key.contains('/') => None,
        Some(rest) => Some(Some(rest)),
        None => rest.is_empty().then_some(None),
    }
}

impl<'a> DeserializeSeed<'a> for Node<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Node<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0_u64;
        while let Some(Key(key)) = map.next_key()? {
            let below = self.below(&key);
            if below.mask & seen != 0 {
                *self.duplicate = Some(key.into_owned());
                return Err(A::Error::custom("repeated key"));
            }
            seen |= below.mask;
            if !below.ending.is_empty() {
                let value = map.next_value()?;
                self.keep(&below, value)?;
            } else if below.going_on.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(self.child(&below.going_on))?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
        for index in 0_usize.. {
            let below = self.below(&index.to_string());
            let more = if !below.ending.is_empty() {
                let value = seq.next_element()?;
                value.map(|value| self.keep(&below, value)).transpose()?.is_some()
            } else if below.going_on.is_empty() {
                seq.next_element::<IgnoredAny>()?.is_some()
            } else {
                seq.next_element_seed(self.child(&below.going_on))?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    // A scalar where an object was hoped for: nothing to find below it.

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A key, borrowed from the body unless it is written with escapes.
struct Key<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for Key<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Key<'a>, D::Error> {
        struct KeyVisitor;

        impl<'a> Visitor<'a> for KeyVisitor {
            type Value = Key<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'a str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(body: &'a str, pointers: &[&str]) -> Vec<Option<Cow<'a, str>>> {
        let found = look(body.as_bytes(), pointers).unwrap();
        found.into_iter().map(|raw| raw.and_then(Raw::text)).collect()
    }

    #[test]
    fn pointers_lead_through_objects_and_arrays() {
        let body = r#"{"a":[{"b":1},{"b":2,"c":[3,4]}],"a/b":5,"m~n":6,"":7}"#;
        let found = find(body, &["/a/1/b", "/a/1/c/0", "/a~1b", "/m~0n", "/a/b", "/a/2/b"]);
        let texts: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(texts, [Some("2"), Some("3"), Some("5"), Some("6"), None, None]);
        // The same without any escape takes the quick way.
        assert_eq!(find(body, &["/a/0/b", "/a/b"]), [Some(Cow::Borrowed("1")), None]);
    }

    #[test]
    fn a_value_may_be_wanted_whole_and_in_part() {
        let found = find(r#"{"a":{"b":"x"}}"#, &["/a", "/a/b", "/a/b"]);
        assert_eq!(found, [None, Some(Cow::Borrowed("x")), Some(Cow::Borrowed("x"))]);
    }

    #[test]
    fn text_is_borrowed_unless_it_has_escapes() {
        let found = find(r#"{"a":"x","b":"\u0078"}"#, &["/a", "/b"]);
        assert!(matches!(found[0], Some(Cow::Borrowed("x"))));
        assert!(matches!(&found[1], Some(Cow::Owned(text)) if text == "x"));
    }
}
