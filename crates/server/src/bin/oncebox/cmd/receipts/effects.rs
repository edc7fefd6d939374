//! What deliveries of a receipt did: its effects, steps and outbox messages.

use jiff::Timestamp;
use oncebox::effect::{Effect, EffectKind};
use oncebox::limits::LIST_ROWS;
use oncebox::receipt::ReceiptId;
use oncebox::store::{EffectFilter, Store};
use oncebox_server::api::effects::json::EffectJson;

use super::both;
use crate::cmd::effects::Pages;
use crate::exit::Failure;
use crate::output::{Screen, count, escape, shorten};

/// How much of a result is shown beside its receipt; the whole is in `oncebox effects show`.
const RESULT_SHOWN: usize = 200;

/// The effects of a receipt.
pub(super) struct Effects {
    receipt: ReceiptId,
    effects: Vec<Effect>,
}

impl Effects {
    pub(super) async fn load(store: &dyn Store, receipt: ReceiptId) -> Result<Self, Failure> {
        let filter = EffectFilter { receipt: Some(receipt), ..EffectFilter::default() };
        let mut pages = Pages::new(store, filter, None);
        let mut effects = Vec::new();
        while let Some(page) = pages.next().await? {
            effects.extend(page);
        }
        Ok(Self { receipt, effects })
    }

    pub(super) fn print(&self, screen: &mut Screen, now: Timestamp) -> Result<(), Failure> {
        for effect in self.effects.iter().take(LIST_ROWS) {
            let (label, text) = in_words(effect, now);
            screen.line(format!("{label:11} {text}"))?;
            if let Some(result) = effect.result.as_deref().filter(|_| !is_message(effect)) {
                let result = shorten(&escape(result), RESULT_SHOWN);
                screen.line(format!("{:11}   {:9} {result}", "", "result"))?;
            }
        }
        let more = self.effects.len().saturating_sub(LIST_ROWS);
        if more > 0 {
            let all = format!("oncebox effects list --receipt {} --all", self.receipt);
            screen.line(format!("{:11} and {}: {all}", "", count(more, "more effect")))?;
        }
        Ok(())
    }

    pub(super) fn as_json(&self) -> Vec<EffectJson> {
        self.effects.iter().map(EffectJson::from).collect()
    }
}

fn is_message(effect: &Effect) -> bool {
    effect.kind == EffectKind::Message
}

/// An effect in a line, and what it is.
fn in_words(effect: &Effect, now: Timestamp) -> (&'static str, String) {
    let (key, route) = (escape(&effect.key), escape(&effect.route));
    let by = format!("by {route} on attempt {}", effect.attempt);
    let since = both(effect.at, now);
    if is_message(effect) {
        // What is recorded with a message is the receipt that holds it.
        let receipt = effect.result.as_deref().unwrap_or_default().trim_matches('"');
        return ("message", format!("{key}, sent {by}, {since}, as {}", escape(receipt)));
    }
    let mut text = format!("{key}: {} {by}, {since}", effect.state);
    let counts = [(effect.unknowns, "unknown"), (effect.conflicts, "conflict")];
    for (number, noun) in counts.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(", ");
        text.push_str(&count(number as usize, noun));
    }
    let label = if effect.kind == EffectKind::Step { "step" } else { "effect" };
    (label, text)
}
