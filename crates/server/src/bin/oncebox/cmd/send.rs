//! `oncebox send`: an event as its provider would send it, once or many times, honest or not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::ReceiptMint;
use oncebox_drill::{Answer, Event, Peers, Plan, Poster, Simulator, explain, run};
use oncebox_server::config::{Config, SecretRef};
use oncebox_verify::{Draft, Settings, catalogue};
use serde_json::{Value, json};

use crate::Global;
use crate::cmd::providers::no_provider;
use crate::context::{self, Source, secret_ref};
use crate::exit::{Code, Failure};
use crate::output::{Screen, escape, escape_bytes, notice, shorten};
use crate::when::duration;

/// Sign an event as its provider would and post it
///
/// It goes to the listener of the configuration or, where there is none, to `oncebox dev`. With
/// --to and --secret, SOURCE may be any provider and no configuration is needed.
///
/// --duplicate says how many copies there are in all, --concurrent how many of them go at once:
/// `--duplicate 100 --concurrent 10` sends ten times ten. Either alone will do; there are never
/// fewer copies than go at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox send demo                                one event, to `oncebox dev`
  oncebox send demo --duplicate 3                  the same event three times
  oncebox send demo --concurrent 100               a hundred copies at once
  oncebox send demo --duplicate 100 --concurrent 10   a hundred copies, ten at once
  oncebox send demo --type invoice.paid --id evt_7 --object in_456
  oncebox send demo --tamper                       changed after signing; expects a 401
  oncebox send demo --age 10m                      signed ten minutes ago
  oncebox send github --to https://example.com/hooks --secret env:GITHUB_SECRET

Exit codes: 0 every answer was as expected, 4 one was not.")]
pub(crate) struct Send {
    /// A source of the configuration, or a provider
    source: String,

    /// The type of the event
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,

    /// The id of the event [default: a new one]
    ///
    /// The same id in a second command is a duplicate (200). Other content under it, as with
    /// another --type or --object, is a conflict: accepted (202) as a receipt of its own.
    #[arg(long)]
    id: Option<String>,

    /// The body: JSON, a file, or `-` for stdin
    #[arg(long, value_name = "FILE|JSON")]
    body: Option<String>,

    /// The business object it is about
    #[arg(long, value_name = "ID")]
    object: Option<String>,

    /// Send the same event N times, one after the other unless --concurrent says otherwise
    #[arg(long, value_name = "N", default_value = "1")]
    duplicate: NonZeroUsize,

    /// Send N copies at the same time, and at least N in all
    #[arg(long, value_name = "N", default_value = "1")]
    concurrent: NonZeroUsize,

    /// Change the event after signing it
    #[arg(long)]
    tamper: bool,

    /// Sign it as if it were that old, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    age: Duration,

    /// Post to this URL instead
    #[arg(long, value_name = "URL", value_parser = http_url)]
    to: Option<String>,

    /// Believe certificates of the authorities in this PEM file, too
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Believe any certificate: for servers of your own that have none that is known
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,

    /// Sign with this secret instead: env:NAME, file:PATH or the secret
    #[arg(long, value_parser = secret_ref)]
    secret: Option<SecretRef>,

    /// Print one JSON object per answer
    #[arg(long)]
    json: bool,
}

/// Where to post, and as whom.
struct Target {
    source: Source,
    url: String,
}

impl Send {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.target(global).await?;
        let (draft, verifies) = self.draft(&target, SystemClock.now())?;
        let plan = Plan {
            url: with_query(&target.url, &draft.url),
            draft,
            copies: self.duplicate.max(self.concurrent),
            concurrency: self.concurrent,
        };
        let poster = self.poster()?;
        let answers = run(&poster, &plan).await;
        let expected = |answer: &Answer| {
            if verifies { answer.is_success() } else { answer.status == Some(401) }
        };
        let all_expected = answers.iter().all(expected);
        let mut screen = Screen::stdout();
        for (number, answer) in answers.iter().enumerate() {
            if self.json {
                screen.json(&as_json(number + 1, answer, expected(answer)))?;
            } else {
                screen.line(in_words(number + 1, answer, &screen, expected(answer)))?;
            }
        }
        if !self.json {
            print_summary(&mut screen, &answers)?;
        }
        screen.flush()?;
        verdict(&answers, all_expected, verifies, &target.url)?;
        if self.to.is_none() && answers.iter().any(says_nothing) {
            notice(format!(
                "note: the answer {} expects does not tell a new event from a repeat; \
                 `oncebox receipts list` does",
                target.source.provider.title
            ));
        }
        Ok(())
    }

    fn poster(&self) -> Result<Poster, Failure> {
        let peers = match &self.cacert {
            Some(file) => Peers::TrustedAnd(read_certificates(file)?),
            None if self.insecure => Peers::Anybody,
            None => Peers::Trusted,
        };
        Poster::to(peers).map_err(|error| {
            Failure::failed(format!("cannot make an HTTP client: {}", explain(&error)))
        })
    }

    /// The signed request, changed if it should be, and whether a receiver must believe it.
    fn draft(&self, target: &Target, now: Timestamp) -> Result<(Draft, bool), Failure> {
        let source = &target.source;
        let secret = source.secrets.first().cloned().ok_or_else(|| {
            let name = escape(&self.source);
            let failure = Failure::usage(format!("no secret to sign with for {name}"));
            failure.hint(match source.provider.pairing {
                None => "give one with --secret env:NAME".to_owned(),
                Some(_) => format!(
                    "its provider told none yet: `oncebox sources pair {name}`, or give one with \
                     --secret env:NAME"
                ),
            })
        })?;
        let settings = source.settings.clone();
        let simulator = Simulator::with_settings(source.provider.clone(), secret, settings)
            .map_err(|bad| Failure::usage(bad.to_string()).hint(bad.hint()))?;
        // One that is sent again under its id says the same as before, at least on the same day.
        let happened_at = self.id.as_ref().and_then(|_| midnight(now));
        let mut event = Event {
            id: self.id.clone().unwrap_or_else(|| new_id(now)),
            event_type: self.event_type.clone(),
            object: self.object.clone(),
            body: self.body.as_deref().map(read_body).transpose()?,
            age: self.age,
            happened_at,
        };
        let url = source.public_url.as_deref().unwrap_or(&target.url);
        let make = |event: &Event| {
            let draft = simulator.draft(url, event, now);
            draft.map_err(|error| Failure::usage(format!("cannot make the event: {error}")))
        };
        let mut draft = make(&event)?;
        // Some providers prove their age by the time of the event.
        if happened_at.is_some() && simulator.judge(&draft, now).is_err() {
            event.happened_at = None;
            draft = make(&event)?;
        }
        if self.tamper {
            draft = simulator.tamper(draft, now);
        }
        let verifies = simulator.judge(&draft, now).is_ok();
        Ok((draft, verifies))
    }

    async fn target(&self, global: &Global) -> Result<Target, Failure> {
        let secret = self.secret.as_ref().map(context::secret).transpose()?;
        let config = match context::config_or_demo(global) {
            Ok(config) => config,
            // Nothing of it is needed, so nothing of it needs to be right.
            Err(_)
                if self.to.is_some()
                    && secret.is_some()
                    && catalogue::find(&self.source).is_some() =>
            {
                Config::default()
            }
            Err(failure) => return Err(failure),
        };
        let name = named(&config, &self.source);
        let mut target = match (name, catalogue::find(&self.source), &self.to, &secret) {
            // A receiver we know nothing of, played to by a provider of the catalogue.
            (_, Some(provider), Some(to), Some(_)) if name != Some(self.source.as_str()) => {
                let (provider, secrets) = (provider.clone(), Vec::new());
                let settings = Settings::new();
                let source = Source { provider, secrets, public_url: None, settings };
                Target { source, url: to.clone() }
            }
            (Some(name), ..) => {
                let mut source = context::source(&config, name)?;
                if source.secrets.is_empty() && secret.is_none() {
                    source.secrets = context::told_secrets(&config, name).await?;
                }
                Target { source, url: listener(&config, name) }
            }
            (None, None, Some(_), _) => return Err(no_provider(&self.source)),
            (None, ..) => {
                let sources = config.sources.keys().map(String::as_str);
                return Err(context::no_source(&self.source, sources));
            }
        };
        if let Some(to) = &self.to {
            target.url.clone_from(to);
        }
        if let Some(secret) = secret {
            target.source.secrets = vec![secret];
        }
        Ok(target)
    }
}

/// The source of that name, or else the only one of that provider.
fn named<'a>(config: &'a Config, name: &str) -> Option<&'a str> {
    if let Some((name, _)) = config.sources.get_key_value(name) {
        return Some(name);
    }
    let mut of_provider = config.sources.iter().filter(|(_, source)| source.provider == name);
    match (of_provider.next(), of_provider.next()) {
        (Some((name, _)), None) => Some(name),
        _ => None,
    }
}

/// The URL to post to with what signing has put into the query.
fn with_query(url: &str, signed: &str) -> String {
    match (url.split_once('?'), signed.split_once('?')) {
        (None, Some((_, query))) => format!("{url}?{query}"),
        (Some((bare, _)), Some((_, query))) => format!("{bare}?{query}"),
        (_, None) => url.to_owned(),
    }
}

/// The address the public listener has on this machine.
fn listener(config: &Config, source: &str) -> String {
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let mut address = config.server.listen;
    if address.ip().is_unspecified() {
        let loopback = if address.is_ipv4() { [127, 0, 0, 1].into() } else { LOOPBACK6.into() };
        address.set_ip(loopback);
    }
    format!("{scheme}://{address}/in/{source}")
}

const LOOPBACK6: std::net::Ipv6Addr = std::net::Ipv6Addr::LOCALHOST;

/// The beginning of the day.
fn midnight(now: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(now.as_second().div_euclid(86_400) * 86_400).ok()
}

fn new_id(now: Timestamp) -> String {
    format!("evt_{}", ReceiptMint::new().mint(now).as_uuid().simple())
}

/// Reads a PEM file with at least one certificate in it.
fn read_certificates(file: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!("cannot read {}: {why}", file.display()))
            .hint("--cacert takes a PEM file with certificates")
    };
    let pem = fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    let mark = b"-----BEGIN CERTIFICATE-----";
    if !pem.windows(mark.len()).any(|bytes| bytes == mark) {
        return Err(wrong("there is no certificate in it"));
    }
    Ok(pem)
}

/// Reads a URL to post to; for clap.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return Err(format!("write http:// or https:// in front, such as http://{text}"));
    }
    // As it was written: some providers sign the URL.
    reqwest::Url::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The text itself if it is JSON, else what is in the file.
fn read_body(text: &str) -> Result<Vec<u8>, Failure> {
    if text.trim_start().starts_with(['{', '[']) {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    let read = match text {
        "-" => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        path => fs::read(Path::new(path)),
    };
    read.map_err(|error| {
        Failure::usage(format!("cannot read the body from {}: {error}", escape(text)))
            .hint("--body takes a file, - for stdin, or JSON that begins with { or [")
    })
}

/// What our own server calls the outcome; the status says less.
fn outcome(answer: &Answer) -> String {
    let Some(status) = answer.status else { return "no answer".to_owned() };
    word(answer).unwrap_or_else(|| format!("status {status}"))
}

/// Whether an answer is a good one that does not say what came of it.
fn says_nothing(answer: &Answer) -> bool {
    answer.is_success() && word(answer).is_none()
}

/// The word for the outcome in the body of an answer, where it is one of ours. Some providers want
/// to be answered in another way.
fn word(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let word = body.get("status").or_else(|| body.get("error"))?.as_str()?;
    Some(escape(&shorten(word, 40)).into_owned())
}

fn is_accepted(answer: &Answer) -> bool {
    outcome(answer) == "accepted"
}

fn milliseconds(answer: &Answer) -> f64 {
    (answer.elapsed.as_secs_f64() * 10_000.0).round() / 10.0
}

fn in_words(number: usize, answer: &Answer, screen: &Screen, expected: bool) -> String {
    let status = answer.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
    let status = if expected { screen.good(&status) } else { screen.bad(&status) };
    let text = match &answer.error {
        Some(error) => escape(error).into_owned(),
        None => shorten(&escape_bytes(answer.body.trim_ascii_end()), 160),
    };
    format!("{number:>4}  {status}  {:>8.1} ms  {text}", milliseconds(answer))
}

fn as_json(number: usize, answer: &Answer, expected: bool) -> Value {
    let body: Value = serde_json::from_slice(&answer.body)
        .unwrap_or_else(|_| String::from_utf8_lossy(&answer.body).into());
    json!({
        "number": number,
        "status": answer.status,
        "outcome": outcome(answer),
        "receipt": body.get("receipt"),
        "milliseconds": milliseconds(answer),
        "body": body,
        "error": answer.error,
        "expected": expected,
    })
}

fn print_summary(screen: &mut Screen, answers: &[Answer]) -> io::Result<()> {
    let mut tally: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for answer in answers {
        let status = answer.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        tally.entry((outcome(answer), status)).or_default().push(milliseconds(answer));
    }
    let rows = tally.into_iter().map(|((outcome, status), mut times)| {
        times.sort_by(f64::total_cmp);
        let (middle, most) = (times[times.len() / 2], times[times.len() - 1]);
        let count = times.len().to_string();
        vec![outcome, status, count, format!("{middle:.1}"), format!("{most:.1}")]
    });
    screen.line("")?;
    screen.table(&["outcome", "status", "count", "median ms", "max ms"], &[2, 3, 4], rows)
}

/// What to do where nothing came back, as far as the cause tells.
fn mend(error: &str, url: &str) -> &'static str {
    let error = error.to_lowercase();
    if error.contains("not valid for name") {
        "call it by the name in its certificate with --to, or believe anybody with --insecure"
    } else if error.contains("certificate") {
        "believe its authority with --cacert FILE, or anybody with --insecure"
    } else if url.starts_with("https://") && error.contains("corrupt message") {
        "it does not speak TLS; write http://"
    } else if url.starts_with("http://") && !error.contains("refused") {
        "is this the right port? a server with TLS wants https://"
    } else {
        "start one with `oncebox dev` or `oncebox serve`, or name another with --to"
    }
}

fn verdict(
    answers: &[Answer],
    all_expected: bool,
    verifies: bool,
    url: &str,
) -> Result<(), Failure> {
    if answers.iter().all(|answer| answer.status.is_none()) {
        let error = answers.iter().find_map(|answer| answer.error.as_deref());
        let error = error.unwrap_or("no answer");
        return Err(Failure::check(format!("no answer from {url}: {}", escape(error)))
            .hint(mend(error, url)));
    }
    let accepted = answers.iter().filter(|answer| is_accepted(answer)).count();
    if accepted > 1 {
        return Err(Failure::check(format!("the same event was accepted {accepted} times")));
    }
    if all_expected {
        return Ok(());
    }
    let answered = |status: u16| answers.iter().any(|answer| answer.status == Some(status));
    let is_kept = |answer: &Answer| word(answer).as_deref() == Some("not_processed");
    let hint = if answers.iter().any(is_kept) {
        "the event is kept and not processed yet: the source has `ack = \"processed\"`; \
         `oncebox receipts list` tells how its delivery goes on"
    } else if answered(503) {
        "503 is trouble on the receiving side: ask its /readyz, and read its log"
    } else if !verifies {
        "expected 401 from every copy: it was tampered with or is too old to be believed"
    } else if answered(400) {
        "400 is about the event, not the signature: its id or type cannot be read from the body"
    } else if answered(404) {
        "404 is about the URL: a source answers at /in/ and its name"
    } else if answered(401) || answered(403) || answered(429) {
        "expected 2xx from every copy; is the source's secret the one it is signed with?"
    } else {
        "expected 2xx from every copy; the receiver's log says why"
    };
    notice("");
    Err(Failure::new(Code::Check, "not every answer was as expected").hint(hint))
}
