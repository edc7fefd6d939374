//! `oncebox sources pair` and `unpair`: when a provider may tell its secret.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use oncebox::limits::{PAIRING, PAIRING_LONGEST};
use oncebox::receipt::SourceNo;
use oncebox::store::{PairedSecret, Pairing, Store};
use oncebox_server::config::{Config, SourceConfig};

use super::{paired_source, sealing_key, secrets};
use crate::exit::Failure;
use crate::operator::{Operator, reason};
use crate::output::{Screen, absolute, escape, notice};
use crate::when::duration;

/// How often it is asked whether the secret has come.
const LOOK: Duration = Duration::from_millis(250);

/// Let the provider of a source tell its secret, for a while
///
/// Asana, Clio and Notion choose the secret and tell it in a request. Whoever knows the URL could
/// send such a request, so it is heeded only while this window is open, and only once. Waits until
/// the secret has come.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources pair asana
  oncebox sources pair notion --for 30m --no-wait

Exit codes: 0 paired, 1 the window ended without a secret, 3 not found.")]
pub(super) struct Pair {
    /// The source
    source: String,

    /// How long, at most 1d [default: 10m]
    #[arg(long = "for", value_name = "DURATION", value_parser = window)]
    open_for: Option<Duration>,

    /// Return at once and leave the window open
    #[arg(long)]
    no_wait: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Pair {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let (source, number) = paired_source(store, config, &self.source).await?;
        sealing_key(config, &self.source)?;
        let act = self.operator.act(self.reason.as_deref());
        let open_for = self.open_for.unwrap_or(PAIRING);
        let window = store.open_pairing(number, open_for, &act).await?;
        self.tell_next(source, &window);
        if self.no_wait {
            return Ok(());
        }
        let secret = self.wait(store, number, &window).await?;
        let mut screen = Screen::stdout();
        match self.json {
            true => screen.json(&secrets::as_json(&secret))?,
            false => {
                let (no, print) = (secret.no.0, escape(&secret.fingerprint));
                screen.line(format!("paired: secret {no}, fingerprint {print}"))?;
            }
        }
        screen.flush()?;
        if source.entry.pairing.is_some_and(|pairing| pairing.echo.is_none()) {
            notice(format!(
                "{} wants to have it back: `oncebox sources secrets {} --reveal` shows what to \
                 paste into its form",
                source.entry.title, self.source
            ));
        }
        Ok(())
    }

    /// What to do at the provider now.
    fn tell_next(&self, source: &SourceConfig, window: &Pairing) {
        let path = format!("https://YOUR-HOST/in/{}", self.source);
        let url = source.public_url.as_deref().unwrap_or(&path);
        notice(format!("the window is open until {}", absolute(window.until)));
        notice(format!(
            "now make the webhook at {}, with the URL {}",
            source.entry.title,
            escape(url)
        ));
        notice(format!("`oncebox sources unpair {}` closes the window", self.source));
    }

    /// Waits for the secret of this window.
    async fn wait(
        &self,
        store: &Arc<dyn Store>,
        number: SourceNo,
        window: &Pairing,
    ) -> Result<PairedSecret, Failure> {
        let ended = |how: &str| {
            Failure::failed(format!("{how}; no secret has come"))
                .hint("is the URL right, and does the server answer there? its log has every try")
        };
        loop {
            let now = store.pairing(number).await?;
            let Some(now) = now.filter(|now| now.opened_at == window.opened_at) else {
                return Err(ended("another operator closed the window"));
            };
            if let Some(no) = now.paired {
                let secrets = store.paired_secrets(number).await?;
                let found = secrets.into_iter().find(|secret| secret.no == no);
                return found.ok_or_else(|| ended("the secret was removed at once"));
            }
            if !now.is_open {
                return Err(ended("the window has ended"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Close the window of a source before its time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox sources unpair asana

Secrets that were told stay: `oncebox sources forget` removes one.

Exit codes: 0 closed, 1 none was open, 3 not found.")]
pub(super) struct Unpair {
    /// The source
    source: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Unpair {
    pub(super) async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let (_, number) = paired_source(store, config, &self.source).await?;
        let act = self.operator.act(self.reason.as_deref());
        if !store.close_pairing(number, &act).await? {
            return Err(Failure::failed(format!("no window of {} is open", self.source)));
        }
        notice(format!("closed the window of {}", self.source));
        Ok(())
    }
}

/// Reads how long a window is open; for clap.
fn window(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        long if long > PAIRING_LONGEST => Err("it must not be longer than 1d".to_owned()),
        period => Ok(period),
    }
}
