//! A load of signed events, and the ledger of what was acknowledged.
//!
//! The sender behaves as providers do: it goes on with other events after a broken connection,
//! and comes back later with some of those whose fate it does not know.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oncebox_testkit::http::{Answer, Connection};
use oncebox_testkit::wait::DEADLINE;

use crate::bed::{SECRET, body, signed_request};
use crate::chance::Chance;

/// Events without an answer that may wait for a retry before new ones are sent.
const OPEN_MAX: usize = 64;

/// Everything the senders know. Shared by loads, one after the other or at once.
#[derive(Debug)]
pub(crate) struct Ledger {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// By event id, the receipt that was acknowledged for it, if any was.
    sent: HashMap<String, Option<String>>,
    /// Acknowledged ids, in the order their first acknowledgements came.
    acknowledged: Vec<String>,
    /// Sent, and not acknowledged: to be retried, or not.
    open: Vec<String>,
    /// Requests that the server was still to answer when their connection ended.
    unanswered: Vec<String>,
    secret: String,
    /// The secrets of requests under way.
    in_use: Vec<String>,
    /// One event in so many is one that is known already.
    repeats: usize,
    answers: Answers,
    last_ack: Option<Instant>,
    longest_gap: Duration,
    wrong: Vec<String>,
}

/// How many answers of each kind came.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Answers {
    pub(crate) accepted: usize,
    pub(crate) duplicate: usize,
    pub(crate) unavailable: usize,
}

impl Answers {
    pub(crate) fn acknowledged(&self) -> usize {
        self.accepted + self.duplicate
    }
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_repeats(16)
    }

    /// A ledger whose senders send a known event once in so many.
    pub(crate) fn with_repeats(repeats: usize) -> Arc<Self> {
        let state = State {
            sent: HashMap::new(),
            acknowledged: Vec::new(),
            open: Vec::new(),
            unanswered: Vec::new(),
            secret: SECRET.into(),
            in_use: Vec::new(),
            repeats,
            answers: Answers::default(),
            last_ack: None,
            longest_gap: Duration::ZERO,
            wrong: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(crate) fn answers(&self) -> Answers {
        self.lock().answers
    }

    /// The longest time without an acknowledgement, since this was last asked.
    pub(crate) fn longest_gap(&self) -> Duration {
        std::mem::take(&mut self.lock().longest_gap)
    }

    /// The ids acknowledged after the first `from`.
    pub(crate) fn acknowledged(&self, from: usize) -> Vec<String> {
        self.lock().acknowledged[from..].to_vec()
    }

    /// Everything ever sent, with the receipt acknowledged for it.
    pub(crate) fn sent(&self) -> HashMap<String, Option<String>> {
        self.lock().sent.clone()
    }

    /// The ids without an acknowledgement.
    pub(crate) fn open(&self) -> Vec<String> {
        self.lock().open.clone()
    }

    /// The ids whose connections ended without any answer.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        self.lock().unanswered.clone()
    }

    /// Signs with another secret from now on; returns once nothing else is under way.
    pub(crate) fn set_secret(&self, secret: &str) {
        let mut state = self.lock();
        state.secret = secret.to_owned();
        let others = |state: &mut State| state.in_use.iter().any(|used| used != secret);
        let waited = self.changed.wait_timeout_while(state, DEADLINE, others);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        assert!(!waited.timed_out(), "requests signed before are without an answer");
    }

    /// Answers that no sender should ever have got.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    /// Waits until `holds`; says what came so far when it does not.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Answers) -> bool) {
        let (state, waited) = self
            .changed
            .wait_timeout_while(self.lock(), DEADLINE, |state| !holds(&state.answers))
            .unwrap_or_else(PoisonError::into_inner);
        let (answers, wrong) = (state.answers, state.wrong.clone());
        drop(state);
        assert!(!waited.timed_out(), "no {what} in {DEADLINE:?}: {answers:?}, wrong: {wrong:?}");
    }

    /// Waits for `more` acknowledgements from now.
    #[track_caller]
    pub(crate) fn wait_for_acks(&self, more: usize) {
        let least = self.answers().acknowledged() + more;
        self.wait_until("more acknowledgements", |answers| answers.acknowledged() >= least);
    }

    /// Waits for `more` answers of 503 from now.
    #[track_caller]
    pub(crate) fn wait_for_refusals(&self, more: usize) {
        let least = self.answers().unavailable + more;
        self.wait_until("refusal", |answers| answers.unavailable >= least);
    }

    /// Notes an answer; the rules for answers that need no look into the store are here.
    pub(crate) fn note(&self, id: &str, answer: &Answer) {
        let mut state = self.lock();
        let retry = answer.header("retry-after").is_some();
        match answer.status {
            202 => state.accepted(id, answer),
            200 => state.repeated(id, answer),
            503 if retry => {
                state.answers.unavailable += 1;
                state.open.push(id.to_owned());
            }
            _ => state.wrong.push(format!("{id}: {answer:?}")),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What to send next: mostly new events, some that are open, a few that are known.
    fn next(&self, chance: &mut Chance) -> (String, String) {
        let mut state = self.lock();
        let retry = state.open.len() > OPEN_MAX || chance.once_in(4);
        let id = if retry && !state.open.is_empty() {
            let place = chance.below(state.open.len());
            state.open.swap_remove(place)
        } else if chance.once_in(state.repeats) && !state.acknowledged.is_empty() {
            state.acknowledged[chance.below(state.acknowledged.len())].clone()
        } else {
            format!("evt_{:07}", state.sent.len())
        };
        state.sent.entry(id.clone()).or_default();
        let secret = state.secret.clone();
        state.in_use.push(secret.clone());
        (id, secret)
    }

    /// A request signed with `secret` is no longer under way.
    fn done_with(&self, secret: &str) {
        let mut state = self.lock();
        let place = state.in_use.iter().position(|used| used == secret);
        state.in_use.swap_remove(place.expect("it was noted"));
        drop(state);
        self.changed.notify_all();
    }

    fn lost(&self, id: String, was_sent: bool) {
        let mut state = self.lock();
        if was_sent {
            state.unanswered.push(id.clone());
        }
        if state.sent[&id].is_none() {
            state.open.push(id);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn acknowledged_now(&mut self) {
        let now = Instant::now();
        let gap = self.last_ack.replace(now).map_or(Duration::ZERO, |last| now - last);
        self.longest_gap = self.longest_gap.max(gap);
    }

    fn accepted(&mut self, id: &str, answer: &Answer) {
        self.acknowledged_now();
        self.answers.accepted += 1;
        let receipt = named(answer);
        match self.sent.insert(id.to_owned(), Some(receipt.clone())).flatten() {
            None => self.acknowledged.push(id.to_owned()),
            Some(first) => self.wrong.push(format!("{id} accepted as {first} and as {receipt}")),
        }
    }

    fn repeated(&mut self, id: &str, answer: &Answer) {
        self.acknowledged_now();
        self.answers.duplicate += 1;
        let receipt = named(answer);
        match self.sent.insert(id.to_owned(), Some(receipt.clone())).flatten() {
            None => self.acknowledged.push(id.to_owned()),
            Some(first) if first != receipt => {
                self.wrong.push(format!("{id} acknowledged as {first}, then as {receipt}"));
            }
            Some(_) => {}
        }
    }
}

fn named(answer: &Answer) -> String {
    answer.json()["receipt"].as_str().unwrap_or("no receipt").to_owned()
}

/// Senders at work, each on a connection it keeps.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts as many senders as there are addresses.
    pub(crate) fn start(ledger: &Arc<Ledger>, addrs: &[SocketAddr], chance: &mut Chance) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let senders = addrs.iter().map(|addr| {
            let (ledger, stop, addr) = (Arc::clone(ledger), Arc::clone(&stop), *addr);
            let mut chance = chance.branch();
            std::thread::spawn(move || send(&ledger, addr, &mut chance, &stop))
        });
        Self { senders: senders.collect(), stop }
    }

    /// Eight senders to one server.
    pub(crate) fn on(ledger: &Arc<Ledger>, addr: SocketAddr, chance: &mut Chance) -> Self {
        Self::start(ledger, &[addr; 8], chance)
    }

    /// Lets the senders have their last answers, and ends.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.end();
    }

    /// Waits for senders whose server is gone.
    pub(crate) fn end(self) {
        for sender in self.senders {
            sender.join().expect("a sender does not panic");
        }
    }
}

/// Sends until it is stopped or nobody listens.
fn send(ledger: &Ledger, addr: SocketAddr, chance: &mut Chance, stop: &AtomicBool) {
    let mut connection = None;
    while !stop.load(Ordering::SeqCst) {
        let (id, secret) = ledger.next(chance);
        let Ok(mut open) = connection.take().map_or_else(|| Connection::open(addr), Ok) else {
            ledger.done_with(&secret);
            return ledger.lost(id, false);
        };
        match exchange(&mut open, &id, &secret) {
            Ok(answer) => {
                ledger.note(&id, &answer);
                connection = answer.keeps_alive().then_some(open);
            }
            Err(_) => ledger.lost(id, true),
        }
        ledger.done_with(&secret);
    }
}

fn exchange(connection: &mut Connection, id: &str, secret: &str) -> io::Result<Answer> {
    connection.send(&signed_request(body(id), secret))?;
    connection.answer()
}
