//! Drives the real `oncebox` command.

mod bed;
mod help;
mod receipts;
mod send;
mod verify;
