//! Forgeries made from a genuine request of every entry. A new entry gets them free.
//!
//! What can be made of a vector instead is in `catalogue/negatives.rs`.

mod attacks;
mod case;
mod covered;
mod extension;
mod genuine;
mod headers;
#[expect(dead_code, reason = "other tests ask for more kinds of keyrings")]
#[path = "../keys/mod.rs"]
mod keys;
mod lists;
mod proof;
mod secrets;
mod signatures;
mod weaker;
