//! What a token is checked for and with.

use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{
    FetchedKey, Keyring, Provider, Rejection, Request, Secret, Settings, Verified, catalogue,
    verify_with,
};

pub(crate) const NOW: i64 = 1_760_000_000;
pub(crate) const BODY: &[u8] = br#"{"event":{"id":"e1","type":"user.create"}}"#;
pub(crate) const HEADER: &str = "x-fusionauth-signature-jwt";
pub(crate) const SHARED: &str = "a shared secret of some length";

pub(crate) fn find(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn keyring(secret: &str) -> Keyring {
    Keyring::new(find("fusionauth"), vec![Secret::new(secret)]).unwrap()
}

pub(crate) fn check(keyring: &Keyring, token: &str) -> Result<Verified, Rejection> {
    check_at(find("fusionauth"), keyring, None, HEADER, token, NOW)
}

pub(crate) fn check_at(
    provider: &Provider,
    keyring: &Keyring,
    fetched: Option<&FetchedKey>,
    header: &'static str,
    token: &str,
    now: i64,
) -> Result<Verified, Rejection> {
    let mut headers = HeaderMap::new();
    headers.insert(header, token.parse().unwrap());
    let url = "https://example.com/in/hook";
    let request = Request { method: "POST", url, headers: &headers, body: BODY };
    let now = Timestamp::from_second(now).unwrap();
    verify_with(provider, keyring, fetched, &request, now)
}

#[track_caller]
pub(crate) fn refused(keyring: &Keyring, token: &str) -> &'static str {
    check(keyring, token).expect_err(token).code()
}
