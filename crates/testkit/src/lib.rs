//! What Oncebox's tests stand on: a private PostgreSQL, faults in files and networks, and the
//! real server as a process. Not published; a dev-dependency of the other crates.
//!
//! Every helper waits for what it needs, with a deadline, and says what it saw when the deadline
//! passes; a test built on them needs no sleep. Nothing outlives the test process, not even one
//! that is killed.

pub mod destination;
#[cfg(target_os = "linux")]
pub mod faultfs;
pub mod gate;
pub mod http;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod store;
pub mod wait;
mod watchdog;
