//! What was fetched, what is being fetched, and what must not be asked for yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
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
        let new =
            || Entry { kept: None, failed: None, refreshed: None, flight: None, used: now.steady };
        let entry = self.places.entry(place.clone()).or_insert_with(new);
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
    pub(super) fn end(
        &mut self,
        place: &Place,
        now: Moment,
        answer: Result<(Arc<FetchedKey>, Option<Duration>), KeyFailure>,
    ) {
        let Some(entry) = self.places.get_mut(place) else { return };
        entry.flight = None;
        match answer {
            Ok((key, max_age)) => {
                let life = max_age.unwrap_or(KEPT_USUALLY).clamp(KEPT.0, KEPT.1);
                entry.kept = Some(Kept { key, fresh_until: now.steady + life });
                entry.failed = None;
            }
            Err(failure) => entry.failed = Some((now.steady, failure)),
        }
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
