//! Bad input: each refused with a code and the remedy, and nothing changed.

use oncebox::route::RouteRules;
use oncebox_testkit::store::Bed;

use super::session::Session;

#[tokio::test(flavor = "multi_thread")]
async fn bad_claims_are_refused() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    for (call, code, hint) in [
        ("claim('nope')", "OB404", "oncebox routes list"),
        ("claim(NULL)", "OB404", "oncebox routes list"),
        ("claim('billing', 0)", "OB400", "at least 1"),
        ("claim('billing', -1)", "OB400", "at least 1"),
        ("claim('billing', NULL)", "OB400", "at least 1"),
        ("claim('billing', 1, '999 milliseconds')", "OB400", "between 1 second and 1 hour"),
        ("claim('billing', 1, '61 minutes')", "OB400", "between 1 second and 1 hour"),
        ("claim('billing', 1, '-1 minute')", "OB400", "between 1 second and 1 hour"),
        ("claim('billing', 1, NULL)", "OB400", "between 1 second and 1 hour"),
    ] {
        assert_refused(&session, &format!("SELECT * FROM oncebox.{call}"), code, hint).await;
    }
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        session.run(&format!("BEGIN ISOLATION LEVEL {level}")).await;
        let sql = "SELECT * FROM oncebox.claim('billing')";
        assert_refused(&session, sql, "OB412", "READ COMMITTED").await;
        session.run("ROLLBACK").await;
    }
    assert_eq!(bed.query("SELECT state, attempts FROM deliveries"), "received|0");
}

/// What a worker took of a route that is pushed would never be.
#[tokio::test(flavor = "multi_thread")]
async fn routes_that_are_pushed_are_refused() {
    let bed = Bed::postgres().await;
    let pushed = RouteRules { pulled: false, ..RouteRules::default() };
    let route = bed.route("billing", pushed).await;
    let mail = bed.destination("mail").await;
    bed.due("e1", &[route, mail]).await;
    let session = Session::open(&bed).await;
    for (route, hint) in [("billing", "pull = true instead of push"), ("outbox/mail", "the url")] {
        let sql = format!("SELECT * FROM oncebox.claim('{route}')");
        assert_refused(&session, &sql, "OB412", hint).await;
    }
    assert_eq!(bed.query("SELECT DISTINCT state, attempts FROM deliveries"), "received|0");
    // Its own worker still takes from it, and so does anybody once it is pulled.
    assert_eq!(bed.claim(&mail, 9).await.claimed.len(), 1);
    bed.route("billing", RouteRules::default()).await;
    assert_eq!(session.take("billing").await.event_id, "e1");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_endings_are_refused() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    let work = session.take("billing").await;
    let (id, lease) = (&work.delivery, work.lease);
    let other = "0199b8d3-0000-7000-8000-000000000000";
    let before = bed.query("SELECT * FROM deliveries");
    for (call, code, hint) in [
        (format!("finish('', {lease})"), "OB400", "a receipt id, a dot, a number"),
        (format!("finish('{other}', {lease})"), "OB400", "a receipt id, a dot, a number"),
        (format!("finish('{other}.99999', {lease})"), "OB400", "a receipt id, a dot, a number"),
        (format!("finish(NULL, {lease})"), "OB400", "a receipt id, a dot, a number"),
        (format!("finish('{id}', NULL)"), "OB400", "Give the lease"),
        (format!("finish('{id}', {lease}, 'done')"), "OB400", "processed, stale, retry"),
        (format!("finish('{id}', {lease}, NULL)"), "OB400", "processed, stale, retry"),
        (format!("finish('{id}', {lease}, 'snooze')"), "OB400", "A snooze needs"),
        (format!("finish('{id}', {lease}, 'retry', NULL, '-1 s')"), "OB400", "below zero"),
        (format!("finish('{id}', {lease}, 'dead', NULL, '1 s')"), "OB400", "have none"),
        (format!("finish('{id}', {lease}, after => '1 s')"), "OB400", "have none"),
        (format!("finish('{other}.1', {lease})"), "OB404", "as oncebox.claim returned it"),
        (format!("finish('{id}', {})", lease + 1), "OB409", "Roll back"),
        (format!("finish('{id}', 0)"), "OB409", "Roll back"),
        (format!("extend('x', {lease})"), "OB400", "a receipt id, a dot, a number"),
        (format!("extend('{id}', NULL)"), "OB400", "Give the lease"),
        (format!("extend('{id}', {lease}, '2 hours')"), "OB400", "between 1 second and 1 hour"),
        (format!("extend('{id}', {lease}, NULL)"), "OB400", "between 1 second and 1 hour"),
        (format!("extend('{other}.1', {lease})"), "OB404", "as oncebox.claim returned it"),
        (format!("extend('{id}', {})", lease - 1), "OB409", "Roll back"),
    ] {
        assert_refused(&session, &format!("SELECT oncebox.{call}"), code, hint).await;
    }
    session.run("BEGIN READ ONLY").await;
    let sql = format!("SELECT oncebox.finish('{id}', {lease})");
    assert_refused(&session, &sql, "OB412", "may write").await;
    session.run("ROLLBACK").await;
    assert_eq!(bed.query("SELECT * FROM deliveries"), before);
    assert_eq!(bed.rows("attempts") + bed.rows("finished"), 0);
    assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");
}

/// Whoever may be allowed must be there.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_role_can_be_allowed() {
    let bed = Bed::postgres().await;
    let session = Session::open(&bed).await;
    for role in ["'public'", "'no such role'", "''", "NULL"] {
        let sql = format!("SELECT oncebox.allow({role})");
        assert_refused(&session, &sql, "OB404", "CREATE ROLE").await;
    }
}

async fn assert_refused(session: &Session, sql: &str, code: &str, hint: &str) {
    let refused = session.refusal(sql).await;
    assert_eq!(refused.code, code, "{sql}: {refused:?}");
    assert!(refused.hint.as_ref().is_some_and(|h| h.contains(hint)), "{sql}: {refused:?}");
    assert!(!refused.message.is_empty());
}
