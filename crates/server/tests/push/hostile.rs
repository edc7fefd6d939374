//! Destinations that answer badly, slowly, endlessly or not at all.

use oncebox::delivery::State;
use oncebox_testkit::destination::{Behaviour, Destination};

use crate::bed::{Bed, QUICK};

/// One attempt, which ends after a quarter of a second.
const ONCE: &str = "allow_private = true\ntimeout = \"250ms\"\n\
                    retry = { max_attempts = 1, base = \"10ms\", cap = \"10ms\" }\n";

async fn detail_after(behaviour: Behaviour) -> String {
    let bed = Bed::new(ONCE).await;
    bed.destination.next(behaviour);
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!((row.counts.attempts, row.counts.failures), (1, 1));
    assert_eq!(bed.destination.requests().len(), 1);
    bed.destination.wait_for_closed(1);
    row.detail.expect("why")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_waited_for_only_so_long() {
    for behaviour in [
        Behaviour::Hang,
        Behaviour::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()),
        // The status is there, but whoever never ends its answer may not have ended its work.
        Behaviour::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234".to_vec()),
    ] {
        let what = format!("{behaviour:?}");
        let detail = detail_after(behaviour).await;
        assert!(detail.contains("within 250ms"), "{what}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_is_a_failed_attempt() {
    for behaviour in [
        Behaviour::Close,
        Behaviour::Raw(b"\0\x01\x02 SSH-2.0-garbage\r\n\r\n".to_vec()),
        Behaviour::Raw(b"HTTP/1.1 two hundred\r\n\r\n".to_vec()),
        Behaviour::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234".to_vec()),
        Behaviour::Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec()),
        Behaviour::Raw([b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 1 << 20]].concat()),
    ] {
        let what = format!("{behaviour:.60?}");
        let detail = detail_after(behaviour).await;
        assert!(detail.starts_with("no answer"), "{what}: {detail}");
    }
}

/// Ten gigabytes are announced; what is read of them fits into buffers.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_read_only_so_far() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::Endless);
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Processed).await;
    assert_eq!(row.counts.attempts, 1, "its head said what there is to know");
    bed.destination.wait_for_closed(1);
    let taken = bed.destination.endless_bytes_taken();
    assert!(taken < 32 << 20, "{taken} bytes were taken");
    // Another connection serves the next one.
    let receipt = bed.send("evt_2").await;
    bed.until(receipt, State::Processed).await;
    assert_eq!(bed.destination.connections(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_lead_nowhere() {
    for status in [301, 302, 303, 307, 308] {
        let bed = Bed::new(QUICK).await;
        let elsewhere = Destination::start();
        let target = format!("http://{}/", elsewhere.address());
        bed.destination.next(Behaviour::answer(status, &[("Location", &target)]));
        let receipt = bed.send("evt_1").await;
        let row = bed.until(receipt, State::Processed).await;
        assert_eq!(row.counts.attempts, 2, "{status}");
        assert_eq!(bed.destination.requests().len(), 2);
        assert_eq!(elsewhere.connections(), 0, "{status}");
    }
}

/// Nothing is unpacked: a small bomb stays small.
#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_stay_compressed() {
    let bed = Bed::new(QUICK).await;
    bed.destination.next(Behaviour::Answer {
        status: 500,
        headers: vec![("content-encoding".into(), "gzip".into())],
        body: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0],
    });
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    let push = &bed.destination.requests()[0];
    assert_eq!(push.header("accept-encoding"), None);
    assert_eq!(bed.attempts(receipt).await[0].status, Some(500));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_a_failed_attempt() {
    let port = oncebox_testkit::ports::free_port();
    let bed = Bed::new(&format!("{ONCE}push = \"http://127.0.0.1:{port}/\"\n")).await;
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    let detail = row.detail.unwrap();
    assert!(detail.contains("cannot connect"), "{detail}");
}

/// A destination that speaks no TLS, or shows a certificate nobody knows, gets no event.
#[tokio::test(flavor = "multi_thread")]
async fn without_tls_nothing_is_sent() {
    let destination = Destination::start();
    let port = destination.address().port();
    let bed = Bed::new(&format!("{ONCE}push = \"https://app.test:{port}/\"\n")).await;
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    let detail = row.detail.unwrap();
    assert!(detail.contains("TLS") || detail.contains("within"), "{detail}");
    assert_eq!(bed.destination.connections(), 0);
}
