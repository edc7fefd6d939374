//! Free ports that stay ours over a restart.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// Below the range from which systems pick ports for outgoing connections (32768 and up on Linux,
/// 49152 and up on macOS). A port from that range could be taken by anyone while its server is
/// down, and the server under test could not come back to its address.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

/// A loopback port that was free a moment ago.
///
/// # Panics
///
/// When a thousand ports in a row are taken.
pub fn free_port() -> u16 {
    bind().1
}

/// A listener on such a port, and the port.
pub(crate) fn bind() -> (TcpListener, u16) {
    for _ in 0..1_000 {
        let offset = random() % u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(offset).expect("the range is of u16");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return (listener, port);
        }
    }
    panic!("no free port on 127.0.0.1 in {RANGE:?} after 1000 tries");
}

/// Enough chance to keep concurrent test processes apart.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
