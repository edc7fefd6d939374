//! Requests that carry several events.

use serde_json::Value;

use crate::look::{Raw, any_element, any_member, elements, look};
use crate::malformed::Malformed;
use crate::provider::{Batch, Provider};

/// How many events one request may carry. Meta sends at most 1,000, Salesforce 100.
pub const ITEMS_MAX: usize = 10_000;

/// One event of a batch, exactly as it is written in the payload.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a, 'p> {
    /// What holds it, where batches are nested.
    pub(crate) outer: Option<Raw<'a>>,
    pub(crate) item: Raw<'a>,
    /// The key of the list it is in; none where the payload is that list.
    pub(crate) list: Option<&'p str>,
    /// Whether it is an object, and what it should hold is a list.
    pub(crate) is_sound: bool,
}

/// The events of a payload, list by list; none if it is no batch but one event.
///
/// Whoever is told that a batch is empty acknowledges it, so only one that is leaves nothing: what
/// holds no list that is known is an event itself.
pub(crate) fn items<'a, 'p>(
    provider: &'p Provider,
    payload: &'a [u8],
) -> Result<Option<Vec<Item<'a, 'p>>>, Malformed> {
    if provider.batches.is_empty() {
        return Ok(None);
    }
    let pointers: Vec<&str> = provider.batches.iter().map(|batch| batch.items.as_ref()).collect();
    let lists = look(payload, &pointers)?;
    let mut items = None;
    for (batch, list) in provider.batches.iter().zip(lists) {
        let list = match batch.items.as_ref() {
            "" => whole_list(payload)?,
            _ => list,
        };
        let Some(holders) = list.map(objects).transpose()?.flatten() else { continue };
        let items = items.get_or_insert_with(Vec::new);
        for holder in holders {
            push(batch, holder, items)?;
        }
    }
    Ok(items.filter(|items| !items.is_empty() || !has_other_list(payload, &pointers)))
}

/// The payload where it is a list; an object would be one event, not a list of them.
fn whole_list(payload: &[u8]) -> Result<Option<Raw<'_>>, Malformed> {
    let whole = std::str::from_utf8(payload).map_err(|_| Malformed::NotUtf8)?;
    Ok(Some(Raw::new(whole.trim())).filter(|whole| !whole.is_object()))
}

/// Adds an element of a list, or where batches are nested, what it holds.
fn push<'a, 'p>(
    batch: &'p Batch,
    holder: Raw<'a>,
    items: &mut Vec<Item<'a, 'p>>,
) -> Result<(), Malformed> {
    let list = batch.items.strip_prefix('/');
    if batch.inner.is_empty() {
        items.push(Item { outer: None, item: holder, list, is_sound: holder.is_object() });
    } else {
        // What a holder that cannot be read holds is not known: it is kept whole.
        let held = held(batch, holder)?;
        let is_sound = held.is_some();
        let (inner, is_event) = held.unwrap_or((Vec::new(), true));
        items.extend(inner.into_iter().map(|item| {
            let is_sound = item.is_object();
            Item { outer: Some(holder), item, list, is_sound }
        }));
        if is_event {
            items.push(Item { outer: Some(holder), item: holder, list, is_sound });
        }
    }
    match items.len() > ITEMS_MAX {
        true => Err(Malformed::TooManyEvents { limit: ITEMS_MAX }),
        false => Ok(()),
    }
}

/// What the known lists of a holder hold, and whether the holder is an event itself, because they
/// hold nothing. None if the holder cannot be read.
fn held<'a>(batch: &Batch, holder: Raw<'a>) -> Result<Option<(Vec<Raw<'a>>, bool)>, Malformed> {
    let pointers: Vec<&str> = batch.inner.iter().map(AsRef::as_ref).collect();
    let written = holder.written().as_bytes();
    if !holder.is_object() {
        return Ok(None);
    }
    let Ok(lists) = look(written, &pointers) else { return Ok(None) };
    let (mut inner, mut knows_a_list) = (Vec::new(), false);
    for list in lists.into_iter().flatten() {
        match objects(list) {
            Ok(Some(held)) => inner.extend(held),
            Ok(None) => continue,
            Err(Malformed::ItemNotObject) => return Ok(None),
            Err(malformed) => return Err(malformed),
        }
        knows_a_list = true;
    }
    let is_event = inner.is_empty() && (!knows_a_list || has_other_list(written, &pointers));
    Ok(Some((inner, is_event)))
}

/// Whether a list that the entry does not know has objects in it. Nothing is held of the
/// others: the payload may not be verified yet.
fn has_other_list(object: &[u8], known: &[&str]) -> bool {
    let is_known = |key: &str| known.iter().any(|pointer| pointer.strip_prefix('/') == Some(key));
    let has_objects = |list: Raw<'_>| any_element(list, Raw::is_object) == Some(true);
    let is_other = |key: Raw<'_>, member: Raw<'_>| {
        !key.text().is_some_and(|key| is_known(&key)) && has_objects(member)
    };
    std::str::from_utf8(object).is_ok_and(|text| any_member(Raw::new(text), is_other) == Some(true))
}

/// What a list holds, or the object that stands in its place; none for null.
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
    Ok(Some(objects))
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
    let mut items = None;
    for batch in provider.batches.iter() {
        let Some(holders): Option<Vec<String>> = inside(&batch.items) else { continue };
        let items = items.get_or_insert_with(Vec::new);
        for holder in holders {
            if batch.inner.is_empty() {
                items.push((holder, None));
                continue;
            }
            let before = items.len();
            for pointer in batch.inner.iter() {
                let inner = inside(&format!("{holder}{pointer}")).unwrap_or_default();
                items.extend(inner.into_iter().map(|item| (item, Some(holder.clone()))));
            }
            if items.len() == before {
                items.push((holder.clone(), Some(holder)));
            }
        }
    }
    items.unwrap_or_else(|| vec![(String::new(), None)])
}
