//! What the verbs refuse: each with a code and a remedy, and nothing is changed.

use std::time::Duration;

use oncebox::delivery::Next;

use crate::bed::{Desk, Session, entering};

async fn is_refused(session: &Session, call: &str, code: &str, remedy: &str) {
    let (found, hint) = session.refusal(&format!("SELECT {call}")).await;
    assert_eq!(found, code, "{call}: {hint}");
    assert!(hint.contains(remedy), "{call}: {hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_names_its_remedy() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let session = desk.session().await;
    session.enter(&claimed).await;
    let (delivery, receipt) = (claimed.delivery, claimed.delivery.receipt);
    let texts = [
        ("repeat('k', 513)", "Hash"),
        ("repeat('é', 257)", "Hash"),
        ("E'a\\nb'", "plain text"),
        ("U&'a\\0085b'", "plain text"),
        ("E'\\x7f'", "plain text"),
    ];
    for (text, remedy) in texts {
        for call in [
            format!("oncebox.once({text})"),
            format!("oncebox.step('{delivery}', {text})"),
            format!("oncebox.get_result('{delivery}', {text})"),
            format!("oncebox.advance({text}, 1)"),
            format!("oncebox.send('mailer', {text}, 'x')"),
            format!("oncebox.send({text}, 'm', 'x')"),
            format!("oncebox.send('mailer', 'm', 'x', {text})"),
        ] {
            is_refused(&session, &call, "OB400", remedy).await;
        }
    }
    for empty in ["NULL", "''"] {
        for (call, remedy) in [
            (format!("oncebox.once({empty})"), "receipt-email:in_456"),
            (format!("oncebox.step('{delivery}', {empty})"), "the stage"),
            (format!("oncebox.get_result('{delivery}', {empty})"), "the stage"),
            (format!("oncebox.advance({empty}, 1)"), "what the event is about"),
            (format!("oncebox.send('mailer', {empty}, 'x')"), "receipt-email:in_456"),
            (format!("oncebox.send({empty}, 'm', 'x')"), "[destinations.NAME]"),
        ] {
            is_refused(&session, &call, "OB400", remedy).await;
        }
    }
    let call = "oncebox.send('mailer', 'm', 'x', '')";
    is_refused(&session, call, "OB400", "NULL is for none").await;
    let large = "to_jsonb(repeat('x', 16383))";
    for (call, code, remedy) in [
        ("oncebox.once('outbox/mailer/m')".to_owned(), "OB400", "another"),
        (format!("oncebox.once('{receipt}/audit/charge')"), "OB400", "oncebox.step"),
        (format!("oncebox.once(upper('{receipt}/audit/charge'))"), "OB400", "order:UUID"),
        (format!("oncebox.once('k', {large})"), "OB400", "where it is"),
        (format!("oncebox.set_result('{delivery}', 'x', {large})"), "OB400", "where it is"),
        ("oncebox.send('mailer', 'm', NULL::text)".to_owned(), "OB400", "may be empty"),
        ("oncebox.send('mailer', 'm', repeat('x', 1048577))".to_owned(), "OB400", "where it is"),
        ("oncebox.send('nobody', 'm', 'x')".to_owned(), "OB404", "[destinations.nobody]"),
        ("oncebox.advance('x', NULL)".to_owned(), "OB400", "cannot be stale"),
        (format!("oncebox.set_result('{delivery}', 'x', '1')"), "OB404", "oncebox.step"),
    ] {
        is_refused(&session, &call, code, remedy).await;
    }
    for content_type in ["''", "' '", "E'a\\nb: c'", "'caf\u{e9}'", "repeat('x', 256)"] {
        let call = format!("oncebox.send('mailer', 'm', 'x', NULL, {content_type})");
        is_refused(&session, &call, "OB400", "application/json").await;
    }
    session.commit().await;
    for table in ["effects", "lanes", "outbox_groups"] {
        assert_eq!(desk.bed.rows(table), 0, "{table}");
    }
}

/// As much as is allowed is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_within_reach() {
    let desk = Desk::new().await;
    let session = desk.at_work("e1").await;
    assert!(session.yes("once(repeat('k', 512), to_jsonb(repeat('x', 16382)))").await);
    let payload = "repeat('x', 1048576)";
    let send = format!("send('mailer', repeat('é', 256), {payload}, repeat('g', 512))");
    assert!(session.yes(&send).await);
    assert!(session.yes("send('mailer', 'empty', '')").await);
    assert!(session.yes("advance(repeat('o', 512), 9223372036854775807)").await);
    session.commit().await;
    assert_eq!(desk.bed.rows("effects"), 3);
}

/// Seconds where the watermark has milliseconds would read as stale for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_of_another_unit_is_refused() {
    let desk = Desk::new().await;
    let session = desk.at_work("e1").await;
    assert!(session.yes("advance('in_1', 1760000000000)").await);
    let seconds = "oncebox.advance('in_1', 1760000060)";
    is_refused(&session, seconds, "OB400", "object_version").await;
    assert!(session.yes("advance('in_1', 1760000060000)").await);
    session.commit().await;
    assert_eq!(desk.bed.query("SELECT applied FROM lanes"), "1760000060000");
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_need_a_delivery() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let delivery = claimed.delivery;
    let session = desk.session().await;
    let verbs = [
        "once('k')".to_owned(),
        format!("step('{delivery}', 'charge')"),
        format!("set_result('{delivery}', 'charge', '1')"),
        format!("get_result('{delivery}', 'charge')"),
        "send('mailer', 'm', 'x')".to_owned(),
        "send('mailer', 'm', '{}'::jsonb)".to_owned(),
        "send('mailer', 'm', ''::bytea)".to_owned(),
        "advance('x', 1)".to_owned(),
    ];
    for before in ["never", "in another transaction"] {
        session.run("BEGIN").await;
        for verb in &verbs {
            let call = format!("oncebox.{verb}");
            is_refused(&session, &call, "OB412", "oncebox.enter(delivery, lease)").await;
        }
        // Looking is free.
        let count = "SELECT count(*) FROM oncebox.effect('k')";
        assert_eq!(session.text(count).await.as_deref(), Some("0"), "{before}");
        session.roll_back().await;
        session.enter(&claimed).await;
        session.commit().await;
    }
    // A step of another delivery than the one that was entered.
    let other = desk.claimed("e2").await;
    session.enter(&other).await;
    for verb in &verbs[1..4] {
        is_refused(&session, &format!("oncebox.{verb}"), "OB412", "oncebox.enter").await;
    }
    session.roll_back().await;
    assert_eq!(desk.bed.rows("effects"), 0);
}

/// A setting is made by anybody; only a claim makes a lease.
#[tokio::test(flavor = "multi_thread")]
async fn settings_made_by_hand_open_nothing() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let session = desk.session().await;
    let by_hand = |lease: &str| {
        format!("SET oncebox.delivery = '{}'; SET oncebox.lease = '{lease}'", claimed.delivery)
    };
    for lease in ["", "1"] {
        session.run(&format!("BEGIN; {}", by_hand(lease))).await;
        is_refused(&session, "oncebox.once('k')", "OB409", "Roll back").await;
        session.roll_back().await;
    }
    session.run("BEGIN; SET oncebox.delivery = 'nonsense'").await;
    is_refused(&session, "oncebox.once('k')", "OB400", "oncebox.claim").await;
    session.roll_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_entered_is_told_apart() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let (receipt, lease) = (claimed.delivery.receipt, claimed.lease);
    let session = desk.session().await;
    session.run("BEGIN").await;
    let mut calls: Vec<(String, &str, &str)> = ["NULL", "''", "'x'", "'1.1'"]
        .map(|text| (format!("oncebox.enter({text}, {lease})"), "OB400", "oncebox.claim"))
        .to_vec();
    calls.extend([
        (format!("oncebox.enter('{receipt}.99999', 1)"), "OB400", "oncebox.claim"),
        (format!("oncebox.enter('{receipt}.1', NULL)"), "OB400", "oncebox.claim"),
        (format!("oncebox.enter('{receipt}.32767', 1)"), "OB404", "oncebox.claim"),
        (format!("oncebox.enter('{receipt}.1', {})", lease.0 + 1), "OB409", "oncebox.claim"),
    ]);
    for (call, code, remedy) in calls {
        is_refused(&session, &call, code, remedy).await;
    }
    session.roll_back().await;
}

/// What became of a delivery is said to whoever comes too late for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_says_what_became_of_the_delivery() {
    let desk = Desk::new().await;
    for (event, end, state) in [
        ("e1", Some(Next::Processed), "is processed already"),
        ("e2", Some(Next::Stale), "is skipped already"),
        ("e3", Some(Next::Dead), "is dead already"),
        ("e4", Some(Next::Retry(Duration::from_secs(60))), "the delivery is retrying"),
        ("e5", None, "it ran out"),
    ] {
        let claimed = desk.claimed(event).await;
        match end {
            Some(next) => assert!(desk.bed.finish(&claimed, next).await),
            None => desk.bed.pass(120),
        }
        let session = desk.session().await;
        let refused = session.try_to(&entering(&claimed)).await.unwrap_err();
        assert_eq!(refused.code().code(), "OB409", "{refused:?}");
        assert!(refused.message().contains(state), "{refused:?}");
        assert!(refused.hint().unwrap().contains("finish is the last verb"), "{refused:?}");
    }
}

/// A lease that runs out in the middle stops the verbs after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_stops_every_verb() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let delivery = claimed.delivery;
    let session = desk.session().await;
    session.enter(&claimed).await;
    assert!(session.yes("once('k')").await);
    desk.bed.pass(120);
    for verb in [
        "once('k')".to_owned(),
        format!("step('{delivery}', 'charge')"),
        format!("set_result('{delivery}', 'charge', '1')"),
        format!("get_result('{delivery}', 'charge')"),
        "send('mailer', 'm', 'x')".to_owned(),
        "advance('x', 1)".to_owned(),
    ] {
        is_refused(&session, &format!("oncebox.{verb}"), "OB409", "Roll back").await;
    }
    session.roll_back().await;
    assert_eq!(desk.bed.rows("effects"), 0);
}

/// What comes after the end of the attempt, in its own transaction, is outside of the delivery.
#[tokio::test(flavor = "multi_thread")]
async fn verbs_come_before_the_end() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let (delivery, lease) = (claimed.delivery, claimed.lease);
    let session = desk.session().await;
    session.enter(&claimed).await;
    session.run(&format!("SELECT oncebox.finish('{delivery}', {lease})")).await;
    for verb in [
        "once('k')".to_owned(),
        format!("step('{delivery}', 'charge')"),
        "send('mailer', 'm', 'x')".to_owned(),
        "advance('x', 1)".to_owned(),
    ] {
        let verb = format!("oncebox.{verb}");
        is_refused(&session, &verb, "OB409", "finish is the last verb").await;
    }
    session.commit().await;
    assert_eq!((desk.bed.rows("effects"), desk.bed.rows("lanes")), (0, 0));
    assert_eq!(desk.bed.states(&desk.route).await, ["e1 processed"]);
}

/// Work in the transaction of the claim would be rolled back with it, and nobody would have counted
/// the attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_committed_before_work_begins() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let session = desk.session().await;
    session.run("BEGIN; UPDATE oncebox.deliveries SET claimed_in = pg_current_xact_id()").await;
    session.run("SAVEPOINT inside").await;
    let (code, hint) = session.refusal(&entering(&claimed)).await;
    assert_eq!(code, "OB412");
    assert!(hint.contains("Commit the claim first"), "{hint}");
    let by_hand = format!(
        "SET LOCAL oncebox.delivery = '{}'; SET LOCAL oncebox.lease = '{}'",
        claimed.delivery, claimed.lease
    );
    session.run(&by_hand).await;
    is_refused(&session, "oncebox.once('k')", "OB412", "Commit the claim first").await;
    session.commit().await;
    session.enter(&claimed).await;
    assert!(session.yes("once('k')").await);
    session.commit().await;
}

/// Nobody may call anything, unless the owner has allowed it.
#[tokio::test(flavor = "multi_thread")]
async fn functions_are_nobodys_to_begin_with() {
    let desk = Desk::new().await;
    let open = "SELECT p.proname FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = 'oncebox'
        WHERE EXISTS (
            SELECT 1 FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
            WHERE a.grantee = 0
        )";
    assert_eq!(desk.bed.query(open), "");
    // Those that run as the owner look for names in no place but their own.
    let loose = "SELECT p.proname FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = 'oncebox'
        WHERE p.prosecdef
          AND NOT coalesce('search_path=oncebox, pg_temp' = ANY (p.proconfig), false)";
    assert_eq!(desk.bed.query(loose), "");
}

/// A role that was allowed to calls the verbs, and touches nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_role_has_the_verbs_and_nothing_else() {
    let desk = Desk::new().await;
    let claimed = desk.claimed("e1").await;
    let delivery = claimed.delivery;
    // Roles belong to the server, databases to tests.
    let role = format!("orders_{}", delivery.receipt.as_uuid().simple());
    desk.bed.query(&format!("CREATE ROLE {role}; SELECT oncebox.allow('{role}', 'billing')"));
    let session = desk.session().await;
    session.run(&format!("SET ROLE {role}")).await;
    session.enter(&claimed).await;
    assert!(session.yes("once('k')").await);
    assert!(session.yes(&format!("step('{delivery}', 'charge')")).await);
    session.run(&format!("SELECT oncebox.set_result('{delivery}', 'charge', '1')")).await;
    let one = session.text(&format!("oncebox.get_result('{delivery}', 'charge')")).await;
    assert_eq!(one.as_deref(), Some("1"));
    for payload in ["'1'", "'1'::jsonb", "'1'::bytea"] {
        session.run(&format!("SELECT oncebox.send('mailer', 'm', {payload})")).await;
    }
    assert!(session.yes("advance('x', 1)").await);
    let state = session.text("SELECT state FROM oncebox.effect('k')").await;
    assert_eq!(state.as_deref(), Some("done"));
    for closed in [
        "SELECT FROM oncebox.effects",
        "SELECT FROM oncebox.known_effects",
        "SELECT FROM oncebox.deliveries",
        "SELECT oncebox.new_id()",
        "SELECT oncebox.release_parked('k')",
        "SELECT oncebox.current_work()",
        "SELECT oncebox.move_watermark(oncebox.new_id(), 1::smallint, 1::smallint, 'x', 1)",
        "SELECT oncebox.allow('postgres')",
    ] {
        session.run("SAVEPOINT s").await;
        let error = session.try_to(closed).await.expect_err(closed);
        assert_eq!(error.code().code(), "42501", "{closed}");
        session.run("ROLLBACK TO s").await;
    }
    session.commit().await;
    desk.bed.query(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
