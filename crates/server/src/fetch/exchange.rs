//! One request for the current object, and what its answer means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use oncebox::clock::Clock;
use oncebox::delivery::Current;

use super::failure::Failure;
use super::flights::Answer;
use crate::config::{FetchConfig, Size};
use crate::push::{
    ANSWER_BYTES, ANSWER_HEAD_BYTES, ConnectError, Connector, IDLE, in_words, retry_after,
};
use crate::state::Means;

/// What we call ourselves. Some APIs answer nobody without a name.
const NAME: &str = concat!("oncebox/", env!("CARGO_PKG_VERSION"));

/// What sort of thing an answer is that does not say so.
const BYTES: &str = "application/octet-stream";

/// The longest content type that is handed over.
const CONTENT_TYPE_BYTES: usize = 255;

/// Sends the requests of one route.
pub(super) struct Exchange {
    client: Client<Connector, Empty<Bytes>>,
    headers: HeaderMap,
    timeout: Duration,
    max_body: Size,
}

impl Exchange {
    /// Reaches the API as pushes reach their destinations.
    pub(super) fn new(
        config: &FetchConfig,
        credentials: HeaderMap,
        connect_timeout: Duration,
        means: &Means,
    ) -> Self {
        let connector = Connector {
            dial: means.dial.clone(),
            allow_private: config.allow_private,
            timeout: connect_timeout.min(config.timeout.0),
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_buf_size(ANSWER_HEAD_BYTES)
            .build(connector);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(NAME));
        headers.extend(credentials);
        // Nothing is unpacked here, so that a small answer stays small.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Self { client, headers, timeout: config.timeout.0, max_body: config.max_body }
    }

    /// Asks for the object at a URL.
    pub(super) async fn get(&self, url: Uri, clock: &dyn Clock) -> Answer {
        match tokio::time::timeout(self.timeout, self.exchange(url, clock)).await {
            Ok(answer) => answer,
            Err(_) => {
                let detail = format!("no whole answer within {:?}", self.timeout);
                Err(Failure::unanswered("timeout", detail))
            }
        }
    }

    async fn exchange(&self, url: Uri, clock: &dyn Clock) -> Answer {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = url;
        *request.headers_mut() = self.headers.clone();
        let answer = self.client.request(request).await.map_err(|error| no_answer(&error))?;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return self.found(&head.headers, body).await;
        }
        // Read to its end if it is short, so that the connection serves the next request, too.
        let _ = Limited::new(body, ANSWER_BYTES).collect().await;
        match head.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(Current::Missing),
            status => {
                let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let after = after.and_then(|value| retry_after(value, clock.now()));
                Err(Failure::status(status, after))
            }
        }
    }

    async fn found(&self, headers: &HeaderMap, body: Incoming) -> Answer {
        let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            let detail = "the answer is packed (`Content-Encoding`), and nobody asked for that";
            return Err(Failure::unusable("encoding", detail));
        }
        match Limited::new(body, self.max_body.bytes()).collect().await {
            Ok(body) => {
                let content_type = content_type(headers);
                Ok(Current::Found { content_type, body: body.to_bytes() })
            }
            Err(error) if error.is::<LengthLimitError>() => {
                let detail = format!(
                    "the answer has more than {}; raise `max_body` of `fetch` and replay",
                    self.max_body
                );
                Err(Failure::permanent("too_large", detail))
            }
            Err(error) => Err(Failure::unanswered("broken_answer", in_words(&*error))),
        }
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.filter(|said| !said.is_empty() && said.len() <= CONTENT_TYPE_BYTES);
    said.unwrap_or(BYTES).to_owned()
}

/// Why a request was not answered. Nothing of the URL is told: it may have a key in it.
fn no_answer(error: &ClientError) -> Failure {
    match ConnectError::within(error) {
        Some(ConnectError::Refused { host, address }) => {
            let detail = format!(
                "{host} is {address}, and `fetch` of this route may not go to such an address"
            );
            Failure::unreachable("address_refused", detail)
        }
        Some(connect) => Failure::unreachable(connect.code(), connect.to_string()),
        None => Failure::unanswered("broken_answer", in_words(error)),
    }
}
