//! `oncebox sources rejected`: requests that were not believed, where a source keeps some.

use std::sync::Arc;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::REJECTED_KEPT;
use oncebox::lookup::{Ids, short_ids};
use oncebox::receipt::SourceNo;
use oncebox::store::{Rejected as Kept, RejectedFilter, Store};
use oncebox_server::config::Config;
use serde_json::{Value, json};

use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, age, escape, notice};

/// List requests that were rejected and kept; nothing in them is verified
///
/// A source keeps them with `keep_rejected = N`: the last N of each reason, for a day. `oncebox
/// verify ID` says which step fails and what to check.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources rejected
  oncebox sources rejected stripe --json
  oncebox verify 0199c2f0-7e4a

Exit codes: 0 listed, 3 there is no such source.")]
pub(super) struct Rejected {
    /// Only of this source
    source: Option<String>,

    #[command(flatten)]
    listing: Listing,
}

const COLUMNS: [Column; 7] = [
    Column::new("id"),
    Column::new("age"),
    Column::text("source", 8),
    Column::text("reason", 18),
    Column::text("sender", 15),
    Column::right("bytes"),
    Column::text("method", 6),
];

impl Rejected {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let now = SystemClock.now();
        let source = match &self.source {
            Some(name) => Some(context::source_no(&**store, name).await?),
            None => None,
        };
        let most = self.listing.most().unwrap_or(usize::MAX);
        let filter = RejectedFilter {
            source,
            limit: most.saturating_add(1),
            ..RejectedFilter::since(oldest(now))
        };
        let mut kept = store.rejected_list(&filter).await?;
        let has_more = kept.len() > most;
        kept.truncate(most);
        let names = store.sources().await?;
        let mut screen = Screen::stdout();
        if self.listing.json {
            for kept in &kept {
                screen.json(&as_json(kept, &name(&names, kept.source)))?;
            }
        } else if !kept.is_empty() {
            let ids: Vec<_> = kept.iter().map(|kept| kept.id).collect();
            let rows = kept.iter().zip(short_ids(&ids));
            let rows = rows.map(|(kept, id)| cells(kept, id, &name(&names, kept.source), now));
            screen.fitted(&COLUMNS, rows)?;
        }
        screen.flush()?;
        self.listing.tell(kept.len(), has_more, "rejected request");
        let keeps = config.sources.values().any(|source| source.keep_rejected > 0);
        match (self.listing.json, kept.is_empty(), keeps) {
            (false, true, false) => {
                notice("hint: no source keeps any; set `keep_rejected = 20` on one and reload");
            }
            (false, false, _) => notice("unverified; `oncebox verify ID` says what to check"),
            _ => {}
        }
        Ok(())
    }
}

/// Before this, kept requests are as good as gone.
fn oldest(now: Timestamp) -> Timestamp {
    let kept = SignedDuration::try_from(REJECTED_KEPT).unwrap_or_default();
    now.checked_sub(kept).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Whether a text may be the id of a kept request, or the beginning of one.
pub(crate) fn may_be_id(text: &str) -> bool {
    matches!(Ids::of_beginning(text.trim_end_matches('…')), Some((_, None)))
}

/// The kept request that an id, or the beginning of one, means. `None` if there is no such request.
pub(crate) async fn find(store: &dyn Store, text: &str) -> Result<Option<Kept>, Failure> {
    let Some((ids, None)) = Ids::of_beginning(text.trim_end_matches('…')) else {
        return Ok(None);
    };
    let since = RejectedFilter::since(oldest(SystemClock.now()));
    let filter = RejectedFilter { from: ids.from.max(since.from), to: ids.to, limit: 2, ..since };
    match store.rejected_list(&filter).await?.as_slice() {
        [] => Ok(None),
        [one] => Ok(store.rejected(one.id).await?),
        [one, other, ..] => {
            let message = format!("`{}` means several: {}, {}", escape(text), one.id, other.id);
            Err(Failure::usage(message).hint("write more of the id"))
        }
    }
}

fn name(names: &[(SourceNo, String)], number: SourceNo) -> String {
    let known = names.iter().find(|(known, _)| *known == number);
    known.map(|(_, name)| name.clone()).unwrap_or_default()
}

fn cells(kept: &Kept, id: String, source: &str, now: Timestamp) -> Vec<Cell> {
    vec![
        id.into(),
        age(kept.rejection.at, now).into(),
        escape(source).into(),
        escape(&kept.rejection.reason).into(),
        escape(&kept.sender).into(),
        // Of one that was refused by its head the body is not known.
        Some(kept.body_bytes)
            .filter(|bytes| *bytes > 0)
            .map(|bytes| bytes.to_string())
            .unwrap_or_default()
            .into(),
        escape(&kept.method).into(),
    ]
}

/// A kept request; the fields are never renamed.
fn as_json(kept: &Kept, source: &str) -> Value {
    json!({
        "id": kept.id.to_string(),
        "unverified": true,
        "source": source,
        "received_at": kept.rejection.at.to_string(),
        "reason": kept.rejection.reason,
        "hint": kept.rejection.hint,
        "sender": kept.sender,
        "method": kept.method,
        "url": kept.url,
        "bytes": kept.body_bytes,
    })
}
