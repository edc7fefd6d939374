//! Values of a body that its receiver asks for.

use crate::look::{Raw, look};

/// The values at `pointers`, each exactly as it is written in the body. None at all if one of
/// them is missing or null, or if the body is no JSON that can be trusted to mean one thing.
///
/// ```
/// use oncebox_verify::fields;
///
/// let body = br#"{"data":{"customer":"cus_1","amount":5}}"#;
/// assert_eq!(fields(body, &["/data/customer", "/data/amount"]), Some(vec!["\"cus_1\"", "5"]));
/// assert_eq!(fields(body, &["/data/customer", "/data/currency"]), None);
/// ```
pub fn fields<'a>(body: &'a [u8], pointers: &[&str]) -> Option<Vec<&'a str>> {
    let found = look(body, pointers).ok()?;
    let given = |raw: Raw<'a>| (!raw.is_null()).then(|| raw.written());
    found.into_iter().map(|raw| raw.and_then(given)).collect()
}
