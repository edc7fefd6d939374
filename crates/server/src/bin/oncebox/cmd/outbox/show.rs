//! `oncebox outbox show`: everything kept of one message.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::LIST_PAGE;
use oncebox::receipt::decode_headers;
use oncebox::store::{EffectConflict, Receipt, Store};
use serde_json::{Value, json};

use super::{Named, destination, expired, find, no_message};
use crate::cmd::deliveries::view::Routes;
use crate::cmd::receipts::both;
use crate::cmd::receipts::history::History;
use crate::cmd::receipts::show::{damaged, has_its_digest, print_body, print_digest};
use crate::exit::Failure;
use crate::output::{Screen, escape, escape_bytes};

/// Show one message: its payload, its attempts, and who wrote it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox outbox show mailer receipt-email:in_456
  oncebox outbox show mailer 0199c2f0-7e4a-7c3b-9d53-0242ac120002
  oncebox outbox show mailer receipt-email:in_456 --raw > payload.json

Exit codes: 0 shown, 3 not found, 4 the stored payload does not have its digest.")]
pub(super) struct Show {
    /// The destination
    #[arg(value_name = "DESTINATION")]
    destination: String,

    /// The key of the message, or its id
    #[arg(value_name = "KEY")]
    key: String,

    /// Write the payload, byte for byte, and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let carrier = find(routes, &self.destination)?;
        let Some(named) = Named::find(&**store, carrier, &self.key).await? else {
            return Err(no_message(carrier, &self.key));
        };
        let Some(receipt) = store.receipt(named.receipt).await? else {
            return Err(expired(&named, &self.key));
        };
        let intact = has_its_digest(&receipt);
        let mut screen = Screen::stdout();
        if self.raw {
            screen.raw(&receipt.body)?;
        } else {
            let message = Message {
                history: History::load(store, routes, named.receipt).await?,
                conflicts: conflicts(store, &named).await?,
                receipt: &receipt,
            };
            match self.json {
                true => screen.json(&message.as_json())?,
                false => message.print(&mut screen, intact)?,
            }
        }
        screen.flush()?;
        if intact { Ok(()) } else { Err(damaged(&receipt)) }
    }
}

/// The deliveries that wrote the message again.
async fn conflicts(store: &Arc<dyn Store>, named: &Named) -> Result<Vec<EffectConflict>, Failure> {
    match &named.effect {
        Some(effect) => Ok(store.effect_conflicts(&effect.key, LIST_PAGE).await?),
        None => Ok(Vec::new()),
    }
}

/// A message with what became of it.
struct Message<'a> {
    receipt: &'a Receipt,
    history: History,
    conflicts: Vec<EffectConflict>,
}

impl Message<'_> {
    fn print(&self, screen: &mut Screen, intact: bool) -> Result<(), Failure> {
        let now = SystemClock.now();
        let summary = &self.receipt.summary;
        let mut line = |label: &str, text: &str| screen.line(format!("{label:11} {text}"));
        line("message", &summary.receipt.to_string())?;
        line("destination", &escape(destination(&summary.source)))?;
        line("key", &escape(&summary.event_id))?;
        if let Some(group) = &summary.object {
            line("group", &escape(group))?;
        }
        if let Some(sequence) = summary.version {
            line("sequence", &sequence.to_string())?;
        }
        line("written", &both(summary.received_at, now))?;
        if let Some(cause) = cause(self.receipt) {
            line("cause", &format!("delivery {}", escape(&cause)))?;
        }
        if let Some(content_type) = header(self.receipt, "content-type") {
            line("type", &escape_bytes(&content_type))?;
        }
        print_digest(screen, self.receipt, intact)?;
        for conflict in &self.conflicts {
            let text = in_words(conflict, now);
            screen.line(format!("{:11} {text}", "again"))?;
        }
        self.history.print(screen, now)?;
        print_body(screen, "payload", &self.receipt.body)
    }

    /// Everything kept of it, for programs; the fields are never renamed.
    fn as_json(&self) -> Value {
        let summary = &self.receipt.summary;
        let content_type = header(self.receipt, "content-type");
        let content_type = content_type.map(|text| String::from_utf8_lossy(&text).into_owned());
        let conflicts = self.conflicts.iter().map(|conflict| {
            json!({
                "receipt": conflict.receipt.to_string(),
                "route": conflict.route,
                "at": conflict.at.to_string(),
                "differs": conflict.differs,
            })
        });
        json!({
            "message": summary.receipt.to_string(),
            "destination": destination(&summary.source),
            "key": summary.event_id,
            "group": summary.object,
            "sequence": summary.version,
            "written_at": summary.received_at.to_string(),
            "cause": cause(self.receipt),
            "content_type": content_type,
            "digest": format!("sha256:{}", hex::encode(self.receipt.digest)),
            "digest_matches": has_its_digest(self.receipt),
            "conflicts": conflicts.collect::<Vec<_>>(),
            "deliveries": self.history.as_json(),
            "payload_base64": STANDARD.encode(&self.receipt.body),
        })
    }
}

/// The delivery whose handler wrote a message.
pub(crate) fn cause(receipt: &Receipt) -> Option<String> {
    header(receipt, "oncebox-cause").map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn header(receipt: &Receipt, name: &str) -> Option<Vec<u8>> {
    let mut headers = decode_headers(&receipt.headers).into_iter();
    headers.find(|(known, _)| known == name).map(|(_, value)| value)
}

fn in_words(conflict: &EffectConflict, now: Timestamp) -> String {
    let EffectConflict { receipt, route, at, differs } = conflict;
    let (route, at) = (escape(route), both(*at, now));
    let how = if *differs { "with another payload, which was not sent" } else { "the same" };
    format!("{receipt} through {route} wrote it {at}, {how}")
}
