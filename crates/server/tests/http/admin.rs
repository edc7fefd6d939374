//! The admin listener.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::bed::{Answer, Bed, get, wire};

#[tokio::test]
async fn health_and_metrics_answer_and_nothing_else() {
    let bed = Bed::start().await;
    assert_eq!(bed.admin("/livez").await.body, r#"{"status":"live"}"#);
    let ready = bed.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    assert_eq!(ready.body, r#"{"status":"ready","reasons":[],"warnings":[]}"#);
    assert_eq!(bed.admin("/metrics").await.status, 200);
    for path in ["/", "/in/stripe", "/api/v1/receipts", "/metrics/x"] {
        assert_eq!(bed.admin(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn every_promised_metric_is_there() {
    let bed = Bed::start().await;
    bed.post("stripe", &bed.event("evt_1")).await;
    let text = bed.admin("/metrics").await.body;
    for name in [
        r#"oncebox_received_total{source="stripe",outcome="accepted"} 1"#,
        "oncebox_accept_seconds_count 1",
        "oncebox_accept_seconds_bucket{",
        "oncebox_commit_batch_size_count 1",
        "oncebox_clock_skew_seconds ",
        "oncebox_wal_bytes ",
        "oncebox_queue_waiting 0",
    ] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
}

/// Whoever asks for many sources that do not exist must not fill our memory with their names.
#[tokio::test]
async fn unknown_sources_make_no_labels() {
    let bed = Bed::start().await;
    for number in 0..20 {
        bed.post(&format!("guess-{number}"), &bed.event("evt_1")).await;
    }
    let text = bed.admin("/metrics").await.body;
    assert!(!text.contains("guess"), "{text}");
    assert!(
        text.contains(r#"oncebox_rejections_total{source="unknown",reason="unknown_source"} 20"#)
    );
}

#[tokio::test]
async fn a_stopping_server_is_not_ready() {
    let bed = Bed::start().await;
    bed.server.inbox.start_draining();
    let ready = bed.admin("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("stopping"), "{}", ready.body);
    assert_eq!(bed.admin("/livez").await.status, 200);
}

/// A request that is under way when the server stops is finished; later ones find nobody.
#[tokio::test]
async fn stopping_finishes_what_is_under_way() {
    let bed = Bed::start().await;
    let mut stream = bed.connect().await;
    let request = wire("/in/stripe", &bed.event("evt_1"));
    let (first, rest) = request.split_at(request.len() - 10);
    stream.write_all(first).await.unwrap();
    // The server has begun to read once it holds memory for the body.
    bed.until_memory(|free| free < 64 << 20).await;

    let (public, admin) = (bed.server.public, bed.server.admin);
    let server = bed.server;
    let stopping = tokio::spawn(server.stop());
    while get(admin, "/readyz").await.status != 503 {}
    stream.write_all(rest).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 202);
    stopping.await.unwrap();
    assert!(TcpStream::connect(public).await.is_err());
}

/// A page whose own name was made to lead to this machine reads nothing here: its `Host` tells.
#[tokio::test]
async fn a_name_that_is_led_here_is_refused() {
    let bed = Bed::with("[server]\nadmin_hosts = [\"oncebox.internal\"]").await;
    let ask = async |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        Answer::of(bed.server.admin, request.as_bytes()).await
    };
    let port = bed.server.admin.port();
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/receipts", "/"] {
        for host in ["host: evil.example.com\r\n", "host: 127.0.0.1.nip.io\r\n", ""] {
            let answer = ask(path, host).await;
            assert_eq!(answer.status, 403, "{path} {host}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert!(answer.body.contains(r#""code":"unknown_host""#), "{}", answer.body);
            assert!(answer.body.contains("admin_hosts"), "{}", answer.body);
        }
    }
    for host in ["localhost".into(), format!("127.0.0.1:{port}"), "oncebox.internal".into()] {
        assert_eq!(ask("/metrics", &format!("host: {host}\r\n")).await.status, 200, "{host}");
    }
}
