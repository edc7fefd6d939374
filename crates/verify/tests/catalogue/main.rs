//! The catalogue, entry by entry: its vectors, and what must be refused once one of them is
//! changed. A new entry gets all of this from one vector.

mod contents;
mod heads;
mod invented;
#[expect(dead_code, reason = "other tests ask for more kinds of keyrings")]
#[path = "../keys/mod.rs"]
mod keys;
mod negatives;
mod odd;
mod recorded;
mod samples;
mod vector;
