//! What lets a route fetch is shown to the API and to nobody else.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use oncebox::delivery::State;
use oncebox_server::config::{LogConfig, LogFormat, LogLevel};
use oncebox_server::logs::subscriber;
use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_testkit::http;
use tracing::Dispatch;
use tracing_subscriber::Registry;
use tracing_subscriber::fmt::MakeWriter;

use super::{KEY, fetching, object};
use crate::bed::Bed;

/// Everything that was logged on this thread, which is all of a test.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

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

#[tokio::test]
async fn credentials_are_shown_to_the_api_and_to_nobody_else() {
    // With one subscriber in the process, the first thread to pass a line decides for all.
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default()));
    LazyLock::force(&ANOTHER);
    let logs = Captured::default();
    let (format, level) = (LogFormat::Json, LogLevel::Trace);
    let logger = subscriber(&LogConfig { format, level }, logs.clone());
    let _guard = tracing::subscriber::set_default(logger);

    let api = Destination::start();
    // Some APIs repeat what they did not like.
    let echo = |status| Behaviour::Answer {
        status,
        headers: vec![("x-echo".into(), KEY.into())],
        body: format!("no such key: {KEY}").into_bytes(),
    };
    for behaviour in [echo(401), echo(500), Behaviour::Close, Behaviour::Raw(KEY.into())] {
        api.next(behaviour);
    }
    api.always(object("{}"));
    let more = ", headers = { X-Api-Key = \"canary_of_a_header\" }";
    let route = fetching(&api, more).replace("max_attempts = 3", "max_attempts = 9");
    let bed = Bed::new(&route).await;
    let receipt = bed.send("evt_1").await;
    bed.until(receipt, State::Processed).await;

    assert_eq!(api.requests()[4].header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(api.requests()[4].header("x-api-key"), Some("canary_of_a_header"));
    let admin = bed.server.admin;
    let get = move || http::get(admin, "/metrics").unwrap();
    let metrics = tokio::task::spawn_blocking(get).await.unwrap();
    let pushed = bed.destination.requests();
    let attempts = bed.attempts(receipt).await;
    assert_eq!(attempts.len(), 5);
    let config = bed.server.config();
    let seen = [
        String::from_utf8(logs.0.lock().unwrap().clone()).unwrap(),
        format!("{attempts:?}"),
        String::from_utf8(metrics.body).unwrap(),
        format!("{pushed:?}"),
        config.print(),
        format!("{config:?}"),
        format!("{:?}", config.ready().unwrap()),
    ];
    assert!(seen[0].contains("fetch: answered 401"), "{}", seen[0]);
    for text in seen {
        assert!(!text.contains("canary_of"), "{text}");
    }
}
