//! A commit waits for a standby, and the wait is cut short. PostgreSQL then reports success for
//! what no standby has. Whoever acts on it elsewhere must not hear so.

use std::time::Instant;

use oncebox::effect::{Begun, EffectState, OnUnknown};
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox_testkit::postgres::{self, Server};
use oncebox_testkit::store::{Bed, key, under};
use oncebox_testkit::wait::DEADLINE;

/// Cuts every wait for a standby short, and says how many there were.
const CUT: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                   WHERE wait_event = 'SyncRep' AND datname = current_database()";

fn set_standby(bed: &Bed, name: &str) {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
    postgres::execute(&bed.url, &set);
    postgres::execute(&bed.url, "SELECT pg_reload_conf()");
}

/// Asks again and again, with another number each time, until the wait of a commit was cut: that
/// there is a standby takes effect a moment after it is said. Tells the number and the answer.
async fn cut<T, F>(bed: &Bed, ask: impl Fn(i64) -> F) -> (i64, Result<T, StoreError>)
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    set_standby(bed, "nobody");
    let patience = Instant::now() + DEADLINE;
    let mut found = None;
    for number in (1..).take_while(|_| Instant::now() < patience) {
        let asked = tokio::spawn(ask(number));
        let mut cuts = 0;
        while !asked.is_finished() {
            cuts += bed.query(CUT).parse::<u32>().unwrap();
        }
        let answer = asked.await.unwrap();
        if cuts > 0 {
            found = Some((number, answer));
            break;
        }
    }
    // Whatever came of it: nothing can be dropped while everybody waits.
    set_standby(bed, "");
    found.expect("commits wait for the standby, and are cut")
}

/// After a standby has taken over, nobody could know of a call that was begun, and an object would
/// be back at an older version than what was written of it elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_get_lost_is_not_answered_as_done() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let bed = Bed::in_database(server.database()).await;
    let route = bed.route("billing", RouteRules::default()).await;
    let claimed = bed.working_on("e1", &route).await;
    let mine = under(&claimed);
    let refund = |number| key(&format!("refund:{number}"));

    let (number, begun) = cut(&bed, |number| {
        let (store, effect) = (bed.store.clone(), refund(number));
        async move { store.begin_effect(mine, &effect, OnUnknown::Ask).await }
    })
    .await;
    assert!(matches!(begun, Err(StoreError::UnknownOutcome(_))), "{begun:?}");
    let again = bed.begin(&claimed, &refund(number)).await;
    assert!(matches!(again, Begun::Yours { unknowns: 0, .. }), "{again:?}");
    assert_eq!(bed.effect(&format!("refund:{number}")).await.state, EffectState::Started);

    let (version, advanced) = cut(&bed, |version| {
        let store = bed.store.clone();
        async move { store.advance(mine, "in_1", version).await }
    })
    .await;
    assert!(matches!(advanced, Err(StoreError::UnknownOutcome(_))), "{advanced:?}");
    assert_eq!(bed.store.advance(mine, "in_1", version).await.unwrap(), Some(true), "said again");
}
