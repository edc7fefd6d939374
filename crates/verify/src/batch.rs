//! Requests that carry several events.

use serde_json::value::RawValue;

use crate::look::{Raw, look};
use crate::malformed::Malformed;
use crate::provider::{Batch, Provider};

/// One event of a batch, exactly as it is written in the payload.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    /// What holds it, where batches are nested.
    pub(crate) outer: Option<Raw<'a>>,
    pub(crate) item: Raw<'a>,
}

/// The events of a payload, in their order; none if it is no batch but one event.
pub(crate) fn items<'a>(
    provider: &Provider,
    payload: &'a [u8],
) -> Result<Option<Vec<Item<'a>>>, Malformed> {
    for batch in provider.batches.iter() {
        if let Some(items) = items_of(batch, payload)? {
            return Ok(Some(items));
        }
    }
    Ok(None)
}

fn items_of<'a>(batch: &Batch, payload: &'a [u8]) -> Result<Option<Vec<Item<'a>>>, Malformed> {
    let Some(outer) = array(payload, &batch.items)? else { return Ok(None) };
    if batch.inner.is_empty() {
        return Ok(Some(outer.into_iter().map(|item| Item { outer: None, item }).collect()));
    }
    let mut items = Vec::new();
    for holder in outer {
        for pointer in batch.inner.iter() {
            let inner = array(holder.written().as_bytes(), pointer)?.unwrap_or_default();
            items.extend(inner.into_iter().map(|item| Item { outer: Some(holder), item }));
        }
    }
    Ok(Some(items))
}

/// The elements of the array at a pointer; none if there is no array.
fn array<'a>(json: &'a [u8], pointer: &str) -> Result<Option<Vec<Raw<'a>>>, Malformed> {
    let whole = match pointer {
        "" => {
            look(json, &[])?;
            std::str::from_utf8(json).map_err(|_| Malformed::NotUtf8)?
        }
        pointer => match look(json, &[pointer])?.into_iter().next().flatten() {
            Some(raw) => raw.written(),
            None => return Ok(None),
        },
    };
    let elements: Option<Vec<&'a RawValue>> = serde_json::from_str(whole).ok();
    Ok(elements.map(|elements| elements.into_iter().map(|raw| Raw::new(raw.get())).collect()))
}
