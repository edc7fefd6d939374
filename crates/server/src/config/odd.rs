//! `twins` and `conflicts` of a source: what happens to arrivals that look odd.

use oncebox::receipt::{OddAct, OddRules};
use oncebox_verify::Provider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Section;

/// What happens to an arrival that looks odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OddChoice {
    /// Its deliveries are held until an operator releases or discards them.
    Hold,
    /// It is delivered, marked as what it is.
    Deliver,
}

impl From<OddChoice> for OddAct {
    fn from(choice: OddChoice) -> Self {
        match choice {
            OddChoice::Hold => Self::Hold,
            OddChoice::Deliver => Self::Deliver,
        }
    }
}

const CHOICES: &str = "\"deliver\" or \"hold\"";

/// Reads what a source says of twins and of conflicts.
pub(super) fn read(section: &mut Section<'_>) -> (Option<OddChoice>, Option<OddChoice>) {
    (section.get("twins", CHOICES), section.get("conflicts", CHOICES))
}

/// Refuses to deliver twins whose body somebody else may have written.
pub(super) fn check(section: &Section<'_>, twins: Option<OddChoice>, entry: &Provider) {
    if twins == Some(OddChoice::Deliver) && !entry.covers_body() {
        let message = format!(
            "`twins = \"deliver\"` needs a signature over the whole body, which `{}` does not have",
            entry.name
        );
        let hint = "remove it: anybody who saw one request could have another body delivered";
        section.report("twins", message, hint);
    }
}

/// The rules of a source: its own word, else that of its provider's entry.
pub(super) fn rules(
    entry: &Provider,
    twins: Option<OddChoice>,
    conflicts: Option<OddChoice>,
) -> OddRules {
    let odd = entry.odd();
    OddRules {
        twins: twins.map_or(odd.twins.act, OddAct::from),
        conflicts: conflicts.map_or(odd.conflicts.act, OddAct::from),
        types_share_body: odd.types_share_body.is_some(),
    }
}
