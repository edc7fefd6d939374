//! What strangers can make the server hold in memory.

use std::io;
use std::net::SocketAddr;

use oncebox_testkit::http::Connection;

use crate::bed::{Bed, SOURCE, post};

/// Unoptimised, with SQLite's caches; an optimised server stays well below.
const PEAK_MAX: u64 = 200 << 20;

const SLOW: usize = 200;

/// Without one a request is refused before its body is read.
const FORGED: &str = "Stripe-Signature: t=1,v1=\
    0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn giants_and_crawlers_do_not_fill_the_memory() {
    let bed = Bed::sqlite();
    let server = bed.serve();
    let addr = server.addresses().public;

    // Connections that stop in the middle of a head, or of a body of the largest size.
    let crawling: Vec<_> = (0..SLOW).map(|n| crawl(addr, n % 2 == 0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_refused(&stream_body(addr, Some(100 << 20)), 413));
            scope.spawn(|| assert_refused(&stream_body(addr, None), 413));
            scope.spawn(|| assert_refused(&large_head(addr), 431));
            // As large as is allowed, from somebody without the secret.
            scope.spawn(|| assert_refused(&stream_body(addr, Some(25 << 20)), 401));
        }
    });
    assert_eq!(post(addr, "evt_after").status, 202);
    let peak = server.memory_peak_bytes();
    println!("the server held {peak} bytes");
    assert!(peak < PEAK_MAX, "the server held {peak} bytes");
    drop(crawling);
}

/// A refusal may come while we still send, and break the connection.
#[track_caller]
fn assert_refused(answer: &io::Result<u16>, status: u16) {
    match answer {
        Ok(answered) => assert!([status, 503].contains(answered), "{answered}"),
        Err(error) => {
            let broken = [
                io::ErrorKind::ConnectionReset,
                io::ErrorKind::BrokenPipe,
                io::ErrorKind::UnexpectedEof,
            ];
            assert!(broken.contains(&error.kind()), "{error}");
        }
    }
}

fn crawl(addr: SocketAddr, in_head: bool) -> Connection {
    let mut connection = Connection::open(addr).unwrap();
    let mut request = format!(
        "POST /in/{SOURCE} HTTP/1.1\r\nHost: x\r\n{FORGED}\r\nContent-Length: 26214400\r\n"
    );
    if in_head {
        request.push_str("X-Half");
    } else {
        request.push_str("\r\n");
        request.push_str(&"x".repeat(64 << 10));
    }
    connection.send(request.as_bytes()).unwrap();
    connection
}

/// As many bytes as are announced, or 100 MB in chunks.
fn stream_body(addr: SocketAddr, announced: Option<usize>) -> io::Result<u16> {
    let mut connection = Connection::open(addr)?;
    let length = announced.map_or_else(
        || "Transfer-Encoding: chunked".to_owned(),
        |length| format!("Content-Length: {length}"),
    );
    let head = format!("POST /in/{SOURCE} HTTP/1.1\r\nHost: x\r\n{FORGED}\r\n{length}\r\n\r\n");
    connection.send(head.as_bytes())?;
    let piece = vec![b'x'; 1 << 20];
    let mut sent = Ok(());
    for _ in 0..announced.unwrap_or(100 << 20) >> 20 {
        sent = match announced {
            Some(_) => connection.send(&piece),
            None => connection.send(&[&b"100000\r\n"[..], &piece, b"\r\n"].concat()),
        };
        if sent.is_err() {
            break;
        }
    }
    connection.answer().map(|answer| answer.status).map_err(|error| sent.err().unwrap_or(error))
}

fn large_head(addr: SocketAddr) -> io::Result<u16> {
    let mut connection = Connection::open(addr)?;
    let mut head = format!("POST /in/{SOURCE} HTTP/1.1\r\nHost: x\r\n");
    for n in 0..1024 {
        head.push_str(&format!("X-{n}: {}\r\n", "y".repeat(1024)));
    }
    let sent = connection.send(head.as_bytes());
    connection.answer().map(|answer| answer.status).map_err(|error| sent.err().unwrap_or(error))
}
