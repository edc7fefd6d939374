//! The verbs inside a transaction: what they write commits or is taken back with it.
//!
//! Each is checked under the lease of the delivery it belongs to. The writer is alone, so what is
//! read here stays true until its transaction ends.

use jiff::Timestamp;
use oncebox_verify::Trust;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::begun::make_done;
use super::clock::StoreClock;
use super::connection::{failure, run};
use super::effects::{self, Found};
use super::record::insert_receipt;
use super::rollups::Deliveries;
use super::rows::{halves, moment};
use crate::delivery::DeliveryId;
use crate::effect::{
    EffectKey, EffectKind, EffectName, EffectState, Message, OUTBOX, Once, Sent, Under,
};
use crate::limits;
use crate::receipt::{
    Arrival, OddRules, ReceiptId, ReceiptMint, RouteNo, SecretNo, SourceNo, Taker,
};
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
        match found.effect.state {
            EffectState::Done => {
                note_conflict(db, under, &mut found, false, now_ms)?;
                Ok(Once::Already(found.effect))
            }
            // Begun under this lease outside a transaction: this one says what came of it.
            EffectState::Started if found.is_of(under) => {
                make_done(db, under, &named.key, result, now_ms)?;
                Ok(Once::First)
            }
            EffectState::Started | EffectState::Unknown => Ok(Once::Open(found.effect)),
        }
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
    let Some(work) = find_work(db, under, clock.now()).map_err(failure)? else { return Ok(None) };
    let [own, applied] = versions(db, under, &work, object).map_err(failure)?;
    checks::same_unit(object, version, own)?;
    let replaces = checks::is_of_wrong_unit(applied, version, own);
    if !replaces {
        checks::same_unit(object, version, applied)?;
    }
    let (route, today) = (under.delivery.route.0, clock.today());
    let values = params![route, work.source, object, version, today, replaces];
    let moved = run(db, include_str!("sql/advance.sql"), values).map_err(failure)?;
    Ok(Some(moved == 1))
}

/// What is known of an object's version: that of the event, where it is about that object, and the
/// watermark.
fn versions(
    db: &Connection,
    under: Under,
    work: &Work,
    object: &str,
) -> rusqlite::Result<[Option<i64>; 2]> {
    let head = halves(under.delivery.receipt).0;
    let values = params![head, under.delivery.route.0, work.source, object];
    db.prepare_cached(include_str!("sql/find_versions.sql"))?
        .query_row(values, |row| Ok([row.get(0)?, row.get(1)?]))
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
    let Some((to, born_as)) = destination(db, &message.destination).map_err(failure)? else {
        let work = find_work(db, under, clock.now()).map_err(failure)?;
        return Ok(if work.is_some() { Sent::NoDestination } else { Sent::LeaseLost });
    };
    let key = checks::message_key(&born_as, message)?;
    let named = Named { key, kind: EffectKind::Message };
    let digest: [u8; 32] = Sha256::digest(&message.payload).into();
    let write = || {
        let now = clock.now();
        let Some(work) = find_work(db, under, now)? else { return Ok(Sent::LeaseLost) };
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
        let mut counts = Deliveries::default();
        insert_receipt(db, &arrival, None, ("received", None), now, &mut counts)?;
        counts.write(db)?;
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
    let birth = birth(db, under.delivery.route).map_err(failure)?;
    let Some((born_as, service)) = birth else { return Ok(None) };
    let (key, kind) = checks::key(name, under.delivery.receipt, &born_as, &service)?;
    Ok(Some(Named { key, kind }))
}

/// The name a route was born with, and the service whose workers it has.
fn birth(db: &Connection, route: RouteNo) -> rusqlite::Result<Option<(String, String)>> {
    let mut statement = db.prepare_cached(include_str!("sql/find_birth.sql"))?;
    statement.query_row([route.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()
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
    let conflicts = found.effect.conflicts + u32::from(is_new);
    found.effect.conflicts = conflicts.min(limits::CONFLICTS_TOLD);
    Ok(())
}

/// The source and the route that carry the messages of a destination.
type Destination = (SourceNo, RouteNo);

/// A destination, and the name its route was born with.
fn destination(db: &Connection, name: &str) -> rusqlite::Result<Option<(Destination, String)>> {
    let mut statement = db.prepare_cached(include_str!("sql/find_destination.sql"))?;
    let found = statement.query_row([format!("{OUTBOX}{name}")], |row| {
        Ok(((SourceNo(row.get(0)?), RouteNo(row.get(1)?)), row.get(2)?))
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
        headers: headers.into(),
        body: message.payload.clone(),
        digest,
        content: digest,
        guard: None,
        odd_rules: OddRules::default(),
        has_room: true,
        is_defective: false,
        takers: vec![Taker::plain(route)],
        part: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::Transaction;

    use super::*;
    use crate::delivery::{Claimed, Ending, Lease, Next};
    use crate::effect::{Begun, OnUnknown};
    use crate::route::RouteRules;
    use crate::store::sqlite::{SqliteOptions, SqliteStore};
    use crate::store::{Claim, Ledger, Purpose, Queue, Store, Wanted};

    const MAIL: &str = "receipt-email:in_456";

    /// A store with a route, and deliveries of it.
    struct Place {
        store: SqliteStore,
        route: RouteNo,
        _folder: tempfile::TempDir,
    }

    impl Place {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let options = SqliteOptions::new(folder.path().join("oncebox.db"));
            let store = SqliteStore::open(options, Purpose::Serve).await.unwrap();
            let route = store.register_route("billing", None, &RouteRules::default()).await;
            Self { store, route: route.unwrap(), _folder: folder }
        }

        async fn claim(&self) -> Under {
            let wanted = Wanted::new(self.route, 1, RouteRules::default());
            let claim =
                Claim { wanted: vec![wanted], lease: Duration::from_secs(60), worker: "w".into() };
            let claims = self.store.claim(&claim).await.unwrap().claimed;
            let [Claimed { delivery, lease, .. }] = claims[..] else { panic!("{claims:?}") };
            Under { delivery, lease }
        }

        async fn working_on(&self, event_id: &str) -> Under {
            let source = self.store.register_source("stripe", None).await.unwrap();
            let letter = Message { key: named(event_id), ..message("{}") };
            let at = Timestamp::from_second(1_760_000_000).unwrap();
            let receipt = self.store.mint().mint(at);
            let cause = DeliveryId { receipt, route: self.route };
            let to = (source, self.route);
            let event = arrival(&letter, cause, to, (receipt, at), None, [7; 32]);
            self.store.record([event].into()).await.unwrap();
            self.claim().await
        }

        async fn end(&self, under: Under, next: Next) {
            let ending = Ending {
                delivery: under.delivery,
                lease: under.lease,
                next,
                took: Duration::ZERO,
                status: None,
                detail: None,
                summary: None,
                guarded: false,
            };
            assert!(self.store.finish(vec![ending]).await.unwrap()[0].is_good());
        }

        /// Runs verbs in one transaction, which commits or not.
        async fn within<T: Send + 'static>(
            &self,
            commits: bool,
            work: impl FnOnce(&Transaction<'_>, &StoreClock) -> T + Send + 'static,
        ) -> T {
            let clock = self.store.clock.clone();
            let ran = self.store.writer.run(move |db| {
                let transaction = db.transaction().map_err(failure)?;
                let done = work(&transaction, &clock);
                if commits {
                    transaction.commit().map_err(failure)?;
                }
                Ok(done)
            });
            ran.await.unwrap()
        }

        async fn once(&self, under: Under, name: EffectName, result: Option<&'static str>) -> Once {
            let once = move |db: &Transaction<'_>, clock: &StoreClock| {
                once(db, clock.now(), under, &name, result).unwrap()
            };
            self.within(true, once).await
        }
    }

    fn named(text: &str) -> EffectKey {
        text.parse().unwrap()
    }

    fn key(text: &str) -> EffectName {
        EffectName::Key(named(text))
    }

    fn step(text: &str) -> EffectName {
        EffectName::Step(named(text))
    }

    fn message(payload: &'static str) -> Message {
        Message {
            destination: "mailer".into(),
            key: named("m1"),
            group: Some(named("g")),
            content_type: "application/json".into(),
            payload: payload.into(),
        }
    }

    #[tokio::test]
    async fn the_first_to_commit_did_it() {
        let place = Place::new().await;
        let first = place.working_on("e1").await;
        let rolled_back = place.within(false, move |db, clock| {
            let once = || once(db, clock.now(), first, &key(MAIL), None).unwrap();
            (once(), matches!(once(), Once::Already(_)))
        });
        assert_eq!(rolled_back.await, (Once::First, true));
        assert_eq!(place.once(first, key(MAIL), Some("1")).await, Once::First);

        let second = place.working_on("e2").await;
        let Once::Already(effect) = place.once(second, key(MAIL), Some("2")).await else {
            panic!("it is done")
        };
        assert_eq!((effect.delivery, effect.conflicts), (first.delivery, 1));
        assert_eq!(effect.result.as_deref(), Some("1"));
        place.end(first, Next::Retry(Duration::ZERO)).await;
        let again = place.claim().await;
        let Once::Already(effect) = place.once(again, key(MAIL), None).await else {
            panic!("it is done")
        };
        assert_eq!(effect.conflicts, 1, "one's own is no conflict");
    }

    #[tokio::test]
    async fn what_is_begun_elsewhere_is_open() {
        let place = Place::new().await;
        let (first, second) = (place.working_on("e1").await, place.working_on("e2").await);
        let begun = place.store.begin_effect(first, &key(MAIL), OnUnknown::Retry).await.unwrap();
        assert!(matches!(begun, Begun::Yours { .. }));
        let Once::Open(effect) = place.once(second, key(MAIL), None).await else { panic!("open") };
        assert_eq!(effect.state, EffectState::Started);
        place.end(first, Next::Retry(Duration::ZERO)).await;
        let Once::Open(effect) = place.once(second, key(MAIL), None).await else { panic!("open") };
        assert_eq!(effect.state, EffectState::Unknown);
        let again = place.claim().await;
        assert!(matches!(place.once(again, key(MAIL), None).await, Once::Open(_)));

        // Who began it under the same lease says what came of it.
        place.store.begin_effect(again, &key(MAIL), OnUnknown::Retry).await.unwrap();
        assert_eq!(place.once(again, key(MAIL), Some("3")).await, Once::First);
        let effect = place.store.effect(MAIL).await.unwrap().unwrap();
        assert_eq!((effect.state, effect.unknowns), (EffectState::Done, 1));
        assert_eq!(effect.result.as_deref(), Some("3"));
    }

    #[tokio::test]
    async fn results_belong_to_the_attempt_that_did_it() {
        let place = Place::new().await;
        let first = place.working_on("e1").await;
        let set = async |under, result| {
            let set = move |db: &Transaction<'_>, clock: &StoreClock| {
                set_result(db, clock.now(), under, &step("charge"), result).unwrap()
            };
            place.within(true, set).await
        };
        let get = async |under| {
            let get = move |db: &Transaction<'_>, _: &StoreClock| {
                get_result(db, under, &step("charge")).unwrap()
            };
            place.within(true, get).await
        };
        assert!(!set(first, "1").await, "it is not done");
        assert_eq!(get(first).await, None);
        assert_eq!(place.once(first, step("charge"), None).await, Once::First);
        assert_eq!(get(first).await, None);
        assert!(set(first, "2").await);
        assert_eq!(get(first).await.as_deref(), Some("2"));
        place.end(first, Next::Retry(Duration::ZERO)).await;
        assert!(!set(first, "3").await, "its lease has ended");
        let again = place.claim().await;
        assert!(!set(again, "4").await, "another attempt did it");
        assert_eq!(get(again).await.as_deref(), Some("2"));
        let other = place.working_on("e2").await;
        assert_eq!(get(other).await, None, "a step is of one delivery");
    }

    #[tokio::test]
    async fn what_is_rolled_back_was_not_written() {
        let place = Place::new().await;
        let route = place.store.register_route("outbox/mailer", None, &RouteRules::default()).await;
        place.store.register_source("outbox/mailer", None).await.unwrap();
        let first = place.working_on("e1").await;
        let mint = place.store.mint();
        let all = |commits| {
            let mint = mint.clone();
            place.within(commits, move |db, clock| {
                let advanced = advance(db, clock, first, "in_1", 7).unwrap();
                (advanced, send(db, clock, &mint, first, &message("{}")).unwrap())
            })
        };
        let (advanced, sent) = all(false).await;
        assert!(matches!((advanced, sent), (Some(true), Sent::New(_))));
        let (advanced, sent) = all(true).await;
        let Sent::New(id) = sent else { panic!("{sent:?}") };
        assert_eq!(advanced, Some(true));
        assert_eq!(all(true).await.1, Sent::Before(id));
        let receipt = place.store.receipt(id).await.unwrap().unwrap();
        assert_eq!(receipt.summary.version, Some(1), "a number taken back is given again");
        let delivery = DeliveryId { receipt: id, route: route.unwrap() };
        assert!(place.store.standing(delivery).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn without_a_lease_nothing_is_written() {
        let place = Place::new().await;
        let good = place.working_on("e1").await;
        let zombie = Under { lease: Lease(good.lease.0 - 1), ..good };
        let mint = place.store.mint();
        let tried = place.within(true, move |db, clock| {
            let now = clock.now();
            let later = now + 60_001;
            for name in [key(MAIL), step("charge")] {
                for (under, now) in [(zombie, now), (good, later)] {
                    assert_eq!(once(db, now, under, &name, None).unwrap(), Once::LeaseLost);
                    assert!(!set_result(db, now, under, &name, "1").unwrap());
                }
            }
            assert_eq!(advance(db, clock, zombie, "in_1", 7).unwrap(), None);
            send(db, clock, &mint, zombie, &message("{}")).unwrap()
        });
        assert_eq!(tried.await, Sent::LeaseLost);
        let large = "1".repeat(crate::limits::RESULT_BYTES + 1);
        let refused = place.within(true, move |db, clock| {
            let once = once(db, clock.now(), good, &key(MAIL), Some(&large)).is_err();
            once && set_result(db, clock.now(), good, &key(MAIL), &large).is_err()
        });
        assert!(refused.await);
        assert_eq!(place.store.effect(MAIL).await.unwrap(), None);
    }
}
