//! What came of a request: how it is counted, told to the operator, and answered.

use std::borrow::Cow;
use std::time::Duration;

use oncebox::ingest::Refused;
use oncebox::receipt::{Oddity, ReceiptId, Recorded};
use oncebox_verify::{Answer as Wanted, Malformed, Rejection, Reply};

use super::answer::{self, Answer};
use super::body::BodyError;
use super::record::Batch;
use crate::awaited::Settled;
use crate::capture::UNVERIFIED;
use crate::keys::KeyFailure;
use crate::metrics::{Outcome, SourceMetrics};
use crate::pairing::Trouble;
use crate::source::Source;

/// What a request to no source is counted under.
const UNKNOWN_SOURCE: &str = "unknown_source";

/// What came of a request.
pub(super) enum Verdict {
    Recorded(ReceiptId, Recorded, Option<Settled>),
    Batch(Batch),
    /// Kept, and verified by nobody.
    Captured(ReceiptId),
    Ignored(u64),
    Handshake(Reply),
    Malformed(Malformed),
    NotBelieved(Doubt),
    TooManyFailures(Doubt, u64),
    NoKey(KeyFailure),
    /// What the provider tells cannot be kept, or looked for, now.
    Pairing(Trouble),
    ClockSuspect,
    NotFound,
    Method(Cow<'static, str>),
    Encoded,
    Body(BodyError),
    OverRate,
    OverQuota,
    Refused(Refused),
}

/// Why a sender is not believed.
pub(super) enum Doubt {
    /// The proof is missing or wrong.
    Rejected(Rejection),
    /// It asks something, and not as the provider would.
    NoHandshake,
    /// There is no such source, and the sender is not to know.
    NoSource,
}

impl Doubt {
    fn code(&self) -> &'static str {
        match self {
            Self::Rejected(rejection) => rejection.code(),
            Self::NoHandshake => "no_handshake",
            Self::NoSource => UNKNOWN_SOURCE,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Rejected(rejection) => rejection.hint(),
            Self::NoHandshake => {
                "no question of this provider; is the token at the provider the one configured?"
                    .to_owned()
            }
            Self::NoSource => {
                "there is no source of this name; is the URL at the provider the right one?"
                    .to_owned()
            }
        }
    }
}

impl Verdict {
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            // That it is kept is what counts here; how it stands is counted with its route.
            Self::Recorded(_, recorded, _) => Outcome::of(*recorded),
            Self::Batch(batch) => batch.outcome(),
            Self::Captured(_) => Outcome::Accepted,
            Self::Ignored(_) => Outcome::Ignored,
            Self::Handshake(_) => Outcome::Handshake,
            Self::Malformed(_) => Outcome::Malformed,
            Self::NotBelieved(_) | Self::TooManyFailures(..) => Outcome::Rejected,
            Self::NotFound | Self::Method(_) | Self::Encoded => Outcome::Rejected,
            Self::Body(BodyError::OutOfMemory | BodyError::OverShare) => Outcome::Unavailable,
            Self::Body(_) => Outcome::Rejected,
            Self::NoKey(_) | Self::ClockSuspect | Self::OverRate | Self::OverQuota => {
                Outcome::Unavailable
            }
            Self::Pairing(_) | Self::Refused(_) => Outcome::Unavailable,
        }
    }

    /// Why, where it was not kept: a label and a field, never renamed.
    pub(super) fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Recorded(_, _, Some(Settled::NotYet)) => Some(Settled::NotYet.as_str()),
            Self::Batch(batch) if batch.is_unsettled => Some(Settled::NotYet.as_str()),
            Self::Recorded(..) | Self::Batch(_) | Self::Ignored(_) | Self::Handshake(_) => None,
            Self::Captured(_) => Some(UNVERIFIED),
            Self::Malformed(malformed) => Some(malformed.code()),
            Self::NotBelieved(doubt) | Self::TooManyFailures(doubt, _) => Some(doubt.code()),
            Self::NoKey(_) => Some("key_unavailable"),
            Self::Pairing(trouble) => Some(trouble.code()),
            Self::ClockSuspect => Some("clock_suspect"),
            Self::NotFound => Some(UNKNOWN_SOURCE),
            Self::Method(_) => Some("method"),
            Self::Encoded => Some("content_encoding"),
            Self::Body(BodyError::TooLarge) => Some("body_too_large"),
            Self::Body(BodyError::TooSlow) => Some("body_too_slow"),
            Self::Body(BodyError::Incomplete) => Some("body_incomplete"),
            Self::Body(BodyError::OutOfMemory) => Some("memory_budget"),
            Self::Body(BodyError::OverShare) => Some("memory_per_address"),
            Self::OverRate => Some("source_rate"),
            Self::OverQuota => Some("source_quota"),
            Self::Refused(refused) => Some(refused.code()),
        }
    }

    /// What the operator should check.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed(malformed) => Some(malformed.hint()),
            Self::NotBelieved(doubt) | Self::TooManyFailures(doubt, _) => Some(doubt.hint()),
            Self::NoKey(failure) => {
                Some(format!("the provider's key cannot be had ({}): {failure}", failure.code()))
            }
            _ => None,
        }
    }

    /// Whether the sender is not believed.
    pub(super) fn is_doubt(&self) -> bool {
        matches!(self, Self::NotBelieved(_) | Self::TooManyFailures(..))
    }

    /// The receipt that holds the event, where there is one.
    pub(super) fn receipt(&self) -> Option<ReceiptId> {
        match self {
            Self::Recorded(own, recorded, _) => Some(recorded.receipt(*own)),
            Self::Captured(receipt) => Some(*receipt),
            _ => None,
        }
    }

    /// The batch, where the request was one.
    pub(super) fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Batch(batch) => Some(batch),
            _ => None,
        }
    }

    /// Counts the request; of a batch, each event.
    pub(super) fn count(&self, metrics: &SourceMetrics, took: Duration) {
        match self {
            Self::Batch(batch) => metrics.count_batch(&batch.counts, took),
            Self::Ignored(events) => metrics.count_ignored((*events).max(1)),
            _ => metrics.count(self.outcome(), self.reason(), took),
        }
    }

    pub(super) fn answer(&self, source: Option<&Source>) -> Answer {
        let plain = self.plain_answer();
        let wanted = source.and_then(|source| source.provider.answer.as_ref());
        match (self, wanted) {
            (Self::Handshake(_), _) | (_, None) => plain,
            // A provider that wants to hear something else for an event that is kept hears that,
            // unless it is to send the event again.
            (Self::Recorded(..) | Self::Batch(_) | Self::Ignored(_), Some(wanted))
                if self.reason().is_none() =>
            {
                answer::as_wanted(plain, wanted)
            }
            (_, Some(Wanted::Silent(_))) => answer::silenced(plain),
            _ => plain,
        }
    }

    fn plain_answer(&self) -> Answer {
        match self {
            Self::Recorded(own, recorded, Some(settled)) => {
                answer::settled(*settled, recorded.receipt(*own))
            }
            Self::Recorded(own, recorded, None) => match recorded {
                Recorded::Accepted => answer::accepted(*own),
                Recorded::Conflict { .. } => answer::odd(*own, Oddity::Conflict),
                Recorded::Twin { .. } => answer::odd(*own, Oddity::Twin),
                Recorded::Duplicate { receipt } => answer::duplicate(*receipt),
                Recorded::NoRoom => answer::unavailable(),
            },
            Self::Batch(batch) if batch.is_unsettled => answer::not_processed(),
            Self::Batch(batch) => answer::batch(batch.has_new(), &batch.receipts),
            Self::Captured(receipt) => answer::accepted(*receipt),
            Self::Ignored(_) => answer::ignored(),
            Self::Handshake(reply) => answer::reply(reply),
            Self::Malformed(malformed) => answer::malformed(malformed.code()),
            Self::NotBelieved(_) => answer::invalid_signature(),
            Self::TooManyFailures(_, after) => answer::too_many_failures(*after),
            Self::NotFound => answer::not_found(),
            Self::Method(allowed) => answer::method_not_allowed(allowed),
            Self::Encoded => answer::encoded(),
            Self::Body(BodyError::TooLarge) => answer::too_large(),
            Self::Body(BodyError::TooSlow) => answer::too_slow(),
            Self::Body(BodyError::Incomplete) => answer::incomplete(),
            Self::Body(BodyError::OutOfMemory | BodyError::OverShare) => answer::unavailable(),
            Self::NoKey(_)
            | Self::Pairing(_)
            | Self::ClockSuspect
            | Self::OverRate
            | Self::OverQuota
            | Self::Refused(_) => answer::unavailable(),
        }
    }
}
