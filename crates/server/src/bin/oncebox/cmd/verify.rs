//! `oncebox verify`: why a captured request verifies, or which step fails and what to check.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox_server::capture::UNVERIFIED;
use oncebox_server::config::{Environment, SecretRef, SettingRef, setting_keys};
use oncebox_server::fingerprint::is_fingerprint;
use oncebox_server::public::SIGNED_URL_HEADER;
use oncebox_verify::custom::{self, HmacSettings, SettingsError, TokenSettings};
use oncebox_verify::{
    BadSecret, Event, Explanation, Keyring, MadeUp, Provider, Rejection, Reply, Scheme, Secret,
    Settings, Trust, Verified, catalogue, explain, handshake, identify, made_up, paired,
    pairing_secret, signed_handshake, verify,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Global;
use crate::capture::Capture;
use crate::cmd::providers::no_provider;
use crate::context::{self, Source, secret_ref};
use crate::exit::{Code, Failure};
use crate::output::{Screen, absolute, escape, notice};
use crate::when::{When, when};

mod kept;

/// The largest capture that is read.
const CAPTURE_BYTES_MAX: u64 = 128 << 20;

/// Check the signature of a captured request and say which step fails
///
/// The capture is an HTTP request as on the wire: request line, headers, a blank line, and the body
/// byte for byte. Secrets are never printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox verify --provider stripe --secret env:STRIPE_SECRET capture.http
  oncebox verify --source stripe-live --at 1760000000 capture.http
  oncebox verify --provider hmac --set signature_header=X-Sig --secret file:key capture.http
  oncebox verify --provider github --secret env:GITHUB_SECRET - < capture.http
  oncebox verify 0199c2f0-7e4a     a request that its source rejected and kept

Exit codes: 0 verified, 4 rejected, 2 usage, 3 there is no such kept request.")]
pub(crate) struct Verify {
    /// The provider that sent it; `oncebox providers` lists them
    #[arg(long, value_name = "NAME", conflicts_with = "source")]
    provider: Option<String>,

    /// A secret, best as env:NAME or file:PATH; several may be given
    #[arg(
        long = "secret",
        value_name = "SECRET",
        value_parser = secret_ref,
        allow_hyphen_values = true,
        conflicts_with = "source"
    )]
    secrets: Vec<SecretRef>,

    /// A source of the configuration, instead of a provider and secrets
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// The URL as the provider saw it, for those that sign it
    #[arg(long)]
    url: Option<String>,

    /// When it was received: Unix seconds, 2026-01-02T03:04:05Z or 2h, which is that long ago
    /// [default: now]
    #[arg(long, value_name = "TIME", value_parser = when)]
    at: Option<When>,

    /// Any other key of a source, such as signature_header=X-Sig
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        value_parser = setting,
        allow_hyphen_values = true,
        conflicts_with = "source"
    )]
    settings: Vec<(String, String)>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// The captured request; `-` reads it from stdin; the id of a request that a source rejected
    /// and kept (`oncebox sources rejected`) needs nothing else, and takes all of the above
    capture: PathBuf,
}

/// What came of it.
struct Verdict<'a> {
    provider: &'a Provider,
    explanation: Explanation,
    verified: Result<Verified, Rejection>,
    event: Option<Event<'a>>,
    /// Names the secret that matched without telling it.
    fingerprint: Option<String>,
    /// What a handshake is answered.
    reply: Option<Reply>,
    /// Whether it is answered without a signature.
    is_open: bool,
}

impl Verdict<'_> {
    /// Whether the provider is who sent it. What it sent may still be no event.
    fn holds(&self) -> bool {
        self.is_open || self.verified.is_ok()
    }
}

impl Verify {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        if let Some(kept) = self.kept(global).await? {
            return self.verify_kept(global, kept).await;
        }
        let bytes = read(&self.capture)?;
        let source = self.source(global, &bytes).await?;
        let keyring =
            keyring(&source).map_err(|bad| Failure::usage(bad.to_string()).hint(bad.hint()))?;
        let mut capture = parse(&bytes, self.url.as_deref())?;
        // What was exported says itself which URL was signed.
        let kept = capture.headers.get(SIGNED_URL_HEADER).and_then(|url| url.to_str().ok());
        let kept = kept.map(str::to_owned);
        if let (None, Some(url)) = (&self.url, kept.or(source.public_url)) {
            capture.url = url;
        }
        let now = SystemClock.now();
        let at = self.at.map_or(now, |at| at.before(now));
        self.tell(&source.provider, &keyring, &capture, at)
    }

    /// Judges a request and prints the verdict.
    fn tell(
        &self,
        provider: &Provider,
        keyring: &Keyring,
        capture: &Capture,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let mut verdict = judge(provider, keyring, capture, at);
        if self.at.is_none()
            && capture.received_at.is_none()
            && matches!(verdict.verified, Err(Rejection::TimestampTooOld { .. }))
        {
            let advice = "an old capture? give the time it was received with --at TIME";
            verdict.explanation.advice.push(advice.to_owned());
        }
        if !verdict.holds()
            && verdict.verified.is_err()
            && let Some(header) = fingerprint_header(provider, capture)
        {
            verdict.explanation.advice = vec![format!(
                "`{header}` holds a fingerprint, which is all that Oncebox keeps of a credential: the \
                 credential itself was not kept, so this request can no longer be verified"
            )];
        }
        if self.json {
            let mut screen = Screen::stdout();
            screen.json(&as_json(&verdict, capture, at))?;
            screen.flush()?;
        } else {
            for text in &capture.notices {
                notice(format!("notice: {text}"));
            }
            print(&verdict)?;
        }
        if verdict.holds() { Ok(()) } else { Err(Failure::told(Code::Check)) }
    }

    async fn source(&self, global: &Global, bytes: &[u8]) -> Result<Source, Failure> {
        if let Some(name) = &self.source {
            let config = context::config_or_dev(global)?;
            let mut source = context::source(&config, name)?;
            source.secrets.extend(context::told_secrets(&config, name).await?);
            return Ok(source);
        }
        let Some(name) = &self.provider else {
            return Err(suggest(&parse(bytes, None)?));
        };
        self.given(name, || parse(bytes, self.url.as_deref()))
    }

    /// A provider with the secrets and keys that the command line gives.
    fn given(
        &self,
        name: &str,
        capture: impl FnOnce() -> Result<Capture, Failure>,
    ) -> Result<Source, Failure> {
        let (provider, public_url, settings) = configured(name, &self.settings)?;
        if self.secrets.is_empty() && settings.is_empty() && !provider.needs_no_secret() {
            let asked = asked_openly(&provider, &capture()?);
            return asked.ok_or_else(|| {
                Failure::usage("no secret was given")
                    .hint(format!("add --secret env:NAME. {}", provider.find_secret))
            });
        }
        Ok(Source { provider, secrets: self.given_secrets()?, public_url, settings })
    }

    fn given_secrets(&self) -> Result<Vec<Secret>, Failure> {
        self.secrets.iter().map(context::secret).collect()
    }
}

/// The keys of a source; none where its provider tells the secret and has not yet.
fn keyring(source: &Source) -> Result<Keyring, BadSecret> {
    let Source { provider, secrets, settings, .. } = source;
    match provider.pairing {
        Some(_) if secrets.is_empty() => Keyring::unpaired(provider, settings.clone()),
        _ => Keyring::with_settings(provider, secrets.clone(), settings.clone()),
    }
}

/// A source with a secret that is made up, where the request is a question that is answered
/// without one.
fn asked_openly(provider: &Provider, capture: &Capture) -> Option<Source> {
    let MadeUp { secret, settings } = made_up(provider, &[0; 32])?;
    let keyring = Keyring::with_settings(provider, vec![secret.clone()], settings.clone()).ok()?;
    let request = capture.request();
    let is_asked = handshake(provider, &keyring, &request, false).is_some()
        || pairing_secret(provider, &request).is_some();
    let (provider, secrets) = (provider.clone(), vec![secret]);
    is_asked.then_some(Source { provider, secrets, public_url: None, settings })
}

fn judge<'a>(
    provider: &'a Provider,
    keyring: &Keyring,
    capture: &'a Capture,
    at: Timestamp,
) -> Verdict<'a> {
    let request = capture.request();
    let verified = verify(provider, keyring, &request, at);
    let event = verified.as_ref().ok().and_then(|_| identify(provider, &request).ok());
    let matched =
        verified.as_ref().ok().and_then(|verified| keyring.secrets().get(verified.secret));
    let fingerprint = matched.map(oncebox_verify::Secret::fingerprint);
    let explanation = explain(provider, keyring, &request, at);
    let told = || pairing_secret(provider, &request).map(|secret| paired(provider, &secret));
    let open = handshake(provider, keyring, &request, false).or_else(told);
    let is_open = open.is_some();
    let signed = || {
        let secret = verified.as_ref().ok()?.secret;
        signed_handshake(provider, keyring, &request, secret)
    };
    let reply = open.or_else(signed);
    Verdict { provider, explanation, verified, event, fingerprint, reply, is_open }
}

/// The header that lost its credential when the request was recorded.
fn fingerprint_header<'a>(provider: &'a Provider, capture: &Capture) -> Option<&'a str> {
    let mut names = provider.credential_headers();
    names.find(|name| {
        capture.headers.get(*name).is_some_and(|value| is_fingerprint(value.as_bytes()))
    })
}

fn print(verdict: &Verdict<'_>) -> Result<(), Failure> {
    let mut screen = Screen::stdout();
    for step in &verdict.explanation.steps {
        let mark = if step.ok { screen.good("✓") } else { screen.bad("✗") };
        screen.line(format!("{mark} {:12} {}", step.name, escape(&step.detail)))?;
    }
    screen.line("")?;
    match (&verdict.verified, &verdict.event) {
        _ if verdict.reply.is_some() && verdict.holds() => {
            let known = screen.good(if verdict.is_open { "answered" } else { "verified" });
            screen.line(format!("{known}: a handshake, which is answered and not recorded"))?;
            if let Some(reply) = &verdict.reply {
                screen.line(format!("  answer     {} {}", reply.status, escape(&reply.body)))?;
            }
        }
        (Err(rejection), _) => {
            let rejected = screen.bad("rejected");
            screen.line(format!("{rejected}: {}", escape(&rejection.to_string())))?;
        }
        (Ok(_), None) => {
            let malformed = screen.bad("verified, but it cannot be recorded");
            screen.line(format!("{malformed}: its identity cannot be read"))?;
        }
        (Ok(verified), Some(event)) => {
            let title = &verdict.provider.title;
            screen.line(format!("{}: it comes from {title}", screen.good("verified")))?;
            screen.line(format!("  event id   {} ({})", escape(&event.id), trust(event.trust)))?;
            screen.line(format!("  type       {}", escape(&event.event_type)))?;
            if let Some(object) = &event.object {
                screen.line(format!("  object     {}", escape(object)))?;
            }
            if let Some(version) = event.version {
                screen.line(format!("  version    {version}"))?;
            }
            if let Some(signed_at) = verified.signed_at {
                screen.line(format!("  signed at  {}", absolute(signed_at)))?;
            }
            screen.line(match &verdict.fingerprint {
                Some(fingerprint) => {
                    let number = verified.secret + 1;
                    format!("  secret     number {number}, fingerprint {fingerprint}")
                }
                None => "  secret     none: a public key of the provider matches".to_owned(),
            })?;
        }
    }
    for advice in &verdict.explanation.advice {
        screen.paragraph("  → ", &escape(advice))?;
    }
    Ok(screen.flush()?)
}

fn as_json(verdict: &Verdict<'_>, capture: &Capture, at: Timestamp) -> Value {
    let steps = verdict.explanation.steps.iter();
    let steps =
        steps.map(|step| json!({ "name": step.name, "ok": step.ok, "detail": step.detail }));
    json!({
        "verified": verdict.verified.is_ok(),
        "provider": verdict.provider.name,
        "checked_at": at.to_string(),
        "rejection": verdict.verified.as_ref().err().map(Rejection::code),
        "handshake": verdict.reply.as_ref().map(|reply| json!({
            "status": reply.status,
            "content_type": reply.content_type,
            "headers": reply.headers,
            "body": reply.body,
        })),
        "steps": steps.collect::<Vec<_>>(),
        "advice": verdict.explanation.advice,
        "notices": capture.notices,
        "event_id": verdict.event.as_ref().map(|event| &event.id),
        "event_type": verdict.event.as_ref().map(|event| &event.event_type),
        "object_id": verdict.event.as_ref().and_then(|event| event.object.as_ref()),
        "object_version": verdict.event.as_ref().and_then(|event| event.version),
        "trust": verdict.event.as_ref().map(|event| trust(event.trust)),
        "signed_at": verdict.verified.as_ref().ok().and_then(|ok| ok.signed_at)
            .map(|time| time.to_string()),
        "secret_fingerprint": verdict.fingerprint,
    })
}

/// How far an identity can be trusted, in a word.
pub(crate) fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Signed => "signed",
        Trust::Transport => "transport",
        Trust::Digest => "digest",
        Trust::Unverified => UNVERIFIED,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(CAPTURE_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(CAPTURE_BYTES_MAX).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let path = path.display().to_string();
            Err(Failure::usage(format!("cannot read {}: {error}", escape(&path)))
                .hint("CAPTURE is a file with an HTTP request in it, or - for stdin"))
        }
    }
}

fn parse(bytes: &[u8], url: Option<&str>) -> Result<Capture, Failure> {
    Capture::parse(bytes, url).map_err(|problem| {
        Failure::usage(format!("this is no captured request: {problem}")).hint(
            "a capture is the request line, the headers, a blank line and the body; \
             `oncebox receipts export --format http` writes such files",
        )
    })
}

/// Names the providers whose headers are in the capture.
fn suggest(capture: &Capture) -> Failure {
    let failure = Failure::usage("which provider sent this? give --provider or --source");
    let mut names = Vec::new();
    for provider in catalogue::ALL.iter() {
        let sends = |header: &str| capture.headers.contains_key(header);
        if provider.schemes.iter().filter_map(Scheme::header).any(sends) {
            names.push(provider.name.as_ref());
        }
    }
    match names.as_slice() {
        [] => failure.hint("its headers are of no provider we know; `oncebox providers` lists all"),
        // A variant of an entry, such as `stripe-thin`, is signed like it.
        [name, variants @ ..] if variants.iter().all(|other| other.starts_with(name)) => {
            failure.hint(format!("its headers are those of {name}: add --provider {name}"))
        }
        _ => failure.hint(format!("its headers fit {}", names.join(", "))),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// The provider with the keys of a source given by `--set`, the URL if one of them gives it, and
/// those that the provider's entry names.
fn configured(
    name: &str,
    given: &[(String, String)],
) -> Result<(Provider, Option<String>, Settings), Failure> {
    let found = catalogue::find(name).ok_or_else(|| no_provider(name))?;
    let mut public_url = None;
    let mut settings = Settings::new();
    let mut table = toml::Table::new();
    for (key, value) in given {
        if key == "public_url" {
            public_url = Some(value.clone());
        } else if setting_keys(found).any(|(known, _)| known == key) {
            let text = SettingRef::parse(key, value).resolve(&Environment::of_process());
            let text = text.map_err(|(problem, hint)| Failure::usage(problem).hint(hint))?;
            settings.insert(key.clone(), text);
        } else {
            // As in the environment: TOML if it is TOML, plain text if not.
            let parsed = format!("value = {value}").parse::<toml::Table>().ok();
            let parsed = parsed.and_then(|mut table| table.remove("value"));
            table.insert(key.clone(), parsed.unwrap_or_else(|| value.as_str().into()));
        }
    }
    let provider = match (name, table.keys().next()) {
        ("hmac", _) => from_settings(table, HmacSettings::provider)?,
        ("token", _) => from_settings(table, TokenSettings::provider)?,
        (_, None) => custom::with_fields(found, |key| settings.get(key).cloned())
            .map_err(|error| unfit(&error))?,
        (_, Some(key)) => {
            let known: Vec<_> = setting_keys(found).map(|(key, _)| key).collect();
            let failure =
                Failure::usage(format!("a source of {name} has no key `{}`", escape(key)));
            return Err(match known.is_empty() {
                false => failure.hint(format!("it takes public_url, {}", known.join(", "))),
                true => failure
                    .hint("the providers hmac and token take keys; every source takes public_url"),
            });
        }
    };
    Ok((provider, public_url, settings))
}

fn from_settings<S: DeserializeOwned>(
    table: toml::Table,
    provider: impl FnOnce(&S) -> Result<Provider, SettingsError>,
) -> Result<Provider, Failure> {
    let settings: S = table.try_into().map_err(|error: toml::de::Error| {
        Failure::usage(format!("--set: {}", error.message()))
            .hint("oncebox.example.toml documents the keys of hmac and token sources")
    })?;
    provider(&settings).map_err(|error| unfit(&error))
}

fn unfit(error: &SettingsError) -> Failure {
    Failure::usage(format!("--set {}: {}", error.field, error.message)).hint(error.hint.clone())
}
