//! The verbs as SQL functions, called as a worker in any language calls them: inside a transaction
//! of its own, next to its own tables.

mod bed;
mod input;
mod races;
mod verbs;
