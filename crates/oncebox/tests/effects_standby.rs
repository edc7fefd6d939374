//! An effect is begun while commits wait for a standby, and the wait is cut short. PostgreSQL then
//! reports success for a commit that no standby has.

use oncebox::effect::{Begun, EffectState, OnUnknown};
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox_testkit::postgres::{self, Server};
use oncebox_testkit::store::{Bed, key, under};

/// Cuts every wait for a standby short, and says how many there were.
const CUT: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                   WHERE wait_event = 'SyncRep' AND datname = current_database()";

fn set_standby(bed: &Bed, name: &str) {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
    postgres::execute(&bed.url, &set);
    postgres::execute(&bed.url, "SELECT pg_reload_conf()");
}

/// Whoever heard that it is theirs would call somebody, and nobody could know of it after a standby
/// has taken over.
#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_may_get_lost_is_nobodys() {
    if postgres::must_skip_own_server() {
        return;
    }
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let bed = Bed::in_database(server.database()).await;
    let route = bed.route("billing", RouteRules::default()).await;
    let claimed = bed.working_on("e1", &route).await;
    set_standby(&bed, "nobody");
    // The setting takes effect a moment after it is made.
    let mut number = 0;
    let (name, cut) = loop {
        let name = format!("refund:{number}");
        let (store, under, effect) = (bed.store.clone(), under(&claimed), key(&name));
        let begin =
            tokio::spawn(async move { store.begin_effect(under, &effect, OnUnknown::Ask).await });
        let mut cuts = 0;
        while !begin.is_finished() {
            cuts += bed.query(CUT).parse::<u32>().unwrap();
        }
        let begun = begin.await.unwrap();
        if cuts > 0 {
            break (name, begun);
        }
        assert!(matches!(begun, Ok(Begun::Yours { .. })), "{begun:?}");
        number += 1;
    };
    assert!(matches!(cut, Err(StoreError::UnknownOutcome(_))), "{cut:?}");

    set_standby(&bed, "");
    let again = bed.begin(&claimed, &key(&name)).await;
    assert!(matches!(again, Begun::Yours { unknowns: 0, .. }), "{again:?}");
    assert_eq!(bed.effect(&name).await.state, EffectState::Started);
}
