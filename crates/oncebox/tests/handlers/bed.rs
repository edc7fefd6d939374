//! A service whose handlers do as a story says, on either store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncebox::delivery::{Claimed, Next};
use oncebox::effect::{Message, OnUnknown};
use oncebox::handler::{
    Calls, Decision, Event, Failure, Handlers, PostgresCx, PostgresHandler, Sending, SqliteCx,
    SqliteHandler, Stage, Step, Taken, Unhandled,
};
use oncebox::limits;
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::replay::{How, Replay, ReplayFilter, ReplayStep};
use oncebox::route::RouteRules;
use oncebox::worker::{Consumer, Observer, Report, WorkRoute, Worker, WorkerOptions};
use oncebox_testkit::postgres;
use oncebox_testkit::store::{Bed, LEASE, Opened, Route, act, pass};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

/// What the handlers read of a payload.
#[derive(Debug, Deserialize)]
pub(crate) struct Data {
    #[serde(default)]
    pub(crate) amount: i64,
}

/// One thing a handler does.
#[derive(Clone)]
pub(crate) enum Op {
    /// Writes a row to the table of the service.
    Mark(String),
    /// Takes a key; the first writes a row.
    Once(String),
    /// Runs a step that writes a row and records a result, or notes the recorded one.
    Step(&'static str, i64),
    /// Runs a step in a savepoint: it writes a row, and then ends.
    Stage(&'static str, StageEnd),
    /// Runs a step in a savepoint that is left in its middle, and decides to come back.
    CutStage(&'static str),
    /// Runs a step whose result is a text of so many bytes.
    Record(&'static str, usize),
    /// Records a result of a step that it has not run.
    SetResult(&'static str),
    /// Writes a message.
    Send(Message),
    /// Moves a watermark; ends as stale where it cannot.
    Advance(&'static str, i64),
    /// Loses the lease just now.
    LoseLease,
    /// Runs a statement, and returns its error.
    Run(&'static str),
    /// Runs a statement, and passes over its error.
    Try(&'static str),
    /// Calls the outside before anything is written.
    Call(Outside),
    /// Fails.
    Fail(&'static str),
    /// Panics.
    Panic(&'static str),
    /// Decides, unless something else follows.
    Decide(Decision),
}

/// How a stage ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StageEnd {
    /// With a result.
    Done(i64),
    /// It says that it failed.
    Says,
    /// A statement of it fails.
    Statement,
    /// It says that it can never succeed.
    Dead,
    /// It needs a key.
    Needs(&'static str),
}

impl StageEnd {
    fn result(self) -> Result<i64, Failure> {
        match self {
            Self::Done(result) => Ok(result),
            Self::Dead => Err(Failure::dead("there is no shipper")),
            _ => Err(Failure::retry("the shipper does not answer")),
        }
    }
}

/// A call to the outside.
#[derive(Clone)]
pub(crate) struct Outside {
    pub(crate) key: &'static str,
    /// Whether it is a step of the delivery.
    pub(crate) is_step: bool,
    pub(crate) on_unknown: OnUnknown,
    pub(crate) answer: Answer,
}

/// How the outside answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is done.
    Done(i64),
    /// It is done, with a result that is larger than may be recorded.
    Large,
    /// It is done, with a result that no store can record.
    Binary,
    /// It does not say.
    Silence,
    /// It refuses.
    Refusal,
}

type Plan = dyn Fn(&Event<Data>) -> Vec<Op> + Send + Sync;

/// What a handler does for each event, and what it saw.
#[derive(Clone)]
pub(crate) struct Script {
    plan: Arc<Plan>,
    notes: Arc<Mutex<Vec<String>>>,
    /// Whether handlers come past their first part, on SQLite.
    pub(crate) gate: Arc<watch::Sender<bool>>,
    /// How often the first part of a handler came to its end.
    prepared: Arc<AtomicUsize>,
    url: Arc<str>,
}

impl Script {
    fn note(&self, line: impl Into<String>) {
        self.notes.lock().unwrap().push(line.into());
    }

    async fn call(&self, calls: &Calls, outside: &Outside) -> Result<Value, Failure> {
        let Outside { key, is_step, on_unknown, answer } = outside.clone();
        let make = |call: oncebox::handler::Call| async move {
            self.note(format!("called {key}, {} unknown", call.unknowns));
            assert!(call.key.ends_with(key), "{}", call.key);
            match answer {
                Answer::Done(value) => Ok(json!(value)),
                Answer::Binary => Ok(json!("a\0b")),
                Answer::Large => Ok(json!("x".repeat(limits::RESULT_BYTES))),
                Answer::Silence => Err(Failure::retry("no answer")),
                Answer::Refusal => Err(Failure::retry("refused").not_done()),
            }
        };
        match is_step {
            true => calls.step(key, on_unknown, make).await,
            false => calls.once(key, on_unknown, make).await,
        }
    }

    /// Makes the calls of a plan. What they answer is noted.
    async fn calls(&self, plan: &[Op], calls: &Calls) -> Result<(), Failure> {
        for op in plan {
            if let Op::Call(outside) = op {
                let value = self.call(calls, outside).await?;
                self.note(format!("{} came to {value}", outside.key));
            }
        }
        Ok(())
    }

    fn run_on_sqlite(&self, cx: &SqliteCx<'_>, name: &str, end: StageEnd) -> Result<i64, Failure> {
        self.note(format!("{name} runs"));
        cx.transaction().execute(MARK, [name])?;
        match end {
            StageEnd::Statement => cx.transaction().execute_batch("SELECT * FROM nowhere")?,
            StageEnd::Needs(key) => drop(cx.once(key)?),
            _ => {}
        }
        end.result()
    }

    async fn run_on_postgres(
        &self,
        cx: &mut PostgresCx<'_>,
        name: &str,
        end: StageEnd,
    ) -> Result<i64, Failure> {
        self.note(format!("{name} runs"));
        let tx = cx.transaction().await?;
        tx.execute(MARK, &[&name]).await?;
        match end {
            StageEnd::Statement => tx.batch_execute("SELECT * FROM nowhere").await?,
            StageEnd::Needs(key) => drop(cx.once(key).await?),
            _ => {}
        }
        end.result()
    }

    fn taken(&self, key: &str, taken: &Taken) {
        match taken {
            Taken::First => self.note(format!("first at {key}")),
            Taken::Already(by) => self.note(format!("{key} was done on {}", by.route)),
        }
    }

    fn sent(&self, sending: Sending) {
        self.note(match sending {
            Sending::New(_) => "sent",
            Sending::Before(_) => "sent before",
            Sending::Conflict(_) => "sent before otherwise",
        });
    }
}

/// Leaves a stage by a panic that is caught.
fn cut_on_sqlite(cx: &SqliteCx<'_>, name: &str) -> Decision {
    let cut = || {
        cx.run_step(name, |cx| -> Result<(), Failure> {
            cx.transaction().execute(MARK, [name])?;
            panic!("in the middle of {name}")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(cut)).is_err());
    Decision::retry("it was slow")
}

/// Leaves a stage by dropping it, as a limit of time does.
async fn cut_on_postgres(cx: &mut PostgresCx<'_>, name: &str) -> Decision {
    let half_way = Notify::new();
    let stage = cx.run_step(name, async |cx| {
        cx.transaction().await?.execute(MARK, &[&name]).await?;
        half_way.notify_one();
        std::future::pending::<Result<(), Failure>>().await
    });
    tokio::select! {
        _ = stage => panic!("it does not end"),
        () = half_way.notified() => Decision::retry("it was slow"),
    }
}

/// A row of the service's own table.
const MARK: &str = "INSERT INTO bookings (what) VALUES ($1)";

impl SqliteHandler for Script {
    type Event = Data;
    type Prepared = Vec<Op>;

    async fn prepare(&self, event: &Event<Data>, calls: &Calls) -> Result<Vec<Op>, Failure> {
        let plan = (self.plan)(event);
        self.calls(&plan, calls).await?;
        self.gate.subscribe().wait_for(|open| *open).await.expect("the script lives");
        self.prepared.fetch_add(1, Ordering::SeqCst);
        Ok(plan)
    }

    fn apply(
        &self,
        event: &Event<Data>,
        plan: &Vec<Op>,
        cx: &SqliteCx<'_>,
    ) -> Result<Decision, Failure> {
        let mark = |what: &str| cx.transaction().execute(MARK, [what]);
        let mut decision = Decision::processed(format!("{} is done", event.event_id));
        for op in plan {
            match op {
                Op::Mark(what) => drop(mark(what)?),
                Op::Once(key) => {
                    let taken = cx.once(key)?;
                    self.taken(key, &taken);
                    if taken.is_first() {
                        mark(key)?;
                    }
                }
                Op::Step(name, result) => match cx.step::<i64>(name)? {
                    Step::Done(result) => self.note(format!("{name} came to {result}")),
                    Step::Run => {
                        mark(name)?;
                        cx.set_result(name, result)?;
                        assert_eq!(cx.get_result::<i64>(name)?, Some(*result));
                    }
                },
                Op::Stage(name, end) => {
                    match cx.run_step(name, |cx| self.run_on_sqlite(cx, name, *end))? {
                        Stage::Done(result) => self.note(format!("{name} came to {result}")),
                        Stage::Undone(decision) => return Ok(decision),
                    }
                }
                Op::CutStage(name) => decision = cut_on_sqlite(cx, name),
                Op::Record(name, bytes) => {
                    cx.step::<Value>(name)?;
                    cx.set_result(name, &"x".repeat(*bytes))?;
                }
                Op::SetResult(name) => cx.set_result(name, &1)?,
                Op::Send(message) => self.sent(cx.send(message)?),
                Op::Advance(object, version) => {
                    if !cx.advance(object, *version)? {
                        return Ok(Decision::stale("something newer was applied"));
                    }
                }
                Op::LoseLease => {
                    let sql = "UPDATE deliveries SET lease_until = lease_until - 3600000";
                    cx.transaction().execute(sql, [])?;
                }
                Op::Run(sql) => cx.transaction().execute_batch(sql)?,
                Op::Try(sql) => drop(cx.transaction().execute_batch(sql)),
                Op::Call(_) => {}
                Op::Fail(why) => return Err(std::io::Error::other(*why).into()),
                Op::Panic(why) => panic!("{why}"),
                Op::Decide(other) => decision = other.clone(),
            }
        }
        Ok(decision)
    }
}

impl PostgresHandler for Script {
    type Event = Data;

    async fn handle(
        &self,
        event: &Event<Data>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        let plan = (self.plan)(event);
        self.calls(&plan, cx.calls()).await?;
        let mut decision = Decision::processed(format!("{} is done", event.event_id));
        for op in &plan {
            match op {
                Op::Mark(what) => drop(cx.transaction().await?.execute(MARK, &[what]).await?),
                Op::Once(key) => {
                    let taken = cx.once(key).await?;
                    self.taken(key, &taken);
                    if taken.is_first() {
                        cx.transaction().await?.execute(MARK, &[key]).await?;
                    }
                }
                Op::Step(name, result) => match cx.step::<i64>(name).await? {
                    Step::Done(result) => self.note(format!("{name} came to {result}")),
                    Step::Run => {
                        cx.transaction().await?.execute(MARK, &[name]).await?;
                        cx.set_result(name, result).await?;
                        assert_eq!(cx.get_result::<i64>(name).await?, Some(*result));
                    }
                },
                Op::Stage(name, end) => {
                    let run =
                        async |cx: &mut PostgresCx<'_>| self.run_on_postgres(cx, name, *end).await;
                    match cx.run_step(name, run).await? {
                        Stage::Done(result) => self.note(format!("{name} came to {result}")),
                        Stage::Undone(decision) => return Ok(decision),
                    }
                }
                Op::CutStage(name) => decision = cut_on_postgres(cx, name).await,
                Op::Record(name, bytes) => {
                    cx.step::<Value>(name).await?;
                    cx.set_result(name, &"x".repeat(*bytes)).await?;
                }
                Op::SetResult(name) => cx.set_result(name, &1).await?,
                Op::Send(message) => self.sent(cx.send(message).await?),
                Op::Advance(object, version) => {
                    if !cx.advance(object, *version).await? {
                        return Ok(Decision::stale("something newer was applied"));
                    }
                }
                Op::LoseLease => {
                    let url = self.url.clone();
                    tokio::task::spawn_blocking(move || pass(&url, 3600)).await?;
                }
                Op::Run(sql) => cx.transaction().await?.batch_execute(sql).await?,
                Op::Try(sql) => drop(cx.transaction().await?.batch_execute(sql).await),
                Op::Call(_) => {}
                Op::Fail(why) => return Err(std::io::Error::other(*why).into()),
                Op::Panic(why) => panic!("{why}"),
                Op::Decide(other) => decision = other.clone(),
            }
        }
        Ok(decision)
    }
}

/// A service on a bed: one route, one table of its own, one destination.
pub(crate) struct Service {
    pub(crate) bed: Bed,
    pub(crate) route: Route,
    pub(crate) outbox: Route,
    pub(crate) worker: Worker,
    pub(crate) script: Script,
}

impl Service {
    /// Opens a service whose handler of `invoice.*` does as the plan says.
    pub(crate) async fn open(
        bed: Bed,
        plan: impl Fn(&Event<Data>) -> Vec<Op> + Send + Sync + 'static,
    ) -> Self {
        Self::under(bed, RouteRules::default(), plan).await
    }

    /// As [`Self::open`], on a route with these rules.
    pub(crate) async fn under(
        bed: Bed,
        rules: RouteRules,
        plan: impl Fn(&Event<Data>) -> Vec<Op> + Send + Sync + 'static,
    ) -> Self {
        let route = bed.route("billing", rules).await;
        let outbox = bed.destination("mailer").await;
        let table = "CREATE TABLE bookings (what TEXT NOT NULL)";
        match &bed.opened {
            Opened::Sqlite(store) => {
                store.with(|db| db.execute_batch(table)).await.unwrap().unwrap();
            }
            _ => postgres::execute(&bed.url, table),
        }
        let script = Script {
            plan: Arc::new(plan),
            notes: Arc::default(),
            gate: Arc::new(watch::Sender::new(true)),
            prepared: Arc::default(),
            url: bed.url.as_str().into(),
        };
        let worker = Self::worker(&bed, route, consumer(&bed.opened, &script), &script);
        Self { bed, route, outbox, worker, script }
    }

    fn worker(bed: &Bed, route: Route, consumer: Arc<dyn Consumer>, script: &Script) -> Worker {
        let options = WorkerOptions {
            lease: LEASE,
            observer: Arc::new(script.clone()),
            ..Default::default()
        };
        Worker::by_hand(bed.store.clone(), vec![work(route, consumer)], options)
    }

    /// The same service with another worker beside the first.
    pub(crate) fn another_worker(&self) -> Worker {
        let consumer = consumer(&self.bed.opened, &self.script);
        Self::worker(&self.bed, self.route, consumer, &self.script)
    }

    /// Records events that the route takes.
    pub(crate) async fn due(&self, ids: &[&str]) -> Vec<ReceiptId> {
        let mut receipts = Vec::new();
        for id in ids {
            receipts.push(self.bed.due(id, &[self.route]).await);
        }
        receipts
    }

    /// Records an event about an object.
    pub(crate) async fn due_about(&self, id: &str, object: &str, version: i64) {
        let event = self.bed.event(id, &[self.route]);
        let (object, version) = (Some(object.into()), Some(version));
        self.bed.send(Arrival { object, version, ..event }).await;
    }

    /// Works on what is due now. Says how many deliveries that moved.
    pub(crate) async fn work(&self) -> usize {
        self.worker.run_once().await.expect("the store answers")
    }

    /// Lets the pauses of retries pass, and works on what is due then.
    pub(crate) async fn work_later(&self) {
        self.bed.pass(3600);
        self.work().await;
    }

    /// How long the only delivery that waits has to, in milliseconds.
    pub(crate) fn pause(&self) -> i64 {
        let left = match self.bed.on_sqlite() {
            true => "due_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            false => "(1000 * extract(epoch FROM due_at - clock_timestamp()))::bigint",
        };
        let sql = format!("SELECT {left} FROM deliveries WHERE state = 'retrying'");
        self.bed.query(&sql).parse().expect("one delivery")
    }

    /// Makes what waits for its time due now. Leases stay as they are.
    pub(crate) fn hurry(&self) {
        let now = match self.bed.on_sqlite() {
            true => "CAST(unixepoch('subsec') * 1000 AS INTEGER) - 100",
            false => "clock_timestamp() - interval '0.1 second'",
        };
        self.bed.query(&format!("UPDATE deliveries SET due_at = {now} WHERE state = 'retrying'"));
    }

    /// The rows of the service's own table, in order of their text.
    pub(crate) fn marks(&self) -> Vec<String> {
        let lines = self.bed.query("SELECT what FROM bookings ORDER BY what");
        lines.lines().map(str::to_owned).collect()
    }

    /// The deliveries of the route, oldest first.
    pub(crate) async fn states(&self) -> Vec<String> {
        self.bed.states(&self.route).await
    }

    /// The messages in the outbox.
    pub(crate) async fn messages(&self) -> Vec<String> {
        self.bed.states(&self.outbox).await
    }

    /// What was last said of the delivery of a receipt.
    pub(crate) async fn detail(&self, receipt: ReceiptId) -> String {
        self.bed.delivery(self.route.of(receipt)).await.detail.unwrap_or_default()
    }

    /// What the handlers and the worker noted, and forgets it.
    pub(crate) fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.script.notes.lock().unwrap())
    }

    /// How many events are past the first part of their handler, on SQLite.
    pub(crate) fn prepared(&self) -> usize {
        self.script.prepared.load(Ordering::SeqCst)
    }

    /// Hands the deliveries of the route to another consumer.
    pub(crate) fn use_consumer(&mut self, consumer: Arc<dyn Consumer>) {
        self.worker = Self::worker(&self.bed, self.route, consumer, &self.script);
    }

    /// Opens deliveries of receipts again, processed or not.
    pub(crate) async fn replay(&self, receipts: &[ReceiptId]) {
        let (store, how) = (&self.bed.store, How { force: true, ignore_stale: false });
        let filter = ReplayFilter { receipts: receipts.to_vec(), ..Default::default() };
        let page = store.replay_page(&filter, None, 1000).await.unwrap();
        let open = page.iter().map(|found| (found.delivery, false)).collect();
        let job = Replay::new(filter, how, 0, &act("try again"));
        store.create_replay(&job, &act("try again")).await.unwrap();
        let job = store.take_replay(Some(job.id), LEASE).await.unwrap().expect("taken");
        let cursor = page.last().map(|found| found.delivery);
        let step =
            ReplayStep { id: job.id, lease: job.lease, open, passed: 0, cursor, done: true, how };
        store.step_replay(&step).await.unwrap().expect("the lease is ours");
    }
}

/// Handlers that do as a script says, on a store of either kind.
pub(crate) fn consumer(opened: &Opened, script: &Script) -> Arc<dyn Consumer> {
    let script = script.clone();
    match opened {
        Opened::Sqlite(store) => {
            Arc::new(Handlers::new(store.clone()).on("stripe-*", "invoice.*", script))
        }
        Opened::Postgres(store) => {
            Arc::new(Handlers::new(store.clone()).on("stripe-*", "invoice.*", script))
        }
        Opened::Nothing => panic!("there is no store"),
    }
}

/// Handlers for nothing.
pub(crate) fn no_handlers(opened: &Opened, unhandled: Unhandled) -> Arc<dyn Consumer> {
    match opened {
        Opened::Sqlite(store) => Arc::new(Handlers::new(store.clone()).unhandled(unhandled)),
        Opened::Postgres(store) => Arc::new(Handlers::new(store.clone()).unhandled(unhandled)),
        Opened::Nothing => panic!("there is no store"),
    }
}

/// A route as a worker takes it.
pub(crate) fn work(route: Route, consumer: Arc<dyn Consumer>) -> WorkRoute {
    WorkRoute {
        number: route.no,
        name: "billing".into(),
        rules: route.rules,
        concurrency: 8,
        rate: None,
        lease: None,
        consumer,
    }
}

impl Observer for Script {
    fn attempted(&self, _: &str, claimed: &Claimed, next: Next, _: &Report, _: Duration) {
        self.note(format!("{} {}", claimed.event_id, next.as_str()));
    }

    fn lease_lost(&self, _: &str, claimed: &Claimed) {
        self.note(format!("{} lease lost", claimed.event_id));
    }

    fn parked(&self, _: &str, claimed: &Claimed) {
        self.note(format!("{} parked", claimed.event_id));
    }
}

/// What a plan does to be seen from outside.
pub(crate) fn mark(what: &str) -> Op {
    Op::Mark(what.into())
}

/// A message to the service's only destination.
pub(crate) fn mail(key: &str) -> Op {
    Op::Send(Message::json("mailer", key, &[key]).unwrap())
}
