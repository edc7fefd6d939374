//! Effects as JSON, and the JSON that is recorded with them.

use oncebox::effect::{Effect, Evidence};
use oncebox::limits::RESULT_BYTES;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An effect as programs are told of it; the fields are never renamed.
#[derive(Debug, Serialize)]
pub struct EffectJson {
    key: String,
    kind: &'static str,
    state: &'static str,
    at: String,
    delivery: String,
    receipt: String,
    route: String,
    attempt: u32,
    unknowns: u32,
    conflicts: u32,
    result: Option<Box<RawValue>>,
    evidence: Option<EvidenceJson>,
}

impl From<&Effect> for EffectJson {
    fn from(effect: &Effect) -> Self {
        Self {
            key: effect.key.clone(),
            kind: effect.kind.as_str(),
            state: effect.state.as_str(),
            at: effect.at.to_string(),
            delivery: effect.delivery.to_string(),
            receipt: effect.delivery.receipt.to_string(),
            route: effect.route.clone(),
            attempt: effect.attempt,
            unknowns: effect.unknowns,
            conflicts: effect.conflicts,
            result: effect.result.as_deref().map(raw),
            evidence: effect.evidence.as_ref().map(EvidenceJson::from),
        }
    }
}

/// What came too late to count.
#[derive(Debug, Serialize)]
pub struct EvidenceJson {
    at: String,
    result: Option<Box<RawValue>>,
}

impl From<&Evidence> for EvidenceJson {
    fn from(evidence: &Evidence) -> Self {
        let result = evidence.result.as_deref().map(raw);
        Self { at: evidence.at.to_string(), result }
    }
}

/// Recorded JSON as a part of other JSON, on one line; what is none after all, as a text.
fn raw(text: &str) -> Box<RawValue> {
    let json = RawValue::from_string(compact(text));
    json.or_else(|_| serde_json::value::to_raw_value(text)).unwrap_or_default()
}

/// A text that cannot be recorded as the result of an effect.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResult {
    /// Not JSON, or not such that every store and language can read it again.
    #[error("it is not JSON that can be recorded: {0}")]
    NotJson(String),
    /// PostgreSQL has no such character.
    #[error("it has the character U+0000, which cannot be recorded; encode what is binary")]
    Nul,
    /// Too much.
    #[error(
        "it has {0} bytes without spaces, and {RESULT_BYTES} can be recorded; keep what is larger \
         elsewhere, and record where"
    )]
    TooLarge(usize),
}

/// What is recorded of a result: the same JSON without the space between its tokens. Nothing at
/// all of `null`.
pub fn result(json: &str) -> Result<Option<String>, BadResult> {
    // The length first: what is far too large need not be looked at.
    let compact = compact(json);
    if compact.len() > RESULT_BYTES {
        return Err(BadResult::TooLarge(compact.len()));
    }
    let value: Value =
        serde_json::from_str(json).map_err(|error| BadResult::NotJson(error.to_string()))?;
    if has_nul(&value) {
        return Err(BadResult::Nul);
    }
    Ok((!value.is_null()).then_some(compact))
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.contains('\0') || has_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// JSON without the space between its tokens. Nothing else is changed: numbers keep every digit,
/// and members their order.
pub fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for character in json.chars() {
        if inside || !matches!(character, ' ' | '\t' | '\n' | '\r') {
            compact.push(character);
        }
        match character {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_between_tokens_goes() {
        let json = " { \"b c\" : [ 1 ,\t12345678901234567890123 ],\n\"a\" : \"x \\\" y\\\\\" } ";
        let kept = r#"{"b c":[1,12345678901234567890123],"a":"x \" y\\"}"#;
        assert_eq!(compact(json), kept);
        assert_eq!(result(json), Ok(Some(kept.to_owned())));
    }

    #[test]
    fn what_cannot_be_read_again_is_not_recorded() {
        assert_eq!(result(" null "), Ok(None));
        assert_eq!(result(r#""\u0000""#), Err(BadResult::Nul));
        assert_eq!(result(r#"[{"a\u0000":1}]"#), Err(BadResult::Nul));
        assert_eq!(result(r#""\\u0000""#), Ok(Some(r#""\\u0000""#.to_owned())));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for wrong in ["", "{", "nul", "1 2", r#""\ud800""#, "1e999", &deep] {
            assert!(matches!(result(wrong), Err(BadResult::NotJson(_))), "{wrong}");
        }
        let largest = format!("\"{}\"", "x".repeat(RESULT_BYTES - 2));
        assert_eq!(result(&largest), Ok(Some(largest.clone())));
        let larger = format!("\"{}\"", "x".repeat(RESULT_BYTES - 1));
        assert_eq!(result(&larger), Err(BadResult::TooLarge(RESULT_BYTES + 1)));
    }

    #[test]
    fn what_is_no_json_is_told_as_text() {
        assert_eq!(raw("{ \"a\": 1 }").get(), r#"{"a":1}"#);
        assert_eq!(raw("not json").get(), "\"not json\"");
    }
}
