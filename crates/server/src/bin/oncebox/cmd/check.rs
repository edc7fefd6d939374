//! `oncebox check`: is the configuration right?

use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use clap::Args;
use oncebox_server::config::{Config, Readiness, ServerConfig};

use crate::Global;
use crate::exit::{Failure, no_colour};
use crate::output::{Screen, count, notice};

/// Validate the configuration and explain every error
///
/// Secrets are fetched and decoded, certificates parsed, names compared. Nothing is opened or
/// changed. The fingerprints it prints are those that `oncebox receipts show` names.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 it can be served, 78 it cannot.")]
pub(crate) struct Check {}

impl Check {
    #[expect(clippy::unused_self, reason = "every command runs alike")]
    pub(crate) fn run(self, global: &Global) -> Result<(), Failure> {
        let (config, Readiness { warnings, keyrings }) =
            Config::load_ready(global.config.as_deref())?;
        check_listeners(&config.server)?;
        check_store_url(config.store.url.as_str())?;
        let colour = io::stderr().is_terminal() && !no_colour();
        for warning in &warnings {
            notice(warning.render(colour));
        }
        let exposed = is_exposed(config.server.admin_listen);
        if exposed {
            notice(format!(
                "  ⚠ the admin listener on {} has no login\n  help: keep it on 127.0.0.1, or on a \
                 network that only you can reach\n",
                config.server.admin_listen
            ));
        }
        let mut screen = Screen::stdout();
        let good = screen.good("ok");
        screen.line(format!(
            "{good}: {} with {} and {}, {}",
            config.file(),
            count(config.sources.len(), "source"),
            count(config.routes.len(), "route"),
            count(warnings.len() + usize::from(exposed), "warning"),
        ))?;
        screen.line(format!("  listens on {} (public)", config.server.listen))?;
        screen.line(format!("  listens on {} (admin)", config.server.admin_listen))?;
        screen.line(format!("  keeps events in {}", config.store.url))?;
        for (name, source) in &config.sources {
            let Some(keyring) = keyrings.get(name) else { continue };
            for (place, secret) in source.secrets.iter().zip(keyring.secrets()) {
                let fingerprint = secret.fingerprint();
                screen.line(format!("  {name} takes {place}, fingerprint {fingerprint}"))?;
            }
        }
        screen.flush()?;
        Ok(())
    }
}

/// Two listeners cannot share a port, unless their addresses have nothing in common.
fn check_listeners(server: &ServerConfig) -> Result<(), Failure> {
    let (public, admin) = (server.listen, server.admin_listen);
    if public.port() == 0 || public.port() != admin.port() || !overlap(public.ip(), admin.ip()) {
        return Ok(());
    }
    Err(Failure::configuration(format!(
        "`listen` ({public}) and `admin_listen` ({admin}) cannot share a port"
    ))
    .hint("give the admin listener another port, such as 127.0.0.1:8081"))
}

/// Whether listening on both addresses takes the same one twice. `::` takes IPv4 as well.
fn overlap(one: IpAddr, other: IpAddr) -> bool {
    let takes = |all: IpAddr, one: IpAddr| {
        all.is_unspecified() && (all.is_ipv6() || one.is_ipv4()) || all == one
    };
    takes(one, other) || takes(other, one)
}

/// Whether others than this machine can reach an address.
fn is_exposed(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Finds what the store would refuse in a URL of PostgreSQL before it connects.
fn check_store_url(url: &str) -> Result<(), Failure> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Ok(());
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut others = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", "disable" | "prefer" | "require" | "verify-full")) => {}
            Some(("sslmode", other)) => {
                return Err(Failure::configuration(format!("`store.url` says sslmode={other}"))
                    .hint("use disable, prefer, require or verify-full"));
            }
            Some(("sslrootcert", path)) => {
                std::fs::metadata(path).map_err(|error| {
                    Failure::configuration(format!("`store.url`: cannot read {path}: {error}"))
                        .hint("check `sslrootcert`")
                })?;
            }
            _ => others.push(pair),
        }
    }
    // The rest is the driver's to read, and its errors name the option, never the value.
    let rest = format!("{base}?{}", others.join("&"));
    let rest = rest.trim_end_matches('?');
    tokio_postgres::Config::from_str(rest).map(|_| ()).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let cause = cause.unwrap_or_else(|| error.to_string());
        Failure::configuration(format!("`store.url` cannot be read: {cause}"))
            .hint("write postgres://user:password@host1,host2/db?target_session_attrs=read-write")
    })
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

    #[test]
    fn a_store_url_is_read_as_the_store_reads_it() {
        for good in [
            "sqlite://oncebox.db",
            "postgres://u:p@h1,h2/db?sslmode=require&target_session_attrs=read-write",
            "postgresql://h/db?sslmode=verify-full",
        ] {
            assert!(check_store_url(good).is_ok(), "{good}");
        }
        for bad in [
            "postgres://h/db?sslmode=verify-ca",
            "postgres://h:abc/db",
            "postgres://h/db?ssl=1",
            "postgres://h/db?sslrootcert=/no/such/file",
        ] {
            assert!(check_store_url(bad).is_err(), "{bad}");
        }
    }
}
