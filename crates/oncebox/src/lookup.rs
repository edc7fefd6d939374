//! What people mean by an id: a receipt, a delivery, an event id, or the beginning of one.
//!
//! A full id wins over a prefix. A prefix of several ids is refused, and the candidates are listed.

use crate::limits::CANDIDATES;
use crate::receipt::{ReceiptId, RouteNo};
use crate::store::{NamedReceipt, Store, StoreError};

/// What an id means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that the store knows.
    Nothing,
    /// One receipt, and a route of it where the id of a delivery was written.
    One(NamedReceipt, Option<RouteNo>),
    /// Several receipts, newest first.
    Several(Vec<NamedReceipt>),
    /// So many ids may begin so that not all were looked at.
    TooMany,
}

/// Finds out what an id means; in one source, where one is named.
pub async fn look_up(
    store: &dyn Store,
    text: &str,
    source: Option<&str>,
) -> Result<Meaning, StoreError> {
    // Tables end what they cut with it.
    let text = text.trim().trim_end_matches('…');
    if text.is_empty() {
        return Ok(Meaning::Nothing);
    }
    let is_meant = |named: &NamedReceipt| source.is_none_or(|name| named.source == name);
    if let Some((ids, route)) = Ids::of_whole(text) {
        let found = store.receipts_within(ids.from, ids.to, 1).await?;
        if let Some(named) = found.into_iter().find(is_meant) {
            return Ok(Meaning::One(named, route));
        }
    }
    let mut exact = store.events(text).await?;
    exact.retain(is_meant);
    let exact = firsts(&exact);
    if !exact.is_empty() {
        return Ok(one_or_several(exact, None));
    }
    let (ids, route) = match Ids::of_beginning(text) {
        Some((ids, route)) => (Some(ids), route),
        None => (None, None),
    };
    let mut found = match ids {
        Some(ids) => store.receipts_within(ids.from, ids.to, CANDIDATES).await?,
        None => Vec::new(),
    };
    let own: Vec<ReceiptId> = found.iter().map(|named| named.receipt).collect();
    match store.events_beginning(text).await? {
        Some(events) => found.extend(events),
        // What tells the very millisecond of a receipt is hardly an event id as well.
        None if found.len() == 1 && ids.is_some_and(Ids::tell_the_time) => {}
        None => return Ok(Meaning::TooMany),
    }
    found.retain(is_meant);
    found.sort_by_key(|named| std::cmp::Reverse(named.receipt));
    found.dedup_by_key(|named| named.receipt);
    // Of more receipts than were read, others may be of the source.
    if own.len() >= CANDIDATES && found.len() < 2 {
        return Ok(Meaning::TooMany);
    }
    // An event id may have a dot in it, too, and names no route.
    let route = route.filter(|_| found.iter().all(|named| own.contains(&named.receipt)));
    Ok(one_or_several(found, route))
}

fn one_or_several(mut found: Vec<NamedReceipt>, route: Option<RouteNo>) -> Meaning {
    match found.len() {
        0 => Meaning::Nothing,
        1 => Meaning::One(found.remove(0), route),
        _ => Meaning::Several(found),
    }
}

/// Of the receipts that came under an event id, those that are meant by it: in each source the
/// first, and odd ones only where there is none. A conflict is shown with the first.
fn firsts(found: &[NamedReceipt]) -> Vec<NamedReceipt> {
    let has_first =
        |source: &str| found.iter().any(|named| !named.is_odd && named.source == source);
    let meant = found.iter().filter(|named| !named.is_odd || !has_first(&named.source));
    let mut meant: Vec<NamedReceipt> = meant.cloned().collect();
    meant.sort_by_key(|named| (std::cmp::Reverse(named.receipt), named.is_odd));
    meant.dedup_by_key(|named| named.receipt);
    meant
}

/// Receipt ids that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The lowest.
    pub from: ReceiptId,
    /// The highest.
    pub to: ReceiptId,
}

impl Ids {
    /// Whether they were all minted within one millisecond.
    fn tell_the_time(self) -> bool {
        self.from.as_bytes()[..6] == self.to.as_bytes()[..6]
    }

    /// A whole receipt id, or that of a delivery: with its route.
    fn of_whole(text: &str) -> Option<(Self, Option<RouteNo>)> {
        Self::of_beginning(text).filter(|(ids, _)| ids.from == ids.to)
    }

    /// The beginning of a receipt id, with or without its hyphens; after a dot the route of a
    /// delivery.
    pub fn of_beginning(text: &str) -> Option<(Self, Option<RouteNo>)> {
        let (id, route) = match text.rsplit_once('.') {
            Some((id, route)) => (id, Some(RouteNo(route.parse().ok().filter(|no| *no > 0)?))),
            None => (text, None),
        };
        let mut digits = String::with_capacity(32);
        for character in id.chars() {
            match character {
                '-' if matches!(digits.len(), 8 | 12 | 16 | 20) => {}
                digit if digit.is_ascii_hexdigit() => digits.push(digit),
                _ => return None,
            }
        }
        if digits.is_empty() || digits.len() > 32 {
            return None;
        }
        let filled = |with: char| {
            let mut digits = digits.clone();
            digits.extend(std::iter::repeat_n(with, 32 - digits.len()));
            let mut bytes = [0; 16];
            hex::decode_to_slice(&digits, &mut bytes).ok()?;
            Some(ReceiptId::from_bytes(bytes))
        };
        Some((Self { from: filled('0')?, to: filled('f')? }, route))
    }
}

/// The beginnings of ids, just long enough to tell them apart: the time they were minted at and,
/// where several were minted within a millisecond, the number behind it.
pub fn short_ids(ids: &[ReceiptId]) -> Vec<String> {
    let whole: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let mut others: Vec<&ReceiptId> = ids.iter().collect();
    others.sort_unstable();
    others.dedup();
    let length = [13, 18, 23, 36].into_iter().find(|length| {
        let mut begins: Vec<String> =
            others.iter().map(|id| id.to_string()[..*length].to_owned()).collect();
        begins.dedup();
        begins.len() == others.len()
    });
    let length = length.unwrap_or(36);
    whole.into_iter().map(|id| id[..length].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ReceiptId {
        text.parse().unwrap()
    }

    #[test]
    fn the_beginning_of_an_id_is_a_range() {
        let whole = "0199c2f0-7e4a-7c3b-9d53-0242ac120002";
        for end in 1..=whole.len() {
            let (ids, route) = Ids::of_beginning(&whole[..end]).unwrap();
            assert!(ids.from <= id(whole) && id(whole) <= ids.to, "{}", &whole[..end]);
            assert_eq!(route, None);
        }
        let (ids, route) = Ids::of_beginning("0199c2f07e4a.12").unwrap();
        assert!(ids.from <= id(whole) && id(whole) <= ids.to);
        assert_eq!(route, Some(RouteNo(12)));
        assert_eq!(Ids::of_whole(whole).unwrap().0.from, id(whole));
        assert_eq!(Ids::of_whole(&format!("{whole}.3")).unwrap().1, Some(RouteNo(3)));
        for text in ["", "evt_1", "0199c2f0.", "0199c2f0.0", "0199c2f0.-1", "0-1", ".1"] {
            assert_eq!(Ids::of_beginning(text), None, "{text}");
        }
        assert_eq!(Ids::of_beginning(&format!("{whole}0")), None);
    }

    #[test]
    fn short_ids_tell_ids_apart() {
        let ids = [
            id("0199c2f0-7e4a-7c3b-9d53-0242ac120002"),
            id("0199c2f0-7e4b-7c3b-9d53-0242ac120002"),
        ];
        assert_eq!(short_ids(&ids), ["0199c2f0-7e4a", "0199c2f0-7e4b"]);
        assert_eq!(short_ids(&[ids[0], ids[0]]), ["0199c2f0-7e4a"; 2]);
        let close = [ids[0], id("0199c2f0-7e4a-7c3c-9d53-0242ac120002")];
        assert_eq!(short_ids(&close), ["0199c2f0-7e4a-7c3b", "0199c2f0-7e4a-7c3c"]);
        assert!(short_ids(&[]).is_empty());
    }
}
