//! Drives the real `oncebox` command.

mod bed;
mod config;
mod dead;
mod desk;
mod dev;
mod healthcheck;
mod help;
mod receipts;
mod replay;
mod send;
mod verify;
