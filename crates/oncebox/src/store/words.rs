//! The words both databases store for closed sets.

use oncebox_verify::Trust;

use super::Oddity;
use crate::route::OnDead;

pub(super) fn of_trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Signed => "signed",
        Trust::Transport => "transport",
        Trust::Digest => "digest",
    }
}

pub(super) fn trust(word: &str) -> Option<Trust> {
    [Trust::Signed, Trust::Transport, Trust::Digest]
        .into_iter()
        .find(|trust| of_trust(*trust) == word)
}

pub(super) fn oddity(word: &str) -> Option<Oddity> {
    [Oddity::Conflict, Oddity::Twin].into_iter().find(|oddity| oddity.as_str() == word)
}

pub(super) fn of_on_dead(on_dead: OnDead) -> &'static str {
    match on_dead {
        OnDead::Hold => "hold",
        OnDead::Continue => "continue",
    }
}

pub(super) fn on_dead(word: &str) -> Option<OnDead> {
    [OnDead::Hold, OnDead::Continue].into_iter().find(|on_dead| of_on_dead(*on_dead) == word)
}
