//! `oncebox migrate up` beside running nodes.
//!
//! A migration that waits for a lock makes everybody who comes after it wait as well, so it waits
//! only for a moment, gives up, and tries again after a pause: running nodes record meanwhile.

use std::time::{Duration, Instant};

use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;

use super::connect::failure;
use super::schema;
use crate::limits;
use crate::store::migrations::{MigrateProgress, Step, Tell};
use crate::store::{Schema, StoreError};

/// Runs what has not run yet, each migration in a transaction of its own: the schema is at no time
/// locked for longer than one of them takes. `oldest` is the oldest epoch that may write
/// afterwards; sessions of older programs are ended before anything changes.
pub(super) async fn up(
    client: &mut Object,
    steps: &[Step],
    oldest: i32,
    patience: Duration,
    tell: Tell<'_>,
) -> Result<Schema, StoreError> {
    let mut turns = Turns { give_up_at: Instant::now() + patience, pause: PAUSE.0, tell };
    loop {
        match try_up(client, steps, oldest, tell).await {
            Ok(()) => return schema::status(client).await,
            Err(error) if is_in_the_way(&error) => turns.wait(error).await?,
            Err(error) => return Err(error),
        }
    }
}

/// The first and the longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

struct Turns<'a> {
    give_up_at: Instant,
    pause: Duration,
    tell: Tell<'a>,
}

impl Turns<'_> {
    /// Waits for the next try, or gives up with the reason of the last.
    async fn wait(&mut self, error: StoreError) -> Result<(), StoreError> {
        if Instant::now() + self.pause > self.give_up_at {
            return Err(error);
        }
        let reason = match error {
            StoreError::Unavailable(reason) | StoreError::UnknownOutcome(reason) => reason,
            other => other.to_string(),
        };
        (self.tell)(MigrateProgress::Waiting { reason, pause: self.pause });
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE.1);
        Ok(())
    }
}

async fn try_up(
    client: &mut Object,
    steps: &[Step],
    oldest: i32,
    tell: Tell<'_>,
) -> Result<(), StoreError> {
    if schema::applied(client).await?.is_empty() {
        return schema::create(client, steps).await;
    }
    let versions: Vec<i32> =
        schema::pending(client, steps).await?.iter().map(|step| step.version).collect();
    fence(client, oldest, tell).await?;
    for step in steps.iter().filter(|step| versions.contains(&step.version)) {
        let transaction = schema::begin(client, limits::MIGRATE_LOCK_WAIT).await?;
        // Another `migrate up` may have run it while this one waited.
        let pending = schema::pending(&transaction, steps).await?;
        if pending.iter().any(|pending| pending.version == step.version) {
            tell(MigrateProgress::Running { version: step.version, name: step.name });
            schema::run(&transaction, step).await?;
        }
        transaction.commit().await.map_err(failure)?;
    }
    Ok(())
}

/// Stops programs of older epochs: raises the epoch, so that they are refused when they connect,
/// then ends the sessions they have, and waits until those are gone. A session that read the old
/// epoch was there before the new one was committed, so it is found.
async fn fence(client: &mut Object, oldest: i32, tell: Tell<'_>) -> Result<(), StoreError> {
    if schema::epoch(client).await?.is_none_or(|epoch| epoch < oldest) {
        let transaction = schema::begin(client, limits::MIGRATE_LOCK_WAIT).await?;
        schema::raise_epoch(&transaction, oldest).await?;
        transaction.commit().await.map_err(failure)?;
    }
    let raised = client.query_one("SELECT clock_timestamp()", &[]).await.map_err(failure)?;
    let raised_at: jiff::Timestamp = raised.get(0);
    let sql = include_str!("sql/end_older_sessions.sql");
    let give_up_at = Instant::now() + limits::FENCE_WAIT;
    let mut told = false;
    loop {
        let row = client.query_one(sql, &[&oldest, &raised_at]).await.map_err(failure)?;
        let sessions: i64 = row.get(0);
        if sessions == 0 {
            return Ok(());
        }
        if !told {
            tell(MigrateProgress::Fencing { sessions });
            told = true;
        }
        if Instant::now() > give_up_at {
            let reason = format!("{sessions} sessions of an older oncebox do not end");
            return Err(StoreError::Unavailable(reason));
        }
        tokio::time::sleep(limits::FENCE_LOOK).await;
    }
}

/// Whether a migration could not run because other sessions hold what it needs. Nothing was
/// changed then.
fn is_in_the_way(error: &StoreError) -> bool {
    let codes = [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED];
    let (StoreError::Unavailable(reason) | StoreError::UnknownOutcome(reason)) = error else {
        return false;
    };
    codes.iter().any(|code| reason.contains(code.code()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use oncebox_testkit::postgres::{self, Database};
    use tokio::sync::mpsc;
    use tokio_postgres::{Client, NoTls};

    use super::super::connect::{Connector, Use, no_connection};
    use super::super::{PostgresOptions, PostgresStore};
    use super::*;
    use crate::clock::{Clock, SystemClock};
    use crate::receipt::{Arrival, Recorded, SourceNo};
    use crate::store::migrations::EPOCH;
    use crate::store::{Purpose, Store};

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn database() -> Database {
        tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap()
    }

    async fn serve(url: &str) -> Result<Arc<PostgresStore>, StoreError> {
        PostgresStore::open(PostgresOptions::new(url), Purpose::Serve).await.map(Arc::new)
    }

    async fn session(url: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn migrator(url: &str) -> Object {
        let pool = Connector::new(url).unwrap().pool(1, Use::General).unwrap();
        pool.get().await.map_err(|error| no_connection(&error)).unwrap()
    }

    /// Every migration there is, and one more.
    fn one_more(sql: &'static str) -> Vec<Step> {
        let known = schema::STEPS.iter();
        let known =
            known.map(|step| Step { version: step.version, name: step.name, sql: step.sql });
        known.chain([Step { version: 9_999, name: "one_more", sql }]).collect()
    }

    /// Records an event; none may wait as long as senders do.
    async fn record(store: &PostgresStore, source: SourceNo, n: usize) {
        let now = SystemClock.now();
        let receipt = store.mint().mint(now);
        let arrival = Arrival::new(receipt, source, now, format!("evt_{n}"), "t", "{}");
        let recorded = tokio::time::timeout(limits::COMMIT_WAIT, store.record([arrival].into()));
        let recorded = recorded.await.expect("a sender hears 503").unwrap();
        assert_eq!(recorded, [Recorded::Accepted]);
    }

    /// A reader, as `pg_dump`, holds what the migration needs to lock.
    #[tokio::test(flavor = "multi_thread")]
    async fn nodes_record_while_a_migration_waits_for_a_reader() {
        let database = database().await;
        let url = database.url().to_owned();
        let store = serve(&url).await.unwrap();
        let source = store.register_source("stripe", None).await.unwrap();
        let reader = session(&url).await;
        reader
            .batch_execute("BEGIN; LOCK TABLE oncebox.identities IN ACCESS SHARE MODE")
            .await
            .unwrap();
        let (told, mut heard) = mpsc::unbounded_channel();
        let mut client = migrator(&url).await;
        let migrating = tokio::spawn(async move {
            let steps = one_more("ALTER TABLE oncebox.identities ADD COLUMN probe integer");
            let tell = move |progress| drop(told.send(progress));
            up(&mut client, &steps, EPOCH, PATIENCE, &tell).await
        });
        let (mut recorded, mut waits) = (0, 0);
        while waits < 3 {
            record(&store, source, recorded).await;
            recorded += 1;
            while let Ok(progress) = heard.try_recv() {
                waits += usize::from(matches!(progress, MigrateProgress::Waiting { .. }));
            }
        }
        assert!(!migrating.is_finished());
        reader.batch_execute("COMMIT").await.unwrap();
        migrating.await.unwrap().unwrap();
        record(&store, source, recorded).await;
        let ran = "SELECT count(*) FROM oncebox.migrations WHERE version = 9999";
        assert_eq!(postgres::query(&url, ran), "1");
        store.close().await;
        // What a newer release has run is no hindrance: its epoch admits us.
        serve(&url).await.unwrap().close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_migration_gives_up_after_its_time() {
        let database = database().await;
        let url = database.url().to_owned();
        serve(&url).await.unwrap().close().await;
        let reader = session(&url).await;
        reader.batch_execute("BEGIN; LOCK TABLE oncebox.routes").await.unwrap();
        let steps = one_more("ALTER TABLE oncebox.routes ADD COLUMN probe integer");
        let mut client = migrator(&url).await;
        let error = up(&mut client, &steps, EPOCH, Duration::ZERO, &|_| {}).await.unwrap_err();
        assert!(is_in_the_way(&error), "{error}");
    }

    /// A release that the previous one cannot live with stops it before anything changes.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_node_of_an_older_epoch_is_fenced() {
        let database = database().await;
        let url = database.url().to_owned();
        let store = serve(&url).await.unwrap();
        let source = store.register_source("stripe", None).await.unwrap();
        record(&store, source, 0).await;
        // Neither an application of the user nor a session of the new epoch is ended.
        let bystander = session(&url).await;
        let newer = session(&format!("{url}?application_name=oncebox/e{}", EPOCH + 1)).await;
        let (told, mut heard) = mpsc::unbounded_channel();
        let tell = move |progress| drop(told.send(progress));
        let mut client = migrator(&url).await;
        up(&mut client, schema::STEPS, EPOCH + 1, PATIENCE, &tell).await.unwrap();
        assert!(matches!(heard.try_recv(), Ok(MigrateProgress::Fencing { sessions: 1.. })));

        let now = SystemClock.now();
        let arrival = Arrival::new(store.mint().mint(now), source, now, "evt_1", "t", "{}");
        for _ in 0..20 {
            let refused = store.record([arrival.clone()].into()).await.unwrap_err().to_string();
            if refused.contains("fenced") {
                break;
            }
        }
        let refused = store.record([arrival].into()).await.unwrap_err().to_string();
        assert!(refused.contains("fenced"), "{refused}");
        assert!(store.health().await.unwrap_err().to_string().contains("fenced"));
        let restarted = serve(&url).await.err().expect("it is fenced");
        assert!(matches!(restarted, StoreError::Unfit { .. }), "{restarted}");
        assert_eq!(postgres::query(&url, "SELECT count(*) FROM oncebox.receipts"), "1");
        bystander.simple_query("SELECT 1").await.unwrap();
        newer.simple_query("SELECT 1").await.unwrap();
    }
}
