//! What the verbs are given and say, on both stores.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Decision, Failure};
use crate::effect::{Effect, EffectKey, Message};
use crate::limits;
use crate::receipt::ReceiptId;
use crate::store::checks;

/// What **once** found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nobody has done it: it is done if this handler commits.
    First,
    /// It was done before.
    Already(DoneBy),
}

impl Taken {
    /// Whether it is this handler's to do.
    pub fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// Who did an effect, and what was recorded with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneBy {
    /// The receipt of the event it was done for.
    pub receipt: ReceiptId,
    /// The name of the route.
    pub route: String,
    /// Which attempt of that delivery.
    pub attempt: u32,
    /// When.
    pub at: Timestamp,
    /// What was recorded with it: JSON.
    pub result: Option<String>,
}

impl DoneBy {
    /// The recorded result. One that is missing reads as `null`.
    pub fn result_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read_result("the effect", self.result.as_deref())
    }
}

impl From<Effect> for DoneBy {
    fn from(effect: Effect) -> Self {
        Self {
            receipt: effect.delivery.receipt,
            route: effect.route,
            attempt: effect.attempt,
            at: effect.at,
            result: effect.result,
        }
    }
}

/// What **step** found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// It is to be run: it is done if this handler commits.
    Run,
    /// An earlier attempt of this delivery has run it, with this result.
    Done(T),
}

/// What running a step came to.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use oncebox::clock::{Clock, SystemClock};
/// # use oncebox::handler::{Event, HandlerOptions, Handlers, SqliteCx, apply};
/// # use oncebox::receipt::{Arrival, Taker};
/// # use oncebox::route::RouteRules;
/// # use oncebox::store::{Purpose, SqliteOptions, SqliteStore, Store};
/// use oncebox::handler::{Decision, Failure, Stage};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let options = SqliteOptions::new(folder.path().join("shop.db"));
/// # let store = Arc::new(SqliteStore::open(options, Purpose::Serve).await?);
/// # let table = "CREATE TABLE stock (left INTEGER); INSERT INTO stock VALUES (10)";
/// # store.with(move |db| db.execute_batch(table)).await??;
/// # let source = store.register_source("stripe", None).await?;
/// # let rules = RouteRules { base: Duration::from_millis(1), ..RouteRules::default() };
/// # let route = store.register_route("shipping", None, &rules).await?;
/// # let (now, receipt) = (SystemClock.now(), store.mint().mint(SystemClock.now()));
/// # let arrival = Arrival::new(receipt, source, now, "evt_1", "invoice.paid", "{}");
/// # store.record([Arrival { takers: vec![Taker::plain(route)], ..arrival }].into()).await?;
/// let order = apply(|event: &Event<()>, cx: &SqliteCx<'_>| {
///     let reserve = |cx: &SqliteCx<'_>| {
///         cx.transaction().execute("UPDATE stock SET left = left - 1", [])?;
///         Ok(1)
///     };
///     let reserved: u32 = match cx.run_step("reserve", reserve)? {
///         Stage::Done(reserved) => reserved,
///         Stage::Undone(decision) => return Ok(decision),
///     };
///     let ship = |_: &SqliteCx<'_>| match event.attempt {
///         1 => Err(Failure::retry("the shipper does not answer")),
///         _ => Ok(reserved),
///     };
///     match cx.run_step("ship", ship)? {
///         Stage::Done(shipped) => Ok(Decision::processed(format!("{shipped} shipped"))),
///         // What is reserved stays so: only this stage is run again.
///         Stage::Undone(decision) => Ok(decision),
///     }
/// });
/// # let handlers = Handlers::new(store.clone()).on("*", "*", order);
/// # let worker = handlers.by_hand("shipping", HandlerOptions::default()).await?;
/// # let mut attempts = 0;
/// # while attempts < 2 {
/// #     attempts += worker.work_off().await?;
/// # }
/// # let count = "SELECT left FROM stock";
/// # let left = store.with(move |db| db.query_row(count, [], |row| row.get(0))).await?;
/// # assert_eq!(left, Ok(9));
/// # worker.stop().await;
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<T> {
    /// It is run, now or by an earlier attempt, with this result.
    Done(T),
    /// It failed, and everything it wrote is taken back. What was written before it stands if the
    /// handler returns `Ok`; this is what to return for the attempt to end as the stage did.
    Undone(Decision),
}

/// What **send** came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It is written if this handler commits, under this id.
    New(ReceiptId),
    /// It was written before, with the same payload.
    Before(ReceiptId),
    /// It was written before with another payload. The first stands, and this one is not
    /// delivered. It is noted as a conflict with the first unless the same delivery wrote both.
    Conflict(ReceiptId),
}

impl Message {
    /// A message with a JSON payload for a destination of the configuration, under a key of its
    /// own: one key, one message.
    ///
    /// ```
    /// use oncebox::effect::Message;
    ///
    /// let mail = Message::json("mailer", "receipt:in_456", &["a@example.com"])?
    ///     .in_group("customer:cus_1")?;
    /// assert_eq!(mail.payload, r#"["a@example.com"]"#);
    /// # Ok::<(), oncebox::handler::Failure>(())
    /// ```
    pub fn json(
        destination: impl Into<String>,
        key: impl AsRef<str>,
        payload: &(impl Serialize + ?Sized),
    ) -> Result<Self, Failure> {
        let payload = serde_json::to_vec(payload)?;
        Self::raw(destination, key, "application/json", payload)
    }

    /// A message with a payload of any kind.
    pub fn raw(
        destination: impl Into<String>,
        key: impl AsRef<str>,
        content_type: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Result<Self, Failure> {
        let payload = payload.into();
        if payload.len() > limits::MESSAGE_BYTES {
            return Err(Failure::retry(format!(
                "the message has {} bytes, and {} are allowed; send a reference to what is large",
                payload.len(),
                limits::MESSAGE_BYTES
            )));
        }
        Ok(Self {
            destination: destination.into(),
            key: key_of("the key of the message", key.as_ref())?,
            group: None,
            content_type: content_type.into(),
            payload,
        })
    }

    /// The same message, delivered after those of its group that were committed before it.
    pub fn in_group(self, group: impl AsRef<str>) -> Result<Self, Failure> {
        let group = Some(key_of("the group of the message", group.as_ref())?);
        Ok(Self { group, ..self })
    }
}

/// A key of an effect, or what is wrong with it.
pub(super) fn key_of(what: &str, text: &str) -> Result<EffectKey, Failure> {
    text.parse().map_err(|bad| Failure::bad_key(what, bad))
}

/// A result as it is recorded.
pub(super) fn write_result(result: &(impl Serialize + ?Sized)) -> Result<String, Failure> {
    let json = serde_json::to_string(result)?;
    if json.len() > limits::RESULT_BYTES {
        return Err(Failure::retry(format!(
            "the result has {} bytes, and {} are allowed; record an id or a reference instead",
            json.len(),
            limits::RESULT_BYTES
        )));
    }
    if checks::has_nul(&json) {
        return Err(Failure::retry("the result has a NUL character; leave it out"));
    }
    Ok(json)
}

/// A result as it was recorded.
pub(super) fn read_result<T: DeserializeOwned>(
    what: &str,
    result: Option<&str>,
) -> Result<T, Failure> {
    serde_json::from_str(result.unwrap_or("null")).map_err(|error| {
        Failure::retry(format!(
            "the result that was recorded with {what} does not parse: {error}; read it as the \
             type it was recorded as"
        ))
    })
}

/// A result for a step that this attempt has not run.
pub(super) fn not_run(step: &EffectKey) -> Failure {
    Failure::retry(format!(
        "the result of the step `{step}` cannot be recorded: this attempt has not run it, or its \
         lease is lost; record it only where `step` said to run it"
    ))
}

pub(super) fn no_destination(name: &str) -> Failure {
    Failure::retry(format!(
        "there is no destination `{name}`; add [destinations.{name}] to the configuration and \
         reload the server"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_is_refused_with_a_remedy() {
        let text = |failure: Failure| failure.to_string();
        assert!(text(Message::json("mailer", "", &1).unwrap_err()).contains("it is empty"));
        let large = vec![0; limits::MESSAGE_BYTES + 1];
        let refused = Message::raw("mailer", "k", "text/plain", large).unwrap_err();
        assert!(text(refused).contains("send a reference"));
        let long = "x".repeat(limits::RESULT_BYTES - 2);
        assert!(write_result(&long).is_ok());
        assert!(text(write_result(&format!("{long}x")).unwrap_err()).contains("record an id"));
        assert!(text(write_result("a\0").unwrap_err()).contains("leave it out"));
        assert!(text(key_of("the key", "a\0").unwrap_err()).contains("control character"));
    }

    #[test]
    fn a_missing_result_reads_as_nothing() {
        assert_eq!(read_result::<Option<u8>>("it", None).unwrap(), None);
        read_result::<()>("it", None).unwrap();
        assert!(read_result::<u8>("it", None).unwrap_err().to_string().contains("does not parse"));
    }
}
