//! `oncebox check` and `oncebox config`.

use std::fs;

use crate::bed::{Run, oncebox_in};

/// Runs a command where the configuration is `text`.
fn with(text: &str, args: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("oncebox.toml"), text).unwrap();
    oncebox_in(dir.path(), args, b"")
}

const SOURCE: &str = "[sources.shop]\nprovider = \"stripe\"\nsecrets = [\"env:CANARY\"]\n";

#[test]
fn what_cannot_be_served_is_not_called_right() {
    let server = |keys: &str| with(&format!("[server]\n{keys}\n{SOURCE}"), &["check"]);
    server("listen = \"0.0.0.0:81\"\nadmin_listen = \"127.0.0.1:81\"").exits(78).tells("port");
    server("listen = \"127.0.0.1:81\"\nadmin_listen = \"127.0.0.1:81\"").exits(78);
    server("admin_listen = \"0.0.0.0:8081\"").exits(0).tells("no login").prints("1 warning");
    for (url, told) in [
        ("postgres://me:canary@h/db?sslmode=verify-ca", "sslmode=verify-ca"),
        ("postgres://me:canary@h:abc/db", "port"),
        ("postgres://me:canary@h/db?ssl=1", "ssl"),
    ] {
        let text = format!("[store]\nurl = \"{url}\"\n{SOURCE}");
        let run = with(&text, &["check"]).exits(78).tells(told);
        assert!(!run.stderr.contains("canary"), "{run}");
    }
}

#[test]
fn fingerprints_tell_secrets_apart() {
    for args in [&["check"] as &[&str], &["config", "check"]] {
        let run = with(SOURCE, args).exits(0).prints("shop takes env:CANARY, fingerprint ");
        assert!(!run.stderr.contains("warning"), "{run}");
        run.tells("note: there is no route");
    }
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("oncebox.toml"), SOURCE).unwrap();
    fs::write(dir.path().join("oncebox.db"), [b'x'; 8192]).unwrap();
    for args in [&["receipts", "list"] as &[&str], &["retention", "run"]] {
        oncebox_in(dir.path(), args, b"").exits(69).tells("oncebox.db").tells("store.url");
    }
}
