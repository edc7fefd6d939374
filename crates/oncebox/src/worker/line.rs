//! The way of a delivery through the worker: claim, payload, deliver, next, finish.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tracing::{debug, error, warn};

use super::breaker::End;
use super::breakers;
use super::chance::{Backoff, chance};
use super::finisher::{self, Ended};
use super::leases::{Cut, Held};
use super::memory::Room;
use super::slots::{Begun, Loaded};
use super::{Consumer, Health, Report, Shared, Told, WorkRoute};
use crate::delivery::{Claimed, DAMAGED, Outcome, Payload, next};
use crate::panicked::Panicked;
use crate::receipt::{ReceiptId, RouteNo};
use crate::store::{Claim, Finish, StoreError};

/// Claims whenever something may be due and there is room for it.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut due = shared.store.due();
    let mut backoff = Backoff::new();
    while !shared.is_stopping() {
        // Registered before the claim: what becomes due while it runs is claimed by the next.
        due.borrow_and_update();
        let pause = match claim(&shared).await {
            Ok(_) => {
                backoff = Backoff::new();
                shared.until_next_look()
            }
            Err(error) => {
                warn!(%error, "deliveries could not be claimed; trying again");
                shared.note_failure(&error);
                shared.pause(backoff.pause()).await;
                continue;
            }
        };
        let told = async {
            if due.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = told => {}
            () = shared.freed.notified() => {}
            () = shared.pause(pause) => {}
        }
    }
}

/// Claims once and sets what was claimed on its way. Returns how many deliveries that moved.
pub(super) async fn claim(shared: &Arc<Shared>) -> Result<usize, StoreError> {
    let wanted = shared.slots().wanted(Instant::now());
    if wanted.is_empty() {
        return Ok(0);
    }
    let (lease, worker) = (shared.options.lease, shared.options.name.clone());
    let claim = Claim { wanted, lease, worker };
    // From before the question: the store's lease never ends earlier than we believe.
    let asked_at = Instant::now();
    let claims = shared.store.claim(&claim).await;
    shared.slots().claimed(&claim.wanted, claims.as_ref().ok(), Instant::now());
    let claims = claims?;
    for (delivery, reason) in &claims.skipped {
        let route = shared.slots().route(delivery.route);
        if let Some(route) = route {
            debug!(route = %route.name, %delivery, receipt = %delivery.receipt, %reason, "skipped");
            shared.options.observer.skipped(&route.name, *delivery, *reason);
        }
    }
    let moved = claims.claimed.len() + claims.skipped.len() + claims.held.len();
    if !claims.claimed.is_empty() {
        let length = |route| {
            let wanted = claim.wanted.iter().find(|wanted| wanted.route == route);
            wanted.and_then(|wanted| wanted.lease).unwrap_or(lease)
        };
        let held = shared.leases.hold(claims.claimed, asked_at, length);
        tokio::spawn(load(shared.clone(), held));
    }
    Ok(moved)
}

/// Fetches the payloads there is memory for in one go; the others wait for memory one by one.
async fn load(shared: Arc<Shared>, held: Vec<Held>) {
    let mut together = Vec::with_capacity(held.len());
    for held in held {
        match shared.memory.try_take(held.claimed.delivery.route, held.claimed.bytes) {
            Some(room) => together.push((held, room)),
            None => drop(tokio::spawn(load_later(shared.clone(), held))),
        }
    }
    fetch(&shared, together).await;
}

async fn load_later(shared: Arc<Shared>, mut held: Held) {
    let (route, bytes) = (held.claimed.delivery.route, held.claimed.bytes);
    tokio::select! {
        biased;
        cut = held.cut() => never_began(&shared, held, Some(cut)).await,
        () = shared.stopped() => never_began(&shared, held, None).await,
        room = shared.memory.take(route, bytes) => fetch(&shared, vec![(held, room)]).await,
    }
}

/// Fetches payloads and queues their deliveries with their routes.
async fn fetch(shared: &Arc<Shared>, batch: Vec<(Held, Room)>) {
    let receipts: BTreeSet<ReceiptId> =
        batch.iter().map(|(held, _)| held.claimed.delivery.receipt).collect();
    let receipts: Vec<ReceiptId> = receipts.into_iter().collect();
    let Some(payloads) = payloads(shared, &receipts).await else {
        for (held, room) in batch {
            drop(room);
            never_began(shared, held, None).await;
        }
        return;
    };
    let mut routes = BTreeSet::new();
    for (held, room) in batch {
        let delivery = held.claimed.delivery;
        match payloads.get(&delivery.receipt) {
            Some(payload) => {
                shared.slots().queue(Loaded { held, payload: payload.clone(), room });
                routes.insert(delivery.route);
            }
            None => payload_is_missing(shared, held).await,
        }
    }
    for route in routes {
        begin(shared, route);
    }
}

/// Payloads by receipt. None if the worker stops before the store answers.
async fn payloads(shared: &Shared, receipts: &[ReceiptId]) -> Option<HashMap<ReceiptId, Payload>> {
    let mut backoff = Backoff::new();
    while !receipts.is_empty() {
        match shared.store.payloads(receipts).await {
            Ok(found) => {
                return Some(found.into_iter().map(|found| (found.receipt, found)).collect());
            }
            Err(error) => {
                warn!(%error, "payloads could not be fetched; trying again");
                shared.note_failure(&error);
                shared.pause(backoff.pause()).await;
            }
        }
        if shared.is_stopping() {
            return None;
        }
    }
    Some(HashMap::new())
}

/// Begins what may begin of a route, and returns what may not.
pub(super) fn begin(shared: &Arc<Shared>, route: RouteNo) {
    let turn = shared.slots().turn(route, Instant::now());
    for begun in turn.begun {
        tokio::spawn(attempt(shared.clone(), begun));
    }
    if !turn.back.is_empty() {
        tokio::spawn(give_back(shared.clone(), turn.back));
    }
}

async fn give_back(shared: Arc<Shared>, back: Vec<Loaded>) {
    for Loaded { held, room, .. } in back {
        drop(room);
        never_began(&shared, held, None).await;
    }
}

/// One attempt: hands the delivery to its consumer, decides where it goes, and has that written
/// down. Cut short, the consumer's future is dropped.
async fn attempt(shared: Arc<Shared>, begun: Begun) {
    let Begun { route, pass, loaded: Loaded { mut held, payload, room } } = begun;
    let claimed = held.claimed.clone();
    let began = Instant::now();
    let report = {
        let mut delivering = pin!(deliver(&*route.consumer, &claimed, payload));
        let report = tokio::select! {
            biased;
            cut = held.cut() => Err(cut),
            report = &mut delivering => Ok(report),
        };
        match report {
            // The store knows best whether the lease was lost, or ended by this.
            Err(Cut::Lost | Cut::Stopped) if route.consumer.is_ending(&claimed) => {
                Ok(delivering.await)
            }
            report => report,
        }
    };
    let took = began.elapsed();
    drop(room);
    let health = report.as_ref().ok().map(|report| report.health);
    let unwell = report.as_ref().ok().filter(|report| report.health != Health::Well);
    let cause = unwell.map(Report::cause).unwrap_or_default();
    match report {
        Ok(report) => finish(&shared, &route, held, report, took).await,
        Err(Cut::Stopped) => {
            let outcome = Outcome::Retry { after: None };
            let detail = Some("the worker stopped".into());
            let report = Report { detail, ..Report::of(outcome) };
            finish(&shared, &route, held, report, took).await;
        }
        Err(Cut::Lost) => shared.lease_lost(&route, &claimed, "while it was delivered"),
        Err(Cut::Abandoned) => return,
    }
    let number = route.number;
    let end = End {
        delivery: claimed.delivery,
        health,
        // A replay counts its failures anew.
        failed_before: claimed.counts.failures > 0 || claimed.replays > 0,
        detail: &cause,
        at: Instant::now(),
    };
    let after = shared.slots().ended(number, &pass, &end, took);
    breakers::note(&shared, &route, &after);
    begin(&shared, number);
    if after.claim {
        shared.freed.notify_one();
    }
}

/// Hands a delivery to its consumer. A panic of the consumer is a failed attempt, and no more.
async fn deliver(consumer: &dyn Consumer, claimed: &Claimed, payload: Payload) -> Report {
    let mut delivering = consumer.deliver(claimed, payload);
    let delivered = std::future::poll_fn(|context| {
        // The future is never polled again after a panic, so what it broke is not seen.
        match catch_unwind(AssertUnwindSafe(|| delivering.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(report)) => Poll::Ready(report),
            Err(panic) => {
                let detail = Panicked::from(panic).to_string();
                Poll::Ready(Report { health: Health::Well, ..Report::failed(detail) })
            }
        }
    });
    delivered.await
}

/// Decides where a delivery goes and queues that to be committed, unless its consumer has done
/// that.
async fn finish(
    shared: &Shared,
    route: &Arc<WorkRoute>,
    held: Held,
    report: Report,
    took: Duration,
) {
    let claimed = held.claimed;
    let (next, told) = match report.told {
        Told::Lost => return shared.lease_lost(route, &claimed, "before its outcome was written"),
        Told::Parked => return parked(shared, route, &claimed),
        Told::Ended(next) => (next, true),
        Told::NotYet | Told::Perhaps(_) => {
            let counts = claimed.counts.after(took);
            (next(&route.rules, counts, &report.outcome, chance()), false)
        }
    };
    let ended = Ended { claimed, route: route.clone(), report, next, took };
    if told {
        return finisher::settled(shared, &ended, Finish::Done);
    }
    if let Err(lost) = shared.endings.send(ended).await {
        // The finisher ends only with the worker.
        error!(delivery = %lost.0.claimed.delivery, "an outcome was not written down");
    }
}

/// The store holds the delivery until a person has said whether an effect of it happened.
fn parked(shared: &Shared, route: &WorkRoute, claimed: &Claimed) {
    let (delivery, receipt) = (claimed.delivery, claimed.delivery.receipt);
    warn!(route = &*route.name, %delivery, %receipt, "held: whether its effect happened is unknown");
    shared.options.observer.parked(&route.name, claimed);
    shared.leases.let_go(claimed);
}

/// Returns a delivery that did not begin, unless its lease is gone.
async fn never_began(shared: &Shared, held: Held, cut: Option<Cut>) {
    let number = held.claimed.delivery.route;
    let route = shared.slots().route(number).expect("a route with work is not forgotten");
    match cut {
        Some(Cut::Lost) => shared.lease_lost(&route, &held.claimed, "before it was begun"),
        Some(Cut::Abandoned) => return,
        Some(Cut::Stopped) | None => {
            let unstarted = Report::of(Outcome::Unstarted);
            finish(shared, &route, held, unstarted, Duration::ZERO).await;
        }
    }
    shared.slots().gave_back(number);
}

/// Retention keeps the payloads of open deliveries, so a payload that is gone, or that does not
/// match its digest, is damage that a person has to see. Nobody is given it.
async fn payload_is_missing(shared: &Shared, held: Held) {
    let delivery = held.claimed.delivery;
    let (outcome, detail) = match shared.store.receipt(delivery.receipt).await {
        Ok(None) => (Outcome::Dead, "its payload is gone"),
        Ok(Some(receipt)) if !receipt.is_intact() => (Outcome::Damaged, DAMAGED),
        // It was read well this time.
        Ok(Some(_)) => return never_began(shared, held, None).await,
        Err(error) => {
            warn!(%error, %delivery, "a payload could not be fetched; trying again");
            return never_began(shared, held, None).await;
        }
    };
    let route = shared.slots().route(delivery.route).expect("a route with work is not forgotten");
    error!(route = &*route.name, %delivery, receipt = %delivery.receipt, "not delivered: {detail}");
    let report = Report { detail: Some(detail.into()), ..Report::of(outcome) };
    finish(shared, &route, held, report, Duration::ZERO).await;
    shared.slots().gave_back(delivery.route);
}
