//! `[store] master_secret`: what other secrets are sealed under.

use oncebox::limits::MASTER_SECRET_BYTES;
use oncebox::sealed::SealingKey;

use super::{Config, Problem};

/// Where the configuration has it.
const PATH: &str = "store.master_secret";

impl Config {
    /// What secrets that providers tell are sealed under, where the configuration says so.
    pub fn sealing_key(&self) -> Result<Option<SealingKey>, Problem> {
        let Some(reference) = &self.store.master_secret else { return Ok(None) };
        let secret = reference
            .resolve(&self.environment)
            .map_err(|(message, hint)| self.problem(PATH, message, hint))?;
        SealingKey::derive(secret.expose().as_bytes())
            .map(Some)
            .map_err(|error| self.problem(PATH, error.to_string(), make_one()))
    }

    /// Whoever is told a secret has to keep it, and not for everybody to read.
    pub(super) fn check_master(&self, problems: &mut Vec<Problem>) {
        match self.sealing_key() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let mut sources = self.sources.iter();
                let waits = sources.find(|(_, source)| source.waits_for_secret());
                problems.extend(waits.map(|(name, _)| self.no_master(name)));
            }
            Err(problem) => problems.push(problem),
        }
    }

    /// What to say where a source needs a master secret and there is none.
    pub fn no_master(&self, source: &str) -> Problem {
        let message = format!(
            "source `{source}`: the provider tells its secret, and nothing says what to seal it \
             under"
        );
        self.problem(&format!("sources.{source}.provider"), message, make_one())
    }
}

fn make_one() -> String {
    format!(
        "set `[store] master_secret = \"env:ONCEBOX_MASTER_SECRET\"` to {MASTER_SECRET_BYTES} \
         random bytes or more, such as `openssl rand -hex 32` prints"
    )
}
