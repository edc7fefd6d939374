//! TLS on the public listener.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::bed::{Answer, Bed, SOURCES, configuration, wire};

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/http/certs/{name}.cert.pem"))
}

fn configured(name: &str) -> String {
    let cert = certificate(name);
    let key = cert.with_file_name(format!("{name}.key.pem"));
    format!(
        "[server]\ntls = {{ cert = \"{}\", key = \"{}\" }}\n{SOURCES}",
        cert.display(),
        key.display()
    )
}

/// A connection that accepts exactly this certificate.
async fn connect(bed: &Bed, trusted: &str) -> std::io::Result<TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate(trusted)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, bed.connect().await).await
}

#[tokio::test]
async fn events_come_in_over_tls() {
    let bed = Bed::configured(&configured("first")).await;
    let mut stream = connect(&bed, "first").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.write_all(&wire("/in/stripe", &bed.event("evt_1"))).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 202);
    // Plain HTTP gets no answer there.
    let mut plain = bed.connect().await;
    plain.write_all(&wire("/in/stripe", &bed.event("evt_2"))).await.unwrap();
    assert_eq!(Answer::read(&mut plain).await, None);
    assert_eq!(bed.stored().await.len(), 1);
}

#[tokio::test]
async fn a_reload_changes_the_certificate() {
    let bed = Bed::configured(&configured("first")).await;
    let mut before = connect(&bed, "first").await.unwrap();
    assert!(connect(&bed, "second").await.is_err());
    bed.server.reload(configuration(&configured("second"))).await.unwrap();
    assert!(connect(&bed, "first").await.is_err());
    let mut after = connect(&bed, "second").await.unwrap();
    for (stream, id) in [(&mut before, "evt_1"), (&mut after, "evt_2")] {
        stream.write_all(&wire("/in/stripe", &bed.event(id))).await.unwrap();
        assert_eq!(Answer::read(stream).await.unwrap().status, 202, "{id}");
    }
}
