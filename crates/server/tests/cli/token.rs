//! `oncebox token`.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::work::Work;

fn create(work: &Work, more: &[&str]) -> String {
    let args: Vec<_> = ["token", "create", "ci"].iter().chain(more).copied().collect();
    let run = work.run(&args).exits(0).tells("it is shown only this once");
    let token = run.stdout.trim().to_owned();
    assert!(!run.stderr.contains(secret_of(&token)), "{run}");
    token
}

fn secret_of(token: &str) -> &str {
    token.splitn(3, '_').nth(2).unwrap()
}

fn id_of(token: &str) -> &str {
    token.split('_').nth(1).unwrap()
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let work = Work::full();
    let token = create(&work, &["--scope", "pull:billing", "--scope", "view", "--by", "ada"]);
    let (id, secret) = (id_of(&token), secret_of(&token));
    assert!(token.starts_with("oncebox_"), "{token}");
    assert_eq!((id.len(), secret.len()), (12, 43), "{token}");

    let kept = work.block_on(work.store().tokens()).unwrap().remove(0);
    assert_eq!(kept.hash, <[u8; 32]>::from(Sha256::digest(secret)));
    let everything =
        work.bed.query("SELECT * FROM tokens") + &work.bed.query("SELECT * FROM audit");
    assert!(!everything.contains(secret), "{everything}");
    assert_eq!(work.acts()[0], format!("token.create {id} by ada: -"));

    let listed = work.run(&["token", "list", "--json"]).exits(0).json();
    assert_eq!(
        listed,
        [json!({
            "id": id,
            "name": "ci",
            "scopes": ["pull:billing", "view"],
            "created_at": kept.created_at.to_string(),
            "expires_at": null,
            "revoked_at": null,
            "works": true,
        })]
    );
    let table = work.run(&["token", "list"]).exits(0).tells("1 token");
    let table = table.prints(id).prints("pull:billing, view").prints("works");
    assert!(!table.stdout.contains(secret), "{table}");
}

#[test]
fn tokens_end() {
    let work = Work::full();
    let first = create(&work, &["--scope", "pull", "--expires", "90d"]);
    let second = create(&work, &["--scope", "admin"]);
    let args = ["token", "create", "json", "--scope", "pull", "--json", "--expires", "1s"];
    let third = work.run(&args).exits(0).json().remove(0);
    assert!(third["token"].as_str().unwrap().contains(third["id"].as_str().unwrap()));
    assert!(third["expires_at"].as_str().is_some());
    work.run(&["token", "list"]).exits(0).prints("expires in ");

    let why = ["--reason", "it was in a log", "--by", "ada"];
    let revoke = |id: &str| {
        let args: Vec<_> = ["token", "revoke", id].iter().chain(&why).copied().collect();
        work.run(&args)
    };
    revoke(id_of(&first)).exits(0).tells("revoked");
    revoke(id_of(&first)).exits(1).tells("was revoked before");
    revoke("000000000000").exits(3).tells("token list");
    // Whoever pastes the whole token means it, and does not see its secret again.
    let run = revoke(&second).exits(0).tells(id_of(&second));
    assert!(!run.stderr.contains(secret_of(&second)), "{run}");
    let acts = work.acts();
    assert_eq!(acts[1], format!("token.revoke {} by ada: it was in a log", id_of(&first)));
    assert_eq!(acts.len(), 6, "{acts:?}");

    let all = work.run(&["token", "list", "--json"]).exits(0).json();
    let works = |id: &str| {
        let token = all.iter().find(|token| token["id"] == id).unwrap();
        (token["works"].as_bool().unwrap(), token["revoked_at"] != Value::Null)
    };
    assert_eq!(works(id_of(&first)), (false, true));
    assert_eq!(works(id_of(&second)), (false, true));
    work.run(&["token", "list"]).exits(0).prints("revoked ").tells("3 tokens");
}

#[test]
fn a_token_that_could_do_nothing_is_not_made() {
    let work = Work::full();
    let create = |args: &[&str]| {
        let args: Vec<_> = ["token", "create"].iter().chain(args).copied().collect();
        work.run(&args)
    };
    create(&["ci"]).exits(2).tells("--scope");
    create(&["ci", "--scope", "root"]).exits(2).tells("there are pull, pull:ROUTE, view");
    create(&["ci", "--scope", "pull", "--expires", "0s"]).exits(2).tells("--expires");
    create(&["ci", "--scope", "pull", "--expires", "4000000000d"]).exits(2).tells("--expires");
    create(&["ci", "--scope", "pull", "--expires", "soon"]).exits(2);
    create(&[" ", "--scope", "pull"]).exits(2);
    create(&[&"x".repeat(600), "--scope", "pull"]).exits(2);
    work.run(&["token", "list"]).exits(0).tells("0 tokens");
    // It may be for a route that comes with the next configuration.
    create(&["ci", "--scope", "pull:new"])
        .exits(0)
        .tells("warning: the configuration has no route");
}
