//! The lines `oncebox dev` prints work when pasted.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use oncebox_server::dev;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::wait;

use crate::bed::{Run, oncebox_in};

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
        &["webhook", "evt_1", "outcome=\"accepted\""] as &[&str],
        &["delivery", "evt_1", "attempt=1", "outcome=\"retry\"", "not yet awake"],
        &["delivery", "evt_1", "attempt=2", "outcome=\"processed\"", "status=200"],
    ];
    for words in expected {
        let is_told = || {
            let text = std::fs::read_to_string(&terminal).unwrap();
            text.lines().any(|line| words.iter().all(|word| line.contains(word)))
        };
        wait::until(&format!("{words:?} is told"), is_told);
    }
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
