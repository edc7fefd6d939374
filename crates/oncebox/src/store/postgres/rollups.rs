//! What is counted with the writes, added up. Deliveries are counted by triggers.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;
use jiff::Timestamp;

use super::connect::{execute, query};
use super::lists::{reason, state};
use super::{PostgresStore, activity, days, names};
use crate::limits;
use crate::receipt::{RouteNo, SourceNo};
use crate::retention::Keep;
use crate::store::rollups::{minute_of, minute_start, oldest_kept};
use crate::store::{ArrivalCount, DeliveryFlow, Span, StoreError, Upkeep};

/// Folds a step, in a statement of its own. Says whether there may be more.
async fn fold_step(client: &Object) -> Result<bool, StoreError> {
    let (most, types) = (limits::FOLD_ROWS, limits::ROLLUP_TYPES);
    let arrivals = query(client, include_str!("sql/fold_arrivals.sql"), &[&most, &types]).await?;
    let deliveries = query(client, include_str!("sql/fold_deliveries.sql"), &[&most]).await?;
    let is_full = |row: &tokio_postgres::Row| row.get::<_, i64>(0) >= most;
    Ok(arrivals.iter().chain(&deliveries).any(is_full))
}

async fn prune(client: &Object, now: Timestamp) -> Result<(), StoreError> {
    let [minutes, hours] = oldest_kept(now);
    execute(client, include_str!("sql/prune_arrivals.sql"), &[&minutes, &hours]).await?;
    execute(client, include_str!("sql/prune_deliveries.sql"), &[&minutes, &hours]).await?;
    activity::prune(client, now).await
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn lead(&self, who: &str, lasting: Duration) -> Result<bool, StoreError> {
        let seconds = lasting.as_secs_f64();
        let sql = include_str!("sql/lead.sql");
        let led = self.general.write(async |client| execute(client, sql, &[&who, &seconds]).await);
        Ok(led.await? == 1)
    }

    async fn resign(&self, who: &str) -> Result<(), StoreError> {
        let sql = include_str!("sql/resign.sql");
        self.general.write(async |client| execute(client, sql, &[&who]).await).await.map(drop)
    }

    async fn tell_windows(&self, windows: &HashMap<String, Keep>) -> Result<(), StoreError> {
        let node = self.node.as_str();
        self.general.write(async |client| names::tell_windows(client, node, windows).await).await
    }

    async fn windows(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
        self.general.read(async |client| names::windows(client).await).await
    }

    async fn make_ready(&self) -> Result<(), StoreError> {
        self.general.write(async |client| days::make_ahead(client).await).await
    }

    async fn fold(&self, now: Timestamp) -> Result<(), StoreError> {
        while self.general.write(async |client| fold_step(client).await).await? {}
        self.general.write(async |client| prune(client, now).await).await
    }

    async fn arrival_counts(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ArrivalCount>, StoreError> {
        let (span, since, until) = (span.minutes(), minute_of(since), minute_of(until));
        let sql = include_str!("sql/list_arrivals.sql");
        let rows = self
            .general
            .read(async |client| query(client, sql, &[&span, &since, &until]).await)
            .await?;
        let count = |row: &tokio_postgres::Row| ArrivalCount {
            start: minute_start(row.get(0)),
            source: row.get(1),
            outcome: row.get(2),
            event_type: row.get(3),
            count: row.get::<_, i64>(4).unsigned_abs(),
        };
        Ok(rows.iter().map(count).collect())
    }

    async fn delivery_flows(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryFlow>, StoreError> {
        let (span, since, until) = (span.minutes(), minute_of(since), minute_of(until));
        let sql = include_str!("sql/list_flows.sql");
        let rows = self
            .general
            .read(async |client| query(client, sql, &[&span, &since, &until]).await)
            .await?;
        let flow = |row: &tokio_postgres::Row| {
            Ok(DeliveryFlow {
                start: minute_start(row.get(0)),
                route: RouteNo(row.get(1)),
                state: state(row.get(2))?,
                reason: reason(row.get(3))?,
                count: row.get::<_, i64>(4).unsigned_abs(),
            })
        };
        rows.iter().map(flow).collect()
    }
}
