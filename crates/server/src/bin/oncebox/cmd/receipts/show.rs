//! `oncebox receipts show`: everything kept of one event.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::effect::OUTBOX;
use oncebox::receipt::decode_headers;
use oncebox::store::{Receipt, Store};
use oncebox_server::api::effects::json::EffectJson;
use oncebox_server::capture;
use oncebox_verify::Trust;
use serde::Serialize;
use serde_json::{Value, json};

use super::effects::Effects;
use super::history::History;
use super::pretty::pretty;
use super::{as_json, both, mark_in_words, repeats_in_words};
use crate::cmd::deliveries::view::Routes;
use crate::cmd::outbox::{Named, cause};
use crate::cmd::verify::trust;
use crate::context;
use crate::exit::Failure;
use crate::ids;
use crate::output::{Screen, count, escape, escape_bytes, escape_lines};

/// Show everything kept of one event
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox receipts show evt_123
  oncebox receipts show 0199c2f0-7e4a
  oncebox receipts show evt_123 --source stripe --raw > body.json

Exit codes: 0 shown, 3 not found, 4 the stored body does not have its digest.")]
pub(super) struct Show {
    /// A receipt, a delivery or an event: its id, or the beginning of it
    id: String,

    /// Only in this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Write the body, byte for byte, and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let receipt = self.find(store, routes).await?;
        let intact = has_its_digest(&receipt);
        let mut screen = Screen::stdout();
        if self.raw {
            screen.raw(&receipt.body)?;
        } else {
            let id = receipt.summary.receipt;
            let history = History::load(store, routes, id).await?;
            let effects = Effects::load(&**store, id).await?;
            if self.json {
                let mut object = whole(&receipt);
                object["deliveries"] = history.as_json();
                screen.json(&WithEffects { object, effects: effects.as_json() })?;
            } else {
                print(&mut screen, &receipt, &history, &effects, intact)?;
            }
        }
        screen.flush()?;
        if intact { Ok(()) } else { Err(damaged(&receipt)) }
    }

    async fn find(&self, store: &Arc<dyn Store>, routes: &Routes) -> Result<Receipt, Failure> {
        let source = self.source.as_deref();
        if let Some(source) = source {
            context::source_no(&**store, source).await?;
        }
        // A message is known by its key.
        let carrier = routes.views.iter().find(|view| Some(view.name.as_str()) == source);
        if let Some(carrier) = carrier.filter(|carrier| carrier.name.starts_with(OUTBOX))
            && let Some(named) = Named::by_key(&**store, carrier, &self.id).await?
        {
            let found = store.receipt(named.receipt).await?;
            return found.ok_or_else(|| ids::expired(&self.id, named.receipt));
        }
        ids::receipt(&**store, &self.id, source).await
    }
}

/// A receipt and what its deliveries did. Results are written as they were recorded.
#[derive(Serialize)]
struct WithEffects {
    #[serde(flatten)]
    object: Value,
    effects: Vec<EffectJson>,
}

/// Whether the stored body still is what arrived.
pub(crate) fn has_its_digest(receipt: &Receipt) -> bool {
    receipt.is_intact()
}

/// What to say of a receipt whose body is not what arrived.
pub(crate) fn damaged(receipt: &Receipt) -> Failure {
    Failure::check(format!(
        "THE BODY OF RECEIPT {} IS DAMAGED: it does not have the digest taken when it arrived",
        receipt.summary.receipt
    ))
    .hint(
        "do not process it; check the disk and the database, and ask the provider to send it again",
    )
}

fn print(
    screen: &mut Screen,
    receipt: &Receipt,
    history: &History,
    effects: &Effects,
    intact: bool,
) -> Result<(), Failure> {
    let now = SystemClock.now();
    let summary = &receipt.summary;
    let mut line = |label: &str, text: &str| screen.line(format!("{label:11} {text}"));
    line("receipt", &summary.receipt.to_string())?;
    line("source", &escape(&summary.source))?;
    match is_message(receipt) {
        true => line("key", &escape(&summary.event_id))?,
        false => {
            let event_id = escape(&summary.event_id);
            line("event id", &format!("{event_id} ({})", trust(summary.trust)))?;
        }
    }
    if summary.trust == Trust::Unverified {
        line("UNVERIFIED", "the sender is not known; do not act on it")?;
    }
    if let Some((method, target)) = capture::request_line(&decode_headers(&receipt.headers)) {
        line("request", &format!("{} {}", escape(method), escape(target)))?;
    }
    if let Some(part) = &receipt.part {
        let (number, request) = (u64::from(part.position) + 1, part.request);
        line("part", &format!("item {number} of {} in request {request}", part.count))?;
    }
    if let Some(mark) = summary.mark {
        line("odd", &mark_in_words(mark))?;
    }
    line("type", &escape(&summary.event_type))?;
    if let Some(object) = &summary.object {
        line("object", &escape(object))?;
    }
    if let Some(version) = summary.version {
        line("version", &version.to_string())?;
    }
    line("received", &both(summary.received_at, now))?;
    if let Some(signed_at) = receipt.signed_at {
        line("signed", &both(signed_at, now))?;
    }
    match cause(receipt).filter(|_| is_message(receipt)) {
        Some(cause) => line("cause", &format!("delivery {}", escape(&cause)))?,
        None if summary.trust == Trust::Unverified => {}
        None => {
            let fingerprint = receipt.secret.1.as_deref().unwrap_or("unknown");
            line("secret", &format!("fingerprint {}", escape(fingerprint)))?;
        }
    }
    print_digest(screen, receipt, intact)?;
    if let Some(repeats) = &summary.repeats {
        let (first, last) = (both(repeats.first_at, now), both(repeats.last_at, now));
        let words = repeats_in_words(repeats);
        screen.line(format!("{:11} {words}; first {first}, last {last}", "repeats"))?;
    }
    history.print(screen, now)?;
    effects.print(screen, now)?;
    print_headers(screen, receipt)?;
    print_odd(screen, receipt, now)?;
    print_body(screen, "body", &receipt.body)
}

/// Whether it is an outbox message, which nobody received.
pub(super) fn is_message(receipt: &Receipt) -> bool {
    receipt.summary.source.starts_with(OUTBOX)
}

pub(crate) fn print_digest(
    screen: &mut Screen,
    receipt: &Receipt,
    intact: bool,
) -> Result<(), Failure> {
    let digest = hex::encode(receipt.digest);
    let holds = if intact { screen.good("✓ matches") } else { screen.bad("✗ DOES NOT MATCH") };
    screen.line(format!("{:11} sha256 {digest} {holds}", "digest"))?;
    Ok(())
}

fn print_headers(screen: &mut Screen, receipt: &Receipt) -> Result<(), Failure> {
    screen.line("")?;
    screen.line(screen.strong("headers"))?;
    for (name, value) in decode_headers(&receipt.headers) {
        screen.line(format!("  {}: {}", escape(&name), escape_bytes(&value)))?;
    }
    Ok(())
}

fn print_odd(screen: &mut Screen, receipt: &Receipt, now: Timestamp) -> Result<(), Failure> {
    if receipt.odd.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    screen.line(screen.strong("twins and conflicts"))?;
    for odd in &receipt.odd {
        let (event_id, received) = (escape(&odd.event_id), both(odd.received_at, now));
        let (oddity, id, event_type) = (odd.oddity, odd.receipt, escape(&odd.event_type));
        screen.line(format!("  {oddity} {id}: {event_id}, {event_type}, {received}"))?;
    }
    Ok(())
}

pub(crate) fn print_body(screen: &mut Screen, what: &str, body: &[u8]) -> Result<(), Failure> {
    screen.line("")?;
    screen.line(screen.strong(&format!("{what} ({})", count(body.len(), "byte"))))?;
    let Ok(text) = std::str::from_utf8(body) else {
        screen.line("  not text; --raw writes it")?;
        return Ok(());
    };
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json && screen.is_terminal() {
        screen.line(escape_lines(&pretty(text)))?;
    } else {
        screen.line(escape_lines(text))?;
    }
    Ok(())
}

/// Everything kept of an event, for programs.
pub(super) fn whole(receipt: &Receipt) -> Value {
    let mut object = as_json(&receipt.summary);
    let repeats = receipt.summary.repeats.as_ref();
    let odd = receipt.odd.iter().map(|odd| {
        json!({
            "receipt": odd.receipt.to_string(),
            "oddity": odd.oddity.as_str(),
            "event_id": odd.event_id,
            "event_type": odd.event_type,
            "received_at": odd.received_at.to_string(),
        })
    });
    let headers = decode_headers(&receipt.headers).into_iter();
    let headers = headers.map(|(name, value)| json!([name, String::from_utf8_lossy(&value)]));
    let more = json!({
        "item": receipt.part.as_ref().map(|part| u64::from(part.position) + 1),
        "items": receipt.part.as_ref().map(|part| part.count),
        "request": receipt.part.as_ref().map(|part| part.request.to_string()),
        "signed_at": receipt.signed_at.map(|time| time.to_string()),
        "secret": receipt.secret.0.0,
        "secret_fingerprint": receipt.secret.1,
        "digest": format!("sha256:{}", hex::encode(receipt.digest)),
        "digest_matches": has_its_digest(receipt),
        "repeats_first_at": repeats.map(|repeats| repeats.first_at.to_string()),
        "repeats_last_at": repeats.map(|repeats| repeats.last_at.to_string()),
        "odd_receipts": odd.collect::<Vec<_>>(),
        "cause": cause(receipt).filter(|_| is_message(receipt)),
        "headers": headers.collect::<Vec<_>>(),
        "body_base64": STANDARD.encode(&receipt.body),
    });
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}
