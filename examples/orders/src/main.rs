//! A shop. Customers order; Stripe says when they have paid, perhaps twice, perhaps in the wrong
//! order; goods leave the stock once, and one receipt is mailed.
//!
//! ```sh
//! STRIPE_SECRET=whsec_… cargo run -p orders-example -- examples/orders/orders.toml
//! ```
//!
//! Webhooks come in at `POST /in/stripe`, next to the shop's own routes. The tables of the shop are
//! in the same SQLite file as those of Oncebox, so one commit covers both.

mod handlers;
mod shop;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use oncebox::clock::SystemClock;
use oncebox::handler::Handlers;
use oncebox::store::{Purpose, SqliteOptions, SqliteStore};
use oncebox::worker::Consumer;
use oncebox_server::config::Config;
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).map_or("orders.toml".into(), PathBuf::from);
    let config = Config::load(Some(&file))?;
    let path = config.store.url.as_str().trim_start_matches("sqlite://").to_owned();
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(path), Purpose::Serve).await?);
    store.with(|db| db.execute_batch(shop::SCHEMA)).await??;

    let handlers = Handlers::new(store.clone())
        .on("stripe", "checkout.session.completed", handlers::Paid)
        .on("stripe", "charge.refunded", handlers::Refunded);
    let handlers: Arc<dyn Consumer> = Arc::new(handlers);
    let options = StartOptions {
        handlers: [("orders".to_owned(), handlers)].into(),
        ..ingest_options(&config.server).into()
    };
    let clock = Arc::new(SystemClock);
    let inbox = Server::start(config, store.clone(), clock, options, Listeners::none()).await?;

    let app = Router::new()
        .route("/orders", post(shop::order))
        .route("/orders/{id}", get(shop::show))
        .with_state(store)
        .merge(inbox.router());
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    inbox.stop().await;
    Ok(())
}
