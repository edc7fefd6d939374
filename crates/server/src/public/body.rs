//! Receiving a body within its limits.
//!
//! Nothing here trusts a length that was only announced: bytes are counted as they arrive, against
//! the limit of one body, the memory that all bodies share, and the share of their address. A body
//! that comes too slowly is given up, so that no sender holds memory by waiting.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::shares::{Share, Shares, Waiting};
use crate::state::{Inbox, Live};

/// The most that is allocated because of an announced length alone.
const PREALLOCATED_MAX: usize = 64 << 10;

/// How long an unwanted body is read, so that its sender, who is still sending, hears the
/// answer before the connection ends.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// As much is read of a body that was found too large, or too slow, or to take too much memory.
pub(super) const UNWANTED_REST: usize = 1 << 20;

/// The largest rest of a body that does not end its connection.
const SMALL_REST: u64 = 64 << 10;

/// A whole body and its share of the memory.
pub(super) struct Received {
    pub(super) bytes: Bytes,
    _memory: Memory,
}

/// What a body has taken of the memory for bodies.
#[derive(Default)]
struct Memory {
    all: Option<OwnedSemaphorePermit>,
    waiting: Option<Waiting>,
    share: Option<Share>,
}

/// Why a body was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    OutOfMemory,
    /// Bodies of the same address take all of its share.
    OverShare,
    Incomplete,
}

/// The limits of one body.
pub(super) struct Bounds<'a> {
    /// Its largest size.
    max: usize,
    time: Duration,
    /// Bytes that have to come in a second.
    rate: u64,
    memory: &'a Arc<Semaphore>,
    shares: &'a Arc<Shares>,
    /// Who sends it, if that is one sender.
    sender: Option<IpAddr>,
    share: usize,
    /// What all bodies that wait may take of the memory.
    waiting: usize,
}

impl<'a> Bounds<'a> {
    /// Those of a body from this address, of at most `max` bytes.
    pub(super) fn of(inbox: &'a Inbox, live: &Live, sender: IpAddr, max: usize) -> Self {
        Self {
            max: max.min(live.max_body),
            time: live.body_timeout,
            rate: live.min_upload_rate,
            memory: &inbox.memory,
            shares: &inbox.shares,
            sender: Some(sender).filter(|sender| live.is_one_sender(*sender)),
            share: live.memory_share,
            waiting: live.waiting_memory,
        }
    }

    /// Takes memory for a part of a body. A body in one piece does not wait for its sender, and may
    /// use what the waiting ones leave.
    fn take(&self, memory: &mut Memory, part: usize, is_whole: bool) -> Result<(), BodyError> {
        let bytes = u32::try_from(part).map_err(|_| BodyError::TooLarge)?;
        let more = self.memory.clone().try_acquire_many_owned(bytes);
        let more = more.map_err(|_| BodyError::OutOfMemory)?;
        match &mut memory.all {
            Some(all) => all.merge(more),
            None => memory.all = Some(more),
        }
        if is_whole {
            return Ok(());
        }
        let waiting = memory.waiting.get_or_insert_with(|| Waiting::of(self.shares));
        if !waiting.grow(part, self.waiting) {
            return Err(BodyError::OutOfMemory);
        }
        if let Some(sender) = self.sender {
            let share = memory.share.get_or_insert_with(|| Share::of(self.shares, sender));
            if !share.grow(part, self.share) {
                return Err(BodyError::OverShare);
            }
        }
        Ok(())
    }
}

/// How long a body is waited for. Every byte that comes buys as much time as it would take at the
/// slowest rate, up to a quarter of the whole time: who stops sending is given up after that, and
/// who sends a little now and then soon after.
struct Patience {
    pause: Duration,
    rate: u64,
    until: Instant,
    end: Instant,
}

impl Patience {
    fn new(time: Duration, rate: u64, now: Instant) -> Self {
        let pause = if rate == 0 { time } else { time / 4 };
        Self { pause, rate, until: now + pause, end: now + time }
    }

    /// When the body is given up, unless more of it comes.
    fn deadline(&self) -> Instant {
        self.until.min(self.end)
    }

    fn heard(&mut self, bytes: usize, now: Instant) {
        if self.rate > 0 {
            let worth = Duration::from_secs_f64(bytes as f64 / self.rate as f64);
            self.until = (self.until + worth).min(now + self.pause);
        }
    }
}

/// Refuses a length that is announced and too large.
pub(super) fn check_announced(
    headers: &HeaderMap,
    body: &impl Body,
    max: usize,
) -> Result<(), BodyError> {
    let is_over = announced(headers, body).is_some_and(|length| length > max as u64);
    if is_over { Err(BodyError::TooLarge) } else { Ok(()) }
}

/// How much of a body is still to come, as its sender says.
pub(super) fn announced(headers: &HeaderMap, body: &impl Body) -> Option<u64> {
    let exact = body.size_hint().exact();
    exact.or_else(|| headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok())
}

/// The part of a body that arrived with the head of its request.
pub(super) enum AtHand {
    /// All of it, in one piece.
    Whole(Received),
    /// Its beginning, or nothing yet.
    Part(Bytes),
}

/// Takes what is there of a body, without waiting.
pub(super) fn at_hand(
    mut body: impl Body<Data = Bytes> + Unpin,
    bounds: &Bounds<'_>,
) -> Result<AtHand, BodyError> {
    let mut context = Context::from_waker(Waker::noop());
    let data = match Pin::new(&mut body).poll_frame(&mut context) {
        Poll::Pending => return Ok(AtHand::Part(Bytes::new())),
        Poll::Ready(None) => Bytes::new(),
        Poll::Ready(Some(frame)) => {
            let frame = frame.map_err(|_| BodyError::Incomplete)?;
            frame.into_data().unwrap_or_default()
        }
    };
    if !body.is_end_stream() || data.len() > bounds.max {
        return Ok(AtHand::Part(data));
    }
    let mut memory = Memory::default();
    bounds.take(&mut memory, data.len(), true)?;
    Ok(AtHand::Whole(Received { bytes: data, _memory: memory }))
}

/// Receives a body of which a part has come already.
pub(super) async fn receive(
    headers: &HeaderMap,
    begun: Bytes,
    mut body: impl Body<Data = Bytes> + Unpin,
    bounds: Bounds<'_>,
) -> Result<Received, BodyError> {
    let announced = announced(headers, &body).map(|rest| rest + begun.len() as u64);
    if announced.is_some_and(|length| length > bounds.max as u64) {
        return Err(BodyError::TooLarge);
    }
    let mut begun = Some(begun).filter(|begun| !begun.is_empty());
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut memory = Memory::default();
    let mut patience = Patience::new(bounds.time, bounds.rate, Instant::now());
    loop {
        let data = match begun.take() {
            Some(begun) => begun,
            None => {
                let frame = timeout_at(patience.deadline(), body.frame()).await;
                let Some(frame) = frame.map_err(|_| BodyError::TooSlow)? else { break };
                // Trailers carry nothing we would believe.
                match frame.map_err(|_| BodyError::Incomplete)?.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                }
            }
        };
        if first.len() + all.len() + data.len() > bounds.max {
            return Err(BodyError::TooLarge);
        }
        let is_first = first.is_empty() && all.is_empty();
        let is_last = body.is_end_stream();
        bounds.take(&mut memory, data.len(), is_first && is_last)?;
        if !is_last {
            patience.heard(data.len(), Instant::now());
        }
        // Most bodies are one frame, which is then used as it is.
        if is_first {
            first = data;
        } else {
            if all.is_empty() {
                let announced = announced.map_or(0, |length| usize::try_from(length).unwrap_or(0));
                let wanted = announced.min(PREALLOCATED_MAX).max(first.len() + data.len());
                all.reserve(wanted);
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        if is_last {
            break;
        }
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok(Received { bytes, _memory: memory })
}

/// What is left of a body when its request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// So little that the connection goes on once it has come.
    Little,
    Much,
}

/// Reads the rest of a body that was answered without it, for a moment, and at most so many bytes:
/// a connection that is closed while its sender sends is reset, and the sender hears the reset
/// instead of the answer.
pub(super) fn drain<B>(headers: &HeaderMap, mut body: B, most: usize) -> Rest
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    if body.is_end_stream() {
        return Rest::Nothing;
    }
    let rest = match announced(headers, &body) {
        Some(length) if length <= SMALL_REST => Rest::Little,
        _ => Rest::Much,
    };
    // A sender that waits for `100 Continue` sends nothing, and reading would send it.
    if headers.contains_key(EXPECT) {
        return Rest::Much;
    }
    tokio::spawn(async move {
        let reading = async {
            let mut left = most;
            while let Some(Ok(frame)) = body.frame().await {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                let Some(after) = left.checked_sub(bytes) else { return };
                left = after;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
    });
    rest
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    /// What was taken of a body without waiting is not lost, and counts against its limit.
    #[tokio::test]
    async fn what_is_at_hand_is_the_beginning_of_the_body() {
        let (memory, shares) = (Arc::new(Semaphore::new(64)), Arc::default());
        let bounds = |max| {
            let (time, rate, sender, share, waiting) = (Duration::from_secs(1), 0, None, 64, 64);
            let (memory, shares) = (&memory, &shares);
            Bounds { max, time, rate, memory, shares, sender, share, waiting }
        };
        let body = || Full::new(Bytes::from_static(b"{\"id\":1}"));
        let AtHand::Whole(received) = at_hand(body(), &bounds(8)).unwrap() else {
            panic!("parted")
        };
        assert_eq!(received.bytes, "{\"id\":1}");
        assert_eq!(memory.available_permits(), 64 - 8, "it takes its memory");

        let mut large = body();
        let AtHand::Part(begun) = at_hand(&mut large, &bounds(7)).unwrap() else { panic!("whole") };
        let headers = HeaderMap::new();
        let all = receive(&headers, begun.clone(), &mut large, bounds(8)).await.unwrap();
        assert_eq!(all.bytes, "{\"id\":1}");
        let refused = receive(&headers, begun, large, bounds(7)).await;
        assert!(matches!(refused, Err(BodyError::TooLarge)));
    }

    #[test]
    fn patience_is_a_quarter_of_the_time_and_grows_with_what_comes() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut patience = Patience::new(20 * second, 1000, begin);
        assert_eq!(patience.deadline(), begin + 5 * second, "who sends nothing");
        // Half the rate is too slow after twice the pause.
        for number in 1..10 {
            let now = begin + number * second;
            assert!(now <= patience.deadline(), "{number} s");
            patience.heard(500, now);
        }
        assert_eq!(patience.deadline(), begin + 9 * second + second / 2);
        // A large part buys no more than one pause.
        patience.heard(1 << 20, begin + 9 * second);
        assert_eq!(patience.deadline(), begin + 14 * second);
        patience.heard(1 << 20, begin + 18 * second);
        assert_eq!(patience.deadline(), begin + 20 * second, "and never more than the whole time");
    }

    #[test]
    fn without_a_rate_only_the_whole_time_counts() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut patience = Patience::new(20 * second, 0, begin);
        patience.heard(1, begin + second);
        assert_eq!(patience.deadline(), begin + 20 * second);
    }
}
