//! What makes an event the same event, in sixteen bytes.
//!
//! The memory of identities is the largest index Oncebox keeps, and on a busy inbox its cost is the
//! cost of touching random leaves. Most providers' ids begin with something that grows with time
//! (Stripe, KSUID, ULID, UUIDv7), so a key keeps the beginning of the id and hashes the whole: new
//! keys of such a source land next to each other, and keys of any source stay compact and equally
//! long.

use std::fmt;

use sha2::{Digest, Sha256};

/// Bytes of the id itself at the front of a key.
const LOCALITY: usize = 6;

/// The longest word in front of an id that does not grow.
const WORD: usize = 8;

/// The key of an identity within its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityKey([u8; 16]);

impl IdentityKey {
    /// The key of an event id.
    pub fn of_event(id: &str) -> Self {
        let digest = Sha256::new().chain_update(b"event\0").chain_update(id.as_bytes()).finalize();
        let mut key = [0; 16];
        key[LOCALITY..].copy_from_slice(&digest[..16 - LOCALITY]);
        let front = growing_part(id).as_bytes();
        let front = &front[..front.len().min(LOCALITY)];
        key[..front.len()].copy_from_slice(front);
        Self(key)
    }

    /// The lowest and the highest key that an event id with this beginning may have.
    pub(crate) fn of_beginning(beginning: &str) -> [Self; 2] {
        let front = match beginning.split_once('_') {
            Some((word, rest)) if word.len() <= WORD => rest,
            // The word in front may still go on.
            None if beginning.len() <= WORD => "",
            _ => beginning,
        };
        let front = &front.as_bytes()[..front.len().min(LOCALITY)];
        [0x00, 0xff].map(|rest| {
            let mut key = [rest; 16];
            key[..front.len()].copy_from_slice(front);
            Self(key)
        })
    }

    /// The key that finds the same body again under another, unsigned id.
    pub fn of_body(guard: &[u8; 32]) -> Self {
        Self::of_hash(&Sha256::new().chain_update(b"body\0").chain_update(guard).finalize())
    }

    /// The key of a type that came with a body, where one body comes under several types.
    pub(crate) fn of_typed_body(guard: &[u8; 32], event_type: &str) -> Self {
        let hash = Sha256::new().chain_update(b"type\0").chain_update(guard);
        Self::of_hash(&hash.chain_update(event_type.as_bytes()).finalize())
    }

    /// The key of an odd event: its id is known already, or is not its own, so its content is part
    /// of the key.
    pub(crate) fn of_odd_event(id: &str, content: &[u8; 32]) -> Self {
        let hash = Sha256::new().chain_update(b"odd\0").chain_update(content);
        Self::of_hash(&hash.chain_update(id.as_bytes()).finalize())
    }

    fn of_hash(digest: &[u8]) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }

    /// The key as stored.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A key read back from a store.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdentityKey({})", hex::encode(self.0))
    }
}

/// The id without the constant word in front of it: `evt_1Mqq…` grows from `1Mqq…` on.
fn growing_part(id: &str) -> &str {
    match id.split_once('_') {
        Some((word, rest)) if word.len() <= WORD && !rest.is_empty() => rest,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_ids_that_grow_with_time_are_neighbours() {
        let mut keys: Vec<_> = ["evt_1MqqbKzz", "evt_1MqqbLaa", "evt_1MqqbMmm", "evt_1Mqqc0bb"]
            .iter()
            .map(|id| IdentityKey::of_event(id))
            .collect();
        let sorted = {
            let mut sorted = keys.clone();
            sorted.sort();
            sorted
        };
        assert_eq!(keys, sorted);
        keys.dedup();
        assert_eq!(keys.len(), 4);
    }

    #[test]
    fn the_beginning_of_an_id_bounds_its_key() {
        for id in ["evt_1MqqbKzz", "1Mq", "0199c2f0-7e4a", "a_much_longer", "verylongword_1", "x_"]
        {
            let key = IdentityKey::of_event(id);
            for (end, _) in id.char_indices().skip(1) {
                let [low, high] = IdentityKey::of_beginning(&id[..end]);
                assert!(low <= key && key <= high, "{} of {id}", &id[..end]);
            }
        }
        let [low, high] = IdentityKey::of_beginning("evt_1Mqqb");
        let other = IdentityKey::of_event("evt_1Mqrb");
        assert!(other < low || high < other);
    }

    #[test]
    fn ids_that_share_their_beginning_differ() {
        assert_ne!(IdentityKey::of_event("evt_aaaaaaaa1"), IdentityKey::of_event("evt_aaaaaaaa2"));
        assert_ne!(IdentityKey::of_event("a"), IdentityKey::of_event("a\0"));
        assert_ne!(IdentityKey::of_event(""), IdentityKey::of_body(&[0; 32]));
    }
}
