//! Connections to destinations: the address that is checked is the address that is connected to.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::may_go_to;

/// Addresses of one name that are tried at most.
const ADDRESSES_MAX: usize = 8;

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses, best first.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the resolver of the system.
#[derive(Debug)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// How destinations are reached. Tests bring their own names and certificates.
#[derive(Clone)]
pub struct Dial {
    /// Who knows names.
    pub resolver: Arc<dyn Resolve>,
    /// Whose certificates are believed; or why none can be.
    pub tls: Result<Arc<ClientConfig>, String>,
}

impl Dial {
    /// As the system resolves names and believes certificates.
    pub fn system() -> Self {
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map(|builder| Arc::new(builder.with_no_client_auth()))
            .map_err(|error| error.to_string());
        Self { resolver: Arc::new(SystemResolver), tls }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the name {0} was not found: {1}")]
    Name(String, io::Error),
    #[error("{host} is {address}, and this route may not push to such an address")]
    Refused { host: String, address: IpAddr },
    #[error("cannot connect to {0}: {1}")]
    Tcp(SocketAddr, io::Error),
    #[error("no TLS with {0}: {1}")]
    Tls(String, String),
    #[error("no connection to {0} within {1:?}")]
    TooSlow(String, Duration),
    #[error("the URL names no host")]
    NoHost,
}

impl ConnectError {
    /// The one that caused another error.
    pub(crate) fn within<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(connect) = error.downcast_ref() {
                return Some(connect);
            }
            cause = error.source();
        }
        None
    }

    /// A word for metrics.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Name(..) | Self::NoHost => "name",
            Self::Refused { .. } => "address_refused",
            Self::Tcp(..) => "connect",
            Self::Tls(..) => "tls",
            Self::TooSlow(..) => "connect_timeout",
        }
    }
}

/// Opens connections for one route.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) dial: Dial,
    pub(crate) allow_private: bool,
    pub(crate) timeout: Duration,
}

impl Connector {
    async fn connect(self, url: Uri) -> Result<Stream, ConnectError> {
        let host = url.host().ok_or(ConnectError::NoHost)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_tls = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let connect = async {
            let addresses = self.addresses(&host).await?;
            let stream = self.reach(&addresses, port).await?;
            match is_tls {
                false => Ok(Stream::Plain(TokioIo::new(stream))),
                true => self.secure(&host, stream).await,
            }
        };
        match timeout(self.timeout, connect).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::TooSlow(host.clone(), self.timeout)),
        }
    }

    /// The addresses of a host that may be pushed to. Checked here, after the name was resolved,
    /// and connected to as they are: a name that changes its mind in between changes nothing.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ConnectError> {
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = self.dial.resolver.resolve(host).await;
                found.map_err(|error| ConnectError::Name(host.to_owned(), error))?
            }
        };
        let allowed = |address: &IpAddr| may_go_to(*address, self.allow_private);
        let good: Vec<_> = found.iter().copied().filter(allowed).take(ADDRESSES_MAX).collect();
        match (good.is_empty(), found.first()) {
            (false, _) => Ok(good),
            (true, Some(&address)) => Err(ConnectError::Refused { host: host.to_owned(), address }),
            (true, None) => {
                let none = io::Error::new(io::ErrorKind::NotFound, "it has no address");
                Err(ConnectError::Name(host.to_owned(), none))
            }
        }
    }

    /// Connects to the first address that answers, each having its share of the time left.
    async fn reach(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, ConnectError> {
        let end = Instant::now() + self.timeout;
        let mut last = ConnectError::NoHost;
        for (number, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - number).unwrap_or(1);
            let share = end.saturating_duration_since(Instant::now()) / left;
            let address = SocketAddr::new(*address, port);
            let opened = timeout_at(Instant::now() + share, TcpStream::connect(address)).await;
            let opened = opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            match opened {
                Ok(stream) => {
                    // A small request must not wait for an acknowledgement; if it has to, it
                    // still arrives.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = ConnectError::Tcp(address, error),
            }
        }
        Err(last)
    }

    async fn secure(&self, host: &str, stream: TcpStream) -> Result<Stream, ConnectError> {
        let failed = |reason: String| ConnectError::Tls(host.to_owned(), reason);
        let config = self.dial.tls.clone().map_err(failed)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(e.to_string()))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().connect(url))
    }
}

/// A connection, encrypted or not.
pub(crate) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        }
    }
}
