//! A destination for pushes that notes everything it gets and answers as it is told, however
//! badly.
//!
//! ```
//! use oncebox_testkit::destination::{Behaviour, Destination};
//! use oncebox_testkit::http;
//!
//! let destination = Destination::start();
//! destination.next(Behaviour::status(503));
//! let push = || http::post(destination.address(), "/hook", &[], b"{}").unwrap().status;
//! assert_eq!((push(), push()), (503, 200));
//! assert_eq!(destination.requests()[1].body, b"{}");
//! ```

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::wait;

/// How one request is answered.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// As it should be.
    Answer {
        /// The status.
        status: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// With exactly these bytes, and then the end of the connection.
    Raw(Vec<u8>),
    /// Not at all, while the connection stays open.
    Hang,
    /// With these bytes, and then nothing more while the connection stays open.
    Stall(Vec<u8>),
    /// By closing the connection.
    Close,
    /// With 200 and a body that does not end.
    Endless,
}

impl Behaviour {
    /// An answer of this status and nothing else.
    pub fn status(status: u16) -> Self {
        Self::answer(status, &[])
    }

    /// An answer of this status with headers.
    pub fn answer(status: u16, headers: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self::Answer { status, headers: headers.iter().map(own).collect(), body: Vec::new() }
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The target of the request line.
    pub target: String,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The raw body.
    pub body: Vec<u8>,
    /// Which connection it came by, counted from 0.
    pub connection: u64,
}

impl Received {
    /// The value of a header; the first if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let of = self.headers.iter().filter(|(known, _)| known == name);
        of.map(|(_, value)| value.as_str()).collect()
    }
}

/// A destination on a port of its own. Its threads end with the test process.
#[derive(Debug)]
pub struct Destination {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    script: Mutex<VecDeque<Behaviour>>,
    otherwise: Mutex<Option<Behaviour>>,
    received: Mutex<Vec<Received>>,
    connections: AtomicU64,
    /// Bytes of endless answers that were taken.
    taken: AtomicU64,
    /// Connections whose client has gone.
    closed: AtomicU64,
}

impl Destination {
    /// Starts one that answers 200 unless it is told otherwise.
    ///
    /// # Panics
    ///
    /// When there is no port left.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let served = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = served.clone();
                thread::spawn(move || {
                    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                    // A client that goes away in the middle is what some tests are about.
                    let _ = serve(stream, number, &shared);
                    shared.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the next request that has no answer yet in this way.
    pub fn next(&self, behaviour: Behaviour) {
        lock(&self.shared.script).push_back(behaviour);
    }

    /// Answers so whatever nobody said anything else about.
    pub fn always(&self, behaviour: Behaviour) {
        *lock(&self.shared.otherwise) = Some(behaviour);
    }

    /// Everything that came so far.
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// Connections that were opened so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Bytes of endless answers that clients have taken, those on the way included.
    pub fn endless_bytes_taken(&self) -> u64 {
        self.shared.taken.load(Ordering::SeqCst)
    }

    /// Waits until so many requests have come, and returns them.
    ///
    /// # Panics
    ///
    /// When they do not come in time.
    pub fn wait_for(&self, count: usize) -> Vec<Received> {
        let enough = || lock(&self.shared.received).len() >= count;
        wait::until(&format!("{count} requests came"), enough);
        self.requests()
    }

    /// Waits until so many connections have ended.
    ///
    /// # Panics
    ///
    /// When they do not end in time.
    pub fn wait_for_closed(&self, count: u64) {
        let enough = || self.shared.closed.load(Ordering::SeqCst) >= count;
        wait::until(&format!("{count} connections ended"), enough);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no panic while it was held")
}

fn serve(stream: TcpStream, connection: u64, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = read(&mut reader, connection)? {
        let next = lock(&shared.script).pop_front();
        let next = next.or_else(|| lock(&shared.otherwise).clone());
        lock(&shared.received).push(request);
        match next.unwrap_or_else(|| Behaviour::status(200)) {
            Behaviour::Answer { status, headers, body } => {
                answer(&mut writer, status, &headers, &body)?;
            }
            Behaviour::Raw(bytes) => return writer.write_all(&bytes),
            Behaviour::Close => return Ok(()),
            Behaviour::Hang => return wait_for_end(&mut reader),
            Behaviour::Stall(bytes) => {
                writer.write_all(&bytes)?;
                return wait_for_end(&mut reader);
            }
            Behaviour::Endless => return pour(&mut writer, shared),
        }
    }
    Ok(())
}

/// Reads one request; none if the connection ended between two.
fn read(reader: &mut impl BufRead, connection: u64) -> io::Result<Option<Received>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut bytes = Vec::new();
        reader.read_until(b'\n', &mut bytes)?;
        let line = String::from_utf8_lossy(&bytes);
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Received { method, target, headers, body, connection }))
}

fn answer(
    writer: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if status != 204 {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    writer.write_all(&[head.as_bytes(), body].concat())
}

fn wait_for_end(reader: &mut impl Read) -> io::Result<()> {
    io::copy(reader, &mut io::sink()).map(|_| ())
}

fn pour(writer: &mut impl Write, shared: &Shared) -> io::Result<()> {
    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n")?;
    let chunk = [b'x'; 16 << 10];
    loop {
        writer.write_all(&chunk)?;
        shared.taken.fetch_add(chunk.len() as u64, Ordering::SeqCst);
    }
}
