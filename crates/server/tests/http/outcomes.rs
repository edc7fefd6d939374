//! What happens to events that verify.

use sha2::{Digest as _, Sha256};

use crate::bed::{Bed, GITHUB, SOURCES, STRIPE, TOKEN};

#[tokio::test]
async fn an_event_is_accepted_once() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");

    let first = bed.post("stripe", &event).await;
    let again = bed.post("stripe", &event).await;

    let [stored] = &bed.stored().await[..] else { panic!("one receipt") };
    let receipt = stored.receipt.to_string();
    assert_eq!(first.status, 202);
    assert_eq!(first.body, format!(r#"{{"status":"accepted","receipt":"{receipt}"}}"#));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(again.status, 200);
    assert_eq!(again.body, format!(r#"{{"status":"duplicate","receipt":"{receipt}"}}"#));
    assert_eq!((stored.source.as_str(), stored.event_id.as_str()), ("stripe", "evt_1"));
    assert_eq!(
        bed.metric(r#"oncebox_received_total{source="stripe",outcome="accepted"}"#).await,
        1.0
    );
    assert_eq!(
        bed.metric(r#"oncebox_received_total{source="stripe",outcome="duplicate"}"#).await,
        1.0
    );
}

#[tokio::test]
async fn copies_at_the_same_time_are_one_receipt() {
    let bed = std::sync::Arc::new(Bed::start().await);
    let event = std::sync::Arc::new(bed.event("evt_1"));
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (bed, event) = (bed.clone(), event.clone());
        senders.spawn(async move { bed.post("stripe", &event).await.status });
    }
    let mut statuses = senders.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 49);
    assert_eq!(bed.stored().await.len(), 1);
}

#[tokio::test]
async fn everything_needed_to_verify_again_is_kept() {
    let bed = Bed::start().await;
    let event = bed.event("evt_1");
    bed.post("stripe", &event).await;
    let summary = bed.stored().await.remove(0);
    let kept = bed.server.inbox.store.receipt(summary.receipt).await.unwrap().unwrap();
    assert_eq!(kept.body, event.body);
    let headers = oncebox::receipt::decode_headers(&kept.headers);
    let signature = headers.iter().find(|(name, _)| name == "stripe-signature").unwrap();
    assert_eq!(signature.1, event.headers["stripe-signature"].as_bytes());
    assert_eq!(kept.secret.1, Some(oncebox_verify::Secret::new(STRIPE).fingerprint()));
}

#[tokio::test]
async fn another_body_under_the_same_identity_is_a_conflict() {
    let bed = Bed::start().await;
    let first = bed.signed_body(r#"{"id":"evt_1","type":"invoice.paid","amount":1}"#);
    let other = bed.signed_body(r#"{"id":"evt_1","type":"invoice.paid","amount":2}"#);
    let (_, receipt) = bed.post("stripe", &first).await.receipt();
    let answer = bed.post("stripe", &other).await;
    assert_eq!((answer.status, answer.receipt().0.as_str()), (202, "accepted"));
    assert!(answer.body.contains(r#""note":"conflict""#), "{}", answer.body);
    assert_eq!(
        bed.metric(r#"oncebox_received_total{source="stripe",outcome="conflict"}"#).await,
        1.0
    );
    let stored = bed.stored().await;
    assert_eq!(stored.len(), 2);
    let marks: Vec<_> = stored.iter().filter_map(|summary| summary.mark).collect();
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0].first.unwrap().to_string(), receipt);
    let again = bed.post("stripe", &other).await;
    assert_eq!(again.receipt(), ("duplicate".to_owned(), answer.receipt().1));
}

/// GitHub's delivery id is not signed: a captured body under a new one is not a new event.
#[tokio::test]
async fn the_same_body_under_another_unsigned_id_is_a_twin() {
    let bed = Bed::start().await;
    let mut event = bed.signed("github", GITHUB, "11111111-0000-0000-0000-000000000000");
    assert_eq!(bed.post("github", &event).await.status, 202);
    event
        .headers
        .insert("x-github-delivery", "22222222-0000-0000-0000-000000000000".parse().unwrap());
    let answer = bed.post("github", &event).await;
    assert_eq!((answer.status, answer.receipt().0.as_str()), (202, "accepted"));
    assert!(answer.body.contains(r#""note":"twin""#), "{}", answer.body);
    assert_eq!(bed.metric(r#"oncebox_received_total{source="github",outcome="twin"}"#).await, 1.0);
    assert_eq!(bed.stored().await.len(), 2);
}

#[tokio::test]
async fn a_type_outside_the_allowlist_is_acknowledged_and_not_stored() {
    let sources = SOURCES.replace(
        "[sources.stripe]\n",
        "[sources.stripe]\nevents = [\"invoice.*\", \"charge.captured\"]\n",
    );
    let bed = Bed::configured(&sources).await;
    for (kind, status) in [
        ("customer.created", 200),
        ("Invoice.paid", 200),
        ("charge.captured.more", 200),
        ("invoice.paid", 202),
        ("charge.captured", 202),
    ] {
        let body = format!(r#"{{"id":"evt_{kind}","type":"{kind}"}}"#);
        let answer = bed.post("stripe", &bed.signed_body(body)).await;
        assert_eq!(answer.status, status, "{kind}");
        if status == 200 {
            assert_eq!(answer.body, r#"{"status":"ignored"}"#);
        }
    }
    assert_eq!(bed.stored().await.len(), 2);
}

#[tokio::test]
async fn a_handshake_is_answered_and_not_stored() {
    let bed = Bed::start().await;
    let mut draft = bed.signed("slack", "canary-slack-secret", "Ev1");
    draft.body = br#"{"type":"url_verification","challenge":"c-1"}"#.to_vec();
    let slack = oncebox_verify::catalogue::find("slack").unwrap();
    let at = oncebox::clock::Clock::now(&*bed.clock);
    let secret = oncebox_verify::Secret::new("canary-slack-secret");
    let signed = oncebox_verify::sign(slack, &secret, draft.clone(), at).unwrap();
    let answer = bed.post("slack", &signed).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "c-1"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));

    draft.headers.remove("x-slack-signature");
    bed.post("slack", &draft).await.assert_rejected("an unsigned handshake");
    bed.assert_untouched("a handshake").await;
}

#[tokio::test]
async fn credentials_are_kept_as_fingerprints_only() {
    let bed = Bed::start().await;
    let mut event = bed.signed("token", TOKEN, "evt_1");
    event.headers.insert("authorization", "Basic canary-basic".parse().unwrap());
    event.headers.append("cookie", "canary-cookie=1".parse().unwrap());
    event.headers.append("cookie", "canary-cookie=2".parse().unwrap());
    assert_eq!(bed.post("token", &event).await.status, 202);
    let summary = bed.stored().await.remove(0);
    let kept = bed.server.inbox.store.receipt(summary.receipt).await.unwrap().unwrap();
    let headers = String::from_utf8(kept.headers).unwrap();
    assert!(!headers.contains("canary"), "{headers}");
    assert_eq!(headers.matches(": fingerprint:").count(), 4, "{headers}");
    // A reader of the receipt cannot test guesses of the credential on it.
    let plain = hex::encode(&Sha256::digest("Basic canary-basic")[..4]);
    assert!(!headers.contains(&plain), "{headers}");
}

/// The same credential is the same in all receipts of a store, also after a restart, and another in
/// another store.
#[tokio::test]
async fn fingerprints_of_one_store_can_be_compared() {
    let mut prints = Vec::new();
    let print = async |bed: &Bed, id: &str| {
        assert_eq!(bed.post("token", &bed.signed("token", TOKEN, id)).await.status, 202);
        let summary = bed.stored().await.into_iter().find(|kept| kept.event_id == id).unwrap();
        let kept = bed.server.inbox.store.receipt(summary.receipt).await.unwrap().unwrap();
        let headers = String::from_utf8(kept.headers).unwrap();
        let line = headers.lines().find(|line| line.starts_with("x-webhook-token: ")).unwrap();
        line.to_owned()
    };
    let bed = Bed::start().await;
    prints.push(print(&bed, "evt_1").await);
    prints.push(print(&bed, "evt_2").await);
    let bed = bed.restarted_after(1).await;
    prints.push(print(&bed, "evt_3").await);
    assert!(prints.iter().all(|print| *print == prints[0]), "{prints:?}");
    assert_ne!(print(&Bed::start().await, "evt_1").await, prints[0], "another store");
}

#[tokio::test]
async fn deliveries_are_recorded_for_the_routes_that_match() {
    let routes = "[routes.all]\nsources = [\"stripe\", \"github\"]\npull = true\n\
                  [routes.paid]\nsources = [\"stripe\"]\nevents = [\"*.paid\"]\npull = true\n\
                  [routes.others]\nsources = [\"github\"]\npull = true\n";
    let bed = Bed::with(routes).await;
    bed.post("stripe", &bed.signed_body(r#"{"id":"evt_1","type":"invoice.paid"}"#)).await;
    bed.post("stripe", &bed.signed_body(r#"{"id":"evt_2","type":"invoice.voided"}"#)).await;
    let mut routes: Vec<_> = bed
        .stored()
        .await
        .iter()
        .flat_map(|receipt| {
            receipt
                .deliveries
                .iter()
                .map(|delivery| format!("{} {}", receipt.event_id, delivery.route))
        })
        .collect();
    routes.sort();
    assert_eq!(routes, ["evt_1 all", "evt_1 paid", "evt_2 all"]);
}
