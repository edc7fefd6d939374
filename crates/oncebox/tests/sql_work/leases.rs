//! Leases: what they let somebody do, and what happens to work done without a good one.

use std::time::Duration;

use oncebox::delivery::{Ending, Lease, Next, State};
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox_testkit::store::{Bed, Route, until};

use super::session::{Refused, Session, Work};

async fn billing(bed: &Bed) -> Route {
    bed.route("billing", RouteRules::default()).await
}

/// A table of the user's own, outside of our schema.
const INVOICES: &str = "CREATE TABLE public.invoices (id text, paid_by text)";

fn paid(bed: &Bed) -> String {
    bed.query("SELECT id, paid_by FROM public.invoices ORDER BY 1, 2")
}

/// Does the work of a delivery and ends it, all in one transaction.
async fn pay(session: &Session, work: &Work, by: &str) -> Result<(), Refused> {
    let paid = format!("INSERT INTO public.invoices VALUES ('{}', '{by}')", work.event_id);
    let done = session.try_run(&format!("BEGIN; {paid}; {} COMMIT", work.finish_sql())).await;
    session.run("ROLLBACK").await;
    done
}

/// The lease runs out at work. Whoever gets the delivery next does the work; the first one's is
/// rolled back, whether it ends before or after that.
#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_leaves_nothing() {
    let bed = Bed::postgres().await;
    for (name, rules) in [
        ("plain", RouteRules::default()),
        ("ordered", RouteRules { ordered: true, ..RouteRules::default() }),
    ] {
        let route = bed.route(name, rules).await;
        bed.query("DROP TABLE IF EXISTS public.invoices");
        bed.query(INVOICES);
        let event = bed.event(name, &[route]);
        bed.send(Arrival { object: Some("in_1".into()), ..event }).await;
        let (zombie, heir) = (Session::open(&bed).await, Session::open(&bed).await);
        let old = zombie.take(name).await;
        bed.pass(61);
        let refused = pay(&zombie, &old, "zombie").await.unwrap_err();
        assert_eq!(refused.code, "OB409", "{refused:?}");
        assert!(refused.hint.unwrap().contains("Roll back"));
        assert_eq!(paid(&bed), "");

        assert_eq!(bed.store.rescue(10).await.unwrap().retrying.len(), 1);
        assert_eq!(pay(&zombie, &old, "zombie").await.unwrap_err().code, "OB409");
        let new = heir.take(name).await;
        assert_eq!((new.attempt, new.lease >> 20), (2, 2));
        assert_eq!(pay(&zombie, &old, "zombie").await.unwrap_err().code, "OB409");
        assert_eq!(paid(&bed), "");
        pay(&heir, &new, "heir").await.unwrap();
        assert_eq!(pay(&zombie, &old, "zombie").await.unwrap_err().code, "OB409");
        assert_eq!(paid(&bed), format!("{name}|heir"));
        assert_eq!(bed.rows("deliveries"), 0);
    }
}

/// The clock goes on inside a transaction: one that began under a good lease and ends after it is
/// refused. Once it has ended the attempt, nobody takes it away before it commits.
#[tokio::test(flavor = "multi_thread")]
async fn time_passes_within_a_transaction() {
    let bed = Bed::postgres().await;
    let route = billing(&bed).await;
    bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    let work = session.take("billing").await;
    session.run("BEGIN; SELECT 1").await;
    bed.pass(61);
    assert_eq!(session.finish(&work, "processed").await.unwrap_err().code, "OB409");
    session.run("ROLLBACK").await;

    bed.store.rescue(10).await.unwrap();
    let sql = "SELECT delivery, lease FROM oncebox.claim('billing', 1, '1 second')";
    // A machine that is slow today may need more than one second, and then tries again.
    loop {
        let row = &session.rows(sql, &[]).await[0];
        let work = Work { delivery: row.get(0), lease: row.get(1), ..work.clone() };
        session.run("BEGIN").await;
        match session.finish(&work, "processed").await {
            Ok(state) => break assert_eq!(state, "processed"),
            Err(refused) => assert_eq!(refused.code, "OB409"),
        }
        session.run("ROLLBACK").await;
        bed.store.rescue(10).await.unwrap();
    }
    until(|| bed.query("SELECT lease_until < clock_timestamp() FROM deliveries") == "t").await;
    let rescued = bed.store.rescue(10).await.unwrap();
    assert_eq!((rescued.retrying.len(), rescued.dead.len()), (0, 0));
    session.run("COMMIT").await;
    assert_eq!(bed.query("SELECT state FROM finished"), "processed");
    assert_eq!(bed.rows("deliveries"), 0);
}

/// A transaction with one snapshot ends attempts as well. What its snapshot does not show of the
/// delivery is an error, and nothing is committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_may_be_strict() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    bed.query(INVOICES);
    let about = |id: &str| Arrival { object: Some("in_1".into()), ..bed.event(id, &[route]) };
    bed.record(vec![about("e1"), about("e2"), about("e3")]).await;
    let (session, heir) = (Session::open(&bed).await, Session::open(&bed).await);
    let work = session.claim("billing", 3).await;
    assert_eq!(work.len(), 1);
    session.run("BEGIN ISOLATION LEVEL SERIALIZABLE").await;
    session.run("INSERT INTO public.invoices VALUES ('e1', 'strict')").await;
    session.finish(&work[0], "processed").await.unwrap();
    session.run("COMMIT").await;
    let states = ["e1 processed", "e2 received", "e3 held:order"];
    assert_eq!(bed.states(&route).await, states);

    let old = session.take("billing").await;
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    session.run("INSERT INTO public.invoices VALUES ('e2', 'zombie')").await;
    bed.pass(61);
    bed.store.rescue(10).await.unwrap();
    pay(&heir, &heir.take("billing").await, "heir").await.unwrap();
    // By its snapshot the lease is good.
    assert_eq!(session.finish(&old, "processed").await.unwrap_err().code, "40001");
    session.run("ROLLBACK").await;
    assert_eq!(paid(&bed), "e1|strict\ne2|heir");
}

/// An attempt counts when its claim is committed, so nothing is done before.
#[tokio::test(flavor = "multi_thread")]
async fn work_begins_after_the_claim_is_committed() {
    let bed = Bed::postgres().await;
    for (name, ordered) in [("plain", false), ("ordered", true)] {
        let route = bed.route(name, RouteRules { ordered, ..RouteRules::default() }).await;
        bed.due(name, &[route]).await;
        let session = Session::open(&bed).await;
        for call in ["finish(delivery, lease)", "extend(delivery, lease)"] {
            session.run("BEGIN").await;
            let both = format!("SELECT oncebox.{call} FROM oncebox.claim('{name}')");
            let refused = session.refusal(&both).await;
            assert_eq!(refused.code, "OB412", "{call}: {refused:?}");
            assert!(refused.hint.unwrap().contains("Commit"), "{call}");
            session.run("ROLLBACK").await;
        }
        // A savepoint is the same transaction.
        session.run("BEGIN; SAVEPOINT s").await;
        let work = session.take(name).await;
        session.run("RELEASE s; SAVEPOINT t").await;
        assert_eq!(session.finish(&work, "processed").await.unwrap_err().code, "OB412");
        session.run("ROLLBACK TO t; COMMIT").await;
        assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");
    }
}

/// The commit of an ending was not heard of: said again by itself it is known for what it is.
/// Another outcome comes too late, and work that is done a second time is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_ending_may_be_told_again() {
    let bed = Bed::postgres().await;
    let rules = RouteRules { max_attempts: 2, max_snoozes: 1, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.query(INVOICES);
    let session = Session::open(&bed).await;
    for (outcome, state) in
        [("processed", "processed"), ("stale", "skipped"), ("dead", "dead"), ("retry", "retrying")]
    {
        bed.due(outcome, &[route]).await;
        let work = session.take("billing").await;
        assert_eq!(session.finish(&work, outcome).await.unwrap(), state);
        let before = bed.query("SELECT * FROM deliveries, finished, attempts");
        assert_eq!(session.finish(&work, outcome).await.unwrap(), state, "{outcome}");
        for other in ["processed", "stale"].iter().filter(|other| **other != outcome) {
            assert_eq!(session.finish(&work, other).await.unwrap_err().code, "OB409", "{outcome}");
        }
        assert_eq!(bed.query("SELECT * FROM deliveries, finished, attempts"), before);
        bed.query("DELETE FROM deliveries");
    }
    bed.due("e1", &[route]).await;
    let work = session.take("billing").await;
    pay(&session, &work, "worker").await.unwrap();
    let refused = pay(&session, &work, "worker").await.unwrap_err();
    assert_eq!(refused.code, "OB409", "{refused:?}");
    // Nor can it be done after: the transaction cannot write any more.
    let again = format!(
        "BEGIN; {} INSERT INTO public.invoices VALUES ('e1', 'again'); COMMIT",
        work.finish_sql()
    );
    assert_eq!(session.refusal(&again).await.code, "25006");
    session.run("ROLLBACK").await;
    // A savepoint that is released would let it.
    let again = format!("BEGIN; SAVEPOINT s; {}", work.finish_sql());
    assert_eq!(session.refusal(&again).await.code, "25001");
    session.run("ROLLBACK").await;
    assert_eq!(paid(&bed), "e1|worker");
    // Several at once, though, are told together.
    session.run(&format!("BEGIN; {0} {0} COMMIT", work.finish_sql())).await;
}

/// Attempts that are spent make a retry dead, and so it is when said again.
#[tokio::test(flavor = "multi_thread")]
async fn a_last_retry_told_again_is_dead() {
    let bed = Bed::postgres().await;
    let rules = RouteRules { max_attempts: 1, max_snoozes: 0, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let session = Session::open(&bed).await;
    for (outcome, after) in [("retry", None), ("snooze", Some("1 hour"))] {
        bed.due(outcome, &[route]).await;
        let work = session.take("billing").await;
        for _ in 0..2 {
            let ended = session.finish_with(&work, outcome, Some("down"), after).await;
            assert_eq!(ended.unwrap(), "dead", "{outcome}");
        }
    }
    let rows = bed.query("SELECT state, attempts, failures, snoozes, detail FROM deliveries");
    assert_eq!(rows, "dead|1|1|0|down\ndead|1|1|0|down");
    assert_eq!(
        bed.query("SELECT outcome, number, detail FROM attempts"),
        "dead|1|down\ndead|1|down"
    );
}

/// Extended, a lease outlives its first end; the time it says is the store's.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_extended() {
    let bed = Bed::postgres().await;
    let route = billing(&bed).await;
    bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    let work = session.take("billing").await;
    let sql = "SELECT oncebox.extend($1, $2, '10 minutes')::text";
    let rows = session.rows(sql, &[&work.delivery, &work.lease]).await;
    let until = bed.query("SELECT lease_until FROM deliveries");
    assert_eq!(rows[0].get::<_, &str>(0), until);
    let near = "SELECT lease_until - now() BETWEEN interval '9 minutes' AND interval '10 minutes'
        FROM deliveries";
    assert_eq!(bed.query(near), "t");
    bed.pass(300);
    assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");

    bed.due("e2", &[route]).await;
    let work = session.take("billing").await;
    bed.pass(61);
    let late = format!("SELECT oncebox.extend('{}', {})", work.delivery, work.lease);
    assert_eq!(session.refusal(&late).await.code, "OB409");
    assert_eq!(bed.store.rescue(10).await.unwrap().retrying.len(), 1);
}

/// What a worker was lost at comes alone, and the next claim has the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_lost_comes_alone() {
    let bed = Bed::postgres().await;
    for (name, ordered) in [("plain", false), ("ordered", true)] {
        let route = bed.route(name, RouteRules { ordered, ..RouteRules::default() }).await;
        let session = Session::open(&bed).await;
        bed.due(&format!("{name}-poison"), &[route]).await;
        session.take(name).await;
        bed.pass(61);
        bed.store.rescue(10).await.unwrap();
        for n in 0..3 {
            bed.due(&format!("{name}-{n}"), &[route]).await;
        }
        let alone = session.claim(name, 10).await;
        assert_eq!(alone.len(), 1, "{name}");
        assert_eq!(alone[0].event_id, format!("{name}-poison"));
        assert_eq!(session.claim(name, 10).await.len(), 3, "{name}");
        assert_eq!(session.finish(&alone[0], "retry").await.unwrap(), "retrying");
        let lost =
            format!("SELECT count(*) FROM deliveries WHERE lost > 0 AND route = {}", route.no.0);
        assert_eq!(bed.query(&lost), "0");
    }
}

/// One claimed through one door is ended through the other, either way.
#[tokio::test(flavor = "multi_thread")]
async fn doors_share_their_leases() {
    let bed = Bed::postgres().await;
    let route = billing(&bed).await;
    let session = Session::open(&bed).await;
    bed.due("e1", &[route]).await;
    let work = session.take("billing").await;
    let ending = Ending {
        delivery: work.delivery.parse().unwrap(),
        lease: Lease(work.lease),
        next: Next::Processed,
        took: Duration::ZERO,
        status: None,
        detail: None,
        summary: None,
        guarded: false,
    };
    assert!(bed.store.finish(vec![ending.clone()]).await.unwrap()[0].is_good());
    assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");

    bed.due("e2", &[route]).await;
    let claimed = bed.take(&route).await;
    let work = Work {
        delivery: claimed.delivery.to_string(),
        lease: claimed.lease.0,
        event_id: "e2".into(),
        version: None,
        attempt: 1,
    };
    assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");
    assert!(bed.finish(&claimed, Next::Processed).await);
    assert!(!bed.finish(&claimed, Next::Stale).await);
    assert_eq!(bed.delivery(claimed.delivery).await.state, State::Processed);
}
