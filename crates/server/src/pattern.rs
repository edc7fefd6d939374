//! Event types with `*` for any text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An event type in which `*` stands for any text, the empty one and dots included. Letters are
/// compared as they are: providers' types differ by case.
///
/// ```
/// use oncebox_server::pattern::Pattern;
///
/// assert!(Pattern::new("invoice.*").matches("invoice.paid"));
/// assert!(!Pattern::new("invoice.*").matches("Invoice.paid"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Takes a pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The list that takes every event.
    pub fn all() -> Vec<Self> {
        vec![Self::new("*")]
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it takes this event type.
    pub fn matches(&self, event_type: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = event_type.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // Taking each middle part at its first place leaves the most for those after it.
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

/// Whether any of the patterns takes this event type.
pub fn any_matches(patterns: &[Pattern], event_type: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(event_type))
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["invoice.*"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let yes = [
            ("*", ""),
            ("*", "a.b"),
            ("a", "a"),
            ("a*", "a"),
            ("a.*", "a.b.c"),
            ("*.paid", "invoice.paid"),
            ("a*b*c", "a-b-b-c"),
            ("a**c", "abc"),
            ("ab*ba", "abba"),
        ];
        for (pattern, text) in yes {
            assert!(Pattern::new(pattern).matches(text), "{pattern} takes {text}");
        }
        let no = [("a", "ab"), ("a.*", "a"), ("*.paid", "paid."), ("aba*aba", "aba"), ("", "a")];
        for (pattern, text) in no {
            assert!(!Pattern::new(pattern).matches(text), "{pattern} does not take {text}");
        }
    }
}
