//! Secrets that a provider sets in a handshake.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::SqliteStore;
use crate::receipt::SourceNo;
use crate::sealed::Sealed;
use crate::store::{Act, Paired, PairedNo, PairedSecret, Pairing, Pairings, StoreError};

fn not_yet<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable("no source can be paired yet".into()))
}

#[async_trait]
impl Pairings for SqliteStore {
    async fn open_pairing(&self, _: SourceNo, _: Duration, _: &Act) -> Result<Pairing, StoreError> {
        not_yet()
    }

    async fn close_pairing(&self, _: SourceNo, _: &Act) -> Result<bool, StoreError> {
        not_yet()
    }

    async fn pairing(&self, _: SourceNo) -> Result<Option<Pairing>, StoreError> {
        not_yet()
    }

    async fn pair(&self, _: SourceNo, _: &Sealed, _: Timestamp) -> Result<Paired, StoreError> {
        not_yet()
    }

    async fn paired_secrets(&self, _: SourceNo) -> Result<Vec<PairedSecret>, StoreError> {
        not_yet()
    }

    async fn remove_paired_secret(
        &self,
        _: SourceNo,
        _: PairedNo,
        _: &Act,
    ) -> Result<bool, StoreError> {
        not_yet()
    }
}
