//! What forgeries are made from is genuine.

use oncebox_verify::{Field, SampleEvent, TypeRule, events, sample, sign_with, verify};

use crate::case::{ID, cases, none, now, played, signed};

#[test]
fn every_case_is_genuine() {
    for case in &cases() {
        let verified = verify(case, &case.checks, &signed(case).request(), now());
        let decided = verified.map(|verified| (verified.secret, verified.scheme));
        assert_eq!(decided, Ok((0, case.scheme.name())), "{}", case.name);
    }
}

#[test]
fn a_sample_may_have_any_type() {
    let mut wrong = Vec::new();
    for case in &played() {
        // Where nothing names the type, or only with a fixed beginning, there is no choice; nor
        // where it is the key under which the object is.
        let is_key = |rule: &TypeRule| matches!(rule.first, Field::KeyBeside(_));
        let is_free = |rule: &TypeRule| rule.text.is_empty() && !is_key(rule);
        if !case.event_type.iter().any(is_free) {
            continue;
        }
        let event = SampleEvent { id: ID, event_type: "some.thing", at: now(), object: None };
        let draft = sample(case, &event);
        // SNS signs no types but its own; a token that is the body must be signed to be read.
        let draft = sign_with(case, &case.signs, draft.clone(), now()).unwrap_or(draft);
        let request = draft.request();
        let read = events(case, &request).unwrap();
        if read[0].event.event_type != "some.thing" {
            wrong.push(format!("{}: {}", case.name, read[0].event.event_type));
        }
    }
    none(&wrong);
}
