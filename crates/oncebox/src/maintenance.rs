//! Maintenance: what one node does for all that share a store.
//!
//! The nodes elect a leader by a lease in the database, not by a lock that a frozen process would
//! keep. The leader makes what is written to in the next days, adds up what writers counted, and
//! removes what has expired. A leader that was frozen and goes on for a moment beside the next one
//! does no harm: every step is a transaction that does not mind another one beside it. The lease
//! only saves double work.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{debug, warn};

use crate::clock::Clock;
use crate::limits;
use crate::store::{Store, StoreError};

/// Adding up may take one part in so many of the time.
const SHARE: u32 = 20;

/// How long a node that stops waits for the store to hear so.
const RESIGN: Duration = Duration::from_secs(1);

/// Leads, or waits to.
pub struct Maintenance {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Tells this process from every other.
    name: String,
    leads_until: Mutex<Option<Instant>>,
}

impl Maintenance {
    /// Maintenance by this process.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let name = store.mint().mint(clock.now()).to_string();
        Self { store, clock, name, leads_until: Mutex::new(None) }
    }

    /// Whether this node leads, as far as it knows: its lease has not run out.
    pub fn leads(&self) -> bool {
        let until = *self.leads_until.lock().expect("no panic while leading");
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Takes or keeps the lead if nobody else has it, and adds up what was counted. Says whether
    /// this node leads.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let asked = Instant::now();
        let leads = self.store.lead(&self.name, limits::LEAD).await?;
        self.learn(leads.then(|| asked + limits::LEAD));
        if leads {
            // Counts are added up also while days cannot be made.
            let ready = self.store.make_ready().await;
            self.store.fold(self.clock.now()).await?;
            ready?;
        }
        Ok(leads)
    }

    /// Runs until `stop` turns true, and then lets go of the lead.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
            let began = Instant::now();
            let ran = tokio::time::timeout(limits::LEAD, self.run_once()).await;
            match ran {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => warn!(%error, "counts could not be added up"),
                Err(_) => warn!("counts could not be added up in time"),
            }
            pause = limits::FOLD_EVERY.max((began.elapsed() * SHARE).min(limits::LEAD / 2));
        }
        if self.leads() {
            let _ = tokio::time::timeout(RESIGN, self.resign()).await;
        }
    }

    /// Lets go of the lead, so that another node need not wait for the lease to run out.
    pub async fn resign(&self) {
        self.learn(None);
        if let Err(error) = self.store.resign(&self.name).await {
            warn!(%error, "the lead in maintenance could not be given up; it runs out");
        }
    }

    fn learn(&self, until: Option<Instant>) {
        let before = self.leads();
        *self.leads_until.lock().expect("no panic while leading") = until;
        match (before, self.leads()) {
            (false, true) => debug!("this node leads maintenance"),
            (true, false) => debug!("this node does not lead maintenance any more"),
            _ => {}
        }
    }
}
