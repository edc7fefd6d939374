//! The words both databases store for closed sets.

use oncebox_verify::Trust;

use crate::limits;
use crate::receipt::{Mark, Oddity, ReceiptId};
use crate::route::OnDead;

/// Tells operators that a route with open deliveries has begun to guard objects.
pub const FILLING: &str = "open deliveries are being given their objects; nothing of the route is \
                           claimed until that is done";

pub(super) fn of_trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Signed => "signed",
        Trust::Transport => "transport",
        Trust::Digest => "digest",
        Trust::Unverified => "unverified",
    }
}

pub(super) fn trust(word: &str) -> Option<Trust> {
    [Trust::Signed, Trust::Transport, Trust::Digest, Trust::Unverified]
        .into_iter()
        .find(|trust| of_trust(*trust) == word)
}

/// The mark that two columns of a receipt stand for; no mark if the word is not known.
pub(super) fn mark(oddity: Option<&str>, first: Option<ReceiptId>) -> Option<Mark> {
    let oddity = Oddity::of(oddity?)?;
    Some(Mark { oddity, first })
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

/// A detail or summary as it is kept: not too long, and without NUL, which PostgreSQL refuses.
pub(super) fn short(text: &str) -> String {
    let mut end = text.len().min(limits::DETAIL_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_cut_between_characters() {
        assert_eq!(short("ti\0ny"), "tiny");
        let long = "é".repeat(limits::DETAIL_BYTES);
        assert_eq!(short(&long).len(), limits::DETAIL_BYTES);
        assert_eq!(short(&format!("a{long}")).len(), limits::DETAIL_BYTES - 1);
    }
}
