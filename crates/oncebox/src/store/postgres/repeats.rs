//! What arrivals that are not new repeat, and keeping what is known of them young.

use std::collections::HashSet;

use deadpool_postgres::Object;
use tokio_postgres::Row;
use uuid::Uuid;

use super::columns::uuid_of;
use super::connect::{execute, query};
use super::{PostgresStore, odd_receipts};
use crate::identity::IdentityKey;
use crate::odd::{Known, Owner, Standing, guarded_type, outcome, stand};
use crate::receipt::{Arrival, Mark, ReceiptId, Recorded};
use crate::store::{StoreError, day_of};

/// Finds out what arrivals repeat, and records those that are odd. The look-up is itself a synced
/// commit, so that a repeat's answer is as durable as an acceptance. What cannot be told because an
/// identity was swept meanwhile is left open.
pub(super) async fn settle(
    store: &PostgresStore,
    batch: &[Arrival],
    repeats: &[usize],
    outcomes: &mut [Option<Recorded>],
) -> Result<(), StoreError> {
    let outcomes = &mut *outcomes;
    store.general.write(async |client| settle_on(client, batch, repeats, outcomes).await).await
}

async fn settle_on(
    client: &mut Object,
    batch: &[Arrival],
    repeats: &[usize],
    outcomes: &mut [Option<Recorded>],
) -> Result<(), StoreError> {
    let found = find(client, batch, repeats).await?;
    // Before any sender is answered, so that an identity is as young as its last answer.
    let gone = see(client, &found).await?;
    let mut odd = Vec::new();
    for found in found.iter().filter(|found| !gone.contains(&found.place)) {
        let n = found.place;
        match stand(found.arrival, &found.known) {
            Standing::New if found.arrival.has_room => {}
            Standing::Own => outcomes[n] = Some(Recorded::Accepted),
            Standing::Repeat(receipt) => outcomes[n] = Some(Recorded::Duplicate { receipt }),
            Standing::Odd { oddity, first, is_recorded: true } => {
                outcomes[n] = Some(outcome(oddity, first));
            }
            Standing::Odd { oddity, first, .. } if found.arrival.has_room => {
                odd.push(odd_receipts::Arrived {
                    place: n,
                    arrival: found.arrival,
                    mark: Mark { oddity, first: Some(first) },
                    has_stranded_identity: found.known.has_stranded_identity(),
                });
            }
            Standing::New | Standing::Odd { .. } => outcomes[n] = Some(Recorded::NoRoom),
        }
    }
    claim_guards(client, &found, outcomes).await?;
    match odd.is_empty() {
        true => Ok(()),
        false => odd_receipts::record(client, &odd, outcomes).await,
    }
}

/// What the look-up found of an arrival.
struct Found<'a> {
    /// Its place in the batch.
    place: usize,
    arrival: &'a Arrival,
    known: Known,
    /// The days on which its identity, its content and its odd receipt were last seen.
    last_seen: [Option<i32>; 3],
    /// The key of the event that came first with its content.
    first_identity: Option<Uuid>,
}

impl<'a> Found<'a> {
    fn read(batch: &'a [Arrival], repeats: &[usize], row: &Row) -> Option<Self> {
        let place = usize::try_from(row.get::<_, i64>(0) - 1).ok()?;
        let place = *repeats.get(place)?;
        let receipt = |column: usize| row.get::<_, Option<Uuid>>(column).map(ReceiptId::from);
        let identity = receipt(1).map(|receipt| Owner {
            receipt,
            content: row.get::<_, Uuid>(2).into_bytes(),
            is_stored: true,
        });
        Some(Self {
            place,
            arrival: &batch[place],
            known: Known { identity, guard: receipt(4), odd: receipt(7) },
            last_seen: [row.get(3), row.get(5), row.get(8)],
            first_identity: row.get(6),
        })
    }

    /// The owner of its id, where its content came first with another: was that ever written?
    fn doubtful_owner(&mut self) -> Option<&mut Owner> {
        let first = self.known.guard?;
        self.known.identity.as_mut().filter(|owner| owner.receipt != first)
    }
}

async fn find<'a>(
    client: &Object,
    batch: &'a [Arrival],
    repeats: &[usize],
) -> Result<Vec<Found<'a>>, StoreError> {
    let arrivals = || repeats.iter().map(|n| &batch[*n]);
    let sources: Vec<i16> = arrivals().map(|arrival| arrival.source.0).collect();
    let keys: Vec<Uuid> = arrivals().map(|arrival| uuid_of(arrival.key())).collect();
    let guard_keys: Vec<Option<Uuid>> =
        arrivals().map(|arrival| arrival.guard_key().map(uuid_of)).collect();
    let odd_keys: Vec<Uuid> = arrivals().map(|arrival| uuid_of(arrival.odd_key())).collect();
    let sql = include_str!("sql/find_repeats.sql");
    let rows = query(client, sql, &[&sources, &keys, &guard_keys, &odd_keys]).await?;
    let mut found: Vec<Found<'_>> =
        rows.iter().filter_map(|row| Found::read(batch, repeats, row)).collect();
    find_stored(client, &mut found).await?;
    Ok(found)
}

/// Finds out whether the owners of ids are stored, where it makes a difference.
async fn find_stored(client: &Object, found: &mut [Found<'_>]) -> Result<(), StoreError> {
    let owners = found.iter_mut().filter_map(Found::doubtful_owner);
    let ids: Vec<Uuid> = owners.map(|owner| owner.receipt.as_uuid()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let rows = query(client, include_str!("sql/find_stored.sql"), &[&ids]).await?;
    let stored: HashSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    for owner in found.iter_mut().filter_map(Found::doubtful_owner) {
        owner.is_stored = stored.contains(&owner.receipt.as_uuid());
    }
    Ok(())
}

/// Keys that were last seen on an earlier day than today.
#[derive(Default)]
struct Seen {
    source: Vec<i16>,
    key: Vec<Uuid>,
    today: Vec<i32>,
}

impl Seen {
    fn push(&mut self, arrival: &Arrival, key: Uuid) {
        self.source.push(arrival.source.0);
        self.key.push(key);
        self.today.push(day_of(arrival.received_at));
    }
}

/// Makes identities and guards as young as this answer. Returns the places of those whose identity
/// was swept between the look-up and now: nothing would be left to remember their answer by.
async fn see(client: &Object, found: &[Found<'_>]) -> Result<HashSet<usize>, StoreError> {
    let (mut identities, mut guards) = (Seen::default(), Seen::default());
    let mut aged = Vec::new();
    for found in found {
        let arrival = found.arrival;
        let today = day_of(arrival.received_at);
        let is_old = |last_seen: Option<i32>| last_seen.is_some_and(|day| day < today);
        let [identity, guard, odd] = found.last_seen;
        for (last_seen, key) in [(identity, arrival.key()), (odd, arrival.odd_key())] {
            if is_old(last_seen) {
                identities.push(arrival, uuid_of(key));
                aged.push((found.place, (arrival.source.0, uuid_of(key))));
            }
        }
        if is_old(guard) {
            found.first_identity.iter().for_each(|key| identities.push(arrival, *key));
            for key in [arrival.guard_key(), arrival.type_key()].into_iter().flatten() {
                guards.push(arrival, uuid_of(key));
            }
        }
    }
    if !guards.key.is_empty() {
        let sql = include_str!("sql/see_guards.sql");
        execute(client, sql, &[&guards.source, &guards.key, &guards.today]).await?;
    }
    if identities.key.is_empty() {
        return Ok(HashSet::new());
    }
    let sql = include_str!("sql/see_identities.sql");
    let rows =
        query(client, sql, &[&identities.source, &identities.key, &identities.today]).await?;
    let there: HashSet<(i16, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(aged.into_iter().filter(|(_, key)| !there.contains(key)).map(|(place, _)| place).collect())
}

/// Gives content to the event it came again for: a provider that signs each attempt anew sends
/// other signed content each time.
async fn claim_guards(
    client: &Object,
    found: &[Found<'_>],
    outcomes: &[Option<Recorded>],
) -> Result<(), StoreError> {
    let mut guards = Guards::default();
    for found in found.iter().filter(|found| found.known.guard.is_none()) {
        if let (Some(key), Some(Recorded::Duplicate { receipt })) =
            (found.arrival.guard_key(), outcomes[found.place])
            && found.known.identity.is_some_and(|owner| owner.receipt == receipt)
        {
            guards.push(found.arrival, key, receipt);
        }
    }
    guards.claim(client).await
}

/// Guards that are to be claimed, a column each.
#[derive(Default)]
pub(super) struct Guards {
    source: Vec<i16>,
    key: Vec<Uuid>,
    receipt: Vec<Uuid>,
    identity: Vec<Uuid>,
    of_type: Vec<Uuid>,
    today: Vec<i32>,
}

impl Guards {
    pub(super) fn push(&mut self, arrival: &Arrival, key: IdentityKey, receipt: ReceiptId) {
        self.source.push(arrival.source.0);
        self.key.push(uuid_of(key));
        self.receipt.push(receipt.as_uuid());
        self.identity.push(uuid_of(arrival.key()));
        self.of_type.push(Uuid::from_bytes(guarded_type(arrival)));
        self.today.push(day_of(arrival.received_at));
    }

    pub(super) async fn claim(
        &self,
        client: &impl deadpool_postgres::GenericClient,
    ) -> Result<(), StoreError> {
        if self.key.is_empty() {
            return Ok(());
        }
        let sql = include_str!("sql/claim_guards.sql");
        let Self { source, key, receipt, identity, of_type, today } = self;
        execute(client, sql, &[source, key, receipt, identity, of_type, today]).await.map(drop)
    }
}
