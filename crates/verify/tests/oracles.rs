//! Answers to challenges are made with the secret that signs events. None may pass for the
//! signature of an event.

use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::{Keyring, Request, Secret, catalogue, events, handshake, verify};

/// LinkedIn signs `hmacsha256=` and the body, which a challenge may begin with too.
#[test]
fn an_answer_to_linkedin_signs_no_event() {
    let linkedin = catalogue::find("linkedin").unwrap();
    let keyring = Keyring::new(linkedin, vec![Secret::new("client-secret")]).unwrap();
    for body in ["1", "null", "a=b", "type=x", "id=1", "."] {
        let url = format!("/in/linkedin?challengeCode=hmacsha256%3D{}", body.replace('=', "%3D"));
        let asked = Request { method: "GET", url: &url, headers: &HeaderMap::new(), body: b"" };
        let reply = handshake(linkedin, &keyring, &asked, false).unwrap();
        let reply: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        let signature = reply["challengeResponse"].as_str().unwrap();

        let mut headers = HeaderMap::new();
        headers.insert("x-li-signature", HeaderValue::from_str(signature).unwrap());
        let url = "/in/linkedin";
        let forged = Request { method: "POST", url, headers: &headers, body: body.as_bytes() };
        assert!(verify(linkedin, &keyring, &forged, Timestamp::UNIX_EPOCH).is_ok(), "{body}");
        assert!(events(linkedin, &forged).is_err(), "{body} passes for an event");
    }
    // What an event needs cannot be asked for.
    let url = "/in/linkedin?challengeCode=hmacsha256%3D%7B%22type%22%3A1%7D";
    let asked = Request { method: "GET", url, headers: &HeaderMap::new(), body: b"" };
    assert!(handshake(linkedin, &keyring, &asked, false).is_none());
}

/// X signs the body alone, with the same secret.
#[test]
fn an_answer_to_x_signs_no_event() {
    let x = catalogue::find("x").unwrap();
    let keyring = Keyring::new(x, vec![Secret::new("consumer-secret")]).unwrap();
    for body in ["1", "null", "a=b", "id=1", "."] {
        let url = format!("/in/x?crc_token={}", body.replace('=', "%3D"));
        let asked = Request { method: "GET", url: &url, headers: &HeaderMap::new(), body: b"" };
        let reply = handshake(x, &keyring, &asked, false).unwrap();
        let reply: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        let signature = reply["response_token"].as_str().unwrap();

        let mut headers = HeaderMap::new();
        headers.insert("x-twitter-webhooks-signature", HeaderValue::from_str(signature).unwrap());
        let forged =
            Request { method: "POST", url: "/in/x", headers: &headers, body: body.as_bytes() };
        assert!(verify(x, &keyring, &forged, Timestamp::UNIX_EPOCH).is_ok(), "{body}");
        assert!(events(x, &forged).is_err(), "{body} passes for an event");
    }
}
