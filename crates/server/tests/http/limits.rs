//! Limits on size, time, memory and rate, enforced while a request arrives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use oncebox_server::config::ServerConfig;
use oncebox_server::listener::{self, ListenerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::bed::{Answer, Bed, SOURCES, head, wire};

#[tokio::test]
async fn only_post_is_answered() {
    let bed = Bed::start().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let mut event = bed.event("evt_1");
        event.method = method.to_owned();
        let answer = bed.post("stripe", &event).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
    bed.assert_untouched("another method").await;
}

/// A gigabyte of zeroes in a megabyte: never unpacked, whatever its signature.
#[tokio::test]
async fn encoded_bodies_are_refused() {
    let bed = Bed::start().await;
    for encoding in ["gzip", "br", "deflate", "zstd", "identity, gzip", ""] {
        let event = bed.signed_body(vec![0x1f; 1 << 20]);
        let mut bytes = head("/in/stripe", &event, &[("content-encoding", encoding)]);
        bytes.extend_from_slice(&event.body);
        assert_eq!(bed.raw(&bytes).await.status, 415, "{encoding}");
    }
    bed.assert_untouched("an encoded body").await;
    let event = bed.event("evt_2");
    let mut bytes = head("/in/stripe", &event, &[("content-encoding", "Identity")]);
    bytes.extend_from_slice(&event.body);
    assert_eq!(bed.raw(&bytes).await.status, 202);
}

/// An announced length over the limit is refused before a byte of the body is read.
#[tokio::test]
async fn an_announced_length_over_the_limit_is_refused_at_once() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    for length in ["26214401", "104857600", "10737418240"] {
        let head = crate::bed::head_exactly("/in/stripe", &event, &[("content-length", length)]);
        let answer = bed.raw(&head).await;
        assert_eq!(answer.status, 413, "{length}");
        assert!(answer.closes(), "{length}");
    }
    bed.assert_untouched("a large body").await;
}

/// A hundred megabytes without an announced length: counted as they arrive, refused at the limit,
/// and never more than the limit in memory.
#[tokio::test]
async fn a_hundred_megabytes_are_refused_as_they_stream() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    let mut stream = bed.connect().await;
    let head = head("/in/stripe", &event, &[("transfer-encoding", "chunked")]);
    stream.write_all(&head).await.unwrap();
    let mut chunk = b"10000\r\n".to_vec();
    chunk.resize(chunk.len() + (64 << 10), b'x');
    chunk.extend_from_slice(b"\r\n");
    let memory = bed.server.inbox.memory.clone();
    let (mut sent, mut held) = (0, 0);
    for _ in 0..1600 {
        if stream.write_all(&chunk).await.is_err() {
            break;
        }
        sent += 64 << 10;
        held = held.max((64 << 20) - memory.available_permits());
    }
    assert!(sent < 60 << 20, "the server read {sent} bytes");
    assert!(held <= 25 << 20, "the server held {held} bytes");
    if let Some(answer) = Answer::read(&mut stream).await {
        assert_eq!(answer.status, 413);
    }
    bed.assert_untouched("a large body").await;
    assert_eq!(memory.available_permits(), 64 << 20);
    assert_eq!(bed.post("stripe", &event).await.status, 202);
}

#[tokio::test]
async fn bodies_up_to_the_limit_are_taken() {
    let bed = Bed::with("[server]\nmax_body = \"1MiB\"").await;
    let body = |length: usize| {
        let start = r#"{"id":"evt_1","type":"x","fill":""#;
        format!("{start}{}\"}}", "x".repeat(length - start.len() - 2))
    };
    let over = bed.signed_body(body((1 << 20) + 1));
    assert_eq!(bed.post("stripe", &over).await.status, 413);
    bed.assert_untouched("a body over the limit").await;
    let exact = bed.signed_body(body(1 << 20));
    assert_eq!(bed.post("stripe", &exact).await.status, 202);
}

#[tokio::test]
async fn a_megabyte_of_headers_is_refused() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    let long = "x".repeat(1 << 20);
    let answer = bed.raw(&head("/in/stripe", &event, &[("x-long", &long)])).await;
    assert_eq!(answer.status, 431);
    let many: Vec<(String, String)> =
        (0..1000).map(|number| (format!("x-{number}"), "y".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(bed.raw(&head("/in/stripe", &event, &many)).await.status, 431);
    let path = format!("/in/{}", "x".repeat(1 << 20));
    let answer = bed.raw(&wire(&path, &event)).await;
    assert!(matches!(answer.status, 414 | 431), "{}", answer.status);
    bed.assert_untouched("large headers").await;
}

/// A connection that trickles its headers is answered after the time they may take. One that has
/// begun no request, its first or a further one, is closed without a word.
#[tokio::test]
async fn slow_headers_are_answered_408() {
    let bed = Bed::with("[server]\nheader_timeout = \"200ms\"").await;
    let event = bed.event("evt_1");
    let mut stream = bed.connect().await;
    stream.write_all(&head("/in/stripe", &event, &[])[..40]).await.unwrap();
    let began = Instant::now();
    let answer = Answer::read(&mut stream).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
    assert_eq!((answer.status, answer.body.as_str()), (408, r#"{"error":"headers_too_slow"}"#));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert!(answer.closes());
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    bed.assert_untouched("slow headers").await;

    let mut silent = bed.connect().await;
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    let mut idle = bed.connect().await;
    idle.write_all(&wire("/in/stripe", &event)).await.unwrap();
    assert_eq!(Answer::read(&mut idle).await.unwrap().status, 202);
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn slow_bodies_are_answered_408() {
    let bed = Bed::with("[server]\nbody_timeout = \"200ms\"").await;
    let event = bed.event("evt_1");
    let mut stream = bed.connect().await;
    let request = wire("/in/stripe", &event);
    stream.write_all(&request[..request.len() - 1]).await.unwrap();
    let answer = Answer::read(&mut stream).await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (408, r#"{"error":"body_too_slow"}"#));
    assert!(answer.closes());
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    bed.assert_untouched("a slow body").await;
}

/// A body that keeps coming, a byte at a time, has no more time than any other.
#[tokio::test]
async fn a_trickling_body_does_not_extend_its_time() {
    let bed = Bed::with("[server]\nbody_timeout = \"300ms\"").await;
    let event = bed.event("evt_1");
    let stream = bed.connect().await;
    let (mut reading, mut writing) = stream.into_split();
    let request = wire("/in/stripe", &event);
    let trickle = tokio::spawn(async move {
        let _ = writing.write_all(&request[..request.len() - 200]).await;
        for byte in &request[request.len() - 200..] {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if writing.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    });
    let mut answer = Vec::new();
    let began = Instant::now();
    let _ = reading.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    assert!(began.elapsed() < Duration::from_secs(3));
    trickle.abort();
    bed.assert_untouched("a trickling body").await;
}

#[tokio::test]
async fn a_body_that_ends_early_is_not_stored() {
    let bed = Bed::start().await;
    let request = wire("/in/stripe", &bed.event("evt_1"));
    let mut stream = bed.connect().await;
    stream.write_all(&request[..request.len() - 1]).await.unwrap();
    stream.shutdown().await.unwrap();
    let _ = Answer::read(&mut stream).await;
    bed.assert_untouched("half a body").await;
}

/// The memory for bodies is shared; what does not fit is asked to come back.
#[tokio::test]
async fn bodies_share_a_budget_of_memory() {
    let bed = Bed::with("[server]\nmax_body = \"1MiB\"\nmemory_budget = \"1MiB\"").await;
    let event = bed.signed_body(format!(r#"{{"id":"evt_2","fill":"{}"}}"#, "x".repeat(700 << 10)));
    let mut first = bed.connect().await;
    let request = wire("/in/stripe", &event);
    first.write_all(&request[..request.len() - 1]).await.unwrap();
    bed.until_memory(|free| free <= 400 << 10).await;

    bed.post("stripe", &event).await.assert_unavailable("a body beyond the budget");
    assert_eq!(bed.post("stripe", &bed.event("evt_3")).await.status, 202);

    first.write_all(&request[request.len() - 1..]).await.unwrap();
    assert_eq!(Answer::read(&mut first).await.unwrap().status, 202);
    assert_eq!(bed.stored().await.len(), 2);
}

#[tokio::test]
async fn a_source_over_its_rate_asks_to_come_back() {
    let sources = SOURCES.replace("[sources.stripe]\n", "[sources.stripe]\nrate = 1\nburst = 2\n");
    let bed = Bed::configured(&sources).await;
    let mut refused = 0;
    for number in 0..6 {
        let answer = bed.post("stripe", &bed.event(&format!("evt_{number}"))).await;
        if answer.status != 202 {
            answer.assert_unavailable("an event over the rate");
            refused += 1;
        }
    }
    assert!(refused >= 3, "only {refused} of 6 were refused");
    assert_eq!(bed.stored().await.len(), 6 - refused);
    // Another source has its own.
    let other = bed.signed("stripe", "whsec_canary_other_secret", "evt_1");
    assert_eq!(bed.post("stripe-other", &other).await.status, 202);
}

/// A full house keeps newcomers waiting, not out.
#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let bed = Bed::with("[server]\nmax_connections = 2").await;
    let first = bed.connect().await;
    let second = bed.connect().await;
    let mut third = bed.connect().await;
    third.write_all(&wire("/in/stripe", &bed.event("evt_1"))).await.unwrap();
    let mut byte = [0; 1];
    let early = tokio::time::timeout(Duration::from_millis(200), third.peek(&mut byte)).await;
    assert!(early.is_err(), "the third connection was served beside two others");
    drop((first, second));
    assert_eq!(Answer::read(&mut third).await.unwrap().status, 202);
}

/// One address cannot take the places of all others; it hears so, and gets a place once it has
/// given one back.
#[tokio::test]
async fn an_address_has_its_share_of_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = ServerConfig { max_connections_per_address: 2, ..ServerConfig::default() };
    let options = ListenerOptions { exempt: Vec::new(), ..ListenerOptions::from(&config) };
    let answer = |_, _: Request<Incoming>| async { Response::new("x".to_owned()) };
    let stop = watch::Sender::new(false);
    tokio::spawn(listener::serve(listener, options, None, answer, stop.subscribe()));
    let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let ask = async |stream: &mut TcpStream| {
        stream.write_all(request).await.unwrap();
        Answer::read(stream).await.unwrap().status
    };
    let mut first = TcpStream::connect(address).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    assert_eq!((ask(&mut first).await, ask(&mut second).await), (200, 200));
    let mut third = TcpStream::connect(address).await.unwrap();
    let refused = Answer::read(&mut third).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    assert!(refused.body.contains("too_many_connections"), "{}", refused.body);
    drop(first);
    let again = async {
        loop {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let sent = stream.write_all(request).await.is_ok();
            if sent && Answer::read(&mut stream).await.is_some_and(|answer| answer.status == 200) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("its place is free again");
}

/// Behind a proxy all senders have its address, and on this machine there is no stranger.
#[test]
fn proxies_and_loopback_have_no_share() {
    let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let config = ServerConfig { trusted_proxies, ..ServerConfig::default() };
    let exempt = ListenerOptions::from(&config).exempt;
    let is_exempt = |address: &str| {
        let address: std::net::IpAddr = address.parse().unwrap();
        exempt.iter().any(|net| net.contains(&address))
    };
    assert!(["127.0.0.1", "127.9.9.9", "::1", "10.2.3.4"].into_iter().all(is_exempt));
    assert!(!["192.0.2.1", "2001:db8::1"].into_iter().any(is_exempt));
}

/// Whoever sends requests and never reads an answer loses its place.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ListenerOptions {
        max_connections: 1,
        max_per_address: 1,
        exempt: Vec::new(),
        max_headers: 8 << 10,
        header_timeout: Duration::from_secs(60),
        read_timeout: Duration::from_millis(100),
        drain_timeout: Duration::ZERO,
    };
    let answer = |_, _: Request<Incoming>| async { Response::new("x".repeat(64 << 10)) };
    let stop = watch::Sender::new(false);
    tokio::spawn(listener::serve(listener, options, None, answer, stop.subscribe()));

    let mut greedy = TcpStream::connect(address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let sending = async { while greedy.write_all(request).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), sending).await.expect("it is cut off");

    let mut other = TcpStream::connect(address).await.unwrap();
    other.write_all(request).await.unwrap();
    assert_eq!(Answer::read(&mut other).await.unwrap().status, 200);
}

/// What may be received can be queued.
#[tokio::test]
async fn bodies_larger_than_the_usual_queue_are_taken() {
    let bed = Bed::with("[server]\nmax_body = \"80MiB\"\nmemory_budget = \"80MiB\"").await;
    let fill = "x".repeat(70 << 20);
    let event = bed.signed_body(format!(r#"{{"id":"evt_1","type":"x","fill":"{fill}"}}"#));
    let answer = bed.post("stripe", &event).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
}

/// What takes long to verify waits for its turn beside everybody else, who do not.
#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_verified_beside_the_others() {
    let bed = Arc::new(Bed::start().await);
    let inbox = bed.server.inbox.clone();
    let turns = u32::try_from(inbox.heavy.available_permits()).unwrap();
    let turns = inbox.heavy.acquire_many(turns).await.unwrap();
    let free = inbox.memory.available_permits();
    let large = format!(r#"{{"id":"evt_1","type":"x","fill":"{}"}}"#, "x".repeat(2 << 20));
    let mut forged = bed.signed_body(large.clone());
    forged.body.push(b' ');
    let [right, wrong] = [bed.signed_body(large), forged].map(|draft| {
        let bed = bed.clone();
        tokio::spawn(async move { bed.post("stripe", &draft).await.status })
    });
    bed.until_memory(move |left| left + (4 << 20) <= free).await;
    assert_eq!(bed.post("stripe", &bed.event("evt_2")).await.status, 202);
    assert!(!right.is_finished() && !wrong.is_finished());
    drop(turns);
    assert_eq!((right.await.unwrap(), wrong.await.unwrap()), (202, 401));
}
