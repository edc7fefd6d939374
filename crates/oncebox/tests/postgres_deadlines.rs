//! No wait for PostgreSQL is without a deadline, and no busy connection is used again.

use std::net::TcpListener;
use std::time::Duration;

use oncebox::store::{
    self, Desk, HostState, PostgresOptions, PostgresStore, Purpose, Store, StoreError,
};
use oncebox_testkit::postgres;
use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::store::Bed;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(300);
/// Far longer than any deadline here, far shorter than for ever.
const SOON: Duration = Duration::from_secs(12);

/// The only host takes connections and never says a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_never_answers_fails_the_start_in_time() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://oncebox@{}/postgres", hanging.local_addr().unwrap());
    for purpose in [Purpose::Serve, Purpose::Operate] {
        let opened = timeout(SOON, store::open(&url, purpose)).await.expect("in time");
        let error = opened.err().expect("it cannot be opened");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains("no answer within"), "{error}");
    }
    timeout(SOON, store::schema(&url)).await.expect("in time").unwrap_err();
}

/// The server stops answering on connections that are open.
#[tokio::test(flavor = "multi_thread")]
async fn every_question_to_a_silent_server_ends() {
    let bed = Bed::postgres().await;
    let proxy = Proxy::to_url(&bed.url);
    let options = PostgresOptions { patience: SHORT, ..PostgresOptions::new(proxy.url(&bed.url)) };
    let store = PostgresStore::open(options, Purpose::Serve).await.unwrap();
    store.health().await.unwrap();
    proxy.stall();
    let silent = |asked: Result<(), StoreError>| assert!(asked.is_err());
    silent(timeout(SOON, store.health()).await.expect("health").map(drop));
    silent(timeout(SOON, store.add_repeats(Vec::new())).await.expect("counts"));
    silent(timeout(SOON, store.add_stored(Vec::new())).await.expect("bytes"));
    silent(timeout(SOON, store.sources()).await.expect("sources").map(drop));
    silent(timeout(SOON, store.tokens()).await.expect("tokens").map(drop));
    silent(timeout(SOON, store.prove_commit()).await.expect("a proof").map(drop));
    proxy.flow();
    let healthy = async {
        while store.health().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, healthy).await.expect("it heals");
}

/// Lists that wait for a lock are abandoned by those who asked. What is asked next does not wait
/// behind them.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_abandoned_while_busy_is_not_used_again() {
    let bed = Bed::postgres().await;
    let options =
        PostgresOptions { lock_wait: Duration::from_secs(600), ..PostgresOptions::new(&bed.url) };
    let store = PostgresStore::open(options, Purpose::Serve).await.unwrap();
    let (holder, connection) =
        tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    holder.batch_execute("BEGIN; LOCK TABLE oncebox.sources").await.unwrap();
    for _ in 0..6 {
        timeout(SHORT, store.sources()).await.expect_err("it waits for the lock");
    }
    timeout(Duration::from_secs(5), store.tokens()).await.expect("in time").unwrap();
    holder.batch_execute("COMMIT").await.unwrap();
    store.sources().await.unwrap();
}

/// A role that may not ask for the timeline is served, and told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_the_functions_is_not_compared() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = tokio::task::spawn_blocking(postgres::Server::start).await.unwrap();
    postgres::execute(
        &server.url(),
        "CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain;
         REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public",
    );
    let nobody = oncebox_testkit::ports::free_port();
    let url = format!("postgres://plain@127.0.0.1:{nobody},127.0.0.1:{}/postgres", server.port());
    let hosts = store::hosts(&url).await.unwrap();
    assert!(matches!(hosts[0].state, HostState::Silent(_)), "{hosts:?}");
    assert_eq!(hosts[1].state, HostState::Untold);
    let store = store::open(&url, Purpose::Serve).await.unwrap();
    assert!(store.prove_commit().await.unwrap());
}

/// A role without special rights may ask, as the server is installed.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_role_is_told_the_timeline() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = tokio::task::spawn_blocking(postgres::Server::start).await.unwrap();
    postgres::execute(&server.url(), "CREATE ROLE plain LOGIN");
    let url = format!("postgres://plain@127.0.0.1:{}/postgres", server.port());
    let hosts = store::hosts(&url).await.unwrap();
    assert!(matches!(hosts[0].state, HostState::Primary { timeline: 1, .. }), "{hosts:?}");
}

/// A standby tells its cluster, and has no timeline to tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_told_from_a_host_that_is_silent() {
    if postgres::must_skip_own_server() {
        return;
    }
    let pair = tokio::task::spawn_blocking(|| {
        let primary = postgres::Server::start();
        let standby = postgres::Server::standby_of(&primary);
        (primary, standby)
    });
    let (_primary, standby) = pair.await.unwrap();
    let hosts = store::hosts(&standby.url()).await.unwrap();
    assert!(matches!(hosts[0].state, HostState::Standby { .. }), "{hosts:?}");
}
