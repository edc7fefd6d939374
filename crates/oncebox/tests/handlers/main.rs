//! Handlers in Rust, on both stores: what they write commits with the end of their delivery, or not
//! at all, and none of it happens twice.

mod bed;
mod busy;
mod calls;
mod commit;
mod input;
mod postgres;
mod run;
mod sqlite;
mod steps;
mod told;
