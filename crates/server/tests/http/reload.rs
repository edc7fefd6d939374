//! Changing the configuration of a running server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oncebox_server::config::{Config, Environment};
use oncebox_server::server::StartError;

use crate::bed::{Bed, SOURCES, STRIPE, configuration};

const NEW: &str = "whsec_canary_rotated_secret";

fn with_secrets(secrets: &str) -> String {
    SOURCES
        .replace(r#"secrets = ["whsec_canary_stripe_secret"]"#, &format!("secrets = [{secrets}]"))
}

/// The way to rotate: both secrets, then only the new one. No valid event is rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_rotate_under_load() {
    let bed = Arc::new(Bed::start().await);
    let rotated = Arc::new(AtomicBool::new(false));
    let stop = Arc::new(AtomicBool::new(false));
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..4 {
        let (bed, rotated, stop) = (bed.clone(), rotated.clone(), stop.clone());
        senders.spawn(async move {
            let mut sent = 0;
            while !stop.load(Ordering::SeqCst) {
                let secret = if rotated.load(Ordering::SeqCst) { NEW } else { STRIPE };
                let event = bed.signed("stripe", secret, &format!("evt_{sender}_{sent}"));
                let answer = bed.post("stripe", &event).await;
                assert_eq!(answer.status, 202, "{}", answer.body);
                sent += 1;
            }
            sent
        });
    }
    let both = with_secrets(&format!("\"{NEW}\", \"{STRIPE}\""));
    for _ in 0..10 {
        bed.server.reload(configuration(&both)).await.unwrap();
        bed.server.reload(configuration(SOURCES)).await.unwrap();
    }
    bed.server.reload(configuration(&both)).await.unwrap();
    rotated.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        bed.server.reload(configuration(&both)).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    let sent: usize = senders.join_all().await.into_iter().sum();
    assert!(sent > 0);

    bed.server.reload(configuration(&with_secrets(&format!("\"{NEW}\"")))).await.unwrap();
    bed.post("stripe", &bed.event("evt_old")).await.assert_rejected("the old secret");
    let metric = r#"oncebox_received_total{source="stripe",outcome="accepted"}"#;
    assert_eq!(bed.metric(metric).await, sent as f64);
}

#[tokio::test]
async fn the_secret_that_verified_is_kept_with_the_receipt() {
    let bed = Bed::configured(&with_secrets(&format!("\"{NEW}\", \"{STRIPE}\""))).await;
    bed.post("stripe", &bed.signed("stripe", STRIPE, "evt_old")).await;
    bed.post("stripe", &bed.signed("stripe", NEW, "evt_new")).await;
    for receipt in bed.stored().await {
        let secret = if receipt.event_id == "evt_old" { STRIPE } else { NEW };
        let kept = bed.server.inbox.store.receipt(receipt.receipt).await.unwrap().unwrap();
        assert_eq!(kept.secret.1, Some(oncebox_verify::Secret::new(secret).fingerprint()));
    }
}

/// A configuration that cannot be served changes nothing.
#[tokio::test]
async fn a_broken_configuration_keeps_the_old_one() {
    let bed = Bed::start().await;
    for broken in [
        with_secrets("\"env:ONCEBOX_TEST_UNSET\""),
        with_secrets("\"short\""),
        format!("[server]\ntls = {{ cert = \"none.pem\", key = \"none.pem\" }}\n{SOURCES}"),
    ] {
        let config = Config::parse("t", &broken, Environment::default()).unwrap();
        let error = bed.server.reload(config).await.unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{error}");
    }
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
}

#[tokio::test]
async fn sources_and_limits_change_at_run_time() {
    let bed = Bed::start().await;
    let text = format!(
        "[server]\nmax_body = \"1KiB\"\nhide_unknown_sources = true\n{}",
        SOURCES.replace("[sources.stripe]", "[sources.stripe-new]\nrenamed_from = \"stripe\"")
    );
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
    bed.server.reload(configuration(&text)).await.unwrap();
    // The renamed source remembers what it had received under its old name.
    assert_eq!(bed.post("stripe-new", &bed.event("evt_1")).await.status, 200);
    bed.post("stripe", &bed.event("evt_2")).await.assert_rejected("a source that is gone");
    assert_eq!(bed.post("stripe-new", &bed.signed_body(vec![b'x'; 1025])).await.status, 413);
}

#[tokio::test]
async fn what_needs_a_restart_is_named() {
    let bed = Bed::start().await;
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:1\"\nmax_headers = \"32KiB\"\n\
         [store]\nurl = \"sqlite://other.db\"\n[log]\nlevel = \"debug\"\n{SOURCES}"
    );
    let keys = bed.server.reload(configuration(&text)).await.unwrap();
    assert_eq!(keys, ["server.listen", "server.max_headers", "store.url", "log"]);
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
}
