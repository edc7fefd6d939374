//! Handlers on the only writer: in one commit, and still on their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use oncebox::handler::{Calls, Decision, Event, Failure, Handlers, SqliteCx, SqliteHandler};
use oncebox::limits;
use oncebox_testkit::store::{Bed, Opened, until};

use crate::bed::{Data, Op, Service, consumer, mark};

/// Never comes to an end by itself.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT count(*) FROM n";
const ENDLESS_WRITE: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    INSERT INTO bookings SELECT 'endless' FROM n";

/// Claims what is due and has the writer come to all of it at once.
async fn work_together(service: &Service, events: usize) {
    let Opened::Sqlite(store) = &service.bed.opened else { panic!("not on SQLite") };
    service.worker.claim_once().await.unwrap();
    // Kept until every handler waits for it.
    let (let_go, wait) = channel::<()>();
    let (store, kept) = (store.clone(), service.script.gate.clone());
    let busy = tokio::spawn(async move {
        let keep = move |_: &mut _| {
            kept.send_replace(true);
            wait.recv().unwrap();
        };
        store.with(keep).await
    });
    until(|| service.prepared() == events).await;
    let_go.send(()).unwrap();
    busy.await.unwrap().unwrap();
    service.worker.idle().await;
}

/// Five events in one batch; the third does as it is told, the others just mark themselves.
async fn batch(third: Vec<Op>) -> (Service, String) {
    let bed = Bed::sqlite().await;
    let service = Service::open(bed, move |event: &Event<Data>| {
        let mut plan = vec![mark(&event.event_id)];
        if event.event_id == "e3" && event.attempt == 1 {
            plan.extend(third.clone());
        }
        plan
    })
    .await;
    service.script.gate.send_replace(false);
    let receipts = service.due(&["e1", "e2", "e3", "e4", "e5"]).await;
    work_together(&service, 5).await;
    let neighbours = ["e1", "e2", "e4", "e5"];
    assert_eq!(service.marks(), neighbours, "{:?}", service.notes());
    let states = service.states().await;
    assert!(neighbours.iter().all(|id| states.contains(&format!("{id} processed"))), "{states:?}");
    let detail = service.detail(receipts[2]).await;
    let state = states[2].clone();
    (service, format!("{state}: {detail}"))
}

async fn then_the_retry_succeeds(service: Service) {
    service.work_later().await;
    assert_eq!(service.marks(), ["e1", "e2", "e3", "e4", "e5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_leaves_its_neighbours_alone() {
    let (service, said) = batch(vec![Op::Fail("no stock")]).await;
    assert_eq!(said, "e3 retrying: no stock");
    then_the_retry_succeeds(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_leaves_its_neighbours_alone() {
    let (service, said) = batch(vec![Op::Panic("a bug")]).await;
    assert_eq!(said, "e3 retrying: the handler panicked: a bug");
    then_the_retry_succeeds(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_query_is_interrupted() {
    let (service, said) = batch(vec![Op::Run(ENDLESS)]).await;
    assert!(said.starts_with("e3 retrying: `apply` was interrupted after 250 ms"), "{said}");
    assert!(said.contains("do in `prepare` what takes long"), "{said}");
    then_the_retry_succeeds(service).await;
}

/// SQLite takes back the whole transaction when a write is interrupted.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_write_is_interrupted() {
    let (service, said) = batch(vec![Op::Run(ENDLESS_WRITE)]).await;
    assert!(said.starts_with("e3 retrying: `apply` was interrupted"), "{said}");
    then_the_retry_succeeds(service).await;
}

/// What it writes after that would be committed by itself, statement for statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_passes_over_its_interruption_commits_nothing() {
    let stray = "INSERT INTO bookings VALUES ('stray')";
    let (service, said) = batch(vec![Op::Try(ENDLESS_WRITE), Op::Try(stray)]).await;
    assert!(said.starts_with("e3 retrying: `apply` was interrupted"), "{said}");
    then_the_retry_succeeds(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_commits_is_dead_and_nothing_is_kept() {
    let endings: [&[&'static str]; 6] = [
        &["COMMIT"],
        &["ROLLBACK"],
        &["ROLLBACK", "BEGIN", "INSERT INTO bookings VALUES ('stray')"],
        &["COMMIT", "BEGIN", "INSERT INTO bookings VALUES ('stray')"],
        &["ROLLBACK", "INSERT INTO bookings VALUES ('stray')"],
        &["RELEASE oncebox_handler"],
    ];
    for statements in endings {
        let (_service, said) = batch(statements.iter().map(|sql| Op::Try(sql)).collect()).await;
        let expected = "e3 dead: the handler ended the transaction it was given";
        assert!(said.starts_with(expected), "{statements:?}: {said}");
    }
}

/// Known only when everything commits: then nobody knows whose it is.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_committed_is_found_among_its_neighbours() {
    let orphan = "CREATE TABLE IF NOT EXISTS parents (id INTEGER PRIMARY KEY);
         CREATE TABLE children
            (of INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO children VALUES (1)";
    let (service, said) = batch(vec![Op::Run(orphan)]).await;
    assert!(said.starts_with("e3 retrying: ") && said.contains("FOREIGN KEY"), "{said}");
    then_the_retry_succeeds(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_that_wait_together_commit_together() {
    let bed = Bed::sqlite().await;
    let service = Service::open(bed, |event| vec![mark(&event.event_id)]).await;
    service.script.gate.send_replace(false);
    let ids: Vec<String> = (0..8).map(|n| format!("e{n}")).collect();
    service.due(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let wal = format!("{}-wal", service.bed.url.strip_prefix("sqlite://").unwrap());
    let before = std::fs::metadata(&wal).unwrap().len();
    work_together(&service, 8).await;
    assert_eq!(service.marks().len(), 8);
    // Eight commits would have written each page eight times.
    let pages = (std::fs::metadata(&wal).unwrap().len() - before) / 8192;
    assert!(pages < 48, "{pages} pages");
}

/// Plays a part by the turn it has: the first books the payment, the second finds it booked and
/// gives up, the third ends the transaction of all three. Then the first fails.
struct Troupe {
    turns: AtomicUsize,
    script: crate::bed::Script,
}

impl SqliteHandler for Troupe {
    type Event = Data;
    type Prepared = Vec<Op>;

    async fn prepare(&self, event: &Event<Data>, calls: &Calls) -> Result<Vec<Op>, Failure> {
        SqliteHandler::prepare(&self.script, event, calls).await
    }

    fn apply(&self, _: &Event<Data>, _: &Vec<Op>, cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        let turn = self.turns.fetch_add(1, Ordering::SeqCst) + 1;
        if turn == 3 {
            cx.transaction().execute_batch(ENDLESS_WRITE)?;
        }
        let first = cx.once("paid:in_456")?.is_first();
        match turn {
            4 => Err(Failure::retry("no stock after all")),
            _ if first => Ok(Decision::processed("booked")),
            _ => Err(Failure::dead("it is booked already")),
        }
    }
}

/// What was seen of a neighbour whose work was taken back was never there.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_up_for_what_was_never_committed() {
    let mut service = Service::open(Bed::sqlite().await, |_| Vec::new()).await;
    let Opened::Sqlite(store) = &service.bed.opened else { panic!("not on SQLite") };
    let troupe = Troupe { turns: AtomicUsize::new(0), script: service.script.clone() };
    let handlers = Handlers::new(store.clone()).on("*", "*", troupe);
    service.use_consumer(Arc::new(handlers));
    service.script.gate.send_replace(false);
    service.due(&["e1", "e2", "e3"]).await;
    work_together(&service, 3).await;
    let mut states: Vec<String> =
        service.states().await.iter().map(|state| state[3..].to_owned()).collect();
    states.sort();
    // The third found what the second booked in the end.
    assert_eq!(states, ["dead", "processed", "retrying"]);
    assert_eq!(service.bed.rows("effects"), 1);
    let effect = service.bed.effect("paid:in_456").await;
    let row = service.bed.delivery(effect.delivery).await;
    assert_eq!(row.summary.as_deref(), Some("booked"));
}

/// A store that was closed under its handlers says so, each time.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_on_a_closed_store_do_not_wait() {
    let service = Service::open(Bed::sqlite().await, |event| vec![mark(&event.event_id)]).await;
    service.due(&["e1"]).await;
    let claimed = service.bed.take(&service.route).await;
    let payload = service.bed.store.payloads(&[claimed.delivery.receipt]).await.unwrap().remove(0);
    let consumer = consumer(&service.bed.opened, &service.script);
    service.bed.store.close().await;
    for _ in 0..2 {
        let report = consumer.deliver(&claimed, payload.clone()).await;
        assert!(report.detail.unwrap().contains("the store is closed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_on_the_writer_must_end_what_it_begins() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    let open = store.with(|db| db.execute_batch("BEGIN; CREATE TABLE half (id)")).await;
    assert!(open.unwrap_err().to_string().contains("left a transaction open"));
    let panicked = store.with(|_| panic!("a bug")).await.map(drop);
    assert!(panicked.unwrap_err().to_string().contains("panicked: a bug"));
    let counted = store
        .with(|db| {
            db.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'half'", [], |row| {
                row.get::<_, i64>(0)
            })
        })
        .await;
    assert_eq!(counted.unwrap().unwrap(), 0);
    assert_eq!(limits::APPLY_TIME.as_millis(), 250);
}
