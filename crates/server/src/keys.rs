//! Keys that providers publish: fetched when a request needs one, kept, and asked for again.
//!
//! Whoever sends a request names the certificate or the key that is to prove it, so everything here
//! is bounded against the sender: a place outside the provider's pins is never asked (see
//! [`wanted_key`](oncebox_verify::wanted_key)), each place by one request at a time, an unknown key
//! of a set at most once a minute, places that have no key a few times a minute for each address,
//! and all places of a source together at a pace. Who cannot be judged for want of a key is told to
//! come back, never that the signature is wrong: that is for a set which was fetched since the
//! request came and lacks the key it names. A key that has proved a request is kept in the store
//! and taken up after a restart, so that strangers who use up the pace lock no provider out.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::Uri;
use oncebox::clock::Clock;
use oncebox::store::{PublishedKey, Store};
use oncebox_verify::{FetchedKey, Roots, WantedForm, WantedKey};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tracing::warn;

use crate::failures::Failures;
use crate::logs::clean;
use crate::metrics::{KeyCounters, KeyOutcome, Metrics};
use crate::push::Dial;

mod cache;
mod failure;
mod https;

pub use failure::KeyFailure;
pub use https::HttpsKeys;

use cache::{Asked, Cache, Fetched, Moment, Place, Ticket};

/// How long a key may take to come.
pub const FETCH_TIME: Duration = Duration::from_secs(3);

/// Places of one source that may be asked in a second, and at once.
const PACE: (u32, u32) = (2, 60);

/// Places that an address may name in a minute and that have no key. So few that it takes dozens of
/// addresses to use up the pace of a source, which keeps its first key from it.
const IN_VAIN_PER_MINUTE: u32 = 5;

/// The longest URL whose key is kept in the store.
const KEPT_URL_BYTES: usize = 1024;

/// URLs that are visited at the same time for other reasons.
const VISITS_MAX: usize = 4;

/// Serves what is at a URL: the provider's server, or a test.
#[async_trait]
pub trait KeySource: Send + Sync + 'static {
    /// What is at a URL of `https`, at most
    /// [`FETCHED_BYTES_MAX`](oncebox_verify::FETCHED_BYTES_MAX) of it. Redirects lead nowhere.
    async fn fetch(&self, url: &Uri, allow_private: bool) -> Result<Served, KeyFailure>;
}

/// What was served.
#[derive(Clone, Debug)]
pub struct Served {
    /// The body of the answer.
    pub body: Bytes,
    /// For how long the server says that it may be kept.
    pub max_age: Option<Duration>,
}

/// Where keys come from, if not from the servers of the providers and the roots of the system.
#[derive(Clone, Default)]
pub struct KeyOptions {
    /// Who serves them.
    pub source: Option<Arc<dyn KeySource>>,
    /// What certificates must lead to.
    pub roots: Option<Arc<Roots>>,
}

/// Who asks for keys: one source.
#[derive(Debug)]
pub struct Asker {
    name: Arc<str>,
    /// Whether it may ask at private addresses.
    pub(crate) allow_private: bool,
    counters: KeyCounters,
    pace: DefaultDirectRateLimiter,
}

impl Asker {
    /// A source that has asked for nothing yet.
    pub fn new(name: &str, allow_private: bool, metrics: &Metrics) -> Self {
        let [each, at_once] =
            [PACE.0, PACE.1].map(|n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN));
        let pace = RateLimiter::direct(Quota::per_second(each).allow_burst(at_once));
        Self { name: name.into(), allow_private, counters: metrics.keys.of_source(name), pace }
    }
}

/// The keys of all providers.
#[derive(Clone)]
pub struct Keys {
    shared: Arc<Shared>,
}

/// What requests need, which go on when whoever asked is gone.
struct Shared {
    source: Arc<dyn KeySource>,
    roots: OnceCell<Arc<Roots>>,
    cache: Mutex<Cache>,
    /// Places without a key, by the address that named them.
    in_vain: Failures,
    visits: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
}

impl Keys {
    /// Fetches by way of `dial` unless told otherwise, and begins with what the store has kept.
    pub async fn start(
        options: KeyOptions,
        dial: &Dial,
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
    ) -> Self {
        let source = options.source.unwrap_or_else(|| Arc::new(HttpsKeys::new(dial)));
        let roots = OnceCell::new_with(options.roots);
        let visits = Arc::new(Semaphore::new(VISITS_MAX));
        let (cache, in_vain) = (Mutex::default(), Failures::default());
        let shared = Shared { source, roots, cache, in_vain, visits, clock, store };
        match shared.store.published_keys().await {
            Ok(kept) => shared.cache().remember(kept),
            Err(error) => warn!(%error, "the keys of providers are fetched anew"),
        }
        Self { shared: Arc::new(shared) }
    }

    /// The certificate or key set that a request wants. A set that lacks the key it names is given
    /// where the provider has none such.
    pub async fn get(
        &self,
        asker: &Asker,
        wanted: &WantedKey,
        sender: IpAddr,
    ) -> Result<Arc<FetchedKey>, KeyFailure> {
        let shared = &self.shared;
        let place = Place::of(wanted, asker.allow_private);
        let is_named = matches!(wanted.form, WantedForm::Certificate { .. });
        let charged: Charged = is_named.then_some(sender);
        let may_ask = || {
            shared.check_in_vain(charged)?;
            asker.pace.check().map_err(|_| KeyFailure::too_often())
        };
        shared.recall(&place, wanted).await;
        let asked = shared.cache().ask(&place, wanted, shared.now(), may_ask);
        let (mut ear, is_ours) = match asked {
            Asked::Kept(key) => {
                asker.counters.count(KeyOutcome::Cached);
                return Ok(key);
            }
            Asked::Stale(key) => {
                asker.counters.count(KeyOutcome::Stale);
                return Ok(key);
            }
            Asked::Failed(failure) => {
                asker.counters.count(KeyOutcome::Refused);
                if failure.is_crowded() {
                    shared.charge(charged);
                }
                return Err(failure);
            }
            Asked::Joined(ear) => {
                asker.counters.count(KeyOutcome::Coalesced);
                (ear, false)
            }
            Asked::Yours(ticket) => {
                let ear = ticket.ear();
                shared.charge(charged);
                // On its own, for others wait for it, too: whoever asked first may go away.
                let flight = fly(shared.clone(), place.clone(), wanted.clone(), ticket, charged);
                tokio::spawn(flight);
                (ear, true)
            }
        };
        let heard = ear.wait_for(Option::is_some).await.map(|answer| answer.clone());
        let answer = heard.ok().flatten().unwrap_or_else(|| Err(KeyFailure::broken_off()));
        if is_ours {
            let outcome = if answer.is_ok() { KeyOutcome::Fetched } else { KeyOutcome::Failed };
            asker.counters.count(outcome);
        }
        answer.or_else(|failure| self.make_do(asker, &place, wanted, failure, is_ours))
    }

    /// What was good before may do while the provider is down, for a while.
    fn make_do(
        &self,
        asker: &Asker,
        place: &Place,
        wanted: &WantedKey,
        failure: KeyFailure,
        is_ours: bool,
    ) -> Result<Arc<FetchedKey>, KeyFailure> {
        let stale = self.shared.cache().usable(place, wanted, self.shared.now());
        if is_ours {
            let url = &*clean(&wanted.url);
            let (source, reason) = (&*asker.name, failure.code());
            let is_stale = stale.is_some();
            warn!(source, url, reason, is_stale, "a key of the provider cannot be had: {failure}");
        }
        let Some(key) = stale else { return Err(failure) };
        asker.counters.count(KeyOutcome::Stale);
        Ok(key)
    }

    /// Has the store keep a key that has proved a request, the first time it does. The request does
    /// not wait for that.
    pub fn proved(&self, asker: &Asker, wanted: &WantedKey, key: &Arc<FetchedKey>) {
        let shared = &self.shared;
        let place = Place::of(wanted, asker.allow_private);
        let Some((served, fresh_until)) = shared.cache().proved(&place, key) else { return };
        if wanted.url.len() > KEPT_URL_BYTES {
            return;
        }
        let now = shared.now();
        let kept = PublishedKey {
            url: wanted.url.clone(),
            allow_private: asker.allow_private,
            served: served.to_vec(),
            fresh_until: now.wall_at(fresh_until),
            kept_at: now.wall,
        };
        let store = shared.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.keep_published_key(&kept).await {
                let url = &*clean(&kept.url);
                warn!(url, %error, "a key of the provider was not kept for the next start");
            }
        });
    }

    /// The right to visit a URL; none while too many others do.
    pub fn visitor(&self) -> Option<OwnedSemaphorePermit> {
        self.shared.visits.clone().try_acquire_owned().ok()
    }

    /// Asks a URL of the provider's once, as keys are asked for, and keeps nothing.
    pub async fn visit(&self, asker: &Asker, url: &str) -> Result<Served, KeyFailure> {
        if asker.pace.check().is_err() {
            return Err(KeyFailure::too_often());
        }
        self.shared.fetch(url, asker.allow_private).await
    }
}

/// Who pays for a place that has no key: the sender, where the request names the place. The place
/// of a set is in the configuration or the entry, and there are few of them.
type Charged = Option<IpAddr>;

/// Makes a request for everybody who waits for it.
async fn fly(
    shared: Arc<Shared>,
    place: Place,
    wanted: WantedKey,
    ticket: Ticket,
    charged: Charged,
) {
    let answer = shared.fetch_key(&wanted, place.allow_private).await;
    let now = shared.now();
    let told = answer.as_ref().map(|fetched| fetched.key.clone()).map_err(KeyFailure::clone);
    let is_there = {
        let mut cache = shared.cache();
        cache.end(&place, now, answer);
        cache.usable(&place, &wanted, now).is_some()
    };
    if is_there {
        shared.forgive(charged);
    }
    ticket.tell(told);
}

impl Shared {
    fn check_in_vain(&self, charged: Charged) -> Result<(), KeyFailure> {
        let now = Instant::now();
        let over = |sender| self.in_vain.over(sender, IN_VAIN_PER_MINUTE, now);
        if charged.and_then(over).is_some() { Err(KeyFailure::in_vain()) } else { Ok(()) }
    }

    /// Notes that somebody is asked for a key, or cannot be, until it turns out to be there.
    fn charge(&self, charged: Charged) {
        if let Some(sender) = charged {
            // Over the limit there is nothing more to note.
            let _ = self.in_vain.note(sender, IN_VAIN_PER_MINUTE, Instant::now());
        }
    }

    fn forgive(&self, charged: Charged) {
        if let Some(sender) = charged {
            self.in_vain.forgive(sender, IN_VAIN_PER_MINUTE);
        }
    }

    async fn fetch_key(
        &self,
        wanted: &WantedKey,
        allow_private: bool,
    ) -> Result<Fetched, KeyFailure> {
        let Served { body, max_age } = self.fetch(&wanted.url, allow_private).await?;
        let key = self.read(wanted, &body).await?;
        Ok(Fetched { key, max_age, served: body })
    }

    /// Reads and checks what was served for a key.
    async fn read(&self, wanted: &WantedKey, served: &[u8]) -> Result<Arc<FetchedKey>, KeyFailure> {
        let roots = match &wanted.form {
            WantedForm::Certificate { chained: true, .. } => self.roots().await,
            _ => Arc::default(),
        };
        Ok(Arc::new(FetchedKey::parse(wanted, served, &roots, self.clock.now())?))
    }

    /// Takes up what the store kept of a place over a restart, read and checked anew.
    async fn recall(&self, place: &Place, wanted: &WantedKey) {
        let Some(kept) = self.cache().remembered(place) else { return };
        let key = self.read(wanted, &kept.served).await.ok();
        self.cache().take_up(place, self.now(), key.map(|key| (key, kept.fresh_until)));
    }

    async fn fetch(&self, url: &str, allow_private: bool) -> Result<Served, KeyFailure> {
        let url: Uri = url.parse().map_err(|_| KeyFailure::not_https())?;
        if url.scheme_str() != Some("https") {
            return Err(KeyFailure::not_https());
        }
        let fetching = self.source.fetch(&url, allow_private);
        tokio::time::timeout(FETCH_TIME, fetching).await.unwrap_or_else(|_| {
            let detail = format!("no whole answer within {FETCH_TIME:?}");
            Err(KeyFailure::new("timeout", detail))
        })
    }

    /// The roots of the system, read when they are first needed.
    async fn roots(&self) -> Arc<Roots> {
        let read = || {
            let found = rustls_native_certs::load_native_certs();
            Arc::new(Roots::from_der(found.certs.iter().map(AsRef::as_ref)))
        };
        let reading = || async { tokio::task::spawn_blocking(read).await.unwrap_or_default() };
        self.roots.get_or_init(reading).await.clone()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().expect("no panic while looking something up")
    }

    fn now(&self) -> Moment {
        Moment { steady: Instant::now(), wall: self.clock.now() }
    }
}
