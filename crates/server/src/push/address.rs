//! Which addresses a push may go to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a push to this address is allowed.
pub(super) fn may_go_to(address: IpAddr, allow_private: bool) -> bool {
    !is_never_a_destination(address) && (allow_private || is_public(address))
}

/// Whether the address is one of the public internet. Everything with another meaning is not,
/// however it is written: what leads to a private IPv4 address by translation is private, too.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Networks that are not the public internet, from IANA's registry of special addresses.
const SPECIAL_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, cloud metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24), // AS112
    (Ipv4Addr::new(192, 52, 193, 0), 24), // multicast tunnels
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, broadcast
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, length): &(Ipv4Addr, u32)| {
        let differs = address.to_bits() ^ network.to_bits();
        differs.leading_zeros() >= *length
    };
    !SPECIAL_V4.iter().any(within)
}

/// As for IPv4. Only 2000::/3 is given out at all; these are the special parts of it.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Teredo, benchmarks, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = translated(address) {
        return is_public_v4(inner);
    }
    let within = |(network, length): &(Ipv6Addr, u32)| {
        let differs = address.to_bits() ^ network.to_bits();
        differs.leading_zeros() >= *length
    };
    let given_out = address.segments()[0] >> 13 == 1;
    given_out && !SPECIAL_V6.iter().any(within)
}

/// The IPv4 address that an IPv6 address leads to: mapped, by NAT64 or by 6to4.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let inner = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(inner(high, low)),
        _ => None,
    }
}

/// Where clouds keep what their machines may know, credentials among it.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254), // nearly all of them
    Ipv4Addr::new(169, 254, 170, 2),   // AWS, for containers
    Ipv4Addr::new(169, 254, 170, 23),  // AWS, for pods
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(168, 63, 129, 16),   // Azure; an address of the public internet
];

/// As for IPv4.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // AWS
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),  // AWS, for pods
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // Google
];

/// Where no consumer is, whatever a route allows: nobody listens there, or the keeper of a
/// cloud's credentials does.
fn is_never_a_destination(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let reserved = v4.octets()[0] == 0 || v4.octets()[0] >= 224;
            reserved || METADATA_V4.contains(&v4)
        }
        IpAddr::V6(v6) => match translated(v6) {
            Some(inner) => is_never_a_destination(inner.into()),
            None => v6.is_unspecified() || v6.is_multicast() || METADATA_V6.contains(&v6),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(address: &str, allow_private: bool) -> bool {
        may_go_to(address.parse().unwrap(), allow_private)
    }

    #[test]
    fn public_addresses_are_destinations() {
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
        ];
        for address in public {
            assert!(may(address, false), "{address}");
            assert!(may(address, true), "{address}");
        }
    }

    #[test]
    fn private_addresses_need_permission() {
        let private = [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.1.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.7",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "100::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "::ffff:0:10.1.2.3",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::",
        ];
        for address in private {
            assert!(!may(address, false), "{address}");
            assert!(may(address, true), "{address}");
        }
    }

    #[test]
    fn some_addresses_are_nobodys() {
        let never = [
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "::",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "::ffff:0.0.0.0",
        ];
        for address in never {
            assert!(!may(address, false), "{address}");
            assert!(!may(address, true), "{address}");
        }
    }
}
