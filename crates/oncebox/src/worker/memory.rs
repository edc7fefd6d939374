//! The memory that payloads share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::WORKER_ROUTE_SHARE;
use crate::receipt::RouteNo;

/// Memory is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// A budget of bytes. No route may have all of it: a destination that hangs with large payloads
/// must leave room for the others.
pub(super) struct Memory {
    all: Arc<Semaphore>,
    pieces: usize,
    routes: Mutex<HashMap<RouteNo, Arc<Semaphore>>>,
}

/// Room for one payload, given back when dropped.
pub(super) struct Room {
    _of_route: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        let pieces = (bytes / PIECE).clamp(1, u32::MAX as usize);
        Self { all: Arc::new(Semaphore::new(pieces)), pieces, routes: Mutex::default() }
    }

    /// Room for a payload, if there is some now.
    pub(super) fn try_take(&self, route: RouteNo, bytes: usize) -> Option<Room> {
        let (of_route, of_all) = self.needs(bytes);
        let of_route = self.route(route).try_acquire_many_owned(of_route).ok()?;
        let of_all = self.all.clone().try_acquire_many_owned(of_all).ok()?;
        Some(Room { _of_route: of_route, _of_all: of_all })
    }

    /// Room for a payload, once there is some. First come, first served.
    pub(super) async fn take(&self, route: RouteNo, bytes: usize) -> Room {
        let (of_route, of_all) = self.needs(bytes);
        let of_route = self.route(route).acquire_many_owned(of_route).await;
        let of_all = self.all.clone().acquire_many_owned(of_all).await;
        Room { _of_route: of_route.expect("never closed"), _of_all: of_all.expect("never closed") }
    }

    /// Pieces of the route's share and of all. What is larger than the share, or than everything,
    /// takes the whole of it and so is alone.
    fn needs(&self, bytes: usize) -> (u32, u32) {
        let pieces = bytes.div_ceil(PIECE).max(1);
        let within = |limit: usize| u32::try_from(pieces.min(limit)).unwrap_or(u32::MAX);
        (within(self.share()), within(self.pieces))
    }

    fn share(&self) -> usize {
        (self.pieces / WORKER_ROUTE_SHARE).max(1)
    }

    fn route(&self, route: RouteNo) -> Arc<Semaphore> {
        let mut routes = self.routes.lock().expect("no panic while counting");
        routes.entry(route).or_insert_with(|| Arc::new(Semaphore::new(self.share()))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RouteNo = RouteNo(1);
    const B: RouteNo = RouteNo(2);

    #[test]
    fn a_route_leaves_room_for_others() {
        let memory = Memory::new(8 * PIECE);
        let held = [memory.try_take(A, PIECE).unwrap(), memory.try_take(A, PIECE).unwrap()];
        assert!(memory.try_take(A, 1).is_none());
        assert!(memory.try_take(B, 2 * PIECE).is_some());
        drop(held);
        assert!(memory.try_take(A, 1).is_some());
    }

    #[test]
    fn what_is_larger_than_everything_is_alone() {
        let memory = Memory::new(8 * PIECE);
        let giant = memory.try_take(A, 100 * PIECE).unwrap();
        assert!(memory.try_take(B, 1).is_none());
        drop(giant);
        let _small = memory.try_take(B, 1).unwrap();
        assert!(memory.try_take(A, 100 * PIECE).is_none());
    }
}
