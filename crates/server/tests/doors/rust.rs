//! The Rust door: one transaction with the tables of the service.

use std::sync::Arc;

use oncebox::effect::Message;
use oncebox::handler::{
    Calls, Decision, Event, Failure, Handlers, PostgresCx, PostgresHandler, SqliteCx,
    SqliteHandler, Step,
};
use oncebox::worker::Consumer;
use oncebox_testkit::store::Opened;
use serde::de::IgnoredAny;

use crate::business::{Business, End, MAIL, Plan, Told, mail_key, result_of};

/// The service as a consumer in the process of the server.
pub(crate) fn consumer(opened: &Opened, business: &Business) -> Arc<dyn Consumer> {
    let business = business.clone();
    match opened {
        Opened::Sqlite(store) => Arc::new(Handlers::new(store.clone()).on("*", "*", business)),
        Opened::Postgres(store) => Arc::new(Handlers::new(store.clone()).on("*", "*", business)),
        Opened::Nothing => panic!("there is no store"),
    }
}

fn mail(told: &Told) -> Result<Message, Failure> {
    Message::raw("mailer", mail_key(&told.invoice), "application/json", MAIL)
}

fn decision(end: End) -> Decision {
    match end {
        End::Processed => Decision::processed("paid"),
        End::Stale => Decision::stale("seen"),
        End::Dead => Decision::dead("given up"),
    }
}

impl SqliteHandler for Business {
    type Event = IgnoredAny;
    type Prepared = Plan;

    async fn prepare(&self, event: &Event<IgnoredAny>, _: &Calls) -> Result<Plan, Failure> {
        let told = Told::of(event);
        let plan = self.plan(&told);
        self.pause(&plan).await;
        self.meet(&plan, &told).await;
        Ok(plan)
    }

    fn apply(
        &self,
        event: &Event<IgnoredAny>,
        plan: &Plan,
        cx: &SqliteCx<'_>,
    ) -> Result<Decision, Failure> {
        let told = Told::of(event);
        for &stage in plan.stages {
            if plan.fails_at == Some(stage) {
                self.note(format!("{stage} fails"));
                return Ok(Decision::retry("what came before is kept"));
            }
            match cx.step::<i64>(stage)? {
                Step::Done(result) => self.note(format!("{stage} came to {result}")),
                Step::Run => {
                    cx.transaction().execute("INSERT INTO main.stages VALUES (?1)", [stage])?;
                    cx.set_result(stage, &result_of(stage))?;
                }
            }
        }
        let visit = "INSERT INTO main.visits VALUES (?1)";
        cx.transaction().execute(visit, [&told.event_id])?;
        if !cx.advance(&told.invoice, told.version)? {
            return Ok(Decision::stale("something newer was applied"));
        }
        let sql = "INSERT INTO main.invoices VALUES (?1, ?2)
                   ON CONFLICT (id) DO UPDATE SET version = excluded.version";
        cx.transaction().execute(sql, (&told.invoice, told.version))?;
        if cx.once(told.key())?.is_first() {
            let sql = "INSERT INTO main.paid VALUES (?1, 'rust')";
            cx.transaction().execute(sql, [&told.invoice])?;
            cx.transaction().execute("INSERT INTO main.emails VALUES (?1)", [&told.invoice])?;
        }
        cx.send(&mail(&told)?)?;
        Ok(decision(plan.end))
    }
}

impl PostgresHandler for Business {
    type Event = IgnoredAny;

    async fn handle(
        &self,
        event: &Event<IgnoredAny>,
        cx: &mut PostgresCx<'_>,
    ) -> Result<Decision, Failure> {
        let told = Told::of(event);
        let plan = self.plan(&told);
        for &stage in plan.stages {
            if plan.fails_at == Some(stage) {
                self.note(format!("{stage} fails"));
                return Ok(Decision::retry("what came before is kept"));
            }
            match cx.step::<i64>(stage).await? {
                Step::Done(result) => self.note(format!("{stage} came to {result}")),
                Step::Run => {
                    let sql = "INSERT INTO public.stages VALUES ($1)";
                    cx.transaction().await?.execute(sql, &[&stage]).await?;
                    cx.set_result(stage, &result_of(stage)).await?;
                }
            }
        }
        let visit = "INSERT INTO public.visits VALUES ($1)";
        cx.transaction().await?.execute(visit, &[&told.event_id]).await?;
        self.pause(&plan).await;
        self.meet(&plan, &told).await;
        if !cx.advance(&told.invoice, told.version).await? {
            return Ok(Decision::stale("something newer was applied"));
        }
        let sql = "INSERT INTO public.invoices VALUES ($1, $2)
                   ON CONFLICT (id) DO UPDATE SET version = excluded.version";
        cx.transaction().await?.execute(sql, &[&told.invoice, &told.version]).await?;
        if cx.once(told.key()).await?.is_first() {
            let tx = cx.transaction().await?;
            let sql = "INSERT INTO public.paid VALUES ($1, 'rust')";
            tx.execute(sql, &[&told.invoice]).await?;
            tx.execute("INSERT INTO public.emails VALUES ($1)", &[&told.invoice]).await?;
        }
        cx.send(&mail(&told)?).await?;
        Ok(decision(plan.end))
    }
}
