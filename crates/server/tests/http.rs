//! The server over real sockets: every answer it gives, and what is stored after it.

#[path = "http/admin.rs"]
mod admin;
#[path = "http/bed.rs"]
mod bed;
#[path = "http/kept.rs"]
mod kept;
#[path = "http/limits.rs"]
mod limits;
#[path = "http/logs.rs"]
mod logs;
#[path = "http/outcomes.rs"]
mod outcomes;
#[path = "http/payloads.rs"]
mod payloads;
#[path = "http/reload.rs"]
mod reload;
#[path = "http/signatures.rs"]
mod signatures;
#[path = "http/tls.rs"]
mod tls;
#[path = "http/wire.rs"]
mod wire;
