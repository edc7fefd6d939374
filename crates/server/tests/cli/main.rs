//! Drives the real `oncebox` command.

mod bed;
mod config;
mod dev;
mod healthcheck;
mod help;
mod receipts;
mod send;
mod verify;
