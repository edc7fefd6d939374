//! Nothing to watch, and nothing to find.

use std::time::Duration;

use async_trait::async_trait;

use super::NothingStore;
use crate::receipt::ReceiptId;
use crate::store::{
    Activity, ActivityNote, Happening, Lookup, NamedReceipt, Rejected, RejectedFilter,
    SourceActivity, StoreError,
};

#[async_trait]
impl Activity for NothingStore {
    async fn note_activity(
        &self,
        _: Vec<ActivityNote>,
        _: Vec<Rejected>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn activity(&self) -> Result<Vec<SourceActivity>, StoreError> {
        Ok(Vec::new())
    }

    async fn rejected_list(&self, _: &RejectedFilter) -> Result<Vec<Rejected>, StoreError> {
        Ok(Vec::new())
    }

    async fn rejected(&self, _: ReceiptId) -> Result<Option<Rejected>, StoreError> {
        Ok(None)
    }

    async fn watch(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    async fn is_watched(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn note_happenings(&self, _: Vec<Happening>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn happenings(&self) -> Result<Vec<Happening>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Lookup for NothingStore {
    async fn receipts_within(
        &self,
        _: ReceiptId,
        _: ReceiptId,
        _: usize,
    ) -> Result<Vec<NamedReceipt>, StoreError> {
        Ok(Vec::new())
    }

    async fn events(&self, _: &str) -> Result<Vec<NamedReceipt>, StoreError> {
        Ok(Vec::new())
    }

    async fn events_beginning(&self, _: &str) -> Result<Option<Vec<NamedReceipt>>, StoreError> {
        Ok(Some(Vec::new()))
    }
}
