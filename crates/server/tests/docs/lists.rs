//! Tables of keys, answers, metrics, reasons and providers hold what there is, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use oncebox_server::dev;
use oncebox_server::metrics::Outcome;
use oncebox_testkit::http::{self, Answer, Connection};
use oncebox_verify::{Malformed, Rejection};

use crate::page::{page, root, spans};
use crate::story::Place;

/// A key and the default it has, if it has one.
type Keys = BTreeMap<String, Option<String>>;

/// The keys of the example by section. Those of the generic schemes have sections of their own.
fn keys_of_the_example() -> BTreeMap<String, Keys> {
    let text = fs::read_to_string(root().join("oncebox.example.toml")).unwrap();
    let mut sections: BTreeMap<String, Keys> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        let commented = line.strip_prefix('#').unwrap_or(line);
        let example = commented.strip_prefix("example: ");
        let none = commented.strip_prefix("none: ");
        let written = example.or(none).unwrap_or(commented);
        if let Some(name) = written.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            section = match name {
                "sources.mailer" => "hmac".to_owned(),
                "sources.intranet" => "token".to_owned(),
                name => name.split('.').next().unwrap().to_owned(),
            };
            continue;
        }
        let Some((key, value)) = written.split_once(" = ") else { continue };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let of_source = ["provider", "secrets"].contains(&key) && section != "sources";
        if !key.bytes().all(plain) || of_source {
            continue;
        }
        let is_default =
            (none.is_none() && example.is_none()) || ["hmac", "token"].contains(&&*section);
        let default = (is_default && none.is_none()).then(|| value.to_owned());
        sections.entry(section.clone()).or_default().insert(key.to_owned(), default);
    }
    sections
}

#[test]
fn the_page_has_every_key_with_its_default() {
    let page = page("docs/configuration.md");
    let example = keys_of_the_example();
    let headings = [
        ("server", "## `[server]`"),
        ("store", "## `[store]`"),
        ("log", "## `[log]`"),
        ("limits", "## `[limits]`"),
        ("retention", "## `[retention]`"),
        ("sources", "## `[sources.NAME]`"),
        ("hmac", "### `provider = \"hmac\"`"),
        ("token", "### `provider = \"token\"`"),
        ("routes", "## `[routes.NAME]`"),
        ("destinations", "## `[destinations.NAME]`"),
    ];
    let covered: BTreeSet<&str> = headings.iter().map(|(section, _)| *section).collect();
    assert_eq!(covered, example.keys().map(String::as_str).collect(), "sections");
    let mut of_schemes = BTreeSet::new();
    for (section, heading) in headings.into_iter().rev() {
        let mut written = BTreeMap::new();
        for row in page.rows_below(heading) {
            written.insert(row[0].trim_matches('`').to_owned(), row[1].clone());
        }
        match section {
            "hmac" | "token" => of_schemes.extend(written.keys().cloned()),
            // The tables of the schemes are below its heading too.
            "sources" => written.retain(|key, _| !of_schemes.contains(key)),
            _ => {}
        }
        let mut wanted = example[section].clone();
        if section == "routes" {
            // A route has one consumer, so that an example shows one of the two.
            wanted.insert("pull".to_owned(), None);
        }
        let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(
            names(written.keys().collect()),
            names(wanted.keys().collect()),
            "the keys below {heading}"
        );
        for (key, default) in wanted {
            if let Some(default) = default {
                assert_eq!(written[&key], format!("`{default}`"), "the default of {key}");
            }
        }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A body as the table writes it: what differs from event to event left out.
fn shape(answer: &Answer) -> String {
    let mut text = String::from_utf8(answer.body.clone()).unwrap();
    for key in ["\"receipt\":\"", "\"detail\":\""] {
        if let Some(start) = text.find(key).map(|at| at + key.len()) {
            let end = start + text[start..].find('"').unwrap();
            text.replace_range(start..end, "…");
        }
    }
    if text.is_empty() { "none".to_owned() } else { format!("`{text}`") }
}

/// One request for each answer that a running server can be made to give at once.
fn provoked(public: SocketAddr) -> BTreeSet<(String, String)> {
    let token = ("X-Webhook-Token", dev::TOKEN);
    let json = ("Content-Type", "application/json");
    let (path, event) = ("/in/demo-token", br#"{"id":"evt_1","type":"a"}"#);
    let long = "x".repeat(70_000);
    let post = |path: &str, headers: &[(&str, &str)], body: &[u8]| {
        http::post(public, path, headers, body).unwrap()
    };
    let mut answers = vec![
        post(path, &[token, json], event),
        post(path, &[token, json], event),
        post(path, &[token, json], b"{}"),
        post(path, &[("X-Webhook-Token", "wrong-wrong-wrong"), json], event),
        post("/in/nobody", &[], b"{}"),
        http::get(public, path).unwrap(),
        post(path, &[token, ("Content-Encoding", "gzip")], event),
        post(path, &[token, ("Content-Length", "30000000")], b""),
        post(path, &[token, ("X-Long", &long)], event),
    ];
    let mut cut = Connection::open(public).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{{");
    cut.send(head.as_bytes()).unwrap();
    cut.finish_sending().unwrap();
    // Whoever closed the connection may not hear what was said about it.
    answers.extend(cut.answer().ok());
    let guess = || post(path, &[("X-Webhook-Token", "wrong-wrong-wrong")], event);
    answers.extend((0..70).map(|_| guess()).find(|answer| answer.status == 429));
    answers.iter().map(|answer| (answer.status.to_string(), shape(answer))).collect()
}

#[test]
fn the_table_of_answers_is_true() {
    let rows = page("README.md").rows_below("## The answers");
    let written: BTreeSet<_> =
        rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let place = Place::dev();
    let mut real = provoked(local(place.public));
    // These need another configuration, time or trouble; the tests of HTTP and faults have them.
    for (status, body) in [
        ("200", "`{\"status\":\"ignored\"}`"),
        ("202", "`{\"status\":\"accepted\",\"receipts\":[…]}`"),
        ("202", "`{\"status\":\"accepted\",\"receipt\":\"…\",\"note\":\"twin\"}`"),
        ("400", "`{\"error\":\"incomplete_body\"}`"),
        ("408", "`{\"error\":\"headers_too_slow\"}`"),
        ("408", "`{\"error\":\"body_too_slow\"}`"),
        ("503", "`{\"error\":\"unavailable\"}`"),
        ("503", "`{\"error\":\"not_processed\"}`"),
        ("200", "`{\"status\":\"processed\",\"receipt\":\"…\"}`"),
    ] {
        real.insert((status.to_owned(), body.to_owned()));
    }
    assert_eq!(written, real);
}

#[test]
fn metrics_and_outcomes_are_listed() {
    let text = page("docs/operating.md").text;
    let place = Place::dev();
    // A family of counters shows once one of them has counted.
    http::post(local(place.public), "/in/demo", &[], b"{}").unwrap();
    let answer = http::get(local(place.admin), "/metrics").unwrap();
    let metrics = String::from_utf8(answer.body).unwrap();
    let mut found = 0;
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(text.contains(&format!("| `{name}` |")), "docs/operating.md lacks {name}");
        found += 1;
    }
    let rows = page("docs/operating.md").rows_below("## Metrics");
    assert_eq!(rows.len(), found, "metrics that are not there are listed");
    for outcome in Outcome::ALL {
        assert!(text.contains(&format!("`{}`", outcome.as_str())), "{}", outcome.as_str());
    }
}

#[test]
fn reasons_are_explained() {
    let named: BTreeSet<String> =
        spans(&page("docs/troubleshooting.md").prose()).into_iter().collect();
    for code in Rejection::CODES.iter().chain(Malformed::CODES) {
        assert!(named.contains(*code), "docs/troubleshooting.md lacks {code}");
    }
}

/// The pages of `docs/providers` are those that the catalogue makes now.
#[test]
fn the_pages_of_providers_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_oncebox"))
        .args(["providers", "--pages"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let names = |folder: &Path| -> BTreeSet<String> {
        let files = fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    let kept = root().join("docs/providers");
    let fresh = names(folder.path());
    assert_eq!(names(&kept), fresh, "run `make provider-pages`");
    for name in fresh {
        let text = |folder: &Path| fs::read_to_string(folder.join(&name)).unwrap();
        assert!(text(&kept) == text(folder.path()), "{name} is old: run `make provider-pages`");
    }
}
