//! Pushing, against a destination that behaves as it likes: what it was sent, what it answered,
//! and what the store says came of it.

mod acks;
mod addresses;
mod bed;
mod clocks;
mod fetch;
mod hostile;
mod outcomes;
mod running;
mod sdks;
mod tls;
mod wire;
