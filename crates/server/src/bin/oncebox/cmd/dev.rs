//! `oncebox dev`: a server to try things on, with nothing to configure.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::ReceiptMint;
use oncebox_server::config::{Config, ENV_FILE, Environment, SecretRef};
use oncebox_server::dev::Tried;
use oncebox_server::{dev, logs};
use oncebox_verify::{MadeUp, Secret, catalogue, made_up};

use oncebox_server::state::Roles;

use super::send::http_url;
use super::serve::{Signals, start_unless_stopped, until_stopped};
use crate::cmd::providers::{no_provider, setup};
use crate::context;
use crate::exit::Failure;
use crate::output::notice;
use crate::{Global, core_dumps};

mod demo;

/// Try it: a server with demo sources, nothing to configure
///
/// Everything is kept in .oncebox below the current folder; remove it to start over. Variables of a
/// .env file here can be named as env:NAME.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox dev
  oncebox dev --forward-to http://127.0.0.1:3000/webhooks
  oncebox dev --provider stripe --secret env:STRIPE_SECRET
  oncebox dev --provider github --provider slack --secret github=env:GITHUB_SECRET")]
pub(crate) struct Dev {
    /// The public address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// The address of health and metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,

    /// Push every event to this URL: the app you are writing
    ///
    /// Without it they go to a destination within this process, which takes everything but types
    /// that end in .fail.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    forward_to: Option<String>,

    /// Try this provider too, under its own name
    ///
    /// Its secret is made up, unless the environment or .env has one, such as STRIPE_SECRET.
    #[arg(long = "provider", value_name = "NAME")]
    providers: Vec<String>,

    /// The secret that the provider signs with: env:NAME, file:PATH or the secret itself; with
    /// several providers PROVIDER=SECRET
    #[arg(
        long = "secret",
        value_name = "SECRET",
        value_parser = given_secret,
        allow_hyphen_values = true,
        requires = "providers"
    )]
    secrets: Vec<GivenSecret>,
}

/// A secret as the command line gives it, and whose it is.
#[derive(Clone, Debug)]
struct GivenSecret {
    provider: Option<String>,
    secret: SecretRef,
}

/// Reads a secret, for clap. What looks like `PROVIDER=` in front of it is.
fn given_secret(text: &str) -> Result<GivenSecret, Infallible> {
    let named = text.split_once('=').filter(|(name, _)| catalogue::find(name).is_some());
    Ok(match named {
        Some((name, secret)) => {
            GivenSecret { provider: Some(name.to_owned()), secret: SecretRef::parse(secret) }
        }
        None => GivenSecret { provider: None, secret: SecretRef::parse(text) },
    })
}

impl Dev {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        // Secrets may be those of the provider's test mode.
        core_dumps::forbid()?;
        fs::create_dir_all(dev::FOLDER).map_err(unwritten(dev::FOLDER))?;
        // Keeps the folder out of the repository that it is made in.
        let ignore = Path::new(dev::FOLDER).join(".gitignore");
        fs::write(&ignore, "*\n").map_err(unwritten(ignore))?;
        let environment = Environment::beside_overrides(Path::new(ENV_FILE));
        context::tell_unread(&environment);
        let listen = free("--listen", self.listen)?;
        let admin_listen = free("--admin-listen", self.admin_listen)?;
        let destination = match &self.forward_to {
            Some(url) => url.clone(),
            None => format!("http://{}/", demo::start().await?),
        };
        let tried = self.tried(&environment)?;
        let text = dev::config_text(listen, admin_listen, &destination, &tried);
        let config = Config::parse(dev::CONFIG_FILE, &text, environment)?;
        let mut signals = Signals::listen()?;
        let logs = logs::init(&config.log)?;
        let Some(server) = start_unless_stopped(config, Roles::ALL, &mut signals).await? else {
            return Ok(());
        };
        let text = dev::config_text(server.public, server.admin, &destination, &tried);
        fs::write(dev::CONFIG_FILE, text).map_err(unwritten(dev::CONFIG_FILE))?;
        // Beside a configuration of one's own, the other commands would take that one.
        let beside = context::is_configured(global);
        quick_start(server.public, self.forward_to.as_deref(), beside, &tried)?;
        let ended = until_stopped(server, signals, Some(PathBuf::from(dev::CONFIG_FILE))).await;
        drop(logs);
        ended
    }

    /// What the providers to try need.
    fn tried(&self, environment: &Environment) -> Result<Vec<Tried>, Failure> {
        if let Some(given) = self.secrets.iter().find_map(|given| given.provider.as_ref())
            && !self.providers.contains(given)
        {
            return Err(Failure::usage(format!("--secret is for {given}, which is not tried"))
                .hint(format!("add --provider {given}")));
        }
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
                    .hint("it signs with RSA and SHA-1, which Oncebox never does"));
            };
            let secret = match self.given(name, environment)? {
                Some(secret) => secret,
                None => in_file(name, &secret, false)?,
            };
            tried.push(Tried { provider, secret, settings });
        }
        Ok(tried)
    }

    /// The secret of a provider that the user gave, as the configuration names it: on the command
    /// line, or as a variable of the usual name.
    fn given(&self, name: &str, environment: &Environment) -> Result<Option<String>, Failure> {
        let is_its = |given: &&GivenSecret| match &given.provider {
            Some(provider) => provider == name,
            None => self.providers.len() == 1,
        };
        if self.providers.len() > 1 && self.secrets.iter().any(|given| given.provider.is_none()) {
            return Err(Failure::usage("whose secret is it?")
                .hint(format!("with several providers write --secret {name}=SECRET")));
        }
        let variable = catalogue::find(name).map(setup::variable).unwrap_or_default();
        let Some(given) = self.secrets.iter().find(is_its) else {
            if environment.get(&variable).is_none() {
                return Ok(None);
            }
            notice(format!("{name} takes the secret of env:{variable}"));
            return Ok(Some(format!("env:{variable}")));
        };
        let secret = given.secret.resolve(environment);
        let secret = secret.map_err(|(problem, hint)| Failure::usage(problem).hint(hint))?;
        match &given.secret {
            SecretRef::Variable(name) => Ok(Some(format!("env:{name}"))),
            // Paths of the command line start here, those of the configuration beside it.
            SecretRef::File(path) => {
                let path = fs::canonicalize(path)
                    .map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))?;
                Ok(Some(format!("file:{}", path.display())))
            }
            SecretRef::Literal(_) => in_file(name, &secret, true).map(Some),
        }
    }
}

/// Keeps a secret in a file of its own, and says how the configuration names it. One that was made
/// up before is kept, so that what was received still verifies.
fn in_file(name: &str, secret: &Secret, replace: bool) -> Result<String, Failure> {
    let file = format!("{name}.secret");
    let path = Path::new(dev::FOLDER).join(&file);
    if replace || !path.exists() {
        let mut options = fs::OpenOptions::new();
        let written = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = written.and_then(|mut file| file.write_all(secret.expose().as_bytes()));
        written.map_err(unwritten(path))?;
    }
    Ok(format!("file:{file}"))
}

/// The address, or the same with a free port if somebody has it already.
fn free(flag: &str, address: SocketAddr) -> Result<SocketAddr, Failure> {
    let bind = |address: SocketAddr| TcpListener::bind(address).and_then(|it| it.local_addr());
    let failed = |error: io::Error| {
        Failure::failed(format!("cannot listen on {address} ({flag}): {error}"))
            .hint("name an address of this machine, such as 127.0.0.1:8080")
    };
    match bind(address) {
        Ok(address) => Ok(address),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let free = bind(SocketAddr::new(address.ip(), 0)).map_err(failed)?;
            notice(format!("{address} is taken; using {free} instead (see {flag})"));
            Ok(free)
        }
        Err(error) => Err(failed(error)),
    }
}

/// What to say when a file of `oncebox dev` cannot be written.
fn unwritten(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::failed(format!("cannot write {}: {error}", path.as_ref().display()))
}

/// Prints what to try. Every line works when pasted into another terminal in the same folder.
fn quick_start(
    public: SocketAddr,
    forward_to: Option<&str>,
    beside: bool,
    tried: &[Tried],
) -> io::Result<()> {
    let oncebox = program();
    let with = if beside { format!(" --config {}", dev::CONFIG_FILE) } else { String::new() };
    let delivered = match forward_to {
        Some(url) => format!("Every event is pushed to {url},\nsigned with {}.", dev::ROUTE_SECRET),
        None => format!(
            "Every event is pushed to a demo destination; to your own app with:\n\n  \
             {oncebox} dev --forward-to http://127.0.0.1:3000/webhooks"
        ),
    };
    let others = tried.iter().map(|Tried { provider, .. }| {
        format!("\n{}:\n\n  {oncebox} send {}{with}\n", provider.title, provider.name)
    });
    let text = format!(
        r#"
Oncebox is listening on http://{public}.
It keeps everything in {folder}/; remove that to start over. Its demo secrets are
public: it is for trying things only.
{delivered}

An event as Stripe would send it, one that comes three times, a forged one,
and what was kept of them:

  {oncebox} send demo --type invoice.paid{with}
  {oncebox} send demo --id evt_1 --duplicate 3{with}
  {oncebox} send demo --tamper{with}
  {oncebox} receipts list{with}
{others}
With curl:

  curl -i http://{public}/in/demo-token \
    -H 'X-Webhook-Token: {token}' \
    -H 'Content-Type: application/json' \
    -d '{{"id":"evt_2","type":"demo.hello"}}'

What happens is shown here. Stop with Ctrl-C.
"#,
        folder = dev::FOLDER,
        others = others.collect::<String>(),
        token = dev::TOKEN,
    );
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

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
