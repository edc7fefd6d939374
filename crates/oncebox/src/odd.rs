//! Odd arrivals: authentic events whose identity or signed content was seen before.
//!
//! Each is a receipt of its own, marked and naming the first. What an arrival is and what becomes
//! of its deliveries are pure functions here; the stores gather what is known and apply it.

use crate::identity::IdentityKey;
use crate::limits;
use crate::receipt::{Arrival, Mark, OddAct, Oddity, ReceiptId, Recorded};

/// What a store knows of an arrival's identity and content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The owner of its event id.
    pub(crate) identity: Option<Owner>,
    /// The receipt that came first with its signed content, where that is guarded.
    pub(crate) guard: Option<ReceiptId>,
    /// The odd receipt with its id and content.
    pub(crate) odd: Option<ReceiptId>,
}

/// The receipt that owns an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) receipt: ReceiptId,
    pub(crate) content: [u8; 16],
    /// Whether the receipt is stored. It may have expired; or its id was claimed at the same moment
    /// as another node claimed its content, and then it was never written.
    pub(crate) is_stored: bool,
}

impl Known {
    /// Whether its event id was claimed for a receipt that was never written: two nodes recorded
    /// one content under two ids at the same moment, and this one lost. A twin does not own its id.
    pub(crate) fn has_stranded_identity(&self) -> bool {
        match (&self.identity, self.guard) {
            (Some(owner), Some(first)) => !owner.is_stored && owner.receipt != first,
            _ => false,
        }
    }
}

/// What an arrival is, compared with what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Neither its identity nor its content is known.
    New,
    /// An earlier try recorded it, under the same receipt id.
    Own,
    /// The same event as this receipt.
    Repeat(ReceiptId),
    /// Authentic and odd; `is_recorded` if an earlier try recorded it so.
    Odd { oddity: Oddity, first: ReceiptId, is_recorded: bool },
}

/// Says what an arrival is.
pub(crate) fn stand(arrival: &Arrival, known: &Known) -> Standing {
    let owner = known.identity.filter(|_| !known.has_stranded_identity());
    if let Some(owner) = owner {
        if owner.receipt == arrival.receipt {
            return Standing::Own;
        }
        if arrival.repeats(owner.content) {
            return Standing::Repeat(owner.receipt);
        }
    }
    // Content that was seen before is a twin under a known id as well: only new content conflicts.
    let (oddity, first) = match (known.guard, owner) {
        (Some(first), _) => (Oddity::Twin, first),
        (None, Some(owner)) => (Oddity::Conflict, owner.receipt),
        (None, None) => return Standing::New,
    };
    match known.odd {
        Some(receipt) if receipt != arrival.receipt => Standing::Repeat(receipt),
        recorded => Standing::Odd { oddity, first, is_recorded: recorded.is_some() },
    }
}

/// How an odd arrival was recorded.
pub(crate) fn outcome(oddity: Oddity, first: ReceiptId) -> Recorded {
    match oddity {
        Oddity::Twin => Recorded::Twin { first },
        Oddity::Conflict | Oddity::Defect => Recorded::Conflict { first },
    }
}

/// What a store has counted of one signed content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Twins of it that were held.
    pub(crate) held: i16,
    /// Types it came under beside the first one.
    pub(crate) types: i16,
    /// Whether it came under the arrival's type before.
    pub(crate) has_type: bool,
}

/// What becomes of the deliveries of an odd arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// They run, marked. `is_new_type` if its body came under this type for the first time.
    Deliver { is_new_type: bool },
    /// They are held for an operator.
    Hold,
    /// None: enough twins of its content are held, and it counts as a repeat of the last.
    RepeatOfLast,
}

/// Says what becomes of a twin.
pub(crate) fn place_twin(arrival: &Arrival, seen: &Seen) -> Place {
    let has_room_for_type = seen.types + 1 < limits::TYPES_PER_BODY;
    if arrival.odd_rules.types_share_body && !seen.has_type && has_room_for_type {
        return Place::Deliver { is_new_type: true };
    }
    match arrival.odd_rules.twins {
        OddAct::Deliver => Place::Deliver { is_new_type: false },
        OddAct::Hold if seen.held < limits::HELD_TWINS => Place::Hold,
        OddAct::Hold => Place::RepeatOfLast,
    }
}

/// Says what becomes of a conflict: new signed content always has a receipt.
pub(crate) fn place_conflict(arrival: &Arrival) -> Place {
    match arrival.odd_rules.conflicts {
        OddAct::Deliver => Place::Deliver { is_new_type: false },
        OddAct::Hold => Place::Hold,
    }
}

/// The type that a guard notes with its content, so that the next type can be told from it. Nil
/// where types make no difference.
pub(crate) fn guarded_type(arrival: &Arrival) -> [u8; 16] {
    arrival.type_key().map_or([0; 16], |key: IdentityKey| *key.as_bytes())
}

/// An odd arrival, and how it is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OddReceipt<'a> {
    pub(crate) arrival: &'a Arrival,
    pub(crate) mark: Mark,
    pub(crate) place: Place,
}

impl OddReceipt<'_> {
    /// The state and reason its deliveries begin in.
    pub(crate) fn state(&self) -> (&'static str, Option<&'static str>) {
        match self.place {
            Place::Hold => ("held", Some(self.mark.oddity.as_str())),
            Place::Deliver { .. } | Place::RepeatOfLast => ("received", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::receipt::{OddRules, ReceiptMint, SourceNo};

    fn arrival() -> Arrival {
        let at = Timestamp::from_second(1_760_000_000).unwrap();
        let receipt = ReceiptMint::new().mint(at);
        let mut arrival = Arrival::new(receipt, SourceNo(1), at, "id", "orders/create", "body");
        arrival.guard = Some([1; 32]);
        arrival
    }

    fn receipt(byte: u8) -> ReceiptId {
        ReceiptId::from_bytes([byte; 16])
    }

    fn owner(content: [u8; 16]) -> Option<Owner> {
        Some(Owner { receipt: receipt(1), content, is_stored: true })
    }

    #[test]
    fn what_an_arrival_is_follows_from_what_is_known() {
        let arrival = arrival();
        let (same, other) = (arrival.content16(), [9; 16]);
        let odd = |oddity, first| Standing::Odd { oddity, first, is_recorded: false };
        let known = Known::default();
        assert_eq!(stand(&arrival, &known), Standing::New);

        let repeated = Known { identity: owner(same), ..known };
        assert_eq!(stand(&arrival, &repeated), Standing::Repeat(receipt(1)));
        let conflict = Known { identity: owner(other), ..known };
        assert_eq!(stand(&arrival, &conflict), odd(Oddity::Conflict, receipt(1)));
        let twin = Known { guard: Some(receipt(2)), ..known };
        assert_eq!(stand(&arrival, &twin), odd(Oddity::Twin, receipt(2)));
        // A known id does not make known content a conflict.
        let twin = Known { identity: owner(other), ..twin };
        assert_eq!(stand(&arrival, &twin), odd(Oddity::Twin, receipt(2)));
        let copy = Known { odd: Some(receipt(3)), ..twin };
        assert_eq!(stand(&arrival, &copy), Standing::Repeat(receipt(3)));
        let again = Known { odd: Some(arrival.receipt), ..twin };
        let recorded = Standing::Odd { oddity: Oddity::Twin, first: receipt(2), is_recorded: true };
        assert_eq!(stand(&arrival, &again), recorded);
    }

    #[test]
    fn an_id_claimed_for_a_receipt_that_was_never_written_is_not_owned() {
        let arrival = arrival();
        let own =
            Owner { receipt: arrival.receipt, content: arrival.content16(), is_stored: false };
        let known = Known { identity: Some(own), guard: Some(receipt(2)), odd: None };
        assert!(known.has_stranded_identity());
        let twin = Standing::Odd { oddity: Oddity::Twin, first: receipt(2), is_recorded: false };
        assert_eq!(stand(&arrival, &known), twin);
        // A receipt that expired is remembered by its guard as well.
        let expired = Known { guard: Some(arrival.receipt), ..known };
        assert!(!expired.has_stranded_identity());
        assert_eq!(stand(&arrival, &expired), Standing::Own);
    }

    #[test]
    fn the_first_of_each_type_is_delivered_and_others_follow_the_rule() {
        let mut arrival = arrival();
        let seen = Seen::default();
        assert_eq!(place_twin(&arrival, &seen), Place::Hold);
        arrival.odd_rules = OddRules { types_share_body: true, ..OddRules::default() };
        assert_eq!(place_twin(&arrival, &seen), Place::Deliver { is_new_type: true });
        let known = Seen { has_type: true, ..seen };
        assert_eq!(place_twin(&arrival, &known), Place::Hold);
        let many = Seen { types: limits::TYPES_PER_BODY - 1, ..seen };
        assert_eq!(place_twin(&arrival, &many), Place::Hold);
        let full = Seen { held: limits::HELD_TWINS, has_type: true, ..seen };
        assert_eq!(place_twin(&arrival, &full), Place::RepeatOfLast);
        arrival.odd_rules.twins = OddAct::Deliver;
        assert_eq!(place_twin(&arrival, &full), Place::Deliver { is_new_type: false });
    }
}
