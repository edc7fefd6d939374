//! Structured logs: one line per decision, never a secret, a signature or a payload.
//!
//! Lines are formatted where they arise and written by a thread of their own, through a bounded
//! buffer: a slow terminal or a full pipe never holds up a sender. What does not fit is dropped
//! and counted.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http::HeaderMap;
use oncebox::delivery::{Claimed, DeliveryId, Ending, Next, Reason};
use oncebox::receipt::ReceiptId;
use oncebox::worker::Report;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogConfig, LogFormat, LogLevel};
use crate::escape::escape;
use crate::metrics::Outcome;

mod short;

/// The longest value of a field that a sender had a hand in.
const VALUE_BYTES_MAX: usize = 512;

/// Bytes of lines that may wait to be written.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// How long the writer rests between two calls.
const REST: Duration = Duration::from_millis(5);

/// How long the end waits for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The target of the lines about webhooks.
pub const DECISION: &str = "oncebox::decision";

/// What was decided about one request.
pub struct Decided<'a> {
    /// The source, where there is one.
    pub source: Option<&'a str>,
    /// The provider's id of the event.
    pub event_id: Option<&'a str>,
    /// Its type.
    pub event_type: Option<&'a str>,
    /// The business thing it is about.
    pub object_id: Option<&'a str>,
    /// How many events came to what, where the request carried several.
    pub batch: Option<&'a [u64; Outcome::ALL.len()]>,
    /// The receipt that holds it.
    pub receipt: Option<ReceiptId>,
    /// What came of it.
    pub outcome: Outcome,
    /// Why, where it was not kept.
    pub reason: Option<&'static str>,
    /// What the operator should check.
    pub hint: Option<&'a str>,
    /// The status it was answered with.
    pub status: u16,
    /// Who sent it, as far as that is believed.
    pub sender: IpAddr,
    /// The path that was asked for, where it leads to no source or sources are hidden.
    pub path: Option<&'a str>,
    /// What ties the lines of one request together, also across machines.
    pub correlation: Option<String>,
    /// How long it took.
    pub took: Duration,
}

macro_rules! line {
    ($level:expr, $decided:expr) => {{
        let decided = $decided;
        let latency_us = u64::try_from(decided.took.as_micros()).unwrap_or(u64::MAX);
        let receipt = decided.receipt.map(|receipt| receipt.to_string());
        let of = |outcome: Outcome| decided.batch.map(|counts| counts[outcome as usize]);
        tracing::event!(
            target: DECISION,
            $level,
            source = decided.source.unwrap_or("unknown"),
            event_id = decided.event_id.map(clean).as_deref(),
            event_type = decided.event_type.map(clean).as_deref(),
            object_id = decided.object_id.map(clean).as_deref(),
            receipt = receipt.as_deref(),
            events = decided.batch.map(|counts| counts.iter().sum::<u64>()),
            accepted = of(Outcome::Accepted),
            duplicates = of(Outcome::Duplicate),
            conflicts = of(Outcome::Conflict),
            twins = of(Outcome::Twin),
            ignored = of(Outcome::Ignored),
            outcome = decided.outcome.as_str(),
            status = decided.status,
            path = decided.path.map(clean).as_deref(),
            sender = %decided.sender,
            reason = decided.reason,
            hint = decided.hint,
            correlation = decided.correlation.as_deref(),
            latency_us,
            "webhook"
        );
    }};
}

/// The target of the lines about deliveries.
pub const DELIVERY: &str = "oncebox::delivery";

/// How one attempt ended.
pub struct Attempt<'a> {
    /// The route.
    pub route: &'a str,
    /// What was tried.
    pub claimed: &'a Claimed,
    /// Where the delivery goes.
    pub next: Next,
    /// What its consumer made of it.
    pub report: &'a Report,
    /// How long it took.
    pub took: Duration,
}

macro_rules! attempt_line {
    ($level:expr, $attempt:expr) => {{
        let Attempt { route, claimed, next, report, took } = $attempt;
        let retry_ms = match next {
            Next::Retry(pause) | Next::Snooze(pause) => Some(milliseconds(*pause)),
            _ => None,
        };
        tracing::event!(
            target: DELIVERY,
            $level,
            route,
            source = claimed.source_name,
            event_id = &*clean(&claimed.event_id),
            event_type = &*clean(&claimed.event_type),
            receipt = %claimed.delivery.receipt,
            attempt = claimed.counts.attempts,
            outcome = next.as_str(),
            status = report.status,
            detail = report.detail.as_deref().map(clean).as_deref(),
            retry_ms,
            took_ms = milliseconds(*took),
            "delivery"
        );
    }};
}

/// Logs how an attempt ended: at `warn` if the delivery is dead, else at `info`.
pub fn attempt(attempt: &Attempt<'_>) {
    if attempt.next == Next::Dead {
        if tracing::enabled!(target: DELIVERY, Level::WARN) {
            attempt_line!(Level::WARN, attempt);
        }
    } else if tracing::enabled!(target: DELIVERY, Level::INFO) {
        attempt_line!(Level::INFO, attempt);
    }
}

/// Logs how an attempt of a worker that pulls ended: at `warn` if the delivery is dead, else at
/// `info`.
pub fn pulled(route: &str, ending: &Ending) {
    macro_rules! pulled_line {
        ($level:expr) => {
            tracing::event!(
                target: DELIVERY,
                $level,
                route,
                receipt = %ending.delivery.receipt,
                outcome = ending.next.as_str(),
                detail = ending.detail.as_deref().map(clean).as_deref(),
                took_ms = milliseconds(ending.took),
                "delivery"
            )
        };
    }
    if ending.next == Next::Dead {
        pulled_line!(Level::WARN);
    } else {
        pulled_line!(Level::INFO);
    }
}

/// Logs that a delivery was finished without an attempt.
pub fn skipped(route: &str, delivery: DeliveryId, reason: Reason) {
    tracing::info!(
        target: DELIVERY,
        route,
        receipt = %delivery.receipt,
        outcome = "skipped",
        reason = reason.as_str(),
        "delivery"
    );
}

/// Logs that a delivery is held until a person has said whether an effect happened.
pub fn parked(route: &str, delivery: DeliveryId, effect: &str) {
    tracing::warn!(
        target: DELIVERY,
        route,
        receipt = %delivery.receipt,
        outcome = "held",
        reason = Reason::UnknownEffect.as_str(),
        effect = &*clean(effect),
        "delivery"
    );
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether lines about webhooks are logged at all.
pub fn wants_decisions() -> bool {
    tracing::enabled!(target: DECISION, Level::INFO)
}

/// Logs a decision: at `warn` if it was our fault, else at `info`.
pub fn decision(decided: &Decided<'_>) {
    if decided.outcome == Outcome::Unavailable {
        if tracing::enabled!(target: DECISION, Level::WARN) {
            line!(Level::WARN, decided);
        }
    } else if wants_decisions() {
        line!(Level::INFO, decided);
    }
}

/// What ties the lines of one request together: the sender's `X-Request-Id` if it is a plain one,
/// else one of ours. None if nobody is going to read it.
pub fn correlation(headers: &HeaderMap) -> Option<String> {
    if !tracing::enabled!(target: DECISION, Level::WARN) {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let theirs = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    let theirs = theirs.filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(plain));
    Some(theirs.map_or_else(|| format!("{:016x}", next_number()), str::to_owned))
}

/// A number that is not used twice, and differs between processes.
fn next_number() -> u64 {
    static SALT: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number.wrapping_add(*SALT)
}

/// Text from a sender, safe to log: escaped, and ended at 512 bytes.
pub fn clean(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(VALUE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let safe = escape(&text[..end]);
    if end == text.len() { safe } else { Cow::Owned(format!("{safe}…")) }
}

/// A subscriber that writes as configured to `writer`.
pub fn subscriber<W>(config: &LogConfig, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let terminal = io::stderr().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let format = match config.format {
        LogFormat::Auto if terminal => LogFormat::Pretty,
        LogFormat::Auto => LogFormat::Json,
        format => format,
    };
    // In front of the layer, not of it: a filter of one layer remembers what `enabled!` asked last,
    // and drops the next line because of it.
    tracing_subscriber::registry().with(filter(config)).with(layer(format, colour, writer))
}

fn layer<S, W>(format: LogFormat, colour: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_ansi(colour).with_writer(writer);
    match format {
        LogFormat::Short => layer.event_format(short::Short).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
        LogFormat::Auto | LogFormat::Pretty => layer.boxed(),
    }
}

/// Our own lines as configured. Those of the libraries below us one level quieter: theirs are
/// about single connections, and a sender must not be able to fill a disk with them.
fn filter(config: &LogConfig) -> Targets {
    let (ours, theirs) = match config.level {
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
        LogLevel::Warn => (LevelFilter::WARN, LevelFilter::ERROR),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::ERROR),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
        // Below `info` the libraries may show bytes of a request.
        LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::INFO),
    };
    Targets::new().with_target("oncebox", ours).with_default(theirs)
}

/// Sends the logs of this process to stderr. The guard writes what is left when it is dropped.
pub fn init(config: &LogConfig) -> io::Result<Guard> {
    let lines = Lines::default();
    let waiting = lines.clone();
    let write = move || waiting.write_to(io::stderr());
    let thread = std::thread::Builder::new().name("log".into()).spawn(write)?;
    // A second server in one process, as in a test, logs to where the first one does.
    let _ = tracing::subscriber::set_global_default(subscriber(config, lines.clone()));
    Ok(Guard { lines, thread, patience: LAST_LINES })
}

/// Writes what is left of the logs when it is dropped, unless nobody reads them.
pub struct Guard {
    lines: Lines,
    thread: JoinHandle<()>,
    patience: Duration,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.lines.with(|waiting| waiting.ended = true);
        self.thread.thread().unpark();
        let (waiting, changed) = &*self.lines.0;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Not joined: the thread may hang in a write to a pipe that is full.
        let _ = changed.wait_timeout_while(waiting, self.patience, |waiting| !waiting.written);
    }
}

/// Lines on their way to stderr.
#[derive(Clone, Default)]
struct Lines(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    /// Nothing more is going to come.
    ended: bool,
    /// All that came has been written.
    written: bool,
}

impl Lines {
    fn with(&self, change: impl FnOnce(&mut Waiting)) {
        let (waiting, changed) = &*self.0;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = waiting.text.is_empty();
        change(&mut waiting);
        if was_empty {
            changed.notify_one();
        }
    }

    /// Writes lines until the end. After each time it rests for a moment: a thousand lines then
    /// cost one call and one wake-up, not a thousand of each.
    fn write_to(&self, mut stderr: impl Write) {
        let (waiting, changed) = &*self.0;
        let mut text = Vec::new();
        loop {
            let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let nothing = |waiting: &mut Waiting| waiting.text.is_empty() && !waiting.ended;
            let waiting = changed.wait_while(waiting, nothing);
            let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut text, &mut waiting.text);
            let lost = std::mem::take(&mut waiting.dropped);
            let ended = waiting.ended;
            drop(waiting);
            // Nobody to tell is no reason to stop serving.
            let _ = stderr.write_all(&text);
            text.clear();
            if lost > 0 {
                tracing::warn!(lines = lost, "log lines were dropped: stderr is too slow");
            }
            if ended {
                self.with(|waiting| waiting.written = true);
                changed.notify_all();
                return;
            }
            std::thread::park_timeout(REST);
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The formatter hands over each line whole.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.with(|waiting| {
            if waiting.text.len() + line.len() <= WAITING_BYTES_MAX {
                waiting.text.extend_from_slice(line);
            } else {
                waiting.dropped += 1;
            }
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(clean("evt_1"), "evt_1");
        assert_eq!(clean("größe"), "größe");
        assert_eq!(clean("a\x1b[2J\r\nb\u{202e}"), "a\\u{1b}[2J\\u{d}\\u{a}b\\u{202e}");
        assert_eq!(clean(&"ü".repeat(400)), format!("{}…", "ü".repeat(256)));
    }

    /// Writes to it wait until the other end of the channel is dropped.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_is_gone() {
        let lines = Lines::default();
        (&lines).write_all(b"line\n").unwrap();
        let (reader, stuck) = std::sync::mpsc::channel();
        let waiting = lines.clone();
        let thread = std::thread::spawn(move || waiting.write_to(Stuck(stuck)));
        drop(Guard { lines: lines.clone(), thread, patience: Duration::from_millis(10) });
        assert!(!lines.0.0.lock().unwrap().written);
        drop(reader);
    }

    #[test]
    fn the_end_waits_for_the_last_line() {
        let lines = Lines::default();
        (&lines).write_all(b"line\n").unwrap();
        let waiting = lines.clone();
        let thread = std::thread::spawn(move || waiting.write_to(io::sink()));
        drop(Guard { lines: lines.clone(), thread, patience: Duration::from_secs(60) });
        assert!(lines.0.0.lock().unwrap().written);
    }

    #[test]
    fn only_plain_request_ids_are_taken_over() {
        let subscriber = subscriber(&LogConfig::default(), Lines::default());
        let _guard = tracing::subscriber::set_default(subscriber);
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", value.parse().unwrap());
            correlation(&headers).unwrap()
        };
        assert_eq!(of("abc-123"), "abc-123");
        assert_eq!(of("a b").len(), 16);
        assert_eq!(of(&"x".repeat(65)).len(), 16);
    }
}
