//! Providers: batches, questions, subscriptions, and keys that are fetched.

pub(crate) mod batches;
mod https;
mod keys;
mod questions;
pub(crate) mod shelf;
mod subscriptions;
