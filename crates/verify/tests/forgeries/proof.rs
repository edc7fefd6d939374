//! Where the proof of a request is, and other proofs in its place.

use http::{HeaderName, HeaderValue};
use oncebox_verify::{Draft, Place};

use crate::case::{self, Case, signed};

pub(crate) fn with_header(draft: &Draft, name: &str, value: &str) -> Draft {
    let mut draft = draft.clone();
    let name: HeaderName = name.parse().unwrap();
    draft.headers.insert(name, HeaderValue::from_str(value).unwrap());
    draft
}

/// The same draft with other proofs in place of the right one.
pub(crate) fn with_proofs(case: &Case, forge: impl Fn(&str) -> Vec<String>) -> Vec<Draft> {
    let draft = signed(case);
    let Some(name) = proof_header(case) else { return with_proofs_elsewhere(case, &draft, forge) };
    let right = draft.headers[&name].to_str().unwrap().to_owned();
    forge(&right).iter().map(|forged| with_header(&draft, &name, forged)).collect()
}

/// A proof in the body or the query: the longest text that signing brought in.
fn with_proofs_elsewhere(
    case: &Case,
    draft: &Draft,
    forge: impl Fn(&str) -> Vec<String>,
) -> Vec<Draft> {
    let text = |draft: &Draft| format!("{} {}", draft.url, String::from_utf8_lossy(&draft.body));
    let (before, after) = (text(&case::draft(case)), text(draft));
    let inside = |c: char| c.is_ascii_alphanumeric() || "+/=_-.".contains(c);
    let new = after.split(|c| !inside(c)).filter(|run| !before.contains(run));
    let right = new.max_by_key(|run| run.len()).unwrap();
    let with = |forged: &String| {
        let (url, body) = (draft.url.replace(right, forged), text(draft).replace(right, forged));
        let body = body.as_bytes()[url.len() + 1..].to_vec();
        Draft { url, body, ..draft.clone() }
    };
    forge(right).iter().map(with).collect()
}

/// The header of the proof the sample carries; none where it is elsewhere.
pub(crate) fn proof_header(case: &Case) -> Option<String> {
    match case.scheme.signature().map(|signature| &signature.place) {
        Some(Place::Numbered(before)) => Some(format!("{before}1").to_lowercase()),
        _ => case.scheme.header().map(str::to_lowercase),
    }
}
