//! Oncebox, the webhook inbox: every event kept, once.
//!
//! This crate is what happens to a webhook after its signature was checked: it is recorded once
//! under a unique constraint ([`store`]), together with everybody else who waited for the same
//! commit ([`ingest`]), and kept for as long as its source asks ([`retention`]).
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
pub mod pattern;
pub mod receipt;
pub mod repeats;
pub mod replay;
pub mod retention;
pub mod route;
pub mod store;
mod stored;
pub mod token;
pub mod worker;

pub use oncebox_verify as verify;
