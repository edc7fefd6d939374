//! `oncebox token`: who may use the admin interface.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits::NAME_BYTES;
use oncebox::store::Store;
use oncebox::token::{Scope, Token as Kept, TokenId};
use oncebox_server::api::token::mint;
use oncebox_server::config::Config;
use serde_json::{Value, json};

use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::operator::{Operator, reason};
use crate::output::{Cell, Column, Screen, age, escape, notice, relative};
use crate::when::duration;

/// Make, list or revoke tokens of the admin interface
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox token create billing-worker --scope pull:billing --expires 90d
  oncebox token list
  oncebox token revoke 3f9c0b7a21de")]
pub(crate) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

impl Token {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let done = match self.command {
            Command::Create(create) => create.run(&store, &config).await,
            Command::List(list) => list.run(&store).await,
            Command::Revoke(revoke) => revoke.run(&store).await,
        };
        store.close().await;
        done
    }
}

/// Make a token; its text is printed once and kept nowhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox token create billing-worker --scope pull:billing --expires 90d
  TOKEN=$(oncebox token create ci --scope pull)

Scopes: pull (any route), pull:ROUTE, view, payloads, operate, admin.")]
struct Create {
    /// What you call it
    #[arg(value_parser = name)]
    name: String,

    /// What it may do; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Scope>,

    /// How long it works, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires: Option<Duration>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    operator: Operator,
}

impl Create {
    async fn run(self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        let now = SystemClock.now();
        let expires_at = self.expires.map(|after| end(now, after)).transpose()?;
        for scope in &self.scopes {
            if let Scope::Pull(Some(route)) = scope
                && !config.routes.contains_key(route)
            {
                notice(format!("warning: the configuration has no route `{}`", escape(route)));
            }
        }
        let (token, text) = mint(&self.name, self.scopes, now, expires_at)
            .map_err(|error| Failure::failed(error.to_string()))?;
        store.create_token(&token, &self.operator.act(None)).await?;
        let mut screen = Screen::stdout();
        if self.json {
            let mut object = as_json(&token, now);
            object["token"] = text.into();
            screen.json(&object)?;
        } else {
            screen.line(text)?;
            notice(format!("made token {}; it is shown only this once", token.id));
        }
        screen.flush()?;
        Ok(())
    }
}

/// When a token that is made now ends.
fn end(now: Timestamp, after: Duration) -> Result<Timestamp, Failure> {
    let after = SignedDuration::try_from(after).ok().filter(|after| !after.is_zero());
    after
        .and_then(|after| now.checked_add(after).ok())
        .ok_or_else(|| Failure::usage("--expires is out of reach").hint("90d is usual"))
}

/// Reads the name of a token; for clap.
fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it must not be empty".to_owned()),
        text if text.len() > NAME_BYTES => Err(format!("at most {NAME_BYTES} bytes")),
        text => Ok(text.to_owned()),
    }
}

/// List tokens, newest first; their secrets are not kept
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox token list
  oncebox token list --all --json")]
struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let now = SystemClock.now();
        let tokens = store.tokens().await?;
        let most = self.listing.most().unwrap_or(tokens.len());
        let shown = &tokens[..most.min(tokens.len())];
        let mut screen = Screen::stdout();
        if self.listing.json {
            for token in shown {
                screen.json(&as_json(token, now))?;
            }
        } else if !shown.is_empty() {
            screen.fitted(&COLUMNS, shown.iter().map(|token| cells(token, now)))?;
        }
        screen.flush()?;
        self.listing.tell(shown.len(), shown.len() < tokens.len(), "token");
        Ok(())
    }
}

const COLUMNS: [Column; 5] = [
    Column::new("token"),
    Column::text("name", 12),
    Column::new("state"),
    Column::text("scopes", 16),
    Column::new("age"),
];

fn cells(token: &Kept, now: Timestamp) -> Vec<Cell> {
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", relative(at, now)),
        (None, Some(end)) if end <= now => format!("expired {}", relative(end, now)),
        (None, Some(end)) => format!("expires {}", relative(end, now)),
        (None, None) => "works".to_owned(),
    };
    let scopes = scopes(token).join(", ");
    vec![
        escape(&token.id.0).into(),
        escape(&token.name).into(),
        state.into(),
        escape(&scopes).into(),
        age(token.created_at, now).into(),
    ]
}

fn scopes(token: &Kept) -> Vec<String> {
    token.scopes.iter().map(ToString::to_string).collect()
}

/// A token without its secret; the fields are never renamed.
fn as_json(token: &Kept, now: Timestamp) -> Value {
    json!({
        "id": token.id.0,
        "name": token.name,
        "scopes": scopes(token),
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|time| time.to_string()),
        "revoked_at": token.revoked_at.map(|time| time.to_string()),
        "works": token.is_live(now),
    })
}

/// Revoke a token: it works no longer
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox token revoke 3f9c0b7a21de --reason 'it was in a log'

Exit codes: 0 revoked, 1 it was revoked before, 3 not found.")]
struct Revoke {
    /// The token's id, as `oncebox token list` shows it
    id: String,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

impl Revoke {
    async fn run(self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        // Whoever pastes a whole token means its public half, and must not see the other again.
        let public = self.id.strip_prefix("oncebox_").unwrap_or(&self.id);
        let id = TokenId(public.split('_').next().unwrap_or_default().to_owned());
        if store.revoke_token(&id, &self.operator.act(self.reason.as_deref())).await? {
            notice(format!("revoked {}", escape(&id.0)));
            return Ok(());
        }
        let shown = escape(&id.0);
        match store.token(&id).await? {
            Some(_) => Err(Failure::failed(format!("token {shown} was revoked before"))),
            None => Err(Failure::not_found(format!("there is no token {shown}"))
                .hint("`oncebox token list` shows those there are")),
        }
    }
}
