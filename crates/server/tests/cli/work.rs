//! A store with deliveries in every state, and the commands that look at them.

use std::fs;
use std::sync::Arc;

use oncebox::delivery::{DeliveryId, Ending, Next};
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::route::RouteRules;
use oncebox::store::{Finish, Store};
use oncebox_testkit::store::{Bed, Route, act, ending};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bed::{Run, oncebox_in};

/// What a consumer says to fool whoever reads it.
pub(crate) const HOSTILE: &str = "no \x1b[2J\u{202e}\r\nreason";

/// `gone` is not in it, and `later` only in it.
const ROUTES: &str = r#"
[sources.stripe-live]
provider = "stripe"
secrets = ["env:CANARY"]

[routes.billing]
sources = ["stripe-live"]
order = "object"
push = "https://app.example.com/webhooks"
secret = "env:CANARY"

[routes.mail]
sources = ["stripe-live"]
pull = true

[routes.slow]
sources = ["stripe-live"]
pull = true

[routes.later]
sources = ["stripe-live"]
pull = true
"#;

/// A store and a configuration in a folder of their own.
pub(crate) struct Work {
    pub(crate) bed: Bed,
    dir: TempDir,
    runtime: Runtime,
}

impl Work {
    /// With nothing in the store.
    pub(crate) fn empty() -> Self {
        Self::configured("")
    }

    /// With nothing in the store, and more in the configuration.
    pub(crate) fn configured(more: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let bed = runtime.block_on(Bed::sqlite());
        let dir = tempfile::tempdir().unwrap();
        let config = format!("[store]\nurl = \"{}\"\n{ROUTES}{more}", bed.url);
        fs::write(dir.path().join("oncebox.toml"), config).unwrap();
        Self { bed, dir, runtime }
    }

    /// With deliveries in every state; see [`fill`].
    pub(crate) fn full() -> Self {
        let work = Self::empty();
        work.runtime.block_on(fill(&work.bed));
        work
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        oncebox_in(self.dir.path(), args, b"")
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.bed.store.clone()
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The delivery of an event, as lists name it.
    pub(crate) fn delivery(&self, event_id: &str) -> String {
        let rows = self.rows(&[]);
        let row = rows.iter().find(|row| row["event_id"] == event_id);
        row.unwrap_or_else(|| panic!("no {event_id} in {rows:?}"))["delivery"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// `oncebox deliveries list --json` with more arguments.
    pub(crate) fn rows(&self, more: &[&str]) -> Vec<Value> {
        let args: Vec<_> = ["deliveries", "list", "--json"].iter().chain(more).copied().collect();
        self.run(&args).exits(0).json()
    }

    /// The acts of the audit, newest first: `act subject by who: why`.
    pub(crate) fn acts(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let acts = self.run(&["audit", "list", "--json"]).exits(0).json();
        let told = |act: &Value| {
            let [what, subject, who, why] =
                ["act", "subject", "who", "why"].map(|field| text(&act[field]));
            format!("{what} {subject} by {who}: {why}")
        };
        acts.iter().map(told).collect()
    }
}

/// `bill_1` has failed and holds `bill_2`; `mail_done` is processed, `mail_stale` skipped,
/// `mail_dead` dead, `mail_busy` being processed, `mail_new` received; `slow_new` and `slow_again`
/// wait on a paused route, `gone_new` on one that is not configured.
async fn fill(bed: &Bed) {
    let plain = RouteRules::default();
    let ordered = RouteRules { ordered: true, ..plain };
    let billing = bed.route("billing", ordered).await;
    let (mail, slow) = (bed.route("mail", plain).await, bed.route("slow", plain).await);
    let gone = bed.route("gone", plain).await;

    for event_id in ["bill_1", "bill_2"] {
        let object = Some("in_456".to_owned());
        bed.send(Arrival { object, ..bed.event(event_id, &[billing]) }).await;
    }
    let failed = bed.take(&billing).await;
    assert!(bed.take_if_any(&billing).await.is_none(), "the second is held");
    end(bed, Ending { status: Some(500), ..told(&failed, Next::Retry(HOUR)) }).await;

    take_and_end(bed, "mail_done", &mail, Next::Processed).await;
    take_and_end(bed, "mail_stale", &mail, Next::Stale).await;
    take_and_end(bed, "mail_dead", &mail, Next::Dead).await;
    bed.due("mail_busy", &[mail]).await;
    bed.take(&mail).await;
    bed.due("mail_new", &[mail]).await;

    take_and_end(bed, "slow_again", &slow, Next::Retry(HOUR)).await;
    bed.due("slow_new", &[slow]).await;
    bed.store.pause_route("slow", true, &act("it is slow")).await.unwrap();
    bed.due("gone_new", &[gone]).await;
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

async fn take_and_end(bed: &Bed, event_id: &str, route: &Route, next: Next) -> ReceiptId {
    let receipt = bed.due(event_id, &[*route]).await;
    let claimed = bed.take(route).await;
    end(bed, told(&claimed, next)).await;
    receipt
}

/// An end with the words of a consumer that means no good.
fn told(claimed: &oncebox::delivery::Claimed, next: Next) -> Ending {
    let summary = Some(format!("summary {HOSTILE}"));
    Ending { detail: Some(HOSTILE.to_owned()), summary, ..ending(claimed, next) }
}

async fn end(bed: &Bed, ending: Ending) {
    assert_eq!(bed.store.finish(vec![ending]).await.unwrap(), [Finish::Done]);
}

/// The receipt of a delivery, as lists name it.
pub(crate) fn receipt_of(delivery: &str) -> String {
    delivery.parse::<DeliveryId>().unwrap().receipt.to_string()
}
