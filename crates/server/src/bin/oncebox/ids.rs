//! Ids as a command line gives them. Whoever writes another kind of id is told what to do with it.

use oncebox::delivery::DeliveryId;
use oncebox::receipt::ReceiptId;
use oncebox::replay::ReplayId;

const HINT_EVENT: &str =
    "for an event id, `oncebox receipts show ID --source NAME` tells its receipt and deliveries";

/// Reads a receipt id; for clap.
pub(crate) fn receipt(text: &str) -> Result<ReceiptId, String> {
    if text.parse::<DeliveryId>().is_ok() {
        let hint = "write the part before the dot, and --route NAME for its route only";
        return Err(with_hint("it is the id of a delivery, not of a receipt", hint));
    }
    text.parse().map_err(|_| with_hint("it is no receipt id", HINT_EVENT))
}

/// Reads a delivery id; for clap.
pub(crate) fn delivery(text: &str) -> Result<DeliveryId, String> {
    let hint = if text.parse::<ReceiptId>().is_ok() {
        "it is a receipt; `oncebox receipts show` tells its deliveries"
    } else {
        HINT_EVENT
    };
    text.parse().map_err(|error| with_hint(&format!("{error}"), hint))
}

/// Reads a replay id; for clap.
pub(crate) fn replay(text: &str) -> Result<ReplayId, String> {
    let hint = "`oncebox replays list` shows those there are";
    text.parse().map_err(|_| with_hint("it is no replay id", hint))
}

/// A delivery, by its own id or by its receipt's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    Delivery(DeliveryId),
    Receipt(ReceiptId),
}

/// Reads the id of a delivery or of a receipt; for clap.
pub(crate) fn named(text: &str) -> Result<Named, String> {
    let delivery = text.parse().map(Named::Delivery);
    delivery
        .or_else(|_| text.parse().map(Named::Receipt))
        .map_err(|_| with_hint("it is neither a delivery nor a receipt id", HINT_EVENT))
}

fn with_hint(problem: &str, hint: &str) -> String {
    format!("{problem}\nhint: {hint}")
}
