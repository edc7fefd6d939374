//! Whether a request to the admin listener was meant for it.
//!
//! A page in the browser of a person who works on this machine may have its name lead here (DNS
//! rebinding): the browser then lets it read what is answered. What it cannot choose is `Host`,
//! which has that name.

use std::net::IpAddr;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use tower::ServiceExt;
use tracing::warn;

use crate::api;
use crate::logs::clean;

/// Answers a request to the admin listener, if it was meant for it.
pub(crate) async fn answer(
    router: Router,
    peer: IpAddr,
    names: &[String],
    request: Request<Incoming>,
) -> Response {
    if is_meant(peer, request.headers(), names) {
        let answer = router.oneshot(request.map(Body::new)).await;
        return answer.unwrap_or_else(|never| match never {});
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = &*clean(host.unwrap_or_default());
    warn!(host, "refused a request to the admin listener under a name that is not its own");
    api::unknown_host()
}

/// Checks `Host` where a browser on this machine could have been led here: on connections from
/// loopback. Others come by an address or a name that only the network knows.
fn is_meant(peer: IpAddr, headers: &HeaderMap, names: &[String]) -> bool {
    if !peer.to_canonical().is_loopback() {
        return true;
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let only = hosts.next().filter(|_| hosts.next().is_none());
    only.and_then(|host| host.to_str().ok()).is_some_and(|host| is_known(host, names))
}

/// Whether the admin listener goes by this name: an address, `localhost`, or a name that the
/// configuration adds.
fn is_known(host: &str, names: &[String]) -> bool {
    let name = without_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_it = |known: &str| name.eq_ignore_ascii_case(known);
    is_it("localhost") || names.iter().any(|known| is_it(known))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn addresses_localhost_and_configured_names_are_known() {
        let names = ["oncebox.internal".to_owned()];
        let known = [
            "localhost",
            "LOCALHOST:8081",
            "localhost.",
            "127.0.0.1:8081",
            "127.0.0.1",
            "[::1]:8081",
            "[::1]",
            "10.0.0.7:8081",
            "oncebox.internal",
            "Oncebox.Internal:443",
        ];
        for host in known {
            assert!(is_known(host, &names), "{host}");
        }
        let strange = [
            "",
            "evil.example.com",
            "evil.example.com:8081",
            "localhost.evil.example.com",
            "evil.localhost.com",
            "127.0.0.1.nip.io",
            "oncebox.internal.evil.example.com",
            "localhost:8081@evil.example.com",
        ];
        for host in strange {
            assert!(!is_known(host, &names), "{host}");
        }
    }

    #[test]
    fn only_connections_from_this_machine_are_checked() {
        let headers = |hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            headers
        };
        let check = |peer: &str, hosts: &[&'static str]| {
            is_meant(peer.parse().unwrap(), &headers(hosts), &[])
        };
        assert!(check("10.0.0.9", &["oncebox:8081"]));
        assert!(check("127.0.0.1", &["127.0.0.1:8081"]));
        assert!(!check("127.0.0.1", &["oncebox:8081"]));
        assert!(!check("::ffff:127.0.0.1", &["oncebox:8081"]));
        assert!(!check("::1", &[]));
        assert!(!check("::1", &["localhost", "evil.example.com"]));
    }
}
