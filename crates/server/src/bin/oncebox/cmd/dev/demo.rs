//! A destination to see deliveries arrive at, while there is no app to forward them to.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use oncebox_server::logs;
use tokio::net::TcpListener;
use tracing::debug;

/// Events whose type ends so are refused, for retries to be seen.
const FAILS: &str = ".fail";

/// Starts the destination and returns where it is.
pub(super) async fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection = http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(async |request| answer(request).await),
            );
            tokio::spawn(connection);
        }
    });
    Ok(address)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map_or(0, |body| body.to_bytes().len());
    let event_type = text(&head.headers, "oncebox-event-type");
    debug!(
        event_id = &*logs::clean(text(&head.headers, "oncebox-event-id")),
        event_type = &*logs::clean(event_type),
        attempt = text(&head.headers, "oncebox-attempt"),
        key = text(&head.headers, "idempotency-key"),
        bytes,
        "the demo destination got an event"
    );
    let mut response = Response::new(Full::default());
    if event_type.ends_with(FAILS) {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        *response.body_mut() = Full::from("types that end in .fail always fail");
    }
    Ok(response)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
