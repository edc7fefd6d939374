//! Handlers on the embedded store.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rusqlite::Savepoint;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event::read_current;
use super::registry::{Attempt, Erased, Handlers};
use super::verbs::{key_of, no_destination, not_run, read_result, write_result};
use super::{Calls, Decision, Event, Failure, Sending, Stage, Step, Taken};
use crate::delivery::{Claimed, Counts, Current, Payload};
use crate::effect::{EffectName, Message, Once, Sent};
use crate::store::{Applied, Scope, SqliteStore};
use crate::worker::{Report, Told};

/// Business code for events, on the embedded store.
///
/// SQLite has one writer, and everybody waits for it: webhooks that come in, other handlers. So a
/// handler has two parts. [`prepare`](Self::prepare) takes its time, without a transaction: look
/// things up, call others. [`apply`](Self::apply) is short and writes: its statements are
/// interrupted after 250 ms, and code of another kind should take no longer either.
///
/// What `apply` writes to the tables of the service, through the verbs and by its decision
/// commits together or not at all. It may be run more than once, should the commit it shared with
/// others have been taken back; what counts is the run that was committed.
///
/// ```
/// use oncebox::handler::{Calls, Decision, Event, Failure, SqliteCx, SqliteHandler};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Paid {
///     invoice: String,
/// }
///
/// struct MarkPaid;
///
/// impl SqliteHandler for MarkPaid {
///     type Event = Paid;
///     type Prepared = String;
///
///     async fn prepare(&self, event: &Event<Paid>, _: &Calls) -> Result<String, Failure> {
///         Ok(format!("receipt for {}", event.data.invoice)) // something slow
///     }
///
///     fn apply(
///         &self,
///         event: &Event<Paid>,
///         text: &String,
///         cx: &SqliteCx<'_>,
///     ) -> Result<Decision, Failure> {
///         let sql = "UPDATE invoices SET paid = 1, note = ?2 WHERE id = ?1";
///         cx.transaction().execute(sql, [&event.data.invoice, text])?;
///         Ok(Decision::processed("paid"))
///     }
/// }
/// ```
pub trait SqliteHandler: Send + Sync + 'static {
    /// What is read of the payload.
    type Event: DeserializeOwned + Send + Sync + 'static;
    /// What the first part hands to the second.
    type Prepared: Send + 'static;

    /// The part that may take its time. Nothing is written, except by `calls`.
    fn prepare(
        &self,
        event: &Event<Self::Event>,
        calls: &Calls,
    ) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// The part that writes, in one transaction with the end of the attempt.
    fn apply(
        &self,
        event: &Event<Self::Event>,
        prepared: &Self::Prepared,
        cx: &SqliteCx<'_>,
    ) -> Result<Decision, Failure>;
}

/// A handler that has nothing to prepare, made of a closure.
///
/// ```
/// use oncebox::handler::{Decision, Event, SqliteCx, apply};
///
/// let handler = apply(|event: &Event<()>, cx: &SqliteCx<'_>| {
///     cx.transaction().execute("INSERT INTO seen VALUES (?1)", [&event.event_id])?;
///     Ok(Decision::processed("seen"))
/// });
/// ```
pub fn apply<T, F>(apply: F) -> Apply<T, F>
where
    T: DeserializeOwned + Send + Sync + 'static,
    F: Fn(&Event<T>, &SqliteCx<'_>) -> Result<Decision, Failure> + Send + Sync + 'static,
{
    Apply { apply, event: PhantomData }
}

/// See [`apply`].
pub struct Apply<T, F> {
    apply: F,
    event: PhantomData<fn(T)>,
}

impl<T, F> SqliteHandler for Apply<T, F>
where
    T: DeserializeOwned + Send + Sync + 'static,
    F: Fn(&Event<T>, &SqliteCx<'_>) -> Result<Decision, Failure> + Send + Sync + 'static,
{
    type Event = T;
    type Prepared = ();

    async fn prepare(&self, _: &Event<T>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<T>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        (self.apply)(event, cx)
    }
}

/// The transaction of a handler, and the verbs in it.
pub struct SqliteCx<'a> {
    scope: &'a Scope<'a>,
    current: Option<&'a Current>,
    counts: Counts,
}

impl SqliteCx<'_> {
    /// The real thing, for the tables of the service. It is the store's own connection, inside a
    /// savepoint, and ends with what the handler returns: COMMIT and ROLLBACK are refused, and
    /// the delivery is dead.
    pub fn transaction(&self) -> &Savepoint<'_> {
        self.scope.savepoint
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

    /// **once**: takes a key such as `receipt-email:in_456` for the first to commit it.
    ///
    /// A key under which a call was begun is neither free nor done. The failure that says so
    /// snoozes the delivery while somebody is at it, and holds it for a person where nobody knows
    /// what came of the call; return it.
    ///
    /// ```
    /// # use oncebox::handler::{Failure, SqliteCx};
    /// # fn example(cx: &SqliteCx<'_>) -> Result<(), Failure> {
    /// if cx.once("receipt-email:in_456")?.is_first() {
    ///     cx.transaction().execute("INSERT INTO mails VALUES ('in_456')", [])?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(&self, key: impl AsRef<str>) -> Result<Taken, Failure> {
        self.take(&EffectName::Key(key_of("the key", key.as_ref())?), None)
    }

    /// As [`Self::once`], recording a result that whoever comes later is told.
    pub fn once_with(
        &self,
        key: impl AsRef<str>,
        result: &(impl Serialize + ?Sized),
    ) -> Result<Taken, Failure> {
        let name = EffectName::Key(key_of("the key", key.as_ref())?);
        self.take(&name, Some(&write_result(result)?))
    }

    /// **step**: a stage of this delivery, to be run unless an attempt that was committed has.
    ///
    /// Whatever became of the stage, it is done if the handler returns `Ok`, also to be tried
    /// again. So return `Err` where it failed, which takes back the stages before it as well, or
    /// use [`Self::run_step`], which does not.
    ///
    /// ```
    /// # use oncebox::handler::{Failure, SqliteCx, Step};
    /// # fn reserve(_: &SqliteCx<'_>) -> Result<i64, Failure> { Ok(7) }
    /// # fn example(cx: &SqliteCx<'_>) -> Result<i64, Failure> {
    /// let reservation: i64 = match cx.step("reserve")? {
    ///     Step::Done(reservation) => reservation,
    ///     Step::Run => {
    ///         let reservation = reserve(cx)?;
    ///         cx.set_result("reserve", &reservation)?;
    ///         reservation
    ///     }
    /// };
    /// # Ok(reservation)
    /// # }
    /// ```
    pub fn step<T: DeserializeOwned>(&self, name: impl AsRef<str>) -> Result<Step<T>, Failure> {
        let name = key_of("the name of the step", name.as_ref())?;
        match self.take(&EffectName::Step(name), None)? {
            Taken::First => Ok(Step::Run),
            Taken::Already(by) => read_result("the step", by.result.as_deref()).map(Step::Done),
        }
    }

    /// Runs a stage of this delivery, unless an attempt that was committed has, and records its
    /// result. What it writes is in a savepoint: where the stage fails, that is taken back, and
    /// what was written before it is not.
    ///
    /// [`Stage`] has an example.
    ///
    /// A stage that needs what somebody else has begun is no stage that failed: that is an error of
    /// the handler's, for its delivery may have to be held.
    pub fn run_step<T: Serialize + DeserializeOwned>(
        &self,
        name: impl AsRef<str>,
        work: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<Stage<T>, Failure> {
        let name = name.as_ref();
        self.scope.begin_stage()?;
        match self.run_saved(name, work) {
            Ok(result) => {
                self.scope.keep_stage()?;
                Ok(Stage::Done(result))
            }
            // Where that fails, what went wrong before it is the reason.
            Err(failure) => match self.scope.undo_stage() {
                Ok(()) => failure.decision(self.counts).map(Stage::Undone),
                Err(_) => Err(failure),
            },
        }
    }

    fn run_saved<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Step::Done(result) = self.step(name)? {
            return Ok(result);
        }
        let result = work(self)?;
        self.set_result(name, &result)?;
        Ok(result)
    }

    /// Records the result of a step that this handler runs.
    pub fn set_result(
        &self,
        name: impl AsRef<str>,
        result: &(impl Serialize + ?Sized),
    ) -> Result<(), Failure> {
        let step = key_of("the name of the step", name.as_ref())?;
        match self.scope.set_result(&step, &write_result(result)?)? {
            true => Ok(()),
            false => Err(not_run(&step)),
        }
    }

    /// The recorded result of a step of this delivery that was run, here or by
    /// [`Calls::step`]; none if it was not, or recorded nothing.
    pub fn get_result<T: DeserializeOwned>(
        &self,
        name: impl AsRef<str>,
    ) -> Result<Option<T>, Failure> {
        let result = self.scope.get_result(&key_of("the name of the step", name.as_ref())?)?;
        result.map(|result| read_result("the step", Some(&result))).transpose()
    }

    /// **send**: writes an outbox message; it is delivered once this handler has committed.
    pub fn send(&self, message: &Message) -> Result<Sending, Failure> {
        match self.scope.send(message)? {
            Sent::New(receipt) => Ok(Sending::New(receipt)),
            Sent::Before(receipt) => Ok(Sending::Before(receipt)),
            Sent::Conflict(receipt) => Ok(Sending::Conflict(receipt)),
            Sent::NoDestination => Err(no_destination(&message.destination)),
            Sent::LeaseLost => Err(Failure::lease_lost()),
        }
    }

    /// **advance**: moves the watermark of an object of this route and source forward. False if
    /// newer state was applied before: then this event is stale.
    pub fn advance(&self, object: impl AsRef<str>, version: i64) -> Result<bool, Failure> {
        self.scope.advance(object.as_ref(), version)?.ok_or_else(Failure::lease_lost)
    }

    fn take(&self, name: &EffectName, result: Option<&str>) -> Result<Taken, Failure> {
        match self.scope.once(name, result)? {
            Once::First => Ok(Taken::First),
            Once::Already(effect) => Ok(Taken::Already(effect.into())),
            Once::Open(effect) => Err(Failure::open(name, &effect.key)),
            Once::LeaseLost => Err(Failure::lease_lost()),
        }
    }
}

impl Handlers<SqliteStore> {
    /// Hands events to a handler whose source and type match these patterns, in which `*` stands
    /// for any text. The first that matches has it.
    pub fn on<H: SqliteHandler>(
        self,
        source: impl Into<String>,
        event_type: impl Into<String>,
        handler: H,
    ) -> Self {
        self.register(source.into(), event_type.into(), Arc::new(OnSqlite(Arc::new(handler))))
    }
}

/// A handler without its types.
struct OnSqlite<H>(Arc<H>);

#[async_trait]
impl<H: SqliteHandler> Erased<SqliteStore> for OnSqlite<H> {
    async fn handle(
        &self,
        attempt: &Attempt<'_, SqliteStore>,
        claimed: &Claimed,
        payload: Payload,
    ) -> Result<Report, Failure> {
        let began = Instant::now();
        let event = Event::<H::Event>::read(claimed, payload)?;
        let prepared = self.0.prepare(&event, &attempt.calls()).await?;
        let (handler, counts) = (self.0.clone(), claimed.counts);
        let work = move |scope: &Scope<'_>| {
            let cx = SqliteCx { scope, current: event.current(), counts };
            handler.apply(&event, &prepared, &cx)
        };
        let _ending = attempt.ending();
        match attempt.store().apply(claimed.clone(), began, Box::new(work)).await {
            Applied::Ended(next, decision) => Ok(decision.report(Told::Ended(next))),
            Applied::Lost => Err(Failure::lease_lost()),
            Applied::Failed(failure) => Err(failure),
        }
    }
}
