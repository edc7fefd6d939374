//! The API for workers that pull, over real sockets, and what is stored after each answer.

mod access;
mod batches;
mod bed;
mod claims;
mod endings;
mod leases;
mod reloads;
