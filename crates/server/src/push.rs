//! Pushing: deliveries over HTTP to the destination of a route.

use http::HeaderMap;
use jiff::Timestamp;
use oncebox_verify::{CannotSign, Draft, Provider, Secret, catalogue, sign};

/// Says what is wrong with a secret that is to sign pushes.
pub fn check_secret(secret: &Secret) -> Result<(), CannotSign> {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", http::HeaderValue::from_static("check"));
    let draft = Draft { method: "POST".into(), url: "/".into(), headers, body: Vec::new() };
    sign(standard_webhooks(), secret, draft, Timestamp::UNIX_EPOCH).map(|_| ())
}

/// The scheme pushes are signed by.
fn standard_webhooks() -> &'static Provider {
    catalogue::find("standard-webhooks").expect("the catalogue has it")
}
