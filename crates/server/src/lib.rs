//! The Oncebox server: configuration, listeners, metrics and the `oncebox` command.

pub mod config;
pub mod pattern;
pub mod tls;
