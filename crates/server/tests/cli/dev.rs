//! The lines `oncebox dev` prints work when pasted.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use oncebox_server::{columns, dev};
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::wait;

use crate::bed::{Run, oncebox_in};
use crate::desk::Desk;

/// An `oncebox dev` in its own folder, stopped at the end of the test.
struct Dev {
    child: Child,
    /// Held open: whoever closes it tells the server that nobody listens any more.
    _stdout: BufReader<ChildStdout>,
}

impl Dev {
    /// Starts it and waits until it has told everything.
    fn start(dir: &Path) -> (Self, String) {
        Self::start_with(dir, &[], Stdio::null())
    }

    fn start_with(dir: &Path, args: &[&str], stderr: Stdio) -> (Self, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_oncebox"))
            .args(["dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut told = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        while !told.contains("Ctrl-C") {
            assert!(stdout.read_line(&mut told).unwrap() > 0, "dev ended after telling:\n{told}");
        }
        (Self { child, _stdout: stdout }, told)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_dev_tells_to_try_works() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, told) = Dev::start(dir.path());
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };

    let mut sent = 0;
    for line in told.lines().filter_map(|line| line.split_once("oncebox send ")) {
        let args: Vec<_> = ["send"].into_iter().chain(line.1.split_whitespace()).collect();
        run(&args).exits(0);
        sent += 1;
    }
    assert!(sent >= 3, "{told}");
    run(&["send", "demo", "--id", "evt_1"]).exits(0).prints("duplicate");
    run(&["send", "stripe", "--id", "evt_1"]).exits(0).prints("duplicate");
    run(&["send", "demo-hmac", "--concurrent", "20"]).exits(0).prints("accepted");
    run(&["send", "demo-token", "--tamper"]).exits(0).prints("401");
    run(&["send", "nobody"]).exits(3).tells("demo-hmac");

    run(&["receipts", "list"]).exits(0).prints("evt_1").tells("3 receipts");
    run(&["receipts", "show", "evt_1", "--source", "demo"]).exits(0).prints("✓ matches");

    run(&["healthcheck"]).exits(0).prints("ready");
    run(&["config", "print"]).exits(0).prints("[sources.demo-hmac]");
    run(&["migrate", "status"]).exits(0);
    run(&["retention", "run"]).exits(0);
    run(&["check"]).exits(78);
}

/// Beside a configuration of one's own, what it tells to try still leads to it.
#[test]
fn dev_beside_a_configuration_names_its_own() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("oncebox.toml"), "[sources.a]\n").unwrap();
    let (_dev, told) = Dev::start(dir.path());
    let lines: Vec<_> = told.lines().filter_map(|line| line.split_once("oncebox send ")).collect();
    assert!(lines.len() >= 3, "{told}");
    for (_, args) in lines {
        let args: Vec<_> = ["send"].into_iter().chain(args.split_whitespace()).collect();
        oncebox_in(dir.path(), &args, b"").exits(0);
    }
    assert!(told.contains("receipts list --config .oncebox/dev.toml"), "{told}");
}

#[test]
fn an_address_to_forward_to_is_a_url() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["dev", "--forward-to", "127.0.0.1:3000"];
    oncebox_in(dir.path(), &args, b"")
        .exits(2)
        .tells("--forward-to")
        .tells("http://127.0.0.1:3000");
}

/// Accepted, refused once, tried again, processed: all of it in the terminal.
#[test]
fn dev_shows_the_whole_life_of_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let destination = Destination::start();
    destination.next(Behaviour::answer(503, &[("Oncebox-Reason", "not yet awake")]));
    let url = format!("http://{}/webhooks", destination.address());
    let terminal = dir.path().join("terminal");
    let stderr = std::fs::File::create(&terminal).unwrap();
    let (_dev, told) = Dev::start_with(dir.path(), &["--forward-to", &url], stderr.into());
    assert!(told.contains(&url) && told.contains(dev::ROUTE_SECRET), "{told}");

    oncebox_in(dir.path(), &["send", "demo", "--id", "evt_1"], b"").exits(0);
    let pushes = destination.wait_for(2);
    assert_eq!(pushes[1].target, "/webhooks");
    assert_eq!(pushes[1].header("oncebox-attempt"), Some("2"));
    let expected = [
        &["accepted", "demo", "evt_1"] as &[&str],
        &["retry", "→ demo", "evt_1", "#1 503", "again in"],
        &["processed", "→ demo", "evt_1", "#2 200"],
    ];
    for words in expected {
        let is_told = || {
            let text = std::fs::read_to_string(&terminal).unwrap();
            text.lines().any(|line| words.iter().all(|word| line.contains(word)))
        };
        wait::until(&format!("{words:?} is told"), is_told);
    }
    let told = std::fs::read_to_string(&terminal).unwrap();
    let wide = told.lines().find(|line| columns::width(line) > 80);
    assert_eq!(wide, None, "{told}");
    oncebox_in(dir.path(), &["receipts", "show", "evt_1", "--source", "demo"], b"")
        .exits(0)
        .prints("processed");
}

/// Without an app of one's own there is somebody to push to all the same.
#[test]
fn dev_has_a_destination_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, _) = Dev::start(dir.path());
    oncebox_in(dir.path(), &["send", "demo", "--id", "evt_1"], b"").exits(0);
    let show = || oncebox_in(dir.path(), &["receipts", "show", "evt_1", "--source", "demo"], b"");
    wait::until("it is processed", || show().stdout.contains("processed"));
}

#[test]
fn a_static_token_is_never_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, _) = Dev::start(dir.path());
    oncebox_in(dir.path(), &["send", "demo-token", "--id", "evt_1"], b"").exits(0);
    let args = ["receipts", "export", "--out", "captures", "--format", "http"];
    let exported = oncebox_in(dir.path(), &args, b"").exits(0).tells("can no longer be verified");
    assert!(!exported.stderr.contains("check one"), "{exported}");
    for args in [
        &["receipts", "show", "evt_1", "--source", "demo-token"] as &[&str],
        &["receipts", "show", "evt_1", "--source", "demo-token", "--json"],
        &["receipts", "export"],
    ] {
        let shown = oncebox_in(dir.path(), args, b"").exits(0).prints("x-webhook-token");
        assert!(!shown.stdout.contains(oncebox_server::dev::TOKEN), "{shown}");
    }
}

/// Wrong secret, everything rejected: `sources list` and `receipts list` say so, and why.
#[test]
fn what_is_rejected_is_told_and_can_be_looked_into() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, _) = Dev::start(dir.path());
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };
    for _ in 0..7 {
        run(&["send", "demo", "--tamper"]).exits(0);
    }
    let listed = || run(&["sources", "list"]);
    let all = "demo rejected 7 requests";
    wait::until("the rejected are told", || listed().stdout.contains(all));
    let list = listed().exits(0).prints("signature_mismatch").prints("never").prints("none of 1");
    list.prints("  → ").prints("oncebox sources rejected demo");
    run(&["receipts", "list"]).exits(0).tells("source demo rejected 7 requests");
    let object = run(&["sources", "list", "--json"]).exits(0).json().remove(0);
    assert_eq!(object["reason"], "signature_mismatch");
    assert_eq!(object["rejected_in_a_row"], 7);
    assert!(object["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{object}");
    assert_eq!(object["accepted_at"], serde_json::Value::Null);

    let kept = run(&["sources", "rejected", "demo", "--json"]).exits(0).json();
    assert_eq!(kept.len(), 7, "{kept:?}");
    assert_eq!(
        (&kept[0]["reason"], &kept[0]["unverified"]),
        (&serde_json::json!("signature_mismatch"), &serde_json::json!(true),)
    );
    let id = kept[0]["id"].as_str().unwrap();
    run(&["sources", "rejected"]).exits(0).prints("REASON").tells("7 rejected requests");
    for id in [id, &id[..18]] {
        let verdict = run(&["verify", id]).exits(4).prints("✗ signature");
        verdict.prints("rejected: the signature matches no configured secret");
    }
    // Nothing of it was delivered, or is a receipt.
    assert_eq!(run(&["receipts", "list", "--json", "--all"]).exits(0).stdout, "");
    run(&["receipts", "show", id]).exits(3);

    run(&["send", "demo", "--id", "evt_1"]).exits(0);
    let is_told = || listed().stdout.contains("1 of 1 (");
    wait::until("the secret in use is told", is_told);
    let list = listed().exits(0).prints("WHY").prints("signature_mismatch");
    assert!(!list.stdout.contains("rejected 7"), "{list}");
}

/// A request of another sender does not hide why the others are rejected.
#[test]
fn the_usual_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, told) = Dev::start(dir.path());
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };
    for _ in 0..6 {
        run(&["send", "demo", "--tamper"]).exits(0);
    }
    let base = told.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let url = format!("{}/in/demo", base.trim_end_matches('.'));
    run(&["send", "demo-hmac", "--to", &url]).exits(4).prints("401");
    let listed = || run(&["sources", "list", "--json"]).exits(0).json().remove(0);
    wait::until("all are told", || listed()["rejected_in_a_row"] == 7);
    assert_eq!(listed()["reason"], "signature_mismatch");
    run(&["healthcheck"]).prints("signature_mismatch (6 of them)");
    // Of one that was refused by its head the size is not known.
    let kept = || run(&["sources", "rejected", "demo"]).exits(0);
    wait::until("it is kept", || kept().stdout.contains("missing_header"));
    let kept = kept();
    let line = kept.stdout.lines().find(|line| line.contains("missing_header")).unwrap();
    assert!(!line.split_whitespace().any(|word| word == "0"), "{kept}");
}

/// A kept request is judged as the command line says.
#[test]
fn a_kept_request_is_judged_with_what_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, told) = Dev::start(dir.path());
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };
    let base = told.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let url = format!("{}/in/demo", base.trim_end_matches('.'));
    let other = "whsec_another_0123456789";
    run(&["send", "stripe", "--to", &url, "--secret", other]).exits(4).prints("401");
    let kept = || run(&["sources", "rejected", "demo", "--json"]).exits(0).json();
    wait::until("it is kept", || kept().len() == 1);
    let id = kept()[0]["id"].as_str().unwrap().to_owned();
    run(&["verify", &id]).exits(4).prints("✗ signature");
    run(&["verify", &id, "--secret", other]).exits(0).prints("verified");
    run(&["verify", &id, "--provider", "stripe", "--secret", other]).exits(0).prints("verified");
    run(&["verify", &id, "--provider", "github", "--secret", other]).exits(4);
    let late = run(&["verify", &id, "--secret", other, "--at", "2020-01-01", "--json"]).exits(4);
    assert_eq!(late.json()[0]["checked_at"], "2020-01-01T00:00:00Z", "{late}");
    run(&["verify", &id, "--set", "public_url=https://a.example"]).exits(2).tells("--provider");

    let gone = &id.replace(&id[..8], "00000000");
    let none = run(&["verify", gone]).exits(3).tells("no file and no kept request named");
    none.tells("for a day");
    let run = run(&["receipts", "show", &id]).exits(3);
    run.tells("rejected, and no receipt").tells(&format!("oncebox verify {id}"));
    // Without a store to look into, that is said.
    let empty = tempfile::tempdir().unwrap();
    oncebox_in(empty.path(), &["verify", &id], b"").exits(78).tells("oncebox.toml");
    let store = "[store]\nurl = \"sqlite://nowhere/inbox.db\"\n";
    std::fs::write(empty.path().join("oncebox.toml"), store).unwrap();
    oncebox_in(empty.path(), &["verify", &id], b"").exits(69).tells("nowhere");
}

/// What `.env` says is never shown, and what cannot be read of it keeps no command from its work.
#[test]
fn an_env_file_is_read_as_it_is() {
    let secret = "whsec_Y2FuYXJ5$HOME$x";
    let dir = tempfile::tempdir().unwrap();
    let env = format!("STRIPE_SECRET={secret}\nsome {secret} words\nOTHER='open {secret}\n");
    std::fs::write(dir.path().join(".env"), env).unwrap();
    let terminal = dir.path().join("terminal");
    let stderr = std::fs::File::create(&terminal).unwrap();
    let (_dev, told) = Dev::start_with(dir.path(), &["--provider", "stripe"], stderr.into());
    let told = told + &std::fs::read_to_string(&terminal).unwrap();
    assert!(!told.contains("Y2FuYXJ5"), "{told}");
    for line in [2, 3] {
        assert!(told.contains(&format!("warning: .env line {line} sets no variable")), "{told}");
    }
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };
    run(&["receipts", "list"]).exits(0).tells(".env line 2");
    let url = told.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let url = format!("{}/in/stripe", url.trim_end_matches('.'));
    // The `$` is part of the secret.
    run(&["send", "stripe", "--to", &url, "--secret", secret]).exits(0).prints("202");
    run(&["send", "stripe", "--config", "./.oncebox/dev.toml"]).exits(0).prints("202");

    std::fs::remove_file(dir.path().join(".env")).unwrap();
    std::fs::create_dir(dir.path().join(".env")).unwrap();
    let list = run(&["receipts", "list"]).exits(0);
    assert!(!list.stderr.contains(".env"), "{list}");
}

#[test]
fn dev_names_what_it_cannot_use() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["dev", "--listen", "192.0.2.1:8080"];
    let run = oncebox_in(dir.path(), &args, b"").exits(1);
    run.tells("cannot listen on 192.0.2.1:8080 (--listen)");
    std::fs::remove_dir_all(dir.path().join(".oncebox")).unwrap();
    std::fs::write(dir.path().join(".oncebox"), "a file").unwrap();
    oncebox_in(dir.path(), &["dev"], b"").exits(1).tells("cannot write .oncebox");
}

#[test]
fn tail_refuses_names_that_there_are_not() {
    let desk = Desk::new();
    for (flag, hint) in [("--source", "the sources are shop"), ("--route", "the routes are")] {
        let child = desk.start(&["tail", flag, "typo"]);
        let output = within_deadline(child);
        assert_eq!(output.status.code(), Some(3));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("`typo`") && told.contains(hint), "{told}");
    }
}

/// The output of a command that ends by itself; one that does not is killed.
fn within_deadline(mut child: Child) -> Output {
    wait::holds_within(wait::DEADLINE, || child.try_wait().unwrap().is_some());
    let _ = child.kill();
    child.wait_with_output().unwrap()
}

#[test]
fn a_token_of_a_rejected_request_is_kept_as_a_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, _) = Dev::start(dir.path());
    let run = |args: &[&str]| -> Run { oncebox_in(dir.path(), args, b"") };
    run(&["send", "demo-token", "--tamper"]).exits(0);
    let kept = || run(&["sources", "rejected", "demo-token", "--json"]).exits(0).json();
    wait::until("it is kept", || kept().len() == 1);
    let id = kept()[0]["id"].as_str().unwrap().to_owned();
    run(&["verify", &id]).exits(4).prints("holds a fingerprint");
    let file = std::fs::read(dir.path().join(".oncebox/dev.db")).unwrap();
    let wal = std::fs::read(dir.path().join(".oncebox/dev.db-wal")).unwrap_or_default();
    for bytes in [file, wal] {
        let token = dev::TOKEN.as_bytes();
        assert!(!bytes.windows(token.len()).any(|part| part == token), "the token was stored");
    }
}

/// A secret of one's own, from the command line or from `.env`.
#[test]
fn dev_takes_the_secret_that_a_provider_signs_with() {
    let secret = "whsec_Y2FuYXJ5LW5ldmVyLXByaW50ZWQtMTIz";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".env"), format!("# mine\nSTRIPE_SECRET='{secret}'\n")).unwrap();
    let args = ["--provider", "stripe"];
    {
        let (_dev, told) = Dev::start_with(dir.path(), &args, Stdio::null());
        assert!(told.contains("send stripe") && !told.contains(secret), "{told}");
        let sent = oncebox_in(dir.path(), &["send", "stripe", "--id", "evt_1"], b"");
        sent.exits(0).prints("accepted");
    }
    let args = ["--provider", "github", "--secret", "env:MINE"];
    std::fs::write(dir.path().join(".env"), format!("export MINE={secret}\n")).unwrap();
    let (_dev, _) = Dev::start_with(dir.path(), &args, Stdio::null());
    oncebox_in(dir.path(), &["send", "github"], b"").exits(0).prints("accepted");
    let text = std::fs::read_to_string(dir.path().join(".oncebox/dev.toml")).unwrap();
    assert!(text.contains("env:MINE") && !text.contains(secret), "{text}");
    let other = tempfile::tempdir().unwrap();
    oncebox_in(other.path(), &["dev", "--secret", "x"], b"").exits(2).tells("--provider");
    let args = ["dev", "--provider", "github", "--secret", "stripe=env:X"];
    oncebox_in(other.path(), &args, b"").exits(2).tells("add --provider stripe");
}

/// One short line per decision and attempt, as they come.
#[test]
fn tail_shows_what_happens() {
    let dir = tempfile::tempdir().unwrap();
    let (_dev, _) = Dev::start(dir.path());
    let tail = |args: &[&str]| {
        let file = std::fs::File::create(dir.path().join("tail")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
        command.arg("tail").args(args).current_dir(dir.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).spawn().unwrap()
    };
    let shown = || std::fs::read_to_string(dir.path().join("tail")).unwrap();
    let send = |id: &str| {
        oncebox_in(dir.path(), &["send", "demo", "--id", id], b"").exits(0);
        oncebox_in(dir.path(), &["send", "demo", "--tamper"], b"").exits(0);
    };
    let mut child = tail(&[]);
    // Servers see within a second or two that an `oncebox tail` watches.
    let mut number = 0;
    wait::until("lines are shown", || {
        number += 1;
        send(&format!("evt_{number}"));
        let shown = shown();
        ["accepted", "rejected", "processed", "→ demo"].iter().all(|word| shown.contains(word))
    });
    let wide = shown().lines().find(|line| columns::width(line) > 80).map(str::to_owned);
    assert_eq!(wide, None);
    child.kill().unwrap();
    child.wait().unwrap();

    let mut child = tail(&["--json", "--route", "demo"]);
    wait::until("objects are shown", || {
        number += 1;
        send(&format!("evt_{number}"));
        shown().contains("\"processed\"")
    });
    for line in shown().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["route"], "demo", "{line}");
        assert!(line["event_id"].as_str().is_some_and(|id| id.starts_with("evt_")), "{line}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
