//! Who is calling: the address of the connection, or the one a trusted proxy names.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// An IPv4 address, or the network of an IPv6 one: a sender with one address there has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    V4(u32),
    V6(u64),
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// Whether an address is that of one sender. Many share that of a proxy that names no sender,
/// of this machine, and of a service that does not tell it.
pub(crate) fn is_one_sender(address: IpAddr, trusted: &[IpNet]) -> bool {
    let address = address.to_canonical();
    let is_trusted = || trusted.iter().any(|net| net.contains(&address));
    !address.is_loopback() && !address.is_unspecified() && !is_trusted()
}

/// The sender's address. `X-Forwarded-For` counts only if the connection comes from a trusted
/// proxy, and then only as far as trusted proxies wrote it: everything left of the first address
/// they do not vouch for may have been made up by the sender.
pub fn sender(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let mut sender = peer.to_canonical();
    if !is_trusted(sender) {
        return sender;
    }
    let values: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
    let hops = values.iter().rev().flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    for hop in hops {
        let hop = std::str::from_utf8(hop).ok().and_then(|text| text.trim().parse().ok());
        let Some(hop): Option<IpAddr> = hop else { return sender };
        sender = hop.to_canonical();
        if !is_trusted(sender) {
            return sender;
        }
    }
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        sender(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn proxies_and_this_machine_are_not_one_sender() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let is_one = |address: &str| is_one_sender(address.parse().unwrap(), &trusted);
        assert!(["192.0.2.1", "2001:db8::1", "192.168.0.1"].into_iter().all(is_one));
        let many = ["10.1.2.3", "::ffff:10.1.2.3", "127.0.0.1", "::1", "0.0.0.0"];
        assert!(!many.into_iter().any(is_one));
    }

    #[test]
    fn only_what_trusted_proxies_wrote_is_believed() {
        assert_eq!(seen("192.0.2.9", &["203.0.113.5"]), "192.0.2.9");
        assert_eq!(seen("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &["203.0.113.5"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["198.51.100.7, 203.0.113.5, 10.1.1.1"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["198.51.100.7", "203.0.113.5"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["198.51.100.7, nonsense"]), "10.0.0.1");
        assert_eq!(seen("::ffff:10.0.0.1", &["2001:db8::1"]), "2001:db8::1");
    }
}
