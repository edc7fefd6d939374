//! From a verified request to receipts: one event as it is, several in one transaction.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox::delivery::DeliveryId;
use oncebox::receipt::{Arrival, Part, ReceiptId, Recorded, encode_headers};
use oncebox_verify::{Found, Provider, Verified};
use sha2::{Digest, Sha256};

use super::SIGNED_URL_HEADER;
use super::verdict::Verdict;
use crate::awaited::{Settled, Wanted};
use crate::capture::{OURS, REQUEST_HEADER, TRUST_HEADER};
use crate::metrics::Outcome;
use crate::route::Route;
use crate::source::Source;
use crate::state::Inbox;

/// A request that was verified, and what its events share.
pub(super) struct Parcel<'a> {
    pub(super) inbox: &'a Inbox,
    pub(super) source: &'a Source,
    pub(super) request: &'a oncebox_verify::Request<'a>,
    pub(super) body: super::body::Received,
    pub(super) verified: Verified,
    /// By the clock that signatures are judged by, and by the one that waits are.
    pub(super) received: (Timestamp, Instant),
}

/// What is recorded, and whose outcome the sender is to hear of. The body is no longer part of it:
/// whoever waits takes no memory from others.
pub(super) struct Kept {
    verdict: Verdict,
    waits: Vec<Wanted>,
}

impl Kept {
    /// The verdict once the outcomes are known, or have taken too long.
    pub(super) async fn settled(self, inbox: &Inbox) -> Verdict {
        let Self { mut verdict, waits } = self;
        for wanted in waits {
            // None if the route did not take the event when it was new.
            let settled = inbox.awaited.settle(&*inbox.store, wanted).await;
            match &mut verdict {
                Verdict::Recorded(_, _, outcome) => *outcome = settled,
                Verdict::Batch(batch) if settled == Some(Settled::NotYet) => {
                    batch.is_unsettled = true;
                    break;
                }
                _ => {}
            }
        }
        verdict
    }
}

/// What came of a request with several events.
#[derive(Default)]
pub(super) struct Batch {
    /// How many events came to what.
    pub(super) counts: [u64; Outcome::ALL.len()],
    /// The receipts of those that are kept, in the order of the request.
    pub(super) receipts: Vec<ReceiptId>,
    /// Whether an outcome was to be waited for that did not come.
    pub(super) is_unsettled: bool,
}

impl Batch {
    pub(super) fn has_new(&self) -> bool {
        let new = [Outcome::Accepted, Outcome::Conflict, Outcome::Twin];
        new.into_iter().any(|outcome| self.of(outcome) > 0)
    }

    pub(super) fn of(&self, outcome: Outcome) -> u64 {
        self.counts[outcome as usize]
    }

    /// The outcome of the whole: that it brought something new, or the oddest of the rest.
    pub(super) fn outcome(&self) -> Outcome {
        let telling = [Outcome::Accepted, Outcome::Conflict, Outcome::Twin];
        let found = telling.into_iter().find(|outcome| self.of(*outcome) > 0);
        found.unwrap_or(Outcome::Duplicate)
    }
}

impl Parcel<'_> {
    /// Records the one event of a request.
    pub(super) async fn record(self, found: Found<'_>) -> Result<Kept, Verdict> {
        let Self { inbox, source, .. } = self;
        if !source.takes(&found.event.event_type) {
            return Err(Verdict::Ignored(1));
        }
        if !source.is_within_rate() {
            return Err(Verdict::OverRate);
        }
        let has_room = source.is_within_quota(inbox.ingest.stored_bytes(source.number));
        let (body, headers) = (self.body.bytes.clone(), self.headers());
        let bytes = body.len();
        let arrival = || self.arrival(found, body, headers, has_room);
        let arrival = inbox.beside(bytes, arrival).await;
        let receipt = arrival.receipt;
        let awaited = source.awaits(&arrival.takers);
        let recorded = inbox.ingest.record(arrival).await.map_err(Verdict::Refused)?;
        if recorded == Recorded::NoRoom {
            return Err(Verdict::OverQuota);
        }
        let verdict = Verdict::Recorded(receipt, recorded, None);
        let waits = self.wait(receipt, recorded, awaited).into_iter().collect();
        Ok(Kept { verdict, waits })
    }

    /// Records the events of a batch in one commit. Should the database refuse one of them, the
    /// others may be kept all the same: the sender hears that it is to come again, and they are
    /// duplicates then.
    pub(super) async fn record_all(self, found: Vec<Found<'_>>) -> Result<Kept, Verdict> {
        let Self { inbox, source, .. } = self;
        let count = found.len();
        let taken = found.into_iter().enumerate();
        let is_taken = |found: &Found<'_>| {
            found.has_unreadable_type() || source.takes(&found.event.event_type)
        };
        let taken: Vec<_> = taken.filter(|(_, found)| is_taken(found)).collect();
        let ignored = count - taken.len();
        if taken.is_empty() {
            return Err(Verdict::Ignored(ignored as u64));
        }
        if !source.is_within_rate_of(taken.len()) {
            return Err(Verdict::OverRate);
        }
        let has_room = source.is_within_quota(inbox.ingest.stored_bytes(source.number));
        let arrivals = || self.arrivals(taken, count, has_room);
        let arrivals = inbox.beside(self.body.bytes.len(), arrivals).await;
        let own = arrivals.iter().map(|arrival| (arrival.receipt, source.awaits(&arrival.takers)));
        let own: Vec<_> = own.collect();
        let recorded = inbox.ingest.record_all(arrivals).await.map_err(Verdict::Refused)?;
        if recorded.contains(&Recorded::NoRoom) {
            return Err(Verdict::OverQuota);
        }
        let mut batch = Batch::default();
        batch.counts[Outcome::Ignored as usize] = ignored as u64;
        let mut waits = Vec::new();
        for ((own, awaited), recorded) in own.into_iter().zip(recorded) {
            batch.counts[Outcome::of(recorded) as usize] += 1;
            batch.receipts.push(recorded.receipt(own));
            waits.extend(self.wait(own, recorded, awaited));
        }
        Ok(Kept { verdict: Verdict::Batch(batch), waits })
    }

    /// What is still to be waited for. An odd arrival that is held is answered at once.
    fn wait(
        &self,
        own: ReceiptId,
        recorded: Recorded,
        awaited: Option<(Arc<Route>, Duration)>,
    ) -> Option<Wanted> {
        let (route, timeout) = awaited?;
        let until = (self.received.1 + timeout).into();
        let delivery = DeliveryId { receipt: recorded.receipt(own), route: route.number };
        let is_new = recorded.is_new();
        Some(Wanted { delivery, is_new, base: route.rules.base, until })
    }

    /// The events of a batch that are taken, each with its place among all of them.
    fn arrivals(
        &self,
        taken: Vec<(usize, Found<'_>)>,
        count: usize,
        has_room: bool,
    ) -> Vec<Arrival> {
        let headers = self.headers();
        let whole = &self.body.bytes;
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut request = None;
        let arrivals = taken.into_iter().map(|(position, found)| {
            let body = piece(whole, &found.bytes);
            let arrival = self.arrival(found, body, headers.clone(), has_room);
            let request = *request.get_or_insert(arrival.receipt);
            let (position, count) = (short(position), short(count));
            let part = Part { request, position, count, whole: whole.clone() };
            Arrival { part: Some(part), ..arrival }
        });
        arrivals.collect()
    }

    fn arrival(&self, found: Found<'_>, body: Bytes, headers: Bytes, has_room: bool) -> Arrival {
        let received_at = self.received.0;
        Arrival {
            receipt: self.inbox.mint.mint(received_at),
            received_at,
            secret: self.source.secret(self.verified.secret),
            signed_at: self.verified.signed_at,
            headers,
            has_room,
            ..arrival(self.source, self.request, found, body)
        }
    }

    fn headers(&self) -> Bytes {
        stored_headers(self.source, self.request.headers, self.request.url)
    }
}

/// The bytes of one event, without a copy where they are a piece of the body.
fn piece(whole: &Bytes, bytes: &[u8]) -> Bytes {
    match whole.as_ptr_range().contains(&bytes.as_ptr()) {
        true => whole.slice_ref(bytes),
        false => Bytes::copy_from_slice(bytes),
    }
}

/// What the request and one of its events say of the arrival; the caller knows the rest.
pub fn arrival(
    source: &Source,
    request: &oncebox_verify::Request<'_>,
    found: Found<'_>,
    body: Bytes,
) -> Arrival {
    let provider = &source.provider;
    let digest: [u8; 32] = Sha256::digest(&body).into();
    let (content, guard) = found.content_and_guard(provider, request, digest);
    let event = found.event;
    Arrival {
        source: source.number,
        guard,
        odd_rules: source.odd_rules(),
        has_room: true,
        is_defective: found.defect.is_some(),
        trust: event.trust,
        takers: source.takers(&event, &body),
        event_id: event.id.into_owned(),
        event_type: event.event_type.into_owned(),
        object: event.object.map(Cow::into_owned),
        version: event.version,
        digest,
        content,
        body,
        receipt: ReceiptId::from_bytes([0; 16]),
        received_at: Timestamp::UNIX_EPOCH,
        secret: source.secret(0),
        signed_at: None,
        headers: Bytes::new(),
        part: None,
    }
}

/// The headers as kept, and the URL beside them where the signature covers it, so that the receipt
/// can be verified again.
fn stored_headers(source: &Source, headers: &HeaderMap, url: &str) -> Bytes {
    let is_changed =
        |name| source.credentials().contains(name) || speaks_for_us(&source.provider, name);
    if !source.signs_url && !headers.keys().any(is_changed) {
        return encode_headers(headers);
    }
    let mut kept = kept_headers(source, headers);
    if let (true, Ok(url)) = (source.signs_url, HeaderValue::from_str(url)) {
        kept.insert(SIGNED_URL_HEADER, url);
    }
    encode_headers(&kept)
}

/// Headers with credentials only as fingerprints, and without what the sender calls by our names.
pub(super) fn kept_headers(source: &Source, headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in headers.keys().filter(|name| speaks_for_us(&source.provider, name)) {
        kept.remove(name);
    }
    hide(source, &mut kept, source.credentials().iter());
    kept
}

/// Puts fingerprints in the place of credentials.
pub(super) fn hide<'a>(
    source: &Source,
    headers: &mut HeaderMap,
    names: impl Iterator<Item = &'a HeaderName>,
) {
    for name in names {
        let values: Vec<HeaderValue> = headers.get_all(name).iter().cloned().collect();
        headers.remove(name);
        for value in values {
            headers.append(name, source.fingerprint(value.as_bytes()));
        }
    }
}

/// Whether a sender's header would be taken for one that we added. What the source itself reads
/// is none: without it the receipt could not be verified again.
fn speaks_for_us(provider: &Provider, name: &HeaderName) -> bool {
    let name = name.as_str();
    let is_added = || [SIGNED_URL_HEADER, TRUST_HEADER, REQUEST_HEADER].contains(&name);
    // Hardly any header begins so, and every request comes by here.
    name.starts_with(OURS) && (is_added() || !provider.reads_header(name))
}
