//! Endings that cannot be written now, because what they need is locked. Each waits on
//! its own, so that no other waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::debug;

use super::Shared;
use super::chance::chance;
use super::finisher::{self, Ended};
use crate::limits::ASIDE_RETRY;
use crate::store::Finish;

/// Writes an ending by itself, again and again until the lock is gone or the lease is.
pub(super) fn set_aside(shared: &Arc<Shared>, ended: Ended) {
    let shared = shared.clone();
    debug!(delivery = %ended.claimed.delivery, "ending set aside: what it needs is locked");
    tokio::spawn(async move {
        let mut pause = ASIDE_RETRY.0;
        let mut ended = ended;
        loop {
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(ASIDE_RETRY.1);
            match shared.store.finish(vec![ended.ending()]).await {
                Ok(each) if each.contains(&Finish::Locked) => {}
                Ok(each) => return finisher::settle_each(&shared, vec![ended], each).await,
                // What is wrong now is not the lock.
                Err(_) => return finisher::settle(&shared, vec![ended]).await,
            }
            let Some(kept) = keep(&shared, ended) else { return };
            ended = kept;
        }
    });
}

/// Keeps trying while the lease should be good and the worker has time.
fn keep(shared: &Shared, ended: Ended) -> Option<Ended> {
    let now = Instant::now();
    let too_late = shared.finish_by.get().is_some_and(|by| *by <= now);
    if too_late || !shared.leases.is_good(&ended.claimed, now) {
        finisher::abandon(shared, &ended, "what it shares with others was locked all the time");
        return None;
    }
    Some(ended)
}

fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + chance() / 2.0)
}
