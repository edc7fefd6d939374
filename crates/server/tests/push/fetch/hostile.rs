//! Events and names that want to lead the fetch elsewhere.

use oncebox::delivery::State;

use super::{api, fetch, fetching};
use crate::bed::{Bed, event, signed};

/// The event `id` about an object of any name.
async fn send_about(bed: &Bed, id: &str, object: &str) -> oncebox::receipt::ReceiptId {
    let mut draft = event(id);
    let quoted = serde_json::to_string(object).unwrap();
    let body = String::from_utf8(draft.body).unwrap();
    draft.body = body.replace("\"in_1\"", &quoted).into_bytes();
    bed.send_draft(signed(draft)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stays_in_its_place() {
    let api = api("{}");
    let bed = Bed::new(&fetching(&api, "")).await;
    let objects = [
        "a/b",
        "a?b=c",
        "a#b",
        "@evil.test",
        "//evil.test/x",
        "http://evil.test/",
        "a b",
        "é\u{1f980}",
        "%2Fx",
        "a..b",
        "{version}",
        "a\\b",
        "a;b=c",
        "a&b",
        "ip:80",
        "\u{202e}x",
        "~",
        "*",
    ];
    for (number, object) in objects.into_iter().enumerate() {
        let receipt = send_about(&bed, &format!("evt_{number}"), object).await;
        bed.until(receipt, State::Processed).await;
        let get = api.requests().pop().unwrap();
        let part = get.target.strip_prefix("/v1/invoices/").unwrap_or_else(|| panic!("{get:?}"));
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte);
        assert!(part.bytes().all(safe), "{object}: {part}");
        let read = percent_encoding::percent_decode_str(part).decode_utf8().unwrap();
        assert_eq!(read, object);
        assert!(get.header("host").unwrap().starts_with("api.test:"), "{get:?}");
    }
    assert_eq!(api.requests().len(), objects.len());
    assert!(bed.names.asked().iter().all(|name| ["api.test", "app.test"].contains(&&**name)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_leads_up_is_dead_and_nobody_is_asked() {
    let api = api("{}");
    let bed = Bed::new(&fetching(&api, "")).await;
    let objects = [".", "..", "../refunds", "a/../../refunds", "..\\x", "%2e%2e", "..;x", ".. "];
    for (number, object) in objects.into_iter().enumerate() {
        let receipt = send_about(&bed, &format!("evt_{number}"), object).await;
        let row = bed.until(receipt, State::Dead).await;
        assert_eq!(row.counts.attempts, 1, "{object}");
        let detail = "fetch: what the event says cannot stand in the URL: it would lead elsewhere";
        assert_eq!(row.detail.as_deref(), Some(detail), "{object}");
    }
    assert_eq!((api.connections(), bed.destination.connections()), (0, 0));
}

/// The route may push to private addresses. Its fetch may not, unless it says so itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_refused() {
    let api = api("{}");
    let port = api.address().port();
    let bed = Bed::new(&fetching(&api, "").replace(", allow_private = true", "")).await;
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    let detail =
        "fetch: api.test is 127.0.0.1, and `fetch` of this route may not go to such an address";
    assert_eq!(row.detail.as_deref(), Some(detail));
    let reason = "oncebox_retries_total{route=\"app\",reason=\"fetch_address_refused\"}";
    assert_eq!(bed.metric(reason).await, Some(3.0));

    for host in ["127.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{port}/{{object}}");
        let route = fetch(&url, "").replace(", allow_private = true", "");
        let once = "retry = { max_attempts = 1, base = \"1ms\", cap = \"1ms\" }\n";
        let bed = Bed::new(&format!("allow_private = true\n{once}{route}")).await;
        let receipt = bed.send("evt_1").await;
        let detail = bed.until(receipt, State::Dead).await.detail.unwrap();
        assert!(detail.ends_with("may not go to such an address"), "{detail}");
    }
    assert_eq!(api.connections(), 0);
}

/// Where a cloud keeps its credentials no API is. A name that changes its mind is asked once for
/// each request, and what it said then is connected to.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_refused_always() {
    let api = api("{}");
    let bed = Bed::new(&fetching(&api, "")).await;
    bed.names.next(&["169.254.169.254"]);
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    let first = &bed.attempts(receipt).await[0];
    assert!(first.detail.as_ref().unwrap().contains("169.254.169.254"), "{first:?}");
    assert_eq!(bed.names.asked()[..2], ["api.test", "api.test"]);
    assert_eq!(api.requests().len(), 1);
}
