//! Handlers that are started on a route, and stopped.

use std::sync::Arc;

use oncebox::handler::{Decision, Event, Failure, HandlerOptions, Handlers, SqliteCx, apply};
use oncebox::route::RouteRules;
use oncebox::store::{BreakerNote, Queue, Store, StoreError};
use oncebox_testkit::store::{Bed, Opened};
use tokio::sync::Notify;

use crate::bed::{Op, Service, mail, mark};

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_not_stored_is_refused_with_the_remedy() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    bed.route("shipping", RouteRules::default()).await;
    let handlers = Handlers::new(store.clone());
    let refused = handlers.start("billing", HandlerOptions::default()).await.err();
    let Some(StoreError::Unfit { problem, hint }) = refused else { panic!("{refused:?}") };
    assert_eq!(problem, "the store has no route `billing`; there are shipping");
    assert!(hint.contains("[routes.billing] with `pull = true`"), "{hint}");
}

/// What handlers took of a route that is pushed would never be.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_pushed_is_refused_with_the_remedy() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    bed.route("billing", RouteRules { pulled: false, ..RouteRules::default() }).await;
    bed.destination("mail").await;
    for (route, remedy) in
        [("billing", "`pull = true` instead of `push`"), ("outbox/mail", "[destinations.mail]")]
    {
        let handlers = Handlers::new(store.clone());
        let refused = handlers.start(route, HandlerOptions::default()).await.err();
        let Some(StoreError::Unfit { problem, hint }) = refused else { panic!("{refused:?}") };
        assert_eq!(problem, format!("the route `{route}` is pushed"));
        assert!(hint.contains(remedy), "{hint}");
    }
}

/// A route that has come to be pushed is left to whoever pushes.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_pushed_meanwhile_is_left_alone() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    let route = bed.route("billing", RouteRules::default()).await;
    let handler = apply(|event: &Event<()>, _: &SqliteCx<'_>| {
        Ok(Decision::processed(event.event_id.clone()))
    });
    let handlers = Handlers::new(store.clone()).on("*", "*", handler);
    let worker = handlers.by_hand("billing", HandlerOptions::default()).await.unwrap();
    bed.route("billing", RouteRules { pulled: false, ..RouteRules::default() }).await;
    assert!(worker.look_at_rules().await.unwrap());
    bed.due("e1", &[route]).await;
    assert_eq!(worker.work_off().await.unwrap(), 0);
    assert_eq!(bed.states(&route).await, ["e1 received"]);
    bed.route("billing", RouteRules::default()).await;
    assert!(worker.look_at_rules().await.unwrap());
    assert_eq!(worker.work_off().await.unwrap(), 1);
    assert_eq!(bed.states(&route).await, ["e1 processed"]);
    worker.stop().await;
}

/// What comes in while it runs is handled, and what was begun when it is stopped is ended.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_run_until_they_are_told_to_stop() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    let route = bed.route("billing", RouteRules::default()).await;
    let (handled, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let seen = handled.clone();
    let handler = apply(move |event: &Event<()>, _: &SqliteCx<'_>| {
        seen.notify_one();
        Ok(Decision::processed(event.event_id.clone()))
    });
    let handlers = Handlers::new(store.clone()).on("*", "*", handler);
    let stopped = stop.clone();
    let stopped = async move { stopped.notified().await };
    let running =
        tokio::spawn(async { handlers.run("billing", HandlerOptions::default(), stopped).await });
    for id in ["e1", "e2", "e3"] {
        bed.due(id, &[route]).await;
        handled.notified().await;
    }
    stop.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(bed.states(&route).await, ["e1 processed", "e2 processed", "e3 processed"]);
}

/// Rules belong to the route, and others may change them.
#[tokio::test(flavor = "multi_thread")]
async fn changed_rules_are_taken_on() {
    let bed = Bed::sqlite().await;
    let Opened::Sqlite(store) = &bed.opened else { panic!("not on SQLite") };
    let route = bed.route("billing", RouteRules::default()).await;
    let handler = apply(|_: &Event<()>, _: &SqliteCx<'_>| Err(Failure::retry("never")));
    let handlers = Handlers::new(store.clone()).on("*", "*", handler);
    let worker = handlers.by_hand("billing", HandlerOptions::default()).await.unwrap();
    assert!(!worker.look_at_rules().await.unwrap());
    bed.route("billing", RouteRules { max_attempts: 1, ..RouteRules::default() }).await;
    assert!(worker.look_at_rules().await.unwrap());
    assert!(!worker.look_at_rules().await.unwrap());
    bed.due("e1", &[route]).await;
    assert_eq!(worker.work_off().await.unwrap(), 1);
    assert_eq!(bed.states(&route).await, ["e1 dead"]);
    worker.stop().await;
}

/// A service of its own beside the one that receives.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_run_beside_the_server_on_postgresql() {
    let service = Service::open(Bed::postgres().await, |event| {
        vec![mark(&event.event_id), Op::Once("first".into())]
    })
    .await;
    let Opened::Postgres(beside) = Opened::open(&service.bed.url).await else { panic!() };
    let handlers = Handlers::new(beside).on("*", "*", service.script.clone());
    let worker = handlers.start("billing", HandlerOptions::default()).await.unwrap();
    service.due(&["e1", "e2", "e3"]).await;
    let all = || service.bed.rows("finished") == 3;
    tokio::task::block_in_place(|| oncebox_testkit::wait::until("all are handled", all));
    worker.idle().await;
    worker.stop().await;
    assert_eq!(service.marks(), ["e1", "e2", "e3", "first"]);
}

/// A role of its own, which is allowed to run handlers on one route and owns nothing of Oncebox.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_run_under_a_role_of_their_own() {
    let service = Service::open(Bed::postgres().await, |event| {
        vec![
            mark(&event.event_id),
            Op::Once("first".into()),
            Op::Step("charge", 7),
            Op::Advance("in_456", 7),
            mail("receipt"),
        ]
    })
    .await;
    let role = format!("shop_{}", service.bed.query("SELECT current_database()"));
    let bed = &service.bed;
    bed.query(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'shop';
         ALTER ROLE {role} SET search_path = oncebox, public;
         GRANT ALL ON bookings TO {role};
         SELECT oncebox.allow_handlers('{role}', 'billing')"
    ));
    let (_, rest) = bed.url.split_once('@').expect("a user in the address");
    let url = format!("postgres://{role}:shop@{rest}");
    let Opened::Postgres(beside) = Opened::open(&url).await else { panic!() };
    let handlers = Handlers::new(beside.clone()).on("*", "*", service.script.clone());
    let worker = handlers.start("billing", HandlerOptions::default()).await.unwrap();
    service.due(&["e1", "e2"]).await;
    let all = || bed.rows("finished") == 2;
    tokio::task::block_in_place(|| oncebox_testkit::wait::until("all are handled", all));
    worker.idle().await;
    worker.stop().await;
    // What a worker does beside its deliveries.
    beside.rescue(10).await.unwrap();
    beside.release_unblocked(10).await.unwrap();
    beside.fill_lanes().await.unwrap();
    let (state, reason) = ("open", "5 connections failed in a row".to_owned());
    let note = BreakerNote { route: service.route.no, state, reason, next_probe: None };
    beside.tell_breakers("shop", &[note]).await.unwrap();
    let other = bed.route("shipping", RouteRules::default()).await;
    let handlers = Handlers::new(beside.clone()).on("*", "*", service.script.clone());
    let refused = handlers.start("shipping", HandlerOptions::default()).await.err();
    let Some(StoreError::Unfit { problem, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(problem, "this role may not work on the route `shipping`");
    assert_eq!(service.states().await, ["e1 processed", "e2 processed"]);
    assert_eq!(bed.rows("effects"), 4, "one once, two steps, one message");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let may_work = "SELECT oncebox.may_work(no) FROM oncebox.routes WHERE no = $1";
    let row = client.query_one(may_work, &[&other.no.0]).await.unwrap();
    assert!(!row.get::<_, bool>(0));
    let days = client.batch_execute("SELECT oncebox.make_days(1, 99999)").await.unwrap_err();
    assert_eq!(days.code().expect("the server's answer").code(), "OB403");
    for closed in [
        "SELECT 1 FROM oncebox.tokens",
        "SELECT 1 FROM oncebox.paired_secrets",
        "DELETE FROM oncebox.receipts",
        "UPDATE oncebox.routes SET pulled = true",
        "INSERT INTO oncebox.route_grants SELECT role, 1 FROM oncebox.route_grants",
        "CREATE TABLE oncebox.mine ()",
        "DROP TABLE oncebox.lanes",
        "SELECT oncebox.allow(current_user::text)",
    ] {
        let refused = client.batch_execute(closed).await.expect_err(closed);
        let code = refused.code().expect("the server's answer");
        assert_eq!(code.code(), "42501", "{closed}");
    }
    beside.close().await;
    bed.query(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
