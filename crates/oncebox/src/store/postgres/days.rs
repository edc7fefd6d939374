//! Tables for each day: made ahead, and taken out whole once a day has expired.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::error::SqlState;
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::connect::{execute, failure, is_locked, query};
use super::{PostgresStore, expire};
use crate::limits;
use crate::receipt::{Arrival, ReceiptId};
use crate::store::{DayStep, ExpireRange, StoreError};

const DAY_MS: u64 = 86_400_000;

/// The day in which a receipt lies, counted from 1970.
fn day_of(receipt: ReceiptId) -> i32 {
    let milliseconds = receipt.as_uuid().as_u64_pair().0 >> 16;
    i32::try_from(milliseconds / DAY_MS).unwrap_or(i32::MAX)
}

/// The id that all receipts of a day and of later ones come after.
fn first_of(day: i32) -> ReceiptId {
    let milliseconds = u64::try_from(day).unwrap_or(0) * DAY_MS;
    Uuid::from_u64_pair(milliseconds << 16, 0).into()
}

/// Makes the days of the next two weeks, by the clock of the database.
pub(super) async fn make_ahead(client: &Object) -> Result<(), StoreError> {
    let sql = include_str!("sql/make_days_ahead.sql");
    query(client, sql, &[&limits::DAYS_AHEAD]).await.map(drop)
}

/// Whether something could not be written because there is no table for its day: a clock is far
/// ahead, or no node has led for two weeks.
pub(super) fn is_missing(error: &StoreError) -> bool {
    // A rule that a row breaks is an error of the data.
    let code = SqlState::CHECK_VIOLATION.code();
    matches!(error, StoreError::Unavailable(reason) if reason.contains(code))
}

/// Makes the days in which the receipts of a batch lie.
pub(super) async fn make_for(store: &PostgresStore, batch: &[Arrival]) -> Result<(), StoreError> {
    let days: BTreeSet<i32> = batch.iter().map(|arrival| day_of(arrival.receipt)).collect();
    let days = Vec::from_iter(days);
    info!(?days, "making tables for days that no node has made ahead");
    let sql = include_str!("sql/make_days.sql");
    store.general.write(async |client| query(client, sql, &[&days]).await).await.map(drop)
}

/// Locks the days of receipts until the transaction ends, and says of which receipts the day is
/// closing.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    receipts: impl Iterator<Item = ReceiptId> + Clone,
) -> Result<HashSet<ReceiptId>, StoreError> {
    let days = Vec::from_iter(receipts.clone().map(day_of).collect::<BTreeSet<i32>>());
    let rows = query(transaction, include_str!("sql/lock_days.sql"), &[&days]).await?;
    let closing: HashSet<i32> =
        rows.iter().filter(|row| row.get(1)).map(|row| row.get(0)).collect();
    Ok(receipts.filter(|receipt| closing.contains(&day_of(*receipt))).collect())
}

/// A step towards having all days gone that end before the end of a range, the oldest first.
pub(super) async fn expire(
    store: &PostgresStore,
    range: &ExpireRange,
) -> Result<DayStep, StoreError> {
    let sql = include_str!("sql/list_days.sql");
    let rows = store.general.read(async |client| query(client, sql, &[]).await).await?;
    let mut oldest = None;
    for row in &rows {
        let (day, state): (i32, &str) = (row.get(0), row.get(1));
        match state {
            "gone" => return count_out(store, day).await,
            "open" | "closing" if oldest.is_none() => oldest = Some(day),
            _ => {}
        }
    }
    let is_over = |floor| DayStep { removed: 0, floor: Some(floor) };
    let Some(day) = oldest else { return Ok(is_over(range.before)) };
    if first_of(day + 1) > range.before {
        return Ok(is_over(first_of(day)));
    }
    Ok(match close(store, day, range).await? {
        Closed::Out => DayStep { removed: 0, floor: None },
        Closed::Crowded => is_over(range.before),
        Closed::Busy => {
            warn!(day, "a day that expired stays for now: a long transaction is in its tables");
            // Not for ever: a day later its receipts go one by one.
            let is_late = first_of(day + 2) <= range.before;
            is_over(if is_late { range.before } else { first_of(day) })
        }
    })
}

/// How an attempt to take a day out ended.
enum Closed {
    Out,
    /// So much of it is unfinished that its receipts are better removed one by one.
    Crowded,
    /// Another transaction has locked the day or its tables.
    Busy,
}

/// Takes a day out. No replay opens a delivery of it again meanwhile.
async fn close(store: &PostgresStore, day: i32, range: &ExpireRange) -> Result<Closed, StoreError> {
    let mark = async |state: &str| {
        let sql = include_str!("sql/mark_day.sql");
        store.general.write(async |client| execute(client, sql, &[&day, &state]).await).await
    };
    match mark("closing").await {
        Err(error) if is_locked(&error) => return Ok(Closed::Busy),
        marked => marked?,
    };
    let closed = match discard_odd(store, day, range).await {
        Ok(()) => take_out(store, day).await,
        Err(error) => Err(error),
    };
    if !matches!(closed, Ok(Closed::Out))
        && let Err(error) = mark("open").await
    {
        // The next pass goes on with it.
        warn!(day, %error, "a day that expired is still closing");
    }
    closed
}

async fn take_out(store: &PostgresStore, day: i32) -> Result<Closed, StoreError> {
    let most = limits::DAY_UNFINISHED;
    let wait = super::names::milliseconds(limits::DAY_LOCK_WAIT);
    let sql = include_str!("sql/take_out_day.sql");
    for _ in 0..TRIES {
        let taken =
            store.general.write(async |client| query(client, sql, &[&day, &most, &wait]).await);
        match taken.await {
            Ok(rows) => {
                return Ok(match rows.first().and_then(|row| row.get::<_, Option<&str>>(0)) {
                    Some("out") => Closed::Out,
                    Some(_) => Closed::Crowded,
                    None => Closed::Busy,
                });
            }
            Err(error) if is_locked(&error) => {
                debug!(day, %error, "a day that expired cannot be taken out yet");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Closed::Busy)
}

/// How often a day is tried in a pass, and the pause between two tries: a transaction that has
/// written a receipt or an ending is in the way until it ends.
const TRIES: usize = 8;
const PAUSE: Duration = Duration::from_millis(100);

/// Discards what is held as twin or conflict, as far as nothing else of its receipt is open.
async fn discard_odd(
    store: &PostgresStore,
    day: i32,
    range: &ExpireRange,
) -> Result<(), StoreError> {
    let (first, end) = (first_of(day).as_uuid(), first_of(day + 1).as_uuid());
    let most = i64::from(limits::EXPIRE_ROWS);
    let sql = include_str!("sql/find_odd_of_day.sql");
    loop {
        let discarded = store.daily.write(async |client| {
            let rows = query(client, sql, &[&first, &end, &most]).await?;
            let odd: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
            let transaction = client.transaction().await.map_err(failure)?;
            query(&transaction, include_str!("sql/lock_expired.sql"), &[&odd]).await?;
            expire::discard_odd(&transaction, &odd, &range.discard()).await?;
            transaction.commit().await.map_err(failure)?;
            Ok(odd.len())
        });
        if discarded.await? < usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}

/// Counts out a part of a day that is out of the tables; drops it once all is counted.
async fn count_out(store: &PostgresStore, day: i32) -> Result<DayStep, StoreError> {
    let most = limits::DAY_COUNTED;
    let sql = include_str!("sql/count_out_day.sql");
    let rows = store.general.write(async |client| query(client, sql, &[&day, &most]).await).await?;
    let removed: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(DayStep { removed: usize::try_from(removed).unwrap_or(0), floor: None })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_day_begins_with_its_first_millisecond() {
        let midnight = Timestamp::from_second(20_774 * 86_400).unwrap();
        let just_before = Timestamp::from_millisecond(20_774 * 86_400_000 - 1).unwrap();
        assert_eq!(day_of(ReceiptId::floor(midnight)), 20_774);
        assert_eq!(day_of(ReceiptId::floor(just_before)), 20_773);
        assert!(first_of(20_774) < ReceiptId::floor(midnight));
        assert!(first_of(20_774) > ReceiptId::floor(just_before));
        assert_eq!(day_of(first_of(20_774)), 20_774);
    }
}
