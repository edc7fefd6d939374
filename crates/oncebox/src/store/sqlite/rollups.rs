//! What is counted with the writes. New deliveries are counted once for a batch; triggers count
//! how they move and go.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::connection::{failure, in_transaction, run};
use super::rows::{halves, reason_if_any, state};
use super::{SqliteStore, activity, names};
use crate::limits;
use crate::receipt::{Arrival, RouteNo, SourceNo};
use crate::retention::Keep;
use crate::store::rollups::{minute_of, minute_start, oldest_kept};
use crate::store::{ArrivalCount, DeliveryFlow, Repeat, Span, StoreError, Upkeep};

/// What a batch recorded.
#[derive(Default)]
pub(super) struct Counts<'a> {
    /// Minute, source, outcome and type.
    arrivals: BTreeMap<(i32, i16, &'static str, &'a str), u32>,
    deliveries: Deliveries,
}

/// New deliveries of a transaction, by route, state and reason.
#[derive(Default)]
pub(super) struct Deliveries(BTreeMap<(i16, &'static str, &'static str), u32>);

impl<'a> Counts<'a> {
    /// Notes that an arrival has become a receipt.
    pub(super) fn add(&mut self, arrival: &'a Arrival, outcome: &'static str) {
        let minute = minute_of(arrival.received_at);
        let key = (minute, arrival.source.0, outcome, arrival.event_type.as_str());
        *self.arrivals.entry(key).or_default() += 1;
    }

    pub(super) fn deliveries(&mut self) -> &mut Deliveries {
        &mut self.deliveries
    }

    /// Writes a row for each source and type, and adds to those of routes.
    pub(super) fn write(&self, transaction: &Connection) -> rusqlite::Result<()> {
        for ((minute, source, outcome, event_type), count) in &self.arrivals {
            let values = params![minute, source, outcome, event_type, count];
            run(transaction, include_str!("sql/count_arrivals.sql"), values)?;
        }
        self.deliveries.write(transaction)
    }
}

impl Deliveries {
    /// Notes that a delivery was inserted.
    pub(super) fn add(
        &mut self,
        route: RouteNo,
        state: &'static str,
        reason: Option<&'static str>,
    ) {
        *self.0.entry((route.0, state, reason.unwrap_or_default())).or_default() += 1;
    }

    pub(super) fn write(&self, transaction: &Connection) -> rusqlite::Result<()> {
        for ((route, state, reason), count) in &self.0 {
            let values = params![route, state, reason, count];
            run(transaction, include_str!("sql/count_deliveries.sql"), values)?;
        }
        Ok(())
    }
}

/// Counts a delivery that was opened again or made later.
pub(super) fn count_opened(transaction: &Connection, route: RouteNo) -> rusqlite::Result<()> {
    let mut opened = Deliveries::default();
    opened.add(route, "received", None);
    opened.write(transaction)
}

/// Counts repeated deliveries of a receipt. Twins and conflicts were counted with their own.
pub(super) fn count_repeat(transaction: &Connection, repeat: &Repeat) -> rusqlite::Result<()> {
    let values = params![halves(repeat.receipt).0, minute_of(repeat.last_at), repeat.duplicates];
    run(transaction, include_str!("sql/count_repeats.sql"), values).map(drop)
}

fn fold(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    in_transaction(connection, |transaction| {
        run(transaction, include_str!("sql/fold_arrivals.sql"), [limits::ROLLUP_TYPES])?;
        run(transaction, include_str!("sql/clear_arrivals.sql"), [])?;
        run(transaction, include_str!("sql/fold_deliveries.sql"), [minute_of(now)])?;
        run(transaction, include_str!("sql/mark_folded.sql"), [])?;
        let kept = oldest_kept(now);
        run(transaction, include_str!("sql/prune_arrivals.sql"), kept)?;
        run(transaction, include_str!("sql/prune_deliveries.sql"), kept)?;
        activity::prune(transaction, now)
    })
}

fn arrivals(connection: &Connection, within: [i32; 3]) -> rusqlite::Result<Vec<ArrivalCount>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_arrivals.sql"))?;
    let rows = statement.query_map(within, |row| {
        Ok(ArrivalCount {
            start: minute_start(row.get(0)?),
            source: row.get(1)?,
            outcome: row.get(2)?,
            event_type: row.get(3)?,
            count: row.get::<_, i64>(4)?.unsigned_abs(),
        })
    })?;
    rows.collect()
}

fn flows(connection: &Connection, within: [i32; 3]) -> rusqlite::Result<Vec<DeliveryFlow>> {
    let mut statement = connection.prepare_cached(include_str!("sql/list_flows.sql"))?;
    let rows = statement.query_map(within, |row| {
        Ok(DeliveryFlow {
            start: minute_start(row.get(0)?),
            route: RouteNo(row.get(1)?),
            state: state(row, 2)?,
            reason: reason_if_any(row, 3)?,
            count: row.get::<_, i64>(4)?.unsigned_abs(),
        })
    })?;
    rows.collect()
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn lead(&self, _: &str, _: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn resign(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tell_windows(&self, windows: &HashMap<String, Keep>) -> Result<(), StoreError> {
        let windows = windows.clone();
        self.writer.run(move |db| names::tell_windows(db, &windows)).await
    }

    async fn windows(&self) -> Result<Vec<(SourceNo, Keep)>, StoreError> {
        self.readers.run(names::windows).await
    }

    async fn make_ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn fold(&self, now: Timestamp) -> Result<(), StoreError> {
        self.writer.run(move |db| fold(db, now)).await
    }

    async fn arrival_counts(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ArrivalCount>, StoreError> {
        let within = [i32::from(span.minutes()), minute_of(since), minute_of(until)];
        self.readers.run(move |db| arrivals(db, within).map_err(failure)).await
    }

    async fn delivery_flows(
        &self,
        span: Span,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryFlow>, StoreError> {
        let within = [i32::from(span.minutes()), minute_of(since), minute_of(until)];
        self.readers.run(move |db| flows(db, within).map_err(failure)).await
    }
}
