//! Claims and endings through SQL: what a worker in any language has of PostgreSQL alone.

mod bad_input;
mod calls;
mod compare;
mod damaged;
mod leases;
mod outcomes;
mod plans;
mod race;
mod rights;
mod session;
