//! One request over the wire, and what came back.

use std::time::{Duration, Instant};

use oncebox_verify::Draft;
use reqwest::{Certificate, Client, Method, redirect};

/// How long a provider would wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a provider would wait for an answer. Most give up after ten to thirty seconds.
const ANSWER: Duration = Duration::from_secs(30);

/// How much of an answer is read. Providers read less.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Posts requests as providers do: no redirects, no proxies, bounded waiting.
#[derive(Clone, Debug)]
pub struct Poster {
    client: Client,
}

/// Whose certificates are believed where a URL begins with `https`.
#[derive(Clone, Debug, Default)]
pub enum Peers {
    /// Those of the authorities this machine trusts, as a provider would.
    #[default]
    Trusted,
    /// And those of the authorities in a PEM file, given by its content.
    TrustedAnd(Vec<u8>),
    /// Anybody's: whoever answers may not be who is meant.
    Anybody,
}

/// What came back for one request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status; none if no answer came.
    pub status: Option<u16>,
    /// The body, cut after 64 KiB.
    pub body: Vec<u8>,
    /// From the first byte sent to the last byte read.
    pub elapsed: Duration,
    /// Why no answer came.
    pub error: Option<String>,
}

impl Answer {
    /// Whether the receiver says it has kept the event.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Poster {
    /// A poster with its own connections.
    pub fn new() -> Result<Self, reqwest::Error> {
        Self::to(Peers::Trusted)
    }

    /// A poster that believes other certificates than a provider would.
    pub fn to(peers: Peers) -> Result<Self, reqwest::Error> {
        let builder = Client::builder();
        let builder = match peers {
            Peers::Trusted => builder,
            Peers::TrustedAnd(pem) => builder.tls_certs_merge(Certificate::from_pem_bundle(&pem)?),
            Peers::Anybody => builder.tls_danger_accept_invalid_certs(true),
        };
        let client = builder
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .user_agent(concat!("oncebox-drill/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client })
    }

    /// Posts `draft` to `url`, which may differ from the URL it was signed for: a provider knows
    /// only the public name of a receiver.
    pub async fn post(&self, url: &str, draft: &Draft) -> Answer {
        let begun = Instant::now();
        let answer = self.exchange(url, draft).await;
        let elapsed = begun.elapsed();
        match answer {
            Ok((status, body)) => Answer { status: Some(status), body, elapsed, error: None },
            Err(error) => {
                let error = Some(explain(&error));
                Answer { status: None, body: Vec::new(), elapsed, error }
            }
        }
    }

    async fn exchange(&self, url: &str, draft: &Draft) -> Result<(u16, Vec<u8>), reqwest::Error> {
        let method = Method::from_bytes(draft.method.as_bytes()).unwrap_or(Method::POST);
        let request = self.client.request(method, url);
        let request = request.headers(draft.headers.clone()).body(draft.body.clone());
        let mut response = request.send().await?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            let room = BODY_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == BODY_BYTES_MAX {
                break;
            }
        }
        Ok((status, body))
    }
}

/// The innermost cause: "connection refused" tells more than "error sending request".
pub fn explain(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
