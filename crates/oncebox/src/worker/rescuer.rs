//! Deliveries whose worker died, and those held behind nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::Shared;
use crate::limits::CLAIM_ROWS;
use crate::store::{Rescued, StoreError};

/// After so many leases what is held is looked at again, to see if it is held behind nothing.
const RELEASE_EVERY: u32 = 2;

/// Looking at what is held may take one part in so many of the time: there may be very much.
const RELEASE_SHARE: u32 = 5;

/// Leases are looked after at least this often: those that pull may be shorter than ours.
const RESCUE_EVERY: Duration = Duration::from_secs(1);

/// Looks after the leases of everybody, so often that what a killed worker held is taken over
/// well within two leases.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = rescue(&shared).await {
            warn!(%error, "lost deliveries could not be looked for; trying again");
            shared.note_failure(&error);
        }
        shared.pause(RESCUE_EVERY.min(shared.options.lease / 4)).await;
        if shared.is_stopping() {
            return;
        }
    }
}

/// Rescues whatever there is to rescue.
pub(super) async fn rescue(shared: &Shared) -> Result<Rescued, StoreError> {
    let mut all = Rescued::default();
    loop {
        let mut rescued = shared.store.rescue(CLAIM_ROWS).await?;
        let found = rescued.retrying.len() + rescued.dead.len();
        if found > 0 {
            let (retrying, dead) = (rescued.retrying.len(), rescued.dead.len());
            info!(retrying, dead, "took deliveries from workers whose leases ran out");
            shared.options.observer.rescued(&rescued);
        }
        all.retrying.append(&mut rescued.retrying);
        all.dead.append(&mut rescued.dead);
        if found < CLAIM_ROWS || shared.is_stopping() {
            return Ok(all);
        }
    }
}

/// Looks at everything that is held, now and then and whenever rules may have changed. Apart from
/// rescues, which must not wait for it.
pub(super) async fn run_releases(shared: Arc<Shared>) {
    loop {
        if let Err(error) = release(&shared).await {
            warn!(%error, "held deliveries could not be looked at; trying again");
        }
        tokio::select! {
            () = shared.changed.notified() => {}
            () = shared.pause(shared.options.lease * RELEASE_EVERY) => {}
        }
        if shared.is_stopping() {
            return;
        }
    }
}

/// Gives open deliveries their objects where a route has come to guard objects. Half of the time is
/// left to others.
pub(super) async fn run_fills(shared: Arc<Shared>) {
    loop {
        let began = Instant::now();
        let pause = match shared.store.fill_lanes().await {
            Ok(true) => began.elapsed(),
            Ok(false) => RESCUE_EVERY,
            Err(error) => {
                warn!(%error, "open deliveries could not be given their objects; trying again");
                RESCUE_EVERY
            }
        };
        shared.pause(pause).await;
        if shared.is_stopping() {
            return;
        }
    }
}

/// Lets go whatever is held behind nothing.
pub(super) async fn release(shared: &Shared) -> Result<usize, StoreError> {
    let mut all = 0;
    loop {
        let began = Instant::now();
        let unblocked = shared.store.release_unblocked(CLAIM_ROWS).await?;
        all += unblocked.released;
        if !unblocked.more || shared.is_stopping() {
            break;
        }
        shared.pause(began.elapsed() * (RELEASE_SHARE - 1)).await;
    }
    if all > 0 {
        info!(released = all, "released held deliveries that are no longer blocked");
    }
    Ok(all)
}
