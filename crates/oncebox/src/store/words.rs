//! The words both databases store for closed sets.

use oncebox_verify::Trust;

use super::Oddity;

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
