//! What `oncebox dev` serves: a store in a folder of its own and sources whose secrets everybody
//! knows.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use oncebox_verify::{Provider, Settings};

/// The folder everything of `oncebox dev` is in, below the current one.
pub const FOLDER: &str = ".oncebox";

/// The configuration it writes there, so that other commands find its store and its sources.
pub const CONFIG_FILE: &str = ".oncebox/dev.toml";

/// Signs for the source `demo`, which takes Stripe events. No secret: it is printed here.
pub const STRIPE_SECRET: &str = "whsec_dev_only_not_a_secret";

/// Signs for the source `demo-hmac`.
pub const HMAC_SECRET: &str = "dev-only-not-a-secret";

/// Opens the source `demo-token`.
pub const TOKEN: &str = "dev-token-not-a-secret";

/// Signs what is pushed by the route `demo`.
pub const ROUTE_SECRET: &str = "whsec_ZGV2LW9ubHktbm90LWEtc2VjcmV0";

/// Rejected requests of each reason that its sources keep.
const KEEP_REJECTED: i64 = 20;

/// A provider to try beside the demo sources, with what was made up for it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The provider; its source has the same name.
    pub provider: &'static Provider,
    /// Its secret or private key: `env:NAME`, or `file:PATH` beside the configuration.
    pub secret: String,
    /// What else its source says.
    pub settings: Settings,
}

impl Tried {
    fn source(&self, listen: SocketAddr) -> String {
        let name = &self.provider.name;
        let mut source = toml::Table::new();
        source.insert("provider".into(), name.as_ref().into());
        source.insert("secrets".into(), vec![self.secret.clone()].into());
        source.insert("keep_rejected".into(), KEEP_REJECTED.into());
        for (key, value) in &self.settings {
            source.insert(key.clone(), value.as_str().into());
        }
        if self.provider.signs_url() {
            source.insert("public_url".into(), format!("http://{listen}/in/{name}").into());
        }
        format!("\n[sources.{name}]\n{source}")
    }
}

/// The configuration of a server on these addresses that pushes to `destination`.
pub fn config_text(
    listen: SocketAddr,
    admin_listen: SocketAddr,
    destination: &str,
    tried: &[Tried],
) -> String {
    let names: String = tried.iter().map(|t| format!(", \"{}\"", t.provider.name)).collect();
    let sources: String = tried.iter().map(|tried| tried.source(listen)).collect();
    format!(
        "# Written by `oncebox dev`. Its secrets are known to everybody: never serve it.\n\
         [server]\n\
         listen = \"{listen}\"\n\
         admin_listen = \"{admin_listen}\"\n\
         \n\
         [store]\n\
         url = \"sqlite://dev.db\"\n\
         \n\
         [log]\n\
         format = \"short\"\n\
         \n\
         [sources.demo]\n\
         provider = \"stripe\"\n\
         secrets = [\"{STRIPE_SECRET}\"]\n\
         keep_rejected = {KEEP_REJECTED}\n\
         \n\
         [sources.demo-hmac]\n\
         provider = \"hmac\"\n\
         secrets = [\"{HMAC_SECRET}\"]\n\
         keep_rejected = {KEEP_REJECTED}\n\
         \n\
         [sources.demo-token]\n\
         provider = \"token\"\n\
         secrets = [\"{TOKEN}\"]\n\
         keep_rejected = {KEEP_REJECTED}\n\
         \n\
         [routes.demo]\n\
         sources = [\"demo\", \"demo-hmac\", \"demo-token\"{names}]\n\
         push = {destination}\n\
         secret = \"{ROUTE_SECRET}\"\n\
         allow_private = true\n\
         {sources}",
        destination = toml::Value::from(destination),
    )
}

/// Whether a path is that of the configuration of an `oncebox dev` in this folder.
pub fn is_config_file(path: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    let own = Path::new(CONFIG_FILE);
    path == own || whole(path).is_some_and(|path| whole(own) == Some(path))
}

/// The configuration of an `oncebox dev` in this folder, if there was one.
pub fn config_file() -> Option<PathBuf> {
    let file = Path::new(CONFIG_FILE);
    file.exists().then(|| file.to_owned())
}
