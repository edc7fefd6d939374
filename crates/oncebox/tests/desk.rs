//! What operators see and do, and that every act is written down with what it did.

use std::time::Duration;

use oncebox::delivery::{Counts, DeliveryId, Next, Reason, State};
use oncebox::receipt::{Arrival, ReceiptId};
use oncebox::replay::{How, Replay, ReplayFilter};
use oncebox::route::RouteRules;
use oncebox::store::{Act, Acted, DeliveryFilter, DeliveryRow, StoreError, Tally};
use oncebox::token::{Scope, Token, TokenId};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, Route, act, time};

for_each_store!(
    a_row_tells_everything,
    a_held_row_names_what_it_waits_for,
    lists_filter,
    lists_filter_by_state_and_reason,
    lists_page_over_open_and_finished,
    tallies_count_every_state,
    tallies_follow_the_oldest,
    a_pause_is_shown_and_kept,
    what_nobody_works_on_can_be_discarded,
    only_held_can_be_released,
    acts_are_written_down,
    the_audit_pages,
    an_act_that_cannot_be_written_down_is_not_done,
    tokens_are_kept_as_hashes,
    a_token_is_revoked_once,
    haste_is_only_for_retries,
    receipts_show_where_their_deliveries_stand,
);

const MINUTE: Duration = Duration::from_secs(60);

fn in_order() -> RouteRules {
    RouteRules { ordered: true, ..RouteRules::default() }
}

/// One delivery in each state, on one ordered route. Each is of an object of its own, but for the
/// one that is held behind the dead one.
async fn every_state(bed: &Bed) -> Route {
    let route = bed.route("billing", in_order()).await;
    let nexts = [
        ("processed", Some(Next::Processed)),
        ("skipped", Some(Next::Stale)),
        ("dead", Some(Next::Dead)),
        ("retrying", Some(Next::Retry(MINUTE))),
        ("processing", None),
    ];
    for (n, (id, next)) in (0..).zip(nexts) {
        let arrival = bed.arrival_at(id, "{}", time(NOON + n));
        let object = Some(id.to_owned());
        bed.send(Arrival { object, takers: vec![route.taker()], ..arrival }).await;
        let claimed = bed.take(&route).await;
        if let Some(next) = next {
            assert!(bed.finish(&claimed, next).await);
        }
    }
    for (n, id, object) in [(5, "held", "dead"), (6, "received", "received")] {
        let arrival = bed.arrival_at(id, "{}", time(NOON + n));
        let object = Some(object.to_owned());
        bed.send(Arrival { object, takers: vec![route.taker()], ..arrival }).await;
        if id == "held" {
            assert_eq!(bed.take_if_any(&route).await, None);
        }
    }
    route
}

async fn find(bed: &Bed, event_id: &str) -> DeliveryId {
    let filter = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
    let rows = bed.store.deliveries(&filter).await.unwrap();
    rows.into_iter().find(|row| row.event_id == event_id).expect("a delivery").delivery
}

async fn event_ids(bed: &Bed, filter: DeliveryFilter) -> Vec<String> {
    let rows = bed.store.deliveries(&DeliveryFilter { limit: 100, ..filter }).await.unwrap();
    rows.into_iter().map(|row| row.event_id).collect()
}

async fn a_row_tells_everything(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let arrival = Arrival { takers: vec![route.taker()], ..bed.arrival("evt_1", "{}") };
    let receipt = bed.send(arrival).await;
    let row = bed.delivery(route.of(receipt)).await;
    assert!(row.due_at.is_some());
    let expected = DeliveryRow {
        delivery: route.of(receipt),
        route: "billing".into(),
        paused: false,
        source: "stripe-live".into(),
        event_id: "evt_1".into(),
        event_type: "invoice.paid".into(),
        object: Some("in_456".into()),
        version: Some(7),
        received_at: time(NOON),
        state: State::Received,
        reason: None,
        counts: Counts::default(),
        replays: 0,
        due_at: row.due_at,
        lease_until: None,
        worker: None,
        finished_at: None,
        detail: None,
        summary: None,
        first: None,
        waits_for: None,
        behind: None,
        mark: None,
    };
    assert_eq!(row, expected);
}

/// Behind a dead one of its object, then behind one that is being processed.
async fn a_held_row_names_what_it_waits_for(bed: Bed) {
    let route = every_state(&bed).await;
    let (held, dead) = (find(&bed, "held").await, find(&bed, "dead").await);
    let behind = bed.delivery(held).await.behind.expect("it is held behind another");
    assert_eq!((behind.receipt, behind.event_id.as_str()), (dead.receipt, "dead"));
    assert_eq!(behind.state, State::Dead);
    for other in ["dead", "retrying", "processing", "received", "processed"] {
        assert_eq!(bed.delivery(find(&bed, other).await).await.behind, None, "{other}");
    }
    let object = Some("processing".to_owned());
    let arrival = bed.arrival_at("second", "{}", time(NOON + 9));
    bed.send(Arrival { object, takers: vec![route.taker()], ..arrival }).await;
    // What was received is taken, and the second of an object in flight is held.
    while bed.take_if_any(&route).await.is_some() {}
    let behind = bed.delivery(find(&bed, "second").await).await.behind.unwrap();
    assert_eq!((behind.event_id.as_str(), behind.state), ("processing", State::Processing));
}

async fn lists_filter(bed: Bed) {
    let billing = bed.route("billing", RouteRules::default()).await;
    let audit = bed.route("audit", RouteRules::default()).await;
    let test = bed.store.register_source("stripe-test", None).await.unwrap();
    let types = ["a_b.c", "axb.c", "a_b.d", "x"];
    for (n, event_type) in (0..).zip(types) {
        let arrival = bed.arrival_at(&format!("e{n}"), "{}", time(NOON + n));
        let source = if n == 3 { test } else { bed.source };
        let takers = vec![billing.taker(), audit.taker()];
        bed.send(Arrival { event_type: event_type.into(), source, takers, ..arrival }).await;
    }
    // Two finished ones among them: filters hold for both kinds.
    for _ in 0..2 {
        let claimed = bed.take(&billing).await;
        assert!(bed.finish(&claimed, Next::Processed).await);
    }
    let on = || DeliveryFilter { route: Some("billing".into()), ..DeliveryFilter::default() };
    assert_eq!(event_ids(&bed, DeliveryFilter::default()).await.len(), 8);
    assert_eq!(event_ids(&bed, on()).await, ["e3", "e2", "e1", "e0"]);
    let source = Some("stripe-live".to_owned());
    assert_eq!(event_ids(&bed, DeliveryFilter { source, ..on() }).await, ["e2", "e1", "e0"]);
    let event_type = Some("a_b*".to_owned());
    assert_eq!(event_ids(&bed, DeliveryFilter { event_type, ..on() }).await, ["e2", "e0"]);
    let (since, until) = (Some(time(NOON + 1)), Some(time(NOON + 3)));
    assert_eq!(event_ids(&bed, DeliveryFilter { since, until, ..on() }).await, ["e2", "e1"]);
    for n in [0, 3] {
        let receipt = Some(bed.receipts().await[n].receipt);
        let ids = event_ids(&bed, DeliveryFilter { receipt, ..on() }).await;
        assert_eq!(ids, [format!("e{n}")]);
    }
    for route in ["nobody", "bill*"] {
        let route = Some(route.to_owned());
        assert!(event_ids(&bed, DeliveryFilter { route, ..on() }).await.is_empty());
    }
}

async fn lists_filter_by_state_and_reason(bed: Bed) {
    every_state(&bed).await;
    for state in State::ALL {
        let filter = DeliveryFilter { state: Some(state), ..DeliveryFilter::default() };
        assert_eq!(event_ids(&bed, filter).await, [state.as_str()]);
    }
    for (reason, expected) in [(Reason::Order, "held"), (Reason::Stale, "skipped")] {
        let filter = DeliveryFilter { reason: Some(reason), ..DeliveryFilter::default() };
        assert_eq!(event_ids(&bed, filter).await, [expected]);
    }
    let none = DeliveryFilter {
        state: Some(State::Dead),
        reason: Some(Reason::Order),
        ..DeliveryFilter::default()
    };
    assert!(event_ids(&bed, none).await.is_empty());
}

/// Newest receipt first, then route; open and finished mixed.
async fn lists_page_over_open_and_finished(bed: Bed) {
    let one = bed.route("one", RouteRules::default()).await;
    let two = bed.route("two", RouteRules::default()).await;
    let mut all = Vec::new();
    for n in 0..6 {
        let receipt = bed.due(&format!("e{n}"), &[one, two]).await;
        all.extend([one.of(receipt), two.of(receipt)]);
        if n % 2 == 0 {
            bed.work_off(if n == 2 { &two } else { &one }).await;
        }
    }
    all.sort();
    all.reverse();
    for limit in [1, 2, 5, 100] {
        let mut found: Vec<DeliveryId> = Vec::new();
        loop {
            let before = found.last().copied();
            let filter = DeliveryFilter { before, limit, ..DeliveryFilter::default() };
            let page = bed.store.deliveries(&filter).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page.iter().map(|row| row.delivery));
        }
        assert_eq!(found, all, "in pages of {limit}");
    }
}

fn tally_of(tallies: &[Tally], state: State) -> Option<&Tally> {
    tallies.iter().find(|tally| tally.state == state)
}

async fn tallies_count_every_state(bed: Bed) {
    let route = every_state(&bed).await;
    let tallies = bed.store.tally().await.unwrap();
    assert_eq!(tallies.len(), 7, "{tallies:?}");
    for state in State::ALL {
        let tally = tally_of(&tallies, state).unwrap();
        assert_eq!((tally.route, tally.count), (route.no, 1));
        let reason = match state {
            State::Held => Some(Reason::Order),
            State::Skipped => Some(Reason::Stale),
            _ => None,
        };
        assert_eq!(tally.reason, reason);
        let row = bed.delivery(find(&bed, state.as_str()).await).await;
        // What was processed is as old as it is kept; that says nothing.
        let oldest = Some(row.received_at).filter(|_| state != State::Processed);
        assert_eq!(tally.oldest, oldest, "{state}");
    }
}

async fn tallies_follow_the_oldest(bed: Bed) {
    let one = bed.route("one", RouteRules::default()).await;
    let two = bed.route("two", RouteRules::default()).await;
    assert!(bed.store.tally().await.unwrap().is_empty());
    for n in 0..3 {
        let arrival = bed.arrival_at(&format!("e{n}"), "{}", time(NOON + n));
        let takers = vec![one.taker(), two.taker()];
        bed.send(Arrival { takers, ..arrival }).await;
    }
    bed.kill(&one).await;
    let tallies = bed.store.tally().await.unwrap();
    let of = |route: &Route, state| {
        let tally = tallies.iter().find(|t| t.route == route.no && t.state == state).unwrap();
        (tally.count, tally.oldest)
    };
    assert_eq!(of(&one, State::Received), (2, Some(time(NOON + 1))));
    assert_eq!(of(&one, State::Dead), (1, Some(time(NOON))));
    assert_eq!(of(&two, State::Received), (3, Some(time(NOON))));
}

async fn a_pause_is_shown_and_kept(mut bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    assert!(!bed.store.pause_route("nobody", true, &act("")).await.unwrap());
    assert!(bed.store.audit(None, 10).await.unwrap().is_empty());
    assert!(bed.store.pause_route("billing", true, &act("deploy")).await.unwrap());
    bed.reopen().await;
    // Registered again, as at every start, it stays paused.
    bed.route("billing", RouteRules { max_attempts: 3, ..RouteRules::default() }).await;
    let view = bed.store.routes().await.unwrap().remove(0);
    let since = view.paused_at.expect("paused");
    assert_eq!(view.rules.max_attempts, 3);
    assert!(bed.store.pause_route("billing", true, &act("again")).await.unwrap());
    assert_eq!(bed.store.routes().await.unwrap()[0].paused_at, Some(since));
    let row = bed.delivery(find(&bed, "e1").await).await;
    assert!(row.paused);
    assert_eq!(row.state, State::Received);
    assert!(bed.store.pause_route("billing", false, &act("deployed")).await.unwrap());
    assert_eq!(bed.store.routes().await.unwrap()[0].paused_at, None);
    assert!(!bed.delivery(row.delivery).await.paused);
}

async fn what_nobody_works_on_can_be_discarded(bed: Bed) {
    every_state(&bed).await;
    for state in [State::Processing, State::Processed, State::Skipped] {
        let delivery = find(&bed, state.as_str()).await;
        let found = bed.store.discard(delivery, &act("")).await.unwrap();
        assert_eq!(found, Acted::Not(state));
        assert_eq!(bed.delivery(delivery).await.state, state);
    }
    let mut nobody = find(&bed, "dead").await;
    nobody.receipt = ReceiptId::floor(time(0));
    assert_eq!(bed.store.discard(nobody, &act("")).await.unwrap(), Acted::NotFound);
    assert!(bed.store.audit(None, 10).await.unwrap().is_empty());

    for id in ["held", "dead", "received", "retrying"] {
        let delivery = find(&bed, id).await;
        assert_eq!(bed.store.discard(delivery, &act("why not")).await.unwrap(), Acted::Done);
        let row = bed.delivery(delivery).await;
        assert_eq!((row.state, row.reason), (State::Skipped, Some(Reason::Discarded)));
        assert!(row.finished_at.is_some());
        let again = bed.store.discard(delivery, &act("")).await.unwrap();
        assert_eq!(again, Acted::Not(State::Skipped));
    }
    let dead = find(&bed, "dead").await.receipt;
    let attempts = bed.store.attempts(dead).await.unwrap();
    assert_eq!(attempts[0].outcome, "dead", "{attempts:?}");
}

async fn only_held_can_be_released(bed: Bed) {
    every_state(&bed).await;
    for state in State::ALL {
        if state == State::Held {
            continue;
        }
        let delivery = find(&bed, state.as_str()).await;
        let found = bed.store.release(delivery, &act("")).await.unwrap();
        assert_eq!(found, Acted::Not(state));
    }
    let held = find(&bed, "held").await;
    let nobody = DeliveryId { receipt: ReceiptId::floor(time(0)), ..held };
    assert_eq!(bed.store.release(nobody, &act("")).await.unwrap(), Acted::NotFound);
    assert!(bed.store.audit(None, 10).await.unwrap().is_empty());
    let mut due = bed.store.due();
    due.mark_unchanged();
    assert_eq!(bed.store.release(held, &act("urgent")).await.unwrap(), Acted::Done);
    let row = bed.delivery(held).await;
    assert_eq!((row.state, row.reason), (State::Received, None));
    tokio::time::timeout(MINUTE, due.changed()).await.expect("announced").unwrap();
}

/// Newest first, with who, when, through which door and why.
async fn acts_are_written_down(mut bed: Bed) {
    every_state(&bed).await;
    let (held, dead) = (find(&bed, "held").await, find(&bed, "dead").await);
    let api = Act { who: "token ci".into(), via: "api", why: None, at: time(NOON + 1) };
    bed.store.pause_route("billing", true, &act("deploy")).await.unwrap();
    bed.store.pause_route("billing", false, &api).await.unwrap();
    bed.store.release(held, &act("urgent")).await.unwrap();
    bed.store.discard(dead, &act("lost cause")).await.unwrap();
    bed.store.create_token(&token("t1"), &act("for ci")).await.unwrap();
    bed.store.revoke_token(&TokenId("t1".into()), &act("leaked")).await.unwrap();
    bed.reopen().await;
    let audit = bed.store.audit(None, 10).await.unwrap();
    let (held, dead) = (held.to_string(), dead.to_string());
    let lines: Vec<_> = audit
        .iter()
        .map(|row| (row.act.as_str(), row.subject.as_str(), row.why.as_deref()))
        .collect();
    let expected = [
        ("token.revoke", "t1", Some("leaked")),
        ("token.create", "t1", Some("for ci")),
        ("delivery.discard", dead.as_str(), Some("lost cause")),
        ("delivery.release", held.as_str(), Some("urgent")),
        ("route.resume", "billing", None),
        ("route.pause", "billing", Some("deploy")),
    ];
    assert_eq!(lines, expected);
    let first = &audit[5];
    assert_eq!((first.who.as_str(), first.via.as_str()), ("ada", "cli"));
    assert_eq!(first.at, act("").at);
    let second = &audit[4];
    assert_eq!((second.who.as_str(), second.via.as_str()), ("token ci", "api"));
    assert_eq!(second.at, time(NOON + 1));
}

async fn the_audit_pages(bed: Bed) {
    bed.route("billing", RouteRules::default()).await;
    for n in 0..5 {
        let why = n.to_string();
        bed.store.pause_route("billing", n % 2 == 0, &act(&why)).await.unwrap();
    }
    let mut before = None;
    let mut seen = Vec::new();
    loop {
        let page = bed.store.audit(before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.no);
        assert!(page.len() <= 2);
        seen.extend(page.into_iter().map(|row| row.why.unwrap()));
    }
    assert_eq!(seen, ["4", "3", "2", "1", "0"]);
}

/// The act and its line in the audit are one transaction.
async fn an_act_that_cannot_be_written_down_is_not_done(bed: Bed) {
    let route = every_state(&bed).await;
    let (held, dead) = (find(&bed, "held").await, find(&bed, "dead").await);
    let job = Replay::new(ReplayFilter::default(), How::default(), 1, &act(""));
    bed.store.create_replay(&job, &act("")).await.unwrap();
    bed.store.create_token(&token("t1"), &act("")).await.unwrap();
    bed.query(match bed.on_sqlite() {
        true => {
            "CREATE TRIGGER refuse BEFORE INSERT ON audit
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        }
        false => "ALTER TABLE audit ADD CONSTRAINT refuse CHECK (false) NOT VALID",
    });
    let refused = |outcome: Result<(), StoreError>| assert!(outcome.is_err(), "it was done");
    let (states, store, act) = (bed.states(&route).await, &bed.store, act(""));
    refused(store.pause_route("billing", true, &act).await.map(drop));
    refused(store.discard(dead, &act).await.map(drop));
    refused(store.discard(held, &act).await.map(drop));
    refused(store.release(held, &act).await.map(drop));
    refused(store.create_token(&token("t2"), &act).await);
    refused(store.revoke_token(&TokenId("t1".into()), &act).await.map(drop));
    let other = Replay::new(ReplayFilter::default(), How::default(), 1, &act);
    refused(store.create_replay(&other, &act).await);
    refused(store.cancel_replay(job.id, &act).await.map(drop));

    assert_eq!(bed.states(&route).await, states);
    assert_eq!(store.routes().await.unwrap()[0].paused_at, None);
    assert_eq!(store.tokens().await.unwrap(), [token("t1")]);
    let jobs = store.replays(10).await.unwrap();
    assert_eq!((jobs.len(), jobs[0].phase), (1, oncebox::replay::Phase::Running));
    assert_eq!(bed.rows("audit"), 2);
}

fn token(id: &str) -> Token {
    Token {
        id: TokenId(id.into()),
        name: format!("the token {id}"),
        hash: [id.as_bytes()[1]; 32],
        scopes: vec![Scope::View, Scope::Pull(Some("billing".into()))],
        created_at: time(NOON + i64::from(id.as_bytes()[1])),
        expires_at: None,
        revoked_at: None,
    }
}

async fn tokens_are_kept_as_hashes(mut bed: Bed) {
    let brief = Token { expires_at: Some(time(NOON + 99)), ..token("t2") };
    let every = [Scope::Pull(None), Scope::View, Scope::Payloads, Scope::Operate, Scope::Admin];
    let root = Token { scopes: every.to_vec(), ..token("t3") };
    for token in [&token("t1"), &brief, &root] {
        bed.store.create_token(token, &act("")).await.unwrap();
    }
    bed.reopen().await;
    let expected = [root.clone(), brief, token("t1")];
    assert_eq!(bed.store.tokens().await.unwrap(), expected);
    assert_eq!(bed.store.token(&root.id).await.unwrap(), Some(root));
    assert_eq!(bed.store.token(&TokenId("t".into())).await.unwrap(), None);
    // An id is not given twice.
    let taken = Token { name: "another".into(), ..token("t1") };
    assert!(bed.store.create_token(&taken, &act("")).await.is_err());
    assert_eq!(bed.store.token(&taken.id).await.unwrap(), Some(token("t1")));
}

async fn a_token_is_revoked_once(bed: Bed) {
    let id = TokenId("t1".into());
    assert!(!bed.store.revoke_token(&id, &act("")).await.unwrap());
    bed.store.create_token(&token("t1"), &act("")).await.unwrap();
    assert!(bed.store.revoke_token(&id, &act("leaked")).await.unwrap());
    let revoked = bed.store.token(&id).await.unwrap().unwrap();
    assert!(revoked.revoked_at.is_some());
    assert!(!revoked.is_live(time(NOON + 9999)));
    assert!(!bed.store.revoke_token(&id, &act("again")).await.unwrap());
    assert_eq!(bed.store.tokens().await.unwrap(), [revoked]);
    assert_eq!(bed.rows("audit"), 2);
}

/// Whatever else it is, haste changes nothing and says where it stands.
async fn haste_is_only_for_retries(bed: Bed) {
    every_state(&bed).await;
    for state in State::ALL {
        let delivery = find(&bed, state.as_str()).await;
        let before = bed.delivery(delivery).await;
        let standing = bed.store.hasten(delivery, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!((standing.state, standing.reason), (before.state, before.reason));
        assert_eq!(standing.attempts, before.counts.attempts);
        assert_eq!(bed.store.standing(delivery).await.unwrap(), Some(standing));
        if state != State::Retrying {
            assert_eq!(bed.delivery(delivery).await, before);
        }
    }
    let mut nobody = find(&bed, "dead").await;
    nobody.receipt = ReceiptId::floor(time(0));
    assert_eq!(bed.store.hasten(nobody, MINUTE).await.unwrap(), None);
    assert_eq!(bed.store.standing(nobody).await.unwrap(), None);
}

async fn receipts_show_where_their_deliveries_stand(bed: Bed) {
    every_state(&bed).await;
    let receipts = bed.receipts().await;
    assert_eq!(receipts.len(), 7);
    for receipt in receipts {
        let [view] = &receipt.deliveries[..] else { panic!("{receipt:?}") };
        assert_eq!(view.state, receipt.event_id);
        let reason = match view.state.as_str() {
            "held" => Some("order"),
            "skipped" => Some("stale"),
            _ => None,
        };
        assert_eq!(view.reason.as_deref(), reason);
        let shown = bed.store.receipt(receipt.receipt).await.unwrap().unwrap();
        assert_eq!(shown.summary.deliveries, receipt.deliveries);
    }
}
