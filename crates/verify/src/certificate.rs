//! Certificates: where one may come from, and what it must say.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

use crate::asymmetric::Pair;
use crate::fetched::{BadKey, WantedForm, WantedKey};
use crate::mac::Key;
use crate::pem;
use crate::provider::{Algorithm, CertificateAt, Field, Part, Signature, Text};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::Keyring;
use crate::special::Trial;
use crate::verify::{header, pointed};

/// The longest URL of a certificate.
const URL_BYTES_MAX: usize = 1024;

/// How many certificates a source may pin.
const PINNED_MAX: usize = 64;

/// The roots that a chain of certificates may lead to.
#[derive(Debug, Default)]
pub struct Roots(Vec<TrustAnchor<'static>>);

impl Roots {
    /// Takes certificates in DER. What is none is left out, as a store of many may hold odd ones.
    pub fn from_der<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> Roots {
        let anchor = |der: &'a [u8]| {
            let der = CertificateDer::from(der);
            webpki::anchor_from_trusted_cert(&der).ok().map(|anchor| anchor.to_owned())
        };
        Roots(certificates.into_iter().filter_map(anchor).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none, so that no chain leads anywhere.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A certificate whose key checks signatures.
#[derive(Debug)]
pub(crate) struct Certificate {
    /// Its key, once for each algorithm that it fits: decoding one for every request costs more
    /// than to keep them.
    pairs: Vec<Arc<Pair>>,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl Certificate {
    fn read(parsed: &x509_cert::Certificate) -> Option<Certificate> {
        let tbs = &parsed.tbs_certificate;
        Some(Certificate {
            pairs: Pair::all_from_spki(&tbs.subject_public_key_info.to_der().ok()?),
            not_before: timestamp(tbs.validity.not_before)?,
            not_after: timestamp(tbs.validity.not_after)?,
        })
    }

    pub(crate) fn not_after(&self) -> Timestamp {
        self.not_after
    }

    fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }
}

fn timestamp(time: Time) -> Option<Timestamp> {
    let since = time.to_unix_duration();
    Timestamp::from_second(i64::try_from(since.as_secs()).ok()?).ok()
}

/// The key of a certificate, with what says of which kind it is. Nothing else is looked at.
pub(crate) fn spki_of(der: &[u8]) -> Option<Vec<u8>> {
    let parsed = x509_cert::Certificate::from_der(der).ok()?;
    parsed.tbs_certificate.subject_public_key_info.to_der().ok()
}

/// Reads a certificate that was fetched, with those that follow it; it must lead to one of
/// `roots` where those are given.
pub(crate) fn parse_fetched(
    bytes: &[u8],
    subject_end: &str,
    roots: Option<&Roots>,
    now: Timestamp,
) -> Result<Certificate, BadKey> {
    let text = std::str::from_utf8(bytes).map_err(|_| BadKey::Unreadable)?;
    let blocks = pem::blocks(text).ok_or(BadKey::Unreadable)?;
    if blocks.iter().any(|block| block.label != "CERTIFICATE") {
        return Err(BadKey::Unreadable);
    }
    let (leaf, others) = blocks.split_first().ok_or(BadKey::Unreadable)?;
    let parsed = x509_cert::Certificate::from_der(&leaf.der).map_err(|_| BadKey::Unreadable)?;
    let certificate = Certificate::read(&parsed).ok_or(BadKey::Unreadable)?;
    if now > certificate.not_after {
        return Err(BadKey::Expired);
    }
    if now < certificate.not_before {
        return Err(BadKey::NotYetValid);
    }
    if !is_about(&parsed, subject_end) {
        return Err(BadKey::WrongSubject);
    }
    if let Some(roots) = roots {
        let others: Vec<CertificateDer<'_>> =
            others.iter().map(|block| CertificateDer::from(block.der.as_slice())).collect();
        check_chain(&leaf.der, &others, roots, now).ok_or(BadKey::Unchained)?;
    }
    Ok(certificate)
}

fn check_chain(
    leaf: &[u8],
    others: &[CertificateDer<'_>],
    roots: &Roots,
    now: Timestamp,
) -> Option<()> {
    let leaf = CertificateDer::from(leaf);
    let leaf = EndEntityCert::try_from(&leaf).ok()?;
    let now = Duration::from_secs(u64::try_from(now.as_second()).ok()?);
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &roots.0,
        others,
        UnixTime::since_unix_epoch(now),
        KeyUsage::server_auth(),
        None,
        None,
    )
    .ok()?;
    Some(())
}

/// Whether the certificate is for a name that ends so: its common name, or a host it names.
fn is_about(parsed: &x509_cert::Certificate, end: &str) -> bool {
    let ends = |name: &str| {
        let start = name.len().checked_sub(end.len());
        let tail = start.and_then(|start| name.get(start..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    let tbs = &parsed.tbs_certificate;
    let parts = tbs.subject.0.iter().flat_map(|part| part.0.iter());
    let mut names = parts.filter(|part| part.oid == COMMON_NAME).filter_map(|part| {
        let value = &part.value;
        let utf8 = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
        let printable = || value.decode_as::<PrintableStringRef<'_>>().map(|t| t.to_string());
        utf8.or_else(|_| printable()).ok()
    });
    if names.any(|name| ends(&name)) {
        return true;
    }
    let Ok(Some((_, hosts))) = tbs.get::<SubjectAltName>() else { return false };
    hosts.0.iter().any(|name| {
        matches!(name, GeneralName::DnsName(host)
            if Ia5StringRef::new(host.as_bytes()).is_ok_and(|host| ends(host.as_str())))
    })
}

/// The place of a common name in a subject.
const COMMON_NAME: x509_cert::der::asn1::ObjectIdentifier =
    x509_cert::der::asn1::ObjectIdentifier::new_unwrap("2.5.4.3");

/// Certificates that the operator pinned: a JSON object of URLs and PEM. Neither their dates nor
/// a chain are asked for.
pub(crate) fn pinned(text: &str) -> Option<BTreeMap<String, Certificate>> {
    let texts: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    if texts.len() > PINNED_MAX {
        return None;
    }
    let read = |(url, text): (String, String)| {
        let blocks = pem::blocks(&text)?;
        let leaf = blocks.first().filter(|block| block.label == "CERTIFICATE")?;
        let parsed = x509_cert::Certificate::from_der(&leaf.der).ok()?;
        Some((url, Certificate::read(&parsed)?))
    };
    texts.into_iter().map(read).collect()
}

/// The URL that the request names, if a certificate may be there.
pub(crate) fn place<'a>(
    at: &CertificateAt,
    request: &Request<'a>,
) -> Result<Cow<'a, str>, Rejection> {
    let url = match &at.url {
        Field::Header(name) => header(request.headers, name)?.into(),
        Field::Json(pointer) => {
            pointed(request.body, pointer)?.ok_or(Rejection::UntrustedCertificateUrl)?
        }
        _ => return Err(Rejection::UntrustedCertificateUrl),
    };
    trusted(at, url)
}

/// The URL, if a certificate may be there.
pub(crate) fn trusted<'a>(
    at: &CertificateAt,
    url: Cow<'a, str>,
) -> Result<Cow<'a, str>, Rejection> {
    match is_at(&url, &at.hosts, &at.path_end) {
        true => Ok(url),
        false => Err(Rejection::UntrustedCertificateUrl),
    }
}

/// Whether a URL is `https`, on one of the hosts, on the usual port, and ends so.
pub(crate) fn is_at(url: &str, hosts: &[Text], path_end: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:=+%".contains(c);
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let Some((authority, path)) = rest.split_once('/') else { return false };
    let host = authority.strip_suffix(":443").unwrap_or(authority);
    let is_up = |part: &str| part == "." || part == "..";
    url.len() <= URL_BYTES_MAX
        && url.chars().all(plain)
        && hosts.iter().any(|pattern| fits(host, pattern))
        && !path.split('/').any(is_up)
        && path.ends_with(path_end)
}

/// Whether a host fits a pattern, label by label; `*` stands for one label.
fn fits(host: &str, pattern: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let mut labels = host.split('.');
    let all = pattern.split('.').all(|wanted| {
        let label = labels.next().unwrap_or_default();
        is_label(label) && (wanted == "*" || wanted.eq_ignore_ascii_case(label))
    });
    all && labels.next().is_none()
}

/// The certificate to fetch; none where the source has one, or the key.
pub(crate) fn wanted(
    at: &CertificateAt,
    number: usize,
    keyring: &Keyring,
    request: &Request<'_>,
) -> Result<Option<WantedKey>, Rejection> {
    let url = place(at, request)?;
    let has_key = keyring.keys(number).iter().any(|(_, key)| key.is_pair());
    if has_key || keyring.certificate(&url).is_some() {
        return Ok(None);
    }
    let form = WantedForm::Certificate { subject_end: at.subject_end.clone(), chained: at.chained };
    Ok(Some(WantedKey { url: url.into_owned(), kid: None, form }))
}

/// The keys that a request may be signed with: those the operator pinned, else that of the
/// certificate at `url`, which has the number after those of the secrets.
pub(crate) fn keys(
    algorithm: Algorithm,
    url: &str,
    trial: &Trial<'_>,
) -> Result<Vec<(usize, Arc<Pair>)>, Rejection> {
    let numbered = |(number, key): &(usize, Key)| Some((*number, key.pair(algorithm)?));
    let pinned: Vec<_> = trial.keys.iter().filter_map(numbered).collect();
    if !pinned.is_empty() {
        return Ok(pinned);
    }
    let certificate = match trial.keyring.certificate(url) {
        Some(certificate) => certificate,
        None => {
            let fetched = trial.fetched.and_then(|fetched| fetched.certificate(url));
            let fetched = fetched.ok_or(Rejection::KeyNotFetched)?;
            // It may have been kept for a while.
            if !fetched.is_valid_at(trial.received_at) {
                return Err(Rejection::CertificateNotValid);
            }
            fetched
        }
    };
    let pair = certificate.pairs.iter().find(|pair| pair.algorithm() == algorithm);
    let pair = pair.ok_or(Rejection::SignatureMismatch { tried: 0 })?;
    Ok(vec![(trial.keyring.secrets().len(), pair.clone())])
}

/// The same; where a secret is a part of what is signed, for each of the secrets.
pub(crate) fn numbered_keys(
    signature: &Signature,
    at: &CertificateAt,
    trial: &Trial<'_>,
) -> Result<Vec<(usize, Key)>, Rejection> {
    let url = place(at, trial.request)?;
    let pairs = keys(signature.algorithm, &url, trial)?;
    if !signature.signed.contains(&Part::Secret) {
        return Ok(pairs.into_iter().map(|(number, pair)| (number, Key::Pair(pair))).collect());
    }
    let numbers = 0..trial.keyring.secrets().len();
    let each = |number| pairs.iter().map(move |(_, pair)| (number, Key::Pair(pair.clone())));
    Ok(numbers.flat_map(each).collect())
}
