//! The memory that bodies of one address take together, so that one sender cannot take it from all
//! others, and that of all bodies which have to wait, so that many senders cannot.
//!
//! Only what has to wait for more of its body is counted. A body that came in one piece goes at the
//! pace of the store, not of its sender, and most do: they pass without a lock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::address::Address;

/// Bytes of bodies, by address.
#[derive(Debug, Default)]
pub struct Shares {
    by_address: Mutex<HashMap<Address, usize>>,
    /// Of all bodies that wait for more of themselves.
    waiting: AtomicUsize,
}

/// What one body that waits has of the memory. Given back when dropped.
#[derive(Debug)]
pub struct Waiting {
    all: Arc<Shares>,
    bytes: usize,
}

impl Waiting {
    /// Nothing yet.
    pub fn of(all: &Arc<Shares>) -> Self {
        Self { all: all.clone(), bytes: 0 }
    }

    /// Takes more, if all bodies that wait together then have at most so many bytes.
    pub fn grow(&mut self, bytes: usize, most: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= most);
        let relaxed = Ordering::Relaxed;
        let fits = self.all.waiting.fetch_update(relaxed, relaxed, more).is_ok();
        self.bytes += if fits { bytes } else { 0 };
        fits
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What one body has of the share of its address. Given back when dropped.
#[derive(Debug)]
pub struct Share {
    all: Arc<Shares>,
    address: Address,
    bytes: usize,
}

impl Share {
    /// Nothing yet of the share of an address.
    pub fn of(all: &Arc<Shares>, address: IpAddr) -> Self {
        Self { all: all.clone(), address: address.into(), bytes: 0 }
    }

    /// Takes more, if all bodies of the address together then have at most so many bytes.
    pub fn grow(&mut self, bytes: usize, most: usize) -> bool {
        let mut by_address = self.all.lock();
        let taken = by_address.entry(self.address).or_default();
        let fits = taken.saturating_add(bytes) <= most;
        if fits {
            *taken += bytes;
            self.bytes += bytes;
        } else if *taken == 0 {
            by_address.remove(&self.address);
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut by_address = self.all.lock();
        if let Some(taken) = by_address.get_mut(&self.address) {
            *taken = taken.saturating_sub(self.bytes);
            if *taken == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, HashMap<Address, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(all: &Arc<Shares>, address: &str) -> Share {
        Share::of(all, address.parse().unwrap())
    }

    #[test]
    fn bodies_of_one_address_share_and_give_back() {
        let all = Arc::new(Shares::default());
        let (mut first, mut second) = (share(&all, "192.0.2.1"), share(&all, "192.0.2.1"));
        assert!(first.grow(60, 100));
        assert!(!second.grow(41, 100));
        assert!(second.grow(40, 100));
        assert!(!first.grow(1, 100));
        assert!(share(&all, "192.0.2.2").grow(100, 100), "another address has its own");
        drop(first);
        assert!(second.grow(60, 100));
        drop(second);
        assert!(!share(&all, "192.0.2.1").grow(101, 100));
        assert!(all.lock().is_empty(), "an address without bodies is forgotten");
    }

    #[test]
    fn bodies_that_wait_share_and_give_back() {
        let all = Arc::new(Shares::default());
        let (mut first, mut second) = (Waiting::of(&all), Waiting::of(&all));
        assert!(first.grow(60, 100));
        assert!(!second.grow(41, 100));
        assert!(second.grow(40, 100));
        drop(first);
        assert!(second.grow(60, 100));
        assert!(!second.grow(usize::MAX, usize::MAX));
        drop(second);
        assert_eq!(all.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let all = Arc::new(Shares::default());
        let mut first = share(&all, "2001:db8::1");
        assert!(first.grow(80, 100));
        assert!(!share(&all, "2001:db8::ffff").grow(30, 100));
        assert!(share(&all, "2001:db8:0:1::1").grow(30, 100));
    }
}
