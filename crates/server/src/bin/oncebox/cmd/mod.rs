//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod providers;
pub(crate) mod receipts;
pub(crate) mod send;
pub(crate) mod verify;
