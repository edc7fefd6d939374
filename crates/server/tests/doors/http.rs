//! The HTTP door: a worker whose tables are in a database of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;

use oncebox_testkit::http::AsyncConnection;
use oncebox_testkit::wait;
use serde_json::{Value, json};

use crate::business::{Business, End, Told, mail_key, result_of};

pub(crate) struct Worker {
    api: SocketAddr,
    token: String,
    tables: Mutex<rusqlite::Connection>,
    business: Business,
}

/// The code of a problem that ends an attempt.
type Problem = String;

fn told(delivery: &Value) -> Told {
    let text = |name: &str| delivery[name].as_str().expect("a text").to_owned();
    let count = |name: &str| delivery[name].as_u64().unwrap().try_into().expect("a count");
    Told {
        event_id: text("event_id"),
        invoice: text("object_id"),
        version: delivery["object_version"].as_i64().expect("a version"),
        attempt: count("attempt"),
        replay: count("replay"),
    }
}

impl Worker {
    /// A worker with its tables in a file.
    pub(crate) fn open(api: SocketAddr, token: &str, file: &Path, business: Business) -> Self {
        let tables = rusqlite::Connection::open(file).unwrap();
        // Nobody pulls the plug here.
        tables.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = off").unwrap();
        tables.busy_timeout(wait::DEADLINE).unwrap();
        Self { api, token: token.into(), tables: Mutex::new(tables), business }
    }

    /// Works on what is due now. Says how many deliveries that were.
    pub(crate) async fn pass(&self) -> usize {
        let ask = json!({ "max": 8, "lease": "60s", "wait": "50ms" });
        let claimed = self.ask("routes/http/claim", ask).await;
        let claimed = claimed.expect("a claim");
        let deliveries = claimed["deliveries"].as_array().expect("a list");
        for delivery in deliveries {
            let told = told(delivery);
            let Err(problem) = self.handle(delivery, &told).await else { continue };
            self.business.note(format!("{} {problem}", told.event_id));
            match problem.as_str() {
                "lease_lost" => {}
                "busy" => self.fail(delivery, "somebody is at it").await.expect("an end"),
                other => panic!("{}: {other}", told.event_id),
            }
        }
        deliveries.len()
    }

    async fn handle(&self, delivery: &Value, told: &Told) -> Result<(), Problem> {
        let (business, plan) = (&self.business, self.business.plan(told));
        for stage in plan.stages {
            let named = json!({ "step": stage });
            let begun = self.say(delivery, "effects/begin", named.clone()).await?;
            if begun["status"] == "done" {
                business.note(format!("{stage} came to {}", begun["effect"]["result"]));
                continue;
            }
            if plan.fails_at == Some(*stage) {
                business.note(format!("{stage} fails"));
                self.say(delivery, "effects/abandon", named).await?;
                return self.fail(delivery, "what came before is kept").await;
            }
            self.write(&format!("INSERT INTO stages VALUES ('{stage}')"));
            let done = json!({ "step": stage, "result": result_of(stage) });
            self.say(delivery, "effects/complete", done).await?;
        }
        let newest = json!({ "object": told.invoice, "version": told.version });
        if self.say(delivery, "advance", newest).await?["advanced"] == false {
            let stale = json!({ "outcome": "stale" });
            return self.say(delivery, "complete", stale).await.map(drop);
        }
        // Another worker may have passed us between the answer and this write.
        let (invoice, version) = (&told.invoice, told.version);
        self.write(&format!(
            "INSERT INTO invoices VALUES ('{invoice}', {version}) ON CONFLICT (id)
             DO UPDATE SET version = max(version, excluded.version)"
        ));
        if !plan.begins_first {
            business.meet(&plan, told).await;
        }
        let paid = json!({ "key": told.key() });
        let begun = self.say(delivery, "effects/begin", paid.clone()).await?;
        if plan.begins_first {
            business.meet(&plan, told).await;
        }
        if begun["status"] == "begun" {
            self.pay(invoice, begun["unknowns"].as_u64().expect("a count"));
            business.pause(&plan).await;
            self.say(delivery, "effects/complete", paid).await?;
        }
        let key = mail_key(invoice);
        let mail = json!({ "destination": "mailer", "key": key, "payload": {} });
        self.say(delivery, "send", mail).await?;
        let (verb, more) = match plan.end {
            End::Processed => ("complete", json!({})),
            End::Stale => ("complete", json!({ "outcome": "stale" })),
            End::Dead => ("fail", json!({ "class": "permanent", "reason": "given up" })),
        };
        self.say(delivery, verb, more).await.map(drop)
    }

    /// Looks for what may be there only where the ledger says that it may be.
    fn pay(&self, invoice: &str, unknowns: u64) {
        let unless = |table: &str| match unknowns {
            0 => String::new(),
            _ => format!("WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE invoice = '{invoice}')"),
        };
        self.write(&format!(
            "BEGIN IMMEDIATE;
             INSERT INTO paid SELECT '{invoice}', 'http' {};
             INSERT INTO emails SELECT '{invoice}' {};
             COMMIT",
            unless("paid"),
            unless("emails")
        ));
    }

    fn write(&self, sql: &str) {
        self.tables.lock().unwrap().execute_batch(sql).unwrap();
    }

    async fn fail(&self, delivery: &Value, reason: &str) -> Result<(), Problem> {
        self.say(delivery, "fail", json!({ "reason": reason })).await.map(drop)
    }

    /// Says something of a delivery under its lease.
    async fn say(&self, delivery: &Value, verb: &str, more: Value) -> Result<Value, Problem> {
        let mut body = more;
        body["lease"] = delivery["lease"].clone();
        self.ask(&format!("deliveries/{}/{verb}", delivery["delivery"].as_str().unwrap()), body)
            .await
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value, Problem> {
        let mut connection = AsyncConnection::open(self.api).await.expect("the server listens");
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let (path, body) = (format!("/api/v1/{path}"), body.to_string());
        let answer = connection.request("POST", &path, &headers, body.as_bytes()).await;
        let answer = answer.expect("an answer");
        match answer.status {
            200 => Ok(answer.json()),
            _ => Err(answer.json()["code"].as_str().expect("a problem has a code").to_owned()),
        }
    }
}
