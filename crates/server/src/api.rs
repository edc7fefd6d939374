//! The API of the admin listener.

pub mod token;
