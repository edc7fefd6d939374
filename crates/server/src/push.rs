//! Pushing: deliveries over HTTP to the destination of a route.
//!
//! A push is one POST: the raw body, byte for byte, with our headers and the provider's, signed by
//! Standard Webhooks or as the provider would. Whatever
//! the destination does with it, the attempt ends: connecting and answering have deadlines, an
//! answer is read up to a limit, and no redirect leads anywhere.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use oncebox::clock::Clock;
use oncebox::delivery::{Claimed, Payload};
use oncebox::store::Store;
use oncebox::worker::{Consumer, Health, Report};
use oncebox_verify::{CannotSign, Draft, Provider, Secret, catalogue, sign};

use crate::config::{HandOver, Sending};
use crate::fetch;
use crate::metrics::Metrics;
use crate::state::Means;

mod address;
mod as_provider;
mod classify;
mod connector;
mod headers;

pub use as_provider::{AsProvider, LiveKeys, Signer};
pub use connector::{Dial, Resolve, SystemResolver};

pub(crate) use classify::retry_after;
pub(crate) use connector::{ConnectError, Connector};

use classify::{Verdict, classify};

/// Bytes of an answer that are read. What says more loses its connection.
pub(crate) const ANSWER_BYTES: usize = 64 << 10;

/// Bytes of an answer's head that are read.
pub(crate) const ANSWER_HEAD_BYTES: usize = 64 << 10;

/// Bytes of an answer that are shown to operators if it tells of a failure.
const BEGINNING_BYTES: usize = 512;

/// How long a connection waits for the next push. Many servers close theirs after five seconds,
/// and a push that meets the closing fails for nothing.
pub(crate) const IDLE: Duration = Duration::from_secs(4);

/// Pushes deliveries of one route.
pub struct Push {
    route: Arc<str>,
    url: Uri,
    signing: Signing,
    store: Arc<dyn Store>,
    permanent: Vec<u16>,
    hand_over: HandOver,
    timeout: Duration,
    client: Client<Connector, Full<Bytes>>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
}

/// How pushes are signed.
enum Signing {
    /// By Standard Webhooks, where there is a secret.
    Standard(Option<Secret>),
    /// As the provider would.
    Provider(AsProvider),
}

impl Push {
    /// For a route that pushes to a URL; none if that is none.
    pub fn new(
        route: &str,
        url: &str,
        config: &Sending,
        secret: Option<Secret>,
        means: &Means,
    ) -> Option<Self> {
        let connector = Connector {
            dial: means.dial.clone(),
            allow_private: config.allow_private,
            timeout: config.connect_timeout.0.min(config.timeout.0),
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(config.concurrency)
            .http1_max_buf_size(ANSWER_HEAD_BYTES)
            .build(connector);
        Some(Self {
            route: route.into(),
            url: url.parse().ok()?,
            signing: Signing::Standard(secret),
            store: means.store.clone(),
            permanent: config.permanent.clone(),
            hand_over: HandOver::default(),
            timeout: config.timeout.0,
            client,
            clock: means.clock.clone(),
            metrics: means.metrics.clone(),
        })
    }

    /// Hands current objects over so, where they were fetched.
    pub fn handing_over(self, hand_over: HandOver) -> Self {
        Self { hand_over, ..self }
    }

    /// Signs as the providers of events would.
    pub fn signing_as(self, providers: AsProvider) -> Self {
        Self { signing: Signing::Provider(providers), ..self }
    }

    async fn push(&self, delivery: &Claimed, payload: Payload) -> Verdict {
        let request = match self.request(delivery, payload).await {
            Ok(request) => request,
            Err(why) => return Verdict::failed(Health::Well, "signature", why),
        };
        match tokio::time::timeout(self.timeout, self.exchange(request)).await {
            Ok(verdict) => verdict,
            Err(_) => {
                let detail = format!("no whole answer within {:?}", self.timeout);
                Verdict::failed(Health::Failing, "timeout", detail)
            }
        }
    }

    /// The request of an attempt, or why it cannot be signed.
    async fn request(
        &self,
        delivery: &Claimed,
        payload: Payload,
    ) -> Result<Request<Full<Bytes>>, String> {
        let now = self.clock.now();
        let (draft, url) = match &self.signing {
            Signing::Provider(providers) => {
                providers.draft(delivery, payload, &self.url, &*self.store, now).await?
            }
            Signing::Standard(secret) => {
                let draft = self.standard(secret.as_ref(), delivery, payload, now);
                (draft.map_err(|error| error.to_string())?, self.url.clone())
            }
        };
        let mut request = Request::new(Full::new(Bytes::from(draft.body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url;
        *request.headers_mut() = draft.headers;
        Ok(request)
    }

    fn standard(
        &self,
        secret: Option<&Secret>,
        delivery: &Claimed,
        payload: Payload,
        now: Timestamp,
    ) -> Result<Draft, CannotSign> {
        let mut headers = headers::compose(delivery, &payload.headers);
        let body = match payload.current {
            Some(current) => fetch::pack(self.hand_over, &payload.body, &current, &mut headers),
            None => payload.body,
        };
        let method = Method::POST.to_string();
        let mut draft = Draft { method, url: String::new(), headers, body };
        match secret {
            Some(secret) => sign(standard_webhooks(), secret, draft, now),
            None => {
                let now = HeaderValue::from(now.as_second());
                draft.headers.insert("webhook-timestamp", now);
                Ok(draft)
            }
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Verdict {
        let answer = match self.client.request(request).await {
            Ok(answer) => answer,
            Err(error) => return no_answer(&error),
        };
        let (head, body) = answer.into_parts();
        match beginning(body).await {
            Ok(beginning) => {
                let now = self.clock.now();
                classify(head.status, &head.headers, &beginning, &self.permanent, now)
            }
            // Whoever breaks off has perhaps not finished its work either.
            Err(error) => Verdict::failed(Health::Failing, "broken_answer", in_words(&error)),
        }
    }
}

#[async_trait]
impl Consumer for Push {
    async fn deliver(&self, delivery: &Claimed, payload: Payload) -> Report {
        let Verdict { report, reason } = self.push(delivery, payload).await;
        if let Some(reason) = reason {
            self.metrics.routes.retry(&self.route, &reason);
        }
        report
    }
}

/// Reads an answer's body to its end, or as far as anybody should have to, and returns how it
/// begins. What is too long is left; dropping it closes the connection.
async fn beginning(mut body: Incoming) -> Result<String, hyper::Error> {
    let mut read = 0;
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        read += data.len();
        kept.extend_from_slice(&data[..data.len().min(BEGINNING_BYTES - kept.len())]);
        if read > ANSWER_BYTES {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

fn no_answer(error: &ClientError) -> Verdict {
    match ConnectError::within(error) {
        Some(connect) => Verdict::failed(Health::Unreachable, connect.code(), connect.to_string()),
        None => Verdict::failed(Health::Failing, "broken_answer", in_words(error)),
    }
}

/// An error and what caused it.
pub(crate) fn in_words(error: &dyn Error) -> String {
    let mut words = format!("no answer: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

/// Whether a URL names an address that a push would not go to. What a name leads to is not known
/// before it is connected to; only this machine's own is known to everybody.
pub fn is_refused(url: &str, allow_private: bool) -> bool {
    let address = address_in(url);
    address.is_some_and(|address| !address::may_go_to(address, allow_private))
}

/// Whether what is pushed to a URL is safe from readers on the way: it is encrypted, or does not
/// leave this machine.
pub fn is_confidential(url: &str) -> bool {
    let is_encrypted = url.parse::<Uri>().is_ok_and(|url| url.scheme() == Some(&Scheme::HTTPS));
    is_encrypted || address_in(url).is_some_and(|address| address.to_canonical().is_loopback())
}

/// The address that a URL names, as far as that is known without a DNS query.
fn address_in(url: &str) -> Option<IpAddr> {
    let url = url.parse::<Uri>().ok()?;
    match url.host()?.trim_start_matches('[').trim_end_matches(']') {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        host => host.parse().ok(),
    }
}

/// Says what is wrong with a secret that is to sign pushes.
pub fn check_secret(secret: &Secret) -> Result<(), CannotSign> {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("check"));
    let draft = Draft { method: "POST".into(), url: "/".into(), headers, body: Vec::new() };
    sign(standard_webhooks(), secret, draft, Timestamp::UNIX_EPOCH).map(|_| ())
}

/// The scheme pushes are signed by.
fn standard_webhooks() -> &'static Provider {
    catalogue::find("standard-webhooks").expect("the catalogue has it")
}
