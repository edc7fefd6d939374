use super::*;
use crate::receipt::{ReceiptId, RouteNo};

const SECOND: Duration = Duration::from_secs(1);

fn delivery(number: u8) -> DeliveryId {
    DeliveryId { receipt: ReceiptId::from_bytes([number; 16]), route: RouteNo(1) }
}

/// A breaker of a route with a concurrency of eight, without jitter, at a time.
struct Bed {
    breaker: Breaker,
    now: Instant,
    fresh: u8,
}

impl Bed {
    fn new() -> Self {
        Self { breaker: Breaker::new(), now: Instant::now(), fresh: 0 }
    }

    /// One attempt of a delivery.
    fn attempt(&mut self, number: u8, failed_before: bool, health: Health) {
        let pass = self.breaker.begin(self.now, 8).expect("an attempt may begin");
        let end = End {
            delivery: delivery(number),
            health: Some(health),
            failed_before,
            detail: "answered 503",
            at: self.now,
        };
        self.breaker.end(&pass, &end, 8, 1.0);
    }

    /// One attempt of a delivery that was never tried before.
    fn first(&mut self, health: Health) {
        self.fresh += 1;
        self.attempt(self.fresh, false, health);
    }

    fn opened() -> Self {
        let mut bed = Self::new();
        (0..BREAKER_LEAST).for_each(|_| bed.first(Health::Failing));
        assert_eq!(bed.state(), BreakerState::Open);
        bed
    }

    fn state(&self) -> BreakerState {
        self.breaker.view(self.now).state
    }

    fn next_probe(&self) -> Option<Duration> {
        self.breaker.view(self.now).next_probe
    }

    fn pass(&mut self, seconds: u32) {
        self.now += seconds * SECOND;
    }
}

#[test]
fn five_failed_connections_in_a_row_open_it() {
    let mut bed = Bed::new();
    for _ in 0..3 {
        (1..BREAKER_CONNECTS).for_each(|_| bed.attempt(1, true, Health::Unreachable));
        bed.attempt(2, false, Health::Well);
    }
    assert_eq!(bed.state(), BreakerState::Closed);
    (0..BREAKER_CONNECTS).for_each(|_| bed.attempt(1, true, Health::Unreachable));
    let view = bed.breaker.view(bed.now);
    assert_eq!((view.state, view.next_probe), (BreakerState::Open, Some(SECOND)));
    assert_eq!(view.reason.as_deref(), Some("5 connections failed in a row (answered 503)"));
    assert_eq!(bed.breaker.room(bed.now, 8), 0);
}

#[test]
fn more_than_half_of_the_last_twenty_deliveries_open_it() {
    let mut bed = Bed::new();
    (0..10).for_each(|_| bed.first(Health::Well));
    (0..10).for_each(|_| bed.first(Health::Failing));
    assert_eq!(bed.state(), BreakerState::Closed, "half of twenty");
    bed.first(Health::Failing);
    let view = bed.breaker.view(bed.now);
    assert_eq!(view.state, BreakerState::Open);
    let reason = "11 of the last 20 deliveries failed (answered 503)";
    assert_eq!(view.reason.as_deref(), Some(reason));
}

#[test]
fn four_deliveries_are_too_few_and_a_minute_is_too_long_ago() {
    let mut bed = Bed::new();
    (1..BREAKER_LEAST).for_each(|_| bed.first(Health::Failing));
    assert_eq!(bed.state(), BreakerState::Closed);
    bed.pass(61);
    (1..BREAKER_LEAST).for_each(|_| bed.first(Health::Failing));
    assert_eq!(bed.state(), BreakerState::Closed);
    bed.first(Health::Failing);
    assert_eq!(bed.state(), BreakerState::Open);
}

/// A few events that always fail, with nothing else to do for hours.
#[test]
fn an_event_that_keeps_failing_is_counted_once() {
    let mut bed = Bed::new();
    (0..6).for_each(|_| bed.first(Health::Well));
    (0..4).for_each(|_| bed.first(Health::Failing));
    for _ in 0..100 {
        bed.pass(7);
        (7..=10).for_each(|number| bed.attempt(number, true, Health::Failing));
        assert_eq!(bed.state(), BreakerState::Closed);
    }
}

/// A tenth of all events fails whenever it is tried.
#[test]
fn a_tenth_that_always_fails_never_opens_it() {
    let mut bed = Bed::new();
    for round in 0..200_u8 {
        let poison = round % 10 == 0;
        bed.attempt(round, false, if poison { Health::Failing } else { Health::Well });
        for retried in (0..round).filter(|number| number % 10 == 0) {
            bed.attempt(retried, true, Health::Failing);
        }
        assert_eq!(bed.state(), BreakerState::Closed, "after {round}");
    }
}

#[test]
fn a_destination_that_asks_for_less_is_not_unwell() {
    let mut bed = Bed::new();
    (0..100).for_each(|_| bed.first(Health::Overloaded));
    assert_eq!(bed.state(), BreakerState::Closed);
}

#[test]
fn one_probe_decides_and_the_pauses_grow_to_a_minute() {
    let mut bed = Bed::opened();
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(bed.next_probe(), Some(pause * SECOND));
        assert_eq!(bed.breaker.room(bed.now, 8), 0);
        bed.pass(pause);
        assert_eq!(bed.state(), BreakerState::HalfOpen);
        assert_eq!(bed.breaker.pick(bed.now), Pick::UnfailedFirst);
        assert_eq!(bed.breaker.room(bed.now, 8), 1);
        bed.first(Health::Failing);
    }
}

/// The probe was one that had failed before, for nothing else was due. What is new need not wait
/// for it.
#[test]
fn a_new_delivery_does_not_wait_behind_a_failing_one() {
    let mut bed = Bed::opened();
    for _ in 0..6 {
        bed.pass(60);
        bed.attempt(1, true, Health::Failing);
    }
    assert_eq!(bed.next_probe(), Some(60 * SECOND));
    assert_eq!(bed.breaker.room(bed.now, 8), 0);
    bed.pass(1);
    assert_eq!((bed.breaker.pick(bed.now), bed.breaker.room(bed.now, 8)), (Pick::OnlyUnfailed, 1));
    bed.first(Health::Well);
    assert_eq!(bed.state(), BreakerState::Ramping(1));
}

#[test]
fn a_destination_that_comes_back_is_ramped_up() {
    let mut bed = Bed::opened();
    bed.pass(1);
    bed.first(Health::Well);
    for allowed in [1, 2, 4] {
        assert_eq!(bed.state(), BreakerState::Ramping(allowed));
        assert_eq!(bed.breaker.room(bed.now, 8), allowed);
        bed.first(Health::Well);
    }
    assert_eq!((bed.state(), bed.breaker.room(bed.now, 8)), (BreakerState::Closed, 8));
    assert_eq!(bed.breaker.view(bed.now).reason, None);
}

#[test]
fn a_failure_on_the_ramp_halves_it_and_a_success_resets_the_pause() {
    let mut bed = Bed::opened();
    bed.pass(1);
    bed.first(Health::Failing);
    bed.pass(2);
    (0..3).for_each(|_| bed.first(Health::Well));
    assert_eq!(bed.state(), BreakerState::Ramping(4));
    for halved in [2, 1, 1] {
        bed.attempt(1, true, Health::Failing);
        assert_eq!(bed.state(), BreakerState::Ramping(halved));
    }
    (0..4).for_each(|_| bed.first(Health::Failing));
    assert_eq!((bed.state(), bed.next_probe()), (BreakerState::Open, Some(SECOND)));
}

#[test]
fn what_began_before_it_opened_decides_nothing() {
    let mut bed = Bed::new();
    let old = [bed.breaker.begin(bed.now, 8).unwrap(), bed.breaker.begin(bed.now, 8).unwrap()];
    (0..BREAKER_LEAST).for_each(|_| bed.first(Health::Failing));
    let end = |health, at| End {
        delivery: delivery(200),
        health: Some(health),
        failed_before: false,
        detail: "",
        at,
    };
    bed.breaker.end(&old[0], &end(Health::Well, bed.now), 8, 1.0);
    assert_eq!(bed.next_probe(), Some(SECOND));
    bed.pass(1);
    bed.breaker.end(&old[1], &end(Health::Failing, bed.now), 8, 1.0);
    assert_eq!((bed.state(), bed.breaker.room(bed.now, 8)), (BreakerState::HalfOpen, 1));
}

#[test]
fn a_probe_that_was_cut_short_is_made_again() {
    let mut bed = Bed::opened();
    bed.pass(1);
    let probe = bed.breaker.begin(bed.now, 8).unwrap();
    assert_eq!(bed.breaker.room(bed.now, 8), 0);
    let (delivery, at) = (delivery(1), bed.now);
    let cut = End { delivery, health: None, failed_before: false, detail: "", at };
    bed.breaker.end(&probe, &cut, 8, 1.0);
    assert_eq!((bed.state(), bed.breaker.room(bed.now, 8)), (BreakerState::HalfOpen, 1));
}

#[test]
fn chance_shortens_the_pause_by_up_to_half_and_a_change_ends_it() {
    let mut bed = Bed::new();
    for number in 1..=5 {
        let pass = bed.breaker.begin(bed.now, 8).unwrap();
        let end = End {
            delivery: delivery(number),
            health: Some(Health::Failing),
            failed_before: false,
            detail: "",
            at: bed.now,
        };
        bed.breaker.end(&pass, &end, 8, 0.0);
    }
    assert_eq!(bed.next_probe(), Some(SECOND / 2));
    bed.breaker.probe_now(bed.now);
    assert_eq!(bed.state(), BreakerState::HalfOpen);
}
