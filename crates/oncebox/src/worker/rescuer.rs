//! Deliveries whose worker died, and those held behind nothing.

use std::sync::Arc;

use tracing::{info, warn};

use super::Shared;
use crate::limits::CLAIM_ROWS;
use crate::store::{Rescued, StoreError};

/// Of so many rounds one looks for what is held behind nothing.
const RELEASE_EVERY: u32 = 8;

/// Looks after the leases of everybody, four times per lease, so that what a killed worker held
/// is taken over well within two.
pub(super) async fn run(shared: Arc<Shared>) {
    for round in 0_u32.. {
        if let Err(error) = rescue(&shared).await {
            warn!(%error, "lost deliveries could not be looked for; trying again");
            shared.note_failure(&error);
        }
        if round.is_multiple_of(RELEASE_EVERY)
            && let Err(error) = release(&shared).await
        {
            warn!(%error, "held deliveries could not be looked at; trying again");
        }
        shared.pause(shared.options.lease / 4).await;
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

async fn release(shared: &Shared) -> Result<(), StoreError> {
    let released = shared.store.release_unblocked(CLAIM_ROWS).await?;
    if released > 0 {
        info!(released, "let go deliveries that nothing was in the way of");
    }
    Ok(())
}
