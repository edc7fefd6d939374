//! Connections per address: one sender cannot take the places of all others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tracing::warn;

/// How often refused connections are logged.
const TELL_APART: Duration = Duration::from_secs(60);

/// How many connections each address has.
#[derive(Debug)]
pub(super) struct PerAddress {
    most: usize,
    exempt: Vec<IpNet>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<IpAddr, usize>,
    /// Refused since the log was told of it last.
    refused: u64,
    told_at: Option<Instant>,
}

/// A connection that counts for its address until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    all: Arc<PerAddress>,
    /// None for an address that is exempt.
    address: Option<IpAddr>,
}

impl PerAddress {
    pub(super) fn new(most: usize, exempt: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { most, exempt, state: Mutex::default() })
    }

    /// Counts a connection from `peer`; none if that address has as many as it may have.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Counted> {
        let peer = peer.to_canonical();
        if self.exempt.iter().any(|net| net.contains(&peer)) {
            return Some(Counted { all: self.clone(), address: None });
        }
        let address = one_sender(peer);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.open.entry(address).or_default();
        if *open >= self.most {
            state.refuse(address, self.most);
            return None;
        }
        *open += 1;
        Some(Counted { all: self.clone(), address: Some(address) })
    }
}

impl State {
    /// Counts a refusal, and logs all of them now and then.
    fn refuse(&mut self, address: IpAddr, most: usize) {
        self.refused += 1;
        let now = Instant::now();
        if self.told_at.is_none_or(|told| now.duration_since(told) >= TELL_APART) {
            let refused = std::mem::take(&mut self.refused);
            self.told_at = Some(now);
            warn!(
                %address, refused, most,
                "refused connections of an address that has `max_connections_per_address`"
            );
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut state = self.all.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = state.open.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                state.open.remove(&address);
            }
        }
    }
}

/// The address that stands for one sender: of IPv6 the network of 64 bits, all of which one
/// machine may use.
fn one_sender(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let all = PerAddress::new(2, vec!["10.0.0.0/8".parse().unwrap()]);
        let enter = |address: &str| all.enter(address.parse().unwrap());
        let first = enter("192.0.2.1").unwrap();
        let _second = enter("::ffff:192.0.2.1").unwrap();
        assert!(enter("192.0.2.1").is_none());
        let _other = enter("192.0.2.2").unwrap();
        drop(first);
        let _again = enter("192.0.2.1").unwrap();
        let _exempt: Vec<_> = (0..9).map(|_| enter("10.1.2.3").unwrap()).collect();
    }

    #[test]
    fn a_network_of_ipv6_is_one_sender() {
        let all = PerAddress::new(1, Vec::new());
        let enter = |address: &str| all.enter(address.parse().unwrap());
        let _first = enter("2001:db8:1:2::1").unwrap();
        assert!(enter("2001:db8:1:2:ffff::9").is_none());
        assert!(enter("2001:db8:1:3::1").is_some());
    }
}
