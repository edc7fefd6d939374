//! The HTTP door: a worker whose tables are in another database, so that no transaction can be
//! shared.

use std::net::SocketAddr;
use std::time::Duration;

use oncebox_testkit::http::{Answer, Connection};
use rusqlite::params;
use serde_json::{Value, json};

use super::door::{Told, at, may_die};
use super::fact::{Fact, fact};
use crate::bed::ROUTE;

/// Works until it is killed.
pub(super) fn work(told: &Told) {
    let (address, token) = told.api.clone().expect("the API is told");
    let path = told.tables.strip_prefix("sqlite://").expect("a file of its own");
    let business = rusqlite::Connection::open(path).expect("the tables of the service");
    business.busy_timeout(Duration::from_secs(30)).expect("patience");
    may_die();
    let mut api = Api { address, token, connection: None };
    loop {
        let ask = json!({"max": 8, "wait": "1s"});
        let Some(claimed) = api.ask(&format!("routes/{ROUTE}/claim"), &ask) else { continue };
        let deliveries = claimed.json()["deliveries"].as_array().cloned().unwrap_or_default();
        for delivery in deliveries {
            at("claimed");
            // A server that went away is asked again about whatever comes back.
            handle(&mut api, &business, &delivery);
        }
    }
}

/// None where the delivery is left for its lease to run out.
fn handle(api: &mut Api, business: &rusqlite::Connection, delivery: &Value) -> Option<()> {
    let text = |name: &str| delivery[name].as_str().expect("a text").to_owned();
    let (id, lease, fact) = (text("delivery"), text("lease"), fact(&text("event_id")));
    let on = |what: &str| format!("deliveries/{id}/{what}");
    let begun = api.ask(&on("effects/begin"), &json!({"lease": lease, "key": fact.key}))?;
    at("entered");
    match (begun.status, begun.json()["status"].as_str()) {
        (200, Some("begun")) => {
            pay(business, &fact);
            at("state");
            let done = json!({"lease": lease, "key": fact.key, "result": {"paid": true}});
            api.ask(&on("effects/complete"), &done)?.expect(200)?;
        }
        (200, Some("done")) => {}
        _ => {
            let again = json!({"lease": lease, "retry_after": "1s", "reason": "busy"});
            api.ask(&on("fail"), &again)?;
            return None;
        }
    }
    at("once");
    let ask = json!({"lease": lease, "object": fact.account, "version": fact.version});
    if api.ask(&on("advance"), &ask)?.expect(200)?.json()["advanced"] == true {
        at("advanced");
        advance(business, &fact);
    }
    let mail = json!({"lease": lease, "destination": "mailer", "key": fact.key, "payload": {}});
    api.ask(&on("send"), &mail)?.expect(200)?;
    at("sent");
    api.ask(&on("complete"), &json!({"lease": lease}))?;
    at("finished");
    Some(())
}

/// Once with the key under a unique constraint, and once without.
fn pay(business: &rusqlite::Connection, fact: &Fact) {
    let keyed = "INSERT INTO keyed VALUES (?1) ON CONFLICT DO NOTHING";
    business.execute(keyed, [&fact.key]).expect("a row");
    business.execute("INSERT INTO paid VALUES (?1)", [&fact.key]).expect("a row");
}

/// Another worker may have passed us between the answer and this write. What we were told is
/// written down as it came.
fn advance(business: &rusqlite::Connection, fact: &Fact) {
    let told = "INSERT INTO advanced VALUES (?1, ?2)";
    business.execute(told, params![fact.account, fact.version]).expect("a row");
    let sql = "INSERT INTO accounts VALUES (?1, ?2) ON CONFLICT (id)
               DO UPDATE SET version = excluded.version WHERE version < excluded.version";
    business.execute(sql, params![fact.account, fact.version]).expect("a row");
}

struct Api {
    address: SocketAddr,
    token: String,
    connection: Option<Connection>,
}

impl Api {
    /// None if the server is not there, or went away before it answered.
    fn ask(&mut self, path: &str, body: &Value) -> Option<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).ok()?,
        };
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = body.to_string();
        let path = format!("/api/v1/{path}");
        let answer = connection.request("POST", &path, &headers, body.as_bytes()).ok()?;
        if answer.keeps_alive() {
            self.connection = Some(connection);
        }
        Some(answer)
    }
}

trait Expect: Sized {
    fn expect(self, status: u16) -> Option<Self>;
}

impl Expect for Answer {
    fn expect(self, status: u16) -> Option<Self> {
        (self.status == status).then_some(self)
    }
}
