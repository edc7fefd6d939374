//! Putting a proof into a body: over the old one, so that all other bytes stay as they are, or as
//! a new member where there is none yet.

use serde_json::{Map, Value};

use super::CannotSign;
use crate::batch::{self, item_pointers};
use crate::look::{Raw, look};
use crate::provider::Provider;
use crate::request::Draft;

/// Sets the value at a pointer into the body.
pub(super) fn set_json(draft: &mut Draft, pointer: &str, value: Value) -> Result<(), CannotSign> {
    if let Some(old) = found(&draft.body, pointer) {
        let span = old.span(&draft.body);
        draft.body.splice(span, value.to_string().into_bytes());
        return Ok(());
    }
    let mut body: Value =
        serde_json::from_slice(&draft.body).map_err(|_| CannotSign::BodyNotObject)?;
    if !body.is_object() {
        return Err(CannotSign::BodyNotObject);
    }
    put(&mut body, pointer, value);
    draft.body = body.to_string().into_bytes();
    Ok(())
}

/// Sets the value at a pointer into every item of a batch. `make` makes it of the item as it is
/// written.
pub(super) fn set_in_items(
    provider: &Provider,
    draft: &mut Draft,
    pointer: &str,
    make: impl Fn(&[u8]) -> Result<Value, CannotSign>,
) -> Result<(), CannotSign> {
    if let Some(edits) = edits(provider, &draft.body, pointer, &make)? {
        for (span, text) in edits.into_iter().rev() {
            draft.body.splice(span, text.into_bytes());
        }
        return Ok(());
    }
    let mut body: Value =
        serde_json::from_slice(&draft.body).map_err(|_| CannotSign::BodyNotObject)?;
    for (at, _) in item_pointers(provider, &body) {
        if let Some(item) = body.pointer_mut(&at) {
            let value = make(item.to_string().as_bytes())?;
            put(item, pointer, value);
        }
    }
    draft.body = body.to_string().into_bytes();
    Ok(())
}

type Edit = (std::ops::Range<usize>, String);

/// What replaces the old value in every item, in their order; none if an item has no old value.
fn edits(
    provider: &Provider,
    body: &[u8],
    pointer: &str,
    make: impl Fn(&[u8]) -> Result<Value, CannotSign>,
) -> Result<Option<Vec<Edit>>, CannotSign> {
    let items: Vec<&[u8]> = match batch::items(provider, body) {
        Ok(Some(items)) => items.iter().map(|item| item.item.written().as_bytes()).collect(),
        Ok(None) => vec![body],
        Err(_) => return Ok(None),
    };
    let mut edits = Vec::with_capacity(items.len());
    for item in items {
        let Some(old) = found(item, pointer) else { return Ok(None) };
        edits.push((old.span(body), make(item)?.to_string()));
    }
    // Lists are found in the order of the entry, which need not be that of the body.
    edits.sort_by_key(|(span, _)| span.start);
    Ok(Some(edits))
}

fn found<'a>(json: &'a [u8], pointer: &str) -> Option<Raw<'a>> {
    look(json, &[pointer]).ok()?.into_iter().next().flatten()
}

/// Sets the value at a pointer, making the objects on the way to it.
pub(crate) fn put(body: &mut Value, pointer: &str, value: Value) {
    let mut at = body;
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(key).or_insert(Value::Null);
    }
    *at = value;
}

/// The form without a field, every other one as it is written.
pub(crate) fn remove_form_field(draft: &mut Draft, name: &str) {
    if draft.request().form(name).next().is_none() {
        return;
    }
    let is_it = |pair: &&[u8]| form_urlencoded::parse(pair).any(|(known, _)| known == name);
    let kept: Vec<&[u8]> =
        draft.body.split(|byte| *byte == b'&').filter(|pair| !is_it(pair)).collect();
    draft.body = kept.join(&b'&');
}
