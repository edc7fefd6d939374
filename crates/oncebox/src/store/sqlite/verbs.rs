//! The verbs inside a transaction: what they write commits or is taken back with it.
//!
//! Each is checked under the lease of the delivery it belongs to. The writer is alone, so what is
//! read here stays true until its transaction ends.

use jiff::Timestamp;
use oncebox_verify::Trust;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::clock::StoreClock;
use super::connection::{failure, run};
use super::effects::{self, Found};
use super::record::insert_receipt;
use super::rows::halves;
use crate::delivery::DeliveryId;
use crate::effect::{
    EffectKey, EffectKind, EffectName, EffectState, Message, OUTBOX, Once, Sent, Under,
};
use crate::receipt::{Arrival, ReceiptId, ReceiptMint, RouteNo, SecretNo, SourceNo, Taker};
use crate::store::{StoreError, checks};

/// Takes a key: done, if the transaction commits.
pub(crate) fn once(
    db: &Connection,
    now_ms: i64,
    under: Under,
    name: &EffectName,
    result: Option<&str>,
) -> Result<Once, StoreError> {
    checks::result(result)?;
    let Some(named) = named(db, under, name)? else { return Ok(Once::LeaseLost) };
    let take = || {
        let Some(work) = find_work(db, under, now_ms)? else { return Ok(Once::LeaseLost) };
        let entry = Entry { named: &named, state: EffectState::Done, digest: None, result };
        if insert(db, under, &work, &entry, now_ms)? {
            return Ok(Once::First);
        }
        let mut found = there(effects::find(db, &named.key, now_ms)?)?;
        if found.effect.state != EffectState::Done {
            return Ok(Once::Open(found.effect));
        }
        note_conflict(db, under, &mut found, false, now_ms)?;
        Ok(Once::Already(found.effect))
    };
    take().map_err(failure)
}

/// Records the result of an effect that the caller did under this lease; false if it did not.
pub(crate) fn set_result(
    db: &Connection,
    now_ms: i64,
    under: Under,
    name: &EffectName,
    result: &str,
) -> Result<bool, StoreError> {
    checks::result(Some(result))?;
    let Some(named) = named(db, under, name)? else { return Ok(false) };
    let set = || {
        if find_work(db, under, now_ms)?.is_none() {
            return Ok(false);
        }
        let head = halves(under.delivery.receipt).0;
        let values = params![named.key, head, under.delivery.route.0, under.lease.0, result];
        Ok(run(db, include_str!("sql/set_result.sql"), values)? == 1)
    };
    set().map_err(failure)
}

/// The result of an effect that is done, whoever did it.
pub(crate) fn get_result(
    db: &Connection,
    under: Under,
    name: &EffectName,
) -> Result<Option<String>, StoreError> {
    let Some(named) = named(db, under, name)? else { return Ok(None) };
    let find = || -> rusqlite::Result<Option<Option<String>>> {
        let mut statement = db.prepare_cached(include_str!("sql/find_result.sql"))?;
        statement.query_row([&named.key], |row| row.get(0)).optional()
    };
    Ok(find().map_err(failure)?.flatten())
}

/// Moves the watermark of an object forward; false if it is past that version already, none if
/// the lease is not good any more.
pub(crate) fn advance(
    db: &Connection,
    clock: &StoreClock,
    under: Under,
    object: &str,
    version: i64,
) -> Result<Option<bool>, StoreError> {
    checks::object(object)?;
    let advance = || {
        let Some(work) = find_work(db, under, clock.now())? else { return Ok(None) };
        let values = params![under.delivery.route.0, work.source, object, version, clock.today()];
        Ok(Some(run(db, include_str!("sql/advance.sql"), values)? == 1))
    };
    advance().map_err(failure)
}

/// Writes an outbox message. Workers have to be told of a new one once it is committed.
pub(crate) fn send(
    db: &Connection,
    clock: &StoreClock,
    mint: &ReceiptMint,
    under: Under,
    message: &Message,
) -> Result<Sent, StoreError> {
    checks::message(message)?;
    let named = Named { key: checks::message_key(message)?, kind: EffectKind::Message };
    let digest: [u8; 32] = Sha256::digest(&message.payload).into();
    let write = || {
        let now = clock.now();
        let Some(work) = find_work(db, under, now)? else { return Ok(Sent::LeaseLost) };
        let Some(to) = destination(db, &message.destination)? else {
            return Ok(Sent::NoDestination);
        };
        let at = moment(now)?;
        let receipt = mint.mint(at);
        let (short, result) = (&digest[..16], format!("\"{receipt}\""));
        let state = EffectState::Done;
        let entry = Entry { named: &named, state, digest: Some(short), result: Some(&result) };
        if !insert(db, under, &work, &entry, now)? {
            return sent_before(db, under, &named.key, short, now);
        }
        let number = number_in_group(db, to.1, message.group.as_ref(), clock.today())?;
        let arrival = arrival(message, under.delivery, to, (receipt, at), number, digest);
        insert_receipt(db, &arrival, now)?;
        Ok(Sent::New(receipt))
    };
    write().map_err(failure)
}

/// An effect as the ledger names it.
pub(super) struct Named {
    pub(super) key: String,
    pub(super) kind: EffectKind,
}

/// The key and kind of what a caller names; none if there is no such route.
pub(super) fn named(
    db: &Connection,
    under: Under,
    name: &EffectName,
) -> Result<Option<Named>, StoreError> {
    let born_as = match name {
        EffectName::Key(_) => Some(String::new()),
        EffectName::Step(_) => birth(db, under.delivery.route).map_err(failure)?,
    };
    let Some(born_as) = born_as else { return Ok(None) };
    let (key, kind) = checks::key(name, under.delivery.receipt, &born_as)?;
    Ok(Some(Named { key, kind }))
}

/// The name a route was born with.
fn birth(db: &Connection, route: RouteNo) -> rusqlite::Result<Option<String>> {
    let mut statement = db.prepare_cached(include_str!("sql/find_birth.sql"))?;
    statement.query_row([route.0], |row| row.get(0)).optional()
}

/// What effects are told of the delivery they belong to.
pub(super) struct Work {
    source: i16,
    pub(super) attempt: u32,
}

/// The delivery somebody works on, if the lease is good.
pub(super) fn find_work(db: &Connection, under: Under, now: i64) -> rusqlite::Result<Option<Work>> {
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![head, tail, under.delivery.route.0, under.lease.0, now];
    let mut statement = db.prepare_cached(include_str!("sql/find_work.sql"))?;
    let work =
        statement.query_row(values, |row| Ok(Work { source: row.get(0)?, attempt: row.get(1)? }));
    work.optional()
}

/// A new row of the ledger.
pub(super) struct Entry<'a> {
    pub(super) named: &'a Named,
    pub(super) state: EffectState,
    pub(super) digest: Option<&'a [u8]>,
    pub(super) result: Option<&'a str>,
}

/// Takes a key for a delivery; false if somebody has it.
pub(super) fn insert(
    db: &Connection,
    under: Under,
    work: &Work,
    entry: &Entry<'_>,
    now: i64,
) -> rusqlite::Result<bool> {
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![
        entry.named.key,
        entry.named.kind.as_str(),
        entry.state.as_str(),
        head,
        tail,
        under.delivery.route.0,
        under.lease.0,
        work.attempt,
        now,
        entry.digest,
        entry.result,
    ];
    Ok(run(db, include_str!("sql/insert_effect.sql"), values)? == 1)
}

/// What could not be inserted is there: the writer is alone.
pub(super) fn there(found: Option<Found>) -> rusqlite::Result<Found> {
    found.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Remembers a delivery that found done what another did.
pub(super) fn note_conflict(
    db: &Connection,
    under: Under,
    found: &mut Found,
    differs: bool,
    now: i64,
) -> rusqlite::Result<()> {
    if found.effect.delivery == under.delivery {
        return Ok(());
    }
    let (head, tail) = halves(under.delivery.receipt);
    let values = params![found.effect.key, head, tail, under.delivery.route.0, now, differs];
    let is_new = run(db, include_str!("sql/insert_conflict.sql"), values)? == 1;
    found.effect.conflicts += u32::from(is_new);
    Ok(())
}

/// The source and the route that carry the messages of a destination.
type Destination = (SourceNo, RouteNo);

fn destination(db: &Connection, name: &str) -> rusqlite::Result<Option<Destination>> {
    let mut statement = db.prepare_cached(include_str!("sql/find_destination.sql"))?;
    let found = statement.query_row([format!("{OUTBOX}{name}")], |row| {
        Ok((SourceNo(row.get(0)?), RouteNo(row.get(1)?)))
    });
    found.optional()
}

/// Says what became of the key of a message that somebody has.
fn sent_before(
    db: &Connection,
    under: Under,
    key: &str,
    digest: &[u8],
    now: i64,
) -> rusqlite::Result<Sent> {
    let mut found = there(effects::find(db, key, now)?)?;
    let differs = found.digest.is_none_or(|first| first != digest);
    note_conflict(db, under, &mut found, differs, now)?;
    let first = receipt_of_message(found.effect.result.as_deref()).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(9, Type::Text, "no receipt id".into())
    })?;
    Ok(if differs { Sent::Conflict(first) } else { Sent::Before(first) })
}

/// The receipt of a message, from the result recorded with it.
pub(super) fn receipt_of_message(result: Option<&str>) -> Option<ReceiptId> {
    result?.trim_matches('"').parse().ok()
}

/// The next number of a message's group; none without a group.
fn number_in_group(
    db: &Connection,
    route: RouteNo,
    group: Option<&EffectKey>,
    today: i32,
) -> rusqlite::Result<Option<i64>> {
    let Some(group) = group else { return Ok(None) };
    db.prepare_cached(include_str!("sql/number_in_group.sql"))?
        .query_row(params![route.0, group.as_str(), today], |row| row.get(0))
        .map(Some)
}

/// A message as an event that came in: it goes the same way from here.
fn arrival(
    message: &Message,
    cause: DeliveryId,
    (source, route): Destination,
    (receipt, received_at): (ReceiptId, Timestamp),
    number: Option<i64>,
    digest: [u8; 32],
) -> Arrival {
    let headers = format!("content-type: {}\noncebox-cause: {cause}\n", message.content_type);
    Arrival {
        receipt,
        source,
        received_at,
        event_id: message.key.as_str().to_owned(),
        trust: Trust::Signed,
        event_type: "message".into(),
        object: message.group.as_ref().map(|group| group.as_str().to_owned()),
        version: number,
        secret: SecretNo(0),
        signed_at: None,
        headers: headers.into_bytes(),
        body: message.payload.clone(),
        digest,
        content: digest,
        guard: None,
        keep_aside: false,
        takers: vec![Taker { route, laned: true, operation: None }],
    }
}

fn moment(now: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(now).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, now))
}
