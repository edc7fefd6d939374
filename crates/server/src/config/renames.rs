//! Names that were others before.

use std::collections::BTreeMap;

use super::Problem;
use super::reader::Findings;

/// A name that still exists, or that two others claim, cannot have been renamed.
pub(super) fn check(
    findings: &Findings<'_>,
    what: &str,
    names: &BTreeMap<&String, &Option<String>>,
) {
    let mut claimed: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, old) in names {
        let Some(old) = old.as_deref() else { continue };
        let path = format!("{what}.{name}.renamed_from");
        if names.keys().any(|name| name.as_str() == old) {
            let message = format!("`{name}` was renamed from `{old}`, which still exists");
            findings.report(&path, Problem::error(message, "remove one of the two"));
        } else if let Some(other) = claimed.insert(old, name) {
            let message = format!("`{name}` and `{other}` were both renamed from `{old}`");
            findings.report(&path, Problem::error(message, "only one can go on as it"));
        }
    }
}
