//! Claims, and what keeps them: leases, payloads.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::clock::StoreClock;
use super::connection::{failure, in_transaction, run};
use super::finish::{self, Close};
use super::guards::{self, Guarded, Ignores};
use super::read::mark;
use super::rows::{duration, halves, milliseconds, moment, receipt_id, time};
use crate::delivery::{
    Claimed, Counts, DeliveryId, Judgement, Lease, Payload, Reason, State, Suspicion,
    idempotency_key, judge,
};
use crate::limits::PROBE_ROWS;
use crate::receipt::{ReceiptId, RouteNo, SourceNo};
use crate::store::{Claim, Claims, Pick, StoreError, Wanted, checks};

/// A delivery that is due, with the lease it would be under.
struct Candidate {
    claimed: Claimed,
    guarded: Guarded,
    ignores: Ignores,
}

/// Whose lease, and until when.
struct Terms<'a> {
    now: i64,
    until: i64,
    worker: &'a str,
    /// Whether it is the only suspect of its claim.
    sole: bool,
}

/// What a claim came to, and whether more is due already.
pub(super) struct Outcome {
    pub(super) claims: Claims,
    pub(super) more: bool,
}

pub(super) fn claim(
    connection: &mut Connection,
    clock: &StoreClock,
    claim: &Claim,
) -> Result<Outcome, StoreError> {
    in_transaction(connection, |transaction| {
        clock.tell(transaction)?;
        let now = clock.now();
        let mut outcome = Outcome { claims: Claims::default(), more: false };
        for wanted in claim.wanted.iter().filter(|wanted| wanted.most > 0) {
            let (candidates, suspects) = match wanted.pick {
                Pick::Due => due(transaction, wanted, now)?,
                Pick::UnfailedFirst | Pick::OnlyUnfailed => {
                    (unfailed(transaction, wanted, now)?, false)
                }
            };
            if suspects {
                outcome.claims.alone.push(wanted.route);
            }
            let until = now.saturating_add(milliseconds(wanted.lease_in(claim)));
            let sole = suspects && candidates.len() == 1;
            let terms = Terms { now, until, worker: &claim.worker, sole };
            if wanted.rules.is_guarded() {
                claim_guarded(transaction, wanted, candidates, &terms, &mut outcome)?;
                continue;
            }
            for candidate in candidates {
                outcome.claims.claimed.extend(start(transaction, candidate.claimed, &terms)?);
            }
        }
        Ok(outcome)
    })
}

/// What is due of a route, and whether it is suspected of killing its workers: that is claimed
/// apart, the least suspected first.
fn due(
    transaction: &Transaction<'_>,
    wanted: &Wanted,
    now: i64,
) -> rusqlite::Result<(Vec<Candidate>, bool)> {
    let route = wanted.route.0;
    let lost: Option<u8> = transaction
        .prepare_cached(include_str!("sql/find_lost.sql"))?
        .query_row(params![route, now], |row| row.get(0))
        .optional()?;
    let suspicion = lost.map(Suspicion).unwrap_or_default();
    let most = i64::try_from(suspicion.group(wanted.most)).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(include_str!("sql/find_candidates.sql"))?;
    let values = params![route, i64::MIN, now, most, suspicion.0, None::<i64>];
    let candidates: Vec<_> =
        statement.query_map(values, candidate)?.collect::<rusqlite::Result<_>>()?;
    // A route that is paused or filled gives nothing, whatever is due of it.
    let suspects = lost.is_some() && !candidates.is_empty();
    Ok((candidates, suspects))
}

/// What is due of a route, those first that never failed.
fn unfailed(
    transaction: &Transaction<'_>,
    wanted: &Wanted,
    now: i64,
) -> rusqlite::Result<Vec<Candidate>> {
    let (route, only) = (wanted.route.0, wanted.pick == Pick::OnlyUnfailed);
    let most = i64::try_from(wanted.most).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(include_str!("sql/find_unfailed.sql"))?;
    let found = statement.query_map(params![route, now, most, only, PROBE_ROWS], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let found: Vec<(i64, i64, u8)> = found.collect::<rusqlite::Result<_>>()?;
    let mut statement = transaction.prepare_cached(include_str!("sql/find_candidates.sql"))?;
    let mut candidates = Vec::with_capacity(found.len());
    for (receipt, due_at, lost) in found {
        let values = params![route, due_at, due_at, 1, lost, receipt];
        candidates.extend(statement.query_row(values, candidate).optional()?);
    }
    Ok(candidates)
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let delivery = DeliveryId { receipt: receipt_id(row, 0)?, route: RouteNo(row.get(2)?) };
    let guarded = Guarded::read(delivery, row, 3)?;
    let (source, route): (String, String) = (row.get(11)?, row.get(12)?);
    let event_id: String = row.get(13)?;
    let digest: Option<Vec<u8>> = row.get(28)?;
    let claimed = Claimed {
        delivery,
        lease: Lease(row.get(24)?),
        lease_until: Timestamp::UNIX_EPOCH,
        source: SourceNo(guarded.source),
        source_name: row.get(10)?,
        key: idempotency_key(&source, &event_id, &route, digest.as_deref()),
        event_id,
        event_type: row.get(14)?,
        object: row.get(15)?,
        version: row.get(16)?,
        received_at: time(row, 17)?,
        bytes: row.get::<_, u32>(18)? as usize,
        counts: counts(row, 19, 29)?,
        replays: row.get(23)?,
        guarded: guarded.is_guarded(),
        mark: mark(row, 25)?,
    };
    let ignores = Ignores { stale: row.get(8)?, order: row.get(9)? };
    Ok(Candidate { claimed, guarded, ignores })
}

/// Reads four columns: attempts, failures, crashes and snoozes; and how long it has been tried.
pub(super) fn counts(row: &Row<'_>, first: usize, tried: usize) -> rusqlite::Result<Counts> {
    Ok(Counts {
        attempts: row.get(first)?,
        failures: row.get(first + 1)?,
        crashes: row.get(first + 2)?,
        snoozes: row.get(first + 3)?,
        tried: duration(row, tried)?,
    })
}

/// Puts a candidate under a lease.
fn start(
    transaction: &Transaction<'_>,
    mut claimed: Claimed,
    terms: &Terms<'_>,
) -> rusqlite::Result<Option<Claimed>> {
    let DeliveryId { receipt, route } = claimed.delivery;
    let epoch = claimed.lease.0;
    let values = params![halves(receipt).0, route.0, epoch, terms.until, terms.worker, terms.sole];
    let started = run(transaction, include_str!("sql/claim.sql"), values)? == 1;
    claimed.lease_until = moment(terms.until)?;
    claimed.counts.attempts += 1;
    Ok(started.then_some(claimed))
}

/// Judges candidates in the order of their places. What was done to one is in the facts of the
/// next.
fn claim_guarded(
    transaction: &Transaction<'_>,
    wanted: &Wanted,
    candidates: Vec<Candidate>,
    terms: &Terms<'_>,
    outcome: &mut Outcome,
) -> rusqlite::Result<()> {
    let is_full = candidates.len() >= wanted.most;
    let mut in_order: Vec<(usize, Candidate)> = candidates.into_iter().enumerate().collect();
    in_order.sort_by_key(|(_, candidate)| {
        (candidate.guarded.place, candidate.guarded.delivery.receipt)
    });
    let mut started = Vec::new();
    for (turn, candidate) in in_order {
        let (guarded, ignores) = (&candidate.guarded, candidate.ignores);
        let facts = guards::facts(transaction, &wanted.rules, guarded, ignores, terms.now)?;
        let delivery = candidate.claimed.delivery;
        match judge(&wanted.rules, &facts) {
            Judgement::Run => {
                started.extend(start(transaction, candidate.claimed, terms)?.map(|c| (turn, c)));
            }
            Judgement::Hold(reason) => {
                hold(transaction, delivery, reason)?;
                // What waits for its operation makes way in its lane.
                let next = reason == Reason::SameOperation
                    && guards::release_lane(transaction, &candidate.guarded, terms.now)? > 0;
                outcome.claims.held.push((delivery, reason));
                outcome.more |= is_full || next;
            }
            Judgement::Skip(reason, first) => {
                skip(transaction, delivery, &Close::skipped(reason, first, terms.now))?;
                guards::release(transaction, &candidate.guarded, State::Skipped, terms.now)?;
                outcome.claims.skipped.push((delivery, reason));
                outcome.more = true;
            }
        }
    }
    // Those that waited longest come first, as on a route without guards.
    started.sort_by_key(|(turn, _)| *turn);
    outcome.claims.claimed.extend(started.into_iter().map(|(_, claimed)| claimed));
    Ok(())
}

fn hold(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    reason: Reason,
) -> rusqlite::Result<()> {
    let values = params![halves(delivery.receipt).0, delivery.route.0, reason.as_str()];
    run(transaction, include_str!("sql/hold_delivery.sql"), values).map(drop)
}

fn skip(
    transaction: &Transaction<'_>,
    delivery: DeliveryId,
    close: &Close,
) -> rusqlite::Result<()> {
    match finish::find_open(transaction, delivery, None, close.at)? {
        Some(open) => finish::close(transaction, &open, close),
        None => Ok(()),
    }
}

pub(super) fn extend(
    connection: &mut Connection,
    clock: &StoreClock,
    leases: &[(DeliveryId, Lease)],
    by: Duration,
) -> Result<Vec<Option<Timestamp>>, StoreError> {
    in_transaction(connection, |transaction| {
        let now = clock.now();
        let until = now.saturating_add(milliseconds(by));
        let told = moment(until)?;
        let extend_one = |(delivery, lease): &(DeliveryId, Lease)| {
            let head = halves(delivery.receipt).0;
            let values = params![head, delivery.route.0, lease.0, now, until];
            let extended = run(transaction, include_str!("sql/extend_lease.sql"), values)?;
            Ok((extended == 1).then_some(told))
        };
        leases.iter().map(extend_one).collect()
    })
}

pub(super) fn payloads(
    connection: &Connection,
    receipts: &[ReceiptId],
) -> Result<Vec<Payload>, StoreError> {
    let find = |receipt: &ReceiptId| {
        let (head, tail) = halves(*receipt);
        let mut statement = connection.prepare_cached(include_str!("sql/find_payload.sql"))?;
        let payload = |row: &Row<'_>| {
            let (headers, body): (_, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let intact = checks::is_intact(&body, row.get_ref(2)?.as_bytes()?);
            let (receipt, position, current) = (*receipt, row.get(3)?, None);
            Ok(intact.then_some(Payload { receipt, headers, body, position, current }))
        };
        statement.query_row(params![head, tail], payload).optional().map(Option::flatten)
    };
    receipts
        .iter()
        .filter_map(|receipt| find(receipt).transpose())
        .collect::<Result<_, _>>()
        .map_err(failure)
}
