//! What `record.sql`, `record_parts.sql` and `record_odd.sql` are given.

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::identity::IdentityKey;
use crate::odd::{OddReceipt, guarded_type};
use crate::receipt::Arrival;
use crate::store::{day_of, words};

/// A key as PostgreSQL stores it.
pub(super) fn uuid_of(key: IdentityKey) -> Uuid {
    Uuid::from_bytes(*key.as_bytes())
}

/// A batch turned on its side: one array per column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    source: Vec<i16>,
    key: Vec<Uuid>,
    receipt: Vec<Uuid>,
    content: Vec<Uuid>,
    today: Vec<i32>,
    guard_source: Vec<i16>,
    guard_key: Vec<Uuid>,
    guard_receipt: Vec<Uuid>,
    guard_identity: Vec<Uuid>,
    guard_type: Vec<Uuid>,
    guard_today: Vec<i32>,
    received_at: Vec<Timestamp>,
    signed_at: Vec<Option<Timestamp>>,
    version: Vec<Option<i64>>,
    secret: Vec<i16>,
    routes: Vec<i16>,
    trust: Vec<&'static str>,
    event_id: Vec<&'a str>,
    event_type: Vec<&'a str>,
    object: Vec<Option<&'a str>>,
    digest: Vec<&'a [u8]>,
    headers: Vec<&'a [u8]>,
    body: Vec<&'a [u8]>,
    guard: Vec<bool>,
    delivery_receipt: Vec<Uuid>,
    delivery_route: Vec<i16>,
    delivery_at: Vec<Timestamp>,
    delivery_source: Vec<i16>,
    delivery_object: Vec<Option<&'a str>>,
    delivery_place: Vec<i64>,
    delivery_operation: Vec<Option<Uuid>>,
    /// Empty where every event came alone.
    parts: Option<Parts<'a>>,
    oddity: Vec<Option<&'static str>>,
    /// Only of twins and conflicts.
    odd: Odd,
}

/// What only twins and conflicts have.
#[derive(Default)]
struct Odd {
    first: Vec<Option<Uuid>>,
    delivery_state: Vec<&'static str>,
    delivery_reason: Vec<Option<&'static str>>,
}

/// The requests that several of a batch came in.
#[derive(Default)]
struct Parts<'a> {
    request: Vec<Option<Uuid>>,
    position: Vec<Option<i32>>,
    id: Vec<Uuid>,
    source: Vec<i16>,
    events: Vec<i32>,
    body: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(arrivals: impl Iterator<Item = &'a Arrival>) -> Self {
        let mut columns = Self::default();
        arrivals.for_each(|arrival| columns.push(arrival));
        columns
    }

    /// The columns of twins and conflicts.
    pub(super) fn of_odd(odd: &[OddReceipt<'a>]) -> Self {
        let mut columns = Self { parts: Some(Parts::default()), ..Self::default() };
        odd.iter().for_each(|odd| columns.push_odd(odd));
        columns
    }

    /// Whether it takes `record_parts.sql`.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// The parameters of `record.sql`, in its order, and after them those that only
    /// `record_parts.sql` has.
    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &self.source,
            &self.key,
            &self.receipt,
            &self.content,
            &self.today,
            &self.guard_source,
            &self.guard_key,
            &self.guard_receipt,
            &self.guard_identity,
            &self.guard_type,
            &self.guard_today,
            &self.received_at,
            &self.signed_at,
            &self.version,
            &self.secret,
            &self.routes,
            &self.trust,
            &self.event_id,
            &self.event_type,
            &self.object,
            &self.digest,
            &self.headers,
            &self.body,
            &self.guard,
            &self.delivery_receipt,
            &self.delivery_route,
            &self.delivery_at,
            &self.delivery_source,
            &self.delivery_object,
            &self.delivery_place,
            &self.delivery_operation,
        ];
        if let Some(parts) = &self.parts {
            values.extend(parts.values());
            values.push(&self.oddity);
        }
        values
    }

    /// The parameters of `record_odd.sql`, in its order.
    pub(super) fn odd_values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &self.source,
            &self.key,
            &self.receipt,
            &self.content,
            &self.today,
            &self.received_at,
            &self.signed_at,
            &self.version,
            &self.secret,
            &self.routes,
            &self.trust,
            &self.event_id,
            &self.event_type,
            &self.object,
            &self.digest,
            &self.headers,
            &self.body,
        ];
        let parts = self.parts.as_ref().map(Parts::values);
        let [request, position, id, source, events, body] = parts.expect("odd ones have parts");
        values.extend([request, position]);
        let rest: [&(dyn ToSql + Sync); 11] = [
            &self.oddity,
            &self.odd.first,
            &self.delivery_receipt,
            &self.delivery_route,
            &self.delivery_at,
            &self.delivery_source,
            &self.delivery_object,
            &self.delivery_place,
            &self.delivery_operation,
            &self.odd.delivery_state,
            &self.odd.delivery_reason,
        ];
        values.extend(rest);
        values.extend([id, source, events, body]);
        values
    }

    fn push(&mut self, arrival: &'a Arrival) {
        self.push_part(arrival);
        self.key.push(uuid_of(arrival.key()));
        if let Some(key) = arrival.guard_key() {
            self.guard_source.push(arrival.source.0);
            self.guard_key.push(uuid_of(key));
            self.guard_receipt.push(arrival.receipt.as_uuid());
            self.guard_identity.push(uuid_of(arrival.key()));
            self.guard_type.push(Uuid::from_bytes(guarded_type(arrival)));
            self.guard_today.push(day_of(arrival.received_at));
        }
        self.guard.push(arrival.guard.is_some());
        self.oddity.push(arrival.own_mark().map(|mark| mark.oddity.as_str()));
        self.push_receipt(arrival);
        self.push_deliveries(arrival, false);
    }

    /// A twin or conflict is known by its id together with its content. Held deliveries stand
    /// outside lanes and operations.
    fn push_odd(&mut self, odd: &OddReceipt<'a>) {
        let arrival = odd.arrival;
        self.parts.get_or_insert_default().push(arrival);
        self.key.push(uuid_of(arrival.odd_key()));
        self.oddity.push(Some(odd.mark.oddity.as_str()));
        self.odd.first.push(odd.mark.first.map(|first| first.as_uuid()));
        let (state, reason) = odd.state();
        self.odd.delivery_state.extend(arrival.takers.iter().map(|_| state));
        self.odd.delivery_reason.extend(arrival.takers.iter().map(|_| reason));
        self.push_receipt(arrival);
        self.push_deliveries(arrival, reason.is_some());
    }

    fn push_receipt(&mut self, arrival: &'a Arrival) {
        self.source.push(arrival.source.0);
        self.receipt.push(arrival.receipt.as_uuid());
        self.content.push(Uuid::from_bytes(arrival.content16()));
        self.today.push(day_of(arrival.received_at));
        self.received_at.push(arrival.received_at);
        self.signed_at.push(arrival.signed_at);
        self.version.push(arrival.version);
        self.secret.push(arrival.secret.0);
        self.routes.push(arrival.route_count());
        self.trust.push(words::of_trust(arrival.trust));
        self.event_id.push(&arrival.event_id);
        self.event_type.push(&arrival.event_type);
        self.object.push(arrival.object.as_deref());
        self.digest.push(&arrival.digest);
        self.headers.push(&arrival.headers);
        self.body.push(&arrival.body);
    }

    fn push_deliveries(&mut self, arrival: &'a Arrival, is_held: bool) {
        for taker in &arrival.takers {
            let object = arrival.object.as_deref().filter(|_| !is_held);
            let operation = taker.operation.filter(|_| !is_held);
            self.delivery_receipt.push(arrival.receipt.as_uuid());
            self.delivery_route.push(taker.route.0);
            self.delivery_at.push(arrival.received_at);
            self.delivery_source.push(arrival.source.0);
            self.delivery_object.push(object);
            self.delivery_place.push(arrival.version.unwrap_or(i64::MIN));
            self.delivery_operation.push(operation.map(Uuid::from_bytes));
        }
    }

    /// Comes before the arrival itself: those before it came alone, if this is the first part.
    fn push_part(&mut self, arrival: &'a Arrival) {
        if arrival.part.is_none() && self.parts.is_none() {
            return;
        }
        let before = self.receipt.len();
        let parts = self.parts.get_or_insert_with(|| Parts::after(before));
        parts.push(arrival);
    }
}

impl<'a> Parts<'a> {
    fn after(alone: usize) -> Self {
        Self { request: vec![None; alone], position: vec![None; alone], ..Self::default() }
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.request, &self.position, &self.id, &self.source, &self.events, &self.body]
    }

    fn push(&mut self, arrival: &'a Arrival) {
        let part = arrival.part.as_ref();
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        self.request.push(part.map(|part| part.request.as_uuid()));
        self.position.push(part.map(|part| number(part.position)));
        let Some(part) = part else { return };
        // The events of a request come together, so the last one is nearly always it.
        let request = part.request.as_uuid();
        if !self.id.iter().rev().any(|id| *id == request) {
            self.id.push(request);
            self.source.push(arrival.source.0);
            self.events.push(number(part.count));
            self.body.push(&part.whole);
        }
    }
}
