//! Certificates of our own, and the roots that they lead to.

use oncebox_verify::Roots;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair as CertificateKey, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};

/// What a certificate of the tests says.
pub(crate) struct Wanted<'a> {
    pub(crate) common_name: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) years: (i32, i32),
    pub(crate) usage: ExtendedKeyUsagePurpose,
}

impl Default for Wanted<'_> {
    fn default() -> Wanted<'static> {
        Wanted {
            common_name: "messageverificationcerts.paypal.com",
            host: None,
            years: (2024, 2030),
            usage: ExtendedKeyUsagePurpose::ServerAuth,
        }
    }
}

pub(crate) struct Made {
    pub(crate) leaf: String,
    /// The leaf and what leads to the root.
    pub(crate) chain: String,
    pub(crate) roots: Roots,
    pub(crate) self_signed: String,
}

/// A root, one below it, and a certificate for the public half of `private`.
pub(crate) fn certificate(wanted: &Wanted<'_>, private: &str) -> Made {
    let key = CertificateKey::from_pem(private).unwrap();
    let hosts: Vec<String> = wanted.host.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, wanted.common_name);
    params.not_before = date_time_ymd(wanted.years.0, 1, 1);
    params.not_after = date_time_ymd(wanted.years.1, 1, 1);
    params.extended_key_usages = vec![wanted.usage.clone()];

    let (root_params, root_key) = authority("root");
    let root = root_params.self_signed(&root_key).unwrap();
    let (middle_params, middle_key) = authority("middle");
    let issuer = Issuer::from_params(&root_params, &root_key);
    let middle = middle_params.signed_by(&middle_key, &issuer).unwrap();
    let issuer = Issuer::from_params(&middle_params, &middle_key);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    Made {
        leaf: leaf.pem(),
        chain: format!("{}{}", leaf.pem(), middle.pem()),
        roots: Roots::from_der([root.der().as_ref()]),
        self_signed: params.self_signed(&key).unwrap().pem(),
    }
}

fn authority(name: &str) -> (CertificateParams, CertificateKey) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    (params, CertificateKey::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap())
}
