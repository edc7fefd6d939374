//! `oncebox sources secrets` and `forget`: what providers told.

use std::sync::Arc;

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::store::{PairedNo, PairedSecret, Store};
use oncebox_server::config::Config;
use oncebox_server::pairing::unusable;
use oncebox_verify::Secret;
use serde_json::{Value, json};

use super::{paired_source, sealing_key};
use crate::exit::Failure;
use crate::operator::{Operator, confirm, reason};
use crate::output::{Screen, count, escape, notice, relative};

/// List the secrets that the provider of a source told
///
/// They are kept encrypted. --reveal shows them, for a provider that wants its token pasted into a
/// form; that is audited.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources secrets asana
  oncebox sources secrets notion --reveal

Exit codes: 0 listed, 3 not found.")]
pub(super) struct Secrets {
    /// The source
    source: String,

    /// Show the secrets themselves
    #[arg(long)]
    reveal: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason, requires = "reveal")]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Secrets {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let (_, number) = paired_source(store, config, &self.source).await?;
        let kept = store.paired_secrets(number).await?;
        let mut opened: Vec<Option<Secret>> = kept.iter().map(|_| None).collect();
        if self.reveal && !kept.is_empty() {
            let key = sealing_key(config, &self.source)?;
            for (secret, place) in kept.iter().zip(&mut opened) {
                let open = key.open(number, &secret.sealed);
                *place = Some(open.map_err(|why| unusable(&self.source, secret.no, &why))?);
            }
            // Before anybody sees them.
            let act = self.operator.act(self.reason.as_deref());
            store.note_act(&act, "secret.reveal", &self.source).await?;
        }
        let mut screen = Screen::stdout();
        let rows = kept.iter().zip(&opened);
        if self.json {
            for (secret, opened) in rows {
                let mut object = as_json(secret);
                if let Some(opened) = opened {
                    object["secret"] = opened.expose().into();
                }
                screen.json(&object)?;
            }
        } else if !kept.is_empty() {
            let now = SystemClock.now();
            let rows = rows.map(|(secret, opened)| {
                vec![
                    secret.no.0.to_string(),
                    escape(&secret.fingerprint).into_owned(),
                    relative(secret.paired_at, now),
                    opened.as_ref().map(|text| text.expose().to_owned()).unwrap_or_default(),
                ]
            });
            screen.table(&["number", "fingerprint", "paired", "secret"], &[0], rows)?;
        }
        screen.flush()?;
        if !self.json {
            notice(count(kept.len(), "secret"));
        }
        Ok(())
    }
}

/// Remove a secret that the provider of a source told
///
/// What is signed with it is no longer believed, in a few seconds at the latest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources forget asana 1 --reason 'the webhook was deleted'

Exit codes: 0 removed, 3 not found.")]
pub(super) struct Forget {
    /// The source
    source: String,

    /// The number of the secret, as `oncebox sources secrets` shows it
    number: i16,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    operator: Operator,
}

impl Forget {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let (_, source) = paired_source(store, config, &self.source).await?;
        let (no, name) = (self.number, &self.source);
        let kept = store.paired_secrets(source).await?;
        let found = kept.iter().find(|secret| secret.no.0 == no);
        let print = &found.ok_or_else(|| not_there(no, name))?.fingerprint;
        confirm(self.yes, &format!("Remove secret {no} of {name}, fingerprint {print}?"))?;
        let act = self.operator.act(self.reason.as_deref());
        if !store.remove_paired_secret(source, PairedNo(no), &act).await? {
            return Err(not_there(no, name));
        }
        notice(format!("removed secret {no} of {name}"));
        Ok(())
    }
}

fn not_there(no: i16, source: &str) -> Failure {
    Failure::not_found(format!("{source} has no secret {no} from its provider"))
        .hint(format!("`oncebox sources secrets {source}` lists those it has"))
}

/// A secret of a list; the fields are never renamed.
pub(super) fn as_json(secret: &PairedSecret) -> Value {
    json!({
        "number": secret.no.0,
        "fingerprint": secret.fingerprint,
        "paired_at": secret.paired_at.to_string(),
    })
}
