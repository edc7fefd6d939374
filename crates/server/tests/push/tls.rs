//! Pushes over TLS: the certificate has to be for the name of the URL, and from somebody known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use oncebox::delivery::State;
use oncebox_testkit::destination::Destination;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::bed::Bed;

const ONCE: &str = "allow_private = true\n\
                    retry = { max_attempts = 1, base = \"10ms\", cap = \"10ms\" }\n";

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/http/certs/{name}.cert.pem"))
}

/// Believes exactly this certificate.
pub(crate) fn trusting(name: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate(name)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Ends TLS for a destination, as a proxy in front of it; returns its port.
pub(crate) async fn front(destination: &Destination) -> u16 {
    let cert = CertificateDer::from_pem_file(certificate("first")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificate("first").with_file_name("first.key.pem"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![cert], key.unwrap()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let inner = destination.address();
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

async fn pushed_to(host: &str, trusted: &str) -> (usize, State, Option<String>) {
    let destination = Destination::start();
    let port = front(&destination).await;
    let route = format!("{ONCE}push = \"https://{host}:{port}/hook\"\n");
    let bed = Bed::trusting(trusting(trusted), &route).await;
    let receipt = bed.send("evt_1").await;
    let ended =
        |row: &oncebox::store::DeliveryRow| matches!(row.state, State::Processed | State::Dead);
    let row = bed.until_it(receipt, "it ended", ended).await;
    (destination.requests().len(), row.state, row.detail)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_the_name_lets_the_push_through() {
    assert_eq!(pushed_to("localhost", "first").await, (1, State::Processed, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_certificate_keeps_it_back() {
    for (host, trusted) in [("localhost", "second"), ("elsewhere.test", "first")] {
        let (pushes, state, detail) = pushed_to(host, trusted).await;
        assert_eq!((pushes, state), (0, State::Dead), "{host}");
        let detail = detail.unwrap();
        assert!(detail.starts_with(&format!("no TLS with {host}: invalid peer")), "{detail}");
    }
}
