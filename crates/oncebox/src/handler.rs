//! Handlers in Rust: business code that shares one transaction with the store.
//!
//! A handler gets an [`Event`] with as much of its payload as it names, and a context with the real
//! transaction of its database and the five verbs. What it writes to its own tables, through the
//! verbs and by its [`Decision`] commits together, or, where it fails, not at all: a crash, a
//! retry, a replay or a worker that was thought dead repeats none of it.
//!
//! | Verb | Here | Says |
//! |---|---|---|
//! | **once** | `cx.once(key)` | whether it is this handler's to do, or [who did it](DoneBy) |
//! | **step** | `cx.run_step(name, …)`, `cx.step(name)` | its result, recorded now or before |
//! | **send** | `cx.send(&message)` | whether the [`Message`](crate::effect::Message) is new |
//! | **advance** | `cx.advance(object, version)` | false if the event is stale |
//! | **finish** | what the handler returns: a [`Decision`] or a [`Failure`] | |
//!
//! Calls to the outside cannot be in a transaction; [`Calls`] makes them once as far as anybody
//! can, and says `unknown` where nobody knows.
//!
//! On PostgreSQL implement [`PostgresHandler`], on SQLite [`SqliteHandler`]; register handlers with
//! [`Handlers::new`] and `on`, and [run](Handlers::run) them on a route, in the process that
//! receives or, on PostgreSQL, in any number of others.

mod calls;
mod decision;
mod event;
mod failure;
mod postgres;
mod registry;
mod run;
mod sqlite;
mod verbs;

pub use calls::{Call, Calls};
pub use decision::Decision;
pub use event::Event;
pub use failure::Failure;
pub use postgres::{PostgresCx, PostgresHandler};
pub use registry::{Handlers, Unhandled};
pub use run::{HandlerOptions, HandlerStore, HandlerWorker};
pub use sqlite::{Apply, SqliteCx, SqliteHandler, apply};
pub use verbs::{DoneBy, Sending, Stage, Step, Taken};
