//! Handlers on PostgreSQL: commits that nobody hears of, and transactions that wait.

use std::sync::Arc;

use oncebox::effect::Message;
use oncebox::handler::{Decision, Event, Failure, PostgresCx, PostgresHandler};
use oncebox::store::{PostgresOptions, PostgresStore, Purpose, Store};
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::store::{Bed, Opened};
use tokio::sync::Notify;

use crate::bed::{Op, Service, consumer, mail, mark};

/// A service whose handlers reach PostgreSQL through a proxy.
async fn behind(proxy: &Proxy, service: &Service) -> Arc<PostgresStore> {
    let options = PostgresOptions::new(proxy.url(&service.bed.url));
    Arc::new(PostgresStore::open(options, Purpose::Serve).await.unwrap())
}

async fn cut_at_commit(arm: fn(&Proxy), committed: bool) {
    let mut service = Service::open(Bed::postgres().await, |event| {
        vec![mark(&event.event_id), Op::Once("paid".into()), mail("receipt")]
    })
    .await;
    let proxy = Proxy::to_url(&service.bed.url);
    let store = behind(&proxy, &service).await;
    // The worker stays on its own connections; only the handler's is cut.
    let beside = consumer(&Opened::Postgres(store.clone()), &service.script);
    service.use_consumer(beside);
    let receipts = service.due(&["e1"]).await;
    arm(&proxy);
    service.work().await;
    assert_eq!(proxy.cuts(), 1);
    if committed {
        assert_eq!(service.states().await, ["e1 processed"]);
        assert_eq!(service.notes(), ["first at paid", "sent", "e1 processed"]);
    } else {
        assert_eq!(service.states().await, ["e1 retrying"]);
        assert_eq!(service.marks(), [""; 0]);
        let detail = service.detail(receipts[0]).await;
        assert!(detail.starts_with("whether it was committed is not known"), "{detail}");
        assert_eq!(service.notes(), ["first at paid", "sent", "e1 retry"]);
        service.work_later().await;
    }
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["e1", "paid"]);
    assert_eq!(service.messages().await, ["receipt received"]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_nobody_heard_of_is_found_out() {
    cut_at_commit(|proxy| proxy.cut_after_client_bytes(b"COMMIT"), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_arrived_is_a_failed_attempt() {
    cut_at_commit(|proxy| proxy.cut_before_client_bytes(b"COMMIT"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_commits_is_dead_and_says_so() {
    for sql in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN"] {
        let plan = [mark("stray"), Op::Run(sql)];
        let service = Service::open(Bed::postgres().await, move |_| plan.to_vec()).await;
        let receipts = service.due(&["e1"]).await;
        service.work().await;
        assert_eq!(service.states().await, ["e1 dead"], "{sql}");
        let detail = service.detail(receipts[0]).await;
        assert!(detail.contains("the handler ended the transaction it was given"), "{detail}");
    }
}

/// PostgreSQL refuses everything after an error; passing over it does not help.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_passes_over_an_error_commits_nothing() {
    let plan = [mark("stray"), Op::Try("SELECT 1/0")];
    let service = Service::open(Bed::postgres().await, move |_| plan.to_vec()).await;
    let receipts = service.due(&["e1"]).await;
    service.work().await;
    assert_eq!((service.states().await, service.marks().len()), (vec!["e1 retrying".into()], 0));
    let detail = service.detail(receipts[0]).await;
    assert!(detail.contains("or run the statement in a savepoint"), "{detail}");
}

/// Sends, and does not care whether that went well.
struct Careless;

impl PostgresHandler for Careless {
    type Event = ();

    async fn handle(&self, _: &Event<()>, cx: &mut PostgresCx<'_>) -> Result<Decision, Failure> {
        drop(cx.send(&Message::json("mailer", "receipt", "paid")?).await);
        Ok(Decision::processed("sent"))
    }
}

/// A transaction that could not be begun is an error like any other in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_passes_over_a_failed_begin_is_not_done() {
    let mut service = Service::open(Bed::postgres().await, |_| Vec::new()).await;
    let Opened::Postgres(store) = &service.bed.opened else { panic!("not on PostgreSQL") };
    let handlers = oncebox::handler::Handlers::new(store.clone()).on("*", "*", Careless);
    service.use_consumer(Arc::new(handlers));
    service.due(&["e1"]).await;
    service.bed.query("ALTER FUNCTION oncebox.enter RENAME TO hidden");
    service.work().await;
    assert_eq!(service.states().await, ["e1 retrying"]);
    service.bed.query("ALTER FUNCTION oncebox.hidden RENAME TO enter");
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.messages().await, ["receipt received"]);
}

/// Takes a key, and waits with it until it is told how to end.
struct Slow {
    holding: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl PostgresHandler for Slow {
    type Event = ();

    async fn handle(
        &self,
        event: &Event<()>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        let first = cx.once("paid").await?.is_first();
        if event.event_id == "e1" && event.attempt == 1 {
            assert!(first);
            self.holding.notify_one();
            self.go_on.notified().await;
            return Err(Failure::retry("after all"));
        }
        Ok(Decision::processed(if first { "first" } else { "second" }))
    }
}

/// **once** never says no while the other may still roll back.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_waits_for_whoever_has_the_key() {
    let mut service = Service::open(Bed::postgres().await, |_| Vec::new()).await;
    let Opened::Postgres(store) = &service.bed.opened else { panic!("not on PostgreSQL") };
    let (holding, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = Slow { holding: holding.clone(), go_on: go_on.clone() };
    let handlers = oncebox::handler::Handlers::new(store.clone()).on("*", "*", slow);
    service.use_consumer(Arc::new(handlers));
    service.due(&["e1"]).await;
    service.worker.claim_once().await.unwrap();
    holding.notified().await;
    let receipts = service.due(&["e2"]).await;
    service.worker.claim_once().await.unwrap();
    let url = service.bed.url.clone();
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
    tokio::task::block_in_place(|| {
        oncebox_testkit::wait::until("the second waits for the first", || {
            oncebox_testkit::postgres::query(&url, waits) == "1"
        });
    });
    assert_eq!(service.states().await, ["e1 processing", "e2 processing"]);
    go_on.notify_one();
    service.worker.idle().await;
    assert_eq!(service.states().await, ["e1 retrying", "e2 processed"]);
    let row = service.bed.delivery(service.route.of(receipts[0])).await;
    assert_eq!(row.summary.as_deref(), Some("first"));
}

/// A handler that is cut short leaves no transaction behind, and its connection is not used again.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_is_cut_short_takes_everything_back() {
    let plan = [mark("stray"), Op::Once("paid".into()), Op::Run("SELECT pg_sleep(600)")];
    let service = Service::open(Bed::postgres().await, move |event| {
        if event.attempt == 1 { plan.to_vec() } else { vec![Op::Once("paid".into())] }
    })
    .await;
    service.due(&["e1"]).await;
    service.worker.claim_once().await.unwrap();
    let url = service.bed.url.clone();
    let sleeping = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'
        AND state = 'active' AND datname = current_database()";
    tokio::task::block_in_place(|| {
        oncebox_testkit::wait::until("the handler sleeps", || {
            !oncebox_testkit::postgres::query(&url, sleeping).is_empty()
        });
    });
    service.bed.lose_leases().await;
    assert_eq!(service.worker.beat().await.unwrap(), 1);
    service.worker.idle().await;
    assert_eq!(service.notes(), ["first at paid", "e1 lease lost"]);
    // What is left of it on the server is ended, as an operator would.
    let pid = oncebox_testkit::postgres::query(&url, sleeping);
    oncebox_testkit::postgres::query(&url, &format!("SELECT pg_terminate_backend({pid})"));
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed"]);
    assert_eq!(service.marks(), ["paid"]);
}

/// Reads what there is in a table, all columns of it.
struct Reads;

impl PostgresHandler for Reads {
    type Event = ();

    async fn handle(&self, _: &Event<()>, cx: &mut PostgresCx<'_>) -> Result<Decision, Failure> {
        let everything = cx.prepare("SELECT * FROM public.prices").await?;
        let row = cx.transaction().await?.query_one(&everything, &[]).await?;
        Ok(Decision::processed(format!("{} columns", row.len())))
    }
}

/// A statement outlives the table it was prepared for by one attempt at most.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_prepared_again_once_its_table_has_changed() {
    let mut service = Service::open(Bed::postgres().await, |_| Vec::new()).await;
    let Opened::Postgres(store) = &service.bed.opened else { panic!("not on PostgreSQL") };
    let handlers = oncebox::handler::Handlers::new(store.clone()).on("*", "*", Reads);
    service.use_consumer(Arc::new(handlers));
    service.bed.query("CREATE TABLE public.prices AS SELECT 12 AS cents");
    service.due(&["e1"]).await;
    service.work().await;
    service.bed.query("ALTER TABLE public.prices ADD currency text");
    let receipts = service.due(&["e2"]).await;
    service.work().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 retrying"]);
    service.work_later().await;
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    let row = service.bed.delivery(service.route.of(receipts[0])).await;
    assert_eq!(row.summary.as_deref(), Some("2 columns"));
}

/// Tells what its session is like; the first then leaves in it what it can.
struct Untidy;

impl PostgresHandler for Untidy {
    type Event = ();

    async fn handle(
        &self,
        event: &Event<()>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        let transaction = cx.transaction().await?;
        let told: String = transaction.query_one(SESSION, &[]).await?.get(0);
        if event.event_id == "e1" {
            let leave = "SET search_path = pg_catalog; SET default_transaction_read_only = on;
                SET lock_timeout = '1h'; SET synchronous_commit = off; SET tcp_keepalives_idle = 99;
                SELECT pg_advisory_lock(7); CREATE TEMP TABLE prices (); SET ROLE pg_monitor";
            transaction.batch_execute(leave).await?;
        }
        Ok(Decision::processed(told))
    }
}

const SESSION: &str = "SELECT concat_ws(' ', pg_backend_pid(), current_user,
        current_setting('search_path'), current_setting('default_transaction_isolation'),
        current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
        current_setting('synchronous_commit'), current_setting('client_min_messages'),
        current_setting('tcp_keepalives_idle'), to_regclass('pg_temp.prices'),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()))";

/// Connections are used again; what a handler has set in its session is not there any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_leaves_nothing_in_its_session() {
    let mut service = Service::open(Bed::postgres().await, |_| Vec::new()).await;
    let Opened::Postgres(store) = &service.bed.opened else { panic!("not on PostgreSQL") };
    let handlers = oncebox::handler::Handlers::new(store.clone()).on("*", "*", Untidy);
    service.use_consumer(Arc::new(handlers));
    service.bed.query("SELECT oncebox.allow('pg_monitor', 'billing')");
    let mut told = Vec::new();
    for event in ["e1", "e2"] {
        let receipts = service.due(&[event]).await;
        service.work().await;
        told.push(service.bed.delivery(service.route.of(receipts[0])).await.summary);
    }
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    assert_eq!(told[0], told[1]);
}
