//! Where receipt ids come from.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use uuid::Uuid;

use super::ReceiptId;

/// How far the last id may be ahead of the clock, in milliseconds. Up to here ids go on from it, so
/// that they grow while a clock is corrected; beyond it the clock was wrong before, and ids return
/// to the time it shows now.
const AHEAD: u64 = 60_000;

/// How much of a store's future one look covers: a minute.
const STRIDE: u64 = 60_000 << 12;

/// How often a store is looked at for ids ahead of the clock: two months of them.
const LOOKS: usize = 90_000;

/// Stretches of minted ids that are remembered apart.
const STRETCHES: usize = 64;

/// Mints receipt ids whose first eight bytes never repeat within a process.
///
/// SQLite uses those eight bytes as the row's number, which makes a receipt one append to one
/// tree with no index beside it.
#[derive(Debug)]
pub struct ReceiptMint {
    state: Mutex<State>,
}

/// Moments are milliseconds (48 bits) and a counter (12 bits).
#[derive(Debug)]
struct State {
    last: u64,
    /// What may have been minted, first and last, in order and apart from each other.
    taken: Vec<(u64, u64)>,
    salt: u64,
}

impl Default for ReceiptMint {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiptMint {
    /// A mint of its own random salt.
    pub fn new() -> Self {
        let salt = RandomState::new().build_hasher().finish();
        Self { state: Mutex::new(State { last: 0, taken: Vec::new(), salt }) }
    }

    /// A mint that goes on after `newest`, as after a restart, and takes everything older for
    /// minted. An id far ahead of `now` is passed over: it tells of a clock that was wrong, and
    /// following it would keep every later id as far off.
    pub fn after(newest: Option<ReceiptId>, now: Timestamp) -> Self {
        let mint = Self::new();
        if let Some(newest) = newest.map(moment)
            && !is_ahead(newest, milliseconds(now))
        {
            let mut state = mint.state();
            state.last = newest;
            state.take(0, newest);
            drop(state);
        }
        mint
    }

    /// As [`Self::after`], for a store in which the first half of an id is unique: `find` returns
    /// the first id of the store that is not older than the one it is given. Ids that a wrong clock
    /// has put ahead of `now` are passed over when their time comes.
    pub(crate) fn beside<E>(
        newest: Option<ReceiptId>,
        now: Timestamp,
        mut find: impl FnMut(ReceiptId) -> Result<Option<ReceiptId>, E>,
    ) -> Result<Self, E> {
        let mint = Self::after(newest, now);
        let now = milliseconds(now);
        let Some(newest) = newest.map(moment).filter(|newest| is_ahead(*newest, now)) else {
            return Ok(mint);
        };
        let mut state = mint.state();
        let mut from = (now + AHEAD + 1) << 12;
        state.take(0, from - 1);
        for _ in 0..LOOKS {
            let Some(found) = find(id(from, 0))?.map(moment) else { break };
            from = found.saturating_add(STRIDE);
            state.take(found, from - 1);
        }
        // Beyond what is looked at, everything counts as minted.
        state.take(from.min(newest), newest);
        drop(state);
        Ok(mint)
    }

    /// A new id for an event received at `now`. Should the counter of a millisecond run out, or the
    /// clock go back a little, ids go on from the last one. Should the clock go back far, ids do so
    /// as well, and pass over what was minted before.
    pub fn mint(&self, now: Timestamp) -> ReceiptId {
        let mut state = self.state();
        let next = state.next(milliseconds(now));
        id(next, state.random())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self, now: u64) -> u64 {
        let floor = now << 12;
        let mut next = match is_ahead(self.last, now) {
            true => floor,
            false => floor.max(self.last + 1),
        };
        for &(first, last) in &self.taken {
            if (first..=last).contains(&next) {
                next = last + 1;
            }
        }
        self.take(next, next);
        self.last = next;
        next
    }

    /// Remembers a stretch. Those less than a second apart become one; should there be too many,
    /// those that are closest to each other.
    fn take(&mut self, first: u64, last: u64) {
        const CLOSE: u64 = 1000 << 12;
        // The usual case: the stretch that is being minted from grows.
        if let Some(open) = self.taken.iter_mut().find(|(a, b)| *a <= first && first <= *b + CLOSE)
        {
            open.1 = open.1.max(last);
        } else {
            let place = self.taken.partition_point(|(start, _)| *start < first);
            self.taken.insert(place, (first, last));
        }
        self.taken.dedup_by(|next, open| {
            let touches = next.0 <= open.1;
            if touches {
                open.1 = open.1.max(next.1);
            }
            touches
        });
        if self.taken.len() > STRETCHES {
            self.join_closest();
        }
    }

    fn join_closest(&mut self) {
        let gaps = self.taken.windows(2).map(|pair| pair[1].0 - pair[0].1);
        let Some((place, _)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) else { return };
        self.taken[place].1 = self.taken[place + 1].1;
        self.taken.remove(place + 1);
    }

    /// SplitMix64: ids must differ between machines, not be hard to guess.
    fn random(&mut self) -> u64 {
        self.salt = self.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.salt;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn milliseconds(time: Timestamp) -> u64 {
    time.as_millisecond().max(0).unsigned_abs()
}

/// Whether a moment is too far ahead of a time to be followed.
fn is_ahead(moment: u64, now: u64) -> bool {
    moment >> 12 > now + AHEAD
}

/// The id of a moment.
fn id(moment: u64, random: u64) -> ReceiptId {
    let high = ((moment >> 12) << 16) | 0x7000 | (moment & 0xfff);
    ReceiptId(Uuid::from_u64_pair(high, (1 << 63) | (random >> 2)))
}

/// The part of an id that never repeats.
fn moment(id: ReceiptId) -> u64 {
    let (high, _) = id.as_uuid().as_u64_pair();
    ((high >> 16) << 12) | (high & 0xfff)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Whether an id is of about that time.
    fn is_of(id: ReceiptId, second: i64) -> bool {
        let far = (moment(id) >> 12).abs_diff(milliseconds(at(second)));
        far <= AHEAD
    }

    const NOON: i64 = 1_760_000_000;

    #[test]
    fn ids_grow_while_the_clock_is_corrected() {
        let mint = ReceiptMint::new();
        let ids: Vec<_> = (0..10_000).map(|n| mint.mint(at(NOON - n % 2 * 50))).collect();
        assert!(ids.windows(2).all(|pair| pair[0].as_bytes()[..8] < pair[1].as_bytes()[..8]));
        assert!(ids.iter().all(|id| id.as_uuid().get_version_num() == 7));
        assert!(ids[0] >= ReceiptId::floor(at(NOON)));
    }

    /// The clock is an hour, then a year ahead for a moment; later that hour comes.
    #[test]
    fn after_a_blip_ids_return_to_the_true_time_and_never_repeat() {
        let mint = ReceiptMint::new();
        let mut seen = HashSet::new();
        let mut minted = |second: i64| {
            let id = mint.mint(at(second));
            assert!(seen.insert(moment(id)), "{id} was minted before");
            id
        };
        for ahead in [0, 3_600, 0, 31_000_000, 0, 3_600] {
            for n in 0..20_000_i64 {
                let second = NOON + ahead + n / 5_000;
                assert!(is_of(minted(second), second), "{ahead} s ahead");
            }
        }
        assert!(is_of(minted(NOON + 3_610), NOON + 3_610));
    }

    /// A store that holds the ids of an hour before and of two blips ahead.
    #[test]
    fn what_a_store_holds_is_passed_over() {
        let store = ReceiptMint::new();
        let times = [-3_600, 3_600, 31_000_000];
        let ids = times.map(|ahead| {
            (0..5_000).map(|n| store.mint(at(NOON + ahead + n / 1_000))).collect::<Vec<_>>()
        });
        let held: std::collections::BTreeSet<u64> =
            ids.iter().flatten().map(|id| moment(*id)).collect();
        let newest = ids[2].last().copied();
        let mint = ReceiptMint::beside(newest, at(NOON), |from| {
            let next = held.range(moment(from)..).next();
            Ok::<_, ()>(next.map(|moment| id(*moment, 0)))
        });
        let mint = mint.unwrap();
        assert!(is_of(mint.mint(at(NOON)), NOON + 30));
        for ahead in times {
            for n in 0..5_000 {
                let minted = mint.mint(at(NOON + ahead + n / 1_000));
                assert!(!held.contains(&moment(minted)), "{minted} is held");
                let about = if ahead < 0 { NOON } else { NOON + ahead };
                assert!(is_of(minted, about + 30), "{ahead}: {minted}");
            }
        }
    }

    #[test]
    fn a_new_mint_goes_on_after_the_newest_id() {
        let newest = ReceiptMint::new().mint(at(NOON + 30));
        assert!(ReceiptMint::after(Some(newest), at(NOON)).mint(at(NOON)) > newest);
        let astray = ReceiptMint::new().mint(at(NOON + 3_600));
        assert!(is_of(ReceiptMint::after(Some(astray), at(NOON)).mint(at(NOON)), NOON));
        assert!(ReceiptMint::after(None, at(NOON)).mint(at(NOON)) < newest);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mint = ReceiptMint::new();
        for n in 0..1_000 {
            mint.mint(at(NOON + n * 600));
        }
        assert!(mint.state().taken.len() <= STRETCHES);
        assert!(is_of(mint.mint(at(NOON + 900_000)), NOON + 900_000));
    }
}
