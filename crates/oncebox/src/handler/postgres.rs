//! Handlers on PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::{Statement, Transaction};

use super::event::read_current;
use super::registry::{Attempt, Erased, Handlers};
use super::verbs::{key_of, no_destination, not_run, read_result, write_result};
use super::{Calls, Decision, Event, Failure, Sending, Stage, Step, Taken};
use crate::delivery::{Claimed, Counts, Current, Outcome, Payload};
use crate::effect::{EffectName, Message, Sent};
use crate::store::{Ended, Handling, PostgresStore, Slot, Took};
use crate::worker::{Report, Told};

/// Business code for events, on PostgreSQL.
///
/// What it writes through [`PostgresCx::transaction`] and the verbs commits together with its
/// decision, or not at all: `Ok` commits, whatever it decides, and `Err` rolls back.
///
/// The transaction begins when it is first needed. Call others before that, not within: while a
/// transaction is open its locks keep others waiting, and one that is idle for
/// [some seconds](crate::limits::POSTGRES_IDLE) is ended by the server.
///
/// The role of the store needs rights on the tables of the service, too. The tables may be in any
/// other schema; DDL is for a connection of the service's own.
///
/// ```
/// use oncebox::effect::Message;
/// use oncebox::handler::{Decision, Event, Failure, PostgresCx, PostgresHandler};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Paid {
///     invoice: String,
/// }
///
/// struct MarkPaid;
///
/// impl PostgresHandler for MarkPaid {
///     type Event = Paid;
///
///     async fn handle(
///         &self,
///         event: &Event<Paid>,
///         cx: &mut PostgresCx<'_>,
///     ) -> Result<Decision, Failure> {
///         let invoice = &event.data.invoice;
///         let sql = "UPDATE invoices SET paid = true WHERE id = $1";
///         cx.transaction().await?.execute(sql, &[invoice]).await?;
///         let key = format!("receipt-email:{invoice}");
///         if cx.once(&key).await?.is_first() {
///             cx.send(&Message::json("mailer", &key, invoice)?).await?;
///         }
///         Ok(Decision::processed("paid"))
///     }
/// }
/// ```
pub trait PostgresHandler: Send + Sync + 'static {
    /// What is read of the payload.
    type Event: DeserializeOwned + Send + Sync + 'static;

    /// Handles one event. The future is dropped, and with it everything it wrote, when the lease
    /// of the delivery is lost; a panic is a failed attempt.
    fn handle(
        &self,
        event: &Event<Self::Event>,
        cx: &mut PostgresCx<'_>,
    ) -> impl Future<Output = Result<Decision, Failure>> + Send;
}

/// The transaction of a handler, and the verbs in it.
///
/// An error of PostgreSQL is the end of a transaction: return it, or run what may fail in a
/// savepoint ([`Transaction::transaction`]).
pub struct PostgresCx<'a> {
    handling: Handling<'a>,
    calls: Calls,
    current: Option<&'a Current>,
    counts: Counts,
}

impl<'a> PostgresCx<'a> {
    /// The real thing, for the tables of the service. It ends with what the handler returns: one
    /// that runs COMMIT or ROLLBACK in it leaves the delivery dead. What is set for its session,
    /// such as a role, is gone with it.
    pub async fn transaction(&mut self) -> Result<&mut Transaction<'a>, Failure> {
        Ok(self.handling.transaction().await?)
    }

    /// A statement for [`Self::transaction`], prepared once for each connection and not again for
    /// each event. For texts that stay the same: it is kept for as long as the connection is.
    ///
    /// ```
    /// # use oncebox::handler::{Failure, PostgresCx};
    /// # async fn example(cx: &mut PostgresCx<'_>, invoice: &str) -> Result<(), Failure> {
    /// let pay = cx.prepare("UPDATE invoices SET paid = true WHERE id = $1").await?;
    /// cx.transaction().await?.execute(&pay, &[&invoice]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn prepare(&mut self, sql: &str) -> Result<Statement, Failure> {
        Ok(self.handling.transaction().await?.prepare_cached(sql).await?)
    }

    /// Calls to the outside. They are no part of the transaction, and best made before it begins.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The object as its provider had it just before this attempt, where the route fetches that;
    /// as [`Event::current`].
    pub fn current(&self) -> Option<&Current> {
        self.current
    }

    /// As [`Self::current`], read as `U`; as [`Event::current_as`].
    pub fn current_as<U: DeserializeOwned>(&self) -> Result<Option<U>, Failure> {
        read_current(self.current)
    }

    /// **once**: takes a key such as `receipt-email:in_456` for the first to commit it. Waits for
    /// whoever has it and has not committed yet.
    ///
    /// A key under which a call was begun is neither free nor done. The failure that says so
    /// snoozes the delivery while somebody is at it, and holds it for a person where nobody knows
    /// what came of the call; return it.
    pub async fn once(&mut self, key: impl AsRef<str>) -> Result<Taken, Failure> {
        self.take(&EffectName::Key(key_of("the key", key.as_ref())?), None).await
    }

    /// As [`Self::once`], recording a result that whoever comes later is told.
    pub async fn once_with(
        &mut self,
        key: impl AsRef<str>,
        result: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Taken, Failure> {
        let name = EffectName::Key(key_of("the key", key.as_ref())?);
        self.take(&name, Some(&write_result(result)?)).await
    }

    /// **step**: a stage of this delivery, to be run unless an attempt that was committed has.
    ///
    /// Whatever became of the stage, it is done if the handler returns `Ok`, also to be tried
    /// again. So return `Err` where it failed, which takes back the stages before it as well, or
    /// use [`Self::run_step`], which does not.
    ///
    /// ```
    /// # use oncebox::handler::{Failure, PostgresCx, Step};
    /// # async fn reserve(_: &mut PostgresCx<'_>) -> Result<i64, Failure> { Ok(7) }
    /// # async fn example(cx: &mut PostgresCx<'_>) -> Result<i64, Failure> {
    /// let reservation: i64 = match cx.step("reserve").await? {
    ///     Step::Done(reservation) => reservation,
    ///     Step::Run => {
    ///         let reservation = reserve(cx).await?;
    ///         cx.set_result("reserve", &reservation).await?;
    ///         reservation
    ///     }
    /// };
    /// # Ok(reservation)
    /// # }
    /// ```
    pub async fn step<T: DeserializeOwned>(
        &mut self,
        name: impl AsRef<str>,
    ) -> Result<Step<T>, Failure> {
        let name = key_of("the name of the step", name.as_ref())?;
        match self.take(&EffectName::Step(name), None).await? {
            Taken::First => Ok(Step::Run),
            Taken::Already(by) => read_result("the step", by.result.as_deref()).map(Step::Done),
        }
    }

    /// Runs a stage of this delivery, unless an attempt that was committed has, and records its
    /// result. What it writes is in a savepoint: where the stage fails, that is taken back, and
    /// what was written before it is not, also after an error of PostgreSQL.
    ///
    /// A stage that needs what somebody else has begun is no stage that failed: that is an error of
    /// the handler's, for its delivery may have to be held.
    ///
    /// Let it come to its end: a limit of time belongs into the stage. Of one that is dropped on
    /// the way, as by `tokio::time::timeout` around this, nobody knows how much it wrote, so the
    /// attempt fails and everything is taken back.
    ///
    /// ```
    /// # use oncebox::handler::{Decision, Failure, PostgresCx, Stage};
    /// # async fn ship(_: &mut PostgresCx<'_>, _: i64) -> Result<String, Failure> {
    /// #     Ok(String::new())
    /// # }
    /// async fn order(cx: &mut PostgresCx<'_>) -> Result<Decision, Failure> {
    ///     let reserve = "UPDATE stock SET left = left - 1 RETURNING id";
    ///     let reserved: i64 = match cx.run_step("reserve", async |cx| {
    ///         Ok(cx.transaction().await?.query_one(reserve, &[]).await?.get(0))
    ///     }).await? {
    ///         Stage::Done(reserved) => reserved,
    ///         Stage::Undone(decision) => return Ok(decision),
    ///     };
    ///     match cx.run_step("ship", async |cx| ship(cx, reserved).await).await? {
    ///         Stage::Done(parcel) => Ok(Decision::processed(parcel)),
    ///         // It stays reserved; only this stage is run again.
    ///         Stage::Undone(decision) => Ok(decision),
    ///     }
    /// }
    /// ```
    pub async fn run_step<T: Serialize + DeserializeOwned + Sync>(
        &mut self,
        name: impl AsRef<str>,
        work: impl AsyncFnOnce(&mut PostgresCx<'_>) -> Result<T, Failure>,
    ) -> Result<Stage<T>, Failure> {
        let name = name.as_ref();
        self.handling.begin_stage().await?;
        match self.run_saved(name, work).await {
            Ok(result) => {
                self.handling.keep_stage().await?;
                Ok(Stage::Done(result))
            }
            // Where that fails, what went wrong before it is the reason.
            Err(failure) => match self.handling.undo_stage().await {
                Ok(()) => failure.decision(self.counts).map(Stage::Undone),
                Err(_) => Err(failure),
            },
        }
    }

    async fn run_saved<T: Serialize + DeserializeOwned + Sync>(
        &mut self,
        name: &str,
        work: impl AsyncFnOnce(&mut PostgresCx<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Step::Done(result) = self.step(name).await? {
            return Ok(result);
        }
        let result = work(self).await?;
        self.set_result(name, &result).await?;
        Ok(result)
    }

    /// Records the result of a step that this handler runs.
    pub async fn set_result(
        &mut self,
        name: impl AsRef<str>,
        result: &(impl Serialize + Sync + ?Sized),
    ) -> Result<(), Failure> {
        let step = key_of("the name of the step", name.as_ref())?;
        match self.handling.set_result(&step, &write_result(result)?).await? {
            true => Ok(()),
            false => Err(not_run(&step)),
        }
    }

    /// The recorded result of a step of this delivery that was run, here or by
    /// [`Calls::step`]; none if it was not, or recorded nothing.
    pub async fn get_result<T: DeserializeOwned>(
        &mut self,
        name: impl AsRef<str>,
    ) -> Result<Option<T>, Failure> {
        let step = key_of("the name of the step", name.as_ref())?;
        let result = self.handling.get_result(&step).await?;
        result.map(|result| read_result("the step", Some(&result))).transpose()
    }

    /// **send**: writes an outbox message; it is delivered once this handler has committed.
    pub async fn send(&mut self, message: &Message) -> Result<Sending, Failure> {
        match self.handling.send(message).await? {
            Sent::New(receipt) => Ok(Sending::New(receipt)),
            Sent::Before(receipt) => Ok(Sending::Before(receipt)),
            Sent::Conflict(receipt) => Ok(Sending::Conflict(receipt)),
            Sent::NoDestination => Err(no_destination(&message.destination)),
            Sent::LeaseLost => Err(Failure::lease_lost()),
        }
    }

    /// **advance**: moves the watermark of an object of this route and source forward. False if
    /// newer state was applied before: then this event is stale.
    pub async fn advance(
        &mut self,
        object: impl AsRef<str>,
        version: i64,
    ) -> Result<bool, Failure> {
        let advanced = self.handling.advance(object.as_ref(), version).await?;
        advanced.ok_or_else(Failure::lease_lost)
    }

    async fn take(&mut self, name: &EffectName, result: Option<&str>) -> Result<Taken, Failure> {
        match self.handling.take(name, result).await? {
            Took::First => Ok(Taken::First),
            Took::Already(by) => Ok(Taken::Already(by)),
            Took::Open { key } => Err(Failure::open(name, &key)),
        }
    }
}

impl Handlers<PostgresStore> {
    /// Hands events to a handler whose source and type match these patterns, in which `*` stands
    /// for any text. The first that matches has it.
    pub fn on<H: PostgresHandler>(
        self,
        source: impl Into<String>,
        event_type: impl Into<String>,
        handler: H,
    ) -> Self {
        self.register(source.into(), event_type.into(), Arc::new(OnPostgres(handler)))
    }
}

/// A handler without its types.
struct OnPostgres<H>(H);

#[async_trait]
impl<H: PostgresHandler> Erased<PostgresStore> for OnPostgres<H> {
    async fn handle(
        &self,
        attempt: &Attempt<'_, PostgresStore>,
        claimed: &Claimed,
        payload: Payload,
    ) -> Result<Report, Failure> {
        let event = Event::<H::Event>::read(claimed, payload)?;
        let mut slot = Slot::default();
        let handling = Handling::new(attempt.store(), attempt.under, &mut slot);
        let (calls, counts) = (attempt.calls(), claimed.counts);
        let cx = PostgresCx { handling, calls, current: event.current(), counts };
        let (handled, is_clean) = self.work(attempt, claimed, &event, cx).await;
        if is_clean {
            slot.give_back(attempt.store());
        }
        handled
    }
}

impl<H: PostgresHandler> OnPostgres<H> {
    /// Handles an event and ends its attempt. Says whether its connection can be used again.
    async fn work(
        &self,
        attempt: &Attempt<'_, PostgresStore>,
        claimed: &Claimed,
        event: &Event<H::Event>,
        mut cx: PostgresCx<'_>,
    ) -> (Result<Report, Failure>, bool) {
        let decision = match self.0.handle(event, &mut cx).await {
            Ok(decision) => decision,
            Err(failure) => return (Err(failure), cx.handling.roll_back().await),
        };
        let _ending = attempt.ending();
        match cx.handling.finish(claimed, &decision).await {
            Ok(Ended::Not) => (Ok(decision.report(Told::NotYet)), true),
            Ok(Ended::Surely(next)) => (Ok(decision.report(Told::Ended(next))), true),
            Ok(Ended::Perhaps(next, reason)) => {
                let report = Report {
                    outcome: Outcome::Retry { after: None },
                    detail: Some(format!("whether it was committed is not known: {reason}")),
                    ..decision.report(Told::Perhaps(next))
                };
                (Ok(report), false)
            }
            Err(failure) => (Err(failure), false),
        }
    }
}
