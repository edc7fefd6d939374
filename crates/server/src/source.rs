//! Sources as they run: provider, keys, rules and stored numbers together.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use governor::{DefaultDirectRateLimiter, InsufficientCapacity, Quota, RateLimiter};
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox::receipt::{OddRules, SecretNo, SourceNo, Taker};
use oncebox::store::{Store, StoreError};
use oncebox_verify::{Event, Keyring, Piece, Provider, Said};

use crate::capture;
use crate::config::{Ack, Config, Keyrings, Signers, SourceConfig};
use crate::fingerprint::Fingerprints;
use crate::keys::Asker;
use crate::metrics::{Metrics, SourceMetrics};
use crate::pairing::{self, Pairs};
use crate::pattern::{Pattern, any_matches};
use crate::push::LiveKeys;
use crate::route::{Route, Routes};
use crate::state::Means;

mod stand_in;

use stand_in::StandIns;

/// One source, as it runs.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name.
    pub name: Arc<str>,
    /// Its number in the store.
    pub number: SourceNo,
    /// How its provider signs and names events.
    pub provider: Provider,
    /// Its secrets, decoded.
    pub keyring: Arc<Keyring>,
    /// The URL its provider signs, where it signs one and it was configured.
    pub public_url: Option<String>,
    /// Whether the provider signs the URL, says a part of an event in it, or asks for a hash of it.
    pub signs_url: bool,
    /// Its counters.
    pub metrics: Arc<SourceMetrics>,
    /// Asks for the keys of its provider.
    pub asker: Arc<Asker>,
    /// Whether subscriptions are confirmed for the operator.
    pub confirms_subscriptions: bool,
    /// Whether it keeps whatever comes, unverified.
    pub is_capture: bool,
    /// How many rejected requests of a reason it keeps.
    pub keep_rejected: u32,
    /// Where its provider tells the secret.
    pub pairs: Option<Pairs>,
    /// Where routes that sign with its keys find them.
    signs: Option<LiveKeys>,
    /// The stored numbers of the secrets, in the order of the keyring.
    secrets: Vec<SecretNo>,
    events: Vec<Pattern>,
    routes: Vec<Arc<Route>>,
    /// How long an answer waits for the outcome, where it does.
    ack_timeout: Option<Duration>,
    odd_rules: OddRules,
    rate: Option<Arc<DefaultDirectRateLimiter>>,
    quota: Option<i64>,
    credentials: Vec<HeaderName>,
    fingerprints: Arc<Fingerprints>,
}

impl Source {
    /// Whether events of this type are stored.
    pub fn takes(&self, event_type: &str) -> bool {
        any_matches(&self.events, event_type)
    }

    /// The routes that take an event.
    pub fn takers(&self, event: &Event<'_>, body: &[u8]) -> Vec<Taker> {
        self.routes.iter().filter_map(|route| route.taker(event, body)).collect()
    }

    /// The route whose outcome an answer waits for, and for how long.
    pub fn awaits(&self, takers: &[Taker]) -> Option<(Arc<Route>, Duration)> {
        let timeout = self.ack_timeout?;
        let taken = |route: &&Arc<Route>| takers.iter().any(|taker| taker.route == route.number);
        self.routes.iter().find(taken).map(|route| (route.clone(), timeout))
    }

    /// The stored number of a secret of the keyring.
    pub fn secret(&self, index: usize) -> SecretNo {
        self.secrets.get(index).copied().unwrap_or(SecretNo(0))
    }

    /// The stored number of a secret of the keyring; none where a request was proved by a key that
    /// the provider publishes.
    pub fn secret_used(&self, index: usize) -> Option<SecretNo> {
        self.secrets.get(index).copied()
    }

    /// The same source with other keys, whose stored numbers it learns.
    pub async fn with_keyring(
        &self,
        keyring: Arc<Keyring>,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut secrets = Vec::new();
        for secret in keyring.secrets() {
            secrets.push(store.register_secret(self.number, &secret.fingerprint(), now).await?);
        }
        Ok(Self { keyring, secrets, ..self.clone() })
    }

    /// The same source once the strongest proof of its provider is required. None where nothing
    /// changes by that.
    fn requiring_strongest(&self) -> Option<Self> {
        if !self.keyring.learns(&self.provider) {
            return None;
        }
        // Its secrets are the same, and so are their numbers.
        let keyring = self.keyring.with_strongest(&self.provider).ok()?;
        Some(Self { keyring: Arc::new(keyring), ..self.clone() })
    }

    /// Has routes that sign with its keys sign with these.
    fn tell_signers(&self) {
        if let Some(keys) = &self.signs {
            keys.store(self.keyring.clone());
        }
    }

    /// Whether so many more events are within the rate of the source. Of more than may ever come at
    /// once, as many as may.
    pub fn is_within_rate_of(&self, events: usize) -> bool {
        let Some(rate) = &self.rate else { return true };
        let count = |events: u32| NonZeroU32::new(events).map(|events| rate.check_n(events));
        match count(u32::try_from(events).unwrap_or(u32::MAX)) {
            None | Some(Ok(Ok(()))) => true,
            Some(Ok(Err(_))) => false,
            Some(Err(InsufficientCapacity(most))) => matches!(count(most), Some(Ok(Ok(())))),
        }
    }

    /// Whether one more event is within the rate of the source.
    pub fn is_within_rate(&self) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.check().is_ok())
    }

    /// Whether a source that keeps this many bytes may keep more.
    pub fn is_within_quota(&self, stored_bytes: i64) -> bool {
        self.quota.is_none_or(|quota| stored_bytes < quota)
    }

    /// What happens to arrivals that look odd: the source's own word, else its provider's.
    pub fn odd_rules(&self) -> OddRules {
        self.odd_rules
    }

    /// Headers whose values are credentials.
    pub fn credentials(&self) -> &[HeaderName] {
        &self.credentials
    }

    /// What is kept of a credential.
    pub fn fingerprint(&self, credential: &[u8]) -> HeaderValue {
        self.fingerprints.print(credential)
    }

    fn new(
        name: &str,
        config: &SourceConfig,
        keyring: Keyring,
        number: SourceNo,
        metrics: &Metrics,
        fingerprints: Arc<Fingerprints>,
    ) -> Self {
        let mut credentials = vec![AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
        for header in config.entry.credential_headers() {
            credentials.extend(HeaderName::from_bytes(header.as_bytes()));
        }
        if config.is_capture() {
            credentials.extend_from_slice(capture::credentials());
        }
        Self {
            name: name.into(),
            number,
            provider: config.entry.clone(),
            keyring: Arc::new(keyring),
            public_url: config.public_url.clone(),
            signs_url: config.signs_url()
                || answers_with_url(&config.entry)
                || !config.entry.query_fields().is_empty(),
            metrics: Arc::new(metrics.of_source(name)),
            asker: Arc::new(Asker::new(name, config.allow_private, metrics)),
            confirms_subscriptions: config.confirm_subscriptions,
            is_capture: config.is_capture(),
            keep_rejected: config.keep_rejected,
            pairs: None,
            signs: None,
            secrets: Vec::new(),
            events: config.events.clone(),
            routes: Vec::new(),
            ack_timeout: (config.ack == Ack::Processed).then_some(config.ack_timeout.0),
            odd_rules: config.odd_rules(),
            rate: rate(config).map(Arc::new),
            quota: config.quota.map(|quota| i64::try_from(quota.bytes()).unwrap_or(i64::MAX)),
            credentials,
            fingerprints,
        }
    }
}

/// Whether a question of the provider is answered with a hash of the URL.
fn answers_with_url(provider: &Provider) -> bool {
    let is_url = |piece: &Piece| matches!(piece, Piece::Sha256WithSettingAndUrl(_));
    provider.handshakes.iter().any(|handshake| match &handshake.says {
        Said::Json(members) => members.iter().any(|(_, pieces)| pieces.iter().any(is_url)),
        Said::Text(pieces) => pieces.iter().any(is_url),
        Said::Nothing | Said::Exactly(_) => false,
    })
}

fn rate(config: &SourceConfig) -> Option<DefaultDirectRateLimiter> {
    let (rate, burst) = config.rate_limit()?;
    let quota = Quota::per_second(NonZeroU32::new(rate)?);
    let quota = match burst.and_then(NonZeroU32::new) {
        Some(burst) => quota.allow_burst(burst),
        None => quota,
    };
    Some(RateLimiter::direct(quota))
}

/// Every source of a configuration.
#[derive(Debug)]
pub struct Sources {
    by_name: HashMap<String, ArcSwap<Source>>,
    stand_ins: StandIns,
}

impl Sources {
    /// Registers the sources and secrets of a configuration and puts them together.
    pub async fn build(
        config: &Config,
        keyrings: Keyrings,
        signers: &Signers,
        routes: &Routes,
        means: &Means,
    ) -> Result<Self, StoreError> {
        let Means { store, metrics, .. } = means;
        let sealing = pairing::sealing_key(config).await?;
        let fingerprints = Arc::new(Fingerprints::of(&**store).await?);
        let key = stand_in::key(&keyrings, sealing.as_deref());
        let strongest = store.requiring_strongest().await?;
        let mut by_name = HashMap::new();
        for (name, keyring) in keyrings {
            let Some(rules) = config.sources.get(&name) else { continue };
            let number = store.register_source(&name, rules.renamed_from.as_deref()).await?;
            let prints = fingerprints.clone();
            let source = Source::new(&name, rules, keyring, number, metrics, prints);
            let mut source = pairing::in_force(source, sealing.as_ref(), means).await?;
            if strongest.contains(&number) {
                source = source.requiring_strongest().unwrap_or(source);
            }
            let ours = routes.iter().filter(|route| route.config.sources.contains(&name));
            source.routes = ours.cloned().collect();
            source.signs = signers.of_source(&name);
            source.tell_signers();
            by_name.insert(name, Arc::new(source));
        }
        let stand_ins = StandIns::new(&by_name, key);
        let by_name = by_name.into_iter().map(|(name, source)| (name, ArcSwap::new(source)));
        Ok(Self { by_name: by_name.collect(), stand_ins })
    }

    /// The source of that name.
    pub fn find(&self, name: &str) -> Option<Arc<Source>> {
        self.by_name.get(name).map(ArcSwap::load_full)
    }

    /// Puts a source with other keys in the place of the one it was made of. Requests under way
    /// keep what they started with.
    pub fn replace(&self, source: Source) {
        source.tell_signers();
        if let Some(place) = self.by_name.get(&*source.name) {
            place.store(Arc::new(source));
        }
    }

    /// Requires the strongest proof of a source from now on.
    pub fn require_strongest(&self, source: &Source) {
        if let Some(source) = source.requiring_strongest() {
            self.replace(source);
        }
    }

    /// Requires the strongest proof of each source of which another process has noted that it came.
    pub async fn refresh_strongest(&self, store: &dyn Store) -> Result<(), StoreError> {
        let learning: Vec<_> =
            self.iter().filter(|source| source.keyring.learns(&source.provider)).collect();
        if learning.is_empty() {
            return Ok(());
        }
        let noted = store.requiring_strongest().await?;
        for source in learning.iter().filter(|source| noted.contains(&source.number)) {
            self.require_strongest(source);
        }
        Ok(())
    }

    /// The source whose line a request to no source takes, where nobody may tell. None where there
    /// is no source that could.
    pub fn stand_in(&self, name: &str) -> Option<Arc<Source>> {
        self.find(self.stand_ins.draw(name)?)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Source>> {
        self.by_name.values().map(ArcSwap::load_full)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}
