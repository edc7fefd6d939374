#![doc = include_str!("../README.md")]

mod post;
mod run;
mod simulator;

pub use post::{Answer, Peers, Poster, explain};
pub use run::{Plan, run};
pub use simulator::{CannotDraft, Event, Simulator};
