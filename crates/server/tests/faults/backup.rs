//! `oncebox backup` under load, and what is there after a restore.

use std::fs;
use std::path::Path;

use oncebox_testkit::http::{Answer, Connection};
use oncebox_testkit::process::ServerProcess;
use serde_json::{Value, json};

use crate::bed::{Bed, ROUTE, SECRET, body, post, signed_request};
use crate::chance::Chance;
use crate::load::{Ledger, Load};

fn backup(bed: &Bed, args: &[&str]) -> crate::bed::Run {
    let to = bed.home.path().join("copy.db");
    let mut all = vec!["backup", to.to_str().unwrap()];
    all.extend(args);
    bed.oncebox(&all)
}

/// A token that may pull.
fn token(bed: &Bed) -> String {
    let run = bed.oncebox(&["token", "create", "worker", "--scope", "pull"]);
    assert_eq!(run.code, Some(0), "{run}");
    run.stdout.trim().to_owned()
}

fn api(server: &ServerProcess, token: &str, path: &str, body: &Value) -> Answer {
    let mut connection = Connection::open(server.addresses().admin).unwrap();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let path = format!("/api/v1{path}");
    connection.request("POST", &path, &headers, body.to_string().as_bytes()).unwrap()
}

fn claim(server: &ServerProcess, token: &str) -> Value {
    let ask = json!({ "max": 1, "lease": "1h" });
    let answer = api(server, token, &format!("/routes/{ROUTE}/claim"), &ask);
    answer.json()["deliveries"][0].clone()
}

fn complete(server: &ServerProcess, token: &str, claimed: &Value) -> Answer {
    let path = format!("/deliveries/{}/complete", claimed["delivery"].as_str().unwrap());
    api(server, token, &path, &json!({ "lease": claimed["lease"] }))
}

/// Puts the copy in the place of the store, as the documentation says.
fn restore(bed: &Bed, copy: &Path) {
    for end in ["", "-wal", "-shm"] {
        let file = format!("{}{end}", bed.file().display());
        if Path::new(&file).exists() {
            fs::rename(&file, format!("{file}.old")).unwrap();
        }
    }
    fs::copy(copy, bed.file()).unwrap();
}

#[test]
fn a_backup_under_load_has_everything_acknowledged_before_it() {
    let bed = Bed::sqlite();
    let mut server = bed.serve();
    let ledger = Ledger::new();
    let load = Load::on(&ledger, server.addresses().public, &mut Chance::new());
    ledger.wait_for_acks(200);
    let token = token(&bed);
    let before = claim(&server, &token);
    let acknowledged = ledger.acknowledged(0);

    let run = backup(&bed, &[]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("copying"), "{run}");
    // The server went on meanwhile, and after it.
    ledger.wait_for_acks(50);
    let after = claim(&server, &token);
    server.kill();
    load.end();
    assert_eq!(ledger.wrong(), Vec::<String>::new());

    restore(&bed, &bed.home.path().join("copy.db"));
    let server = bed.serve();
    let (public, sent) = (server.addresses().public, ledger.sent());
    let mut connection = Connection::open(public).unwrap();
    for id in &acknowledged {
        connection.send(&signed_request(body(id), SECRET)).unwrap();
        let answer = connection.answer().unwrap();
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
        assert_eq!(answer.json()["receipt"].as_str(), sent[id].as_deref());
    }
    // Leases from before the restore are void, be the delivery in the copy or not.
    for claimed in [&before, &after] {
        let answer = complete(&server, &token, claimed);
        assert!([404, 409].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(complete(&server, &token, &before).status, 409);
    let again = claim(&server, &token);
    assert_eq!(complete(&server, &token, &again).status, 200);
}

#[test]
fn a_backup_replaces_nothing_unasked() {
    let bed = Bed::sqlite();
    let mut server = bed.serve();
    assert_eq!(post(server.addresses().public, "evt_1").status, 202);
    let copy = bed.home.path().join("copy.db");
    fs::write(&copy, "precious").unwrap();
    let run = backup(&bed, &[]);
    assert_eq!(run.code, Some(69), "{run}");
    assert!(run.stderr.contains("--force"), "{run}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "precious");
    let run = backup(&bed, &["--force", "--json"]);
    assert_eq!(run.code, Some(0), "{run}");
    let told: Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert_eq!(told["bytes"].as_u64(), Some(fs::metadata(&copy).unwrap().len()));
    // Nothing but the copy was left, and only its owner reads it.
    let files = fs::read_dir(bed.home.path()).unwrap();
    let names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(
        !names.iter().any(|name| name.starts_with("copy.db") && name != "copy.db"),
        "{names:?}"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&copy).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let itself = bed.file();
    let run = bed.oncebox(&["backup", "--force", itself.to_str().unwrap()]);
    assert_eq!(run.code, Some(69), "{run}");
    fs::write(bed.home.path().join("other.db-wal"), "a log").unwrap();
    let other = bed.home.path().join("other.db");
    let run = bed.oncebox(&["backup", other.to_str().unwrap()]);
    assert_eq!(run.code, Some(69), "{run}");
    server.terminate();
    server.wait();
}

#[test]
fn on_postgres_it_says_which_tool_to_use() {
    let bed = Bed::postgres();
    let run = backup(&bed, &[]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("pg_basebackup") && run.stderr.contains("pg_dump"), "{run}");
    assert!(!bed.home.path().join("copy.db").exists());
}
