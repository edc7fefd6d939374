//! A small HTTP/1.1 client that sends exactly the bytes it is given.
//!
//! Real clients refuse to send what a receiver must survive: malformed heads, headers twice, a
//! body slower than the deadline, half a request. This one does not look.
//!
//! ```no_run
//! use oncebox_testkit::http::{self, Connection};
//!
//! # let addr = "127.0.0.1:8080".parse().unwrap();
//! let answer = http::post(addr, "/in/demo", &[("X-Token", "secret")], b"{}")?;
//! assert_eq!(answer.status, 202);
//!
//! let mut connection = Connection::open(addr)?;
//! connection.send(b"POST /in/demo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")?;
//! connection.finish_sending()?;
//! assert_eq!(connection.answer()?.status, 400);
//! assert!(connection.is_closed_by_server()?);
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod concurrent;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

pub use answer::Answer;
pub use concurrent::AsyncConnection;

use crate::wait::DEADLINE;

/// Posts on a connection of its own.
///
/// # Errors
///
/// When the server cannot be reached, breaks the connection, or does not answer in time.
pub fn post(
    addr: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    Connection::open(addr)?.request("POST", path, headers, body)
}

/// Gets on a connection of its own.
///
/// # Errors
///
/// As [`post`].
pub fn get(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    Connection::open(addr)?.request("GET", path, &[], b"")
}

/// The bytes of an ordinary request. A `Host` and a `Content-Length` are added unless `headers`
/// have their own.
pub fn request_bytes(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let has = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !has("host") {
        head.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !has("content-length") && !has("transfer-encoding") && (!body.is_empty() || method == "POST")
    {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// A connection kept open between requests. Every wait on it ends after [`DEADLINE`].
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// What has come and belongs to no answer yet.
    received: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens there, or not in time.
    pub fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, DEADLINE)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Sends an ordinary request and awaits its answer.
    ///
    /// # Errors
    ///
    /// As [`Self::send`] and [`Self::answer`].
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let sent = self.send(&request_bytes(method, path, headers, body));
        // A server may answer and close before it has read a body it will not take.
        self.answer().map_err(|error| sent.err().unwrap_or(error))
    }

    /// Sends these bytes, whatever they are. Several requests in a row make a pipeline.
    ///
    /// # Errors
    ///
    /// When the server has closed the connection, or does not read in time.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends byte by byte. `between` is told how many were sent and says whether to go on; it is
    /// where a test waits, moves a clock or looks at the server.
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    pub fn send_slowly(
        &mut self,
        bytes: &[u8],
        mut between: impl FnMut(usize) -> bool,
    ) -> io::Result<()> {
        for (sent, byte) in bytes.iter().enumerate() {
            if !between(sent) {
                break;
            }
            self.send(std::slice::from_ref(byte))?;
        }
        Ok(())
    }

    /// Closes our direction only: the server sees the end of the request, we can still read.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// The next answer.
    ///
    /// # Errors
    ///
    /// When the connection ends before it, the deadline passes, or it is not HTTP.
    pub fn answer(&mut self) -> io::Result<Answer> {
        self.answer_within(DEADLINE)
    }

    /// The next answer, if it comes before `limit`.
    ///
    /// # Errors
    ///
    /// As [`Self::answer`].
    pub fn answer_within(&mut self, limit: Duration) -> io::Result<Answer> {
        self.stream.set_read_timeout(Some(limit))?;
        let mut ended = false;
        loop {
            if let Some((answer, length)) = answer::parse(&self.received, ended)? {
                self.received.drain(..length);
                return Ok(answer);
            }
            ended = self.receive()? == 0;
        }
    }

    /// Whether the server closes the connection, once it has said what it had to say.
    ///
    /// # Errors
    ///
    /// When it does not close it in time.
    pub fn is_closed_by_server(&mut self) -> io::Result<bool> {
        match self.receive() {
            Ok(length) => Ok(length == 0),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        let length = self.stream.read(&mut chunk)?;
        self.received.extend_from_slice(&chunk[..length]);
        Ok(length)
    }
}
