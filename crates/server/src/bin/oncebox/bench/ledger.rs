//! A ledger with many effects in it, as after years of work.

use std::path::Path;
use std::time::{Duration, Instant};

use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::RouteNo;
use oncebox::rusqlite::{Connection, ErrorCode};
use tokio_postgres::NoTls;

use super::bed::failed;
use super::load::Ids;
use super::subject::Subject;
use crate::exit::Failure;

/// The key of a number. As providers' ids do, keys grow with time or lie far apart, in no order.
pub(crate) fn key(ids: Ids, number: u64) -> String {
    let place = match ids {
        Ids::Stripe => number,
        Ids::Random => number * FACTOR % PRIME,
    };
    format!("receipt-email:in_{place:010}LkdIwHu7ixl4Ozz")
}

const FACTOR: u64 = 920_419_823;
const PRIME: u64 = 1_000_000_007;

/// What to fill a ledger with.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) route: RouteNo,
    pub(crate) ids: Ids,
    pub(crate) count: u64,
}

impl Filling {
    /// Where a key lies, and which numbers go in each round. Rows are inserted in the order of
    /// their keys. Random ones in two rounds: the second splits the pages that the first has
    /// filled, which leaves them about as full as pages are after years of keys in random order.
    fn rounds(self) -> (String, &'static [&'static str]) {
        match self.ids {
            Ids::Stripe => ("n".into(), &["true"]),
            Ids::Random => (format!("(n * {FACTOR} % {PRIME})"), &["n % 10 < 7", "n % 10 >= 7"]),
        }
    }
}

/// Puts effects with the first keys into a ledger that nobody has open.
pub(crate) async fn fill(subject: &Subject, filling: Filling) -> Result<(), Failure> {
    match subject {
        Subject::Nothing => Ok(()),
        Subject::Postgres(url) => fill_postgres(url, filling).await.map_err(failed),
        Subject::Sqlite(path) => {
            let path = path.clone();
            let filled = tokio::task::spawn_blocking(move || {
                fill_sqlite(&path, filling).map_err(failed)?;
                // What is left to write must not be charged to what is measured.
                Ok(std::fs::File::open(&path)?.sync_all()?)
            });
            filled.await.map_err(failed)?
        }
    }
}

async fn fill_postgres(url: &str, filling: Filling) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let find = "SELECT indexdef FROM pg_indexes WHERE indexname = 'effects_owner'";
    let index: String = client.query_one(find, &[]).await?.get(0);
    client.batch_execute("DROP INDEX oncebox.effects_owner").await?;
    let (start, route, count) = (start(), filling.route.0, filling.count);
    let (place, rounds) = filling.rounds();
    for round in rounds {
        let sql = format!(
            "INSERT INTO oncebox.effects (key, kind, state, receipt, route, epoch, attempt, at)
             SELECT
                 'receipt-email:in_' || lpad({place}::text, 10, '0') || 'LkdIwHu7ixl4Ozz',
                 'once', 'done',
                 (lpad(to_hex({start} + n), 12, '0') || '70008000000000000000')::uuid,
                 {route}, 1, 1, to_timestamp(({start} + n) / 1000.0)
             FROM generate_series(0::bigint, {count} - 1) AS n
             WHERE {round}
             ORDER BY {place}"
        );
        client.batch_execute(&sql).await?;
    }
    client.batch_execute(&index).await?;
    client.batch_execute("VACUUM (ANALYZE) oncebox.effects").await?;
    client.batch_execute("CHECKPOINT").await
}

fn fill_sqlite(path: &Path, filling: Filling) -> oncebox::rusqlite::Result<()> {
    let db = Connection::open(path)?;
    wait_for_others(&db)?;
    // Should it fail half-way the file is thrown away.
    db.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;",
    )?;
    let find = "SELECT sql FROM sqlite_schema WHERE name = 'effects_owner'";
    let index: String = db.query_row(find, [], |row| row.get(0))?;
    db.execute_batch("DROP INDEX effects_owner")?;
    let (start, route, count) = (start(), filling.route.0, filling.count);
    let (place, rounds) = filling.rounds();
    for round in rounds {
        db.execute_batch(&format!(
            "WITH RECURSIVE series (n) AS (
                 SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < {count}
             )
             INSERT INTO effects (key, kind, state, receipt, tail, route, epoch, attempt, at)
             SELECT
                 printf('receipt-email:in_%010dLkdIwHu7ixl4Ozz', {place}),
                 'once', 'done', (({start} + n) << 16) | 28672, 0, {route}, 1, 1, {start} + n
             FROM series
             WHERE {round}
             ORDER BY {place}"
        ))?;
    }
    db.execute_batch(&index)?;
    db.execute_batch("PRAGMA journal_mode = WAL")
}

/// Leaves WAL mode, for which nobody else may have the file open. The threads of a store that was
/// closed may take a moment to end.
fn wait_for_others(db: &Connection) -> oncebox::rusqlite::Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let left = db.execute_batch("PRAGMA journal_mode = DELETE");
        let code = left.as_ref().err().and_then(oncebox::rusqlite::Error::sqlite_error_code);
        if code != Some(ErrorCode::DatabaseBusy) || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// When the first effect was done, in milliseconds: a year ago.
fn start() -> i64 {
    SystemClock.now().as_millisecond() - 365 * 86_400_000
}

#[cfg(test)]
mod tests {
    use super::{Ids, key};

    #[test]
    fn keys_are_spread_or_grow() {
        assert_eq!(key(Ids::Stripe, 12), "receipt-email:in_0000000012LkdIwHu7ixl4Ozz");
        let keys = [0, 1, 2].map(|number| key(Ids::Random, number));
        assert_eq!(keys[1], "receipt-email:in_0920419823LkdIwHu7ixl4Ozz");
        assert_eq!(keys[2], "receipt-email:in_0840839639LkdIwHu7ixl4Ozz");
        assert!(keys[0] < keys[2] && keys[2] < keys[1]);
    }
}
