//! Where an identity was looked for, in words.

use crate::provider::{Field, Identity};

/// The places that an entry names, for the operator of a source whose requests have none.
pub(super) fn describe(identity: &[Identity]) -> String {
    let name = |field: &Field| match field {
        Field::Json(pointer) => format!("`{pointer}`"),
        Field::Header(name) => format!("header `{name}`"),
        Field::Form(name) => format!("form field `{name}`"),
        Field::Query(name) => format!("query parameter `{name}`"),
        Field::Item(pointer) => format!("`{pointer}` of the item"),
        Field::Outer(pointer) => format!("`{pointer}` around the item"),
        Field::Within(outer, inner) => format!("`{inner}` within `{outer}`"),
        Field::KeyBeside(_) => "a key".to_owned(),
        Field::Xml(path) => format!("element `{path}`"),
    };
    let names: Vec<String> = identity
        .iter()
        .map(|identity| match identity {
            Identity::Field(field) => name(field),
            Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                fields.iter().map(name).collect::<Vec<_>>().join(" with ")
            }
            Identity::Digest => "the digest".to_owned(),
            Identity::Each => "nothing".to_owned(),
        })
        .collect();
    names.join(", ")
}
