//! Reading the configuration from its file and the environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reader::{Findings, Section};
use super::{
    Config, ConfigError, DEFAULT_FILE, ENV_FILE, Environment, FILE_VARIABLE, Problem, Readiness,
    StoreUrl, tree,
};

impl Config {
    /// Reads the file at `path`, else the one `ONCEBOX_CONFIG` names, else `oncebox.toml`, and
    /// lays the environment over it. Secrets are not fetched yet: see [`Config::ready`].
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let (file, text, environment) = Self::text(path)?;
        let config = Self::parse(&file, &text, environment)?;
        match config.other_store() {
            Some(problem) => Err(ConfigError::new(vec![problem])),
            None => Ok(config),
        }
    }

    /// Reads what `oncebox dev` wrote. Nothing overrides it, and `.env` has variables as well.
    pub fn load_dev(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError::new(vec![Problem::error(message, "")]);
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(format!("{file} cannot be read: {error}")))?;
        let environment = Environment::beside_overrides(Path::new(ENV_FILE));
        Self::parse(&file, &text, environment)
    }

    /// Reads the file as [`Config::load`] does and makes it ready, or says all that is wrong: an
    /// error in one place does not hide a secret that is missing in another.
    pub fn load_ready(path: Option<&Path>) -> Result<(Self, Readiness), ConfigError> {
        let (file, text, environment) = Self::text(path)?;
        let (config, mut problems) = Self::parse_sound(&file, &text, environment)?;
        problems.extend(config.other_store());
        config.with_readiness(problems)
    }

    /// Reads a configuration from text and makes it ready.
    pub fn parse_ready(
        file: &str,
        text: &str,
        environment: Environment,
    ) -> Result<(Self, Readiness), ConfigError> {
        let (config, problems) = Self::parse_sound(file, text, environment)?;
        config.with_readiness(problems)
    }

    fn with_readiness(self, mut problems: Vec<Problem>) -> Result<(Self, Readiness), ConfigError> {
        match self.ready() {
            Ok(readiness) if problems.is_empty() => return Ok((self, readiness)),
            Ok(_) => {}
            Err(error) => problems.extend(error.into_problems()),
        }
        problems.sort_by_key(Problem::line_and_column);
        Err(ConfigError::new(problems))
    }

    /// The name of the file, what it says, and what may override it.
    fn text(path: Option<&Path>) -> Result<(String, String, Environment), ConfigError> {
        let environment = Environment::of_process();
        let named = path.map(Path::to_owned);
        let named = named.or_else(|| environment.get(FILE_VARIABLE).map(PathBuf::from));
        let file = named.clone().unwrap_or_else(|| DEFAULT_FILE.into());
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            // A container may be configured by its environment alone.
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && named.is_none()
                    && environment.overrides().next().is_some() =>
            {
                String::new()
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", file.display());
                let hint = "`oncebox config init` writes a first one; `oncebox dev` needs none";
                return Err(ConfigError::new(vec![Problem::error(message, hint)]));
            }
        };
        Ok((file.display().to_string(), text, environment))
    }

    /// Reads a configuration from text; `file` is what errors call it.
    pub fn parse(file: &str, text: &str, environment: Environment) -> Result<Self, ConfigError> {
        let (config, problems) = Self::parse_sound(file, text, environment)?;
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::new(problems)) }
    }

    /// Reads what is sound of a configuration, and says what is not.
    fn parse_sound(
        file: &str,
        text: &str,
        environment: Environment,
    ) -> Result<(Self, Vec<Problem>), ConfigError> {
        let (root, document) = tree::parse(file, text, &environment).map_err(ConfigError::new)?;
        let findings = Findings::new(&document);
        let mut config = Self::read(Section::root(&root, &findings));
        config.check_routes(&findings);
        config.check_names(&findings);
        config.let_effects_outlast(&findings);
        let problems = findings.into_problems();
        config.document = Arc::new(document);
        config.environment = environment.beside(file);
        config.find_files();
        Ok((config, problems))
    }

    /// Lets relative paths start in the folder of the configuration.
    fn find_files(&mut self) {
        let environment = &self.environment;
        if let Some(tls) = &mut self.server.tls {
            tls.cert = environment.path(&tls.cert);
            tls.key = environment.path(&tls.key);
        }
        if let Some(path) = self.store.url.as_str().strip_prefix("sqlite://")
            && !path.is_empty()
            && !path.starts_with(':')
        {
            let path = environment.path(path);
            self.store.url = StoreUrl::new(format!("sqlite://{}", path.display()));
        }
    }

    /// A relative path that names no file beside the configuration, and one where the program was
    /// started, would silently begin an empty store: every event would be new.
    fn other_store(&self) -> Option<Problem> {
        let beside = Path::new(self.store.url.as_str().strip_prefix("sqlite://")?);
        let here = self.environment.here(beside)?;
        if beside.exists() || !here.is_file() {
            return None;
        }
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (beside, here) = (whole(beside), whole(&here));
        let message = format!(
            "{} beside the configuration does not exist, but {} does",
            beside.display(),
            here.display()
        );
        let hint = format!(
            "relative paths start beside the configuration; write url = \"sqlite://{}\"",
            here.display()
        );
        Some(self.document.locate("store.url", Problem::error(message, hint)))
    }
}
