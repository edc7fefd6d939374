//! A TCP proxy with faults: what a network does between a server and its database.
//!
//! ```
//! use oncebox_testkit::{postgres, proxy::Proxy};
//!
//! let database = postgres::shared().database();
//! postgres::execute(database.url(), "CREATE TABLE kept (id int)");
//! let proxy = Proxy::to_url(database.url());
//!
//! // The commit reaches the server, its answer never reaches the client.
//! proxy.cut_after_client_bytes(b"COMMIT");
//! let url = proxy.url(database.url());
//! let cut = std::panic::catch_unwind(|| {
//!     postgres::execute(&url, "BEGIN; INSERT INTO kept VALUES (1); COMMIT");
//! });
//! assert!(cut.is_err());
//! oncebox_testkit::wait::until("the lost commit is visible", || {
//!     postgres::query(database.url(), "SELECT count(*) FROM kept") == "1"
//! });
//! ```

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::{ports, wait};

/// A proxy on a loopback port of its own. Connections end with it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Puts a proxy in front of `target`.
    ///
    /// # Panics
    ///
    /// When `target` is no address.
    pub fn new(target: impl ToSocketAddrs) -> Self {
        let target = target
            .to_socket_addrs()
            .expect("the proxy's target resolves")
            .next()
            .expect("the proxy's target has an address");
        let (listener, port) = ports::bind();
        let shared = Arc::new(Shared {
            target,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        let listening = Mutex::new(Some(listen(listener, Arc::clone(&shared))));
        Self { port, shared, listening }
    }

    /// Puts a proxy in front of the one server that `url` names.
    pub fn to_url(url: &str) -> Self {
        Self::new(host_and_port(url))
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// `url` with the proxy in the place of its server.
    pub fn url(&self, url: &str) -> String {
        url.replacen(host_and_port(url), &self.addr().to_string(), 1)
    }

    /// Breaks every connection now. New ones are welcome unless [refused](Self::refuse).
    pub fn cut(&self) {
        let mut state = self.shared.lock();
        for link in state.links.drain(..) {
            link.cut();
        }
        state.cuts += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Refuses new connections as a machine without the server does.
    pub fn refuse(&self) {
        let Some(listening) = lock(&self.listening).take() else {
            return;
        };
        self.shared.lock().closing = true;
        // The thread is inside accept(2); a connection is what wakes it.
        let _ = TcpStream::connect(self.addr());
        listening.join().expect("the listening thread ends well");
        self.shared.lock().closing = false;
    }

    /// Takes new connections again, at the same address.
    pub fn accept(&self) {
        let mut listening = lock(&self.listening);
        if listening.is_none() {
            let listener = TcpListener::bind(self.addr()).expect("the proxy's port is still free");
            *listening = Some(listen(listener, Arc::clone(&self.shared)));
        }
    }

    /// Passes nothing on, in either direction, but keeps connections open.
    pub fn stall(&self) {
        self.shared.lock().stalled = true;
    }

    /// Ends a [stall](Self::stall); what was held is passed on.
    pub fn flow(&self) {
        self.shared.lock().stalled = false;
        self.shared.changed.notify_all();
    }

    /// Arms a cut for the next connection whose client sends `pattern`: everything up to and
    /// with it reaches the server, no answer comes back, and the client sees its connection
    /// break. The server may still carry out what it got. Once only.
    pub fn cut_after_client_bytes(&self, pattern: &[u8]) {
        self.arm(pattern, Side::After);
    }

    /// As [`Self::cut_after_client_bytes`], but the bytes that complete `pattern` do not reach
    /// the server.
    pub fn cut_before_client_bytes(&self, pattern: &[u8]) {
        self.arm(pattern, Side::Before);
    }

    /// Loses what the server answers to these bytes of a client. That connection stays open and
    /// mute: a byte stream with a gap would be a fault no network has.
    pub fn swallow_reply_to(&self, pattern: &[u8]) {
        self.arm(pattern, Side::Mute);
    }

    /// How many cuts happened, by hand or by an armed pattern.
    pub fn cuts(&self) -> u64 {
        self.shared.lock().cuts
    }

    /// Waits until there were at least `cuts` cuts.
    ///
    /// # Panics
    ///
    /// After [`wait::DEADLINE`].
    pub fn wait_for_cuts(&self, cuts: u64) {
        self.wait_until("cuts", |state| state.cuts >= cuts);
    }

    /// Waits until a reply was [swallowed](Self::swallow_reply_to).
    ///
    /// # Panics
    ///
    /// After [`wait::DEADLINE`].
    pub fn wait_for_swallowed_reply(&self) {
        self.wait_until("a swallowed reply", |state| state.swallowed);
    }

    fn wait_until(&self, what: &str, mut holds: impl FnMut(&State) -> bool) {
        let state = self.shared.lock();
        let (_state, result) = self
            .shared
            .changed
            .wait_timeout_while(state, wait::DEADLINE, |state| !holds(state))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "waited {:?} in vain for {what}", wait::DEADLINE);
    }

    fn arm(&self, pattern: &[u8], side: Side) {
        assert!(!pattern.is_empty(), "an empty pattern is in everything");
        self.shared.lock().armed = Some(Armed { pattern: pattern.to_vec(), side });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
        self.flow();
        self.cut();
    }
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Link>,
    closing: bool,
    stalled: bool,
    armed: Option<Armed>,
    swallowed: bool,
    cuts: u64,
}

#[derive(Debug)]
struct Armed {
    pattern: Vec<u8>,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
    /// Not at all: only the answer is lost.
    Mute,
}

/// One client and its connection to the server.
#[derive(Debug, Clone)]
struct Link {
    client: Arc<TcpStream>,
    server: Arc<TcpStream>,
    /// No more of the server's bytes are for the client.
    mute: Arc<Mutex<bool>>,
}

impl Link {
    fn cut(&self) {
        // Fails only if the peer was faster.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Held while the proxy stalls.
    fn await_flow(&self) -> MutexGuard<'_, State> {
        self.changed
            .wait_while(self.lock(), |state| state.stalled)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        for client in listener.incoming() {
            if shared.lock().closing {
                return;
            }
            let Ok(client) = client else { continue };
            let shared = Arc::clone(&shared);
            thread::spawn(move || connect(client, &shared));
        }
    })
}

/// A server that is down shows as a connection that closes at once.
fn connect(client: TcpStream, shared: &Arc<Shared>) {
    let Ok(server) = TcpStream::connect(shared.target) else {
        return;
    };
    // Small messages both ways; a delay here would be a fault nobody asked for.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let link = Link { client: Arc::new(client), server: Arc::new(server), mute: Arc::default() };
    shared.lock().links.push(link.clone());

    let replies = thread::spawn({
        let (link, shared) = (link.clone(), Arc::clone(shared));
        move || {
            if pump_replies(&link, &shared).is_err() {
                link.cut();
            }
        }
    });
    // An orderly end of one direction leaves the other open; a broken one breaks both.
    if pump_requests(&link, shared).is_err() {
        link.cut();
    }
    let _ = replies.join();
    shared.lock().links.retain(|other| !Arc::ptr_eq(&other.client, &link.client));
}

fn pump_requests(link: &Link, shared: &Shared) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    // The end of what was passed on: a pattern may arrive in pieces.
    let mut tail = Vec::new();
    loop {
        let length = (&*link.client).read(&mut chunk)?;
        if length == 0 {
            return link.server.shutdown(Shutdown::Write);
        }
        let bytes = &chunk[..length];
        let cut = take_armed(&mut shared.await_flow(), &mut tail, bytes);
        match cut {
            None => (&*link.server).write_all(bytes)?,
            Some(Side::Mute) => {
                *lock(&link.mute) = true;
                (&*link.server).write_all(bytes)?;
            }
            Some(side) => {
                // First the mouth, then the ear: the answer can be quicker than the next line.
                *lock(&link.mute) = true;
                if side == Side::After {
                    (&*link.server).write_all(bytes)?;
                }
                // The server's half stays open for reading, so that what it got is not reset.
                let _ = link.client.shutdown(Shutdown::Both);
                shared.lock().cuts += 1;
                shared.changed.notify_all();
                return link.server.shutdown(Shutdown::Write);
            }
        }
    }
}

fn pump_replies(link: &Link, shared: &Shared) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let length = (&*link.server).read(&mut chunk)?;
        if length == 0 {
            return link.client.shutdown(Shutdown::Write);
        }
        drop(shared.await_flow());
        if *lock(&link.mute) {
            shared.lock().swallowed = true;
            shared.changed.notify_all();
        } else {
            (&*link.client).write_all(&chunk[..length])?;
        }
    }
}

/// Disarms and tells where to cut if `bytes` complete the pattern.
fn take_armed(state: &mut State, tail: &mut Vec<u8>, bytes: &[u8]) -> Option<Side> {
    let Some(armed) = &state.armed else {
        tail.clear();
        return None;
    };
    tail.extend_from_slice(bytes);
    let pattern = &armed.pattern;
    if tail.windows(pattern.len()).any(|window| window == pattern) {
        return state.armed.take().map(|armed| armed.side);
    }
    tail.drain(..tail.len().saturating_sub(pattern.len() - 1));
    None
}

/// The `host:port` part of a URL.
fn host_and_port(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, place)| place)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
