//! What every file of these tests asks for: entries, keys, and bytes as text.

use jiff::Timestamp;
use oncebox_verify::{
    BadKey, Draft, FetchedKey, Provider, Rejection, Roots, SampleEvent, Secret, Settings,
    WantedKey, catalogue, generate_pair, sample, sign,
};

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

pub(crate) fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn signed(provider: &Provider, private: &Secret) -> Draft {
    let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
    sign(provider, private, sample(provider, &event), now()).unwrap()
}

pub(crate) fn code<T: std::fmt::Debug>(verdict: Result<T, Rejection>) -> &'static str {
    verdict.unwrap_err().code()
}

pub(crate) fn rsa_pem() -> String {
    generate_pair(find("wise")).unwrap().private_pem().to_owned()
}

pub(crate) fn parse(wanted: &WantedKey, bytes: &str, roots: &Roots) -> Result<FetchedKey, BadKey> {
    FetchedKey::parse(wanted, bytes.as_bytes(), roots, now())
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}
