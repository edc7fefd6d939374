//! `sign = "provider"`: with what a route signs for each of its sources, or why it cannot.

use std::sync::Arc;

use arc_swap::ArcSwap;
use oncebox_verify::{Keyring, Secret, can_resign, query_names, shows_secret};

use super::ready::{Keyrings, Signers};
use super::route::{RouteConfig, Sign};
use super::{Config, Problem, SourceConfig};
use crate::push::{self, AsProvider, LiveKeys, Signer};

/// One route that signs as providers do, and one of the sources.
struct Pair<'a> {
    route: &'a str,
    config: &'a RouteConfig,
    url: &'a str,
    source: &'a str,
    provider: &'a SourceConfig,
}

impl Config {
    /// Finds what signs the pushes of every route that signs as providers do.
    pub(super) fn sign_as_providers(
        &self,
        keyrings: &Keyrings,
        signers: &mut Signers,
        problems: &mut Vec<Problem>,
    ) {
        for (name, config) in self.routes.iter().filter(|(_, route)| route.sign == Sign::Provider) {
            let Some(url) = &config.push else { continue };
            let reference = config.sending.secret.as_ref();
            let path = format!("routes.{name}.secret");
            let secret = match reference.map(|secret| self.fetch(&path, secret)).transpose() {
                Ok(secret) => secret,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let mut signs = AsProvider::new(config.sign_url.clone());
            for (source, provider) in &self.sources {
                let pair = Pair { route: name, config, url, source, provider };
                let Some(keyring) = keyrings.get(source) else { continue };
                match self.signer(&pair, keyring, secret.clone(), signers) {
                    Ok(signer) => signs.insert(source.clone(), signer),
                    // Another source matters only as long as deliveries of it are left.
                    Err(_) if !config.sources.contains(source) => {}
                    Err(problem) => problems.push(problem),
                }
            }
            self.check_sign_url(name, config, problems);
            signers.sign_as(name.clone(), signs);
        }
    }

    fn signer(
        &self,
        pair: &Pair<'_>,
        keyring: &Keyring,
        secret: Option<Secret>,
        signers: &mut Signers,
    ) -> Result<Signer, Problem> {
        let Pair { route, source, .. } = *pair;
        let (entry, of_route) = (&pair.provider.entry, format!("routes.{route}"));
        if pair.provider.is_capture() {
            let message = format!("route `{route}` cannot sign as source `{source}` does");
            let hint = "`capture` verifies nothing, so there is no provider; use \"standard\"";
            return Err(self.problem(&format!("{of_route}.sign"), message, hint));
        }
        let keys = match secret {
            Some(secret) => keyring.with_only(entry, secret).map(live).map_err(|bad| {
                let message = format!(
                    "route `{route}` cannot sign as `{}` for source `{source}`: {bad}",
                    entry.name
                );
                self.problem(&format!("{of_route}.secret"), message, bad.hint())
            })?,
            None => signers.keys_of(source, entry, keyring),
        };
        let loaded = keys.load_full();
        if let Err(why) = can_resign(entry, &loaded) {
            let message = format!(
                "route `{route}` cannot sign as `{}` for source `{source}`: {why}",
                entry.name
            );
            return Err(self.problem(&format!("{of_route}.sign"), message, why.hint()));
        }
        if shows_secret(entry, &loaded) && !push::is_confidential(pair.url) {
            let message = format!(
                "route `{route}`: `{}` proves itself by a token, which others on the way to this \
                 URL could read",
                entry.name
            );
            let hint = "push to an https URL, or to this machine: 127.0.0.1, [::1] or localhost";
            return Err(self.problem(&format!("{of_route}.push"), message, hint));
        }
        self.check_query(pair)?;
        Ok(Signer { provider: entry.clone(), keys })
    }

    /// What signing adds to a URL must not be there already: it would be unclear which one counts.
    fn check_query(&self, pair: &Pair<'_>) -> Result<(), Problem> {
        let names = query_names(&pair.provider.entry);
        let urls = [("push", Some(pair.url)), ("sign_url", pair.config.sign_url.as_deref())];
        for (key, url) in urls.into_iter().filter_map(|(key, url)| Some((key, url?))) {
            let query = url.split_once('?').map_or("", |(_, query)| query);
            let keys: Vec<_> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
            let has = |name: &&&str| keys.contains(*name);
            if let Some(name) = names.iter().find(has) {
                let message = format!(
                    "route `{}`: `{key}` has `{name}` in its query, which `{}` adds to it",
                    pair.route, pair.provider.entry.name
                );
                let path = format!("routes.{}.{key}", pair.route);
                return Err(self.problem(&path, message, "remove it from the URL"));
            }
        }
        Ok(())
    }

    /// A URL that no provider signs says nothing.
    fn check_sign_url(&self, name: &str, config: &RouteConfig, problems: &mut Vec<Problem>) {
        let mut sources = config.sources.iter().filter_map(|source| self.sources.get(source));
        if config.sign_url.is_some() && !sources.any(SourceConfig::signs_url) {
            let message = format!("route `{name}`: no provider of its sources signs a URL");
            problems.push(self.problem(&format!("routes.{name}.sign_url"), message, "remove it"));
        }
    }
}

pub(super) fn live(keyring: Keyring) -> LiveKeys {
    Arc::new(ArcSwap::from_pointee(keyring))
}
