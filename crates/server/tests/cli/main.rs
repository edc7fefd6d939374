//! Drives the real `oncebox` command.

mod bed;
mod bench;
mod config;
mod dead;
mod deliveries;
mod desk;
mod dev;
mod effects;
mod healthcheck;
mod help;
mod ids;
mod odd_batches;
mod outbox;
mod people;
mod receipts;
mod replay;
mod routes;
mod send;
mod token;
mod verify;
mod work;
