//! Claims whose answer was lost. What they took is under leases that nobody knows, and would be
//! charged with an attempt that nobody made.
//!
//! Each claim therefore signs with a name of its own. After an unknown outcome, what bears that
//! name is returned. The server may be late to commit, so it is looked for until a lease is over.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::Instant;
use tracing::{info, warn};
use uuid::Uuid;

use super::connect::query;
use super::sessions::Sessions;
use super::wake::Wake;
use super::{PostgresStore, finish, locks};
use crate::delivery::{Ending, Lease, Next};
use crate::store::{Claim, StoreError};

/// The pause before the second look; doubled before each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// What stands between the name of a worker and what tells its claims apart.
const MARK: char = '#';

/// A claim that can be told from all others.
pub(super) fn signed(claim: &Claim) -> Claim {
    let (_, random) = Uuid::now_v7().as_u64_pair();
    Claim { worker: format!("{}{MARK}{random:x}", claim.worker), ..claim.clone() }
}

/// The worker that signed a claim.
pub(super) fn worker(signature: &str) -> &str {
    signature.rsplit_once(MARK).map_or(signature, |(worker, _)| worker)
}

/// Sees to it that a claim nobody heard of takes nothing.
pub(super) fn undo<T>(store: &PostgresStore, claim: &Claim, outcome: &Result<T, StoreError>) {
    if !matches!(outcome, Err(StoreError::UnknownOutcome(_))) {
        return;
    }
    let (sessions, wake) = (store.working.clone(), store.wake.clone());
    tokio::spawn(give_back(sessions, wake, claim.worker.clone(), claim.lease));
}

async fn give_back(sessions: Sessions, wake: Arc<Wake>, signature: String, lease: Duration) {
    let end = Instant::now() + lease;
    let mut pause = PAUSE;
    while !sessions.is_closed() {
        match sessions.write(async |client| find_and_return(client, &signature).await).await {
            Ok(0) => {}
            Ok(returned) => {
                info!(returned, "a claim whose answer was lost was given back");
                wake.everywhere();
                return;
            }
            Err(error) => warn!(%error, "cannot give back a claim whose answer was lost yet"),
        }
        if Instant::now() + pause >= end {
            return;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

async fn find_and_return(client: &mut Object, signature: &str) -> Result<usize, StoreError> {
    let rows = query(client, include_str!("sql/find_claimed_by.sql"), &[&signature]).await?;
    let returned = |row| Ending {
        delivery: locks::delivery(row),
        lease: Lease(row.get(2)),
        next: Next::Return,
        took: Duration::ZERO,
        status: None,
        detail: None,
        summary: None,
        guarded: true,
    };
    let endings: Vec<Ending> = rows.iter().map(returned).collect();
    if !endings.is_empty() && finish::end_all(client, &endings).await?.is_partial() {
        let locked = "another session has locked what deliveries share with others";
        return Err(StoreError::Unavailable(locked.into()));
    }
    Ok(endings.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_begins_with_the_name_of_the_worker() {
        let claim = Claim { wanted: Vec::new(), lease: Duration::ZERO, worker: "a#b".into() };
        let (one, two) = (signed(&claim).worker, signed(&claim).worker);
        assert_ne!(one, two);
        assert_eq!((worker(&one), worker(&two)), ("a#b", "a#b"));
    }
}
