//! One pass over a JSON body for the few values we need.
//!
//! Nothing is built for the rest: it is checked to be JSON and skipped.

use std::borrow::Cow;

use crate::malformed::Malformed;
use crate::scan::{Scanner, Stop};

/// How deep a body may nest.
pub(crate) const DEPTH_MAX: usize = 128;

/// A JSON value exactly as it is written in the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// A value that was found to be JSON.
    pub(crate) fn new(written: &'a str) -> Raw<'a> {
        Raw(written)
    }

    /// The text of a string, or the digits of a number; none for anything else.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self.0.as_bytes().first()? {
            b'"' if !self.0.contains('\\') => Some(Cow::Borrowed(&self.0[1..self.0.len() - 1])),
            b'"' => serde_json::from_str(self.0).ok().map(Cow::Owned),
            b'-' | b'0'..=b'9' => Some(Cow::Borrowed(self.0)),
            _ => None,
        }
    }

    /// The same with the words `true` and `false`, which some signatures cover.
    pub(crate) fn signed_text(self) -> Option<Cow<'a, str>> {
        match self.0 {
            "true" | "false" => Some(Cow::Borrowed(self.0)),
            _ => self.text(),
        }
    }

    /// As it is written.
    pub(crate) fn written(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Where in `body`, which it was read from, the value is.
    pub(crate) fn span(self, body: &[u8]) -> std::ops::Range<usize> {
        let start = self.0.as_ptr() as usize - body.as_ptr() as usize;
        start..start + self.0.len()
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread looked: each time costs a pass over the whole body.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Finds the values at `pointers`, in their order. The whole body must be one JSON
/// object or array, and no key on the way to a pointer may be repeated.
pub(crate) fn look<'a>(
    body: &'a [u8],
    pointers: &[&str],
) -> Result<Vec<Option<Raw<'a>>>, Malformed> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    let text = std::str::from_utf8(body).map_err(|_| Malformed::NotUtf8)?;
    let mut tree = Tree::new(pointers.len());
    let places: Vec<Option<usize>> = pointers.iter().map(|pointer| tree.plant(pointer)).collect();
    let mut walk = Walk { scanner: Scanner::new(text), tree };
    match walk.document() {
        Ok(()) => {}
        Err(Halt::At(Stop::NotJson(at))) => {
            let before = &body[..at];
            let line = before.split(|byte| *byte == b'\n').count();
            let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            return Err(Malformed::NotJson { line, column: at - start + 1 });
        }
        Err(Halt::At(Stop::TooDeep)) => return Err(Malformed::TooDeep { limit: DEPTH_MAX }),
        Err(Halt::Repeated(node)) => {
            let key = walk.tree.nodes[node].key.to_string();
            return Err(Malformed::DuplicateKey { key });
        }
    }
    if !matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[')) {
        return Err(Malformed::NotObject);
    }
    let nodes = &walk.tree.nodes;
    Ok(places.into_iter().map(|place| place.and_then(|place| nodes[place].found)).collect())
}

/// The elements of an array that was found to be JSON, and one more than `limit` at most; none if
/// it is something else.
pub(crate) fn elements(array: Raw<'_>, limit: usize) -> Option<Vec<Raw<'_>>> {
    let mut elements = Vec::new();
    any_element(array, |element| {
        elements.push(element);
        elements.len() > limit
    })?;
    Some(elements)
}

/// Whether `is_it` holds for an element of an array that was found to be JSON, which is read up to
/// that one; none if it is something else.
pub(crate) fn any_element<'a>(
    array: Raw<'a>,
    mut is_it: impl FnMut(Raw<'a>) -> bool,
) -> Option<bool> {
    let mut scanner = Scanner::new(array.written());
    if !scanner.eat(b'[') {
        return None;
    }
    if scanner.space() == Some(b']') {
        return Some(false);
    }
    loop {
        scanner.space();
        let start = scanner.at();
        scanner.skip(DEPTH_MAX).ok()?;
        if is_it(Raw(scanner.since(start))) {
            return Some(true);
        }
        if !scanner.goes_on(b']').ok()? {
            return Some(false);
        }
    }
}

/// The members of an object that was found to be JSON, keys as they are written; none if it is
/// something else.
pub(crate) fn members(object: Raw<'_>) -> Option<Vec<(Raw<'_>, Raw<'_>)>> {
    let mut members = Vec::new();
    any_member(object, |key, value| {
        members.push((key, value));
        false
    })?;
    Some(members)
}

/// Whether `is_it` holds for a member of an object that was found to be JSON, which is read up to
/// that one; none if it is something else.
pub(crate) fn any_member<'a>(
    object: Raw<'a>,
    mut is_it: impl FnMut(Raw<'a>, Raw<'a>) -> bool,
) -> Option<bool> {
    let mut scanner = Scanner::new(object.written());
    scanner.expect(b'{').ok()?;
    if scanner.space() == Some(b'}') {
        return Some(false);
    }
    loop {
        scanner.space();
        let start = scanner.at();
        scanner.string().ok()?;
        let key = Raw(scanner.since(start));
        scanner.expect(b':').ok()?;
        scanner.space();
        let start = scanner.at();
        scanner.skip(DEPTH_MAX).ok()?;
        if is_it(key, Raw(scanner.since(start))) {
            return Some(true);
        }
        if !scanner.goes_on(b'}').ok()? {
            return Some(false);
        }
    }
}

/// The first key of an object that is none of `names`.
pub(crate) fn key_beside<'a>(object: &'a [u8], names: &[Cow<'_, str>]) -> Option<Cow<'a, str>> {
    let mut scanner = Scanner::new(std::str::from_utf8(object).ok()?);
    scanner.expect(b'{').ok()?;
    loop {
        scanner.space();
        let start = scanner.at();
        scanner.string().ok()?;
        let key = Raw(scanner.since(start)).text()?;
        if !names.contains(&key) {
            return Some(key);
        }
        scanner.expect(b':').ok()?;
        scanner.skip(DEPTH_MAX).ok()?;
        if !scanner.goes_on(b'}').ok()? {
            return None;
        }
    }
}

/// The pointers as a tree of keys, in which each is compared only where it can match.
struct Tree<'p, 'a> {
    /// The first one is the whole body.
    nodes: Vec<Node<'p, 'a>>,
}

struct Node<'p, 'a> {
    key: Cow<'p, str>,
    /// The key as the number of an element, where it is written as one.
    index: Option<usize>,
    /// Its first child; none if that is 0, which is nobody's child.
    child: usize,
    /// The next child of its parent; likewise.
    next: usize,
    found: Option<Raw<'a>>,
    /// Whether the key was met. Its value is found only after it was read.
    met: bool,
}

impl<'p, 'a> Tree<'p, 'a> {
    fn new(pointers: usize) -> Tree<'p, 'a> {
        let mut tree = Tree { nodes: Vec::with_capacity(2 + 2 * pointers) };
        tree.push(Cow::Borrowed(""), 0);
        tree
    }

    fn push(&mut self, key: Cow<'p, str>, next: usize) -> usize {
        let index = element_index(&key);
        self.nodes.push(Node { key, index, child: 0, next, found: None, met: false });
        self.nodes.len() - 1
    }

    /// Adds the way to a pointer and returns its end.
    fn plant(&mut self, pointer: &'p str) -> Option<usize> {
        let mut at = 0;
        let escapes = pointer.bytes().any(|byte| byte == b'~');
        for token in pointer.strip_prefix('/')?.split('/') {
            // A slash inside a key is written `~1` in a pointer, a tilde `~0`.
            let key = match escapes {
                true => Cow::Owned(token.replace("~1", "/").replace("~0", "~")),
                false => Cow::Borrowed(token),
            };
            at = self.child(at, &key).unwrap_or_else(|| {
                let new = self.push(key, self.nodes[at].child);
                self.nodes[at].child = new;
                new
            });
        }
        Some(at)
    }

    fn child(&self, parent: usize, key: &str) -> Option<usize> {
        self.children(parent).find(|child| self.nodes[*child].key == key)
    }

    /// The child that is this element of an array.
    fn child_at(&self, parent: usize, index: usize) -> Option<usize> {
        self.children(parent).find(|child| self.nodes[*child].index == Some(index))
    }

    /// How many elements of an array have to be looked at: up to the last one that is a child.
    fn wanted_elements(&self, parent: usize) -> usize {
        let indices = self.children(parent).filter_map(|child| self.nodes[child].index);
        indices.max().map_or(0, |last| last.saturating_add(1))
    }

    fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        let is_one = |child: &usize| *child != 0;
        let first = Some(self.nodes[parent].child).filter(is_one);
        std::iter::successors(first, move |child| Some(self.nodes[*child].next).filter(is_one))
    }
}

/// The number of an element as a pointer writes it: digits, and no zero before others.
fn element_index(key: &str) -> Option<usize> {
    let is_plain = key == "0" || !key.starts_with(['0', '+']);
    is_plain.then(|| key.parse().ok()).flatten()
}

/// Why a walk ended early.
enum Halt {
    At(Stop),
    /// The key of this node is there twice.
    Repeated(usize),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        Halt::At(stop)
    }
}

/// One pass over the body, along the tree where that goes and past the rest.
struct Walk<'p, 'a> {
    scanner: Scanner<'a>,
    tree: Tree<'p, 'a>,
}

impl Walk<'_, '_> {
    fn document(&mut self) -> Result<(), Halt> {
        self.value(Some(0), 0)?;
        match self.scanner.space() {
            None => Ok(()),
            Some(_) => Err(self.scanner.wrong().into()),
        }
    }

    /// A value at `node`, or one that nobody asked for, inside `depth` others.
    fn value(&mut self, node: Option<usize>, depth: usize) -> Result<(), Halt> {
        let room = DEPTH_MAX - depth;
        let Some(node) = node else { return Ok(self.scanner.skip(room)?) };
        let first = self.scanner.space();
        let start = self.scanner.at();
        let goes_on = self.tree.nodes[node].child != 0;
        match first {
            Some(b'{' | b'[') if room == 0 => return Err(Stop::TooDeep.into()),
            Some(b'{') if goes_on => self.object(node, depth)?,
            Some(b'[') if goes_on => self.array(node, depth)?,
            _ => self.scanner.skip(room)?,
        }
        self.tree.nodes[node].found = Some(Raw(self.scanner.since(start)));
        Ok(())
    }

    fn object(&mut self, node: usize, depth: usize) -> Result<(), Halt> {
        self.scanner.eat(b'{');
        self.scanner.space();
        if self.scanner.eat(b'}') {
            return Ok(());
        }
        loop {
            let child = self.key(node)?;
            self.scanner.expect(b':')?;
            self.value(child, depth + 1)?;
            if !self.scanner.goes_on(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads a key and finds the child of `node` that has it.
    fn key(&mut self, node: usize) -> Result<Option<usize>, Halt> {
        self.scanner.space();
        let start = self.scanner.at();
        let escapes = self.scanner.string()?;
        let quoted = self.scanner.since(start);
        let key = match escapes {
            // It may be a key we look for, written in another way.
            true => Cow::Owned(serde_json::from_str(quoted).map_err(|_| Stop::NotJson(start))?),
            false => Cow::Borrowed(&quoted[1..quoted.len() - 1]),
        };
        let Some(child) = self.tree.child(node, &key) else { return Ok(None) };
        match std::mem::replace(&mut self.tree.nodes[child].met, true) {
            true => Err(Halt::Repeated(child)),
            false => Ok(Some(child)),
        }
    }

    fn array(&mut self, node: usize, depth: usize) -> Result<(), Halt> {
        self.scanner.eat(b'[');
        self.scanner.space();
        if self.scanner.eat(b']') {
            return Ok(());
        }
        for index in 0..self.tree.wanted_elements(node) {
            let child = self.tree.child_at(node, index);
            self.value(child, depth + 1)?;
            if !self.scanner.goes_on(b']')? {
                return Ok(());
            }
        }
        Ok(self.scanner.skip_elements(DEPTH_MAX - depth)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

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

    /// Elements are compared by number, and those behind the last that is wanted not at all: a
    /// body of a million small elements costs what skipping it costs.
    #[test]
    fn a_long_array_costs_no_more_than_skipping_it() {
        let body = format!("[{}1]", "1,".repeat(1 << 20));
        let quickest = |pointers: &[&str]| {
            let time = |_| {
                let began = std::time::Instant::now();
                assert!(look(body.as_bytes(), pointers).is_ok());
                began.elapsed()
            };
            (0..5).map(time).min().unwrap()
        };
        let (skipped, looked) = (quickest(&[]), quickest(&["/event", "/3/id"]));
        assert!(looked < skipped * 3, "{looked:?} and not {skipped:?}");
        let texts = find("[7,8,[9]]", &["/1", "/2/0", "/01", "/+1", "/-1", "/3"]);
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        assert_eq!(texts, [Some("8"), Some("9"), None, None, None, None]);
        for wrong in ["[1,2,3", "[1,2,,3]", "[1,2}", "[1,2,]"] {
            assert!(look(wrong.as_bytes(), &["/0"]).is_err(), "{wrong}");
            assert!(look(wrong.as_bytes(), &["/a"]).is_err(), "{wrong}");
        }
        let deep = |levels: usize| format!("[0,{}{}]", "[".repeat(levels), "]".repeat(levels));
        assert!(look(deep(DEPTH_MAX - 1).as_bytes(), &["/0"]).is_ok());
        let too_deep = look(deep(DEPTH_MAX).as_bytes(), &["/0"]).unwrap_err();
        assert_eq!(too_deep, Malformed::TooDeep { limit: DEPTH_MAX });
    }

    #[test]
    fn a_value_may_be_wanted_whole_and_in_part() {
        let found = find(r#"{"a":{"b":"x"}}"#, &["/a", "/a/b", "/a/b"]);
        assert_eq!(found, [None, Some(Cow::Borrowed("x")), Some(Cow::Borrowed("x"))]);
    }

    /// What lenient parsers let pass.
    #[test]
    fn the_grammar_is_strict() {
        let wrong = [
            "",
            " ",
            "{",
            "[",
            "{]",
            "[}",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1 "b":2}"#,
            "{a:1}",
            "{'a':1}",
            "[01]",
            "[-]",
            "[1.]",
            "[.1]",
            "[1e]",
            "[1e+]",
            "[+1]",
            "[0x1]",
            "[NaN]",
            "[truE]",
            "[nul]",
            "[1]]",
            "[1]x",
            "{}{}",
            "[\"\t\"]",
            "[\"\0\"]",
            r#"["\x"]"#,
            r#"["\u12g4"]"#,
            r#"["\u123"]"#,
            r#"["a]"#,
            r#"["\"]"#,
            "[1]\u{c}",
            "\u{feff}[1]",
            "[1]\0",
            "/**/[1]",
            "[1]//",
        ];
        for text in wrong {
            let outcome = look(text.as_bytes(), &["/a"]);
            assert!(matches!(outcome, Err(Malformed::NotJson { .. })), "{text:?}: {outcome:?}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text:?}");
        }
        let at = look(b"{\"a\":1,\n \"b\":x}", &[]).unwrap_err();
        assert_eq!(at, Malformed::NotJson { line: 2, column: 6 });
        for text in ["[]", " {} ", "[1,-0,0.5e-7,\"\u{7f}\",true,false,null,{\"\":[{}]}]\r\n"] {
            assert!(look(text.as_bytes(), &["/a"]).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn text_is_borrowed_unless_it_has_escapes() {
        let found = find(r#"{"a":"x","b":"\u0078"}"#, &["/a", "/b"]);
        assert!(matches!(found[0], Some(Cow::Borrowed("x"))));
        assert!(matches!(&found[1], Some(Cow::Owned(text)) if text == "x"));
    }

    /// Text that is JSON, or nearly.
    fn near_json() -> impl Strategy<Value = String> {
        let token = prop_oneof![
            4 => "[{}\\[\\],:]",
            2 => "\"(a|b|\\\\u0061|\\\\ud83d|\\\\[nx/\"]|é|[\\x00-\\x7f]|[a-z ]{7,9})?\"?",
            2 => "-?[0-9.eE+-]{1,4}|true|false|null|tru",
            1 => "[ \\n\\t\\r\\x0c]",
        ];
        let leaf = prop_oneof![
            "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
            "\"([a-zé ]|\\\\[nrtbf/]|\\\\u00[0-9a-fA-F]{2}){0,12}\"",
            "true|false|null",
        ];
        let key = "\"(a|b|0|\\\\u0061|[c-e]{1,9})\"";
        let json = leaf.prop_recursive(5, 40, 5, move |inner| {
            let member =
                (key, "[ \\n]?", inner.clone()).prop_map(|(k, s, v)| format!("{k}{s}:{s}{v}"));
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(|all| format!("[{}]", all.join(","))),
                prop::collection::vec(member, 0..5)
                    .prop_map(|all| format!("{{{}}}", all.join(" ,"))),
            ]
        });
        let changed = (json.clone(), any::<prop::sample::Index>(), token.clone()).prop_map(
            |(text, place, token)| {
                let place = place.index(text.len() + 1);
                let place = (0..=place).rev().find(|&p| text.is_char_boundary(p)).unwrap_or(0);
                format!("{}{token}{}", &text[..place], &text[place..])
            },
        );
        let cut = (json.clone(), any::<prop::sample::Index>())
            .prop_map(|(text, place)| text.chars().take(place.index(text.len() + 1)).collect());
        let tokens = prop::collection::vec(token, 0..12).prop_map(|all| all.concat());
        prop_oneof![json, changed, cut, tokens]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 1024,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// We take for JSON what `serde_json` does, and read the same values.
        #[test]
        fn agrees_with_a_general_parser(text in near_json()) {
            const POINTERS: &[&str] = &["/a", "/a/b", "/0", "/b/0/a", "/a/1", "/b"];
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            match look(text.as_bytes(), POINTERS) {
                Err(Malformed::DuplicateKey { .. }) => {}
                Err(Malformed::NotObject) => prop_assert!(is_json),
                // A key on the way that is no text is refused, a skipped one is not.
                Err(Malformed::NotJson { .. }) => prop_assert!(!is_json || text.contains("\\ud")),
                Err(other) => prop_assert!(false, "{other}"),
                Ok(found) => {
                    prop_assert!(is_json);
                    let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
                    for (pointer, found) in POINTERS.iter().zip(found) {
                        let found = found.map(|raw| serde_json::from_str::<Value>(raw.0).unwrap());
                        prop_assert_eq!(value.pointer(pointer), found.as_ref());
                    }
                }
            }
        }
    }
}
