//! `oncebox sources list`: where webhooks come in, and what was accepted and rejected last.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::effect::OUTBOX;
use oncebox::receipt::SourceNo;
use oncebox::store::{PairedSecret, Pairing, RejectionNote, SourceActivity, Store};
use oncebox_server::capture::UNVERIFIED;
use oncebox_server::config::{Config, SourceConfig};
use oncebox_server::line::Colour;
use serde_json::{Value, json};

use super::secrets;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output::{Cell, Column, Screen, count, escape, relative};

/// List sources: what they accepted and rejected last and why, and which secret is in use
///
/// A secret is named by its fingerprint, four digits that tell it from the others of its source.
/// What was accepted and rejected is written about once a second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources list
  oncebox sources list --json")]
pub(super) struct List {
    #[command(flatten)]
    listing: Listing,
}

const COLUMNS: [Column; 8] = [
    Column::text("source", 10),
    Column::text("provider", 8),
    Column::new("accepted"),
    Column::new("rejected"),
    Column::text("why", 18),
    Column::text("secret in use", 14),
    Column::text("note", 12),
    Column::text("path", 10),
];

impl List {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let now = SystemClock.now();
        let known = store.sources().await?;
        let known = known.iter().filter(|(_, name)| !name.starts_with(OUTBOX));
        let numbers: BTreeMap<&str, SourceNo> =
            known.map(|(number, name)| (name.as_str(), *number)).collect();
        let mut names: Vec<&str> = config.sources.keys().map(String::as_str).collect();
        names.extend(numbers.keys());
        names.sort_unstable();
        names.dedup();
        let most = self.listing.most().unwrap_or(names.len());
        let activity = store.activity().await?;
        let mut lines = Vec::new();
        for name in names.iter().take(most) {
            lines.push(Line::load(store, config, name, numbers.get(name), &activity).await?);
        }
        let mut screen = Screen::stdout();
        if self.listing.json {
            for line in &lines {
                screen.json(&line.as_json())?;
            }
        } else if !lines.is_empty() {
            screen.fitted(&COLUMNS, lines.iter().map(|line| line.cells(now)))?;
            for line in &lines {
                line.explain(&mut screen, now)?;
            }
        }
        screen.flush()?;
        self.listing.tell(lines.len(), lines.len() < names.len(), "source");
        Ok(())
    }
}

/// One source of the list.
struct Line<'a> {
    name: &'a str,
    /// None if only the store knows it.
    config: Option<&'a SourceConfig>,
    /// The fingerprints of the configured secrets; none of one that cannot be fetched from here.
    configured: Vec<Option<String>>,
    paired: Vec<PairedSecret>,
    pairing: Option<Pairing>,
    /// What it was sent last; none if it was never sent anything.
    activity: Option<&'a SourceActivity>,
}

impl<'a> Line<'a> {
    async fn load(
        store: &Arc<dyn Store>,
        config: &'a Config,
        name: &'a str,
        number: Option<&SourceNo>,
        activity: &'a [SourceActivity],
    ) -> Result<Self, Failure> {
        let (paired, pairing) = match number {
            Some(number) => (store.paired_secrets(*number).await?, store.pairing(*number).await?),
            None => (Vec::new(), None),
        };
        let activity = activity.iter().find(|activity| Some(&activity.source) == number);
        let source = config.sources.get(name);
        let configured = source.map(|source| fingerprints(config, source)).unwrap_or_default();
        Ok(Self { name, config: source, configured, paired, pairing, activity })
    }

    fn rejection(&self) -> Option<&RejectionNote> {
        self.activity?.rejection.as_ref()
    }

    /// Requests that were rejected since the last that was accepted.
    fn in_a_row(&self) -> u64 {
        self.activity.map_or(0, |activity| activity.rejected_in_a_row)
    }

    /// The fingerprint of the secret that verified last, if any did.
    fn used(&self) -> Option<&str> {
        Some(self.activity?.secret.as_ref()?.0.as_str())
    }

    fn as_json(&self) -> Value {
        let paired = self.paired.iter().map(secrets::as_json);
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        json!({
            "source": self.name,
            "provider": self.config.map(|config| &config.provider),
            "configured": self.config.is_some(),
            "path": format!("/in/{}", self.name),
            "unverified": self.config.is_some_and(SourceConfig::is_capture),
            "accepted_at": time(self.activity.and_then(|activity| activity.accepted_at)),
            "rejected_at": time(self.rejection().map(|rejection| rejection.at)),
            "reason": self.rejection().map(|rejection| &rejection.reason),
            "hint": self.rejection().and_then(|rejection| rejection.hint.as_ref()),
            "rejected_in_a_row": self.in_a_row(),
            "secret_in_use": self.used(),
            "keep_rejected": self.config.map(|config| config.keep_rejected),
            "secrets": self.configured,
            "paired": paired.collect::<Vec<_>>(),
            "pairing": self.pairing.map(|pairing| json!({
                "opened_at": pairing.opened_at.to_string(),
                "until": pairing.until.to_string(),
                "open": pairing.is_open,
                "paired": pairing.paired.map(|no| no.0),
            })),
        })
    }

    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let time = |time: Option<Timestamp>| match time {
            Some(time) => relative(time, now),
            None => "never".to_owned(),
        };
        let rejected = self.rejection().map(|rejection| relative(rejection.at, now));
        let colour = (self.in_a_row() > 0).then_some(Colour::BAD);
        vec![
            escape(self.name).into(),
            self.config.map(|config| escape(&config.provider)).unwrap_or_default().into(),
            time(self.activity.and_then(|activity| activity.accepted_at)).into(),
            Cell::coloured(rejected.unwrap_or_default(), colour),
            self.rejection().map(|last| escape(&last.reason)).unwrap_or_default().into(),
            self.secret().into(),
            self.note(now).into(),
            escape(&format!("/in/{}", self.name)).into(),
        ]
    }

    /// Which of the secrets verified last, and how many there are.
    fn secret(&self) -> String {
        let prints = self.configured.iter().map(Option::as_deref);
        let prints = prints.chain(self.paired.iter().map(|paired| Some(&*paired.fingerprint)));
        let prints: Vec<Option<&str>> = prints.collect();
        let number = prints.len();
        match self.used() {
            _ if number == 0 => String::new(),
            None => format!("none of {number}"),
            Some(used) => match prints.iter().position(|print| *print == Some(used)) {
                Some(place) => format!("{} of {number} ({})", place + 1, escape(used)),
                // It was removed since, or cannot be fetched from here.
                None => format!("another ({})", escape(used)),
            },
        }
    }

    fn note(&self, now: Timestamp) -> String {
        match self.pairing {
            Some(pairing) if pairing.is_open => {
                return format!("pairing ends {}", relative(pairing.until, now));
            }
            _ if self.waits() && self.paired.is_empty() => return "never paired".to_owned(),
            _ => {}
        }
        match self.config {
            None => "not configured".to_owned(),
            Some(config) if config.is_capture() => UNVERIFIED.to_owned(),
            Some(_) => String::new(),
        }
    }

    /// Explains why a source rejects what it is sent, below the table.
    fn explain(&self, screen: &mut Screen, now: Timestamp) -> Result<(), Failure> {
        let Some(last) = self.rejection().filter(|_| self.in_a_row() > 0) else { return Ok(()) };
        let number = usize::try_from(self.in_a_row()).unwrap_or(usize::MAX);
        let (requests, ago) = (count(number, "request"), relative(last.at, now));
        let (name, reason) = (escape(self.name), escape(&last.reason));
        screen.line("")?;
        let words = format!("{name} rejected {requests}, the last {ago}: {reason}");
        screen.line(screen.bad(&words))?;
        if let Some(hint) = &last.hint {
            screen.paragraph("  → ", &escape(hint))?;
        }
        match self.config.map_or(0, |config| config.keep_rejected) {
            0 => screen.line("  → `keep_rejected = 20` of the source keeps such requests")?,
            _ => screen.line(format!("  → `oncebox sources rejected {name}` lists them"))?,
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.config.is_some_and(SourceConfig::waits_for_secret)
    }
}

/// The fingerprints of the secrets of a configuration, as far as they can be fetched from here.
fn fingerprints(config: &Config, source: &SourceConfig) -> Vec<Option<String>> {
    let print = |secret: oncebox_verify::Secret| secret.fingerprint();
    source.secrets.iter().map(|secret| config.resolve(secret).ok().map(print)).collect()
}
