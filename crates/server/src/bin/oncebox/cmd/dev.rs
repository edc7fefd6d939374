//! `oncebox dev`: a server to try things on, with nothing to configure.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::ReceiptMint;
use oncebox_server::config::{Config, Environment};
use oncebox_server::dev::Tried;
use oncebox_server::{dev, logs};
use oncebox_verify::{MadeUp, catalogue, made_up};

use oncebox_server::state::Roles;

use super::send::http_url;
use super::serve::{Signals, start_unless_stopped, until_stopped};
use crate::Global;
use crate::cmd::providers::no_provider;
use crate::context;
use crate::exit::Failure;
use crate::output::notice;

mod demo;

/// Try it: a server with demo sources, nothing to configure
///
/// Everything is kept in .oncebox below the current folder; remove it to start over.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// The public address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// The address of health and metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,

    /// Push every event to this URL: the app you are writing
    ///
    /// Without it they go to a destination within this process, which says what it gets.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    forward_to: Option<String>,

    /// Try this provider too, under its own name and with a secret that is made up
    #[arg(long = "provider", value_name = "NAME")]
    providers: Vec<String>,
}

impl Dev {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        fs::create_dir_all(dev::FOLDER)?;
        // Whoever works in a repository should not have to remember to leave it out.
        fs::write(Path::new(dev::FOLDER).join(".gitignore"), "*\n")?;
        let listen = free("--listen", self.listen)?;
        let admin_listen = free("--admin-listen", self.admin_listen)?;
        let destination = match &self.forward_to {
            Some(url) => url.clone(),
            None => format!("http://{}/", demo::start().await?),
        };
        let tried = self.tried()?;
        let text = dev::config_text(listen, admin_listen, &destination, &tried);
        let config = Config::parse(dev::CONFIG_FILE, &text, Environment::default())?;
        let mut signals = Signals::listen()?;
        let logs = logs::init(&config.log)?;
        let Some(server) = start_unless_stopped(config, Roles::ALL, &mut signals).await? else {
            return Ok(());
        };
        let text = dev::config_text(server.public, server.admin, &destination, &tried);
        fs::write(dev::CONFIG_FILE, text)?;
        // Beside a configuration of one's own, the other commands would take that one.
        let beside = context::is_configured(global);
        quick_start(server.public, server.admin, self.forward_to.as_deref(), beside)?;
        for Tried { provider, .. } in &tried {
            notice(format!("{}: {} send {}", provider.title, program(), provider.name));
        }
        let ended = until_stopped(server, signals, Some(PathBuf::from(dev::CONFIG_FILE))).await;
        drop(logs);
        ended
    }
}

impl Dev {
    /// What the providers to try need. A secret that was made up before is kept, so that what was
    /// received still verifies.
    fn tried(&self) -> Result<Vec<Tried>, Failure> {
        let mut tried = Vec::new();
        for name in &self.providers {
            let provider = catalogue::find(name).ok_or_else(|| no_provider(name))?;
            // Unique is enough here: nothing of `dev` is secret.
            let ids = [0; 2].map(|_| *ReceiptMint::new().mint(SystemClock.now()).as_bytes());
            let mut random = [0; 32];
            random[..16].copy_from_slice(&ids[0]);
            random[16..].copy_from_slice(&ids[1]);
            let Some(MadeUp { secret, settings }) = made_up(provider, &random) else {
                return Err(Failure::usage(format!("{} cannot be played", provider.title))
                    .hint("it signs in a way that nobody should sign any more"));
            };
            let secret_file = Path::new(dev::FOLDER).join(format!("{name}.secret"));
            if !secret_file.exists() {
                fs::write(&secret_file, secret.expose())?;
            }
            tried.push(Tried { provider, secret_file, settings });
        }
        Ok(tried)
    }
}

/// The address, or the same with a free port if somebody has it already.
fn free(flag: &str, address: SocketAddr) -> io::Result<SocketAddr> {
    match std::net::TcpListener::bind(address) {
        Ok(listener) => listener.local_addr(),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let free = std::net::TcpListener::bind((address.ip(), 0))?.local_addr()?;
            notice(format!("{address} is taken; using {free} instead (see {flag})"));
            Ok(free)
        }
        Err(error) => Err(error),
    }
}

/// Prints what to try. Every line works when pasted into another terminal in the same folder.
fn quick_start(
    public: SocketAddr,
    admin: SocketAddr,
    forward_to: Option<&str>,
    beside: bool,
) -> io::Result<()> {
    let oncebox = program();
    let with = if beside { format!(" --config {}", dev::CONFIG_FILE) } else { String::new() };
    let (by_token, by_signature) = (curl_by_token(public), curl_by_signature(public));
    let delivered = match forward_to {
        Some(url) => format!("Every event is pushed to {url}, signed with {}.", dev::ROUTE_SECRET),
        None => {
            let forward = format!("{oncebox} dev --forward-to http://127.0.0.1:3000/webhooks");
            format!(
                "Every event is pushed to a demo destination; to your own app with:\n\n  {forward}"
            )
        }
    };
    let text = format!(
        r#"
Oncebox is listening on http://{public}, and keeps what it receives in {folder}/dev.db.
The secrets of its demo sources are known to everybody: it is for trying things only.
{delivered}

Send an event as Stripe would, then the same one three times, then a forged one:

  {oncebox} send demo --type invoice.paid{with}
  {oncebox} send demo --id evt_1 --duplicate 3{with}
  {oncebox} send demo --tamper{with}

With curl, by a token and by a signature:

  {by_token}
  {by_signature}

See what was kept, and what became of it:

  {oncebox} receipts list{with}
  curl -s http://{admin}/metrics | grep received

Stop with Ctrl-C.
"#,
        folder = dev::FOLDER,
    );
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

fn curl_by_token(public: SocketAddr) -> String {
    format!(
        "curl -i http://{public}/in/demo-token -H 'X-Webhook-Token: {}' {JSON} \
         -d '{{\"id\":\"evt_2\",\"type\":\"demo.hello\"}}'",
        dev::TOKEN,
    )
}

fn curl_by_signature(public: SocketAddr) -> String {
    let secret = dev::HMAC_SECRET;
    let sign = format!("openssl dgst -sha256 -hmac {secret} -r | cut -d' ' -f1");
    format!(
        "body='{{\"id\":\"evt_3\",\"type\":\"demo.signed\"}}'; \
         curl -i http://{public}/in/demo-hmac {JSON} \
         -H \"X-Webhook-Signature: $(printf %s \"$body\" | {sign})\" -d \"$body\"",
    )
}

/// Without it curl says that it sends a form.
const JSON: &str = "-H 'Content-Type: application/json'";

/// How this program is called from here: by its name if that finds it, else by its path.
fn program() -> String {
    let name = "oncebox";
    let Ok(own) = std::env::current_exe() else { return name.to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
    let found = found.and_then(|file| file.canonicalize().ok());
    if found.is_some() && found == own.canonicalize().ok() {
        return name.to_owned();
    }
    let here = std::env::current_dir().ok();
    let shown = match here.as_deref().and_then(|here| own.strip_prefix(here).ok()) {
        Some(below) => format!("./{}", below.display()),
        None => own.display().to_string(),
    };
    if shown.contains(char::is_whitespace) { format!("'{shown}'") } else { shown }
}
