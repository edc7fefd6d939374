//! Which deliveries a replay is about, page by page.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::query;
use super::lists::{reason, state};
use super::locks;
use super::read::like;
use crate::delivery::{DeliveryId, State};
use crate::receipt::{ReceiptId, SourceNo};
use crate::replay::ReplayFilter;
use crate::store::{ReplayCandidate, StoreError};

/// The next candidates in the order of receipt and route.
pub(super) async fn page(
    client: &Object,
    filter: &ReplayFilter,
    after: Option<DeliveryId>,
    limit: usize,
) -> Result<Vec<ReplayCandidate>, StoreError> {
    let bounds = Bounds::of(filter, after, limit);
    let mut rows = Vec::new();
    let (state, odd) = (filter.state.map(State::as_str), filter.means_odd());
    // What no route took has no deliveries.
    if !filter.unrouted && filter.state.is_none_or(|state| !state.is_finished()) {
        let sql = include_str!("sql/page_open.sql");
        rows.extend(read(client, sql, &bounds, filter, &[&state, &odd]).await?);
    }
    if !filter.unrouted && filter.state.is_none_or(State::is_finished) {
        let sql = include_str!("sql/page_finished.sql");
        rows.extend(read(client, sql, &bounds, filter, &[&state, &odd]).await?);
    }
    // What was never taken is in no state.
    if filter.state.is_none() && !filter.fill.is_empty() {
        let sql = include_str!("sql/page_unfilled.sql");
        let bounds = bounds.with_filled_routes(filter);
        rows.extend(read(client, sql, &bounds, filter, &[&filter.unrouted]).await?);
    }
    let mut found = rows.iter().map(candidate).collect::<Result<Vec<_>, _>>()?;
    found.sort_by_key(|candidate| candidate.delivery);
    // One that was finished between two looks is in both; either will do.
    found.dedup_by_key(|candidate| candidate.delivery);
    found.truncate(limit);
    Ok(found)
}

/// Where a page begins and ends.
#[derive(Clone)]
struct Bounds {
    after: (Uuid, i16),
    from: Uuid,
    to: Uuid,
    receipts: Option<Vec<Uuid>>,
    routes: Option<Vec<i16>>,
    limit: i64,
}

impl Bounds {
    fn of(filter: &ReplayFilter, after: Option<DeliveryId>, limit: usize) -> Self {
        let receipt = |time| ReceiptId::floor(time).as_uuid();
        let receipts: Vec<Uuid> = filter.receipts.iter().map(ReceiptId::as_uuid).collect();
        let routes: Vec<i16> = filter.routes.iter().map(|route| route.0).collect();
        Self {
            after: after.map_or((Uuid::nil(), 0), |last| (last.receipt.as_uuid(), last.route.0)),
            from: filter.since.map_or(Uuid::nil(), receipt),
            to: filter.until.map_or(Uuid::max(), receipt),
            receipts: Some(receipts).filter(|receipts| !receipts.is_empty()),
            routes: Some(routes).filter(|routes| !routes.is_empty()),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        }
    }

    /// With the routes that are filled, as far as the filter is about them.
    fn with_filled_routes(&self, filter: &ReplayFilter) -> Self {
        let filled = filter.fill.iter().map(|fill| fill.route);
        let wanted =
            filled.filter(|route| filter.routes.is_empty() || filter.routes.contains(route));
        Self { routes: Some(wanted.map(|route| route.0).collect()), ..self.clone() }
    }
}

async fn read(
    client: &Object,
    sql: &str,
    bounds: &Bounds,
    filter: &ReplayFilter,
    more: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    let event_type = filter.event_type.as_deref().map(like);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![
        &bounds.after.0,
        &bounds.after.1,
        &bounds.from,
        &bounds.to,
        &bounds.receipts,
        &bounds.routes,
        &filter.source,
        &event_type,
        more[0],
        &bounds.limit,
    ];
    values.extend(&more[1..]);
    query(client, sql, &values).await
}

fn candidate(row: &Row) -> Result<ReplayCandidate, StoreError> {
    Ok(ReplayCandidate {
        delivery: locks::delivery(row),
        source: SourceNo(row.get(2)),
        event_type: row.get(3),
        state: row.get::<_, Option<&str>>(4).map(state).transpose()?,
        reason: reason(row.get(5))?,
        stale: row.get::<_, Option<bool>>(6).unwrap_or(false),
        repeated: row.get(7),
        held: row.get::<_, Option<bool>>(8).unwrap_or(false),
        expired: row.get(9),
        event_id: row.get(10),
    })
}
