//! The server of a provider over TLS, behaving as it likes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use http::Uri;
use oncebox_server::keys::{HttpsKeys, KeyFailure, KeyOptions, KeySource, Served};
use oncebox_server::push::{Dial, SystemResolver};
use oncebox_testkit::destination::{Behaviour, Destination};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::shelf::{Signer, key_set, sources};
use crate::bed::Bed;

/// Leads every URL to a server on this machine, as the name of the provider would elsewhere.
struct Detour {
    inner: HttpsKeys,
    port: u16,
}

#[async_trait]
impl KeySource for Detour {
    async fn fetch(&self, url: &Uri, _: bool) -> Result<Served, KeyFailure> {
        let url = format!("https://localhost:{}{}", self.port, url.path());
        self.inner.fetch(&url.parse().unwrap(), true).await
    }
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/http/certs/{name}.cert.pem"))
}

/// Believes exactly this certificate.
fn trusting(name: &str) -> Dial {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate(name)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let tls = builder.with_root_certificates(roots).with_no_client_auth();
    Dial { resolver: Arc::new(SystemResolver), tls: Ok(Arc::new(tls)) }
}

/// Ends TLS for the provider's server; returns its port.
async fn front(server: &Destination) -> u16 {
    let cert = CertificateDer::from_pem_file(certificate("first")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificate("first").with_file_name("first.key.pem"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![cert], key.unwrap()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let inner = server.address();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut outer) = acceptor.accept(stream).await else { continue };
            let mut inner = TcpStream::connect(inner).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    port
}

/// A receiver whose provider serves keys here.
async fn bed(server: &Destination, trusted: &str) -> Bed {
    let inner = HttpsKeys::new(&trusting(trusted));
    let detour = Detour { inner, port: front(server).await };
    let options = KeyOptions { source: Some(Arc::new(detour)), roots: None };
    Bed::with_keys(&sources(&Signer::new("pinned")), options).await
}

fn serving(body: impl Into<Vec<u8>>) -> Behaviour {
    let headers = vec![("Cache-Control".to_owned(), "public, max-age=600".to_owned())];
    Behaviour::Answer { status: 200, headers, body: body.into() }
}

#[tokio::test]
async fn a_key_comes_over_tls() {
    let (server, signer) = (Destination::start(), Signer::new("a"));
    server.always(serving(key_set(&[&signer])));
    let bed = bed(&server, "first").await;
    for id in ["evt_1", "evt_2"] {
        let answer = bed.post("auth", &signer.signed(id)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    let asked = server.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((&*asked[0].method, &*asked[0].target), ("GET", "/.well-known/jwks.json"));
    assert_eq!(asked[0].header("accept-encoding"), Some("identity"));
    assert_eq!(asked[0].header("authorization"), None);
}

#[tokio::test]
async fn whatever_the_server_does_nobody_gets_in() {
    let signer = Signer::new("a");
    let set = key_set(&[&signer]);
    let packed = vec![("Content-Encoding".to_owned(), "gzip".to_owned())];
    let elsewhere = [("Location", "/elsewhere")];
    for (what, behaviour) in [
        ("a refusal", Behaviour::status(403)),
        ("trouble", Behaviour::status(500)),
        ("a redirect", Behaviour::answer(302, &elsewhere)),
        ("a lasting redirect", Behaviour::answer(308, &elsewhere)),
        ("ten megabytes", serving(vec![b' '; 10 << 20])),
        ("no end", Behaviour::Endless),
        ("packed", Behaviour::Answer { status: 200, headers: packed, body: set.into_bytes() }),
        ("no HTTP", Behaviour::Raw(b"hello\r\n\r\n".to_vec())),
        ("the end of the connection", Behaviour::Close),
    ] {
        let server = Destination::start();
        server.next(behaviour);
        server.always(serving(key_set(&[&signer])));
        let bed = bed(&server, "first").await;
        bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable(what);
        bed.assert_untouched(what).await;
        let targets: Vec<_> = server.requests().into_iter().map(|asked| asked.target).collect();
        assert_eq!(targets, ["/.well-known/jwks.json"], "{what}: nothing is followed");
    }
}

#[tokio::test]
async fn a_slow_server_is_not_waited_for() {
    let (server, signer) = (Destination::start(), Signer::new("a"));
    server.always(Behaviour::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{".to_vec()));
    let bed = bed(&server, "first").await;
    let began = Instant::now();
    bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable("half an answer");
    assert!(began.elapsed() >= oncebox_server::keys::FETCH_TIME);
    assert!(began.elapsed() < 4 * oncebox_server::keys::FETCH_TIME);
    // Whoever comes next does not wait again.
    let began = Instant::now();
    bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable("the pause");
    assert!(began.elapsed() < oncebox_server::keys::FETCH_TIME);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_serves_no_key() {
    let (server, signer) = (Destination::start(), Signer::new("a"));
    server.always(serving(key_set(&[&signer])));
    let bed = bed(&server, "second").await;
    bed.post("auth", &signer.signed("evt_1")).await.assert_unavailable("another certificate");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn keys_are_fetched_from_public_addresses_only_unless_allowed() {
    let server = Destination::start();
    server.always(serving("{}"));
    let port = front(&server).await;
    let keys = HttpsKeys::new(&trusting("first"));
    let url: Uri = format!("https://localhost:{port}/keys").parse().unwrap();
    assert_eq!(keys.fetch(&url, false).await.unwrap_err().code(), "address_refused");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(keys.fetch(&url, true).await.unwrap().body, "{}");
    let wrong: Uri = format!("https://127.0.0.1:{port}/keys").parse().unwrap();
    assert_eq!(keys.fetch(&wrong, true).await.unwrap_err().code(), "tls");
}
