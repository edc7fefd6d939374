//! What a command works on: the configuration, its store, one of its sources.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use oncebox::receipt::SourceNo;
use oncebox::store::{self, Purpose, Store, StoreError};
use oncebox_server::config::{
    Config, ConfigError, DEFAULT_FILE, Environment, Problem, SecretRef, SourceConfig, StoreUrl,
};
use oncebox_server::{dev, pairing};
use oncebox_verify::{Provider, Secret, Settings};

use crate::Global;
use crate::exit::{Code, Failure, no_colour};
use crate::output::{escape, notice};

/// A source as a sender or a checker needs it.
pub(crate) struct Source {
    pub(crate) provider: Provider,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) public_url: Option<String>,
    pub(crate) settings: Settings,
}

/// The configuration, which must exist.
pub(crate) fn config(global: &Global) -> Result<Config, Failure> {
    Ok(Config::load(global.config.as_deref())?)
}

/// The configuration or, where nobody named one and none lies here, that of an `oncebox dev` in
/// this folder.
pub(crate) fn config_or_dev(global: &Global) -> Result<Config, Failure> {
    let is_dev = global.config.as_deref().is_some_and(dev::is_config_file);
    match dev::config_file() {
        Some(file) if is_dev || !is_configured(global) => {
            let config = Config::load_dev(&file)?;
            tell_unread(config.environment());
            Ok(config)
        }
        _ => config(global),
    }
}

/// Tells what of `.env` was passed over.
pub(crate) fn tell_unread(environment: &Environment) {
    for what in environment.unread() {
        notice(format!("warning: {what}; it is passed over"));
    }
}

/// As [`config_or_dev`], and where there is neither, what `oncebox dev` serves when it is started
/// without options: it may run in another folder.
pub(crate) fn config_or_demo(global: &Global) -> Result<Config, Failure> {
    if is_configured(global) || dev::config_file().is_some() {
        return config_or_dev(global);
    }
    let listen = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let text = dev::config_text(listen(8080), listen(8081), "http://127.0.0.1:3000/", &[]);
    Ok(Config::parse(dev::CONFIG_FILE, &text, Environment::default())?)
}

/// Whether somebody named a configuration, or one lies here.
pub(crate) fn is_configured(global: &Global) -> bool {
    let ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("ONCEBOX__"));
    global.config.is_some()
        || Path::new(DEFAULT_FILE).exists()
        || std::env::vars_os().any(|(name, _)| ours(&name))
}

/// The store of the configuration, opened beside a running server or without one.
pub(crate) async fn store(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    open(&config_or_dev(global)?.store.url).await
}

/// A store, opened beside a running server or without one.
pub(crate) async fn open(url: &StoreUrl) -> Result<Arc<dyn Store>, Failure> {
    store::open(url.as_str(), Purpose::Operate).await.map_err(|error| match error {
        StoreError::Fatal(reason) => {
            Failure::new(Code::StoreUnavailable, format!("cannot use {url}: {reason}"))
                .hint("does `[store] url` name the right file? if it does, restore a backup of it")
        }
        error => error.into(),
    })
}

/// A source of the configuration, its secrets fetched.
pub(crate) fn source(config: &Config, name: &str) -> Result<Source, Failure> {
    let Some(source) = config.sources.get(name) else {
        return Err(no_source(name, config.sources.keys().map(String::as_str)));
    };
    let SourceConfig { entry, secrets, public_url, settings, .. } = source;
    let failure = |(problem, hint): (String, String)| {
        Failure::configuration(format!("source `{name}`: {problem}")).hint(hint)
    };
    let secrets = secrets.iter().map(|secret| config.resolve(secret).map_err(failure));
    let settings = settings
        .iter()
        .map(|(key, setting)| Ok((key.clone(), config.resolve_setting(setting).map_err(failure)?)));
    Ok(Source {
        provider: entry.clone(),
        secrets: secrets.collect::<Result<_, _>>()?,
        public_url: public_url.clone(),
        settings: settings.collect::<Result<_, Failure>>()?,
    })
}

/// The secrets that the provider of a source told, the newest first. None where it tells none, and
/// where the configuration does not say what they are sealed under.
pub(crate) async fn told_secrets(config: &Config, name: &str) -> Result<Vec<Secret>, Failure> {
    let tells = |source: &&SourceConfig| source.entry.pairing.is_some();
    let Some(source) = config.sources.get(name).filter(tells) else { return Ok(Vec::new()) };
    let wrong = |problem: Problem| Failure::configuration(problem.message()).hint(problem.hint());
    let Some(sealing) = config.sealing_key().map_err(wrong)? else { return Ok(Vec::new()) };
    let store = open(&config.store.url).await?;
    let kept = async {
        let known = store.sources().await?;
        // It is renamed when a server starts.
        let names = [Some(name), source.renamed_from.as_deref()];
        let number =
            |name: &str| known.iter().find(|(_, known)| known == name).map(|known| known.0);
        let Some(number) = names.into_iter().flatten().find_map(number) else {
            return Ok(Vec::new());
        };
        pairing::opened(&sealing, number, name, &store.paired_secrets(number).await?)
    };
    let kept = kept.await;
    store.close().await;
    Ok(kept?)
}

/// What to say when there is no such source.
pub(crate) fn no_source<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::not_found(format!("there is no source `{}`", escape(name)));
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        return failure.hint("the configuration has no sources yet; add [sources.NAME]");
    }
    failure.hint(format!("the sources are {}", known.join(", ")))
}

/// The stored number of a source; one that the store has never seen is not found.
pub(crate) async fn source_no(store: &dyn Store, name: &str) -> Result<SourceNo, Failure> {
    let sources = store.sources().await?;
    let known = || sources.iter().map(|(_, known)| known.as_str());
    let found = sources.iter().find(|(_, known)| known == name);
    found.map(|(number, _)| *number).ok_or_else(|| no_source(name, known()))
}

/// Reads a secret as a command line gives it, `env:NAME`, `file:PATH` or the secret itself, into a
/// type that does not print it; for clap.
pub(crate) fn secret_ref(text: &str) -> Result<SecretRef, Infallible> {
    Ok(SecretRef::parse(text))
}

/// Fetches a secret given on the command line.
pub(crate) fn secret(secret: &SecretRef) -> Result<Secret, Failure> {
    secret
        .resolve(&Environment::of_process())
        .map_err(|(problem, hint)| Failure::usage(problem).hint(hint))
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let colour = io::stderr().is_terminal() && !no_colour();
        Self::report(Code::Configuration, error.render(colour))
    }
}
