//! Sending a request that was kept to any URL, once, under the same guard as a push: no address
//! that is not public unless that is allowed, no redirect, an answer of bounded size in bounded
//! time.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::push::{ANSWER_BYTES, ANSWER_HEAD_BYTES, Connector, Dial};

/// How long the whole exchange may take.
const TIME: Duration = Duration::from_secs(30);

/// Sends a request and returns the status and the body of the answer. The error is a sentence.
pub async fn send(request: Request<Bytes>, allow_private: bool) -> Result<(u16, Bytes), String> {
    let connector = Connector { dial: Dial::system(), allow_private, timeout: TIME };
    let client: Client<Connector, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http1_max_buf_size(ANSWER_HEAD_BYTES)
        .pool_max_idle_per_host(0)
        .build(connector);
    let exchange = async {
        let answer = client.request(request.map(Full::new)).await.map_err(|error| {
            // The outer words only say that it did not work.
            let mut cause: &dyn std::error::Error = &error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            cause.to_string()
        })?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(|_| "the answer is too long, or was cut short".to_owned())?;
        Ok((status, body.to_bytes()))
    };
    let late = || Err(format!("no whole answer within {TIME:?}"));
    tokio::time::timeout(TIME, exchange).await.unwrap_or_else(|_| late())
}
