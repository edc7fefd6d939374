//! Receipts: what is recorded of a verified event, and what recording it can come to.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use jiff::Timestamp;
pub use oncebox_verify::OddAct;
use oncebox_verify::Trust;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::identity::IdentityKey;
use crate::limits;

mod mint;

pub use mint::ReceiptMint;

/// The id of a receipt: a UUIDv7, so ids sort by the time they were minted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiptId(Uuid);

impl ReceiptId {
    /// A receipt id read back from a store.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The id as stored.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id as a UUID.
    pub fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// The smallest id that can be minted at `time`: ids below it are older.
    pub fn floor(time: Timestamp) -> Self {
        let milliseconds = time.as_millisecond().max(0) as u64;
        Self(Uuid::from_u64_pair((milliseconds << 16) | 0x7000, 1 << 63))
    }
}

impl From<Uuid> for ReceiptId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiptId({})", self.0)
    }
}

impl FromStr for ReceiptId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The stored number of a source. Its name may change; this does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNo(pub i16);

/// The stored number of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteNo(pub i16);

/// The stored number of a secret within its source: which of the secrets a source ever had
/// verified an event, told without keeping the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretNo(pub i16);

/// Stands for a body nobody has seen.
pub(crate) const NO_CONTENT: [u8; 16] = [0; 16];

/// One verified event on its way into the store.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Minted before the first try, so that a commit whose outcome is unknown can be asked about
    /// by trying it again.
    pub receipt: ReceiptId,
    /// Where it came in.
    pub source: SourceNo,
    /// When its last byte arrived; the time its signature was judged by.
    pub received_at: Timestamp,
    /// The provider's id of the event.
    pub event_id: String,
    /// Whether that id is covered by the signature.
    pub trust: Trust,
    /// The provider's type of the event.
    pub event_type: String,
    /// The business thing the event is about.
    pub object: Option<String>,
    /// The provider's ordering value.
    pub version: Option<i64>,
    /// The secret that verified it.
    pub secret: SecretNo,
    /// The time the provider signed, where it signs one.
    pub signed_at: Option<Timestamp>,
    /// The request's headers, as [`encode_headers`] writes them.
    pub headers: Bytes,
    /// The raw body.
    pub body: Bytes,
    /// SHA-256 of the raw body.
    pub digest: [u8; 32],
    /// SHA-256 of the body without the fields its provider changes per attempt.
    pub content: [u8; 32],
    /// What must not come in again under another, unsigned id; none where the id is signed.
    pub guard: Option<[u8; 32]>,
    /// What its source does with odd arrivals.
    pub odd_rules: OddRules,
    /// Whether its source has room for it. Without room it is answered only if it is kept already.
    pub has_room: bool,
    /// Whether a value of it could not be kept, so that it goes by its digest.
    pub is_defective: bool,
    /// The routes that take it.
    pub takers: Vec<Taker>,
    /// The request it came in together with others. Its own `body`, `digest` and `content` are
    /// then those of the one event.
    pub part: Option<Part>,
}

/// One event of a request that carried several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The request, by the id minted for the first of its events, whatever became of that one.
    pub request: ReceiptId,
    /// The place of the event in the request, from 0.
    pub position: u32,
    /// How many events the request carried.
    pub count: u32,
    /// The raw body of the request: what its signature is over.
    pub whole: Bytes,
}

/// A route that takes an event, and what its guards go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taker {
    /// The route.
    pub route: RouteNo,
    /// What makes the event the same operation as another on this route.
    pub operation: Option<[u8; 16]>,
}

impl Taker {
    /// A route without guards.
    pub fn plain(route: RouteNo) -> Self {
        Self { route, operation: None }
    }
}

/// What a source does with odd arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OddRules {
    /// With signed content that was seen before, under a new unsigned id.
    pub twins: OddAct,
    /// With new content under a known identity.
    pub conflicts: OddAct,
    /// Whether one body really comes under several types: the first of each type is delivered.
    pub types_share_body: bool,
}

/// What is odd about an authentic arrival. It is a receipt of its own all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// The identity of an earlier event with other content.
    Conflict,
    /// The signed content of an earlier event under another, unsigned id.
    Twin,
    /// An event of a batch with an identity, type or object that cannot be kept.
    Defect,
}

impl Oddity {
    /// Every oddity.
    pub const ALL: [Self; 3] = [Self::Conflict, Self::Twin, Self::Defect];

    /// The word for it in lists and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Twin => "twin",
            Self::Defect => "defect",
        }
    }

    /// The oddity a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|oddity| oddity.as_str() == word)
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a receipt is marked: what is odd about it, and the receipt it was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What is odd about it.
    pub oddity: Oddity,
    /// The first receipt, of a twin or a conflict.
    pub first: Option<ReceiptId>,
}

impl Arrival {
    /// An event with a signed id that says no more of itself than its type, and that no route
    /// takes.
    pub fn new(
        receipt: ReceiptId,
        source: SourceNo,
        received_at: Timestamp,
        event_id: impl Into<String>,
        event_type: impl Into<String>,
        body: impl Into<Bytes>,
    ) -> Self {
        let body = body.into();
        let digest = Sha256::digest(&body).into();
        Self {
            receipt,
            source,
            received_at,
            event_id: event_id.into(),
            trust: Trust::Signed,
            event_type: event_type.into(),
            object: None,
            version: None,
            secret: SecretNo(0),
            signed_at: None,
            headers: Bytes::new(),
            body,
            digest,
            content: digest,
            guard: None,
            odd_rules: OddRules::default(),
            has_room: true,
            is_defective: false,
            takers: Vec::new(),
            part: None,
        }
    }

    /// The key its event id is remembered under.
    pub fn key(&self) -> IdentityKey {
        IdentityKey::of_event(&self.event_id)
    }

    /// The key its signed content is remembered under, where an unsigned id needs that guard.
    pub fn guard_key(&self) -> Option<IdentityKey> {
        self.guard.as_ref().map(IdentityKey::of_body)
    }

    /// The key of its type beside its signed content, where one body comes under several types.
    pub(crate) fn type_key(&self) -> Option<IdentityKey> {
        let guard = self.guard.as_ref().filter(|_| self.odd_rules.types_share_body)?;
        Some(IdentityKey::of_typed_body(guard, &self.event_type))
    }

    /// The key it is remembered under should it be odd: its id together with its content.
    pub(crate) fn odd_key(&self) -> IdentityKey {
        IdentityKey::of_odd_event(&self.event_id, &self.content)
    }

    /// How it is marked if it is recorded as nothing but itself.
    pub(crate) fn own_mark(&self) -> Option<Mark> {
        self.is_defective.then_some(Mark { oddity: Oddity::Defect, first: None })
    }

    /// What is compared to tell a repeated delivery from a conflict.
    pub fn content16(&self) -> [u8; 16] {
        let mut short = [0; 16];
        short.copy_from_slice(&self.content[..16]);
        short
    }

    /// Whether an identity that was recorded with this content has the same body. Ids that were
    /// only remembered have no content to compare.
    pub(crate) fn repeats(&self, content: [u8; 16]) -> bool {
        content == self.content16() || content == NO_CONTENT
    }

    /// How many routes take it.
    pub fn route_count(&self) -> i16 {
        i16::try_from(self.takers.len()).unwrap_or(i16::MAX)
    }

    /// Bytes of it that count against its source's quota.
    pub(crate) fn stored_bytes(&self) -> i64 {
        i64::try_from(self.body.len() + self.headers.len()).unwrap_or(i64::MAX)
    }

    /// Bytes it holds in memory while it waits, but for what the events of a request have in
    /// common: its headers and its whole body. An event that is a piece of that has no bytes of its
    /// own.
    pub fn weight(&self) -> usize {
        let own = match &self.part {
            Some(part) if part.whole.as_ptr_range().contains(&self.body.as_ptr()) => 0,
            Some(_) => self.body.len(),
            None => self.body.len() + self.headers.len(),
        };
        own + limits::EVENT_BYTES
    }
}

/// How an arrival was recorded. Each is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Recorded just now, under the id minted for it.
    Accepted,
    /// The same event was recorded before.
    Duplicate {
        /// The receipt it was recorded as.
        receipt: ReceiptId,
    },
    /// Recorded just now under the id minted for it: its identity was known with other content.
    Conflict {
        /// The receipt that owns the identity.
        first: ReceiptId,
    },
    /// Recorded just now under the id minted for it: its signed content was known under another id.
    Twin {
        /// The receipt that came with that content first.
        first: ReceiptId,
    },
    /// Not recorded: it is not kept yet, and its source has no room for more.
    NoRoom,
}

impl Recorded {
    /// The receipt that holds the event, `own` being the one minted for this arrival.
    pub fn receipt(self, own: ReceiptId) -> ReceiptId {
        match self {
            Self::Duplicate { receipt } => receipt,
            Self::Accepted | Self::Conflict { .. } | Self::Twin { .. } | Self::NoRoom => own,
        }
    }

    /// Whether a receipt was written just now.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Accepted | Self::Conflict { .. } | Self::Twin { .. })
    }
}

/// Headers as stored: one `name: value` line each, in the order they came. HTTP allows no line
/// breaks inside a value, so the lines can be taken apart again.
pub fn encode_headers(headers: &http::HeaderMap) -> Bytes {
    let length = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 3).sum();
    let mut lines = Vec::with_capacity(length);
    for (name, value) in headers {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value.as_bytes());
        lines.push(b'\n');
    }
    lines.into()
}

/// The headers [`encode_headers`] wrote, names in lower case.
pub fn decode_headers(lines: &[u8]) -> Vec<(String, Vec<u8>)> {
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = String::from_utf8_lossy(&line[..colon]).into_owned();
            Some((name, line.get(colon + 2..).unwrap_or_default().to_vec()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_storage() {
        let mut headers = http::HeaderMap::new();
        headers.append("x-a", "1: 2".parse().unwrap());
        headers.append("x-a", "".parse().unwrap());
        headers.append("x-b", http::HeaderValue::from_bytes(b"caf\xe9").unwrap());
        let lines = encode_headers(&headers);
        let expected = [("x-a", &b"1: 2"[..]), ("x-a", b""), ("x-b", b"caf\xe9")];
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.to_string(), value.to_vec())).collect();
        assert_eq!(decode_headers(&lines), expected);
    }
}
