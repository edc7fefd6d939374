//! What the shop does when money moves. Each `apply` is one transaction with the delivery.

use oncebox::effect::Message;
use oncebox::handler::{Calls, Decision, Event, Failure, SqliteCx, SqliteHandler};
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

/// As much of Stripe's events as the shop needs.
#[derive(Deserialize)]
pub(crate) struct Money {
    created: i64,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

/// What the shop gave Stripe along with the payment.
#[derive(Deserialize)]
struct Metadata {
    order: String,
}

#[derive(Serialize)]
struct Mail<'a> {
    template: &'a str,
    order: &'a str,
}

pub(crate) struct Paid;

impl SqliteHandler for Paid {
    type Event = Money;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Money>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<Money>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        let order = &event.data.data.object.metadata.order;
        let Some((sku, quantity)) = find(cx, order)? else {
            return Ok(Decision::retry("its order has not been placed yet"));
        };
        // Both events may tell of the same payment, and a refund may have come before.
        if cx.once(format!("take:{order}"))?.is_first() {
            let sql = "UPDATE stock SET left = left - ?2 WHERE sku = ?1 AND left >= ?2";
            if cx.transaction().execute(sql, (&sku, quantity))? == 0 {
                return Err(Failure::dead(format!("no {quantity} of {sku} are left")));
            }
            cx.send(&mail("receipt", order)?)?;
        }
        if !cx.advance(order, event.data.created)? {
            return Ok(Decision::stale("it was refunded since"));
        }
        cx.transaction().execute("UPDATE orders SET state = 'paid' WHERE id = ?1", [order])?;
        Ok(Decision::processed(format!("order {order} is paid")))
    }
}

pub(crate) struct Refunded;

impl SqliteHandler for Refunded {
    type Event = Money;
    type Prepared = ();

    async fn prepare(&self, _: &Event<Money>, _: &Calls) -> Result<(), Failure> {
        Ok(())
    }

    fn apply(&self, event: &Event<Money>, (): &(), cx: &SqliteCx<'_>) -> Result<Decision, Failure> {
        let order = &event.data.data.object.metadata.order;
        let Some((sku, quantity)) = find(cx, order)? else {
            return Ok(Decision::retry("its order has not been placed yet"));
        };
        cx.advance(order, event.data.created)?;
        if cx.once(format!("return:{order}"))?.is_first() {
            let sql = "UPDATE stock SET left = left + ?2 WHERE sku = ?1";
            cx.transaction().execute(sql, (&sku, quantity))?;
            cx.send(&mail("refund", order)?)?;
        }
        cx.transaction().execute("UPDATE orders SET state = 'refunded' WHERE id = ?1", [order])?;
        Ok(Decision::processed(format!("order {order} is refunded")))
    }
}

/// What was ordered.
fn find(cx: &SqliteCx<'_>, order: &str) -> Result<Option<(String, i64)>, Failure> {
    let sql = "SELECT sku, quantity FROM orders WHERE id = ?1";
    let found = cx.transaction().query_row(sql, [order], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// Mails about one order arrive in the order in which they were decided.
fn mail(template: &str, order: &str) -> Result<Message, Failure> {
    Message::json("mailer", format!("{template}:{order}"), &Mail { template, order })?
        .in_group(order)
}
