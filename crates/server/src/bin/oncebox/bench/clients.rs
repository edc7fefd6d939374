//! Workers behind the SQL door: connections that know nothing of Oncebox but its functions.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls, Statement};

use super::bed::{ROUTE, failed};
use crate::exit::Failure;

/// Connections at the same time.
pub(crate) const CLIENTS: usize = 8;

/// Works off a route over SQL. How many deliveries that were, and how long it took.
pub(crate) async fn work_off(url: &str) -> Result<(u64, Duration), Failure> {
    let mut workers = Vec::new();
    for _ in 0..CLIENTS {
        workers.push(Worker::connect(url).await.map_err(failed)?);
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for worker in workers {
        tasks.spawn(worker.run());
    }
    let mut done = 0;
    while let Some(ended) = tasks.join_next().await {
        done += ended.map_err(failed)?.map_err(failed)?;
    }
    Ok((done, began.elapsed()))
}

struct Worker {
    client: Client,
    claim: Statement,
    enter: Statement,
    once: Statement,
    write: Statement,
    finish: Statement,
}

impl Worker {
    async fn connect(url: &str) -> Result<Self, Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let claim = "SELECT delivery, lease, event_id FROM oncebox.claim($1, 32)";
        Ok(Self {
            claim: client.prepare(claim).await?,
            enter: client.prepare("SELECT oncebox.enter($1, $2)").await?,
            once: client.prepare("SELECT oncebox.once($1)").await?,
            write: client.prepare("INSERT INTO public.payments VALUES ($1, 1200)").await?,
            finish: client.prepare("SELECT oncebox.finish($1, $2)").await?,
            client,
        })
    }

    async fn run(mut self) -> Result<u64, Error> {
        let mut done = 0;
        loop {
            let rows = self.client.query(&self.claim, &[&ROUTE]).await?;
            if rows.is_empty() {
                return Ok(done);
            }
            for row in rows {
                let event: String = row.get(2);
                self.handle(row.get(0), row.get(1), &format!("receipt-email:{event}")).await?;
                done += 1;
            }
        }
    }

    async fn handle(&mut self, delivery: &str, lease: i64, key: &str) -> Result<(), Error> {
        let transaction = self.client.transaction().await?;
        transaction.execute(&self.enter, &[&delivery, &lease]).await?;
        if transaction.query_one(&self.once, &[&key]).await?.get(0) {
            transaction.execute(&self.write, &[&key]).await?;
        }
        transaction.execute(&self.finish, &[&delivery, &lease]).await?;
        transaction.commit().await
    }
}
