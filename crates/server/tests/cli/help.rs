//! Help, completions, manual pages and the catalogue.

use std::fs;
use std::process::{Command, Stdio};

use crate::bed::{oncebox, oncebox_in};

#[test]
fn every_command_of_ours_explains_itself_with_an_example() {
    for command in [
        &["verify"] as &[&str],
        &["providers"],
        &["send"],
        &["receipts"],
        &["receipts", "list"],
        &["receipts", "show"],
        &["receipts", "export"],
        &["receipts", "send"],
        &["sources"],
        &["sources", "list"],
        &["sources", "pair"],
        &["sources", "unpair"],
        &["sources", "secrets"],
        &["sources", "forget"],
        &["routes"],
        &["routes", "list"],
        &["routes", "pause"],
        &["routes", "resume"],
        &["deliveries"],
        &["deliveries", "list"],
        &["held"],
        &["held", "list"],
        &["held", "release"],
        &["audit"],
        &["audit", "list"],
        &["token"],
        &["token", "create"],
        &["token", "list"],
        &["token", "revoke"],
        &["dead"],
        &["dead", "list"],
        &["dead", "discard"],
        &["outbox"],
        &["outbox", "list"],
        &["outbox", "show"],
        &["outbox", "replay"],
        &["effects"],
        &["effects", "list"],
        &["effects", "show"],
        &["effects", "settle"],
        &["effects", "forget"],
        &["replay"],
        &["replays"],
        &["replays", "list"],
        &["replays", "show"],
        &["replays", "resume"],
        &["replays", "cancel"],
        &["completions"],
        &["man"],
    ] {
        let args: Vec<_> = command.iter().copied().chain(["--help"]).collect();
        oncebox(&args).exits(0).prints("Examples:").prints("oncebox ").prints("--config");
    }
    oncebox(&["--help"]).exits(0).prints("Exit codes:");
    oncebox(&["no-such-command"]).exits(2);
    oncebox(&["verify"]).exits(2);
}

#[test]
fn completions_are_written_for_every_shell() {
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef oncebox"),
        ("fish", "complete -c oncebox"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        oncebox(&["completions", shell]).exits(0).prints(mark).prints("receipts");
    }
    // The script is too long for an argument.
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("completions.bash");
    fs::write(&script, oncebox(&["completions", "bash"]).exits(0).stdout).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&script).stderr(Stdio::null()).status();
    assert!(checked.unwrap().success(), "bash cannot parse its completions");
    oncebox(&["completions", "tcsh"]).exits(2);
}

#[test]
fn manual_pages_are_written_for_every_command() {
    oncebox(&["man"]).exits(0).prints(".TH oncebox 1").prints("oncebox\\-receipts(1)");
    let dir = tempfile::tempdir().unwrap();
    oncebox_in(dir.path(), &["man", "--dir", "pages"], b"").exits(0);
    for page in ["oncebox", "oncebox-send", "oncebox-receipts-list", "oncebox-token-create"] {
        let text = fs::read_to_string(dir.path().join(format!("pages/{page}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oncebox"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn providers_are_listed_searched_and_shown() {
    let all = oncebox(&["providers"]).exits(0);
    for name in ["stripe", "github", "slack", "standard-webhooks", "hmac", "token"] {
        assert!(all.stdout.lines().any(|line| line.starts_with(name)), "{name} in {all}");
    }
    oncebox(&["providers", "standard"]).exits(0).prints("standard-webhooks");
    oncebox(&["providers", "strpe"]).exits(3).tells("did you mean `stripe`?");

    let json = oncebox(&["providers", "--json"]).exits(0).json();
    assert_eq!(json.len(), oncebox_verify::catalogue::ALL.len());
    for provider in json {
        let name = provider["provider"].as_str().unwrap();
        assert!(provider["docs"].as_str().unwrap().starts_with("https://"), "{name}");
        provider["config"].as_str().unwrap().parse::<toml::Table>().unwrap();
        oncebox_shows(name);
    }
}

fn oncebox_shows(name: &str) {
    let shown = oncebox(&["providers", name]).exits(0).prints("secret").prints("retries");
    assert!(shown.stdout.contains(&format!("[sources.{name}]")), "{shown}");
    assert!(shown.stdout.contains(&format!("/in/{name}")), "{shown}");
}

#[test]
fn a_provider_tells_how_to_set_it_up() {
    let shown = oncebox(&["providers", "stripe"]).exits(0);
    insta::assert_snapshot!(shown.stdout, @r#"
    Stripe

      secret     Workbench, Webhooks, your endpoint, Signing secret (whsec_...).
      paste      into oncebox.toml:

          [sources.stripe]
          provider = "stripe"
          secrets = ["env:STRIPE_SECRET"]

      URL        https://YOUR-HOST/in/stripe
      signature  hmac-sha256 in stripe-signature v1= over {timestamp}.{body}; the time in
                 stripe-signature t= may be 5m off
      identity   /id of the body (signed)
      twins      none: the identity is signed, so a copy is a duplicate.
      conflicts  held. An identity stands for one event, so other content under it is not
                 expected.
      ordering   /created of the body orders the events of /data/object/id of the body, or
                 /related_object/id of the body
      retries    Retries for up to three days, with growing pauses. Identities must be kept
                 for 3d.
      missed     GET /v1/events lists 30 days; with delivery_success=false also what is
                 pending, of any endpoint.
      note       The version is the time of the event, not of the object: order is not
                 guaranteed, so read the object again where order matters.
      docs       https://docs.stripe.com/webhooks/signature
      try        oncebox send stripe
    "#);
}

/// What happens to odd arrivals, and why.
#[test]
fn a_provider_tells_what_happens_to_odd_arrivals() {
    let shopify = oncebox(&["providers", "shopify"]).exits(0);
    shopify.prints("held. Orders").prints("the first of each is delivered and marked");
    oncebox(&["providers", "github"]).exits(0).prints("delivered and marked. Some events");
    let odd = oncebox(&["providers", "shopify", "--json"]).exits(0).json()[0]["odd"].clone();
    assert_eq!((&odd["twins"]["act"], &odd["types_share_body"]), (&"hold".into(), &true.into()));
    assert_eq!(odd["conflicts"]["act"], "hold");
    assert!(odd["twins"]["why"].as_str().unwrap().ends_with('.'), "{odd}");
}
