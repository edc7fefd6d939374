//! The transaction of a handler: its own tables, the verbs, and the end of the attempt in one.

use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Use, failure};
use super::names::milliseconds;
use crate::delivery::{Claimed, DeliveryId, Next, Outcome};
use crate::effect::{EffectKey, EffectKind, EffectName, Message, Sent, Under};
use crate::handler::{Decision, DoneBy, Failure};
use crate::store::{StoreError, checks};

/// The lease is not good any more; see the migrations.
const LEASE_LOST: &str = "OB409";

/// What taking a key in a transaction found.
pub(crate) enum Took {
    /// Nobody had it.
    First,
    /// It was done before.
    Already(DoneBy),
    /// Somebody began it and has not said what came of it.
    Open {
        /// Its key in the ledger.
        key: String,
    },
}

/// How an attempt was ended.
pub(crate) enum Ended {
    /// It is committed; the delivery goes there.
    Surely(Next),
    /// Whether it is committed is not known.
    Perhaps(Next, String),
    /// There was no transaction, so it is for others to end it.
    Not,
}

/// A place for the connection of one handler. One that is dropped before it was given back, as
/// when the handler is cut short, may have a statement running: it is not used again.
#[derive(Default)]
pub(crate) struct Slot(Option<Object>);

impl Slot {
    /// Nothing runs on the connection. Whoever has it next sees nothing of what was set in its
    /// session.
    pub(crate) fn give_back(mut self, store: &PostgresStore) {
        if let Some(client) = self.0.take() {
            store.connector.renew(&client, Use::General);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// The work of one handler. Its transaction begins when it is first needed.
pub(crate) struct Handling<'a> {
    store: &'a PostgresStore,
    under: Under,
    slot: Option<&'a mut Slot>,
    transaction: Option<Transaction<'a>>,
    /// Whether something becomes due once it commits.
    due: bool,
    /// How many stages are under way, one within the other.
    stages: u32,
}

impl<'a> Handling<'a> {
    pub(crate) fn new(store: &'a PostgresStore, under: Under, slot: &'a mut Slot) -> Self {
        Self { store, under, slot: Some(slot), transaction: None, due: false, stages: 0 }
    }

    /// The transaction; begun now if it is not.
    pub(crate) async fn transaction(&mut self) -> Result<&mut Transaction<'a>, Failure> {
        if self.transaction.is_none() {
            let slot = self.slot.take();
            let slot = slot.ok_or_else(|| Failure::retry("the transaction was not begun"))?;
            self.transaction = Some(begin(self.store, self.under, slot).await?);
        }
        Ok(self.transaction.as_mut().expect("it was just begun"))
    }

    pub(crate) async fn take(
        &mut self,
        name: &EffectName,
        result: Option<&str>,
    ) -> Result<Took, Failure> {
        checks::result(result)?;
        let (kind, text) = match name {
            EffectName::Key(key) => (EffectKind::Once, key),
            EffectName::Step(step) => (EffectKind::Step, step),
        };
        checks::key(name, self.under.delivery.receipt, "", "")?;
        let (receipt, route, lease) = self.leased();
        let values: [&(dyn ToSql + Sync); 6] =
            [&receipt, &route, &lease, &kind.as_str(), &text.as_str(), &result];
        let rows = self.query(include_str!("sql/take_effect.sql"), &values).await?;
        let row = rows.first().ok_or_else(Failure::lease_lost)?;
        match row.get(1) {
            "first" => Ok(Took::First),
            "already" => Ok(Took::Already(self.done_by(row.get(0)).await?)),
            _ => Ok(Took::Open { key: row.get(0) }),
        }
    }

    async fn done_by(&mut self, key: &str) -> Result<DoneBy, Failure> {
        let rows = self.query(include_str!("sql/find_done.sql"), &[&key]).await?;
        let row = rows.first().ok_or_else(|| Failure::retry("the effect is gone again"))?;
        Ok(DoneBy {
            receipt: row.get::<_, Uuid>(0).into(),
            route: row.get(1),
            attempt: u32::try_from(row.get::<_, i32>(2)).unwrap_or(0),
            at: row.get(3),
            result: row.get(4),
        })
    }

    /// False if this attempt has not run that step.
    pub(crate) async fn set_result(
        &mut self,
        step: &EffectKey,
        result: &str,
    ) -> Result<bool, Failure> {
        checks::result(Some(result))?;
        let (receipt, route, lease) = self.leased();
        let values: [&(dyn ToSql + Sync); 5] = [&receipt, &route, &lease, &step.as_str(), &result];
        let transaction = self.transaction().await?;
        let statement = transaction.prepare_cached(include_str!("sql/set_result.sql")).await;
        let set = transaction.execute(&statement.map_err(refused)?, &values).await;
        Ok(set.map_err(refused)? == 1)
    }

    pub(crate) async fn get_result(&mut self, step: &EffectKey) -> Result<Option<String>, Failure> {
        let (receipt, route, _) = self.leased();
        let values: [&(dyn ToSql + Sync); 3] = [&receipt, &route, &step.as_str()];
        let rows = self.query(include_str!("sql/find_result.sql"), &values).await?;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    pub(crate) async fn send(&mut self, message: &Message) -> Result<Sent, Failure> {
        checks::message(message)?;
        let (receipt, route, lease) = self.leased();
        let group = message.group.as_ref().map(EffectKey::as_str);
        let payload: &[u8] = &message.payload;
        let values: [&(dyn ToSql + Sync); 8] = [
            &receipt,
            &route,
            &lease,
            &message.destination,
            &message.key.as_str(),
            &payload,
            &group,
            &message.content_type,
        ];
        let rows = self.query(include_str!("sql/send.sql"), &values).await?;
        let Some(row) = rows.first() else { return Ok(Sent::LeaseLost) };
        let written = || row.get::<_, Uuid>(1).into();
        Ok(match row.get(0) {
            "new" => {
                self.due = true;
                Sent::New(written())
            }
            "before" => Sent::Before(written()),
            "conflict" => Sent::Conflict(written()),
            _ => Sent::NoDestination,
        })
    }

    /// None if the lease is not good any more.
    pub(crate) async fn advance(
        &mut self,
        object: &str,
        version: i64,
    ) -> Result<Option<bool>, Failure> {
        checks::object(object)?;
        let (receipt, route, lease) = self.leased();
        let values: [&(dyn ToSql + Sync); 5] = [&receipt, &route, &lease, &object, &version];
        let rows = self.query(include_str!("sql/advance.sql"), &values).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Begins a stage, in a savepoint. One that is dropped on the way stays begun.
    pub(crate) async fn begin_stage(&mut self) -> Result<(), Failure> {
        self.stages += 1;
        self.run("SAVEPOINT oncebox_step").await
    }

    /// Ends the last stage that was begun, keeping what it wrote.
    pub(crate) async fn keep_stage(&mut self) -> Result<(), Failure> {
        self.run("RELEASE SAVEPOINT oncebox_step").await?;
        self.stages -= 1;
        Ok(())
    }

    /// Ends the last stage that was begun, taking back what it wrote, also after an error of
    /// PostgreSQL.
    pub(crate) async fn undo_stage(&mut self) -> Result<(), Failure> {
        // What failed may be a statement that was prepared before its table changed.
        self.transaction().await?.statement_cache.clear();
        self.run("ROLLBACK TO SAVEPOINT oncebox_step; RELEASE SAVEPOINT oncebox_step").await?;
        self.stages -= 1;
        Ok(())
    }

    async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.transaction().await?.batch_execute(sql).await.map_err(refused)
    }

    /// Ends the attempt and commits everything.
    pub(crate) async fn finish(
        mut self,
        claimed: &Claimed,
        decision: &Decision,
    ) -> Result<Ended, Failure> {
        if self.transaction.is_none() {
            return match self.slot {
                Some(_) => Ok(Ended::Not),
                // As after any error in it that is passed over: nothing stands.
                None => Err(Failure::retry("the transaction could not be begun")),
            };
        }
        if self.stages > 0 {
            return Err(Failure::cut_stage());
        }
        let patience = self.store.patience;
        let next = patiently(patience, self.end(claimed, decision)).await??;
        let due = self.due || claimed.guarded || matches!(next, Next::Retry(Duration::ZERO));
        let store = self.store;
        let transaction = self.transaction.take().expect("it was not none");
        // A commit that waits for a standby is silent, too, so this is long.
        let committed = match tokio::time::timeout(patience, transaction.commit()).await {
            Ok(committed) => committed.map_err(failure),
            Err(_) => Err(StoreError::UnknownOutcome("the connection says nothing".into())),
        };
        if due {
            store.wake.everywhere();
        }
        match committed {
            Ok(()) => Ok(Ended::Surely(next)),
            Err(StoreError::UnknownOutcome(reason)) => Ok(Ended::Perhaps(next, reason)),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes everything back. False if the connection must not be used again.
    pub(crate) async fn roll_back(mut self) -> bool {
        let Some(transaction) = self.transaction.take() else { return self.slot.is_some() };
        // What failed may be a statement that was prepared before its table changed.
        transaction.statement_cache.clear();
        matches!(patiently(self.store.patience, transaction.rollback()).await, Ok(Ok(())))
    }

    async fn end(&mut self, claimed: &Claimed, decision: &Decision) -> Result<Next, Failure> {
        let delivery = self.under.delivery.to_string();
        let lease = self.under.lease.0;
        let (word, after) = match &decision.outcome {
            Outcome::Busy { after } if claimed.counts.snoozes < self.max_snoozes().await? => {
                ("snooze", Some(*after))
            }
            Outcome::Busy { after } => ("retry", Some(*after)),
            Outcome::Processed => ("processed", None),
            Outcome::Stale => ("stale", None),
            Outcome::Retry { after } => ("retry", *after),
            Outcome::Snooze { after } => ("snooze", Some(*after)),
            Outcome::Dead | Outcome::Unstarted | Outcome::Damaged => ("dead", None),
        };
        let note = decision.note.as_ref().map(|note| note.replace('\0', ""));
        let after = after.map(|after| milliseconds(after).min(LONGEST));
        let values: [&(dyn ToSql + Sync); 5] = [&delivery, &lease, &word, &note, &after];
        let rows = self.query(include_str!("sql/finish_entered.sql"), &values).await?;
        let Some(row) = rows.first() else { return Err(ended_the_transaction()) };
        match row.get(0) {
            "processed" => Ok(Next::Processed),
            "skipped" => Ok(Next::Stale),
            "dead" => Ok(Next::Dead),
            _ if word == "snooze" => Ok(Next::Snooze(self.pause().await?)),
            _ => Ok(Next::Retry(self.pause().await?)),
        }
    }

    /// How often a delivery of the route may be snoozed.
    async fn max_snoozes(&mut self) -> Result<u32, Failure> {
        let (_, route, _) = self.leased();
        let rows = self.query(include_str!("sql/find_max_snoozes.sql"), &[&route]).await?;
        Ok(rows.first().map_or(0, |row| u32::try_from(row.get::<_, i32>(0)).unwrap_or(0)))
    }

    async fn pause(&mut self) -> Result<Duration, Failure> {
        let (receipt, route, _) = self.leased();
        let rows = self.query(include_str!("sql/find_pause.sql"), &[&receipt, &route]).await?;
        let pause: i64 = rows.first().map_or(0, |row| row.get(0));
        Ok(Duration::from_millis(pause.unsigned_abs()))
    }

    fn leased(&self) -> (Uuid, i16, i64) {
        let DeliveryId { receipt, route } = self.under.delivery;
        (receipt.as_uuid(), route.0, self.under.lease.0)
    }

    async fn query(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let transaction = self.transaction().await?;
        let statement = transaction.prepare_cached(sql).await.map_err(refused)?;
        transaction.query(&statement, values).await.map_err(refused)
    }
}

/// The longest pause that fits an interval, in milliseconds: a hundred years.
const LONGEST: i64 = 100 * 366 * 86_400_000;

async fn begin<'a>(
    store: &PostgresStore,
    under: Under,
    slot: &'a mut Slot,
) -> Result<Transaction<'a>, Failure> {
    let client = slot.0.insert(store.handling.get().await?);
    let (delivery, lease) = (under.delivery.to_string(), under.lease.0);
    patiently(store.patience, async {
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(include_str!("sql/enter.sql")).await?;
        transaction.execute(&statement, &[&delivery, &lease]).await?;
        Ok(transaction)
    })
    .await?
    .map_err(refused)
}

/// Waits for an answer, for as long as there is patience with a connection.
async fn patiently<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    let answer = tokio::time::timeout(patience, work).await;
    answer.map_err(|_| Failure::retry("the connection to PostgreSQL says nothing"))
}

/// What an error of a verb means for the handler. The transaction is of no more use.
fn refused(error: Error) -> Failure {
    let Some(answer) = error.as_db_error() else { return error.into() };
    match answer.code().code() {
        LEASE_LOST => Failure::lease_lost(),
        code if code.starts_with("OB") => {
            let hint = answer.hint().unwrap_or_default();
            Failure::retry(format!("{}. {hint} ({code})", answer.message()))
        }
        _ if *answer.code() == SqlState::IN_FAILED_SQL_TRANSACTION => Failure::retry(
            "a statement of the handler failed, and PostgreSQL takes back what it wrote before; \
             return such errors, or run the statement in a savepoint",
        ),
        _ => error.into(),
    }
}

fn ended_the_transaction() -> Failure {
    Failure::dead(
        "the handler ended the transaction it was given, by COMMIT or ROLLBACK, so that its \
         effects are not one with the end of the delivery; it ends with what the handler \
         returns: take that statement out, then replay it",
    )
}
