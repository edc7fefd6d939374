//! What only the shared store has to survive: connections that break, and several servers.

use std::sync::Arc;

use oncebox::receipt::{Arrival, Recorded};
use oncebox::store::{self, PostgresOptions, PostgresStore, Purpose, Store, StoreError};
use oncebox_testkit::postgres::{self, Server};
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::store::{Bed, NOON, time};

/// A store that reaches the bed's database through a proxy.
async fn through(proxy: &Proxy, bed: &Bed) -> PostgresStore {
    let options = PostgresOptions::new(proxy.url(&bed.url));
    PostgresStore::open(options, Purpose::Serve).await.expect("the store opens")
}

/// The connection breaks after the server got the batch: it was committed, and nobody knows. The
/// same batch again tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_ours_when_asked_again() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    store.record(Arc::from([bed.arrival("first", "{}")])).await.unwrap();

    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("needle-in-the-batch", "{}")]);
    proxy.cut_after_client_bytes(b"needle-in-the-batch");
    let lost = store.record(batch.clone()).await;
    assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
    assert_eq!(store.record(batch).await.unwrap(), [Recorded::Accepted]);
    assert_eq!(bed.event_ids().await, ["first", "needle-in-the-batch"]);
}

/// The connection breaks before the server got the batch: the same answer, the same cure.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_never_arrived_is_recorded_when_tried_again() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("needle-in-the-batch", "{}")]);
    proxy.cut_before_client_bytes(b"needle-in-the-batch");
    assert!(store.record(batch.clone()).await.is_err());
    assert!(bed.receipts().await.is_empty());
    assert_eq!(store.record(batch).await.unwrap(), [Recorded::Accepted]);
}

/// The new event of a batch is committed; then the connection breaks before it is known what the
/// other one repeats. That is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_that_was_cut_is_asked_again() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    let first = bed.arrival("old", "{}");
    let receipt = first.receipt;
    store.record(Arc::from([first])).await.unwrap();
    proxy.cut_before_client_bytes(b"pg_logical_emit_message");
    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("new", "{}"), bed.arrival("old", "{}")]);
    let recorded = store.record(batch).await.unwrap();
    assert_eq!(recorded, [Recorded::Accepted, Recorded::Duplicate { receipt }]);
}

/// As before, and nobody answers any more. The first sender hears the truth, the second is told
/// to come back.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_to_be_kept_is_not_refused() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    store.record(Arc::from([bed.arrival("old", "{}")])).await.unwrap();

    proxy.refuse();
    proxy.cut_before_client_bytes(b"pg_logical_emit_message");
    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("new", "{}"), bed.arrival("old", "{}")]);
    let partly = store.record(batch).await;
    let Err(StoreError::Partly { recorded, .. }) = partly else { panic!("{partly:?}") };
    assert_eq!(recorded, [Some(Recorded::Accepted), None]);
    assert_eq!(bed.event_ids().await, ["old", "new"]);
}

/// A connection that stays open and never answers is given up, and asked about on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_never_answers_is_given_up() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let mut options = PostgresOptions::new(proxy.url(&bed.url));
    options.patience = std::time::Duration::from_millis(200);
    let store = PostgresStore::open(options, Purpose::Serve).await.unwrap();
    store.record(Arc::from([bed.arrival("first", "{}")])).await.unwrap();
    proxy.swallow_reply_to(b"evt_1");
    let batch: Arc<[Arrival]> = Arc::from([bed.arrival("evt_1", "{}")]);
    let silent = store.record(batch.clone()).await;
    assert!(matches!(silent, Err(StoreError::UnknownOutcome(_))), "{silent:?}");
    assert_eq!(store.record(batch).await.unwrap(), [Recorded::Accepted]);
    assert_eq!(bed.event_ids().await, ["first", "evt_1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_unavailable_and_comes_back() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let store = through(&proxy, &bed).await;
    proxy.refuse();
    proxy.cut();
    let away = store.record(Arc::from([bed.arrival("evt_1", "{}")])).await;
    assert!(away.is_err());
    let away = store.record(Arc::from([bed.arrival("evt_1", "{}")])).await;
    assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
    assert!(store.health().await.is_err());
    proxy.accept();
    let back = store.record(Arc::from([bed.arrival("evt_1", "{}")])).await.unwrap();
    assert_eq!(back, [Recorded::Accepted]);
}

/// Of several hosts in the URL, one that does not answer is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn the_url_may_name_several_hosts() {
    let bed = Bed::postgres().await;
    let nobody = oncebox_testkit::ports::free_port();
    let (before, host) = bed.url.split_once('@').expect("a URL with a user");
    let (host, rest) = host.split_once('/').expect("a URL with a database");
    let separator = if rest.contains('?') { '&' } else { '?' };
    let url = format!(
        "{before}@127.0.0.1:{nobody},{host}/{rest}{separator}target_session_attrs=read-write"
    );
    let store = store::open(&url, Purpose::Serve).await.unwrap();
    let recorded = store.record(Arc::from([bed.arrival("evt_1", "{}")])).await.unwrap();
    assert_eq!(recorded, [Recorded::Accepted]);
    assert_eq!(bed.event_ids().await, ["evt_1"]);
}

/// A server that may lose what it has committed is refused, whatever its default is overridden.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_sync_is_refused() {
    if postgres::must_skip_own_server() {
        return;
    }
    let start = |setting| tokio::task::spawn_blocking(move || Server::start_with(&[setting]));
    let forgetful = start(("fsync", "off")).await.unwrap();
    let refused = store::open(&forgetful.url(), Purpose::Serve).await.err().expect("refused");
    assert!(refused.to_string().contains("fsync = off"), "{refused}");

    let hasty = start(("synchronous_commit", "off")).await.unwrap();
    let store = store::open(&hasty.url(), Purpose::Serve).await.unwrap();
    assert!(store.health().await.unwrap().clock.is_some());
}

/// A duplicate's look-up writes, so that its answer follows a synced commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_moves_the_log() {
    let bed = Bed::postgres().await;
    bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    let position = || {
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::text";
        postgres::query(&bed.url, sql).trim().parse::<f64>().unwrap()
    };
    let flushed = || {
        let sql = "SELECT (pg_current_wal_flush_lsn() - '0/0')::text";
        postgres::query(&bed.url, sql).trim().parse::<f64>().unwrap()
    };
    let before = position();
    let again = bed.record(vec![bed.arrival("evt_1", "{}")]).await;
    assert!(matches!(again[..], [Recorded::Duplicate { .. }]));
    assert!(flushed() > before);
}

/// Two nodes recorded one content under two ids at the same moment, and the one that lost died: its
/// id is claimed for a receipt that was never written.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_claimed_for_a_twin_that_was_never_written_is_freed() {
    let bed = Bed::postgres().await;
    let first = bed.unsigned("d-1", "body");
    let receipt = first.receipt;
    bed.record(vec![first]).await;
    let twin = bed.unsigned("d-2", "body");
    let (key, content) = (twin.key(), twin.content16());
    let sql = format!(
        "INSERT INTO oncebox.identities (source, key, receipt, content, last_seen) \
         VALUES ({}, '{}', '{}', '{}', 20000)",
        bed.source.0,
        uuid::Uuid::from_bytes(*key.as_bytes()),
        twin.receipt,
        uuid::Uuid::from_bytes(content),
    );
    postgres::execute(&bed.url, &sql);
    // A later attempt of the provider is the twin; the one that was cut off is its duplicate.
    let later = bed.unsigned_at("d-2", "body", time(NOON + 60));
    let own = later.receipt;
    assert_eq!(bed.record(vec![later]).await, [Recorded::Twin { first: receipt }]);
    assert_eq!(bed.record(vec![twin]).await, [Recorded::Duplicate { receipt: own }]);
    assert_eq!(bed.store.receipt(receipt).await.unwrap().unwrap().odd.len(), 1);
    assert_eq!(bed.event_ids().await, ["d-1", "d-2"]);
    // A twin does not own its id.
    assert_eq!(bed.record(vec![bed.unsigned("d-2", "new")]).await, [Recorded::Accepted]);
}
