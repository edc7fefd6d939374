//! Accepting connections and speaking HTTP on them.
//!
//! HTTP/1.1 only, on purpose: a webhook is one small request, for which HTTP/2 gains nothing and
//! brings streams to reset, windows to stall and header tables to fill before anybody has shown a
//! signature. Senders that speak HTTP/2 end at the proxy in front of us, or fall back.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Sleep;
use tracing::{debug, warn};

use self::per_address::PerAddress;
use crate::config::ServerConfig;

mod per_address;

/// The certificate in use; a reload replaces it.
pub type Tls = Arc<ArcSwap<rustls::ServerConfig>>;

/// How long a client may take to read answers that wait for it.
const READ_TIME: Duration = Duration::from_secs(30);

/// What a client hears whose headers did not come in time.
const HEADERS_TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\n\
    content-type: application/json\r\n\
    content-length: 28\r\n\
    connection: close\r\n\
    \r\n\
    {\"error\":\"headers_too_slow\"}";

/// What a client hears whose address has as many connections as it may have.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    content-length: 32\r\n\
    retry-after: 5\r\n\
    connection: close\r\n\
    \r\n\
    {\"error\":\"too_many_connections\"}";

/// How connections of one listener are bounded.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Connections at the same time.
    pub max_connections: usize,
    /// Connections of one address at the same time.
    pub max_per_address: usize,
    /// Networks that no such limit holds for.
    pub exempt: Vec<IpNet>,
    /// The largest request line and headers together.
    pub max_headers: usize,
    /// How long headers may take, and an idle connection lives.
    pub header_timeout: Duration,
    /// How long a client may take to read answers that wait for it.
    pub read_timeout: Duration,
    /// How long requests under way may take when the listener stops.
    pub drain_timeout: Duration,
}

impl From<&ServerConfig> for ListenerOptions {
    fn from(server: &ServerConfig) -> Self {
        Self {
            max_connections: server.max_connections,
            max_per_address: server.max_connections_per_address,
            exempt: exempt(server),
            max_headers: server.max_headers.bytes(),
            header_timeout: server.header_timeout.0,
            read_timeout: READ_TIME,
            drain_timeout: server.drain_timeout.0,
        }
    }
}

/// Addresses that speak for many senders, or for this machine.
fn exempt(server: &ServerConfig) -> Vec<IpNet> {
    let loopback = [
        IpNet::from(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        IpNet::new_assert(Ipv4Addr::new(127, 0, 0, 0).into(), 8),
    ];
    server.trusted_proxies.iter().copied().chain(loopback).collect()
}

/// Serves connections until `stop` turns true, then lets requests under way finish.
pub async fn serve<H, F, B>(
    listener: TcpListener,
    options: ListenerOptions,
    tls: Option<Tls>,
    handler: H,
    mut stop: watch::Receiver<bool>,
) where
    H: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let http = http(&options);
    let places = Arc::new(Semaphore::new(options.max_connections));
    let per_address = PerAddress::new(options.max_per_address, options.exempt.clone());
    loop {
        // Without a free place the next connection waits in the kernel, where it costs nothing.
        let accepted = async {
            let place = places.clone().acquire_owned().await.expect("the semaphore stays open");
            (accept(&listener).await, place)
        };
        let ((stream, peer), place) = tokio::select! {
            accepted = accepted => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some(counted) = per_address.enter(peer.ip()) else {
            // Without waiting for it: a sender that does not read costs nothing.
            let _ = tls.is_none().then(|| stream.try_write(TOO_MANY));
            continue;
        };
        let stream = Impatient::new(stream, options.read_timeout);
        let connection = Connection { http: http.clone(), stop: stop.clone() };
        let tls = tls.clone();
        let handler = handler.clone();
        let handshake_time = options.header_timeout;
        tokio::spawn(async move {
            match tls {
                None => connection.serve(stream, peer, handler).await,
                Some(tls) => {
                    let acceptor = tokio_rustls::TlsAcceptor::from(tls.load_full());
                    match tokio::time::timeout(handshake_time, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => connection.serve(stream, peer, handler).await,
                        Ok(Err(error)) => debug!(%error, %peer, "TLS handshake failed"),
                        Err(_) => debug!(%peer, "TLS handshake took too long"),
                    }
                }
            }
            drop((counted, place));
        });
    }
    drop(listener);
    // Whoever has all places knows that every connection has ended.
    let all = u32::try_from(options.max_connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(options.drain_timeout, places.acquire_many(all)).await.is_err() {
        warn!("some requests did not finish in time and are cut off");
    }
}

fn http(options: &ListenerOptions) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_header_size(options.max_headers)
        // Hyper takes no smaller buffer than this.
        .max_buf_size(options.max_headers.max(8 << 10))
        .half_close(false);
    http
}

/// Accepts the next connection. A failure to accept is the kernel's trouble (out of files, out of
/// memory, a sender that hung up) and passes.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are one small packet; waiting to fill it would delay every one.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A stream that ends if the other side does not read. Whoever sends requests and never reads an
/// answer would keep its place for ever otherwise, and a few thousand of them everybody's.
struct Impatient<S> {
    stream: S,
    limit: Duration,
    /// Runs from the first write that had to wait until all has been written: a byte read now and
    /// then does not buy more time.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, waiting: None }
    }

    /// Fails a write that waits once the time is over.
    fn bound<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            let limit = self.limit;
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            if waiting.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.bound(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for once everything has been handed over.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.waiting = None;
        }
        self.bound(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bound(context, ended)
    }
}

struct Connection {
    http: http1::Builder,
    stop: watch::Receiver<bool>,
}

impl Connection {
    async fn serve<S, H, F, B>(mut self, stream: S, peer: SocketAddr, handler: H)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        H: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let service = service_fn(move |request| {
            let answer = handler(peer, request);
            async move { Ok::<_, std::convert::Infallible>(answer.await) }
        });
        let mut connection = self.http.serve_connection(TokioIo::new(stream), service);
        let stopped = async { drop(self.stop.wait_for(|stop| *stop).await) };
        let ended = tokio::select! {
            biased;
            ended = &mut connection => ended,
            () = stopped => {
                Pin::new(&mut connection).graceful_shutdown();
                (&mut connection).await
            }
        };
        let Err(error) = ended else { return };
        debug!(%error, %peer, "a connection ended early");
        if error.is_timeout() {
            // Hyper closes without a word. That suits a connection that has been idle; whoever
            // has begun a request is told why it ends.
            let parts = connection.into_parts();
            if !parts.read_buf.is_empty() {
                refuse_slow_headers(parts.io.into_inner()).await;
            }
        }
    }
}

/// Tells a client that its headers took too long. It may be gone, so a failure is none of ours.
async fn refuse_slow_headers(mut stream: impl AsyncWrite + Unpin) {
    let _ = stream.write_all(HEADERS_TOO_SLOW).await;
    let _ = stream.shutdown().await;
}
