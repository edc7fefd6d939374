//! Deliveries on their way.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::{execute, query};
use super::names::milliseconds;
use super::{PostgresStore, claim, finish, lanes, locks, rescue};
use crate::delivery::{DeliveryId, Ending, Lease, Payload, Reason, State};
use crate::limits;
use crate::receipt::ReceiptId;
use crate::store::{
    BreakerNote, Claim, Claims, Finish, Queue, Rescued, Standing, StoreError, Unblocked, checks,
    words,
};

/// The payloads whose bodies match their digests.
fn intact(rows: &[Row]) -> Vec<Payload> {
    let payload = |row: &Row| {
        let body: &[u8] = row.get(2);
        checks::is_intact(body, row.get(3)).then(|| Payload {
            receipt: row.get::<_, Uuid>(0).into(),
            headers: row.get(1),
            body: body.to_vec(),
            position: row.get::<_, Option<i32>>(4).and_then(|place| u32::try_from(place).ok()),
            current: None,
        })
    };
    rows.iter().filter_map(payload).collect()
}

#[async_trait]
impl Queue for PostgresStore {
    fn due(&self) -> watch::Receiver<u64> {
        self.wake.subscribe()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claims, StoreError> {
        claim::claim(self, claim).await
    }

    async fn payloads(&self, receipts: &[ReceiptId]) -> Result<Vec<Payload>, StoreError> {
        let ids: Vec<Uuid> = receipts.iter().map(ReceiptId::as_uuid).collect();
        let sql = include_str!("sql/find_payloads.sql");
        let rows = self.daily.read(async |client| query(client, sql, &[&ids]).await).await?;
        let bytes: usize = rows.iter().map(|row| row.get::<_, &[u8]>(2).len()).sum();
        if bytes <= limits::VERIFY_INLINE_BYTES {
            return Ok(intact(&rows));
        }
        let checked = tokio::task::spawn_blocking(move || intact(&rows)).await;
        checked.map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    async fn extend(
        &self,
        leases: &[(DeliveryId, Lease)],
        by: Duration,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let (receipts, routes) = locks::keys(leases.iter().map(|(delivery, _)| *delivery));
        let epochs: Vec<i64> = leases.iter().map(|(_, lease)| lease.0).collect();
        let sql = include_str!("sql/extend_leases.sql");
        let by = milliseconds(by);
        let rows = self
            .working
            .write(async |client| query(client, sql, &[&receipts, &routes, &epochs, &by]).await)
            .await?;
        let good: HashMap<(DeliveryId, Lease), Timestamp> = rows
            .iter()
            .map(|row| ((locks::delivery(row), Lease(row.get(2))), row.get(3)))
            .collect();
        Ok(leases.iter().map(|lease| good.get(lease).copied()).collect())
    }

    async fn finish(&self, endings: Vec<Ending>) -> Result<Vec<Finish>, StoreError> {
        finish::finish(self, &endings).await
    }

    async fn were_ended(&self, endings: &[Ending]) -> Result<Vec<bool>, StoreError> {
        finish::were_ended(self, endings).await
    }

    async fn rescue(&self, limit: usize) -> Result<Rescued, StoreError> {
        rescue::rescue(self, limit).await
    }

    async fn release_unblocked(&self, limit: usize) -> Result<Unblocked, StoreError> {
        rescue::release_unblocked(self, limit).await
    }

    async fn fill_lanes(&self) -> Result<bool, StoreError> {
        let more = self.general.write(async |client| lanes::fill(client, None).await).await?;
        if more {
            self.wake.everywhere();
        }
        Ok(more)
    }

    async fn hasten(
        &self,
        delivery: DeliveryId,
        apart: Duration,
    ) -> Result<Option<Standing>, StoreError> {
        let (receipt, route) = (delivery.receipt.as_uuid(), delivery.route.0);
        let apart = milliseconds(apart);
        let sql = include_str!("sql/hasten.sql");
        let hastened = self
            .working
            .write(async |client| execute(client, sql, &[&receipt, &route, &apart]).await)
            .await?;
        if hastened > 0 {
            self.wake.everywhere();
        }
        self.standing(delivery).await
    }

    async fn standing(&self, delivery: DeliveryId) -> Result<Option<Standing>, StoreError> {
        let (receipt, route) = (delivery.receipt.as_uuid(), delivery.route.0);
        let sql = include_str!("sql/find_standing.sql");
        let rows =
            self.working.read(async |client| query(client, sql, &[&receipt, &route]).await).await?;
        let standing = |row: &tokio_postgres::Row| {
            Some(Standing {
                state: State::of(row.get(0))?,
                reason: row.get::<_, Option<&str>>(1).and_then(Reason::of),
                attempts: u32::try_from(row.get::<_, i32>(2)).unwrap_or(0),
            })
        };
        Ok(rows.first().and_then(standing))
    }

    async fn tell_breakers(&self, worker: &str, notes: &[BreakerNote]) -> Result<(), StoreError> {
        let routes: Vec<i16> = notes.iter().map(|note| note.route.0).collect();
        let states: Vec<&str> = notes.iter().map(|note| note.state).collect();
        let reasons: Vec<String> = notes.iter().map(|note| words::short(&note.reason)).collect();
        let probes: Vec<Option<i64>> =
            notes.iter().map(|note| note.next_probe.map(milliseconds)).collect();
        let values: [&(dyn ToSql + Sync); 5] = [&worker, &routes, &states, &reasons, &probes];
        let sql = include_str!("sql/tell_breakers.sql");
        self.general.write(async |client| execute(client, sql, &values).await).await.map(drop)
    }
}
