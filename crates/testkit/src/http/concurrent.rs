//! The same client for load: many connections on a few threads.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::{self, Answer};
use crate::wait::DEADLINE;

/// [`Connection`](super::Connection) for asynchronous tests.
#[derive(Debug)]
pub struct AsyncConnection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl AsyncConnection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens there, or not in time.
    pub async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = timeout(DEADLINE, TcpStream::connect(addr)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Sends an ordinary request and awaits its answer.
    ///
    /// # Errors
    ///
    /// When the connection breaks or the deadline passes.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        self.exchange(&super::request_bytes(method, path, headers, body)).await
    }

    /// Sends the bytes of a request, such as [`request_bytes`](super::request_bytes) makes once
    /// for many sends, and awaits the answer.
    ///
    /// # Errors
    ///
    /// As [`Self::request`].
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        timeout(DEADLINE, async {
            let sent = self.stream.write_all(request).await;
            self.answer().await.map_err(|error| sent.err().unwrap_or(error))
        })
        .await?
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        let mut ended = false;
        loop {
            if let Some((answer, length)) = answer::parse(&self.received, ended)? {
                self.received.drain(..length);
                return Ok(answer);
            }
            ended = self.stream.read_buf(&mut self.received).await? == 0;
        }
    }
}
