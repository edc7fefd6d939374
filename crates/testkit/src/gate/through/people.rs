//! Those who look are let through.

use std::time::Duration;

use async_trait::async_trait;
use oncebox::receipt::ReceiptId;
use oncebox::store::{
    Activity, ActivityNote, Happening, Lookup, NamedReceipt, Rejected, RejectedFilter,
    SourceActivity, StoreError,
};

use crate::gate::Gate;

#[async_trait]
impl Activity for Gate {
    async fn note_activity(
        &self,
        notes: Vec<ActivityNote>,
        rejected: Vec<Rejected>,
    ) -> Result<(), StoreError> {
        self.inner.note_activity(notes, rejected).await
    }

    async fn activity(&self) -> Result<Vec<SourceActivity>, StoreError> {
        self.inner.activity().await
    }

    async fn rejected_list(&self, filter: &RejectedFilter) -> Result<Vec<Rejected>, StoreError> {
        self.inner.rejected_list(filter).await
    }

    async fn rejected(&self, id: ReceiptId) -> Result<Option<Rejected>, StoreError> {
        self.inner.rejected(id).await
    }

    async fn watch(&self, lasting: Duration) -> Result<(), StoreError> {
        self.inner.watch(lasting).await
    }

    async fn is_watched(&self) -> Result<bool, StoreError> {
        self.inner.is_watched().await
    }

    async fn note_happenings(&self, lines: Vec<Happening>) -> Result<(), StoreError> {
        self.inner.note_happenings(lines).await
    }

    async fn happenings(&self) -> Result<Vec<Happening>, StoreError> {
        self.inner.happenings().await
    }
}

#[async_trait]
impl Lookup for Gate {
    async fn receipts_within(
        &self,
        from: ReceiptId,
        to: ReceiptId,
        limit: usize,
    ) -> Result<Vec<NamedReceipt>, StoreError> {
        self.inner.receipts_within(from, to, limit).await
    }

    async fn events(&self, event_id: &str) -> Result<Vec<NamedReceipt>, StoreError> {
        self.inner.events(event_id).await
    }

    async fn events_beginning(
        &self,
        beginning: &str,
    ) -> Result<Option<Vec<NamedReceipt>>, StoreError> {
        self.inner.events_beginning(beginning).await
    }
}
