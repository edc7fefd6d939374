//! What handlers do when they are measured, on both stores.

use oncebox::effect::Message;
use oncebox::handler::{
    Calls, Decision, Event, Failure, PostgresCx, PostgresHandler, SqliteCx, SqliteHandler,
};
use serde::Deserialize;

use super::bed::DESTINATION;
use super::ledger::key;
use super::load::Ids;

/// The table of the service.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS payments (invoice TEXT NOT NULL, cents INTEGER NOT \
                                NULL)";

/// What is read of a payload.
#[derive(Deserialize)]
pub(crate) struct Paid {
    number: u64,
}

/// One `once` and one business write.
pub(crate) struct Book {
    pub(crate) ids: Ids,
}

impl SqliteHandler for Book {
    type Event = Paid;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Paid>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<Paid>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        let key = key(self.ids, event.data.number);
        if cx.once(&key)?.is_first() {
            let sql = "INSERT INTO payments VALUES (?1, 1200)";
            cx.transaction().prepare_cached(sql)?.execute([&key])?;
        }
        Ok(Decision::processed("paid"))
    }
}

impl PostgresHandler for Book {
    type Event = Paid;

    async fn handle(
        &self,
        event: &Event<Paid>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        let key = key(self.ids, event.data.number);
        if cx.once(&key).await?.is_first() {
            let sql = "INSERT INTO public.payments VALUES ($1, 1200)";
            let statement = cx.prepare(sql).await?;
            cx.transaction().await?.execute(&statement, &[&key]).await?;
        }
        Ok(Decision::processed("paid"))
    }
}

/// Messages that one event leads to.
pub(crate) const MESSAGES: u64 = 10;

/// Sends messages.
pub(crate) struct Mail {
    pub(crate) ids: Ids,
}

impl Mail {
    fn messages(&self, event: &Event<Paid>) -> impl Iterator<Item = Result<Message, Failure>> {
        let (first, ids) = (event.data.number * MESSAGES, self.ids);
        (first..first + MESSAGES).map(move |number| {
            let key = key(ids, number);
            Message::json(DESTINATION, &key, &[&key, "Thank you for your payment."])
        })
    }
}

impl SqliteHandler for Mail {
    type Event = Paid;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Paid>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<Paid>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        for message in self.messages(event) {
            cx.send(&message?)?;
        }
        Ok(Decision::processed("sent"))
    }
}

impl PostgresHandler for Mail {
    type Event = Paid;

    async fn handle(
        &self,
        event: &Event<Paid>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        for message in self.messages(event) {
            cx.send(&message?).await?;
        }
        Ok(Decision::processed("sent"))
    }
}

/// Looks up keys: as many as the numbers of events say, shifted by this much.
#[derive(Clone, Copy)]
pub(crate) struct LookUp {
    pub(crate) ids: Ids,
    /// Keys that one event looks up.
    pub(crate) each: u64,
    /// The number of the first event.
    pub(crate) first: u64,
    /// The number of its first key.
    pub(crate) key: u64,
    /// Whether they are in the ledger.
    pub(crate) known: bool,
}

impl LookUp {
    fn keys(self, event: &Event<Paid>) -> impl Iterator<Item = String> {
        let first = self.key + (event.data.number - self.first) * self.each;
        (first..first + self.each).map(move |number| key(self.ids, number))
    }

    /// A benchmark of something else would be worth nothing.
    fn check(self, key: &str, is_first: bool) -> Result<(), Failure> {
        match is_first == self.known {
            true => Err(Failure::dead(format!("`{key}` is not as it should be"))),
            false => Ok(()),
        }
    }
}

impl SqliteHandler for LookUp {
    type Event = Paid;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Paid>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<Paid>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        for key in self.keys(event) {
            self.check(&key, cx.once(&key)?.is_first())?;
        }
        Ok(Decision::processed("looked up"))
    }
}

impl PostgresHandler for LookUp {
    type Event = Paid;

    async fn handle(
        &self,
        event: &Event<Paid>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        for key in self.keys(event) {
            self.check(&key, cx.once(&key).await?.is_first())?;
        }
        Ok(Decision::processed("looked up"))
    }
}
