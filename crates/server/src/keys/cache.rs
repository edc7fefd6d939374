//! What was fetched, what is being fetched, and what must not be asked for yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use oncebox::store::PublishedKey;
use oncebox_verify::{FetchedKey, WantedForm, WantedKey};
use tokio::sync::watch;

use super::KeyFailure;

/// How long a key is kept, whatever its server says.
const KEPT: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(86_400));

/// How long a key is kept whose server says nothing.
const KEPT_USUALLY: Duration = Duration::from_secs(3600);

/// How long a key does that should have been fetched again while its server is down.
const STALE: Duration = Duration::from_secs(86_400);

/// How long a server is left alone after a failure.
const PAUSE: Duration = Duration::from_secs(10);

/// How often a set is fetched again because a request names a key that it lacks.
const REFRESH: Duration = Duration::from_secs(60);

/// Places that are remembered.
const PLACES_MAX: usize = 256;

/// Places that are asked at the same time.
const FLIGHTS_MAX: usize = 16;

/// What a request came to: the key, or why there is none.
pub(super) type Answer = Result<Arc<FetchedKey>, KeyFailure>;

/// Hears the answer of a request under way.
pub(super) type Ear = watch::Receiver<Option<Answer>>;

/// Where a key is, and what is to be found there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    url: String,
    form: WantedForm,
    pub(super) allow_private: bool,
}

impl Place {
    pub(super) fn of(wanted: &WantedKey, allow_private: bool) -> Self {
        Self { url: wanted.url.clone(), form: wanted.form.clone(), allow_private }
    }
}

/// A time by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) steady: Instant,
    pub(super) wall: Timestamp,
}

impl Moment {
    /// The steady time that a wall time stands for, at most a day ahead: a clock may have been
    /// wrong when it was written down.
    fn steady_at(self, wall: Timestamp) -> Instant {
        match Duration::try_from(wall.duration_since(self.wall)) {
            Ok(ahead) => self.steady + ahead.min(KEPT.1),
            Err(_) => {
                let ago = self.wall.duration_since(wall).unsigned_abs();
                self.steady.checked_sub(ago).unwrap_or(self.steady)
            }
        }
    }

    /// The wall time of a steady one.
    pub(super) fn wall_at(self, steady: Instant) -> Timestamp {
        let ahead = steady.saturating_duration_since(self.steady);
        self.wall.checked_add(ahead).unwrap_or(self.wall)
    }
}

/// What a request brought.
pub(super) struct Fetched {
    pub(super) key: Arc<FetchedKey>,
    /// For how long the server says that it may be kept.
    pub(super) max_age: Option<Duration>,
    /// What was served.
    pub(super) served: Bytes,
}

/// What to do for somebody who wants a key.
pub(super) enum Asked {
    /// Take this one.
    Kept(Arc<FetchedKey>),
    /// Take this one: it is old, but its server is down.
    Stale(Arc<FetchedKey>),
    /// There is none, and it is too early to ask again.
    Failed(KeyFailure),
    /// Wait for a request that is under way.
    Joined(Ear),
    /// Make a request.
    Yours(Ticket),
}

/// The right to make a request, and the duty to tell others of it.
pub(super) struct Ticket(watch::Sender<Option<Answer>>);

impl Ticket {
    pub(super) fn ear(&self) -> Ear {
        self.0.subscribe()
    }

    pub(super) fn tell(self, answer: Answer) {
        self.0.send_replace(Some(answer));
    }
}

#[derive(Default)]
pub(super) struct Cache {
    places: HashMap<Place, Entry>,
    /// What the store kept over a restart and no request needed since, by URL and whether it may
    /// be at a private address.
    remembered: HashMap<(String, bool), PublishedKey>,
}

struct Entry {
    kept: Option<Kept>,
    failed: Option<(Instant, KeyFailure)>,
    refreshed: Option<Instant>,
    flight: Option<Ear>,
    used: Instant,
}

struct Kept {
    key: Arc<FetchedKey>,
    fresh_until: Instant,
    /// What was served, until the key has proved a request.
    served: Option<Bytes>,
}

impl Kept {
    fn is_fresh(&self, now: Moment) -> bool {
        now.steady < self.fresh_until && self.is_good(now)
    }

    fn is_good(&self, now: Moment) -> bool {
        let is_over = self.key.not_after().is_some_and(|end| end < now.wall);
        now.steady < self.fresh_until + STALE && !is_over
    }
}

impl Entry {
    fn new(now: Moment) -> Self {
        Self { kept: None, failed: None, refreshed: None, flight: None, used: now.steady }
    }

    fn is_flying(&self) -> bool {
        // A request that ended without a word is none.
        self.flight.as_ref().is_some_and(|ear| ear.has_changed().is_ok())
    }

    /// What is kept and fresh.
    fn fresh(&self, now: Moment) -> Option<&Kept> {
        self.kept.as_ref().filter(|kept| kept.is_fresh(now))
    }

    /// What is kept and may do, be it old.
    fn usable(&self, wanted: &WantedKey, now: Moment) -> Option<Arc<FetchedKey>> {
        let kept = self.kept.as_ref().filter(|kept| kept.is_good(now) && kept.key.has(wanted));
        kept.map(|kept| kept.key.clone())
    }

    /// Why its server is left alone now.
    fn refused(&self, now: Moment) -> Option<KeyFailure> {
        let paused = self.failed.as_ref().filter(|(at, _)| now.steady < *at + PAUSE);
        if let Some((_, failure)) = paused {
            return Some(failure.clone());
        }
        // A set that was fetched before this request came may be older than the key it lacks.
        let is_early = |at: Instant| now.steady < at + REFRESH;
        let is_refused = self.fresh(now).is_some() && self.refreshed.is_some_and(is_early);
        is_refused.then(KeyFailure::not_in_set)
    }

    /// What to do for somebody who wants a key, if nobody has to be asked for that.
    fn answer(&self, wanted: &WantedKey, now: Moment) -> Option<Asked> {
        if let Some(kept) = self.fresh(now).filter(|kept| kept.key.has(wanted)) {
            return Some(Asked::Kept(kept.key.clone()));
        }
        if let (true, Some(ear)) = (self.is_flying(), &self.flight) {
            return Some(Asked::Joined(ear.clone()));
        }
        let failure = self.refused(now)?;
        Some(self.usable(wanted, now).map_or(Asked::Failed(failure), Asked::Stale))
    }
}

impl Cache {
    /// Decides what to do for somebody who wants a key. `may_ask` is heeded last, and only if
    /// somebody has to be asked. Who may not ask leaves no trace.
    pub(super) fn ask(
        &mut self,
        place: &Place,
        wanted: &WantedKey,
        now: Moment,
        may_ask: impl FnOnce() -> Result<(), KeyFailure>,
    ) -> Asked {
        if let Some(entry) = self.places.get_mut(place) {
            entry.used = now.steady;
            if let Some(asked) = entry.answer(wanted, now) {
                return asked;
            }
        }
        if let Err(failure) = self.has_flight().and_then(|()| may_ask()) {
            return self.usable(place, wanted, now).map_or(Asked::Failed(failure), Asked::Stale);
        }
        if !self.places.contains_key(place) {
            self.make_room();
        }
        let entry = self.places.entry(place.clone()).or_insert_with(|| Entry::new(now));
        if entry.fresh(now).is_some() {
            entry.refreshed = Some(now.steady);
        }
        let (ticket, ear) = watch::channel(None);
        entry.flight = Some(ear);
        Asked::Yours(Ticket(ticket))
    }

    /// Whether one more place may be asked.
    fn has_flight(&self) -> Result<(), KeyFailure> {
        let flying = self.places.values().filter(|entry| entry.is_flying()).count();
        if flying < FLIGHTS_MAX { Ok(()) } else { Err(KeyFailure::too_many()) }
    }

    /// Notes how a request ended.
    pub(super) fn end(&mut self, place: &Place, now: Moment, answer: Result<Fetched, KeyFailure>) {
        let Some(entry) = self.places.get_mut(place) else { return };
        entry.flight = None;
        match answer {
            Ok(Fetched { key, max_age, served }) => {
                let life = max_age.unwrap_or(KEPT_USUALLY).clamp(KEPT.0, KEPT.1);
                let fresh_until = now.steady + life;
                entry.kept = Some(Kept { key, fresh_until, served: Some(served) });
                entry.failed = None;
            }
            Err(failure) => entry.failed = Some((now.steady, failure)),
        }
    }

    /// Notes that a key has proved a request. The first time it tells what was served, and until
    /// when that is fresh.
    pub(super) fn proved(
        &mut self,
        place: &Place,
        key: &Arc<FetchedKey>,
    ) -> Option<(Bytes, Instant)> {
        let kept = self.places.get_mut(place)?.kept.as_mut()?;
        let served = if Arc::ptr_eq(&kept.key, key) { kept.served.take() } else { None };
        served.map(|served| (served, kept.fresh_until))
    }

    /// Takes what the store kept over a restart.
    pub(super) fn remember(&mut self, keys: Vec<PublishedKey>) {
        let by_place = |key: PublishedKey| ((key.url.clone(), key.allow_private), key);
        self.remembered = keys.into_iter().map(by_place).collect();
    }

    /// What the store kept of a place, if no request has needed it since.
    pub(super) fn remembered(&self, place: &Place) -> Option<PublishedKey> {
        if self.remembered.is_empty() {
            return None;
        }
        self.remembered.get(&(place.url.clone(), place.allow_private)).cloned()
    }

    /// Takes up what was remembered of a place: the key that was read from it, if it still is one.
    pub(super) fn take_up(
        &mut self,
        place: &Place,
        now: Moment,
        key: Option<(Arc<FetchedKey>, Timestamp)>,
    ) {
        self.remembered.remove(&(place.url.clone(), place.allow_private));
        let Some((key, fresh_until)) = key else { return };
        if !self.places.contains_key(place) {
            self.make_room();
        }
        let entry = self.places.entry(place.clone()).or_insert_with(|| Entry::new(now));
        let fresh_until = now.steady_at(fresh_until);
        // What was fetched meanwhile is newer.
        entry.kept.get_or_insert(Kept { key, fresh_until, served: None });
    }

    /// What is kept and may do, be it old.
    pub(super) fn usable(
        &self,
        place: &Place,
        wanted: &WantedKey,
        now: Moment,
    ) -> Option<Arc<FetchedKey>> {
        self.places.get(place)?.usable(wanted, now)
    }

    /// Forgets the place that nobody has asked for the longest, rather one that had nothing.
    fn make_room(&mut self) {
        if self.places.len() < PLACES_MAX {
            return;
        }
        let idle = self.places.iter().filter(|(_, entry)| !entry.is_flying());
        let oldest = idle.min_by_key(|(_, entry)| (entry.kept.is_some(), entry.used));
        if let Some(place) = oldest.map(|(place, _)| place.clone()) {
            self.places.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests;
