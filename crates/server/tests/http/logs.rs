//! What the logs say, and what they must never say.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use oncebox_server::config::{LogConfig, LogFormat, LogLevel};
use oncebox_server::logs::subscriber;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::Registry;
use tracing_subscriber::fmt::MakeWriter;

use crate::bed::{Bed, GITHUB, STRIPE, TOKEN};
use crate::providers::batches;

/// Everything that was logged on this thread, which is all of a test.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn start(format: LogFormat, level: LogLevel) -> (Self, DefaultGuard) {
        // With one subscriber in the process, the first thread to pass a line decides for all
        // whether anybody wants it, and that may be the thread of a test that captures nothing.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default()));
        LazyLock::force(&ANOTHER);
        let captured = Self::default();
        let subscriber = subscriber(&LogConfig { format, level }, captured.clone());
        (captured, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines about webhooks.
    fn decisions(&self) -> Vec<String> {
        let text = self.text();
        text.lines().filter(|line| line.contains("oncebox::decision")).map(str::to_owned).collect()
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request with many events is one line that counts them.
#[tokio::test]
async fn a_batch_is_one_line() {
    let (logs, _guard) = Captured::start(LogFormat::Json, LogLevel::Info);
    let source = format!("{}events = [\"payments.confirmed\"]\n", batches::SOURCES);
    let bed = Bed::configured(&source).await;
    bed.post("debits", &batches::batch(&[batches::event("EV1", "confirmed")])).await;
    let events = [("EV1", "confirmed"), ("EV2", "confirmed"), ("EV3", "failed")];
    let events = events.map(|(id, action)| batches::event(id, action));
    bed.post("debits", &batches::batch(&events)).await;
    let lines = logs.decisions();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let line: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    let told = ["events", "accepted", "duplicates", "ignored"].map(|key| line[key].as_u64());
    assert_eq!(told, [Some(3), Some(1), Some(1), Some(1)], "{line}");
    assert_eq!((&line["outcome"], &line["event_id"]), (&"accepted".into(), &().into()));
}

#[tokio::test]
async fn every_decision_is_one_line() {
    let (logs, _guard) = Captured::start(LogFormat::Json, LogLevel::Info);
    let bed = Bed::start().await;
    let mut event =
        bed.signed_body(r#"{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_7"}}}"#);
    event.headers.insert("x-request-id", "req-42".parse().unwrap());
    let (_, receipt) = bed.post("stripe", &event).await.receipt();
    event.body.push(b' ');
    bed.post("stripe", &event).await;

    let decisions = logs.decisions();
    assert_eq!(decisions.len(), 2, "{decisions:?}");
    let line: serde_json::Value = serde_json::from_str(&decisions[0]).unwrap();
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["source"], "stripe");
    assert_eq!(line["event_id"], "evt_1");
    assert_eq!(line["event_type"], "invoice.paid");
    assert_eq!(line["object_id"], "in_7");
    assert_eq!(line["receipt"], receipt);
    assert_eq!(line["outcome"], "accepted");
    assert_eq!(line["correlation"], "req-42");
    assert!(line["latency_us"].as_u64().unwrap() > 0);
    let line: serde_json::Value = serde_json::from_str(&decisions[1]).unwrap();
    assert_eq!(line["outcome"], "rejected");
    assert_eq!(line["reason"], "signature_mismatch");
    assert_eq!(line["event_id"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_higher_level_leaves_decisions_out() {
    let (logs, _guard) = Captured::start(LogFormat::Json, LogLevel::Warn);
    let bed = Bed::start().await;
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
    assert_eq!(logs.decisions(), [""; 0]);
}

/// Secrets, signatures and payloads, wherever something could print them.
#[tokio::test]
async fn nothing_tells_a_secret_a_signature_or_a_payload() {
    for format in [LogFormat::Json, LogFormat::Pretty] {
        let (logs, _guard) = Captured::start(format, LogLevel::Trace);
        let bed = Bed::start().await;
        let body = r#"{"id":"evt_1","type":"invoice.paid","note":"canary-payload"}"#;
        let event = bed.signed_body(body);
        let signature = event.headers["stripe-signature"].to_str().unwrap();
        let signature = signature.rsplit('=').next().unwrap().to_owned();
        let mut told = String::new();
        let mut forged = event.clone();
        forged.body.push(b'x');
        let token = bed.signed("token", TOKEN, "evt_2");
        let mut wrong_token = token.clone();
        wrong_token.headers.insert("x-webhook-token", "canary-wrong-token".parse().unwrap());
        let broken = bed.signed_body(r#"{"canary-payload""#);
        let github = bed.signed("github", GITHUB, "evt_3");
        for (source, draft) in [
            ("stripe", &event),
            ("stripe", &event),
            ("stripe", &forged),
            ("stripe", &broken),
            ("token", &token),
            ("token", &wrong_token),
            ("github", &github),
            ("nobody", &event),
        ] {
            let answer = bed.post(source, draft).await;
            told.push_str(&format!("{answer:?}\n"));
        }
        let config = crate::bed::configuration(crate::bed::SOURCES);
        told.push_str(&config.print());
        told.push_str(&format!("{config:?}"));
        told.push_str(&bed.admin("/metrics").await.body);
        told.push_str(&bed.admin("/readyz").await.body);
        told.push_str(&logs.text());
        assert!(logs.decisions().len() >= 8, "{}", logs.text());
        let github_signature = github.headers["x-hub-signature-256"].to_str().unwrap();
        for secret in ["canary", STRIPE, GITHUB, TOKEN, &signature, github_signature] {
            let at = told.find(secret).map(|at| &told[at.saturating_sub(200)..at + secret.len()]);
            assert_eq!(at, None, "{secret} was told");
        }
    }
}

/// What a sender chooses cannot begin a line, move a cursor or reverse what is read.
#[tokio::test]
async fn senders_cannot_write_our_logs() {
    for format in [LogFormat::Json, LogFormat::Pretty] {
        let (logs, _guard) = Captured::start(format, LogLevel::Debug);
        let bed = Bed::start().await;
        let ids = [
            r"evt\u001b[2J\u001b[31mred",
            r"evt\r\n2026-01-01 INFO forged line",
            r"evt\u202egnp.exe\u2066",
            r"evt\u2028line\u0085next",
        ];
        for id in ids {
            let body =
                format!(r#"{{"id":"{id}","type":"{id}","data":{{"object":{{"id":"{id}"}}}}}}"#);
            let mut event = bed.signed_body(body);
            event.headers.insert("x-request-id", "a\x09b".parse().unwrap());
            event.headers.insert("user-agent", "\u{9b}31m".parse().unwrap());
            bed.post("stripe", &event).await;
        }
        let long = "x".repeat(400);
        let body = format!(r#"{{"id":"evt_9","type":"{long}\u202e{long}"}}"#);
        bed.post("stripe", &bed.signed_body(body)).await;

        let text = logs.text();
        assert_eq!(logs.decisions().len(), ids.len() + 1, "{text}");
        let treacherous = |character: char| {
            let reorders = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            (character.is_control() && character != '\n') || reorders || character == '\u{2028}'
        };
        assert!(!text.chars().any(treacherous), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("2026-01-01 INFO")), "{text}");
    }
}

/// A source that rejects everything says so once, not with every request.
#[tokio::test]
async fn a_source_that_rejects_everything_is_told_once() {
    let (logs, _guard) = Captured::start(LogFormat::Json, LogLevel::Warn);
    let bed = Bed::start().await;
    let mut forged = bed.event("evt_1");
    forged.body.push(b' ');
    for _ in 0..4 {
        bed.post("stripe", &forged).await;
    }
    assert!(!bed.admin("/readyz").await.body.contains("rejected all"));
    for _ in 0..66 {
        bed.post("stripe", &forged).await;
    }
    let text = logs.text();
    let told: Vec<&str> = text.lines().filter(|line| line.contains("rejected all")).collect();
    assert_eq!(told.len(), 1, "{text}");
    let line: serde_json::Value = serde_json::from_str(told[0]).unwrap();
    assert_eq!((&line["level"], &line["source"]), (&"WARN".into(), &"stripe".into()));
    assert_eq!(line["reason"], "signature_mismatch");
    assert!(line["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{line}");
    let ready = bed.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("source stripe rejected all 70 requests"), "{}", ready.body);

    assert_eq!(bed.post("stripe", &bed.event("evt_2")).await.status, 202);
    assert!(!bed.admin("/readyz").await.body.contains("rejected all"));
}
