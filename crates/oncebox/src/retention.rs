//! Retention: payloads, identities and effects expire on their own clocks.
//!
//! Payloads go first; the memory of identities outlives them and the provider's longest retry, and
//! the memory of effects outlives that of identities. All go in small steps, so that ingest never
//! waits for more than one of them. On PostgreSQL receipts lie in a table for each day, and those
//! of the sources that keep longest go with it, within a day after their window.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::limits;
use crate::maintenance::Maintenance;
use crate::receipt::{ReceiptId, SourceNo};
use crate::store::{ExpireRange, Store, StoreError, SweepCursor, day_of};

/// How long a source keeps what it received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Headers and bodies, counted from their arrival.
    pub payloads: SignedDuration,
    /// The memory of identities, counted from the last time one was seen. Never shorter than
    /// `payloads`.
    pub identities: SignedDuration,
}

impl Keep {
    /// The longer of two, window by window.
    fn or_longer(self, other: Self) -> Self {
        Self {
            payloads: self.payloads.max(other.payloads),
            identities: self.identities.max(other.identities),
        }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            payloads: SignedDuration::from_hours(30 * 24),
            identities: SignedDuration::from_hours(35 * 24),
        }
    }
}

/// What a pass removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Receipts with their payloads.
    pub receipts: usize,
    /// Identities.
    pub identities: usize,
    /// Effects.
    pub effects: usize,
}

/// Removes what has expired.
pub struct Retention {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    default: Keep,
    by_source: HashMap<String, Keep>,
    effects: SignedDuration,
    trusts_clock: Arc<dyn Fn() -> bool + Send + Sync>,
    leader: Option<Arc<Maintenance>>,
}

/// How long the background task rests between two steps, so that removal takes a small share of
/// the store.
const STEP_PAUSE: Duration = Duration::from_millis(100);

/// How long it rests between two passes.
const PASS_PAUSE: Duration = Duration::from_secs(600);

/// How often the windows of this node are told. What a node told counts for a day.
const TELL_EVERY: Duration = Duration::from_secs(3600);

/// Passes after which the background task begins at the oldest receipt again. Those in between
/// go on where the last one ended, and do not look again at what others keep longer.
const PASSES_PER_ROUND: usize = 144;

/// How far receipts of sources that keep equally long have been walked.
type Walked = BTreeMap<SignedDuration, ReceiptId>;

impl Retention {
    /// Retention with a rule per source name. Where a node told the store of a longer window, that
    /// one counts; sources of which nobody told anything follow `default`.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        default: Keep,
        by_source: HashMap<String, Keep>,
    ) -> Self {
        let effects = SignedDuration::from_hours(i64::from(limits::EFFECT_DAYS) * 24);
        Self {
            store,
            clock,
            default,
            by_source,
            effects,
            trusts_clock: Arc::new(|| true),
            leader: None,
        }
    }

    /// Remembers effects for this long, or as long as identities if that is longer: an event that
    /// is still recognised must not do again what it did.
    pub fn keeping_effects(self, effects: SignedDuration) -> Self {
        Self { effects, ..self }
    }

    /// Removes nothing in the background while `trusted` says no: a clock that jumped ahead would
    /// expire what is young.
    pub fn while_clock_is(self, trusted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { trusts_clock: Arc::new(trusted), ..self }
    }

    /// Removes things in the background only while this node leads maintenance.
    pub fn by_leader(self, leader: Arc<Maintenance>) -> Self {
        Self { leader: Some(leader), ..self }
    }

    fn is_led_elsewhere(&self) -> bool {
        self.leader.as_ref().is_some_and(|leader| !leader.leads())
    }

    /// One whole pass, as fast as it goes. `progress` hears the running totals.
    pub async fn run_once(
        &self,
        mut progress: impl FnMut(Removed) + Send,
    ) -> Result<Removed, StoreError> {
        self.pass(Duration::ZERO, &mut Walked::new(), &mut progress).await
    }

    /// Passes in the background until `stop` turns true.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut walked = Walked::new();
        let mut told: Option<Instant> = None;
        for number in 1.. {
            if told.is_none_or(|told| told.elapsed() > TELL_EVERY) {
                match self.store.tell_windows(&self.by_source).await {
                    Ok(()) => told = Some(Instant::now()),
                    Err(error) => warn!(%error, "retention could not tell its windows"),
                }
            }
            // Another that led meanwhile may have let go what was walked over here.
            if number % PASSES_PER_ROUND == 0 || self.is_led_elsewhere() {
                walked.clear();
            }
            let pass = async {
                if self.is_led_elsewhere() {
                    tokio::time::sleep(limits::FOLD_EVERY).await;
                    return;
                }
                if !(self.trusts_clock)() {
                    warn!("retention removes nothing while the clock is suspect");
                    tokio::time::sleep(PASS_PAUSE).await;
                    return;
                }
                match self.pass(STEP_PAUSE, &mut walked, &mut |_| {}).await {
                    Ok(removed) if removed == Removed::default() => {}
                    Ok(removed) => info!(
                        receipts = removed.receipts,
                        identities = removed.identities,
                        effects = removed.effects,
                        "retention removed what had expired"
                    ),
                    Err(error) => warn!(%error, "retention could not finish its pass"),
                }
                tokio::time::sleep(PASS_PAUSE).await;
            };
            tokio::select! {
                () = pass => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    async fn pass(
        &self,
        pause: Duration,
        walked: &mut Walked,
        progress: &mut (impl FnMut(Removed) + Send),
    ) -> Result<Removed, StoreError> {
        let now = self.now().await?;
        let keeps = self.keeps().await?;
        let mut removed = Removed::default();
        let mut failed = None;
        // Sources that keep equally long are walked together.
        let mut windows: BTreeMap<SignedDuration, Vec<SourceNo>> = BTreeMap::new();
        for (source, keep) in &keeps {
            windows.entry(keep.payloads).or_default().push(*source);
        }
        let longest = windows.keys().next_back().copied();
        for (window, sources) in windows {
            let mut before = ReceiptId::floor(ago(now, window));
            if longest == Some(window) {
                let range = ExpireRange {
                    after: ReceiptId::from_bytes([0; 16]),
                    before,
                    sources: Vec::new(),
                    at: now,
                };
                // What cannot be done with days is no reason to keep everything else.
                let floor = match self.expire_days(&range, pause, &mut removed, progress).await {
                    Ok(floor) => floor,
                    Err(error) => {
                        failed = Some(error);
                        range.after
                    }
                };
                // Until the end of their day, where that is soon.
                if window >= limits::WHOLE_DAYS {
                    before = floor;
                }
            }
            let after = walked.entry(window).or_insert(ReceiptId::from_bytes([0; 16]));
            loop {
                let range =
                    ExpireRange { after: *after, before, sources: sources.clone(), at: now };
                let step = self.store.expire_receipts(&range).await?;
                removed.receipts += step.removed;
                progress(removed);
                let Some(next) = step.next else { break };
                *after = next;
                if self.is_led_elsewhere() {
                    return Ok(removed);
                }
                tokio::time::sleep(pause).await;
            }
        }
        self.sweep(&keeps, now, pause, &mut removed, progress).await?;
        match failed {
            Some(error) => Err(error),
            None => Ok(removed),
        }
    }

    /// Forgets identities, and then effects, that were last seen too long ago.
    async fn sweep(
        &self,
        keeps: &[(SourceNo, Keep)],
        now: Timestamp,
        pause: Duration,
        removed: &mut Removed,
        progress: &mut (impl FnMut(Removed) + Send),
    ) -> Result<(), StoreError> {
        let last_seen: Vec<_> = keeps
            .iter()
            .map(|(source, keep)| (*source, day_of(ago(now, keep.identities))))
            .collect();
        let mut cursor = Some(SweepCursor::default());
        while let Some(from) = cursor.filter(|_| !self.is_led_elsewhere()) {
            let step = self.store.expire_identities(from, &last_seen).await?;
            removed.identities += step.removed;
            progress(*removed);
            cursor = step.next;
            tokio::time::sleep(pause).await;
        }
        let longest = keeps.iter().map(|(_, keep)| keep.identities).max();
        let done_before =
            ago(now, longest.map_or(self.effects, |longest| longest.max(self.effects)));
        let mut cursor = Some(SweepCursor::default());
        while let Some(from) = cursor.filter(|_| !self.is_led_elsewhere()) {
            let step = self.store.expire_effects(from, done_before).await?;
            removed.effects += step.removed;
            progress(*removed);
            cursor = step.next;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Removes whole days. Returns before which receipt the others go one by one.
    async fn expire_days(
        &self,
        range: &ExpireRange,
        pause: Duration,
        removed: &mut Removed,
        progress: &mut (impl FnMut(Removed) + Send),
    ) -> Result<ReceiptId, StoreError> {
        loop {
            let step = self.store.expire_days(range).await?;
            removed.receipts += step.removed;
            progress(*removed);
            match step.floor {
                Some(floor) => return Ok(floor.min(range.before)),
                None if self.is_led_elsewhere() => return Ok(range.after),
                None => tokio::time::sleep(pause).await,
            }
        }
    }

    /// The time by which things expire: ours or the store's, whichever is earlier, so that a
    /// clock that runs ahead removes nothing too soon.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let ours = self.clock.now();
        let health = self.store.health().await?;
        Ok(health.clock.map_or(ours, |theirs| theirs.min(ours)))
    }

    async fn keeps(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
        let sources = self.store.sources().await?;
        let told: HashMap<SourceNo, Keep> = self.store.windows().await?.into_iter().collect();
        let keep = |(source, name): (SourceNo, String)| {
            let keep = match (self.by_source.get(&name), told.get(&source)) {
                (Some(ours), Some(told)) => ours.or_longer(*told),
                (Some(one), None) | (None, Some(one)) => *one,
                (None, None) => self.default,
            };
            (source, keep)
        };
        Ok(sources.into_iter().map(keep).collect())
    }
}

fn ago(now: Timestamp, window: SignedDuration) -> Timestamp {
    now.checked_sub(window).unwrap_or(Timestamp::UNIX_EPOCH)
}
