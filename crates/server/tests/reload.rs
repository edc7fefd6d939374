//! The real process: signals, reloads of a file, exit codes.

use std::path::Path;
use std::process::{Command, Output};

use oncebox::clock::{Clock, SystemClock};
use oncebox_testkit::http;
use oncebox_testkit::process::{Home, ServerProcess};
use oncebox_verify::{SampleEvent, Secret, catalogue, sample, sign};

const OLD: &str = "whsec_canary_old_secret";
const NEW: &str = "whsec_canary_new_secret";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_oncebox"))
}

fn source(secrets: &str) -> String {
    format!("[sources.stripe]\nprovider = \"stripe\"\nsecrets = [{secrets}]\n")
}

fn serve(home: &Home) -> ServerProcess {
    ServerProcess::serve(binary(), home, [("OLD_SECRET", OLD), ("NEW_SECRET", NEW)])
}

/// Posts a Stripe event signed with this secret; the status of the answer.
fn send(server: &ServerProcess, secret: &str, id: &str) -> u16 {
    let stripe = catalogue::find("stripe").unwrap();
    // The event is the same whenever it is sent: another body would be a conflict.
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    let event = SampleEvent { id, event_type: "", at, object: None };
    let draft =
        sign(stripe, &Secret::new(secret), sample(stripe, &event), SystemClock.now()).unwrap();
    let headers: Vec<_> = draft
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    http::post(server.addresses().public, "/in/stripe", &headers, &draft.body).unwrap().status
}

fn reload(server: &ServerProcess, message: &str) {
    let seen = server.lines();
    server.hang_up();
    server.wait_for_message_after(seen, message);
}

#[test]
fn a_hang_up_rotates_the_secret_and_a_broken_file_changes_nothing() {
    let home = Home::new();
    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    let mut server = serve(&home);
    assert_eq!(send(&server, OLD, "evt_1"), 202);
    assert_eq!(send(&server, NEW, "evt_2"), 401);

    home.configure("sqlite://oncebox.db", &source("\"env:NEW_SECRET\", \"env:OLD_SECRET\""));
    reload(&server, "configuration reloaded");
    assert_eq!(send(&server, OLD, "evt_3"), 202);
    assert_eq!(send(&server, NEW, "evt_4"), 202);

    let old = "the configuration was not reloaded; the old one stays";
    for broken in
        ["provider = ", "[sources.stripe]\nprovider = \"strip\"\n", &source("\"env:NONE\"")]
    {
        std::fs::write(home.config(), broken).unwrap();
        reload(&server, old);
        assert_eq!(send(&server, OLD, "evt_1"), 200);
    }

    home.configure("sqlite://oncebox.db", &source("\"env:NEW_SECRET\""));
    reload(&server, "configuration reloaded");
    assert_eq!(send(&server, OLD, "evt_5"), 401);
    assert_eq!(send(&server, NEW, "evt_3"), 200);

    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(!server.log().contains("canary"), "{}", server.log());
}

/// A reload that hangs does not keep the server from stopping, nor does the call it hangs in.
#[test]
fn a_reload_that_hangs_does_not_hold_up_the_end() {
    let home = Home::new();
    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    let mut server = serve(&home);
    server.addresses();
    std::fs::remove_file(home.config()).unwrap();
    assert!(Command::new("mkfifo").arg(home.config()).status().unwrap().success());
    server.hang_up();
    // Opens once the server reads it, and leaves it waiting for the first byte.
    let fifo = std::fs::OpenOptions::new().write(true).open(home.config()).unwrap();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(fifo);
}

/// A database that takes connections and says nothing.
#[test]
fn a_start_that_hangs_can_be_stopped() {
    let home = Home::new();
    let database = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = database.local_addr().unwrap().port();
    let url = format!("postgres://oncebox@127.0.0.1:{port}/oncebox");
    home.configure(&url, &source("\"env:OLD_SECRET\""));
    let mut server = serve(&home);
    let connection = database.accept().unwrap();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(connection);
}

/// Acknowledged means kept: also over a stop and a start.
#[test]
fn a_restart_remembers() {
    let home = Home::new();
    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    let mut server = serve(&home);
    assert_eq!(send(&server, OLD, "evt_1"), 202);
    server.terminate();
    assert!(server.wait().success());
    let mut server = serve(&home);
    assert_eq!(send(&server, OLD, "evt_1"), 200);
    server.kill();
    let server = serve(&home);
    assert_eq!(send(&server, OLD, "evt_1"), 200);
}

/// A whole server in one process: what it takes to hold a hundred megabytes off.
#[test]
#[cfg(target_os = "linux")]
fn large_bodies_do_not_fill_memory() {
    use std::io::Write;
    let home = Home::new();
    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    let server = serve(&home);
    let public = server.addresses().public;
    let senders: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(public).unwrap();
                let head =
                    "POST /in/stripe HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                let chunk = [&b"10000\r\n"[..], &[b'x'; 1 << 16], b"\r\n"].concat();
                for _ in 0..1600 {
                    if stream.write_all(&chunk).is_err() {
                        return;
                    }
                }
                panic!("the server took all of it");
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    let peak = server.memory_peak_bytes();
    // Bodies share 64 MiB; growing a buffer may hold it twice for a moment.
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
    assert_eq!(send(&server, OLD, "evt_1"), 202);
}

/// The memory of a server has its secrets in it: a crash writes it to no file, unless the operator
/// asks for that.
#[test]
#[cfg(target_os = "linux")]
fn a_crash_writes_no_secrets_to_a_file() {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    let limit = |pid: &str| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        line.split_whitespace().nth(4).unwrap().to_owned()
    };
    // The kernel gives what belongs to a process that must not be dumped to root.
    let owner = |pid: &str| fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid();
    let usual = (limit("self"), owner("self"));
    for (allowed, expected) in [("false", ("0".to_owned(), 0)), ("true", usual)] {
        let home = Home::new();
        home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
        let variables = [("OLD_SECRET", OLD), ("ONCEBOX__SERVER__CORE_DUMPS", allowed)];
        let server = ServerProcess::serve(binary(), &home, variables);
        let pid = server.pid().to_string();
        assert_eq!((limit(&pid), owner(&pid)), expected, "core_dumps = {allowed}");
        assert_eq!(send(&server, OLD, "evt_1"), 202);
    }
}

fn oncebox(home: &Home, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments).arg("--config").arg(home.config()).current_dir(home.path());
    command.env_remove("ONCEBOX_CONFIG").env("OLD_SECRET", OLD).env("SHORT", "1234567");
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}

#[test]
fn check_and_serve_refuse_what_cannot_be_served() {
    let home = Home::new();
    for (text, expected) in [
        (source("\"env:UNSET_SECRET\""), "UNSET_SECRET is not set"),
        (source("\"env:SHORT\""), "fewer than 8 characters"),
        (source("\"canary\""), "fewer than 8 characters"),
        (source("\"\""), "is empty"),
        (source(""), "has no secret"),
        ("[sources.stripe]\nprovder = \"stripe\"\n".to_owned(), "did you mean `provider`?"),
    ] {
        std::fs::write(home.config(), &text).unwrap();
        let output = oncebox(&home, &["check"]);
        assert_eq!(output.status.code(), Some(78), "{}", told(&output));
        let mut server = ServerProcess::serve(binary(), &home, [("SHORT", "1234567")]);
        assert_eq!(server.wait().code(), Some(78), "{}", server.log());
        assert!(told(&output).contains(expected), "{}", told(&output));
        server.wait_for(expected, |line| line.contains(expected).then_some(()));
        for told in [told(&output), server.log()] {
            assert!(!told.contains("canary"), "{told}");
        }
    }
    std::fs::write(home.config(), source("\"env:OLD_SECRET\"")).unwrap();
    let output = oncebox(&home, &["check"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("1 source"), "{}", told(&output));
}

#[test]
fn the_configuration_is_printed_without_secrets() {
    let home = Home::new();
    std::fs::write(home.config(), source("\"env:OLD_SECRET\", \"whsec_canary_literal\"")).unwrap();
    let output = oncebox(&home, &["config", "print"]);
    let printed = told(&output);
    assert!(printed.contains(r#"secrets = ["env:OLD_SECRET", "***"]"#), "{printed}");
    assert!(!printed.contains("canary"), "{printed}");
    let schema = oncebox(&home, &["config", "schema"]);
    serde_json::from_slice::<serde_json::Value>(&schema.stdout).unwrap();
}

#[test]
fn init_does_not_overwrite() {
    let home = Home::new();
    let _ = std::fs::remove_file(home.config());
    assert_eq!(oncebox(&home, &["config", "init"]).status.code(), Some(0));
    let first = std::fs::read_to_string(home.config()).unwrap();
    std::fs::write(home.config(), "# mine\n").unwrap();
    let refused = oncebox(&home, &["config", "init"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains("--force"), "{}", told(&refused));
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), "# mine\n");
    assert_eq!(oncebox(&home, &["config", "init", "--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), first);
}

#[test]
fn a_store_that_cannot_be_opened_is_69() {
    let home = Home::new();
    home.configure("sqlite://oncebox.toml/oncebox.db", &source("\"env:OLD_SECRET\""));
    let mut server = serve(&home);
    assert_eq!(server.wait().code(), Some(69), "{}", server.log());

    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    let first = serve(&home);
    first.addresses();
    let mut second = serve(&home);
    assert_eq!(second.wait().code(), Some(69), "{}", second.log());
    assert_eq!(send(&first, OLD, "evt_1"), 202);
}

#[test]
fn healthcheck_migrate_and_retention_work_beside_a_server() {
    let home = Home::new();
    home.configure("sqlite://oncebox.db", &source("\"env:OLD_SECRET\""));
    assert_eq!(oncebox(&home, &["migrate", "up"]).status.code(), Some(0));
    let status = oncebox(&home, &["migrate", "status", "--json"]);
    let first = status.stdout.split(|byte| *byte == b'\n').next().unwrap();
    let first: serde_json::Value = serde_json::from_slice(first).unwrap();
    assert!(first["applied_at"].is_string(), "{first}");

    let server = serve(&home);
    assert_eq!(send(&server, OLD, "evt_1"), 202);
    let ready = format!("http://{}/readyz", server.addresses().admin);
    let health = oncebox(&home, &["healthcheck", "--url", &ready]);
    assert_eq!(health.status.code(), Some(0), "{}", told(&health));
    let retention = oncebox(&home, &["retention", "run"]);
    assert_eq!(told(&retention).trim(), "removed 0 receipts, 0 identities and 0 effects");
    let audit = oncebox(&home, &["audit", "list"]);
    assert!(told(&audit).contains("retention.run"), "{}", told(&audit));
    drop(server);
    let health = oncebox(&home, &["healthcheck", "--url", &ready]);
    assert_eq!(health.status.code(), Some(1), "{}", told(&health));
}
