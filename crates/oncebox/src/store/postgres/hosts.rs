//! The hosts of the store URL, one configuration each.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host as Address, TargetSessionAttrs};
use tokio_postgres::{Config, Error, NoTls};

/// One server that may be the primary.
#[derive(Debug)]
pub(super) struct Host {
    /// As operators know it.
    pub(super) name: String,
    /// How it is reached, whatever it is.
    pub(super) config: Config,
}

/// Every host, and which was good last.
#[derive(Debug)]
pub(super) struct Hosts {
    all: Vec<Host>,
    good: AtomicUsize,
}

impl Hosts {
    pub(super) fn of(config: &Config) -> Self {
        let count = config.get_hosts().len().max(config.get_hostaddrs().len());
        let all = (0..count).map(|n| host(config, n)).collect();
        Self { all, good: AtomicUsize::new(0) }
    }

    /// Only the host of that name.
    pub(super) fn only(config: &Config, name: &str) -> Self {
        let mut hosts = Self::of(config);
        hosts.all.retain(|host| host.name == name);
        hosts
    }

    pub(super) fn all(&self) -> &[Host] {
        &self.all
    }

    /// The hosts in the order they are tried: the last good one first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, &Host)> {
        let good = self.good.load(Ordering::Relaxed);
        let first = self.all.get(good).map(|host| (good, host));
        let others = self.all.iter().enumerate().filter(move |(n, _)| *n != good);
        first.into_iter().chain(others)
    }

    /// This one is tried first from now on.
    pub(super) fn note_good(&self, n: usize) {
        self.good.store(n, Ordering::Relaxed);
    }
}

/// The same configuration for one of its hosts.
fn host(all: &Config, n: usize) -> Host {
    let mut one = Config::new();
    let nth_or_only = |ports: &[u16]| ports.get(n).or_else(|| ports.first()).copied();
    let port = nth_or_only(all.get_ports());
    let address = all.get_hostaddrs().get(n).copied();
    let name = name(all.get_hosts().get(n), address, port);
    match all.get_hosts().get(n) {
        Some(Address::Tcp(host)) => drop(one.host(host)),
        #[cfg(unix)]
        Some(Address::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    address.map(|address| one.hostaddr(address));
    port.map(|port| one.port(port));
    all.get_user().map(|user| one.user(user));
    all.get_password().map(|password| one.password(password));
    all.get_dbname().map(|name| one.dbname(name));
    all.get_options().map(|options| one.options(options));
    all.get_application_name().map(|name| one.application_name(name));
    all.get_connect_timeout().map(|time| one.connect_timeout(*time));
    all.get_tcp_user_timeout().map(|time| one.tcp_user_timeout(*time));
    all.get_keepalives_interval().map(|time| one.keepalives_interval(time));
    all.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(TargetSessionAttrs::Any);
    Host { name, config: one }
}

fn name(host: Option<&Address>, address: Option<IpAddr>, port: Option<u16>) -> String {
    let name = match host {
        Some(Address::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Address::Unix(path)) => path.display().to_string(),
        None => address.map_or_else(String::new, |address| address.to_string()),
    };
    format!("{name}:{}", port.unwrap_or(5432))
}

/// An error of the driver with a text of ours. Pools take no other kind, and the driver makes one
/// only of what a stream says.
pub(super) async fn driver_error(reason: String) -> Error {
    let failed = Config::new().user("oncebox").connect_raw(Failing(reason), NoTls).await;
    failed.err().expect("nothing connects over a stream that fails")
}

struct Failing(String);

impl Failing {
    fn error<T>(&self) -> Poll<io::Result<T>> {
        Poll::Ready(Err(io::Error::other(self.0.clone())))
    }
}

impl AsyncRead for Failing {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.error()
    }
}

impl AsyncWrite for Failing {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        self.error()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.error()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_keeps_the_settings_of_the_url() {
        let url = "postgres://u:p@a:1,b:2/d?connect_timeout=5&application_name=x";
        let hosts = Hosts::of(&url.parse().unwrap());
        let names: Vec<&str> = hosts.all().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["a:1", "b:2"]);
        let second = &hosts.all()[1].config;
        assert_eq!((second.get_user(), second.get_password()), (Some("u"), Some(&b"p"[..])));
        assert_eq!((second.get_dbname(), second.get_ports()), (Some("d"), &[2][..]));
        assert_eq!(second.get_hosts().len(), 1);
        hosts.note_good(1);
        let order: Vec<usize> = hosts.in_order().map(|(n, _)| n).collect();
        assert_eq!(order, [1, 0]);
    }

    #[tokio::test]
    async fn a_reason_can_be_told_as_an_error_of_the_driver() {
        let error = driver_error("a needle".into()).await;
        assert!(super::super::connect::with_causes(&error).contains("a needle"));
    }
}
