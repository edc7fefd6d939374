//! Deliveries on their way.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::SqliteStore;
use crate::delivery::{DeliveryId, Ending, Lease, Payload};
use crate::receipt::ReceiptId;
use crate::store::{Claim, Claims, Queue, Rescued, Standing, StoreError};

#[async_trait]
impl Queue for SqliteStore {
    fn due(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    async fn claim(&self, _: &Claim) -> Result<Claims, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn payloads(&self, _: &[ReceiptId]) -> Result<Vec<Payload>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn extend(
        &self,
        _: &[(DeliveryId, Lease)],
        _: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn finish(&self, _: Vec<Ending>) -> Result<Vec<bool>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn rescue(&self, _: usize) -> Result<Rescued, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn release_unblocked(&self, _: usize) -> Result<usize, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn hasten(&self, _: DeliveryId, _: Duration) -> Result<Option<Standing>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }

    async fn standing(&self, _: DeliveryId) -> Result<Option<Standing>, StoreError> {
        Err(StoreError::Unavailable("not built".into()))
    }
}
