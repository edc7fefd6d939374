//! The API for workers that pull, over real sockets, and what is stored after each answer.

mod access;
mod batches;
mod bed;
mod claims;
mod effects;
mod effects_desk;
mod effects_input;
mod effects_send;
mod endings;
mod leases;
mod pushed;
mod reloads;
