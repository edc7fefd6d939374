//! Answers of the API that bring nothing, and what becomes of the delivery.

use oncebox::delivery::State;
use oncebox::store::DeliveryRow;
use oncebox_testkit::destination::{Behaviour, Destination};

use super::{api, fetch, fetching, object};
use crate::bed::{Bed, now};
use crate::tls;

/// One attempt, to anywhere.
const ONCE: &str = "allow_private = true\n\
                    retry = { max_attempts = 1, base = \"1ms\", cap = \"1ms\" }\n";

/// A route that tries once, and gives the API a quarter of a second.
fn once(api: &Destination) -> String {
    fetching(api, ", timeout = \"250ms\", max_body = \"64KiB\"")
        .replace("max_attempts = 3", "max_attempts = 1")
}

/// What becomes of a delivery whose fetch is answered so. The consumer hears nothing of it.
async fn after(behaviour: Behaviour) -> (Bed, DeliveryRow) {
    let api = Destination::start();
    api.always(behaviour);
    let bed = Bed::new(&once(&api)).await;
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!(api.requests().len(), 1);
    assert_eq!(bed.destination.connections(), 0);
    let attempts = bed.attempts(receipt).await;
    assert_eq!(attempts[0].status, None, "the consumer has answered nothing");
    let failed = "oncebox_fetches_total{route=\"app\",outcome=\"failed\"}";
    assert_eq!(bed.metric(failed).await, Some(1.0));
    (bed, row)
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_what_the_api_answered() {
    for (status, detail) in [
        (400, "fetch: answered 400 Bad Request"),
        (401, "fetch: answered 401 Unauthorized; check `bearer` and `headers` of `fetch`"),
        (403, "fetch: answered 403 Forbidden; check `bearer` and `headers` of `fetch`"),
        (429, "fetch: answered 429 Too Many Requests"),
        (500, "fetch: answered 500 Internal Server Error"),
    ] {
        let (bed, row) = after(Behaviour::status(status)).await;
        assert_eq!(row.detail.as_deref(), Some(detail));
        let reason =
            format!("oncebox_retries_total{{route=\"app\",reason=\"fetch_status_{status}\"}}");
        assert_eq!(bed.metric(&reason).await, Some(1.0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_waited_for_only_so_long() {
    for behaviour in [
        Behaviour::Hang,
        Behaviour::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()),
        Behaviour::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234".to_vec()),
    ] {
        let (bed, row) = after(behaviour).await;
        assert_eq!(row.detail.as_deref(), Some("fetch: no whole answer within 250ms"));
        let reason = "oncebox_retries_total{route=\"app\",reason=\"fetch_timeout\"}";
        assert_eq!(bed.metric(reason).await, Some(1.0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_is_a_failed_attempt() {
    for behaviour in [
        Behaviour::Close,
        Behaviour::Raw(b"\0\x01 garbage\r\n\r\n".to_vec()),
        Behaviour::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234".to_vec()),
        Behaviour::Raw([b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 1 << 20]].concat()),
    ] {
        let detail = after(behaviour).await.1.detail.unwrap();
        assert!(detail.starts_with("fetch: no answer"), "{detail}");
    }
}

/// Whether it says so or not. Dead at once: the next answer would be as large.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_not_taken() {
    let api = Destination::start();
    api.next(Behaviour::Endless);
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 1 << 16], b"\r\n".to_vec()].concat();
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    api.next(Behaviour::Stall([head, chunk, b"1\r\nx\r\n".to_vec()].concat()));
    let bed = Bed::new(&once(&api).replace("max_attempts = 1", "max_attempts = 3")).await;
    for id in ["evt_1", "evt_2"] {
        let receipt = bed.send(id).await;
        let row = bed.until(receipt, State::Dead).await;
        assert_eq!(row.counts.attempts, 1);
        let detail =
            "fetch: the answer has more than 64KiB; raise `max_body` of `fetch` and replay";
        assert_eq!(row.detail.as_deref(), Some(detail));
    }
    api.wait_for_closed(2);
    assert!(api.endless_bytes_taken() < 32 << 20, "{}", api.endless_bytes_taken());
    assert_eq!(bed.destination.connections(), 0);
    // As large as may be.
    api.next(object(&"x".repeat(64 << 10)));
    let receipt = bed.send("evt_3").await;
    bed.until(receipt, State::Processed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_lead_nowhere() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Destination::start();
        let target = format!("http://{}/", elsewhere.address());
        let (_, row) = after(Behaviour::answer(status, &[("Location", &target)])).await;
        let detail = row.detail.unwrap();
        assert!(
            detail.ends_with("redirects are not followed, correct `url` of `fetch`"),
            "{detail}"
        );
        assert_eq!(elsewhere.connections(), 0, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_answers_stay_packed() {
    let (_, row) = after(Behaviour::Answer {
        status: 200,
        headers: vec![("content-encoding".into(), "gzip".into())],
        body: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0],
    })
    .await;
    assert!(row.detail.unwrap().contains("packed"));
}

/// The API may say when to come back.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_kept() {
    for status in [429, 503] {
        let api = api("{}");
        api.next(Behaviour::answer(status, &[("Retry-After", "3600")]));
        let bed = Bed::new(&fetching(&api, "")).await;
        let receipt = bed.send("evt_1").await;
        let row = bed.until(receipt, State::Retrying).await;
        let wait = row.due_at.unwrap().duration_since(now());
        assert!(wait.as_secs() > 3000, "{wait:?}");
        assert_eq!((row.counts.attempts, row.counts.failures), (1, 1));
    }
}

/// What every delivery would meet leaves the route alone, and costs what waits no attempts.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_is_down_opens_the_breaker() {
    let api = Destination::start();
    api.always(Behaviour::status(500));
    let route = fetching(&api, "").replace("max_attempts = 3", "max_attempts = 100");
    let bed = Bed::new(&route).await;
    let receipt = bed.send("evt_1").await;
    for n in 2..=6 {
        bed.send(&format!("evt_{n}")).await;
    }
    let open = "oncebox_breaker_open{route=\"app\"}";
    let mut was_open = bed.metric(open).await == Some(1.0);
    while !was_open && bed.delivery(receipt).await.counts.failures < 100 {
        was_open = bed.metric(open).await == Some(1.0);
    }
    assert!(was_open);
    api.always(object("{}"));
    bed.until(receipt, State::Processed).await;
}

/// What is about one event only does not.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_the_api_does_not_like_stops_nobody_else() {
    let api = Destination::start();
    api.always(Behaviour::status(409));
    let route = fetching(&api, "").replace("max_attempts = 3", "max_attempts = 12");
    let bed = Bed::new(&route).await;
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Dead).await;
    assert_eq!(api.requests().len(), 12);
    assert_eq!(bed.metric("oncebox_breaker_open{route=\"app\"}").await, Some(0.0));
}

/// As for pushes: the certificate has to be for the name of the URL, and from somebody known.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_only_to_whom_the_certificate_names() {
    for (host, trusted, state) in [
        ("localhost", "first", State::Processed),
        ("localhost", "second", State::Dead),
        ("elsewhere.test", "first", State::Dead),
    ] {
        let api = api("{}");
        let port = tls::front(&api).await;
        let route = fetch(&format!("https://{host}:{port}/{{object}}"), "");
        let bed = Bed::trusting(tls::trusting(trusted), &format!("{ONCE}{route}")).await;
        let receipt = bed.send("evt_1").await;
        let row = bed.until(receipt, state).await;
        let is_found = state == State::Processed;
        assert_eq!(api.requests().len(), usize::from(is_found), "{host} {trusted}");
        let refused = format!("fetch: no TLS with {host}: invalid peer");
        let detail = row.detail.unwrap_or_default();
        assert_eq!(detail.starts_with(&refused), !is_found, "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_a_failed_attempt() {
    let port = oncebox_testkit::ports::free_port();
    let url = format!("http://127.0.0.1:{port}/{{object}}");
    let bed = Bed::new(&format!("{ONCE}{}", fetch(&url, ""))).await;
    let receipt = bed.send("evt_1").await;
    let detail = bed.until(receipt, State::Dead).await.detail.unwrap();
    assert!(detail.starts_with("fetch: cannot connect to 127.0.0.1"), "{detail}");
    assert!(bed.destination.requests().is_empty());
}
