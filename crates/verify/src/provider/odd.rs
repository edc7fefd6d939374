//! What an entry says of arrivals that are authentic and look odd.

use super::{Guard, Identity, Provider, Scheme, Text};

/// What happens to an odd arrival. It is a receipt of its own in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OddAct {
    /// Its deliveries are held until an operator releases or discards them.
    #[default]
    Hold,
    /// It is delivered, marked as what it is.
    Deliver,
}

impl OddAct {
    /// Its word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            OddAct::Hold => "hold",
            OddAct::Deliver => "deliver",
        }
    }
}

/// A rule for one kind of odd arrival, and the reason for it in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddRule {
    /// What happens.
    pub act: OddAct,
    /// Why.
    pub why: Text,
}

/// What an entry says itself; the rest follows from its proofs and identities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OddWords {
    /// Whether an identical body under a new unsigned id can be genuine.
    pub twins: Option<OddRule>,
    /// Why one body comes under several types, where it does.
    pub types_share_body: Option<Text>,
    /// Why new content under a known identity is news, where it is.
    pub conflicts_are_news: Option<Text>,
}

/// The rules of an entry for odd arrivals.
///
/// ```
/// use oncebox_verify::{OddAct, catalogue};
///
/// let shopify = catalogue::find("shopify").unwrap().odd();
/// assert_eq!(shopify.twins.act, OddAct::Hold);
/// assert!(shopify.types_share_body.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// What happens to signed content that was seen before, when it comes under a new unsigned id.
    pub twins: OddRule,
    /// Why one body comes under several types; none where it does not. The first of each type is
    /// delivered and marked, whatever `twins` says.
    pub types_share_body: Option<Text>,
    /// What happens to new signed content under a known identity.
    pub conflicts: OddRule,
}

impl Provider {
    /// What happens to arrivals that look odd, and why.
    pub fn odd(&self) -> Odd {
        let twins = self.odd_words.twins.clone().unwrap_or_else(|| held(self.why_twins_held()));
        let conflicts = match &self.odd_words.conflicts_are_news {
            Some(why) => OddRule { act: OddAct::Deliver, why: why.clone() },
            None => held(self.why_conflicts_held()),
        };
        Odd { twins, types_share_body: self.odd_words.types_share_body.clone(), conflicts }
    }

    /// Whether every way to prove a request covers the whole body. Only then can an operator ask
    /// for twins to be delivered: otherwise somebody else may have written what is delivered.
    pub fn covers_body(&self) -> bool {
        !self.schemes.is_empty() && self.schemes.iter().all(Scheme::covers_body)
    }

    fn why_twins_held(&self) -> &'static str {
        let only_tokens = || self.schemes.iter().all(Scheme::covers_nothing);
        if self.guards_twins() {
            return match self.covers_body() {
                true => {
                    "The bodies of this sender are not known, so an identical one may be a copy."
                }
                false if only_tokens() => {
                    "The credential does not cover the body, so a copy under another id proves nothing."
                }
                false => {
                    "The signature does not cover every byte of the body, so a copy under another id \
                     proves nothing."
                }
            };
        }
        if self.identity.contains(&Identity::Each) {
            return "There are none: every request is an event of its own.";
        }
        if self.guard == Guard::Nothing {
            return "There are none: two events may read the same, so no content is compared.";
        }
        if self.has_unsigned_identity() {
            return "There are none: a time is signed with the body, so a copy is soon too old.";
        }
        match self.identity.first() {
            Some(Identity::Digest) => {
                "There are none: the identity is the digest of the body, so a copy is a duplicate."
            }
            _ => "There are none: the identity is signed, so a copy is a duplicate.",
        }
    }

    fn why_conflicts_held(&self) -> &'static str {
        let is_computed = |identity: &Identity| match identity {
            Identity::Digest | Identity::JoinedDigest(_) | Identity::Each => true,
            Identity::Field(_) | Identity::Joined(_) => false,
        };
        match self.identity.iter().all(is_computed) {
            true => "There are none: other content has another identity.",
            false => "An identity stands for one event, so other content under it is not expected.",
        }
    }
}

fn held(why: &'static str) -> OddRule {
    OddRule { act: OddAct::Hold, why: Text::Borrowed(why) }
}
