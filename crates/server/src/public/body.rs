//! Receiving a body within its limits.
//!
//! Nothing here trusts a length that was only announced: bytes are counted as they arrive,
//! against the limit of one body and the memory all bodies share.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most that is allocated because of an announced length alone.
const PREALLOCATED_MAX: usize = 64 << 10;

/// A whole body and its share of the memory.
pub(super) struct Received {
    pub(super) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Why a body was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    OutOfMemory,
    Incomplete,
}

/// Receives a body of at most `max` bytes within `time`.
pub(super) async fn receive(
    headers: &HeaderMap,
    body: impl Body<Data = Bytes> + Unpin,
    max: usize,
    time: Duration,
    memory: &Arc<Semaphore>,
) -> Result<Received, BodyError> {
    let announced = announced(headers, &body);
    if announced.is_some_and(|length| length > max as u64) {
        return Err(BodyError::TooLarge);
    }
    let reading = read(body, announced, max, memory);
    tokio::time::timeout(time, reading).await.unwrap_or(Err(BodyError::TooSlow))
}

fn announced(headers: &HeaderMap, body: &impl Body) -> Option<u64> {
    let exact = body.size_hint().exact();
    exact.or_else(|| headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok())
}

async fn read(
    mut body: impl Body<Data = Bytes> + Unpin,
    announced: Option<u64>,
    max: usize,
    memory: &Arc<Semaphore>,
) -> Result<Received, BodyError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut share: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| BodyError::Incomplete)?;
        // Trailers carry nothing we would believe.
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > max {
            return Err(BodyError::TooLarge);
        }
        let bytes = u32::try_from(data.len()).map_err(|_| BodyError::TooLarge)?;
        let more = memory.clone().try_acquire_many_owned(bytes);
        let more = more.map_err(|_| BodyError::OutOfMemory)?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        // Most bodies are one frame, which is then used as it is.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            let announced = announced.map_or(0, |length| usize::try_from(length).unwrap_or(0));
            let wanted = announced.min(PREALLOCATED_MAX).max(first.len() + data.len());
            all.reserve(wanted);
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok(Received { bytes, _share: share })
}
