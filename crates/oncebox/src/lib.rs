//! Oncebox, the webhook inbox: every event kept, every effect once.
//!
//! A whole program: two events tell of the same payment, one of them comes twice, and the payment
//! is booked once, with one mail about it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use oncebox::clock::{Clock, SystemClock};
//! use oncebox::effect::Message;
//! use oncebox::handler::{Decision, Event, HandlerOptions, Handlers, SqliteCx, apply};
//! use oncebox::ingest::{Ingest, IngestOptions};
//! use oncebox::receipt::{Arrival, Taker};
//! use oncebox::route::RouteRules;
//! use oncebox::store::{Ledger, Purpose, SqliteOptions, SqliteStore, Store};
//! use serde::Deserialize;
//!
//! /// As much of the payload as the handler needs.
//! #[derive(Deserialize)]
//! struct Paid {
//!     invoice: String,
//!     cents: i64,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // One file, for Oncebox and for the tables of the service.
//!     let folder = tempfile::tempdir()?;
//!     let options = SqliteOptions::new(folder.path().join("shop.db"));
//!     let store = Arc::new(SqliteStore::open(options, Purpose::Serve).await?);
//!     let table = "CREATE TABLE payments (invoice TEXT, cents INTEGER)";
//!     store.with(move |db| db.execute_batch(table)).await??;
//!
//!     // A source, a route, and a destination for messages.
//!     let source = store.register_source("stripe", None).await?;
//!     let route = store.register_route("billing", None, &RouteRules::default()).await?;
//!     store.register_destination("mailer", &RouteRules::default()).await?;
//!
//!     // What was verified is recorded, once for each event id.
//!     let ingest = Ingest::start(store.clone(), IngestOptions::default());
//!     for event in ["evt_1", "evt_2", "evt_1"] {
//!         let (now, body) = (SystemClock.now(), r#"{"invoice": "in_456", "cents": 1200}"#);
//!         let receipt = store.mint().mint(now);
//!         let arrival = Arrival::new(receipt, source, now, event, "invoice.paid", body);
//!         ingest.record(Arrival { takers: vec![Taker::plain(route)], ..arrival }).await?;
//!     }
//!
//!     // The key, the payment, the mail and the end of the delivery are one commit.
//!     let paid = apply(|event: &Event<Paid>, cx: &SqliteCx<'_>| {
//!         let Paid { invoice, cents } = &event.data;
//!         if cx.once(format!("paid:{invoice}"))?.is_first() {
//!             let sql = "INSERT INTO payments VALUES (?1, ?2)";
//!             cx.transaction().execute(sql, (invoice, cents))?;
//!             cx.send(&Message::json("mailer", format!("receipt:{invoice}"), invoice)?)?;
//!         }
//!         Ok(Decision::processed(format!("{invoice} is paid")))
//!     });
//!     let handlers = Handlers::new(store.clone()).on("stripe", "invoice.*", paid);
//!     let worker = handlers.by_hand("billing", HandlerOptions::default()).await?;
//!     assert_eq!(worker.work_off().await?, 2);
//!
//!     let count = "SELECT count(*) FROM payments";
//!     let payments = store.with(move |db| db.query_row(count, [], |row| row.get(0))).await?;
//!     assert_eq!(payments, Ok(1));
//!     let effect = store.effect("paid:in_456").await?.expect("it is in the ledger");
//!     assert_eq!(effect.conflicts, 1); // the other event found it done
//!     assert!(store.effect("outbox/mailer/receipt:in_456").await?.is_some());
//!
//!     worker.stop().await;
//!     ingest.drain().await;
//!     store.close().await;
//!     Ok(())
//! }
//! ```
//!
//! Messages stay in the outbox until `oncebox serve`, or a `Server` of the `oncebox-server` crate,
//! relays them to the URL that its configuration has for the destination.
//!
//! A service runs its handlers with [`Handlers::run`](handler::Handlers::run), beside its own
//! routes or, on PostgreSQL, beside any number of `oncebox serve` that receive.
//!
//! # What is where
//!
//! This crate is what happens to a webhook after its signature was checked. It is recorded once
//! under a unique constraint ([`store`]), together with everybody else who waited for the same
//! commit ([`ingest`]), and kept for as long as its source asks ([`retention`]). Each route that
//! takes it has a [`delivery`], which a [`worker`] drives into a consumer; one of those is
//! [`handler`], for business code in Rust. An [`effect`] is what that code does once.
//!
//! It knows no HTTP. The `oncebox-server` crate puts listeners, configuration and a command line
//! around it; [`oncebox_verify`] checks the signatures.

pub mod clock;
pub mod delivery;
pub mod effect;
pub mod handler;
pub mod identity;
pub mod ingest;
pub mod limits;
pub mod lookup;
pub mod maintenance;
mod odd;
mod panicked;
pub mod pattern;
pub mod receipt;
pub mod repeats;
pub mod replay;
pub mod retention;
pub mod route;
pub mod sealed;
pub mod store;
mod stored;
pub mod token;
pub mod worker;

pub use oncebox_verify as verify;
pub use {rusqlite, tokio_postgres};
