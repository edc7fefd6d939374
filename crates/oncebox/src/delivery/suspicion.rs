//! After a lost lease: was it this delivery that killed its worker?
//!
//! A worker that dies loses every lease it has, and one of the deliveries may be the reason. All
//! are suspected from then on, and claimed apart from those that are not. They still come in
//! groups, so that a mass crash does not need a claim for each: a group that is lost again is
//! charged nothing, and its members come back in smaller groups, in the end alone. What is lost
//! alone has used up an attempt. So an event that kills workers ends as dead, and never charges
//! its neighbours more than once.

use crate::limits::SUSPECTS_SHARE;

/// How much a delivery is suspected of killing its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspicion(pub(crate) u8);

impl Suspicion {
    /// It is claimed alone.
    pub(crate) const ALONE: Self = Self(3);

    /// How many of the same suspicion one claim takes that asks for `most`.
    pub(crate) fn group(self, most: usize) -> usize {
        match self.0 {
            0 | 1 => most,
            2 => most.div_ceil(SUSPECTS_SHARE).max(1),
            _ => 1.min(most),
        }
    }

    /// The suspicion after one more lease was lost, and whether that used up an attempt.
    pub(crate) fn after_loss(self) -> (Self, bool) {
        match self.0 {
            0 => (Self(1), true),
            1 | 2 => (Self(self.0 + 1), false),
            _ => (Self::ALONE, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_shrink_and_only_what_is_alone_is_charged() {
        let mut suspicion = Suspicion::default();
        let mut story = Vec::new();
        for _ in 0..5 {
            let group = suspicion.group(256);
            let (next, charged) = suspicion.after_loss();
            story.push((group, charged));
            suspicion = next;
        }
        assert_eq!(story, [(256, true), (256, false), (32, false), (1, true), (1, true)]);
        assert_eq!((Suspicion(2).group(5), Suspicion::ALONE.group(0)), (1, 0));
        assert_eq!(Suspicion(2).group(10), 2, "never one by one before it must be");
    }
}
