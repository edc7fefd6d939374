//! A store with a gate before it: commits can be held up, and made to fail before or after they
//! happen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use oncebox::identity::IdentityKey;
use oncebox::receipt::{Arrival, ReceiptId, ReceiptMint, Recorded, RouteNo, SecretNo, SourceNo};
use oncebox::route::RouteRules;
use oncebox::store::{
    DayStep, ExpireRange, ExpireStep, Health, Receipt, ReceiptFilter, ReceiptSummary, Repeat,
    Store, StoreError, SweepCursor, SweepStep,
};
use tokio::sync::watch;

mod through;

/// When a scripted failure happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
    /// Answers before the commit: what no store may do.
    Never,
}

/// A store behind a gate.
pub struct Gate {
    inner: Arc<dyn Store>,
    moment: Moment,
    script: Mutex<VecDeque<Option<StoreError>>>,
    claims: Mutex<VecDeque<StoreError>>,
    endings: Mutex<VecDeque<StoreError>>,
    secrets: Mutex<VecDeque<StoreError>>,
    claims_closed: watch::Sender<bool>,
    claims_held: watch::Sender<usize>,
    looks: watch::Sender<usize>,
    batches: Mutex<Vec<usize>>,
    repeats: Mutex<Vec<Vec<Repeat>>>,
    closed: watch::Sender<bool>,
    held: watch::Sender<usize>,
    recorded: watch::Sender<usize>,
}

impl Gate {
    /// A gate whose failures happen instead of the commit.
    pub fn before(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::new(inner, Moment::Before, [])
    }

    /// A gate whose failures happen after the commit, as when its answer is lost. `None` lets a
    /// commit through.
    pub fn after(
        inner: Arc<dyn Store>,
        script: impl IntoIterator<Item = Option<StoreError>>,
    ) -> Arc<Self> {
        Self::new(inner, Moment::After, script)
    }

    /// A gate that says `accepted` and commits afterwards, to prove that checks notice.
    pub fn early(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::new(inner, Moment::Never, [])
    }

    fn new(
        inner: Arc<dyn Store>,
        moment: Moment,
        script: impl IntoIterator<Item = Option<StoreError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            moment,
            script: Mutex::new(script.into_iter().collect()),
            claims: Mutex::default(),
            endings: Mutex::default(),
            secrets: Mutex::default(),
            claims_closed: watch::Sender::new(false),
            claims_held: watch::Sender::new(0),
            looks: watch::Sender::new(0),
            batches: Mutex::default(),
            repeats: Mutex::default(),
            closed: watch::Sender::new(false),
            held: watch::Sender::new(0),
            recorded: watch::Sender::new(0),
        })
    }

    /// Adds failures for the next commits.
    pub fn fail(&self, script: impl IntoIterator<Item = Option<StoreError>>) {
        self.script.lock().expect("no panic").extend(script);
    }

    /// Adds failures for the next claims, which then claim nothing.
    pub fn fail_claims(&self, script: impl IntoIterator<Item = StoreError>) {
        self.claims.lock().expect("no panic").extend(script);
    }

    /// Adds failures for the next endings.
    pub fn fail_endings(&self, script: impl IntoIterator<Item = StoreError>) {
        self.endings.lock().expect("no panic").extend(script);
    }

    /// Adds failures for the next secrets that are registered.
    pub fn fail_secrets(&self, script: impl IntoIterator<Item = StoreError>) {
        self.secrets.lock().expect("no panic").extend(script);
    }

    /// Holds claims up, or lets them through again.
    pub fn hold_claims(&self, held: bool) {
        self.claims_closed.send_replace(held);
    }

    /// Waits until this many claims are held up.
    pub async fn await_claims_held(&self, count: usize) {
        let mut held = self.claims_held.subscribe();
        held.wait_for(|held| *held >= count).await.expect("the gate lives");
    }

    /// Waits until what is held was looked at this often.
    pub async fn await_looks(&self, count: usize) {
        let mut looks = self.looks.subscribe();
        looks.wait_for(|looks| *looks >= count).await.expect("the gate lives");
    }

    /// Holds every commit up from now on, and every look at a pairing window.
    pub fn hold(&self) {
        self.closed.send_replace(true);
    }

    /// Lets them through again.
    pub fn release(&self) {
        self.closed.send_replace(false);
    }

    /// Waits until this many are held up.
    pub async fn await_held(&self, count: usize) {
        let mut held = self.held.subscribe();
        held.wait_for(|held| *held >= count).await.expect("the gate lives");
    }

    /// Waits until this many batches have been recorded.
    pub async fn await_recorded(&self, count: usize) {
        let mut recorded = self.recorded.subscribe();
        recorded.wait_for(|recorded| *recorded >= count).await.expect("the gate lives");
    }

    /// The sizes of the batches that came so far.
    pub fn batches(&self) -> Vec<usize> {
        self.batches.lock().expect("no panic").clone()
    }

    /// The repeats that were written so far, write by write.
    pub fn repeats(&self) -> Vec<Vec<Repeat>> {
        self.repeats.lock().expect("no panic").clone()
    }

    async fn pass(&self) {
        let mut closed = self.closed.subscribe();
        self.held.send_modify(|held| *held += 1);
        let _ = closed.wait_for(|closed| !*closed).await;
        self.held.send_modify(|held| *held -= 1);
    }
}

#[async_trait]
impl Store for Gate {
    fn mint(&self) -> Arc<ReceiptMint> {
        self.inner.mint()
    }

    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        self.batches.lock().expect("no panic").push(batch.len());
        self.pass().await;
        let failure = self.script.lock().expect("no panic").pop_front().flatten();
        let outcome = match (self.moment, failure) {
            (Moment::Never, _) => {
                let (inner, early) = (self.inner.clone(), vec![Recorded::Accepted; batch.len()]);
                tokio::spawn(async move { inner.record(batch).await });
                Ok(early)
            }
            (Moment::Before, Some(failure)) => Err(failure),
            (Moment::After, Some(failure)) => {
                self.inner.record(batch).await?;
                Err(failure)
            }
            (_, None) => self.inner.record(batch).await,
        };
        self.recorded.send_modify(|recorded| *recorded += 1);
        outcome
    }

    fn writers(&self) -> usize {
        self.inner.writers()
    }

    async fn add_repeats(&self, repeats: Vec<Repeat>) -> Result<(), StoreError> {
        self.repeats.lock().expect("no panic").push(repeats.clone());
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

    async fn register_route(
        &self,
        name: &str,
        renamed_from: Option<&str>,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        self.inner.register_route(name, renamed_from, rules).await
    }

    async fn assign_service(&self, route: RouteNo, service: &str) -> Result<(), StoreError> {
        self.inner.assign_service(route, service).await
    }

    async fn register_destination(
        &self,
        name: &str,
        rules: &RouteRules,
    ) -> Result<RouteNo, StoreError> {
        self.inner.register_destination(name, rules).await
    }

    async fn register_secret(
        &self,
        source: SourceNo,
        fingerprint: &str,
        at: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        let failure = self.secrets.lock().expect("no panic").pop_front();
        match failure {
            Some(failure) => Err(failure),
            None => self.inner.register_secret(source, fingerprint, at).await,
        }
    }

    async fn require_strongest(&self, source: SourceNo) -> Result<bool, StoreError> {
        self.inner.require_strongest(source).await
    }

    async fn requiring_strongest(&self) -> Result<Vec<SourceNo>, StoreError> {
        self.inner.requiring_strongest().await
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

    async fn expire_days(&self, range: &ExpireRange) -> Result<DayStep, StoreError> {
        self.inner.expire_days(range).await
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
