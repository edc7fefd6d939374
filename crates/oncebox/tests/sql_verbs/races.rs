//! Two at once. Waiting is told by what the server says of a session, not by time.

use std::sync::Arc;

use oncebox::delivery::{Next, State};
use oncebox::effect::{Begun, EffectActed, EffectState, OnUnknown, Settled, Verdict};
use oncebox_testkit::store::act;
use tokio::task::JoinHandle;

use crate::bed::{Desk, Session, key, under};

/// Calls in the background; tells the answer and gives the session back.
fn call(session: Session, call: &'static str) -> JoinHandle<(bool, Session)> {
    tokio::spawn(async move { (session.yes(call).await, session) })
}

/// Whoever comes second waits for the first, and hears no before that is certain.
#[tokio::test(flavor = "multi_thread")]
async fn once_waits_for_who_was_first() {
    for (last, second_is_first) in [("COMMIT", false), ("ROLLBACK", true)] {
        let desk = Desk::new().await;
        let (first, second) = (desk.at_work("e1").await, desk.at_work("e2").await);
        assert!(first.yes("once('k')").await);
        let pid = second.pid;
        let answer = call(second, "once('k')");
        desk.until_waiting(pid);
        assert!(!answer.is_finished());
        first.run(last).await;
        let (yes, second) = answer.await.unwrap();
        assert_eq!(yes, second_is_first, "{last}");
        second.commit().await;
        assert_eq!(desk.bed.rows("effects"), 1);
        assert_eq!(desk.bed.rows("effect_conflicts"), usize::from(!second_is_first));
    }
}

/// Whoever does not want to wait for long is told so, and never no.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_cannot_be_had_is_an_error() {
    let desk = Desk::new().await;
    let (first, second) = (desk.at_work("e1").await, desk.at_work("e2").await);
    assert!(first.yes("once('k')").await);
    second.run("SET LOCAL lock_timeout = 1").await;
    let error = second.try_to("SELECT oncebox.once('k')").await.unwrap_err();
    assert_eq!(error.code().code(), "55P03");
}

/// With one snapshot for the whole transaction the second cannot see what the first has done: an
/// error, for neither yes nor no would be true.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_snapshot_is_an_error() {
    let desk = Desk::new().await;
    let first = desk.at_work("e1").await;
    let second = desk.claimed("e2").await;
    let session = desk.session().await;
    session.run("SET default_transaction_isolation = 'repeatable read'").await;
    session.enter(&second).await;
    assert!(first.yes("once('k')").await);
    assert!(first.yes("advance('x', 5)").await);
    assert!(first.yes("send('mailer', 'm', '1', 'g')").await);
    first.commit().await;
    for verb in [
        "once('k')",
        "advance('x', 6)",
        "send('mailer', 'm', '1')",
        "send('mailer', 'n', '1', 'g')",
    ] {
        session.run("SAVEPOINT s").await;
        let error = session.try_to(&format!("SELECT oncebox.{verb}")).await.unwrap_err();
        assert_eq!(error.code().code(), "40001", "{verb}");
        session.run("ROLLBACK TO s").await;
    }
    session.roll_back().await;
    session.enter(&second).await;
    assert!(!session.yes("once('k')").await);
}

/// Numbers in a group are in the order of commits, and one that is rolled back leaves no gap.
#[tokio::test(flavor = "multi_thread")]
async fn groups_number_in_the_order_of_commits() {
    let desk = Desk::new().await;
    let (first, second) = (desk.at_work("e1").await, desk.at_work("e2").await);
    assert!(first.yes("send('mailer', 'a', '1', 'g')").await);
    let pid = second.pid;
    let answer = call(second, "send('mailer', 'b', '2', 'g')");
    desk.until_waiting(pid);
    // Other groups, and messages without one, wait for nobody.
    let third = desk.at_work("e3").await;
    assert!(third.yes("send('mailer', 'c', '3', 'h')").await);
    assert!(third.yes("send('mailer', 'd', '4')").await);
    third.commit().await;
    first.commit().await;
    let (sent, second) = answer.await.unwrap();
    assert!(sent);

    let fourth = desk.at_work("e4").await;
    let pid = fourth.pid;
    let answer = call(fourth, "send('mailer', 'e', '5', 'g')");
    desk.until_waiting(pid);
    second.roll_back().await;
    let (sent, fourth) = answer.await.unwrap();
    assert!(sent);
    fourth.commit().await;
    let numbers = "SELECT event_id, object, version FROM receipts
        WHERE event_type = 'message' ORDER BY object, version, event_id";
    assert_eq!(desk.bed.query(numbers), "a|g|1\ne|g|2\nc|h|1\nd||");
    assert_eq!(desk.bed.query("SELECT name, last FROM outbox_groups ORDER BY 1"), "g|2\nh|1");
}

/// Many senders at once, some of which give up: no number twice, none left out.
#[tokio::test(flavor = "multi_thread")]
async fn many_senders_leave_no_gap() {
    let desk = Arc::new(Desk::new().await);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let desk = desk.clone();
        let session = desk.at_work(&format!("e{worker}")).await;
        session.commit().await;
        let claimed = desk.claimed(&format!("f{worker}")).await;
        tasks.spawn(async move {
            for n in 0..20 {
                session.enter(&claimed).await;
                let key = format!("{worker}-{n}");
                assert!(session.yes(&format!("send('mailer', '{key}', '{key}', 'g')")).await);
                session.run(if n % 4 == 3 { "ROLLBACK" } else { "COMMIT" }).await;
            }
        });
    }
    tasks.join_all().await;
    let numbers = "SELECT count(*), count(DISTINCT version), min(version), max(version)
        FROM receipts WHERE object = 'g'";
    assert_eq!(desk.bed.query(numbers), "60|60|1|60");
}

/// The second to move a watermark decides on what the first has left.
#[tokio::test(flavor = "multi_thread")]
async fn advance_waits_for_who_was_first() {
    for (last, is_newest) in [("COMMIT", false), ("ROLLBACK", true)] {
        let desk = Desk::new().await;
        let (first, second) = (desk.at_work("e1").await, desk.at_work("e2").await);
        assert!(first.yes("advance('x', 5)").await);
        let pid = second.pid;
        let answer = call(second, "advance('x', 4)");
        desk.until_waiting(pid);
        first.run(last).await;
        let (yes, second) = answer.await.unwrap();
        assert_eq!(yes, is_newest, "{last}");
        second.commit().await;
        let applied = if is_newest { "4" } else { "5" };
        assert_eq!(desk.bed.query("SELECT applied FROM lanes"), applied);
    }
}

/// SQL and the store race for the same keys: one of them does each.
#[tokio::test(flavor = "multi_thread")]
async fn doors_race_for_the_same_key() {
    let desk = Arc::new(Desk::new().await);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let desk = desk.clone();
        let claimed = desk.claimed(&format!("e{worker}")).await;
        let session = desk.session().await;
        tasks.spawn(async move {
            let mut done = 0;
            for n in 0..20 {
                let name = format!("k{n}");
                if worker % 2 == 0 {
                    let begun = desk
                        .bed
                        .store
                        .begin_effect(under(&claimed), &key(&name), OnUnknown::Retry)
                        .await
                        .unwrap();
                    if matches!(begun, Begun::Yours { .. }) {
                        let store = &desk.bed.store;
                        let said = store.complete_effect(under(&claimed), &key(&name), None).await;
                        assert_eq!(said.unwrap(), Settled::Done);
                        done += 1;
                    }
                    continue;
                }
                session.enter(&claimed).await;
                match session.try_to(&format!("SELECT oncebox.once('{name}')")).await {
                    Ok(()) => {
                        let mine = format!(
                            "SELECT count(*) FROM oncebox.effect('{name}') WHERE receipt = '{}'",
                            claimed.delivery.receipt
                        );
                        done += usize::from(session.text(&mine).await.as_deref() == Some("1"));
                        session.commit().await;
                    }
                    Err(error) => {
                        assert_eq!(error.code().code(), "OB425", "{error}");
                        session.roll_back().await;
                    }
                }
            }
            done
        });
    }
    let done: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!(done, 20);
    assert_eq!(desk.bed.query("SELECT count(*) FROM effects WHERE state = 'done'"), "20");
}

/// Beginning outside a transaction waits for one that has the key and may be rolled back.
#[tokio::test(flavor = "multi_thread")]
async fn begin_waits_for_a_transaction() {
    for last in ["COMMIT", "ROLLBACK"] {
        let desk = Arc::new(Desk::new().await);
        let first = desk.at_work("e1").await;
        let second = desk.claimed("e2").await;
        assert!(first.yes("once('k')").await);
        let beginning = {
            let (desk, second) = (desk.clone(), second.clone());
            tokio::spawn(async move {
                let store = &desk.bed.store;
                store.begin_effect(under(&second), &key("k"), OnUnknown::Ask).await.unwrap()
            })
        };
        until_somebody_waits(&desk);
        first.run(last).await;
        let begun = beginning.await.unwrap();
        match last {
            "COMMIT" => assert!(matches!(begun, Begun::Done(_)), "{begun:?}"),
            _ => assert!(matches!(begun, Begun::Yours { unknowns: 0, .. }), "{begun:?}"),
        }
    }
}

/// Waits until a session of the store waits for somebody's lock.
fn until_somebody_waits(desk: &Desk) {
    let sql = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    oncebox_testkit::wait::until("somebody waits", || desk.bed.query(sql) == "1");
}

/// A lease seems to have ended, but its extension is being committed: that is waited for, and
/// whoever is at the effect is not taken for dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_being_extended_is_good() {
    let desk = Arc::new(Desk::new().await);
    let (first, second) = (desk.claimed("e1").await, desk.claimed("e2").await);
    let store = &desk.bed.store;
    store.begin_effect(under(&first), &key("k"), OnUnknown::Retry).await.unwrap();
    // As an extension that was decided just before the end.
    let at = format!("WHERE receipt = '{}'", first.delivery.receipt);
    desk.lapse(&first);
    let extending = desk.session().await;
    let later = "lease_until = now() + interval '1 hour'";
    extending.run(&format!("BEGIN; UPDATE oncebox.deliveries SET {later} {at}")).await;

    let beginning = {
        let (desk, second) = (desk.clone(), second.clone());
        tokio::spawn(async move {
            let store = &desk.bed.store;
            store.begin_effect(under(&second), &key("k"), OnUnknown::Ask).await.unwrap()
        })
    };
    until_somebody_waits(&desk);
    extending.commit().await;
    let begun = beginning.await.unwrap();
    assert!(matches!(begun, Begun::Busy(_)), "{begun:?}");

    desk.lapse(&first);
    extending.run(&format!("BEGIN; UPDATE oncebox.deliveries SET {later} {at}")).await;
    let completing = {
        let (desk, first) = (desk.clone(), first.clone());
        tokio::spawn(async move {
            let store = &desk.bed.store;
            store.complete_effect(under(&first), &key("k"), None).await.unwrap()
        })
    };
    until_somebody_waits(&desk);
    extending.commit().await;
    assert_eq!(completing.await.unwrap(), Settled::Done);
}

/// An operator settles an effect while a delivery is being held for it: either it finds it settled,
/// or it is let go. It is never left behind.
#[tokio::test(flavor = "multi_thread")]
async fn settling_and_holding_do_not_miss_each_other() {
    let desk = Arc::new(Desk::new().await);
    for n in 0..24 {
        let effect = format!("k{n}");
        let first = desk.claimed(&format!("a{n}")).await;
        let store = &desk.bed.store;
        store.begin_effect(under(&first), &key(&effect), OnUnknown::Ask).await.unwrap();
        desk.lapse(&first);
        let second = desk.claimed(&format!("b{n}")).await;
        let beginning = {
            let (desk, second, effect) = (desk.clone(), second.clone(), effect.clone());
            tokio::spawn(async move {
                let store = &desk.bed.store;
                store.begin_effect(under(&second), &key(&effect), OnUnknown::Ask).await.unwrap()
            })
        };
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
        let verdict = if n % 2 == 0 { Verdict::Done { result: None } } else { Verdict::NotDone };
        let acted = store.settle_effect(&effect, &verdict, &act("looked")).await.unwrap();
        let EffectActed::Done { released } = acted else { panic!("{acted:?}") };
        let held = "SELECT count(*) FROM deliveries WHERE state = 'held' OR effect <> ''";
        match beginning.await.unwrap() {
            Begun::Parked(_) => {
                assert_eq!(released, 1);
                assert_eq!(desk.bed.query(held), "0");
                let again = desk.bed.take(&desk.route).await;
                assert_eq!(again.delivery, second.delivery);
                assert!(desk.bed.finish(&again, Next::Processed).await);
            }
            Begun::Done(_) | Begun::Yours { .. } => {
                assert_eq!(released, 0);
                assert!(desk.bed.finish(&second, Next::Processed).await);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A held delivery that is replayed or let go before its turn forgets what it was held for, and the
/// safety nets leave it alone until then.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_for_an_effect_stays_until_somebody_acts() {
    let desk = Desk::new().await;
    let first = desk.claimed("e1").await;
    let store = &desk.bed.store;
    store.begin_effect(under(&first), &key("k"), OnUnknown::Ask).await.unwrap();
    desk.lapse(&first);
    let second = desk.claimed("e2").await;
    let begun = store.begin_effect(under(&second), &key("k"), OnUnknown::Ask).await.unwrap();
    let Begun::Parked(effect) = begun else { panic!("{begun:?}") };
    assert_eq!((effect.state, effect.unknowns), (EffectState::Unknown, 1));
    assert_eq!(store.release_unblocked(100).await.unwrap().released, 0);
    let rescued = store.rescue(100).await.unwrap();
    assert_eq!((rescued.retrying.len(), rescued.dead.len()), (1, 0));
    assert_eq!(desk.bed.delivery(second.delivery).await.state, State::Held);

    store.release(second.delivery, &act("I know")).await.unwrap();
    let row = "SELECT state, effect, ignores_order FROM deliveries WHERE receipt";
    let row = format!("{row} = '{}'", second.delivery.receipt);
    assert_eq!(desk.bed.query(&row), "received||f");
}
