//! One request for a key, to the provider's server.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use oncebox_verify::FETCHED_BYTES_MAX;

use super::{FETCH_TIME, KeyFailure, KeySource, Served};
use crate::push::{ANSWER_HEAD_BYTES, ConnectError, Connector, Dial, IDLE, in_words};

/// What we call ourselves. Some servers answer nobody without a name.
const NAME: &str = concat!("oncebox/", env!("CARGO_PKG_VERSION"));

/// Asks the servers of providers. Redirects are not followed, and the address that is checked is
/// the one that is connected to.
pub struct HttpsKeys {
    public: Client<Connector, Empty<Bytes>>,
    private: Client<Connector, Empty<Bytes>>,
}

impl HttpsKeys {
    /// Reaches servers as pushes reach their destinations.
    pub fn new(dial: &Dial) -> Self {
        let client = |allow_private: bool| {
            let connector = Connector { dial: dial.clone(), allow_private, timeout: FETCH_TIME };
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .http1_max_buf_size(ANSWER_HEAD_BYTES)
                .build(connector)
        };
        Self { public: client(false), private: client(true) }
    }
}

#[async_trait]
impl KeySource for HttpsKeys {
    async fn fetch(&self, url: &Uri, allow_private: bool) -> Result<Served, KeyFailure> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = url.clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(NAME));
        // Nothing is unpacked here, so that a small answer stays small.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let client = if allow_private { &self.private } else { &self.public };
        let answer = client.request(request).await.map_err(|error| no_answer(&error))?;
        let (head, body) = answer.into_parts();
        if head.status.is_redirection() {
            return Err(KeyFailure::new("redirect", "it leads elsewhere, and nobody goes there"));
        }
        if !head.status.is_success() {
            return Err(KeyFailure::new("status", format!("it is answered {}", head.status)));
        }
        let encoding = head.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            let detail = "the answer is packed (`Content-Encoding`), and nobody asked for that";
            return Err(KeyFailure::new("encoding", detail));
        }
        match Limited::new(body, FETCHED_BYTES_MAX).collect().await {
            Ok(body) => Ok(Served { body: body.to_bytes(), max_age: max_age(&head.headers) }),
            Err(error) if error.is::<LengthLimitError>() => {
                let detail = format!("the answer has more than {FETCHED_BYTES_MAX} bytes");
                Err(KeyFailure::new("too_large", detail))
            }
            Err(error) => Err(KeyFailure::new("broken_answer", in_words(&*error))),
        }
    }
}

fn no_answer(error: &ClientError) -> KeyFailure {
    match ConnectError::within(error) {
        Some(ConnectError::Refused { host, address }) => {
            let detail = format!("{host} is {address}, and keys are fetched from public addresses");
            KeyFailure::new("address_refused", detail)
        }
        Some(connect) => KeyFailure::new(connect.code(), connect.to_string()),
        None => KeyFailure::new("broken_answer", in_words(error)),
    }
}

/// For how long an answer may be kept, where it says so.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(',')).map(str::trim);
    words.find_map(|word| match word.to_ascii_lowercase().as_str() {
        "no-store" | "no-cache" => Some(Duration::ZERO),
        word => word.strip_prefix("max-age=")?.parse().ok().map(Duration::from_secs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_what_the_server_says() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, value.parse().unwrap());
            max_age(&headers)
        };
        assert_eq!(of("public, max-age=600, must-revalidate"), Some(Duration::from_secs(600)));
        assert_eq!(of("Max-Age=7"), Some(Duration::from_secs(7)));
        assert_eq!(of("no-store"), Some(Duration::ZERO));
        for odd in ["private", "max-age=", "max-age=-1", "max-age=99999999999999999999999"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
