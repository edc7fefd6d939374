//! A push goes to the address that was checked, and to no private one unless its route says so.

use oncebox::delivery::State;
use oncebox_testkit::destination::Destination;

use crate::bed::{Bed, HOST};

/// A route that may not go to this machine.
const GUARDED: &str = "connect_timeout = \"200ms\"\n\
                       retry = { max_attempts = 2, base = \"10ms\", cap = \"10ms\" }\n";

async fn refused(route: &str, names: &[&[&str]]) -> (Bed, String) {
    let bed = Bed::new(route).await;
    for addresses in names {
        bed.names.next(addresses);
    }
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Dead).await;
    assert_eq!(row.counts.attempts, 2);
    assert_eq!(bed.destination.connections(), 0, "the destination was connected to");
    (bed, row.detail.expect("why"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_this_machine_is_refused() {
    let (bed, detail) = refused(GUARDED, &[]).await;
    assert_eq!(detail, "app.test is 127.0.0.1, and this route may not push to such an address");
    assert_eq!(bed.names.asked(), [HOST, HOST]);
    let line = "oncebox_retries_total{route=\"app\",reason=\"address_refused\"}";
    assert_eq!(bed.metric(line).await, Some(2.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_the_url_is_refused_however_it_is_written() {
    let destination = Destination::start();
    let port = destination.address().port();
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"] {
        let (bed, detail) =
            refused(&format!("{GUARDED}push = \"http://{host}:{port}/\"\n"), &[]).await;
        assert!(detail.contains("may not push"), "{host}: {detail}");
        assert_eq!(bed.names.asked(), [""; 0], "{host} is no name");
    }
    assert_eq!(destination.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_a_name_is_checked() {
    let private = ["10.0.0.1", "169.254.169.254", "fd00::1", "127.0.0.1"];
    let (_, detail) = refused(GUARDED, &[&private, &["::ffff:192.168.0.1"]]).await;
    assert!(detail.contains("::ffff:192.168.0.1"), "{detail}");
}

/// The name is public when it is first asked for, and this machine's when it is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_changes_its_mind_gets_nowhere() {
    let public = "2a0f:ffff:ffff:ffff::1";
    let (bed, detail) = refused(GUARDED, &[&[public], &["127.0.0.1"]]).await;
    assert!(detail.contains("may not push"), "{detail}");
    // One look-up for each attempt: the address that was checked is the one that was tried.
    assert_eq!(bed.names.asked().len(), 2);
    let receipts = bed.store().attempts(bed.only_receipt().await).await.unwrap();
    let first = receipts[0].detail.as_deref().unwrap();
    assert!(first.contains(public) || first.contains("within 200ms"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_may_allow_private_addresses() {
    let bed = Bed::new("allow_private = true\n").await;
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;
    assert_eq!(bed.names.asked(), [HOST]);
    assert_eq!(bed.destination.requests().len(), 1);
}

/// Where a cloud keeps its credentials no consumer is.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_refused_always() {
    let metadata: &[&str] = &["169.254.169.254"];
    let route = format!("{GUARDED}allow_private = true\n");
    let (_, detail) = refused(&route, &[metadata, metadata]).await;
    assert!(detail.contains("may not push"), "{detail}");
}

/// An address that does not answer is passed over for one that does.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_address_is_tried() {
    let bed = Bed::new("allow_private = true\n").await;
    bed.names.next(&["127.0.0.254", "127.0.0.1"]);
    let receipt = bed.send("evt_1").await;
    let row = bed.until(receipt, State::Processed).await;
    assert_eq!(row.counts.attempts, 1);
}
