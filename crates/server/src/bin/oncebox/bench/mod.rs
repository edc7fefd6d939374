//! The parts of `oncebox bench`: the server under test, the load, and what they cost.

pub(crate) mod cost;
pub(crate) mod database;
pub(crate) mod load;
pub(crate) mod subject;
