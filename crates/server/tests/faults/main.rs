//! The promises under faults: real processes, real disks and databases, both stores.
//!
//! A load of signed events runs against the real `oncebox`, keeps a ledger of every
//! acknowledgement, and something breaks. Afterwards a checker holds the store against the ledger.
//! That the checker can fail is shown too: with syncs dropped, and with acknowledgements sent
//! before the commit.
//!
//! `ONCEBOX_TEST_FULL=1` runs every loop in full; `ONCEBOX_TEST_SEED` repeats a run whose seed a
//! failing test has printed.

mod backup;
mod bed;
mod chance;
mod checker;
mod load;

#[cfg(target_os = "linux")]
mod corruption;
mod cut_commits;
mod deliver;
#[cfg(target_os = "linux")]
mod disk;
mod duplicates;
mod early;
mod effects;
mod failover;
#[cfg(target_os = "linux")]
mod fsync;
mod kill;
mod leases;
#[cfg(target_os = "linux")]
mod memory;
mod outages;
mod outbox;
#[cfg(target_os = "linux")]
mod power;
mod signals;
mod standby;
mod start;
mod upgrade;
mod wal;
