//! Requests as only raw sockets can send them: two lengths, two requests in one, no length.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bed::{Answer, Bed, head, head_exactly, wire};

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    bytes
}

/// Everything the server sends until it closes the connection.
async fn until_closed(bed: &Bed, bytes: &[u8]) -> String {
    let mut stream = bed.connect().await;
    stream.write_all(bytes).await.unwrap();
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers).await;
    String::from_utf8(answers).unwrap()
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let bed = Bed::start().await;
    let mut stream = bed.connect().await;
    for number in 0..5 {
        let event = bed.event(&format!("evt_{number}"));
        stream.write_all(&wire("/in/stripe", &event)).await.unwrap();
        assert_eq!(Answer::read(&mut stream).await.unwrap().status, 202);
    }
    assert_eq!(bed.stored().await.len(), 5);
}

#[tokio::test]
async fn a_chunked_body_is_read_and_ends_the_connection() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    let mut bytes = head("/in/stripe", &event, &[("transfer-encoding", "chunked")]);
    for part in event.body.chunks(100) {
        bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    let answer = bed.raw(&bytes).await;
    assert_eq!(answer.status, 202);
    assert!(answer.closes());
}

/// A proxy that believes the length, before a server that believes the chunks, would let a
/// second request through in the body of the first.
#[tokio::test]
async fn two_lengths_never_let_a_second_request_through() {
    let bed = Bed::start().await;
    let first = bed.event("evt_1");
    let smuggled = wire("/in/stripe", &bed.event("evt_smuggled"));
    let mut body = chunked(&first.body);
    body.extend_from_slice(&smuggled);
    let length = body.len().to_string();
    let orders: [&[(&str, &str)]; 2] = [
        &[("content-length", &length), ("transfer-encoding", "chunked")],
        &[("transfer-encoding", "chunked"), ("content-length", &length)],
    ];
    for headers in orders {
        let mut bytes = head_exactly("/in/stripe", &first, headers);
        bytes.extend_from_slice(&body);
        let answers = until_closed(&bed, &bytes).await;
        assert_eq!(answers.matches("HTTP/1.1").count(), 1, "{answers}");
    }
    let stored = bed.stored().await;
    assert!(stored.iter().all(|receipt| receipt.event_id != "evt_smuggled"), "{stored:?}");
}

/// Each of these leaves open how long the body is, and is refused.
#[tokio::test]
async fn ambiguous_lengths_are_refused() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    let length = event.body.len().to_string();
    let shorter = (event.body.len() - 1).to_string();
    let plus = format!("+{length}");
    let list = format!("{length}, {length}");
    let cases: [&[(&str, &str)]; 8] = [
        &[("content-length", &length), ("content-length", &shorter)],
        &[("content-length", &plus)],
        &[("content-length", &list)],
        &[("content-length", "-1")],
        &[("content-length", "0x10")],
        &[("transfer-encoding", "gzip")],
        &[("transfer-encoding", "chunked, identity")],
        &[("transfer-encoding", "xchunked")],
    ];
    for headers in cases {
        let mut bytes = head_exactly("/in/stripe", &event, headers);
        bytes.extend_from_slice(&event.body);
        let answers = until_closed(&bed, &bytes).await;
        assert!(answers.starts_with("HTTP/1.1 400"), "{headers:?}: {answers}");
        assert_eq!(answers.matches("HTTP/1.1").count(), 1, "{headers:?}: {answers}");
    }
    bed.assert_untouched("an ambiguous length").await;
}

#[tokio::test]
async fn broken_chunks_are_refused() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    for body in ["zz\r\n", "ffffffffffffffffff\r\n", "5\r\nabc", "-1\r\n"] {
        let mut bytes = head("/in/stripe", &event, &[("transfer-encoding", "chunked")]);
        bytes.extend_from_slice(body.as_bytes());
        let mut stream = bed.connect().await;
        stream.write_all(&bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        if let Some(answer) = Answer::read(&mut stream).await {
            assert_eq!(answer.status, 400, "{body}");
        }
    }
    bed.assert_untouched("a broken chunk").await;
}

/// Header lines that some servers fold, trim or guess at.
#[tokio::test]
async fn odd_header_lines_are_refused() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    let plain = String::from_utf8(head("/in/stripe", &event, &[])).unwrap();
    let variants = [
        plain.replace("content-length:", "content-length :"),
        plain.replace("host: hooks.example.com\r\n", "host: hooks.example.com\r\n folded: x\r\n"),
        plain.replace("content-length: ", "content-length: \0"),
        plain.replace(" HTTP/1.1", " HTTP/1.1 x"),
    ];
    for variant in variants {
        let mut bytes = variant.clone().into_bytes();
        bytes.extend_from_slice(&event.body);
        let answers = until_closed(&bed, &bytes).await;
        assert!(answers.starts_with("HTTP/1.1 400"), "{variant}: {answers}");
    }
    bed.assert_untouched("an odd header line").await;
}

/// What speaks HTTP/2 from the first byte is not answered in it.
#[tokio::test]
async fn http2_is_not_spoken() {
    let bed = Bed::start().await;
    let answers = until_closed(&bed, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!answers.starts_with("HTTP/2") && !answers.contains("202"), "{answers}");
}
