//! The server over real sockets: every answer it gives, and what is stored after it.

mod admin;
mod attacks;
mod bed;
mod every_provider;
mod hidden;
mod kept;
mod limits;
mod logs;
mod mounted;
mod outcomes;
mod payloads;
mod providers;
mod rejected;
mod reload;
mod signatures;
mod signed_afresh;
mod strongest;
mod tls;
mod wire;
