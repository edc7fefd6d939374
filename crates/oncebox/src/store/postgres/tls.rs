//! TLS to PostgreSQL, with the meanings libpq gave `sslmode` and `sslrootcert`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::config::SslMode;

use crate::store::StoreError;

/// How to speak TLS, taken from a store URL.
pub(super) struct Tls {
    pub(super) mode: SslMode,
    pub(super) client: ClientConfig,
}

/// Takes `sslmode` and `sslrootcert` out of the URL: the driver knows less of them than libpq.
pub(super) fn take_from_url(url: &str) -> Result<(String, Tls), StoreError> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut mode = "prefer";
    let mut roots = None;
    let mut others = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = value,
            Some(("sslrootcert", value)) => roots = Some(value.to_owned()),
            _ => others.push(pair),
        }
    }
    let client = match (mode, roots) {
        ("verify-full", roots) => verified(roots)?,
        // As with libpq, a root certificate makes `require` check the server.
        ("require", Some(roots)) => verified(Some(roots))?,
        ("disable" | "prefer" | "require", _) => encrypted()?,
        (other, _) => {
            return Err(StoreError::unfit(
                format!("the store URL says sslmode={other}"),
                "Use disable, prefer, require or verify-full.",
            ));
        }
    };
    let mode = match mode {
        "disable" => SslMode::Disable,
        "prefer" => SslMode::Prefer,
        _ => SslMode::Require,
    };
    let url = match others.is_empty() {
        true => base.to_owned(),
        false => format!("{base}?{}", others.join("&")),
    };
    Ok((url, Tls { mode, client }))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Encrypts and checks who answers.
fn verified(roots: Option<String>) -> Result<ClientConfig, StoreError> {
    let unfit = |problem: String| StoreError::unfit(problem, "Check `sslrootcert` in `store.url`.");
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(error.to_string()))?;
    let Some(path) = roots else {
        let builder = builder.with_platform_verifier().map_err(|error| unfit(error.to_string()))?;
        return Ok(builder.with_no_client_auth());
    };
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&path)
        .map_err(|error| unfit(format!("cannot read {path}: {error}")))?;
    for certificate in certificates {
        let certificate =
            certificate.map_err(|error| unfit(format!("cannot read {path}: {error}")))?;
        store.add(certificate).map_err(|error| unfit(format!("{path}: {error}")))?;
    }
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

/// Encrypts without checking who answers: what `prefer` and `require` mean to every other client
/// of PostgreSQL.
fn encrypted() -> Result<ClientConfig, StoreError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let anybody = Arc::new(Anybody(provider));
    Ok(builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth())
}

/// Accepts any certificate, and still checks that the peer holds its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_keeps_what_the_driver_knows() {
        let url = "postgres://u@a,b/db?sslmode=require&target_session_attrs=read-write";
        let (rest, tls) = take_from_url(url).unwrap();
        assert_eq!(rest, "postgres://u@a,b/db?target_session_attrs=read-write");
        assert_eq!(tls.mode, SslMode::Require);
        assert!(take_from_url("postgres://u@a/db?sslmode=verify-ca").is_err());
        assert!(take_from_url("postgres://u@a/db?sslmode=verify-full&sslrootcert=/no").is_err());
    }
}
