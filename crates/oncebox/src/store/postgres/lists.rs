//! What operators look at.

use std::time::Duration;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::connect::query;
use crate::receipt::RouteNo;
use crate::route::RouteRules;
use crate::store::{RouteView, StoreError, words};

/// Every route, with its rules.
pub(super) async fn routes(client: &impl GenericClient) -> Result<Vec<RouteView>, StoreError> {
    let rows = query(client, include_str!("sql/list_routes.sql"), &[]).await?;
    Ok(rows.iter().map(route).collect())
}

fn route(row: &Row) -> RouteView {
    let count = |column: usize| u32::try_from(row.get::<_, i32>(column)).unwrap_or(0);
    RouteView {
        route: RouteNo(row.get(0)),
        name: row.get(1),
        paused_at: row.get(2),
        rules: RouteRules {
            max_attempts: count(3),
            base: duration(row.get(4)),
            cap: duration(row.get(5)),
            longest_wait: duration(row.get(6)),
            max_snoozes: count(7),
            ordered: row.get(8),
            skip_stale: row.get(9),
            on_dead: words::on_dead(row.get(10)).unwrap_or_default(),
            same_operation: row.get::<_, Option<i64>>(11).map(duration),
        },
    }
}

/// A length of time as it is kept.
fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
