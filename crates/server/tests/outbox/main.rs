//! The outbox: messages that a handler wrote, as their destination gets them, and what the store
//! says came of them. Every story is told on both stores.

mod bed;
mod config;
mod groups;
mod hidden;
mod relay;
mod running;
