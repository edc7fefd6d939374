//! One event as it was found in a request, and the digests that the store compares it by.

use std::borrow::Cow;

use crate::digest;
use crate::identify::{Event, Trust, UNKNOWN_TYPE};
use crate::provider::{Guard, Provider};
use crate::request::Request;

/// One event of a request, and where in it the event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it says it is about.
    pub event: Event<'a>,
    /// The event alone as the provider wrote it; the whole body where the request is one event.
    pub bytes: Cow<'a, [u8]>,
    /// Its number in the batch, from 0; none where the request is one event.
    pub item: Option<usize>,
    /// What of it could not be read. Only an event of a batch has a defect: it is found all the
    /// same, under the digest of its bytes, so that its neighbours are not refused with it.
    pub defect: Option<Defect>,
}

/// What could not be read of one event among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// No identity: none is there, or it cannot be a key (too long, empty, control characters).
    EventId,
    /// Its type cannot be a key.
    EventType,
    /// The id of its object cannot be a key.
    ObjectId,
    /// Nothing: it is no object, or a key that we read is there twice.
    Event,
}

impl Defect {
    /// A stable name for stores, logs and the console. Never renamed.
    pub fn code(self) -> &'static str {
        match self {
            Defect::EventId => "event_id",
            Defect::EventType => "event_type",
            Defect::ObjectId => "object_id",
            Defect::Event => "event",
        }
    }
}

impl Found<'_> {
    /// Whether its type could not be read, so that no list of types can say that it is unwanted.
    pub fn has_unreadable_type(&self) -> bool {
        self.defect.is_some() && self.event.event_type == UNKNOWN_TYPE
    }

    /// What is compared to tell a repeat of this event from a conflict, as
    /// [`content_digest`](crate::content_digest()) does for a whole request. `request` is the one
    /// that this was found in.
    pub fn content(&self, provider: &Provider, request: &Request<'_>) -> [u8; 32] {
        match self.item {
            Some(_) => digest::item_content(provider, &self.bytes),
            None => digest::content_digest(provider, request),
        }
    }

    /// What must not come in again under another identity, as
    /// [`guard_digest`](crate::guard_digest()) says; none where the identity
    /// and the whole body are signed.
    pub fn guard(&self, provider: &Provider, request: &Request<'_>) -> Option<[u8; 32]> {
        self.guard_or(provider, request, || self.content(provider, request))
    }

    /// Both for whoever has the SHA-256 of [`bytes`](Self::bytes): where the content is just that,
    /// nothing is hashed again.
    pub fn content_and_guard(
        &self,
        provider: &Provider,
        request: &Request<'_>,
        of_bytes: [u8; 32],
    ) -> ([u8; 32], Option<[u8; 32]>) {
        let is_bytes = match self.item {
            Some(_) => provider.volatile.is_empty(),
            None => provider.content_is_body(),
        };
        let content = match is_bytes {
            true => of_bytes,
            false => self.content(provider, request),
        };
        (content, self.guard_or(provider, request, || content))
    }

    fn guard_or(
        &self,
        provider: &Provider,
        request: &Request<'_>,
        content: impl FnOnce() -> [u8; 32],
    ) -> Option<[u8; 32]> {
        let signed = || digest::signed_digest(provider, request);
        match (self.event.trust, self.item) {
            // Where less than the body is signed, the rest can be changed under a signed id too.
            (Trust::Signed, _) if provider.guard != Guard::Signed => None,
            (_, Some(number)) => {
                digest::item_guard(provider, request, number, &self.bytes, content)
            }
            (_, None) => digest::guard_of(provider, signed, content),
        }
    }
}
