//! The SQL door: a worker that knows nothing of Oncebox but the functions.

use tokio_postgres::{Client, NoTls};

use super::door::{Told, at, may_die};
use super::fact::fact;
use crate::bed::ROUTE;

/// How many connections a worker has.
const CONNECTIONS: usize = 4;

/// Works until it is killed.
pub(super) async fn work(told: &Told) {
    let mut works = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (client, connection) =
            tokio_postgres::connect(&told.store, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        works.spawn(work_on(client));
    }
    may_die();
    works.join_all().await;
}

/// Works for as long as the database is there.
async fn work_on(mut client: Client) {
    let claim = "SELECT delivery, lease, event_id FROM oncebox.claim($1, 8)";
    loop {
        let Ok(rows) = client.query(claim, &[&ROUTE]).await else { return };
        if rows.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for row in rows {
            at("claimed");
            let (delivery, lease, event): (String, i64, String) =
                (row.get(0), row.get(1), row.get(2));
            if let Err(error) = handle(&mut client, &delivery, lease, &event).await {
                let lost = error.code().is_some_and(|code| code.code() == "OB409");
                assert!(lost || error.is_closed() || error.code().is_some(), "{error:?}");
                let retry = "SELECT oncebox.finish($1, $2, 'retry', $3)";
                let _ = client.execute(retry, &[&delivery, &lease, &error.to_string()]).await;
            }
        }
    }
}

async fn handle(
    client: &mut Client,
    delivery: &str,
    lease: i64,
    event: &str,
) -> Result<(), tokio_postgres::Error> {
    let fact = fact(event);
    let tx = client.transaction().await?;
    tx.execute("SELECT oncebox.enter($1, $2)", &[&delivery, &lease]).await?;
    at("entered");
    let advance = "SELECT oncebox.advance($1, $2)";
    if tx.query_one(advance, &[&fact.account, &fact.version]).await?.get(0) {
        let sql = "INSERT INTO public.accounts VALUES ($1, $2)
                   ON CONFLICT (id) DO UPDATE SET version = excluded.version";
        tx.execute(sql, &[&fact.account, &fact.version]).await?;
    }
    at("state");
    if tx.query_one("SELECT oncebox.once($1)", &[&fact.key]).await?.get(0) {
        tx.execute("INSERT INTO public.paid VALUES ($1)", &[&fact.key]).await?;
    }
    at("once");
    tx.execute("SELECT oncebox.send('mailer', $1, '{}'::text)", &[&fact.key]).await?;
    at("sent");
    tx.execute("SELECT oncebox.finish($1, $2)", &[&delivery, &lease]).await?;
    at("finished");
    tx.commit().await?;
    at("committed");
    Ok(())
}
