//! The same business behind each door: an invoice is paid once, its customer gets one e-mail, and
//! nothing older replaces what is newer, whoever comes twice, late, or at the same time.
//!
//! What happened is read from tables of the service's own, which would show a second time.

mod bed;
mod business;
mod http;
mod race;
mod rust;
mod sql;
mod stories;
