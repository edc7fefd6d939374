//! What a service does with an event, told without a word about the door it came through.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use oncebox::handler::Event;
use tokio::sync::{Barrier, Notify};

/// What every door tells of an event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) event_id: String,
    pub(crate) invoice: String,
    pub(crate) version: i64,
    pub(crate) attempt: u32,
    pub(crate) replay: u32,
}

impl Told {
    pub(crate) fn of<T>(event: &Event<T>) -> Self {
        Self {
            event_id: event.event_id.clone(),
            invoice: event.object.clone().expect("it is about an invoice"),
            version: event.version.expect("it has a version"),
            attempt: event.attempt,
            replay: event.replay,
        }
    }

    /// The effect of the business: two events may tell of the same.
    pub(crate) fn key(&self) -> String {
        format!("paid:{}", self.invoice)
    }
}

/// What is done for one event, beside what is always done: the invoice is brought up to date and
/// paid once, and one e-mail goes out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Steps of the delivery that come first.
    pub(crate) stages: &'static [&'static str],
    /// The stage that cannot be done this time.
    pub(crate) fails_at: Option<&'static str>,
    /// Whether it meets the others before it takes the key.
    pub(crate) meets: bool,
    /// Whether it has begun the effect by the time it meets them, where it can only begin it.
    pub(crate) begins_first: bool,
    /// Whether it stops in the middle until it is told to go on.
    pub(crate) pauses: bool,
    pub(crate) end: End,
}

/// How a service ends an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Processed,
    Stale,
    Dead,
}

type Planner = dyn Fn(&Told) -> Plan + Send + Sync;

/// A service, whichever door it stands behind.
#[derive(Clone)]
pub(crate) struct Business {
    planner: Arc<Planner>,
    notes: Arc<Mutex<Vec<String>>>,
    meetings: Arc<Mutex<HashMap<String, Arc<Barrier>>>>,
    /// How many doors it stands behind.
    doors: usize,
    pub(crate) paused: Arc<Notify>,
    pub(crate) go_on: Arc<Notify>,
}

impl Business {
    pub(crate) fn new(
        doors: usize,
        planner: impl Fn(&Told) -> Plan + Send + Sync + 'static,
    ) -> Self {
        Self {
            doors,
            planner: Arc::new(planner),
            notes: Arc::default(),
            meetings: Arc::default(),
            paused: Arc::default(),
            go_on: Arc::default(),
        }
    }

    pub(crate) fn plan(&self, told: &Told) -> Plan {
        (self.planner)(told)
    }

    pub(crate) fn note(&self, line: impl Into<String>) {
        self.notes.lock().unwrap().push(line.into());
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    pub(crate) async fn pause(&self, plan: &Plan) {
        if plan.pauses {
            self.paused.notify_one();
            self.go_on.notified().await;
        }
    }

    /// One behind each of the doors, all before the same key.
    pub(crate) async fn meet(&self, plan: &Plan, told: &Told) {
        if plan.meets {
            let meeting = self.meeting(told.key());
            meeting.wait().await;
        }
    }

    fn meeting(&self, key: String) -> Arc<Barrier> {
        let mut meetings = self.meetings.lock().unwrap();
        meetings.entry(key).or_insert_with(|| Arc::new(Barrier::new(self.doors))).clone()
    }
}

/// What a stage comes to.
pub(crate) fn result_of(stage: &str) -> i64 {
    i64::try_from(stage.len()).expect("a short name")
}

/// The key of the e-mail about an invoice.
pub(crate) fn mail_key(invoice: &str) -> String {
    format!("receipt-email:{invoice}")
}

/// The payload of every e-mail.
pub(crate) const MAIL: &str = "{}";
