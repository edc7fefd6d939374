//! The house style, as far as a test can hold it.

use std::path::{Path, PathBuf};

/// Lines of a function. Longer ones hide a second idea.
const FUNCTION_LINES: usize = 70;

/// Lines of a file, its unit tests not counted. Tests and catalogues may be longer.
const FILE_LINES: usize = 500;

/// Characters of a line of comment or SQL; rustfmt sees to the code.
const COLUMNS: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file of the given endings below the crates, with its text.
fn files(endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| path.extension().is_some_and(|e| e == *ending)) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 20, "found only {} files", found.len());
    found
}

fn complain(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for (path, text) in files(&["rs"]) {
        let mut start: Option<(usize, usize, &str)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let opens = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn "]
                .iter()
                .any(|word| code.starts_with(word))
                || code.starts_with("pub async fn ")
                || code.starts_with("pub(crate) async fn ")
                || code.starts_with("pub(super) async fn ");
            match start {
                None if opens && !line.trim_end().ends_with(';') => {
                    start = Some((number, indent, code));
                }
                // A method of a trait that ends without a body.
                Some((_, deep, _)) if indent == deep && code.ends_with(';') => start = None,
                Some((from, deep, name)) if indent == deep && code.starts_with('}') => {
                    if number - from + 1 > FUNCTION_LINES {
                        let lines = number - from + 1;
                        problems.push(format!(
                            "{}:{}: {lines} lines: {name}",
                            path.display(),
                            from + 1
                        ));
                    }
                    start = None;
                }
                _ => {}
            }
        }
    }
    complain(&problems);
}

#[test]
fn files_hold_one_idea() {
    let mut problems = Vec::new();
    for (path, text) in files(&["rs"]) {
        let place = path.to_string_lossy();
        if place.contains("/tests/") || place.contains("/catalogue/") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = code.lines().count();
        if lines > FILE_LINES {
            problems.push(format!("{place}: {lines} lines"));
        }
    }
    complain(&problems);
}

#[test]
fn lines_fit() {
    let mut problems = Vec::new();
    for (path, text) in files(&["rs", "sql"]) {
        for (number, line) in text.lines().enumerate() {
            let is_code = path.extension().is_some_and(|ending| ending == "rs")
                && !line.trim_start().starts_with("//");
            if line.chars().count() > COLUMNS && !is_code {
                problems.push(format!("{}:{}: too long", path.display(), number + 1));
            }
        }
    }
    complain(&problems);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [["FIX", "ME"].concat(), ["TO", "DO"].concat(), ["XX", "X"].concat()];
    let mut problems = Vec::new();
    for (path, text) in files(&["rs", "sql", "c"]) {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word.as_str())) {
                problems.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    complain(&problems);
}

/// verify ← oncebox ← drill ← server, and the testkit only for tests.
#[test]
fn crates_depend_as_drawn() {
    let allowed: [(&str, &[&str]); 4] = [
        ("verify", &[]),
        ("oncebox", &["oncebox-verify"]),
        ("drill", &["oncebox-verify", "oncebox"]),
        ("server", &["oncebox-verify", "oncebox", "oncebox-drill"]),
    ];
    for (name, allowed) in allowed {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let from = manifest.find("[dependencies]").unwrap();
        let section = &manifest[from..];
        let section = section[1..].split("\n[").next().unwrap();
        let used = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for used in used.filter(|used| used.starts_with("oncebox")) {
            assert!(allowed.contains(&used), "{name} must not depend on {used}");
        }
    }
}
