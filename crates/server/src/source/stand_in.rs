//! Which source stands in for a name that is none, where nobody may tell which exist.
//!
//! A request to such a name takes the very line of the source that stands in, with its provider,
//! its secrets and its settings, and is refused at the end of it. So whoever has no secret hears
//! and measures what that source would say. Anything made up would differ from it somewhere: an
//! answer that is hashed with a secret, say, would be the same for all names but one.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::{hmac, rand};
use oncebox::receipt::SourceNo;
use oncebox::sealed::SealingKey;

use super::Source;
use crate::config::Keyrings;

/// Decides which source stands in for a name.
#[derive(Debug)]
pub(super) struct StandIns {
    key: hmac::Key,
    /// The names of sources, each with the number it is drawn by.
    drawn: Vec<(u64, String)>,
}

impl StandIns {
    /// Draws among sources that verify what they are sent.
    pub(super) fn new(sources: &HashMap<String, Arc<Source>>, key: hmac::Key) -> Self {
        let verifying = sources.iter().filter(|(_, source)| !source.is_capture);
        let drawn = verifying.map(|(name, _)| (number(&key, "source", name), name.clone()));
        let drawn = drawn.collect();
        Self { key, drawn }
    }

    /// The source for a name. The same name always gets the same one, as a source always has the
    /// same provider; and where sources come or go, few names get another.
    pub(super) fn draw(&self, name: &str) -> Option<&str> {
        let own = number(&self.key, "name", name);
        let drawn = self.drawn.iter().max_by_key(|(number, _)| mixed(number ^ own));
        drawn.map(|(_, name)| name.as_str())
    }
}

/// What sources are drawn under. Whoever knew it could tell which one stands in for a name, and
/// see that a source which exists is another. It is the same in every process and after a restart,
/// or the names that change would be those of no source: made of the master secret, or else of all
/// secrets of the configuration. Where these change, many names get another source.
pub(super) fn key(keyrings: &Keyrings, sealing: Option<&SealingKey>) -> hmac::Key {
    let sealed = sealing.and_then(|key| key.seal(SourceNo(0), "names that are no source").ok());
    let mut secrets: Vec<&str> = keyrings.values().flat_map(secrets).collect();
    // Their order may change.
    secrets.sort_unstable();
    let secret = match sealed {
        Some(sealed) => sealed.mark.to_vec(),
        None if secrets.is_empty() => {
            let mut random = [0; 32];
            // Without a secret there is nothing better that is not public.
            let _ = rand::fill(&mut random);
            random.to_vec()
        }
        None => secrets.join("\0").into_bytes(),
    };
    hmac::Key::new(hmac::HMAC_SHA256, &secret)
}

fn secrets(keyring: &oncebox_verify::Keyring) -> impl Iterator<Item = &str> {
    keyring.secrets().iter().map(oncebox_verify::Secret::expose)
}

fn number(key: &hmac::Key, kind: &str, name: &str) -> u64 {
    let tag = hmac::sign(key, format!("oncebox stand-in {kind}\0{name}").as_bytes());
    tag.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Spreads every bit over all others, as SplitMix64 does.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use oncebox_verify::{Keyring, Secret, catalogue};

    use super::*;

    const SOURCES: [&str; 4] = ["a", "b", "c", "d"];

    fn keyrings(secrets: &[&str]) -> Keyrings {
        let stripe = catalogue::find("stripe").unwrap();
        let keyring = |secret: &&str| Keyring::new(stripe, vec![Secret::new(*secret)]).unwrap();
        let named = SOURCES.iter().map(ToString::to_string);
        named.zip(secrets.iter().map(keyring)).collect::<BTreeMap<_, _>>()
    }

    fn among(sources: &[&str], secrets: &[&str]) -> StandIns {
        let key = key(&keyrings(secrets), None);
        let drawn = sources.iter().map(|name| (number(&key, "source", name), name.to_string()));
        StandIns { drawn: drawn.collect(), key }
    }

    fn drawn(stand_ins: &StandIns) -> Vec<String> {
        let names = (0..400).map(|number| format!("name-{number}"));
        names.map(|name| stand_ins.draw(&name).unwrap().to_owned()).collect()
    }

    #[test]
    fn each_name_has_one_source_and_each_source_its_share() {
        let secrets = ["secret-one", "secret-two"];
        let first = drawn(&among(&SOURCES, &secrets));
        assert_eq!(first, drawn(&among(&["d", "c", "b", "a"], &["secret-two", "secret-one"])));
        for source in SOURCES {
            let share = first.iter().filter(|drawn| *drawn == source).count();
            assert!((60..140).contains(&share), "{source}: {share} of 400");
        }
    }

    #[test]
    fn a_source_that_goes_changes_no_other_name() {
        let secrets = ["secret-one", "secret-two"];
        let (four, three) = (among(&SOURCES, &secrets), among(&SOURCES[..3], &secrets));
        for (before, after) in drawn(&four).iter().zip(drawn(&three)) {
            assert!(*before == after || before == "d");
        }
    }

    /// Whoever has the program and not the secrets cannot tell.
    #[test]
    fn the_secrets_decide() {
        let with = |secret| drawn(&among(&SOURCES, &[secret]));
        let (one, other) = (with("secret-one"), with("secret-two"));
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!((60..140).contains(&same), "{same} of 400");
    }
}
