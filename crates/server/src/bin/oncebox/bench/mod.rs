//! The parts of `oncebox bench`: the server under test, the load, and what they cost.

pub(crate) mod bed;
pub(crate) mod business;
pub(crate) mod clients;
pub(crate) mod cost;
pub(crate) mod database;
pub(crate) mod flat;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod pull;
pub(crate) mod sink;
pub(crate) mod subject;
