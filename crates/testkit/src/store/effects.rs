//! What stories about effects need of a bed: names, callers, destinations and messages.

use bytes::Bytes;
use oncebox::delivery::{Claimed, Next};
use oncebox::effect::{
    Begun, Effect, EffectKey, EffectName, EffectState, Message, OnUnknown, Sent, Settled, Under,
};
use oncebox::receipt::ReceiptId;
use oncebox::route::RouteRules;

use super::{Bed, LEASE, Route};

/// An effect named by the business.
pub fn key(text: &str) -> EffectName {
    EffectName::Key(plain_key(text))
}

/// A step of the delivery.
pub fn step(text: &str) -> EffectName {
    EffectName::Step(plain_key(text))
}

fn plain_key(text: &str) -> EffectKey {
    text.parse().expect("a key")
}

/// The delivery and lease that a claim gave.
pub fn under(claimed: &Claimed) -> Under {
    Under { delivery: claimed.delivery, lease: claimed.lease }
}

/// A message to a destination, of no group.
pub fn message(destination: &str, key: &str, payload: &str) -> Message {
    Message {
        destination: destination.into(),
        key: plain_key(key),
        group: None,
        content_type: "application/json".into(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
    }
}

/// The same message as one of a group.
pub fn grouped(message: Message, group: &str) -> Message {
    Message { group: Some(plain_key(group)), ..message }
}

impl Bed {
    /// Records an event that a route takes, and claims it.
    pub async fn working_on(&self, event_id: &str, route: &Route) -> Claimed {
        self.due(event_id, &[*route]).await;
        let claimed = self.take(route).await;
        assert_eq!(claimed.event_id, event_id);
        claimed
    }

    /// Begins an effect; one that is unknown is begun again.
    pub async fn begin(&self, claimed: &Claimed, name: &EffectName) -> Begun {
        let begun = self.store.begin_effect(under(claimed), name, OnUnknown::Retry).await;
        begun.expect("a beginning")
    }

    /// Begins an effect; one that is unknown parks the delivery.
    pub async fn ask(&self, claimed: &Claimed, name: &EffectName) -> Begun {
        let begun = self.store.begin_effect(under(claimed), name, OnUnknown::Ask).await;
        begun.expect("a beginning")
    }

    /// Completes an effect.
    pub async fn complete(
        &self,
        claimed: &Claimed,
        name: &EffectName,
        result: Option<&str>,
    ) -> Settled {
        self.store.complete_effect(under(claimed), name, result).await.expect("an end")
    }

    /// Abandons an effect.
    pub async fn abandon(&self, claimed: &Claimed, name: &EffectName) -> Settled {
        self.store.abandon_effect(under(claimed), name).await.expect("an end")
    }

    /// An effect of the business that must be in the ledger.
    pub async fn effect(&self, key: &str) -> Effect {
        let found = self.store.effect(key).await.expect("a look-up");
        found.unwrap_or_else(|| panic!("there is no effect {key}"))
    }

    /// The state of an effect as it is written, not as it is read: `started|0`.
    pub fn effect_written(&self, key: &str) -> String {
        self.query(&format!("SELECT state, unknowns FROM effects WHERE key = '{key}'"))
    }

    /// How many effects are in a state, as the tally has it.
    pub async fn effects_in(&self, state: EffectState) -> u64 {
        let tallies = self.store.tally_effects().await.expect("a tally");
        tallies.iter().filter(|tally| tally.state == state).map(|tally| tally.count).sum()
    }

    /// Lets every lease run out, and takes the deliveries away from their workers.
    pub async fn lose_leases(&self) {
        self.pass(u32::try_from(LEASE.as_secs()).expect("a short lease") + 1);
        self.store.rescue(1000).await.expect("a rescue");
    }

    /// Ends an attempt that failed, and claims the delivery again.
    pub async fn try_again(&self, claimed: &Claimed, route: &Route) -> Claimed {
        assert!(self.finish(claimed, Next::Retry(std::time::Duration::ZERO)).await);
        let again = self.take(route).await;
        assert_eq!(again.delivery, claimed.delivery);
        again
    }

    /// Registers a destination, as the server does.
    pub async fn destination(&self, name: &str) -> Route {
        let rules = RouteRules::default().for_outbox();
        let no = self.store.register_destination(name, &rules).await.expect("a destination");
        Route { no, rules }
    }

    /// Writes a message.
    pub async fn write(&self, claimed: &Claimed, message: &Message) -> Sent {
        self.store.send(under(claimed), message).await.expect("a message is sent")
    }

    /// Writes a message that must be new.
    pub async fn write_new(&self, claimed: &Claimed, message: &Message) -> ReceiptId {
        match self.write(claimed, message).await {
            Sent::New(receipt) => receipt,
            other => panic!("{other:?}"),
        }
    }
}
