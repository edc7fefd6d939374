//! Which of several ways to prove a request a source accepts.

use super::{List, Provider};

/// The setting by which a source chooses.
pub(crate) const SCHEME: &str = "scheme";

/// The word that accepts every way; the strongest proof that is there decides.
pub(crate) const ANY: &str = "any";

/// The ways to prove a request that a source may choose from, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The ways, the strongest first.
    pub ways: List<Way>,
    /// What holds where the source does not choose.
    pub unsaid: Unsaid,
}

/// One way to prove a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its word in the configuration.
    pub name: &'static str,
    /// The schemes that belong to it, by their place in [`Provider::schemes`].
    pub schemes: List<usize>,
}

/// What holds where a source does not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// The strongest way is required: the provider always sends it.
    Strongest,
    /// Every way counts until a request was proved by the strongest one, which is required from
    /// then on: an operator chooses at the provider.
    Learned,
}

impl Choice {
    /// The word of the strongest way.
    pub fn strongest(&self) -> &'static str {
        self.ways.first().map_or(ANY, |way| way.name)
    }

    /// Every word that a source may say.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.ways.iter().map(|way| way.name).chain([ANY])
    }

    /// The word of the way that a scheme belongs to.
    pub(crate) fn way_of(&self, scheme: usize) -> Option<&'static str> {
        self.ways.iter().find(|way| way.schemes.contains(&scheme)).map(|way| way.name)
    }

    /// The schemes that a source accepts by its word, in the order they are tried. None for a word
    /// that is not known.
    fn accepted(&self, word: Option<&str>) -> Option<Vec<usize>> {
        let all = || self.ways.iter().flat_map(|way| way.schemes.iter().copied()).collect();
        match (word, self.unsaid) {
            (Some(ANY), _) | (None, Unsaid::Learned) => Some(all()),
            (None, Unsaid::Strongest) => self.accepted(Some(self.strongest())),
            (Some(word), _) => {
                let way = self.ways.iter().find(|way| way.name == word)?;
                Some(way.schemes.to_vec())
            }
        }
    }
}

impl Provider {
    /// The schemes that a source accepts, in the order they are tried. None for a word that is not
    /// known.
    pub(crate) fn accepted_schemes(&self, word: Option<&str>) -> Option<Vec<usize>> {
        match self.choice {
            Some(choice) => choice.accepted(word),
            None => Some((0..self.schemes.len()).collect()),
        }
    }
}
