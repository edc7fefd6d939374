//! Drives the real `oncebox` command.

mod bed;
mod dev;
mod help;
mod receipts;
mod send;
mod verify;
