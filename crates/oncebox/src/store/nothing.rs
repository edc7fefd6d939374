//! A store that does nothing: the ceiling that `oncebox bench` measures the others against.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    ExpireRange, ExpireStep, Health, Receipt, ReceiptFilter, ReceiptSummary, Repeat, Store,
    StoreError, SweepCursor, SweepStep,
};
use crate::identity::IdentityKey;
use crate::receipt::{Arrival, ReceiptId, Recorded, RouteNo, SecretNo, SourceNo};

/// Accepts everything and keeps nothing. Never reachable through a store URL.
#[derive(Debug, Default)]
pub struct NothingStore;

#[async_trait]
impl Store for NothingStore {
    async fn record(&self, batch: Arc<[Arrival]>) -> Result<Vec<Recorded>, StoreError> {
        Ok(vec![Recorded::Accepted; batch.len()])
    }

    fn writers(&self) -> usize {
        1
    }

    async fn add_repeats(&self, _: Vec<Repeat>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn add_stored(&self, _: Vec<(SourceNo, i64)>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn stored(&self) -> Result<Vec<(SourceNo, i64)>, StoreError> {
        Ok(Vec::new())
    }

    async fn register_source(&self, _: &str, _: Option<&str>) -> Result<SourceNo, StoreError> {
        Ok(SourceNo(1))
    }

    async fn register_route(&self, _: &str, _: Option<&str>) -> Result<RouteNo, StoreError> {
        Ok(RouteNo(1))
    }

    async fn register_secret(
        &self,
        _: SourceNo,
        _: &str,
        _: Timestamp,
    ) -> Result<SecretNo, StoreError> {
        Ok(SecretNo(1))
    }

    async fn remember(
        &self,
        _: SourceNo,
        _: Vec<IdentityKey>,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn newest(&self) -> Result<Option<ReceiptId>, StoreError> {
        Ok(None)
    }

    async fn sources(&self) -> Result<Vec<(SourceNo, String)>, StoreError> {
        Ok(Vec::new())
    }

    async fn receipts(&self, _: &ReceiptFilter) -> Result<Vec<ReceiptSummary>, StoreError> {
        Ok(Vec::new())
    }

    async fn receipt(&self, _: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        Ok(None)
    }

    async fn identity(&self, _: SourceNo, _: &str) -> Result<Option<ReceiptId>, StoreError> {
        Ok(None)
    }

    async fn expire_receipts(&self, _: &ExpireRange) -> Result<ExpireStep, StoreError> {
        Ok(ExpireStep { next: None, removed: 0 })
    }

    async fn expire_identities(
        &self,
        _: SweepCursor,
        _: &[(SourceNo, i32)],
    ) -> Result<SweepStep, StoreError> {
        Ok(SweepStep { next: None, removed: 0 })
    }

    async fn health(&self) -> Result<Health, StoreError> {
        Ok(Health { clock: None, wal_bytes: None, warning: None })
    }

    async fn close(&self) {}
}
