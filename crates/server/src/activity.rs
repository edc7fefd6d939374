//! What sources accept and reject, for the people who operate them.
//!
//! Noted in memory as it happens and written about once a second: a storm of requests that are not
//! believed is no storm of writes. When a source rejects everything it is sent, the log says so.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use oncebox::limits;
use oncebox::receipt::{RouteNo, SecretNo, SourceNo};
use oncebox::store::{ActivityNote, Happening, Rejected, RejectionNote, Store, StoreError};
use tracing::{debug, info, warn};

use crate::line::Line;
use crate::metrics::Outcome;
use crate::source::Source;

/// How often what was noted is written.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// How long writing may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// After so many rejected requests without an accepted one the log warns.
const WORTH_TELLING: u64 = 5;

/// How long the log then says no more of the same source.
const SILENCE: Duration = Duration::from_secs(600);

/// The outcome of a request, as far as its source is concerned.
#[derive(Debug)]
pub struct Seen<'a> {
    /// When it came.
    pub at: Timestamp,
    /// The secret by which it verified, if it did.
    pub secret: Option<SecretNo>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Why, where it was not kept.
    pub reason: Option<&'static str>,
    /// What the operator should check.
    pub hint: Option<&'a str>,
}

impl Seen<'_> {
    fn is_accepted(&self) -> bool {
        use Outcome::{Accepted, Conflict, Duplicate, Ignored, Twin};
        matches!(self.outcome, Accepted | Conflict | Duplicate | Ignored | Twin)
    }

    /// The rejection, if it says something about the source. A person who opens the URL in
    /// a browser does not.
    fn rejection(&self) -> Option<RejectionNote> {
        let reason = self.reason.filter(|reason| *reason != "method")?;
        let is_rejected = matches!(self.outcome, Outcome::Rejected | Outcome::Malformed);
        let hint = self.hint.map(str::to_owned);
        is_rejected.then(|| RejectionNote { at: self.at, reason: reason.to_owned(), hint })
    }
}

/// What was noted and not yet written, and what is told of it.
#[derive(Debug, Default)]
pub struct Activity {
    sources: Mutex<BTreeMap<SourceNo, Noted>>,
    rejected: Mutex<HashMap<(SourceNo, String), VecDeque<Rejected>>>,
    lines: Mutex<Lines>,
    routes: Mutex<HashMap<RouteNo, String>>,
    is_watched: AtomicBool,
}

/// What is known of one source.
#[derive(Debug)]
struct Noted {
    name: String,
    pending: ActivityNote,
    has_news: bool,
    /// Requests that were rejected since the last that was accepted, and since when.
    in_a_row: u64,
    since: Timestamp,
    /// How often each reason was among them, and the last of it.
    reasons: BTreeMap<String, (u64, RejectionNote)>,
    told_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<Happening>,
    left_out: u64,
}

impl Activity {
    /// Notes the outcome of a request.
    pub fn note(&self, source: &Source, seen: &Seen<'_>) {
        let mut sources = self.sources.lock().expect("no panic while noting");
        let noted = sources.entry(source.number).or_insert_with(|| Noted::new(source, seen.at));
        if let Some(secret) = seen.secret {
            noted.verified_by(secret, seen.at);
        }
        if seen.is_accepted() {
            noted.accepted(seen.at);
        } else if let Some(rejection) = seen.rejection() {
            noted.rejected(rejection);
        }
    }

    /// Keeps a rejected request until it is written. Of one source and reason no more wait than are
    /// kept, nor more bytes than [`limits::REJECTED_PENDING`].
    pub fn keep(&self, rejected: Rejected) {
        let mut waiting = self.rejected.lock().expect("no panic while keeping");
        let key = (rejected.source, rejected.rejection.reason.clone());
        let queue = waiting.entry(key).or_default();
        let most = usize::try_from(rejected.keep).unwrap_or(usize::MAX);
        queue.push_back(rejected);
        let bytes = |queue: &VecDeque<Rejected>| queue.iter().map(weight).sum::<usize>();
        while queue.len() > most || queue.len() > 1 && bytes(queue) > limits::REJECTED_PENDING {
            queue.pop_front();
        }
    }

    /// Takes the names of the routes that are in force.
    pub fn name_routes(&self, names: HashMap<RouteNo, String>) {
        *self.routes.lock().expect("no panic while naming") = names;
    }

    /// The name of a route; `None` if this process does not serve it.
    pub fn route_name(&self, route: RouteNo) -> Option<String> {
        self.routes.lock().expect("no panic while naming").get(&route).cloned()
    }

    /// Whether an `oncebox tail` watches.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Writes a line for every `oncebox tail`, if one watches.
    pub fn show(&self, line: impl FnOnce() -> Line) {
        if !self.is_watched() {
            return;
        }
        let line = line();
        let mut lines = self.lines.lock().expect("no panic while showing");
        if lines.waiting.len() >= limits::HAPPENINGS_A_SECOND {
            lines.left_out += 1;
            return;
        }
        let (at, line) = (line.at, line.to_json());
        lines.waiting.push(Happening { no: 0, at, line });
    }

    /// Sources that rejected everything they were sent lately, in words.
    pub fn rejecting(&self) -> Vec<String> {
        let sources = self.sources.lock().expect("no panic while looking");
        sources.values().filter(|noted| noted.in_a_row >= WORTH_TELLING).map(Noted::words).collect()
    }

    /// Writes what was noted, and asks whether a `tail` watches. What cannot be written is gone:
    /// it decides nothing.
    pub async fn flush(&self, store: &dyn Store) {
        match tokio::time::timeout(PATIENCE, self.write(store)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "what sources were sent could not be written"),
            Err(_) => debug!("what sources were sent could not be written in time"),
        }
    }

    async fn write(&self, store: &dyn Store) -> Result<(), StoreError> {
        let (notes, rejected, lines) = self.take();
        if !lines.is_empty() {
            store.note_happenings(lines).await?;
        }
        self.is_watched.store(store.is_watched().await?, Ordering::Relaxed);
        if !notes.is_empty() || !rejected.is_empty() {
            store.note_activity(notes, rejected).await?;
        }
        Ok(())
    }

    fn take(&self) -> (Vec<ActivityNote>, Vec<Rejected>, Vec<Happening>) {
        let mut sources = self.sources.lock().expect("no panic while writing");
        let notes = sources.values_mut().filter_map(Noted::take).collect();
        drop(sources);
        let rejected = std::mem::take(&mut *self.rejected.lock().expect("no panic while writing"));
        let mut rejected: Vec<Rejected> = rejected.into_values().flatten().collect();
        rejected.sort_by_key(|rejected| rejected.id);
        let lines = std::mem::take(&mut *self.lines.lock().expect("no panic while writing"));
        (notes, rejected, lines.into_happenings())
    }
}

impl Lines {
    /// What is written; what was left out is told in a line of its own.
    fn into_happenings(self) -> Vec<Happening> {
        let Self { mut waiting, left_out } = self;
        if let Some(at) = waiting.last().filter(|_| left_out > 0).map(|last| last.at) {
            let line = Line::left_out(at, left_out).to_json();
            waiting.push(Happening { no: 0, at, line });
        }
        waiting
    }
}

impl Noted {
    fn new(source: &Source, since: Timestamp) -> Self {
        Self {
            name: source.name.to_string(),
            pending: empty(source.number),
            has_news: false,
            in_a_row: 0,
            since,
            reasons: BTreeMap::new(),
            told_at: None,
        }
    }

    fn verified_by(&mut self, secret: SecretNo, at: Timestamp) {
        self.has_news = true;
        match self.pending.secrets.iter_mut().find(|(known, _)| *known == secret) {
            Some((_, last)) => *last = at.max(*last),
            None => self.pending.secrets.push((secret, at)),
        }
    }

    fn accepted(&mut self, at: Timestamp) {
        self.has_news = true;
        self.pending.accepted_at = Some(self.pending.accepted_at.map_or(at, |last| last.max(at)));
        self.pending.rejected_in_a_row = 0;
        if self.told_at.take().is_some() {
            let (source, rejected) = (&self.name, self.in_a_row);
            info!(source, rejected, "source {source} accepted a request again");
        }
        self.in_a_row = 0;
        self.reasons.clear();
    }

    fn rejected(&mut self, rejection: RejectionNote) {
        self.has_news = true;
        if self.in_a_row == 0 {
            self.since = rejection.at;
        }
        self.in_a_row += 1;
        self.pending.rejected_in_a_row += 1;
        let at = rejection.at;
        let entry = self.reasons.entry(rejection.reason.clone());
        let (times, last) = entry.or_insert_with(|| (0, rejection.clone()));
        *times += 1;
        *last = rejection;
        // A stray request of another sender says nothing of why the others are rejected.
        let usual = self.usual().map(|(_, usual)| RejectionNote { at, ..usual.clone() });
        self.pending.rejection = usual;
        let is_silent = self.told_at.is_some_and(|told| told.elapsed() < SILENCE);
        if self.in_a_row >= WORTH_TELLING && !is_silent {
            self.told_at = Some(Instant::now());
            let usual = self.pending.rejection.as_ref();
            let reason = usual.map(|usual| usual.reason.as_str());
            let hint = usual.and_then(|usual| usual.hint.as_deref());
            let (source, rejected) = (&self.name, self.in_a_row);
            warn!(source, rejected, reason, hint, "{}", self.words());
        }
    }

    /// The most frequent reason since the last accepted request, and how often it was; of several
    /// the newest.
    fn usual(&self) -> Option<(u64, &RejectionNote)> {
        let reasons = self.reasons.values().map(|(times, last)| (*times, last));
        reasons.max_by_key(|(times, last)| (*times, last.at))
    }

    /// What was rejected, since when and why.
    fn words(&self) -> String {
        let (name, number) = (&self.name, self.in_a_row);
        let reason = match self.usual() {
            Some((times, usual)) if times < number => {
                format!("{} ({times} of them)", usual.reason)
            }
            usual => usual.map(|(_, usual)| usual.reason.clone()).unwrap_or_default(),
        };
        let since = self.since.strftime("%Y-%m-%d %H:%M:%SZ");
        format!(
            "source {name} rejected all {number} requests since {since}: {reason}; nothing of \
             them was recorded"
        )
    }

    fn take(&mut self) -> Option<ActivityNote> {
        let source = self.pending.source;
        let note = std::mem::replace(&mut self.pending, empty(source));
        std::mem::take(&mut self.has_news).then_some(note)
    }
}

fn empty(source: SourceNo) -> ActivityNote {
    ActivityNote {
        source,
        accepted_at: None,
        rejection: None,
        rejected_in_a_row: 0,
        secrets: Vec::new(),
    }
}

/// What a request that waits to be written takes of the memory.
fn weight(rejected: &Rejected) -> usize {
    rejected.headers.len() + rejected.body.len() + rejected.url.len()
}
