//! Effects: business consequences that happen once, each under a key of its own.
//!
//! The ledger is one table with a unique key. Whoever commits a key first did it; everybody else
//! is told who did. What is written in the same transaction as the key happens once with it. A call
//! to the outside cannot be in that transaction: it is *begun* before and *completed* after, and
//! where the second never came its state is `unknown`. Nobody can know more.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use jiff::Timestamp;

use crate::delivery::{DeliveryId, Lease};
use crate::limits;
use crate::receipt::ReceiptId;

/// What an effect is known by, such as `receipt-email:in_456`: what happens, and to which thing of
/// the business. Not the id of an event: two events may tell of the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectKey(String);

impl EffectKey {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key that an outbox message holds in the ledger, so that it is written once:
    /// `outbox/mailer/receipt-email:in_456`. The route that carries it goes in under the name it
    /// was born with, so a renamed destination does not send again what it sent.
    pub fn of_message(route: &str, key: &Self) -> String {
        format!("{route}/{key}")
    }

    /// The key that an effect of a service has in the ledger, `@billing/receipt-email:in_456`, so
    /// that no service takes the key of another. A service without a name has its keys as they are.
    pub fn of_service(service: &str, key: &Self) -> String {
        match service {
            "" => key.0.clone(),
            _ => format!("{SERVICE}{service}/{key}"),
        }
    }

    /// The key of a step: an effect of one delivery. The route goes in under the name it was born
    /// with, so a rename does not run steps again.
    pub fn of_step(receipt: ReceiptId, route: &str, step: &Self) -> String {
        format!("{receipt}/{route}/{step}")
    }

    /// Whether it begins as the keys of steps do: with a UUID and a slash. Nobody may name an
    /// effect so, or a worker of one route could have the steps of another skipped.
    pub fn is_like_a_step(&self) -> bool {
        let before = self.0.split_once('/').map(|(before, _)| before);
        before.is_some_and(|text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok())
    }
}

/// What the names of sources and routes that carry outbox messages begin with. No name in a
/// configuration can.
pub const OUTBOX: &str = "outbox/";

/// What the keys of services begin with in the ledger. No key that a caller names can.
pub const SERVICE: char = '@';

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot be a key, the name of a step, or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Nothing.
    #[error("it is empty; name what happens and to which thing, such as `receipt-email:in_456`")]
    Empty,
    /// Too much.
    #[error("it is {0} bytes long, and {max} are allowed; hash what is long", max = limits::KEY_BYTES)]
    TooLong(usize),
    /// Not text.
    #[error("it has a control character; keys are plain text")]
    Binary,
}

impl FromStr for EffectKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if text.len() > limits::KEY_BYTES {
            return Err(BadKey::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(BadKey::Binary);
        }
        Ok(Self(text.to_owned()))
    }
}

/// How a caller names an effect: by its key, or by a step of the delivery it works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectName {
    /// An effect of the business.
    Key(EffectKey),
    /// A step of this delivery.
    Step(EffectKey),
}

/// What somebody works on: a delivery, and the lease that proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Under {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Its lease.
    pub lease: Lease,
}

/// What sort of effect it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// Named by the business.
    Once,
    /// A step of one delivery.
    Step,
    /// An outbox message.
    Message,
}

impl EffectKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Once, Self::Step, Self::Message];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Step => "step",
            Self::Message => "message",
        }
    }

    /// The kind a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What is known of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectState {
    /// Somebody under a good lease is at it.
    Started,
    /// It happened.
    Done,
    /// It was begun, and whether it happened nobody knows.
    Unknown,
}

impl EffectState {
    /// Every state, in the order lists show them.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Started, Self::Done];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }

    /// The state a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for EffectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An effect in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its key.
    pub key: String,
    /// What sort it is.
    pub kind: EffectKind,
    /// What is known of it. One that was started is unknown as soon as its lease has ended,
    /// whether or not anybody has written that down.
    pub state: EffectState,
    /// The delivery that did it, or was at it last.
    pub delivery: DeliveryId,
    /// The name of its route.
    pub route: String,
    /// Which attempt of that delivery.
    pub attempt: u32,
    /// Since when it is in its state.
    pub at: Timestamp,
    /// What was recorded with it: JSON.
    pub result: Option<String>,
    /// How often it was begun without an answer: calls that may have happened beside the one
    /// that is known.
    pub unknowns: u32,
    /// How many other deliveries found it done; those who come upon it are told of at most
    /// [`limits::CONFLICTS_TOLD`].
    pub conflicts: u32,
    /// What somebody said of it whose lease had ended by then.
    pub evidence: Option<Evidence>,
}

/// A completion that came too late to count, kept for whoever has to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// When it came.
    pub at: Timestamp,
    /// The result it gave.
    pub result: Option<String>,
}

/// What to do about an effect whose earlier outcome is unknown. The caller says, for only the
/// caller knows what is at the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// Begin again: the other end takes the same idempotency key and does nothing twice.
    #[default]
    Retry,
    /// Hold the delivery until a person has found out.
    Ask,
}

/// What taking a key inside a transaction found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// Nobody had it: it is done, if this transaction commits.
    First,
    /// It was done before, by whom it says.
    Already(Effect),
    /// Somebody began it outside a transaction and has not said what came of it.
    Open(Effect),
    /// The lease is not good any more. Nothing was changed.
    LeaseLost,
}

/// What beginning an effect found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The caller's to do. If it was begun before, nobody knows what came of that.
    Yours {
        /// The key in the ledger, to be used as the idempotency key of the call.
        key: String,
        /// How often it was begun before without an answer.
        unknowns: u32,
        /// What somebody said too late.
        evidence: Option<Evidence>,
    },
    /// It is done.
    Done(Effect),
    /// Another lease that is still good has it.
    Busy(Effect),
    /// Its outcome is unknown, and the delivery is held until a person has said what it was.
    Parked(Effect),
    /// The lease is not good any more. Nothing was changed.
    LeaseLost,
}

/// What completing or abandoning an effect came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is as the caller says.
    Done,
    /// The caller's lease had ended, or a person has settled the effect: what it says of it is kept
    /// as evidence.
    Late,
    /// The caller has not begun it, or has abandoned it. Where others had begun it before, what one
    /// says who has abandoned it is kept as evidence.
    NotBegun,
}

/// A message to be sent to the outside: written with the effects of a delivery, relayed after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The destination of the configuration it goes to.
    pub destination: String,
    /// Its key: one key, one message. The `Idempotency-Key` it is delivered with.
    pub key: EffectKey,
    /// Messages of one group are delivered in the order they were committed.
    pub group: Option<EffectKey>,
    /// What the payload is.
    pub content_type: String,
    /// What is delivered.
    pub payload: Bytes,
}

/// What sending a message came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was written, under this id.
    New(ReceiptId),
    /// It was written before, with the same payload.
    Before(ReceiptId),
    /// It was written before with another payload. The first stands.
    Conflict(ReceiptId),
    /// There is no such destination.
    NoDestination,
    /// The lease is not good any more. Nothing was changed.
    LeaseLost,
}

/// What a person found out about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It happened.
    Done {
        /// What to record with it: JSON.
        result: Option<String>,
    },
    /// It did not.
    NotDone,
}

/// What an act on an effect found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectActed {
    /// It was done; that many held deliveries go on.
    Done {
        /// How many.
        released: usize,
    },
    /// There is no such effect.
    NotFound,
    /// It is in a state the act does not apply to.
    Not(EffectState),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_plain_text() {
        let key = |text: &str| text.parse::<EffectKey>();
        assert_eq!(key("receipt-email:in_456").unwrap().as_str(), "receipt-email:in_456");
        assert_eq!(key(""), Err(BadKey::Empty));
        assert_eq!(key("a\0b"), Err(BadKey::Binary));
        assert_eq!(key("a\nb"), Err(BadKey::Binary));
        assert!(key(&"k".repeat(limits::KEY_BYTES)).is_ok());
        let long = limits::KEY_BYTES + 1;
        assert_eq!(key(&"k".repeat(long)), Err(BadKey::TooLong(long)));
    }

    #[test]
    fn keys_of_steps_are_told_from_others() {
        let is_like_a_step = |text: &str| text.parse::<EffectKey>().unwrap().is_like_a_step();
        let id = "0192c6e5-7a00-7000-8000-00000000002a";
        let upper = id.to_uppercase();
        for like in [format!("{id}/billing/charge"), format!("{id}/x"), format!("{upper}/x")] {
            assert!(is_like_a_step(&like), "{like}");
        }
        let simple = id.replace('-', "");
        for other in [id.into(), format!("order:{id}/x"), format!("{simple}/x"), "a/b/c".into()] {
            assert!(!is_like_a_step(&other), "{other}");
        }
    }

    #[test]
    fn words_stand_for_what_they_say() {
        assert!(EffectKind::ALL.iter().all(|kind| EffectKind::of(kind.as_str()) == Some(*kind)));
        assert!(EffectState::ALL.iter().all(|s| EffectState::of(s.as_str()) == Some(*s)));
    }
}
