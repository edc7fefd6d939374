//! `oncebox receipts send`: the request of a receipt, once more, to any URL.

use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderName, HeaderValue, Method, Request};
use oncebox::receipt::decode_headers;
use oncebox::store::{Receipt, Store};
use oncebox_server::capture;
use oncebox_server::public::SIGNED_URL_HEADER;
use oncebox_server::resend;
use serde_json::json;

use super::export::{OF_THE_CONNECTION, lost_its_credential};
use super::show::{damaged, has_its_digest};
use crate::cmd::send::http_url;
use crate::exit::{Code, Failure};
use crate::ids;
use crate::output::{Screen, escape, escape_bytes, notice, shorten};

/// Send the request of a receipt again, byte for byte, to a URL
///
/// With the headers as they came and their signature, which may be too old to be believed. It is no
/// delivery: nothing is recorded of it. Tokens and passwords sent as headers were not kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox receipts send evt_123 --to https://staging.example.com/hooks
  oncebox receipts send 0199c2f0-7e4a --to http://127.0.0.1:3000/ --allow-private

Exit codes: 0 answered with 2xx, 1 no answer, 3 not found, 4 answered otherwise.")]
pub(super) struct Send {
    /// The receipt or event: its id, or the beginning of it
    receipt: String,

    /// Where to send it
    #[arg(long, value_name = "URL", value_parser = http_url)]
    to: String,

    /// May it go to loopback and private addresses?
    #[arg(long)]
    allow_private: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Send {
    pub(super) async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let receipt = ids::receipt(&**store, &self.receipt, None).await?;
        if !has_its_digest(&receipt) {
            return Err(damaged(&receipt));
        }
        if lost_its_credential(&receipt) {
            notice("note: a token or password of this request was not kept, only its fingerprint");
        }
        let request = request(&receipt, &self.to)?;
        let sent = resend::send(request, self.allow_private).await;
        let (status, body) = sent.map_err(|error| {
            let to = escape(&self.to).into_owned();
            Failure::failed(format!("no answer from {to}: {}", escape(&error)))
                .hint("addresses that are not public need --allow-private")
        })?;
        let mut screen = Screen::stdout();
        if self.json {
            let body = String::from_utf8_lossy(&body);
            screen.json(&json!({ "status": status, "body": body }))?;
        } else {
            let text = shorten(&escape_bytes(body.trim_ascii_end()), 160);
            screen.line(format!("{status}  {text}"))?;
        }
        screen.flush()?;
        match status {
            200..=299 => Ok(()),
            _ => Err(Failure::told(Code::Check)),
        }
    }
}

/// The request as it came, for another URL.
fn request(receipt: &Receipt, to: &str) -> Result<Request<Bytes>, Failure> {
    let headers = decode_headers(&receipt.headers);
    let method = capture::request_line(&headers).map_or("POST", |(method, _)| method);
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
    let body = Bytes::copy_from_slice(receipt.signed_body());
    let mut request = Request::builder().method(method).uri(to);
    for (name, value) in &headers {
        let is_ours = [SIGNED_URL_HEADER, capture::REQUEST_HEADER, capture::TRUST_HEADER];
        if OF_THE_CONNECTION.contains(&name.as_str()) || is_ours.contains(&name.as_str()) {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value))
            && name != HOST
        {
            request = request.header(name, value);
        }
    }
    let request = request.header(CONTENT_LENGTH, body.len());
    let wrong = |error: http::Error| Failure::usage(format!("cannot be sent there: {error}"));
    request.body(body).map_err(wrong)
}
