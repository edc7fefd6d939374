//! The worker, on both stores: what it delivers, what it holds, and what it survives.

mod bed;
mod damaged;
mod faults;
mod leases;
mod line;
mod routes;
mod stop;
mod versions;
