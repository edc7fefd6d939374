//! From a configuration that reads well to one that can be served: secrets fetched, keys decoded,
//! certificates parsed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use http::HeaderMap;
use oncebox::route::{OnDead, in_words};
use oncebox::store::{self, StoreError};
use oncebox_verify::{BadSecret, Keyring, Provider, Secret, Settings};

use super::route::{STALE, Sign};
use super::secret;
use super::signing::live;
use super::{
    Config, ConfigError, Problem, SECRET_BYTES_MIN, SecretRef, Sending, SettingRef, SourceConfig,
    carrier, generic, nearest,
};
use crate::push::{AsProvider, LiveKeys};
use crate::{push, tls};

/// The keys of each source, by its name.
pub type Keyrings = BTreeMap<String, Keyring>;

/// What routes and destinations prove themselves by, by the names their routes have in the store.
#[derive(Debug, Default)]
pub struct Signers {
    secrets: BTreeMap<String, Secret>,
    providers: BTreeMap<String, AsProvider>,
    /// The keys of sources, by their names, where a route signs with them.
    of_sources: BTreeMap<String, LiveKeys>,
    credentials: BTreeMap<String, HeaderMap>,
}

impl Signers {
    /// Nothing to prove anything by.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what signs the pushes of a route.
    pub fn insert(&mut self, route: String, secret: Secret) {
        self.secrets.insert(route, secret);
    }

    /// Takes what signs the pushes of a route, if anything does.
    pub fn remove(&mut self, route: &str) -> Option<Secret> {
        self.secrets.remove(route)
    }

    /// Signs the pushes of a route as providers would.
    pub(super) fn sign_as(&mut self, route: String, providers: AsProvider) {
        self.providers.insert(route, providers);
    }

    /// Takes what signs the pushes of a route as providers would, if it does.
    pub fn providers(&mut self, route: &str) -> Option<AsProvider> {
        self.providers.remove(route)
    }

    /// The keys of a source, which change with those that are in force.
    pub(super) fn keys_of(&mut self, source: &str, entry: &Provider, keys: &Keyring) -> LiveKeys {
        let copy = || live(keys.with_more(entry, []).unwrap_or_else(|_| Keyring::none()));
        self.of_sources.entry(source.to_owned()).or_insert_with(copy).clone()
    }

    /// The keys of a source, where a route signs with them.
    pub fn of_source(&self, source: &str) -> Option<LiveKeys> {
        self.of_sources.get(source).cloned()
    }

    /// Takes the headers that let a route fetch.
    pub fn credentials(&mut self, route: &str) -> HeaderMap {
        self.credentials.remove(route).unwrap_or_default()
    }
}

/// What `serve` needs beside the configuration itself.
#[derive(Debug)]
pub struct Readiness {
    /// The keys of each source.
    pub keyrings: Keyrings,
    /// What routes and destinations prove themselves by.
    pub signers: Signers,
    /// What should be looked at and stops nothing.
    pub warnings: Vec<Problem>,
}

/// Something that pushes, and where the configuration speaks of it.
struct Pushing<'a> {
    what: String,
    section: String,
    /// The name of its route in the store.
    stored: String,
    url_key: &'static str,
    url: &'a str,
    sign: Sign,
    sending: &'a Sending,
}

impl Pushing<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.section)
    }
}

impl Config {
    /// Fetches and decodes every secret and parses the certificate, or says all that is wrong.
    pub fn ready(&self) -> Result<Readiness, ConfigError> {
        self.ready_for(&|_| false)
    }

    /// As [`Config::ready`], for a process that has handlers for some routes.
    pub fn ready_for(&self, is_handled: &dyn Fn(&str) -> bool) -> Result<Readiness, ConfigError> {
        let mut problems = Vec::new();
        let mut warnings = Vec::new();
        let mut keyrings = Keyrings::new();
        // That a source lacks a secret or a setting was told when it was read.
        let sources = self.sources.iter().filter(|(_, source)| source.is_complete());
        for (name, source) in sources {
            match self.keyring(name) {
                Ok(keyring) => {
                    for (number, secret) in keyring.secrets().iter().enumerate() {
                        let has_it = |(_, other): &(&String, &Keyring)| {
                            other.secrets().iter().any(|theirs| theirs.is_same(secret))
                        };
                        if let Some((what, hint)) = secret::doubtful(&source.entry, secret) {
                            let path = format!("sources.{name}.secrets[{number}]");
                            let message = format!("source `{name}`: its secret {what}");
                            let problem = Problem::warning(message, hint);
                            warnings.push(self.document.locate(&path, problem));
                        }
                        if let Some((other, _)) = keyrings.iter().find(has_it) {
                            let path = format!("sources.{name}.secrets[{number}]");
                            warnings.push(self.shared_secret(&path, name, other));
                        }
                    }
                    keyrings.insert(name.clone(), keyring);
                }
                Err(error) => problems.extend(error.problems().iter().cloned()),
            }
        }
        let mut signers = self.signers(&mut problems, &mut warnings);
        self.sign_as_providers(&keyrings, &mut signers, &mut problems);
        signers.credentials = self.fetch_credentials(is_handled, &mut problems, &mut warnings);
        self.check_master(&mut problems);
        self.check_guards(&mut warnings);
        self.check_horizons(&mut warnings);
        self.check_budgets(&mut warnings);
        self.check_waiting(&mut warnings);
        self.check_urls(&mut problems);
        self.check_hidden(&mut warnings);
        self.check_listeners(&mut problems, &mut warnings);
        if let Err(StoreError::Unfit { problem, hint }) = store::check_url(self.store.url.as_str())
        {
            problems.push(self.problem("store.url", problem, hint));
        }
        if let Some(config) = &self.server.tls
            && let Err((message, hint)) = tls::load(config)
        {
            problems.push(self.problem("server.tls", message, hint));
        }
        if self.sources.is_empty() {
            let hint = "add [sources.NAME] with a provider and its secrets";
            warnings.push(Problem::warning("there is no source: nothing can come in", hint));
        }
        if problems.is_empty() {
            Ok(Readiness { keyrings, signers, warnings })
        } else {
            Err(ConfigError::new(problems))
        }
    }

    /// The decoded secrets of one source.
    pub fn keyring(&self, name: &str) -> Result<Keyring, ConfigError> {
        let Some(source) = self.sources.get(name) else {
            let hint = match nearest(name, self.sources.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{} has no [sources.{name}]", self.file()),
            };
            let problem = Problem::error(format!("there is no source `{name}`"), hint);
            return Err(ConfigError::new(vec![problem]));
        };
        let path = format!("sources.{name}.secrets");
        let mut problems = Vec::new();
        let mut secrets = Vec::new();
        for (number, reference) in source.secrets.iter().enumerate() {
            match self.fetch(&format!("{path}[{number}]"), reference) {
                Ok(secret) => secrets.push(secret),
                Err(problem) => problems.push(problem),
            }
        }
        let mut settings = Settings::new();
        for (key, reference) in &source.settings {
            match reference.resolve(&self.environment) {
                Ok(text) => drop(settings.insert(key.clone(), text)),
                Err((message, hint)) => {
                    let path = format!("sources.{name}.{key}");
                    problems.push(self.problem(&path, message, hint));
                }
            }
        }
        if !problems.is_empty() {
            return Err(ConfigError::new(problems));
        }
        let keyring = match source.waits_for_secret() {
            _ if source.is_capture() => Ok(Keyring::none()),
            true => Keyring::unpaired(&source.entry, settings),
            false => Keyring::with_settings(&source.entry, secrets, settings),
        };
        keyring.map_err(|bad| {
            let path = match (&bad, bad.number()) {
                (BadSecret::NoSetting { key } | BadSecret::BadSetting { key }, _) => {
                    format!("sources.{name}.{key}")
                }
                (_, Some(number)) => format!("{path}[{number}]"),
                (_, None) => path.clone(),
            };
            let shown = bad.number().and_then(|number| source.secrets.get(number));
            let which = shown.map_or_else(String::new, |secret| format!(" ({secret})"));
            let message = format!("source `{name}`: {bad}{which}");
            ConfigError::new(vec![self.problem(&path, message, bad.hint())])
        })
    }

    /// Fetches a secret of this configuration. The error is a sentence for the operator and a hint.
    pub fn resolve(&self, secret: &SecretRef) -> Result<Secret, (String, String)> {
        secret.resolve(&self.environment)
    }

    /// Fetches a setting of this configuration.
    pub fn resolve_setting(&self, setting: &SettingRef) -> Result<String, (String, String)> {
        setting.resolve(&self.environment)
    }

    /// Fetches one secret and refuses a short one.
    pub(super) fn fetch(&self, path: &str, reference: &SecretRef) -> Result<Secret, Problem> {
        let secret = reference
            .resolve(&self.environment)
            .map_err(|(message, hint)| self.problem(path, message, hint))?;
        if secret.len() < SECRET_BYTES_MIN {
            let message = format!("the secret {reference} has fewer than 8 characters");
            return Err(self.problem(
                path,
                message,
                "short secrets can be guessed; make a new one",
            ));
        }
        Ok(secret)
    }

    /// Fetches what signs the pushes. A secret that no library for Standard Webhooks could use
    /// would only be noticed by the consumer.
    fn signers(&self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) -> Signers {
        let mut signers = Signers::new();
        for pushing in self.pushing() {
            let Pushing { what, url, sending, .. } = &pushing;
            if push::is_refused(url, sending.allow_private) {
                let message = format!("{what} pushes to an address that is not public");
                let hint = "set `allow_private = true`, or nothing will be delivered";
                let problem = Problem::warning(message, hint);
                warnings.push(self.document.locate(&pushing.path(pushing.url_key), problem));
            }
            if pushing.sign == Sign::Provider {
                continue;
            }
            let path = pushing.path("secret");
            match &sending.secret {
                Some(reference) => match self.standard_signer(what, &path, reference, warnings) {
                    Ok(secret) => signers.insert(pushing.stored.clone(), secret),
                    Err(problem) => problems.push(problem),
                },
                None => {
                    let message = format!("{what} pushes without a signature");
                    let hint = "set `secret`, so that the consumer can tell Oncebox from others";
                    let problem = Problem::warning(message, hint);
                    warnings.push(self.document.locate(&path, problem));
                }
            }
        }
        signers
    }

    /// Every route and destination that pushes.
    fn pushing(&self) -> impl Iterator<Item = Pushing<'_>> {
        let routes = self.routes.iter().filter_map(|(name, route)| {
            Some(Pushing {
                what: format!("route `{name}`"),
                section: format!("routes.{name}"),
                stored: name.clone(),
                url_key: "push",
                url: route.push.as_ref()?,
                sign: route.sign,
                sending: &route.sending,
            })
        });
        let destinations = self.destinations.iter().map(|(name, destination)| Pushing {
            what: format!("destination `{name}`"),
            section: format!("destinations.{name}"),
            stored: carrier(name),
            url_key: "url",
            url: &destination.url,
            sign: Sign::Standard,
            sending: &destination.sending,
        });
        routes.chain(destinations)
    }

    fn standard_signer(
        &self,
        what: &str,
        path: &str,
        reference: &SecretRef,
        warnings: &mut Vec<Problem>,
    ) -> Result<Secret, Problem> {
        let hint = "write whsec_ and the base64 of 24 to 64 random bytes, as `openssl rand \
                    -base64 32` prints them";
        let secret = self.fetch(path, reference)?;
        let Err(problem) = push::check_secret(&secret) else { return Ok(secret) };
        let Some(plain) = secret.as_whsec() else {
            let message = format!("{what}: {problem} ({reference})");
            return Err(self.problem(path, message, hint));
        };
        let message = format!("{what}: the secret is no base64, so its characters are the key");
        warnings.push(self.document.locate(path, Problem::warning(message, hint)));
        Ok(plain)
    }

    /// Two listeners cannot share a port, unless their addresses have nothing in common.
    fn check_listeners(&self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let (public, admin) = (self.server.listen, self.server.admin_listen);
        if public.port() != 0 && public.port() == admin.port() && overlap(public.ip(), admin.ip()) {
            let message =
                format!("`listen` ({public}) and `admin_listen` ({admin}) cannot share a port");
            let hint = "give the admin listener another port, such as 127.0.0.1:8081";
            problems.push(self.problem("server.admin_listen", message, hint));
        }
        if !admin.ip().to_canonical().is_loopback() {
            let message = format!("the admin listener on {admin} has no login");
            let hint = "keep it on 127.0.0.1, or on a network that only you can reach";
            let problem = Problem::warning(message, hint);
            warnings.push(self.document.locate("server.admin_listen", problem));
        }
    }

    /// A guard that goes by what a provider does not name guards nothing.
    fn check_guards(&self, warnings: &mut Vec<Problem>) {
        for (name, route) in &self.routes {
            let guards = route.object_guards();
            let sources = route.sources.iter().enumerate();
            let sources = sources
                .filter_map(|(number, source)| Some((number, source, self.sources.get(source)?)));
            for (number, source, config) in sources {
                let (lacks, guards) = match (&config.entry.object[..], &config.entry.version[..]) {
                    ([], _) => ("object", guards.clone()),
                    (_, []) => {
                        ("version", guards.iter().copied().filter(|g| *g == STALE).collect())
                    }
                    _ => continue,
                };
                if guards.is_empty() {
                    continue;
                }
                let guards = guards.join(" and ");
                let message = format!(
                    "route `{name}`: source `{source}` names no {lacks}, so {guards} cannot \
                     guard its events"
                );
                let hint = match generic::keys(&config.provider) {
                    Some(_) if lacks == "object" => {
                        "say where it is with `object_id` of the source"
                    }
                    Some(_) => "say where it is with `version` of the source",
                    None => "they are delivered as they come; give them a route of their own",
                };
                let path = format!("routes.{name}.sources[{number}]");
                warnings.push(self.document.locate(&path, Problem::warning(message, hint)));
            }
        }
    }

    /// A budget in time that the attempts do not last for is never reached.
    fn check_budgets(&self, warnings: &mut Vec<Problem>) {
        let routes = self.routes.iter().map(|(name, it)| (format!("routes.{name}"), it.rules()));
        let destinations = self.destinations.iter();
        let destinations =
            destinations.map(|(name, it)| (format!("destinations.{name}"), it.rules()));
        for (path, rules) in routes.chain(destinations) {
            let schedule = rules.schedule();
            let Some(budget) = rules.budget.filter(|budget| schedule.longest < *budget) else {
                continue;
            };
            let message = format!(
                "`{path}` ends its retries after {} attempts, at most {}; `for` is {}",
                schedule.attempts,
                in_words(schedule.longest),
                in_words(budget)
            );
            let hint = "remove `max_attempts`, or raise it";
            let path = format!("{path}.retry.for");
            warnings.push(self.document.locate(&path, Problem::warning(message, hint)));
        }
    }

    /// A provider that is answered after processing waits for what is in the way of its event, too:
    /// a dead delivery of the same object is so until a person has looked.
    fn check_waiting(&self, warnings: &mut Vec<Problem>) {
        for (name, route) in &self.routes {
            let rules = route.rules();
            let waits = rules.ordered && rules.on_dead == OnDead::Hold;
            let answers_late =
                |source: &&String| self.sources.get(*source).is_some_and(SourceConfig::acks_late);
            let Some(source) = route.sources.iter().find(answers_late).filter(|_| waits) else {
                continue;
            };
            let message = format!(
                "route `{name}` keeps the order of objects, and source `{source}` answers after \
                 processing: behind a dead delivery every event of that object is answered 503 \
                 until it is replayed or discarded"
            );
            let hint = "write on_dead = \"continue\", or ack = \"recorded\" for the source";
            let path = format!("routes.{name}.order");
            warnings.push(self.document.locate(&path, Problem::warning(message, hint)));
        }
    }

    /// A scheme that signs the URL needs to be told which one the provider calls. The request
    /// cannot tell: an event captured on its way elsewhere names any host it likes.
    fn check_urls(&self, problems: &mut Vec<Problem>) {
        for (name, source) in &self.sources {
            if source.signs_url() && source.public_url.is_none() {
                let message = format!("source `{name}`: the provider signs the URL it calls");
                let hint = "set `public_url` to the URL as given to the provider; the Host header \
                            is only the sender's word for it";
                problems.push(self.problem(&format!("sources.{name}.provider"), message, hint));
            }
        }
    }

    /// What takes anything cannot look like what takes nothing.
    fn check_hidden(&self, warnings: &mut Vec<Problem>) {
        let hides = self.server.hide_unknown_sources;
        for (name, _) in self.sources.iter().filter(|(_, source)| hides && source.is_capture()) {
            let message = format!(
                "source `{name}` takes whatever is sent, so anybody can tell that it exists"
            );
            let hint = "`hide_unknown_sources` hides the others; remove this one after its use, or \
                        give it a name that nobody guesses";
            let path = format!("sources.{name}.provider");
            warnings.push(self.document.locate(&path, Problem::warning(message, hint)));
        }
    }

    fn shared_secret(&self, path: &str, name: &str, other: &str) -> Problem {
        let message = format!("sources `{other}` and `{name}` share a secret");
        let hint = "whoever can sign for one can sign for the other; give each its own";
        self.document.locate(path, Problem::warning(message, hint))
    }

    pub(super) fn problem(
        &self,
        path: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        self.document.locate(path, Problem::error(message, hint))
    }
}

/// Whether listening on both addresses takes the same one twice. `::` takes IPv4 as well.
fn overlap(one: IpAddr, other: IpAddr) -> bool {
    let takes = |all: IpAddr, one: IpAddr| {
        all.is_unspecified() && (all.is_ipv6() || one.is_ipv4()) || all == one
    };
    takes(one, other) || takes(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_take_each_other_are_found() {
        let overlap =
            |one: &str, other: &str| overlap(one.parse().unwrap(), other.parse().unwrap());
        assert!(overlap("0.0.0.0", "127.0.0.1"));
        assert!(overlap("127.0.0.1", "0.0.0.0"));
        assert!(overlap("::", "127.0.0.1"));
        assert!(overlap("10.0.0.1", "10.0.0.1"));
        assert!(!overlap("10.0.0.1", "127.0.0.1"));
        assert!(!overlap("0.0.0.0", "::1"));
    }
}
