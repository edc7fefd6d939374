//! The Oncebox server: configuration, listeners, metrics and the `oncebox` command.

pub mod activity;
pub mod address;
pub mod admin;
pub mod api;
pub mod awaited;
pub mod capture;
pub mod clock_watch;
pub mod columns;
pub mod config;
pub mod destination;
pub mod dev;
pub mod escape;
pub mod failures;
pub mod fetch;
pub mod fingerprint;
pub mod keys;
pub mod line;
pub mod listener;
pub mod logs;
pub mod metrics;
mod observer;
pub mod pairing;
pub mod pattern;
pub mod public;
pub mod push;
pub mod resend;
pub mod route;
pub mod server;
pub mod shares;
pub mod source;
pub mod state;
pub mod tallies;
pub mod tls;
pub mod waiting;

/// The programs of this page are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;
