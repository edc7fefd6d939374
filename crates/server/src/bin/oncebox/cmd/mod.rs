//! The commands, one file each.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod deliveries;
pub(crate) mod dev;
pub(crate) mod effects;
pub(crate) mod healthcheck;
pub(crate) mod held;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod outbox;
pub(crate) mod providers;
pub(crate) mod receipts;
pub(crate) mod replay;
pub(crate) mod replays;
pub(crate) mod retention;
pub(crate) mod routes;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod sources;
pub(crate) mod token;
pub(crate) mod verify;
