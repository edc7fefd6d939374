//! Whether a commit gets through now, also while no sender asks for one.

use std::sync::Mutex;
use std::time::Instant;

use tokio::sync::watch;
use tokio::time::timeout;

use super::Shared;
use crate::limits;

/// What is known of the last commits.
#[derive(Default)]
pub(super) struct Pulse {
    /// When a commit last succeeded.
    good: Mutex<Option<Instant>>,
    /// The proof under way: when it began, and its outcome once there is one.
    proof: Mutex<Option<Proof>>,
}

#[derive(Clone)]
struct Proof {
    began: Instant,
    outcome: watch::Receiver<Option<Result<(), String>>>,
}

impl Pulse {
    /// A commit succeeded.
    pub(super) fn beat(&self) {
        *self.good.lock().expect("no panic while noting") = Some(Instant::now());
    }

    fn is_fresh(&self) -> bool {
        let good = self.good.lock().expect("no panic while noting");
        good.is_some_and(|at| at.elapsed() < limits::COMMIT_FRESH)
    }
}

/// Commits something, unless a commit has just succeeded. One proof runs at a time: where commits
/// hang, asking often must not make more of them hang.
pub(super) async fn prove(shared: &std::sync::Arc<Shared>) -> Result<(), String> {
    if shared.pulse.is_fresh() {
        return Ok(());
    }
    let mut proof = join(shared);
    let answer = timeout(limits::PROOF_WAIT, proof.outcome.wait_for(Option::is_some)).await;
    match answer {
        Ok(Ok(outcome)) => outcome.clone().unwrap_or(Ok(())),
        Ok(Err(_)) => Err("the proof of a commit was given up".into()),
        Err(_) => Err(format!(
            "a commit has been waiting for {} s: the database is slow, frozen, or without its \
             synchronous standby",
            proof.began.elapsed().as_secs()
        )),
    }
}

/// The proof under way, or a new one.
fn join(shared: &std::sync::Arc<Shared>) -> Proof {
    let mut slot = shared.pulse.proof.lock().expect("no panic while proving");
    if let Some(proof) = slot.as_ref()
        && proof.outcome.borrow().is_none()
        && proof.outcome.has_changed().is_ok()
    {
        return proof.clone();
    }
    let (tell, outcome) = watch::channel(None);
    let proof = Proof { began: Instant::now(), outcome };
    *slot = Some(proof.clone());
    let shared = shared.clone();
    tokio::spawn(async move {
        let outcome = shared.store.prove_commit().await;
        if let Ok(true) = outcome {
            shared.pulse.beat();
            *shared.trouble.lock().expect("no panic while noting") = None;
        }
        tell.send_replace(Some(outcome.map(drop).map_err(|error| error.to_string())));
    });
    proof
}
