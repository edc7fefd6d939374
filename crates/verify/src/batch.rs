//! Requests that carry several events.

use serde_json::Value;

use crate::look::{Raw, elements, look};
use crate::malformed::Malformed;
use crate::provider::{Batch, Provider};

/// How many events one request may carry. Meta sends at most 1,000, Salesforce 100.
pub const ITEMS_MAX: usize = 10_000;

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
    let list = match batch.items.as_ref() {
        "" => {
            look(payload, &[])?;
            let whole = std::str::from_utf8(payload).map_err(|_| Malformed::NotUtf8)?;
            // An object would be one event, not a list of them.
            Some(Raw::new(whole.trim())).filter(|whole| !whole.is_object())
        }
        pointer => look(payload, &[pointer])?.into_iter().next().flatten(),
    };
    let Some(holders) = list.map(objects).transpose()?.flatten() else { return Ok(None) };
    if batch.inner.is_empty() {
        return Ok(Some(holders.into_iter().map(|item| Item { outer: None, item }).collect()));
    }
    let pointers: Vec<&str> = batch.inner.iter().map(AsRef::as_ref).collect();
    let mut items = Vec::new();
    for holder in holders {
        for inner in look(holder.written().as_bytes(), &pointers)?.into_iter().flatten() {
            let inner = objects(inner)?.unwrap_or_default();
            items.extend(inner.into_iter().map(|item| Item { outer: Some(holder), item }));
            if items.len() > ITEMS_MAX {
                return Err(Malformed::TooManyEvents { limit: ITEMS_MAX });
            }
        }
    }
    Ok(Some(items))
}

/// The objects in a list, or the one that stands in its place; none for null.
fn objects(list: Raw<'_>) -> Result<Option<Vec<Raw<'_>>>, Malformed> {
    if list.is_null() {
        return Ok(None);
    }
    if list.is_object() {
        return Ok(Some(vec![list]));
    }
    let objects = elements(list, ITEMS_MAX).ok_or(Malformed::ItemNotObject)?;
    if objects.len() > ITEMS_MAX {
        return Err(Malformed::TooManyEvents { limit: ITEMS_MAX });
    }
    match objects.iter().all(|item| item.is_object()) {
        true => Ok(Some(objects)),
        false => Err(Malformed::ItemNotObject),
    }
}

/// The pointers to every item of a payload, and to what holds it where batches are nested. Of one
/// that is no batch, to the whole.
pub(crate) fn item_pointers(provider: &Provider, payload: &Value) -> Vec<(String, Option<String>)> {
    let inside = |pointer: &str| match payload.pointer(pointer) {
        Some(Value::Array(items)) => {
            Some((0..items.len()).map(|n| format!("{pointer}/{n}")).collect())
        }
        Some(Value::Object(_)) if !pointer.is_empty() => Some(vec![pointer.to_owned()]),
        _ => None,
    };
    for batch in provider.batches.iter() {
        let Some(holders): Option<Vec<String>> = inside(&batch.items) else { continue };
        if batch.inner.is_empty() {
            return holders.into_iter().map(|item| (item, None)).collect();
        }
        let mut items = Vec::new();
        for holder in holders {
            for pointer in batch.inner.iter() {
                let inner = inside(&format!("{holder}{pointer}")).unwrap_or_default();
                items.extend(inner.into_iter().map(|item| (item, Some(holder.clone()))));
            }
        }
        return items;
    }
    vec![(String::new(), None)]
}
