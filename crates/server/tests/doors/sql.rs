//! The SQL door: a client that knows functions and nothing else.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls, Row, Transaction};

use crate::business::{Business, End, MAIL, Told, mail_key, result_of};

pub(crate) struct Worker {
    client: Client,
    business: Business,
}

/// What a claim gave.
struct Work {
    delivery: String,
    lease: i64,
    told: Told,
}

impl Work {
    fn read(row: &Row) -> Self {
        let count = |column: usize| row.get::<_, i32>(column).try_into().expect("a count");
        let told = Told {
            event_id: row.get(2),
            invoice: row.get(3),
            version: row.get(4),
            attempt: count(5),
            replay: count(6),
        };
        Self { delivery: row.get(0), lease: row.get(1), told }
    }
}

impl Worker {
    pub(crate) async fn open(url: &str, business: &Business) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { client, business: business.clone() }
    }

    /// Works on what is due now. Says how many deliveries that were.
    pub(crate) async fn pass(&mut self) -> usize {
        let claim = "SELECT
                         delivery, lease, event_id, object_id, object_version, attempt, replay
                     FROM oncebox.claim('sql', 8, '1 minute')";
        let rows = self.client.query(claim, &[]).await.expect("a claim");
        for work in rows.iter().map(Work::read) {
            if let Err(error) = self.handle(&work).await {
                let code = error.code().cloned().unwrap_or_else(|| panic!("{error:?}"));
                self.refused(&work, &code).await;
            }
        }
        rows.len()
    }

    /// Everything was rolled back. Whose lease is lost says no more; others are tried again.
    async fn refused(&self, work: &Work, code: &SqlState) {
        self.business.note(format!("{} {}", work.told.event_id, code.code()));
        match code.code() {
            "OB409" => {}
            "OB425" => {
                let retry = "SELECT oncebox.finish($1, $2, 'retry', 'somebody is at it')";
                self.client.execute(retry, &[&work.delivery, &work.lease]).await.expect("an end");
            }
            other => panic!("{}: {other}", work.told.event_id),
        }
    }

    async fn handle(&mut self, work: &Work) -> Result<(), Error> {
        let (told, business) = (&work.told, self.business.clone());
        let plan = business.plan(told);
        for &stage in plan.stages {
            let tx = enter(&mut self.client, work).await?;
            let step = "SELECT oncebox.step($1, $2)";
            let runs: bool = tx.query_one(step, &[&work.delivery, &stage]).await?.get(0);
            if !runs {
                let recorded = "SELECT (oncebox.get_result($1, $2))::bigint";
                let row = tx.query_one(recorded, &[&work.delivery, &stage]).await?;
                business.note(format!("{stage} came to {}", row.get::<_, i64>(0)));
                tx.commit().await?;
                continue;
            }
            tx.execute("INSERT INTO public.stages VALUES ($1)", &[&stage]).await?;
            if plan.fails_at == Some(stage) {
                business.note(format!("{stage} fails"));
                tx.rollback().await?;
                let retry = "SELECT oncebox.finish($1, $2, 'retry', 'what came before is kept')";
                self.client.execute(retry, &[&work.delivery, &work.lease]).await?;
                return Ok(());
            }
            let record = "SELECT oncebox.set_result($1, $2, to_jsonb($3::bigint))";
            tx.execute(record, &[&work.delivery, &stage, &result_of(stage)]).await?;
            tx.commit().await?;
        }
        let tx = enter(&mut self.client, work).await?;
        tx.execute("INSERT INTO public.visits VALUES ($1)", &[&told.event_id]).await?;
        business.pause(&plan).await;
        business.meet(&plan, told).await;
        let outcome = match pay(&tx, told).await? {
            false => "stale",
            true => match plan.end {
                End::Processed => "processed",
                End::Stale => "stale",
                End::Dead => "dead",
            },
        };
        let finish = "SELECT oncebox.finish($1, $2, $3)";
        tx.execute(finish, &[&work.delivery, &work.lease, &outcome]).await?;
        tx.commit().await
    }
}

async fn enter<'a>(client: &'a mut Client, work: &Work) -> Result<Transaction<'a>, Error> {
    let tx = client.transaction().await?;
    tx.execute("SELECT oncebox.enter($1, $2)", &[&work.delivery, &work.lease]).await?;
    Ok(tx)
}

/// False if something newer was applied.
async fn pay(tx: &Transaction<'_>, told: &Told) -> Result<bool, Error> {
    let advance = "SELECT oncebox.advance($1, $2)";
    if !tx.query_one(advance, &[&told.invoice, &told.version]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    let sql = "INSERT INTO public.invoices VALUES ($1, $2)
               ON CONFLICT (id) DO UPDATE SET version = excluded.version";
    tx.execute(sql, &[&told.invoice, &told.version]).await?;
    if tx.query_one("SELECT oncebox.once($1)", &[&told.key()]).await?.get(0) {
        tx.execute("INSERT INTO public.paid VALUES ($1, 'sql')", &[&told.invoice]).await?;
        tx.execute("INSERT INTO public.emails VALUES ($1)", &[&told.invoice]).await?;
    }
    let send = "SELECT oncebox.send('mailer', $1, $2::text)";
    tx.execute(send, &[&mail_key(&told.invoice), &MAIL]).await?;
    Ok(true)
}
