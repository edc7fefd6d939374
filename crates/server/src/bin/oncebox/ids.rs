//! Ids as a command line gives them: of a receipt, of a delivery, of an event, or the beginning of
//! one of them, as long as it means one thing only.

use std::sync::Arc;

use oncebox::delivery::DeliveryId;
use oncebox::lookup::{Meaning, look_up, short_ids};
use oncebox::receipt::{ReceiptId, RouteNo};
use oncebox::replay::ReplayId;
use oncebox::store::{DeliveryFilter, DeliveryRow, NamedReceipt, Receipt, Store};

use crate::cmd::deliveries::view::Routes;
use crate::cmd::sources::rejected;
use crate::exit::Failure;
use crate::output::escape;

/// More deliveries than a receipt can have.
const ALL: usize = i16::MAX as usize;

/// The receipt that an id means and, if it is the id of a delivery, the route of that.
pub(crate) async fn named(
    store: &dyn Store,
    text: &str,
    source: Option<&str>,
) -> Result<(NamedReceipt, Option<RouteNo>), Failure> {
    match found(store, text, source).await? {
        Some(found) => Ok(found),
        None if rejected::find(store, text).await?.is_some() => Err(not_believed(text)),
        None => Err(nothing(text, source)),
    }
}

/// As [`named`]; `None` if the id means nothing.
pub(crate) async fn found(
    store: &dyn Store,
    text: &str,
    source: Option<&str>,
) -> Result<Option<(NamedReceipt, Option<RouteNo>)>, Failure> {
    match look_up(store, text, source).await? {
        Meaning::One(named, route) => Ok(Some((named, route))),
        Meaning::Several(several) => Err(ambiguous(text, &several)),
        Meaning::TooMany => {
            Err(Failure::usage(format!("too many ids begin like `{}`", escape(text)))
                .hint("write the whole event id, or a receipt id of `oncebox receipts list`"))
        }
        Meaning::Nothing => Ok(None),
    }
}

/// The name of the route of a delivery, which must exist.
pub(crate) async fn route_of(store: &dyn Store, delivery: DeliveryId) -> Result<String, Failure> {
    let receipt = delivery.receipt;
    let filter = DeliveryFilter { receipt: Some(receipt), limit: ALL, ..DeliveryFilter::default() };
    let rows = store.deliveries(&filter).await?;
    let row = rows.into_iter().find(|row| row.delivery == delivery);
    row.map(|row| row.route).ok_or_else(|| {
        Failure::not_found(format!("there is no delivery {delivery}"))
            .hint(format!("`oncebox receipts show {receipt}` shows those of the receipt"))
    })
}

/// What to say when an id names a route, and --route another or the same.
pub(crate) fn route_twice() -> Failure {
    Failure::usage("the id of a delivery names its route, and so does --route")
        .hint("leave out --route, or name the receipt")
}

/// The receipt that an id means. One that has expired is an error.
pub(crate) async fn receipt(
    store: &dyn Store,
    text: &str,
    source: Option<&str>,
) -> Result<Receipt, Failure> {
    let (named, _) = named(store, text, source).await?;
    store.receipt(named.receipt).await?.ok_or_else(|| expired(text, named.receipt))
}

/// The delivery that an id means: its own, or that of a receipt or event that has no other.
pub(crate) async fn delivery(
    store: &Arc<dyn Store>,
    routes: &Routes,
    text: &str,
) -> Result<DeliveryId, Failure> {
    let (named, route) = named(&**store, text, None).await?;
    let receipt = named.receipt;
    if let Some(route) = route {
        return Ok(DeliveryId { receipt, route });
    }
    let filter = DeliveryFilter { receipt: Some(receipt), limit: ALL, ..DeliveryFilter::default() };
    match store.deliveries(&filter).await?.as_slice() {
        [] => {
            let failure = Failure::not_found(format!("no route took receipt {receipt}"));
            Err(failure.hint(format!("`oncebox replay {receipt} --route NAME` delivers it to one")))
        }
        [row] => Ok(row.delivery),
        several => Err(several_deliveries(text, routes, several)),
    }
}

/// The replay that an id, or the beginning of one, means.
pub(crate) async fn replay(store: &dyn Store, text: &str) -> Result<ReplayId, Failure> {
    let wanted = text.trim_end_matches('…');
    let all = store.replays(usize::MAX).await?;
    let mut found = all.iter().map(|job| job.id).filter(|id| {
        let id = id.to_string();
        !wanted.is_empty() && (id.starts_with(wanted) || id.replace('-', "").starts_with(wanted))
    });
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(Failure::not_found(format!("no replay named `{}`", escape(text)))
            .hint("`oncebox replays list` shows those there are")),
        (Some(one), Some(other)) => {
            let message = format!("`{}` means several replays: {one}, {other}", escape(text));
            Err(Failure::usage(message).hint("write more of the id"))
        }
    }
}

/// What to say of an event whose receipt is gone.
pub(crate) fn expired(text: &str, receipt: ReceiptId) -> Failure {
    let text = escape(text);
    Failure::not_found(format!("`{text}` was received as {receipt}, but what it held has expired"))
        .hint("only its identity is remembered, so that a repeat is recognised")
}

/// What to say of a request that was rejected and kept: it is no receipt.
fn not_believed(text: &str) -> Failure {
    let text = escape(text);
    Failure::not_found(format!("`{text}` is a request that its source rejected, and no receipt"))
        .hint(format!("`oncebox verify {text}` says which step fails and what to check"))
}

fn nothing(text: &str, source: Option<&str>) -> Failure {
    let text = escape(text);
    let place = source.map(|source| format!(" in source `{}`", escape(source)));
    let place = place.unwrap_or_default();
    Failure::not_found(format!("no receipt, delivery or event named `{text}`{place}"))
        .hint("`oncebox receipts list` shows those there are")
}

fn ambiguous(text: &str, several: &[NamedReceipt]) -> Failure {
    let ids: Vec<ReceiptId> = several.iter().map(|named| named.receipt).collect();
    let mut message = format!("`{}` means several:", escape(text));
    for (named, id) in several.iter().zip(short_ids(&ids)) {
        let source = escape(&named.source);
        let event = named.event.as_ref().map_or_else(
            || "expired".to_owned(),
            |event| format!("{}  {}", escape(&event.event_id), escape(&event.event_type)),
        );
        message.push_str(&format!("\n  {id}  {source}  {event}"));
    }
    let differ = several.iter().any(|named| named.source != several[0].source);
    let hint = match differ {
        true => "write more of it, or the id in the first column",
        false => "write more of it",
    };
    Failure::usage(message).hint(hint)
}

fn several_deliveries(text: &str, routes: &Routes, several: &[DeliveryRow]) -> Failure {
    let mut message = format!("`{}` has several deliveries:", escape(text));
    for row in several {
        let (delivery, route) = (row.delivery, escape(&row.route));
        let shown = routes.shown_of(row);
        message.push_str(&format!("\n  {delivery}  {route}  {shown}"));
    }
    Failure::usage(message).hint("name one of them")
}

/// The ids of deliveries, just long enough to tell their receipts apart.
pub(crate) fn short_deliveries(deliveries: &[DeliveryId]) -> Vec<String> {
    let receipts: Vec<ReceiptId> = deliveries.iter().map(|delivery| delivery.receipt).collect();
    let short = short_ids(&receipts).into_iter().zip(deliveries);
    short.map(|(receipt, delivery)| format!("{receipt}.{}", delivery.route.0)).collect()
}
