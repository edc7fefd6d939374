//! Processes and the HTTP client, against a shell that plays the server.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use oncebox_testkit::http::{self, AsyncConnection, Connection, request_bytes};
use oncebox_testkit::process::{Home, ServerProcess};
use oncebox_testkit::wait;

const NO_ENVS: [(&str, &str); 0] = [];

fn shell(script: &str) -> ServerProcess {
    ServerProcess::spawn(Path::new("sh"), ["-c", script], NO_ENVS)
}

#[test]
fn addresses_are_read_from_either_form_of_log() {
    for line in [
        r#"{"level":"INFO","fields":{"message":"listening","public":"127.0.0.1:1","admin":"[::1]:2"}}"#,
        r#"{"message":"listening","public":"127.0.0.1:1","admin":"[::1]:2"}"#,
    ] {
        let server = shell(&format!("echo starting >&2; echo '{line}' >&2; exec sleep 60"));
        let addresses = server.addresses();
        assert_eq!(addresses.public, "127.0.0.1:1".parse().unwrap());
        assert_eq!(addresses.admin, "[::1]:2".parse().unwrap());
    }
}

#[test]
fn a_server_that_ends_early_fails_the_test_with_its_log() {
    let server = shell("echo the store is down >&2; exit 69");
    let failure = catch_unwind(AssertUnwindSafe(|| server.addresses())).unwrap_err();
    let message = failure.downcast_ref::<String>().unwrap();
    assert!(message.contains("the process ended"), "{message}");
    assert!(message.contains("the store is down"), "{message}");
}

#[test]
fn a_message_is_awaited_after_those_already_seen() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let script = format!(
        r#"
        say() {{ echo "{{\"message\":\"reloaded\",\"generation\":$1}}"; }}
        say 1; until [ -e "{}" ]; do sleep 0.01; done; say 2; exec sleep 60"#,
        told.display()
    );
    let server = shell(&script);
    assert_eq!(server.wait_for_message("reloaded")["generation"], 1);
    let seen = server.lines();
    std::fs::write(&told, "").unwrap();
    assert_eq!(server.wait_for_message_after(seen, "reloaded")["generation"], 2);
}

#[test]
fn signals_do_what_they_say() {
    // A shell that is about to start a command may miss a signal: none is started after "up".
    let mut polite = shell("sleep 60 & trap 'kill $!; exit 7' TERM; echo up; wait");
    polite.wait_for("up", |line| (line == "up").then_some(()));
    polite.terminate();
    assert_eq!(polite.wait().code(), Some(7));

    let mut killed = shell("exec sleep 60");
    assert_eq!(killed.kill().signal(), Some(9));
    assert!(killed.has_ended());
    killed.terminate();
}

#[cfg(target_os = "linux")]
#[test]
fn a_stopped_process_is_frozen_until_it_continues() {
    let server = shell("exec sleep 60");
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    server.stop();
    wait::until("it is stopped", || state() == 'T');
    server.cont();
    wait::until("it goes on", || state() == 'S');
    assert!(server.memory_peak_bytes() > 100 * 1024);
}

#[test]
fn a_dropped_process_is_dead() {
    let server = shell("exec sleep 60");
    let pid = server.pid().to_string();
    drop(server);
    assert!(!is_alive(&pid));
}

#[test]
fn a_process_does_not_outlive_a_killed_test() {
    let mut test = Command::new(env::current_exe().unwrap())
        .args(["--exact", "in_a_child_a_process_runs", "--nocapture"])
        .env(CHILD, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = BufReader::new(test.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("pid ")?.to_owned()))
        .expect("the child names its process");
    assert!(is_alive(&pid));
    test.kill().unwrap();
    test.wait().unwrap();
    wait::until("the process is dead", || !is_alive(&pid));
}

const CHILD: &str = "ONCEBOX_TESTKIT_CHILD";

/// Not a test of its own: what the child above runs until it is killed.
#[test]
fn in_a_child_a_process_runs() {
    if env::var_os(CHILD).is_some() {
        let server = shell("exec sleep 60");
        println!("\npid {}", server.pid());
        loop {
            std::thread::park();
        }
    }
}

/// Not counting a zombie, which nobody may be there to reap.
fn is_alive(pid: &str) -> bool {
    if Path::new("/proc/self/stat").exists() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        return stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
    }
    let state = Command::new("ps").args(["-o", "state=", "-p", pid]).output().unwrap().stdout;
    state.first().is_some_and(|state| *state != b'Z')
}

#[test]
fn serve_runs_in_its_home_with_its_configuration() {
    let home = Home::new();
    home.configure("sqlite://oncebox.db", "[sources.a]\nprovider = \"stripe\"\n");
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(text.contains("url = \"sqlite://oncebox.db\"") && text.ends_with("\"stripe\"\n"));

    let program = home.path().join("program");
    std::fs::write(&program, "#!/bin/sh\npwd\necho \"$1 $2 $3 $SECRET\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let mut server = ServerProcess::serve(&program, &home, [("SECRET", "s3cret")]);
    assert!(server.wait().success());
    let expected = format!("serve --config {} s3cret", home.config().display());
    server.wait_for("its arguments", |line| (line == expected).then_some(()));
}

#[test]
fn a_request_is_sent_as_given_and_its_answer_read() {
    let (addr, requests) = answering("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", 1);
    let answer =
        http::post(addr, "/in/demo", &[("X-Twice", "1"), ("x-twice", "2")], b"{}").unwrap();
    assert_eq!((answer.status, answer.json()), (202, serde_json::json!({})));
    assert!(answer.keeps_alive());
    assert_eq!(
        requests.join().unwrap(),
        "POST /in/demo HTTP/1.1\r\nHost: localhost\r\nX-Twice: 1\r\nx-twice: 2\r\n\
         Content-Length: 2\r\n\r\n{}"
    );
}

#[test]
fn pipelined_answers_come_in_order() {
    let two = "HTTP/1.1 202 Accepted\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\
               Connection: close\r\nContent-Length: 1\r\n\r\nb";
    let (addr, _requests) = answering(two, 1);
    let mut connection = Connection::open(addr).unwrap();
    connection.send(&request_bytes("POST", "/in/a", &[], b"1")).unwrap();
    assert_eq!(connection.answer().unwrap().text(), "a");
    let second = connection.answer().unwrap();
    assert_eq!((second.text().as_str(), second.keeps_alive()), ("b", false));
    assert!(connection.is_closed_by_server().unwrap());
}

#[test]
fn a_slow_sender_is_under_the_tests_control() {
    let (addr, requests) = answering("HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\n\r\n", 5);
    let mut connection = Connection::open(addr).unwrap();
    connection.send_slowly(b"POST / HTTP/1.1", |sent| sent < 5).unwrap();
    connection.finish_sending().unwrap();
    assert_eq!(connection.answer_within(Duration::from_secs(20)).unwrap().status, 408);
    assert_eq!(requests.join().unwrap(), "POST ");
}

#[tokio::test]
async fn the_asynchronous_client_does_the_same() {
    let (addr, requests) = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1);
    let mut connection = AsyncConnection::open(addr).await.unwrap();
    let answer = connection.request("GET", "/livez", &[], b"").await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
    assert_eq!(requests.join().unwrap(), "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/// A server for one connection: waits for `reads` reads, answers, closes, and tells what it got.
fn answering(answer: &'static str, reads: usize) -> (SocketAddr, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        let mut chunk = [0; 4096];
        for _ in 0..reads {
            match stream.read(&mut chunk).unwrap() {
                0 => break,
                length => received.extend_from_slice(&chunk[..length]),
            }
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(received).unwrap()
    });
    (addr, thread)
}
