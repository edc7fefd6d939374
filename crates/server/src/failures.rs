//! Counting failed signatures per address, so that a secret cannot be guessed by trying.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::address::Address;

/// Addresses that are remembered at the same time. Beyond it the least recent are forgotten
/// rather than memory spent on whoever has many addresses.
const ADDRESSES_MAX: usize = 32_768;

const MINUTE: Duration = Duration::from_secs(60);

/// Failed signatures, by address.
#[derive(Debug, Default)]
pub struct Failures {
    by_address: Mutex<HashMap<Address, Bucket>>,
}

/// A bucket that leaks `per_minute` failures a minute; it is empty at `empty_at`.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    empty_at: Instant,
}

impl Failures {
    /// After how long it is worth trying again for an address that is over the limit.
    pub fn over(&self, address: IpAddr, per_minute: u32, now: Instant) -> Option<Duration> {
        let each = MINUTE / per_minute.max(1);
        let buckets = self.by_address.lock().expect("no panic while counting");
        let bucket = buckets.get(&address.into())?;
        let next = bucket.empty_at.max(now) + each;
        let over = next.saturating_duration_since(now).saturating_sub(MINUTE);
        (!over.is_zero()).then_some(over)
    }

    /// Notes a failed signature. Over the limit it returns after how long it is worth trying
    /// again.
    pub fn note(&self, address: IpAddr, per_minute: u32, now: Instant) -> Result<(), Duration> {
        let each = MINUTE / per_minute.max(1);
        let mut buckets = self.by_address.lock().expect("no panic while counting");
        if buckets.len() >= ADDRESSES_MAX {
            make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(address.into()).or_insert(Bucket { empty_at: now });
        let empty_at = bucket.empty_at.max(now) + each;
        let over = empty_at.saturating_duration_since(now).saturating_sub(MINUTE);
        if over.is_zero() {
            bucket.empty_at = empty_at;
            Ok(())
        } else {
            Err(over)
        }
    }

    /// Takes back a failure that turned out to be none.
    pub fn forgive(&self, address: IpAddr, per_minute: u32) {
        let mut buckets = self.by_address.lock().expect("no panic while counting");
        if let Some(bucket) = buckets.get_mut(&address.into()) {
            let before = bucket.empty_at.checked_sub(MINUTE / per_minute.max(1));
            bucket.empty_at = before.unwrap_or(bucket.empty_at);
        }
    }
}

/// Forgets buckets that are empty by now, and if that is not enough, those that are next.
fn make_room(buckets: &mut HashMap<Address, Bucket>, now: Instant) {
    buckets.retain(|_, bucket| bucket.empty_at > now);
    if buckets.len() >= ADDRESSES_MAX {
        let mut times: Vec<Instant> = buckets.values().map(|bucket| bucket.empty_at).collect();
        let (_, middle, _) = times.select_nth_unstable(ADDRESSES_MAX / 2);
        let middle = *middle;
        buckets.retain(|_, bucket| bucket.empty_at > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_per_minute_and_address() {
        let failures = Failures::default();
        let now = Instant::now();
        let one: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        for _ in 0..3 {
            assert_eq!(failures.note(one, 3, now), Ok(()));
        }
        assert!(failures.note(one, 3, now).is_err());
        assert_eq!(failures.note(other, 3, now), Ok(()));
        let later = now + Duration::from_secs(20);
        assert_eq!(failures.note(one, 3, later), Ok(()));
        assert_eq!(failures.note(one, 3, later), Err(Duration::from_secs(20)));
        assert_eq!(failures.over(one, 3, later), Some(Duration::from_secs(20)));
        assert_eq!(failures.over(other, 3, later), None);
        failures.forgive(one, 3);
        assert_eq!(failures.over(one, 3, later), None);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let failures = Failures::default();
        let now = Instant::now();
        assert_eq!(failures.note("2001:db8::1".parse().unwrap(), 1, now), Ok(()));
        assert!(failures.note("2001:db8::2".parse().unwrap(), 1, now).is_err());
        assert_eq!(failures.note("2001:db8:0:1::1".parse().unwrap(), 1, now), Ok(()));
        assert_eq!(failures.note("::ffff:192.0.2.1".parse().unwrap(), 1, now), Ok(()));
        assert!(failures.note("192.0.2.1".parse().unwrap(), 1, now).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let failures = Failures::default();
        let now = Instant::now();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from_bits(number));
            let _ = failures.note(address, 60, now + Duration::from_micros(number.into()));
        }
        assert!(failures.by_address.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
