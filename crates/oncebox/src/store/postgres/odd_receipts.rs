//! Recording twins and conflicts as receipts of their own.

use std::collections::{BTreeMap, HashMap, HashSet};

use deadpool_postgres::{Object, Transaction};
use uuid::Uuid;

use super::columns::{Columns, uuid_of};
use super::connect::{execute, failure, query};
use super::repeats::Guards;
use crate::identity::IdentityKey;
use crate::odd::{OddReceipt, Place, Seen, outcome, place_conflict, place_twin};
use crate::receipt::{Arrival, Mark, Oddity, ReceiptId, Recorded};
use crate::store::StoreError;

/// An odd arrival that is not recorded yet.
pub(super) struct Arrived<'a> {
    /// Its place in the batch.
    pub(super) place: usize,
    pub(super) arrival: &'a Arrival,
    pub(super) mark: Mark,
    /// Whether its id was claimed for a receipt that was never written.
    pub(super) has_stranded_identity: bool,
}

/// Records odd arrivals in one transaction. Those that another node recorded at the same moment,
/// and twins whose first was swept, are left open.
pub(super) async fn record(
    client: &mut Object,
    arrived: &[Arrived<'_>],
    outcomes: &mut [Option<Recorded>],
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let mut counted = Counted::lock(&transaction, arrived).await?;
    forget_stranded(&transaction, arrived).await?;
    let (mut placed, mut beyond) = (Vec::new(), Vec::new());
    for arrived in arrived {
        match counted.place(arrived) {
            None => {}
            Some(Place::RepeatOfLast) => beyond.push(arrived),
            Some(place) => {
                let (arrival, mark) = (arrived.arrival, arrived.mark);
                placed.push((arrived.place, OddReceipt { arrival, mark, place }));
            }
        }
    }
    let kept = insert(&transaction, &placed).await?;
    placed.retain(|(_, odd)| kept.contains(&odd.arrival.receipt));
    count(&transaction, &placed).await?;
    let mut repeated = Vec::new();
    for arrived in beyond {
        repeated.push((arrived.place, last_twin(&transaction, arrived).await?));
    }
    transaction.commit().await.map_err(failure)?;
    for (n, receipt) in repeated {
        outcomes[n] = Some(Recorded::Duplicate { receipt });
    }
    for (n, odd) in placed {
        let first = odd.mark.first.unwrap_or(odd.arrival.receipt);
        outcomes[n] = Some(outcome(odd.mark.oddity, first));
    }
    Ok(())
}

/// What is counted of the contents that twins of a batch came with. Their guards are locked.
struct Counted {
    guards: HashMap<(i16, Uuid), Guard>,
}

struct Guard {
    held: i16,
    types: i16,
    of_type: Uuid,
}

impl Counted {
    async fn lock(
        transaction: &Transaction<'_>,
        arrived: &[Arrived<'_>],
    ) -> Result<Self, StoreError> {
        let twins = || arrived.iter().filter(|arrived| arrived.mark.oddity == Oddity::Twin);
        let keys = twins().flat_map(|twin| {
            let keys = [twin.arrival.guard_key(), twin.arrival.type_key()];
            keys.into_iter().flatten().map(|key| id_of(twin.arrival, key))
        });
        let (sources, keys): (Vec<i16>, Vec<Uuid>) = keys.unzip();
        if keys.is_empty() {
            return Ok(Self { guards: HashMap::new() });
        }
        let sql = include_str!("sql/lock_guards.sql");
        let rows = query(transaction, sql, &[&sources, &keys]).await?;
        let guards = rows.iter().map(|row| {
            let guard = Guard { of_type: row.get(3), held: row.get(4), types: row.get(5) };
            ((row.get(0), row.get(1)), guard)
        });
        Ok(Self { guards: guards.collect() })
    }

    /// Says what becomes of an arrival, and counts it; nothing if the guard of its content is gone.
    fn place(&mut self, arrived: &Arrived<'_>) -> Option<Place> {
        let arrival = arrived.arrival;
        if arrived.mark.oddity != Oddity::Twin {
            return Some(place_conflict(arrival));
        }
        let id = id_of(arrival, arrival.guard_key()?);
        let of_type = arrival.type_key().map(|key| id_of(arrival, key));
        let guard = self.guards.get(&id)?;
        let has_type =
            of_type.is_none_or(|key| guard.of_type == key.1 || self.guards.contains_key(&key));
        let seen = Seen { held: guard.held, types: guard.types, has_type };
        let place = place_twin(arrival, &seen);
        let guard = self.guards.get_mut(&id)?;
        match place {
            Place::Hold => guard.held += 1,
            Place::Deliver { is_new_type: true } => {
                guard.types += 1;
                let first = Guard { held: 0, types: 0, of_type: id.1 };
                self.guards.extend(of_type.map(|key| (key, first)));
            }
            Place::Deliver { .. } | Place::RepeatOfLast => {}
        }
        Some(place)
    }
}

fn id_of(arrival: &Arrival, key: IdentityKey) -> (i16, Uuid) {
    (arrival.source.0, uuid_of(key))
}

/// Frees ids that were claimed for receipts that were never written.
async fn forget_stranded(
    transaction: &Transaction<'_>,
    arrived: &[Arrived<'_>],
) -> Result<(), StoreError> {
    let stranded = arrived.iter().filter(|arrived| arrived.has_stranded_identity);
    let stranded: Vec<&Arrival> = stranded.map(|arrived| arrived.arrival).collect();
    if stranded.is_empty() {
        return Ok(());
    }
    let sources: Vec<i16> = stranded.iter().map(|arrival| arrival.source.0).collect();
    let keys: Vec<Uuid> = stranded.iter().map(|arrival| uuid_of(arrival.key())).collect();
    let contents: Vec<Uuid> =
        stranded.iter().map(|arrival| Uuid::from_bytes(arrival.content16())).collect();
    let sql = include_str!("sql/forget_stranded.sql");
    execute(transaction, sql, &[&sources, &keys, &contents]).await.map(drop)
}

/// The last twin of the same content, or the first itself once its twins have expired.
async fn last_twin(
    transaction: &Transaction<'_>,
    arrived: &Arrived<'_>,
) -> Result<ReceiptId, StoreError> {
    let first = arrived.mark.first.unwrap_or(arrived.arrival.receipt);
    let rows = query(transaction, include_str!("sql/last_twin.sql"), &[&first.as_uuid()]).await?;
    Ok(rows.first().map_or(first, |row| row.get::<_, Uuid>(0).into()))
}

/// Writes receipts and their deliveries. Returns those that were written.
async fn insert(
    transaction: &Transaction<'_>,
    placed: &[(usize, OddReceipt<'_>)],
) -> Result<HashSet<ReceiptId>, StoreError> {
    let odd: Vec<OddReceipt<'_>> = placed.iter().map(|(_, odd)| *odd).collect();
    if odd.is_empty() {
        return Ok(HashSet::new());
    }
    let columns = Columns::of_odd(&odd);
    let sql = include_str!("sql/record_odd.sql");
    let rows = query(transaction, sql, &columns.odd_values()).await?;
    Ok(rows.iter().map(|row| row.get::<_, Uuid>(0).into()).collect())
}

/// Counts twins that were written, and notes types that are new.
async fn count(
    transaction: &Transaction<'_>,
    placed: &[(usize, OddReceipt<'_>)],
) -> Result<(), StoreError> {
    let mut counts: BTreeMap<(i16, Uuid), (i16, i16)> = BTreeMap::new();
    let mut types = Guards::default();
    for (_, odd) in placed.iter().filter(|(_, odd)| odd.mark.oddity == Oddity::Twin) {
        let Some(key) = odd.arrival.guard_key() else { continue };
        let count = counts.entry(id_of(odd.arrival, key)).or_default();
        match (odd.place, odd.arrival.type_key()) {
            (Place::Hold, _) => count.0 += 1,
            (Place::Deliver { is_new_type: true }, Some(type_key)) => {
                count.1 += 1;
                types.push(odd.arrival, type_key, odd.arrival.receipt);
            }
            _ => {}
        }
    }
    counts.retain(|_, count| *count != (0, 0));
    if counts.is_empty() {
        return Ok(());
    }
    types.claim(transaction).await?;
    let (sources, keys): (Vec<i16>, Vec<Uuid>) = counts.keys().copied().unzip();
    let (held, types): (Vec<i16>, Vec<i16>) = counts.values().copied().unzip();
    let sql = include_str!("sql/count_twins.sql");
    execute(transaction, sql, &[&sources, &keys, &held, &types]).await.map(drop)
}
