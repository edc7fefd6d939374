//! The sweep over identities, just as one of them answers a repeat.

use std::sync::Arc;

use oncebox::receipt::{Arrival, Recorded};
use oncebox_testkit::postgres;
use oncebox_testkit::store::{Bed, NOON, time};
use oncebox_testkit::wait;

/// The look-up has found the identity; before it is noted as seen, the sweep removes it. A 200
/// would leave no memory of the event, so the event is new.
#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_is_swept_while_it_answers_leaves_a_memory() {
    for guarded in [false, true] {
        let bed = Bed::postgres().await;
        let arrival = |at| match guarded {
            false => bed.arrival_at("evt_1", "{}", time(at)),
            true => bed.unsigned_at("evt_1", "{}", time(at)),
        };
        let first = arrival(NOON);
        bed.record(vec![first.clone()]).await;
        let (sweep, connection) =
            tokio_postgres::connect(&bed.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        // A lock that a look-up does not wait for, and what notes it as seen does.
        let lock = "BEGIN; SELECT 1 FROM oncebox.identities FOR UPDATE";
        sweep.batch_execute(lock).await.unwrap();
        let later = arrival(NOON + 40 * 86_400);
        let batch: Arc<[Arrival]> = Arc::from([later.clone()]);
        let store = bed.store.clone();
        let recording = tokio::spawn(async move { store.record(batch).await });
        let waits = "SELECT count(*) FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let url = bed.url.clone();
        let blocked = move || {
            wait::until("the repeat is noted as seen", || postgres::query(&url, waits) != "0");
        };
        tokio::task::spawn_blocking(blocked).await.unwrap();
        let forget = "DELETE FROM oncebox.identities; DELETE FROM oncebox.guards; COMMIT";
        sweep.batch_execute(forget).await.unwrap();
        assert_eq!(recording.await.unwrap().unwrap(), [Recorded::Accepted], "guarded: {guarded}");
        assert_eq!((bed.rows("identities"), bed.rows("guards")), (1, usize::from(guarded)));
        let again = bed.record(vec![arrival(NOON + 40 * 86_400)]).await;
        assert_eq!(again, [Recorded::Duplicate { receipt: later.receipt }]);
    }
}
