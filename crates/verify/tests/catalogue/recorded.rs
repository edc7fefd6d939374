//! Every vector behaves as it says, and every entry has one.

use std::collections::BTreeSet;

use oncebox_verify::catalogue;

use crate::vector::{Vector, vectors};

/// Where our word for the reason is another than the vector's.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("gitlab-03", "wrong_token"),
    // A hex digest where base64 belongs has the wrong length; we say so.
    ("shopify-02", "malformed_signature"),
];

#[test]
fn every_vector_behaves_as_it_says() {
    let mut failures = Vec::new();
    let vectors = vectors();
    let count = vectors.len();
    for vector in vectors {
        let other_word = OTHER_WORDS.iter().find(|(id, _)| *id == vector.id).map(|(_, code)| *code);
        let expected = match vector.expect.as_str() {
            "valid" => "valid",
            _ => other_word.or(vector.reason.as_deref()).expect("an invalid vector has a reason"),
        };
        let got = vector.verdict();
        println!("{} {}: {got}", vector.id, vector.title);
        if got != expected {
            let Vector { id, title, .. } = vector;
            failures.push(format!("{id} ({title}): expected {expected}, got {got}"));
        }
    }
    assert!(count >= 236, "vectors are missing: {count}");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_entry_has_a_vector() {
    let vectors = vectors();
    let covered: BTreeSet<&str> = vectors
        .iter()
        .filter(|vector| vector.kind == "signature" && vector.expect == "valid")
        .map(|vector| vector.provider.as_str())
        .collect();
    // The generic ones are made of settings; their defaults are those of generic-ts-body and the
    // tokens of others.
    let generic = ["hmac", "token"];
    let bare: Vec<&str> = catalogue::ALL
        .iter()
        .map(|provider| provider.name.as_ref())
        .filter(|name| !covered.contains(name) && !generic.contains(name))
        .collect();
    assert!(bare.is_empty(), "without a vector: {}", bare.join(", "));
}

#[test]
fn ids_of_vectors_are_unique() {
    let mut seen = BTreeSet::new();
    for vector in vectors() {
        assert!(seen.insert(vector.id.clone()), "{} is there twice", vector.id);
    }
}
