//! `oncebox send` against a receiver of our own that judges what it is sent.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::clock::{Clock, SystemClock};
use oncebox_verify::{Keyring, Provider, Request, Secret, identify, verify};

use crate::bed::{Run, SECRET, oncebox, oncebox_in, provider};

/// A receiver that keeps identities in memory and answers as ours does. It lives as long as the
/// test process.
fn receiver(provider: &'static Provider) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in/a", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let signed_url = url.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, url) = (Arc::clone(&seen), signed_url.clone());
            thread::spawn(move || answer(stream.unwrap(), provider, &url, &seen));
        }
    });
    url
}

fn answer(stream: TcpStream, provider: &Provider, url: &str, seen: &Mutex<HashSet<String>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let target = line.split(' ').nth(1).unwrap();
        let url = &target.split_once('?').map_or(url.to_owned(), |(_, q)| format!("{url}?{q}"));
        let mut headers = HeaderMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let length = headers["content-length"].to_str().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request = Request { method: "POST", url, headers: &headers, body: &body };
        let (status, text) = judge(provider, &request, seen);
        let length = text.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{text}");
        reader.get_mut().write_all(head.as_bytes()).unwrap();
    }
}

fn judge(
    provider: &Provider,
    request: &Request<'_>,
    seen: &Mutex<HashSet<String>>,
) -> (u16, &'static str) {
    let keyring = Keyring::new(provider, vec![Secret::new(SECRET)]).unwrap();
    if verify(provider, &keyring, request, SystemClock.now()).is_err() {
        return (401, r#"{"error":"invalid_signature"}"#);
    }
    let event = identify(provider, request).unwrap();
    if seen.lock().unwrap().insert(event.id.into_owned()) {
        (202, r#"{"status":"accepted","receipt":"0199c2f0-7e4a-7c3b-9d53-0242ac120002"}"#)
    } else {
        (200, r#"{"status":"duplicate","receipt":"0199c2f0-7e4a-7c3b-9d53-0242ac120002"}"#)
    }
}

fn send(name: &str, url: &str, more: &[&str]) -> Run {
    let mut args = vec!["send", name, "--to", url, "--secret", "env:CANARY"];
    args.extend(more);
    oncebox(&args)
}

#[test]
fn every_provider_can_be_played() {
    for provider in oncebox_verify::catalogue::ALL.iter().copied() {
        // Whose key is fetched signs with another than the secret.
        let is_shared = !provider.schemes[0].fetches_keys();
        if is_shared && Keyring::new(provider, vec![Secret::new(SECRET)]).is_ok() {
            let url = receiver(provider);
            send(&provider.name, &url, &[]).exits(0).prints("202").prints("accepted");
        }
    }
}

#[test]
fn copies_are_duplicates() {
    let url = receiver(provider("stripe"));
    let run = send("stripe", &url, &["--duplicate", "3", "--json"]).exits(0);
    let outcomes: Vec<_> = run.json().iter().map(|answer| answer["outcome"].clone()).collect();
    assert_eq!(outcomes, ["accepted", "duplicate", "duplicate"], "{run}");
    assert!(run.json().iter().all(|answer| answer["expected"] == true), "{run}");
}

#[test]
fn concurrent_copies_race_and_one_wins() {
    let url = receiver(provider("stripe"));
    let run = send("stripe", &url, &["--concurrent", "20", "--json"]).exits(0);
    let answers = run.json();
    assert_eq!(answers.len(), 20, "{run}");
    let accepted = answers.iter().filter(|answer| answer["outcome"] == "accepted").count();
    assert_eq!(accepted, 1, "{run}");
}

#[test]
fn what_should_be_refused_is_expected_to_be() {
    let url = receiver(provider("stripe"));
    send("stripe", &url, &["--tamper"]).exits(0).prints("401").prints("invalid_signature");
    send("stripe", &url, &["--age", "10m"]).exits(0).prints("401");
    send("stripe", &url, &["--age", "1m"]).exits(0).prints("202");
    let args = ["send", "stripe", "--to", &url, "--secret", "whsec_not_the_receivers"];
    oncebox(&args).exits(4).prints("401").tells("not every answer was as expected");
}

#[test]
fn an_event_is_what_it_was_asked_to_be() {
    let url = receiver(provider("stripe"));
    send("stripe", &url, &["--id", "evt_7", "--type", "invoice.voided"]).exits(0).prints("202");
    let again = send("stripe", &url, &["--id", "evt_7"]).exits(0).prints("duplicate");
    assert_eq!(again.stderr, "", "an answer says itself whether it is a duplicate");
    send("stripe", &url, &["--body", r#"{"id":"evt_8","type":"x"}"#]).exits(0).prints("202");
    send("stripe", &url, &["--body", r#"{"id":"evt_8","type":"x"}"#]).exits(0).prints("duplicate");
    send("stripe", &url, &["--body", "no-such-file"]).exits(2).tells("no-such-file");
}

#[test]
fn nobody_there_is_told() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/in/a");
    send("stripe", &url, &[]).exits(4).tells("refused").tells("oncebox dev");
    send("stripe", "localhost:8080/in/a", &[]).exits(2).tells("http://localhost:8080/in/a");
    oncebox(&["send", "strip", "--to", &url, "--secret", "env:CANARY"]).exits(3);
    oncebox(&["send", "stripe", "--duplicate", "0"]).exits(2);
    oncebox(&["send", "stripe", "--age", "soon"]).exits(2);
}

/// A receiver that answers everything alike.
fn always(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in/a", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64 << 10]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn an_answer_of_400_is_not_blamed_on_the_secret() {
    let url = always("HTTP/1.1 400 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let run = send("stripe", &url, &[]).exits(4).tells("not the signature");
    assert!(!run.stderr.contains("secret"), "{run}");
}

#[test]
fn what_is_kept_and_not_processed_is_told_as_kept() {
    let url = always(
        "HTTP/1.1 503 X\r\ncontent-length: 25\r\nconnection: close\r\n\r\n\
         {\"error\":\"not_processed\"}",
    );
    send("stripe", &url, &[]).exits(4).tells("is kept and not processed yet");
}

#[test]
fn a_failure_of_tls_is_told_as_one() {
    let url = always("HTTP/1.1 400 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let url = url.replace("http://", "https://");
    send("stripe", &url, &[]).exits(4).tells("it does not speak TLS");
    send("stripe", &url, &["--cacert", "none.pem"]).exits(2).tells("none.pem");
    send("stripe", &url, &["--cacert", "none.pem", "--insecure"]).exits(2);
}

#[test]
fn a_configuration_that_is_not_needed_may_be_broken() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("oncebox.toml"), "broken = [").unwrap();
    let url = receiver(provider("stripe"));
    let args = ["send", "stripe", "--to", &url, "--secret", "env:CANARY"];
    oncebox_in(dir.path(), &args, b"").exits(0).prints("accepted");
    oncebox_in(dir.path(), &["send", "stripe"], b"").exits(78);
}
