//! Finding the server's programs. `scripts/ensure-postgres` looks in the same places.

use std::env;
use std::path::{Path, PathBuf};

/// Names the folder that holds `initdb` and `postgres`, ahead of any search.
const BIN_VARIABLE: &str = "ONCEBOX_TEST_POSTGRES_BIN";

/// Folders in which packages put one server per version, as `(parent, folder below a version)`.
const VERSIONED: [(&str, &str); 7] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr/lib", "bin"),
    ("/usr/libexec", ""),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "bin"),
    ("/usr", "bin"),
];

/// Folders that hold one server.
const PLAIN: [&str; 2] = ["/usr/local/pgsql/bin", "/usr/bin"];

/// Whether [`find`] would find something.
pub(super) fn are_there() -> bool {
    env::var_os(BIN_VARIABLE).is_some() || candidates().iter().any(|folder| holds_server(folder))
}

/// The folder with `initdb` and `postgres`.
///
/// # Panics
///
/// When there is none; the message lists the places searched.
pub(super) fn find() -> PathBuf {
    if let Some(folder) = env::var_os(BIN_VARIABLE) {
        let folder = PathBuf::from(folder);
        assert!(
            holds_server(&folder),
            "{BIN_VARIABLE} is {}, which has no `initdb` and `postgres`",
            folder.display()
        );
        return folder;
    }
    candidates().into_iter().find(|folder| holds_server(folder)).unwrap_or_else(|| {
        panic!(
            "no PostgreSQL server programs (`initdb`, `postgres`) found.\n\
             Searched PATH, {}, and per version below {}.\n\
             Run `make test`, which installs them; or set {BIN_VARIABLE} to their folder; or set \
             {} to the URL of a server whose user may create databases.",
            PLAIN.join(", "),
            VERSIONED.map(|(parent, _)| parent).join(", "),
            super::URL_VARIABLE,
        )
    })
}

fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    for (parent, below) in VERSIONED {
        folders.extend(versions(Path::new(parent)).into_iter().map(|folder| folder.join(below)));
    }
    folders.extend(PLAIN.map(PathBuf::from));
    folders
}

/// The folders below `parent` named after a version of the server, newest first: `15`,
/// `postgresql15`, `pgsql-17`, `postgresql@16`.
fn versions(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn version(name: &str) -> Option<u32> {
    let number = ["postgresql", "pgsql"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
        .trim_start_matches(['-', '@']);
    number.split('.').next()?.parse().ok()
}

fn holds_server(folder: &Path) -> bool {
    folder.join("initdb").is_file() && folder.join("postgres").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_folder_names() {
        for (name, expected) in [
            ("15", Some(15)),
            ("9.6", Some(9)),
            ("postgresql16", Some(16)),
            ("postgresql@17", Some(17)),
            ("pgsql-18", Some(18)),
            ("postgresql", None),
            ("bin", None),
        ] {
            assert_eq!(version(name), expected, "{name}");
        }
    }
}
