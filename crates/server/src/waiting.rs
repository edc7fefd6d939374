//! A server whose store has pending migrations: it answers, says why it cannot record, and starts
//! by itself once they have run.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use http::Request;
use hyper::body::Incoming;
use oncebox::limits;
use oncebox::store::{self, Purpose, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::admin;
use crate::config::Config;
use crate::listener::{self, ListenerOptions};
use crate::public;
use crate::server::{Listeners, StartError, load_tls};

/// Opens the store of a configuration to serve it. While its migrations are pending, every webhook
/// is answered 503 on the listeners, and health says why; once `oncebox migrate up` has run, the
/// store is opened and the listeners go on with whoever serves next.
pub async fn open_store(
    config: &Config,
    listeners: &mut Listeners,
) -> Result<Arc<dyn Store>, StartError> {
    let url = config.store.url.as_str();
    let pending = match store::open(url, Purpose::Serve).await {
        Err(pending @ StoreError::NotMigrated) => pending,
        opened => return Ok(opened?),
    };
    let waiting = Waiting::start(config, listeners, &pending.to_string())?;
    let opened = loop {
        tokio::time::sleep(limits::MIGRATE_LOOK).await;
        match store::open(url, Purpose::Serve).await {
            Err(StoreError::NotMigrated) => {}
            Err(error @ (StoreError::Unavailable(_) | StoreError::UnknownOutcome(_))) => {
                warn!(%error, "still waiting for migrations, and the store does not answer");
            }
            opened => break opened,
        }
    };
    waiting.stop().await;
    let store = opened?;
    info!("migrations have run; starting");
    Ok(store)
}

/// What answers meanwhile. Dropped, it stops at once.
struct Waiting {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Waiting {
    fn start(config: &Config, listeners: &mut Listeners, reason: &str) -> io::Result<Self> {
        let options = ListenerOptions::from(&config.server);
        let mut waiting = Self { stop: watch::Sender::new(false), tasks: JoinSet::new() };
        let (public, public_at) = shared(&mut listeners.public)?;
        let (admin, admin_at) = shared(&mut listeners.admin)?;
        if let Some(listener) = public {
            let tls = load_tls(config)?.map(|tls| Arc::new(ArcSwap::new(tls)));
            let refuse =
                |_: SocketAddr, request: Request<Incoming>| async { public::not_ready(request) };
            let stop = waiting.stop.subscribe();
            waiting.tasks.spawn(listener::serve(listener, options.clone(), tls, refuse, stop));
        }
        if let Some(listener) = admin {
            let router = health(reason.to_owned());
            let names: Arc<[String]> = config.server.admin_hosts.clone().into();
            let answer = move |peer: SocketAddr, request: Request<Incoming>| {
                let (router, names) = (router.clone(), names.clone());
                async move { admin::host::answer(router, peer.ip(), &names, request).await }
            };
            let stop = waiting.stop.subscribe();
            waiting.tasks.spawn(listener::serve(listener, options, None, answer, stop));
        }
        let address = |at: Option<SocketAddr>| at.map(|at| at.to_string());
        warn!(
            public = address(public_at),
            admin = address(admin_at),
            reason,
            "not ready: answering 503 until migrations have run"
        );
        Ok(waiting)
    }

    /// Lets requests under way have their answers.
    async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The same socket once more, so that it stays open when one of the two is closed.
fn shared(
    listener: &mut Option<TcpListener>,
) -> io::Result<(Option<TcpListener>, Option<SocketAddr>)> {
    let Some(original) = listener.take() else { return Ok((None, None)) };
    let original = original.into_std()?;
    let copy = TcpListener::from_std(original.try_clone()?)?;
    let address = original.local_addr()?;
    *listener = Some(TcpListener::from_std(original)?);
    Ok((Some(copy), Some(address)))
}

/// Health as the admin listener of a server has it: live, and not ready.
fn health(reason: String) -> Router {
    let unready = move || {
        let reason = reason.clone();
        async move { unready(&reason) }
    };
    let live = || async { Json(serde_json::json!({ "status": "live" })) };
    Router::new().route("/livez", get(live)).fallback(unready)
}

fn unready(reason: &str) -> Response {
    let body = serde_json::json!({ "status": "unready", "reasons": [reason], "warnings": [] });
    let retry = [(header::RETRY_AFTER, limits::RETRY_AFTER_SECS.to_string())];
    (StatusCode::SERVICE_UNAVAILABLE, retry, Json(body)).into_response()
}
