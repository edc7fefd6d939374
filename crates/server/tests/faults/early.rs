//! Proof that the checker notices the worst bug there is: an acknowledgement before the commit.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use oncebox::clock::SystemClock;
use oncebox::identity::IdentityKey;
use oncebox::ingest::IngestOptions;
use oncebox::receipt::{Arrival, ReceiptId, Recorded, RouteNo, SecretNo, SourceNo};
use oncebox::store::{
    self, ExpireRange, ExpireStep, Health, Purpose, Receipt, ReceiptFilter, ReceiptSummary, Repeat,
    Store, StoreError, SweepCursor, SweepStep,
};
use oncebox_server::config::Config;
use oncebox_server::logs;
use oncebox_server::server::{Listeners, Server};
use oncebox_testkit::process::ServerProcess;

use crate::bed::Bed;
use crate::chance::Chance;
use crate::checker::{Broken, block_on, check};
use crate::load::{Ledger, Load};

/// Tells the child its configuration.
const CHILD: &str = "ONCEBOX_FAULTS_CHILD";

/// A kill may come when everything happens to be written.
const ROUNDS: usize = 20;

#[test]
fn an_early_acknowledgement_on_sqlite_is_noticed() {
    losses_are_found(&Bed::sqlite());
}

#[test]
fn an_early_acknowledgement_on_postgres_is_noticed() {
    losses_are_found(&Bed::postgres());
}

fn losses_are_found(bed: &Bed) {
    let mut chance = Chance::new();
    let ledger = Ledger::new();
    let found = (0..ROUNDS).any(|_| {
        let mut server = ServerProcess::spawn(
            &std::env::current_exe().expect("the test has a file"),
            ["--exact", "early::in_a_child_a_server_acknowledges_too_early", "--nocapture"],
            [(CHILD, bed.home.config())],
        );
        let load = Load::on(&ledger, server.addresses().public, &mut chance);
        ledger.wait_for_acks(chance.between(20..200));
        server.kill();
        load.end();
        let broken = check(&ledger, &bed.url);
        broken.iter().any(|broken| matches!(broken, Broken::Lost(_)))
    });
    assert!(found, "{ROUNDS} kills lost nothing of {:?}", ledger.answers());
}

/// Not a test of its own: a server on a store that answers before it commits.
#[test]
fn in_a_child_a_server_acknowledges_too_early() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    // The test harness has begun a line of its own.
    println!();
    block_on(async {
        let config = Config::load(Some(&PathBuf::from(path))).expect("the configuration is good");
        let _logs = logs::init(&config.log).expect("logs");
        let listeners = Listeners::bind(&config).await.expect("free ports");
        let inner = store::open(config.store.url.as_str(), Purpose::Serve).await.expect("a store");
        let early = Arc::new(Early { inner });
        let ingest = IngestOptions::default();
        let server = Server::start(config, early, Arc::new(SystemClock), ingest, listeners).await;
        let _server = server.expect("it starts");
        std::future::pending::<()>().await;
    });
}

/// Says that it has recorded, and then records.
struct Early {
    inner: Arc<dyn Store>,
}

#[async_trait]
impl Store for Early {
    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        let (inner, outcomes) = (Arc::clone(&self.inner), vec![Recorded::Accepted; batch.len()]);
        tokio::spawn(async move { inner.record(batch).await });
        Ok(outcomes)
    }

    fn writers(&self) -> usize {
        self.inner.writers()
    }

    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError> {
        self.inner.add_repeats(repeats).await
    }

    async fn add_stored(&self, bytes: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        self.inner.add_stored(bytes).await
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        self.inner.stored().await
    }

    async fn register_source(&self, n: &str, old: Option<&str>) -> Result<SourceNo, StoreError> {
        self.inner.register_source(n, old).await
    }

    async fn register_route(&self, n: &str, old: Option<&str>) -> Result<RouteNo, StoreError> {
        self.inner.register_route(n, old).await
    }

    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        self.inner.register_secret(source, fingerprint, at).await
    }

    async fn remember(
        &self,
        source: SourceNo,
        keys: Vec<IdentityKey>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.inner.remember(source, keys, at).await
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        self.inner.newest().await
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        self.inner.sources().await
    }

    async fn receipts(&self, filter: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        self.inner.receipts(filter).await
    }

    async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        self.inner.receipt(id).await
    }

    async fn identity(&self, s: SourceNo, id: &str) -> Result<Option<ReceiptId>, StoreError> {
        self.inner.identity(s, id).await
    }

    async fn expire_receipts(&self, range: &ExpireRange) -> Result<ExpireStep, StoreError> {
        self.inner.expire_receipts(range).await
    }

    async fn expire_identities(
        &self,
        from: SweepCursor,
        bounds: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        self.inner.expire_identities(from, bounds).await
    }

    async fn health(&self) -> Result<Health, StoreError> {
        self.inner.health().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
