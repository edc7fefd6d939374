//! Senders without a secret, many bytes and much time: what they hold, and whom they keep waiting.

use std::time::{Duration, Instant};

use oncebox::clock::Clock as _;
use oncebox_drill::Event;
use oncebox_verify::{Draft, QUESTION_BYTES_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Answer, Bed, SOURCES, head, head_exactly, wire};
use crate::every_provider::played_providers;

const LARGEST: &str = "26214400";

/// The usual head of an event without its proof.
fn unsigned(bed: &Bed) -> Draft {
    let mut event = bed.event("evt_1");
    event.headers.remove("stripe-signature");
    event
}

/// A signature that could be right until the body has come.
fn forged(bed: &Bed, length: usize) -> Draft {
    let mut event = bed.event("evt_1");
    event.body = vec![b'x'; length];
    event
}

/// Sends the head of a request with a body of the largest size, and a megabyte of that.
async fn hang(bed: &Bed, source: &str, draft: &Draft) -> TcpStream {
    let mut stream = bed.connect().await;
    let head = head_exactly(&format!("/in/{source}"), draft, &[("content-length", LARGEST)]);
    stream.write_all(&head).await.unwrap();
    let _ = stream.write_all(&vec![b'x'; 1 << 20]).await;
    stream
}

/// Three connections without a signature held all memory for as long as a body may take, and
/// all other senders were told 503. They are refused before they have sent it.
#[tokio::test]
async fn uploads_without_a_signature_are_refused_before_their_body() {
    let bed = Bed::start().await;
    let mut malformed = unsigned(&bed);
    malformed.headers.insert("stripe-signature", "t=1,v1=zz".parse().unwrap());
    let mut token = unsigned(&bed);
    token.headers.remove("x-webhook-token");
    for (source, draft) in [("stripe", &unsigned(&bed)), ("stripe", &malformed), ("token", &token)]
    {
        let mut stream = hang(&bed, source, draft).await;
        let answer = Answer::read(&mut stream).await.expect("an answer before the body");
        answer.assert_rejected(source);
        assert!(answer.closes(), "{source}: a body that may not end is not read");
        assert_eq!(bed.server.inbox.memory.available_permits(), 64 << 20, "{source}");
    }
    bed.assert_untouched("an upload without a signature").await;
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
    let missing = r#"oncebox_rejections_total{source="stripe",reason="missing_header"}"#;
    assert_eq!(bed.metric(missing).await, 1.0);
}

/// A sender that reads nothing before it has sent everything hears the answer, not a reset.
#[tokio::test]
async fn the_refusal_reaches_a_sender_that_is_still_sending() {
    let bed = Bed::start().await;
    let mut draft = unsigned(&bed);
    draft.body = vec![b'x'; 20 << 20];
    let mut stream = bed.connect().await;
    let request = wire("/in/stripe", &draft);
    let sending = tokio::time::timeout(Duration::from_secs(10), stream.write_all(&request)).await;
    sending.expect("the server reads on for a moment").expect("and does not reset");
    Answer::read(&mut stream).await.expect("the answer arrives").assert_rejected("unsigned");
}

/// What is small does not cost its sender the connection.
#[tokio::test]
async fn a_small_request_without_a_signature_keeps_its_connection() {
    let bed = Bed::start().await;
    let mut stream = bed.connect().await;
    for _ in 0..3 {
        stream.write_all(&wire("/in/stripe", &unsigned(&bed))).await.unwrap();
        let answer = Answer::read(&mut stream).await.unwrap();
        answer.assert_rejected("unsigned");
        assert!(!answer.closes());
    }
    stream.write_all(&wire("/in/stripe", &bed.event("evt_1"))).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 202);
}

/// Who asks first whether to send the body is told, and is not asked for it.
#[tokio::test]
async fn a_sender_that_asks_first_hears_the_refusal_alone() {
    let bed = Bed::start().await;
    let mut stream = bed.connect().await;
    let more = [("content-length", LARGEST), ("expect", "100-continue")];
    let head = head_exactly("/in/stripe", &unsigned(&bed), &more);
    stream.write_all(&head).await.unwrap();
    Answer::read(&mut stream).await.unwrap().assert_rejected("unsigned");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "and the connection ends");
}

/// Where a question is not signed, as much is read of an unsigned request as a question has.
#[tokio::test]
async fn what_can_only_be_a_question_is_small() {
    let asks = |provider: &oncebox_verify::Provider| {
        let mut open = provider.handshakes.iter().filter(|asked| !asked.signed);
        open.any(|asked| asked.methods.iter().any(|method| method == "POST"))
    };
    let played_providers = played_providers();
    let proves_by_header = |provider: &oncebox_verify::Provider| {
        provider.schemes.iter().all(|scheme| scheme.header().is_some())
    };
    let asking = played_providers.iter().filter(|played| asks(played.provider));
    let asking: Vec<_> = asking.filter(|played| proves_by_header(played.provider)).collect();
    assert!(!asking.is_empty());
    let sources: Vec<&str> = asking.iter().map(|played| played.source.as_str()).collect();
    let bed = Bed::configured(&sources.join("\n")).await;
    for played in asking {
        let name = &*played.provider.name;
        let event = Event::new("evt_1");
        let url = format!("https://hooks.example.com/in/{name}");
        let signed = played.simulator.draft(&url, &event, bed.clock.now()).unwrap();
        let bare = Draft { headers: http::HeaderMap::new(), ..signed };
        let mut stream = bed.connect().await;
        let length = (QUESTION_BYTES_MAX + 1).to_string();
        let path = format!("/in/{name}");
        let head = head_exactly(&path, &bare, &[("content-length", &length)]);
        stream.write_all(&head).await.unwrap();
        let answer = Answer::read(&mut stream).await.expect("an answer before the body");
        assert_eq!(answer.status, 401, "{name}");
        // One of that size is read to its end.
        let largest = Draft { body: vec![b' '; QUESTION_BYTES_MAX], ..bare.clone() };
        assert_eq!(bed.raw(&wire(&path, &largest)).await.status, 401, "{name}");
    }
}

fn behind_proxy(more: &str) -> String {
    format!("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{more}\n{SOURCES}")
}

fn from(address: &str, mut draft: Draft) -> Draft {
    draft.headers.insert("x-forwarded-for", address.parse().unwrap());
    draft
}

/// One address, or one network of IPv6, takes its share of the memory for bodies and no more.
#[tokio::test]
async fn an_address_has_its_share_of_the_memory() {
    let sizes = "max_body = \"1MiB\"\nmemory_budget = \"4MiB\"";
    let bed = Bed::configured(&behind_proxy(sizes)).await;
    let mut hanging = Vec::new();
    for (address, again) in [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::2:1")] {
        let free = bed.server.inbox.memory.available_permits();
        let draft = from(address, forged(&bed, 900 << 10));
        let request = wire("/in/stripe", &draft);
        let mut first = bed.connect().await;
        first.write_all(&request[..request.len() - 1]).await.unwrap();
        bed.until_memory(move |left| left + (800 << 10) <= free).await;
        let second = bed.post("stripe", &from(again, forged(&bed, 900 << 10))).await;
        second.assert_unavailable("the share of this address is taken");
        // Small events of the same address go on.
        let small = from(again, bed.event(&format!("evt_{address}")));
        assert_eq!(bed.post("stripe", &small).await.status, 202);
        hanging.push(first);
    }
    let fill = "x".repeat(900 << 10);
    let large = bed.signed_body(format!(r#"{{"id":"evt_2","type":"x","fill":"{fill}"}}"#));
    let answer = bed.post("stripe", &from("192.0.2.2", large.clone())).await;
    assert_eq!(answer.status, 202, "another address has its own share");
    let refused = r#"oncebox_unavailable_total{source="stripe",reason="memory_per_address"}"#;
    assert_eq!(bed.metric(refused).await, 2.0);
    drop(hanging);
    bed.until_memory(|free| free == 4 << 20).await;
    assert_eq!(bed.post("stripe", &from("192.0.2.1", large)).await.status, 200, "given back");
}

/// Several addresses together take three quarters of the memory. What comes in one piece, as most
/// events do, has the last quarter.
#[tokio::test]
async fn slow_bodies_of_several_addresses_leave_room_for_others() {
    let sizes = "max_body = \"1MiB\"\nmemory_budget = \"4MiB\"";
    let bed = Bed::configured(&behind_proxy(sizes)).await;
    let mut hanging = Vec::new();
    for number in 1..=3 {
        let draft = from(&format!("192.0.2.{number}"), forged(&bed, 1 << 20));
        let request = wire("/in/stripe", &draft);
        let mut stream = bed.connect().await;
        stream.write_all(&request[..request.len() - 1]).await.unwrap();
        bed.until_memory(move |free| free <= (4 - number) * (1 << 20) + number).await;
        hanging.push(stream);
    }
    let fourth = bed.post("stripe", &from("192.0.2.4", forged(&bed, 1 << 20))).await;
    fourth.assert_unavailable("three quarters are taken");
    let small = bed.post("stripe", &from("192.0.2.5", bed.event("evt_1"))).await;
    assert_eq!(small.status, 202, "what comes in one piece is taken");
    drop(hanging);
    bed.until_memory(|free| free == 4 << 20).await;
    let again = bed.post("stripe", &from("192.0.2.4", forged(&bed, 1 << 20))).await;
    again.assert_rejected("there is room again");
}

/// Who has sent much and stops holds its memory for a quarter of the time a body may take.
#[tokio::test]
async fn an_upload_that_stops_is_given_up_early() {
    let bed = Bed::with("[server]\nbody_timeout = \"8s\"").await;
    let mut stream = hang(&bed, "stripe", &forged(&bed, 0)).await;
    let began = Instant::now();
    let answer = Answer::read(&mut stream).await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (408, r#"{"error":"body_too_slow"}"#));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bed.assert_untouched("an upload that stopped").await;
}

/// Twenty-five megabytes of small numbers keep no other sender waiting.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_of_millions_keeps_no_sender_waiting() {
    let zoom = "[sources.zoom]\nprovider = \"zoom\"\nsecrets = [\"canary-zoom-secret\"]\n";
    let bed = Bed::with(zoom).await;
    let mut draft = bed.signed("zoom", "canary-zoom-secret", "evt_1");
    draft.body = format!("[{}1]", "1,".repeat(12 << 20)).into_bytes();
    let inbox = bed.server.inbox.clone();
    let turns = u32::try_from(inbox.heavy.available_permits()).unwrap();
    let turns = inbox.heavy.acquire_many(turns).await.unwrap();
    let request = [head("/in/zoom", &draft, &[]), draft.body.clone()].concat();
    let mut stream = bed.connect().await;
    let sending = tokio::spawn(async move {
        stream.write_all(&request).await.unwrap();
        Answer::read(&mut stream).await.unwrap().status
    });
    bed.until_memory(|free| free <= (64 << 20) - (24 << 20)).await;
    // Nothing was done with it: its turn has not come, and others have theirs.
    for number in 0..20 {
        let event = bed.event(&format!("evt_{number}"));
        assert_eq!(bed.post("stripe", &event).await.status, 202);
    }
    assert!(!sending.is_finished());
    drop(turns);
    assert_eq!(sending.await.unwrap(), 401);
}
