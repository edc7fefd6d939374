//! What Oncebox's tests stand on: a private PostgreSQL, faults in files and networks, and the
//! real server as a process. Not published; a dev-dependency of the other crates.
//!
//! Every helper waits for what it needs, with a deadline, and says what it saw when the deadline
//! passes; a test built on them needs no sleep.

#[cfg(target_os = "linux")]
pub mod faultfs;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod wait;
