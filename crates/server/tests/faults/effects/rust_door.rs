//! The Rust door: a server with its handlers inside, or handlers beside it.

use std::path::Path;
use std::sync::Arc;

use oncebox::clock::SystemClock;
use oncebox::effect::Message;
use oncebox::handler::{
    Calls, Decision, Event, Failure, HandlerOptions, Handlers, PostgresCx, PostgresHandler,
    SqliteCx, SqliteHandler,
};
use oncebox::store::{PostgresOptions, PostgresStore, Purpose, SqliteOptions, SqliteStore, Store};
use oncebox::worker::Consumer;
use oncebox_server::config::Config;
use oncebox_server::server::{Listeners, Server, StartOptions, ingest_options};

use super::door::{Told, at, may_die};
use super::fact::fact;
use crate::bed::ROUTE;

/// What an attempt ends with.
pub(super) const NOTE: &str = "the fact is paid";

/// Receives and works until it is killed.
pub(super) async fn work(told: &Told) {
    let (store, handlers): (Arc<dyn Store>, Arc<dyn Consumer>) =
        match told.store.strip_prefix("sqlite://") {
            Some(path) => {
                let options = SqliteOptions::new(path);
                let store = Arc::new(SqliteStore::open(options, Purpose::Serve).await.unwrap());
                (store.clone(), Arc::new(Handlers::new(store).on("*", "*", Business)))
            }
            None => {
                let options = PostgresOptions::new(told.store.clone());
                let store = Arc::new(PostgresStore::open(options, Purpose::Serve).await.unwrap());
                (store.clone(), Arc::new(Handlers::new(store).on("*", "*", Business)))
            }
        };
    let config = Config::load(Some(Path::new(&told.config))).unwrap();
    let options = StartOptions {
        handlers: [(ROUTE.to_owned(), handlers)].into(),
        ..ingest_options(&config.server).into()
    };
    let listeners = Listeners::bind(&config).await.unwrap();
    let server =
        Server::start(config, store, Arc::new(SystemClock), options, listeners).await.unwrap();
    let (public, admin) = (server.public, server.admin);
    // As a server says it in its log, for those who wait for it.
    println!("\n{{\"message\":\"listening\",\"public\":\"{public}\",\"admin\":\"{admin}\"}}");
    may_die();
    panic!("the store failed: {}", server.failed().await);
}

/// Works beside a server, until it is killed.
pub(super) async fn work_beside(told: &Told) {
    let options = PostgresOptions::new(told.store.clone());
    let store = Arc::new(PostgresStore::open(options, Purpose::Serve).await.unwrap());
    may_die();
    let handlers = Handlers::new(store).on("*", "*", Business);
    let ended = handlers.run(ROUTE, HandlerOptions::default(), std::future::pending()).await;
    panic!("handlers ended: {ended:?}");
}

struct Business;

fn mail(key: &str) -> Result<Message, Failure> {
    Message::raw("mailer", key, "application/json", "{}")
}

impl SqliteHandler for Business {
    type Event = serde::de::IgnoredAny;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Self::Event>, _: &Calls) -> Result<(), Failure> {
        at("claimed");
        Ok(())
    }

    fn apply(
        &self,
        event: &Event<Self::Event>,
        (): &(),
        cx: &SqliteCx<'_>,
    ) -> Result<Decision, Failure> {
        at("entered");
        let fact = fact(&event.event_id);
        if cx.advance(&fact.account, fact.version)? {
            let sql = "INSERT INTO main.accounts VALUES (?1, ?2)
                       ON CONFLICT (id) DO UPDATE SET version = excluded.version";
            cx.transaction().execute(sql, (&fact.account, fact.version))?;
        }
        at("state");
        if cx.once(&fact.key)?.is_first() {
            cx.transaction().execute("INSERT INTO main.paid VALUES (?1)", [&fact.key])?;
        }
        at("once");
        cx.send(&mail(&fact.key)?)?;
        at("sent");
        Ok(Decision::processed(NOTE))
    }
}

impl PostgresHandler for Business {
    type Event = serde::de::IgnoredAny;

    async fn handle(
        &self,
        event: &Event<Self::Event>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        at("claimed");
        let fact = fact(&event.event_id);
        cx.transaction().await?;
        at("entered");
        if cx.advance(&fact.account, fact.version).await? {
            let sql = "INSERT INTO public.accounts VALUES ($1, $2)
                       ON CONFLICT (id) DO UPDATE SET version = excluded.version";
            cx.transaction().await?.execute(sql, &[&fact.account, &fact.version]).await?;
        }
        at("state");
        if cx.once(&fact.key).await?.is_first() {
            let sql = "INSERT INTO public.paid VALUES ($1)";
            cx.transaction().await?.execute(sql, &[&fact.key]).await?;
        }
        at("once");
        cx.send(&mail(&fact.key)?).await?;
        at("sent");
        Ok(Decision::processed(NOTE))
    }
}
