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
        oncebox::pattern::matches(&self.0, event_type)
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
