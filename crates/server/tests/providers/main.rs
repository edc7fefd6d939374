//! Providers over real sockets: batches, handshakes, settings and keys that are fetched.

mod batches;
#[path = "../http/bed.rs"]
#[allow(dead_code, reason = "the stories about single events use the rest")]
mod bed;
mod https;
mod keys;
mod questions;
mod shelf;
mod subscriptions;
