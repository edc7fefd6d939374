//! TLS on the public listener.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::TlsConfig;

/// Reads certificate and key. The error is a sentence for the operator and a hint.
pub fn load(config: &TlsConfig) -> Result<Arc<ServerConfig>, (String, String)> {
    let chain = CertificateDer::pem_file_iter(&config.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable("certificate", &config.cert, &error))?;
    if chain.is_empty() {
        let message = format!("{} holds no certificate", config.cert.display());
        return Err((message, "it must hold PEM blocks that begin with CERTIFICATE".into()));
    }
    let key = PrivateKeyDer::from_pem_file(&config.key)
        .map_err(|error| unreadable("private key", &config.key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            let message = format!("certificate and key do not go together: {error}");
            (message, "`tls.key` must be the key of the first certificate in `tls.cert`".into())
        })?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

fn unreadable(what: &str, path: &Path, error: &rustls::pki_types::pem::Error) -> (String, String) {
    let message = format!("the {what} {} cannot be read: {error}", path.display());
    (message, "give the path of a PEM file that the server may read".into())
}
