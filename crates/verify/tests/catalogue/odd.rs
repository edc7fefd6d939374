//! What every entry says of twins, of types that share a body, and of conflicts.

use jiff::Timestamp;
use oncebox_verify::{OddAct, Provider, SampleEvent, catalogue, events, sample, sign_with};

use crate::keys::Keys;

fn names(is_one: impl Fn(&Provider) -> bool) -> Vec<&'static str> {
    let all = catalogue::ALL.iter().copied();
    all.filter(|provider| is_one(provider)).map(|provider| provider.name.as_ref()).collect()
}

#[test]
fn every_entry_says_why() {
    for provider in catalogue::ALL.iter() {
        let odd = provider.odd();
        let reasons = [Some(odd.twins.why), odd.types_share_body, Some(odd.conflicts.why)];
        for why in reasons.into_iter().flatten() {
            assert!(why.ends_with('.') && why.len() > 20, "{}: {why}", provider.name);
            assert!(!why.contains("  "), "{}: {why}", provider.name);
        }
    }
}

/// Where the proofs cover the body, nothing but the entry can say whether a sender repeats itself.
#[test]
fn every_guarded_entry_that_signs_its_body_has_words_of_its_own() {
    let silent = names(|provider| {
        let is_custom = ["hmac", "token"].contains(&provider.name.as_ref());
        let is_asked = provider.guards_twins() && provider.covers_body() && !is_custom;
        is_asked && provider.odd_words.twins.is_none()
    });
    assert_eq!(silent, [""; 0]);
}

/// A copy that somebody else may have written is never delivered without a person.
#[test]
fn twins_are_delivered_only_where_the_body_is_signed() {
    let delivers = |provider: &Provider| provider.odd().twins.act == OddAct::Deliver;
    assert_eq!(names(|provider| delivers(provider) && !provider.covers_body()), [""; 0]);
    assert_eq!(names(delivers), ["bitbucket", "github", "hookdeck", "sanity", "shopify-events"]);
    // Nobody needs to say it of entries that have no twins.
    assert_eq!(names(|p| p.odd_words.twins.is_some() && !p.guards_twins()), [""; 0]);
}

/// Each of them tells its types apart by the guard, or the second type would be a duplicate.
#[test]
fn entries_whose_types_share_a_body_are_guarded() {
    let shares = |provider: &Provider| provider.odd().types_share_body.is_some();
    assert_eq!(names(|provider| shares(provider) && !provider.guards_twins()), [""; 0]);
    let expected = [
        "bitbucket",
        "cloudevents",
        "commerce-layer",
        "discourse",
        "help-scout",
        "netlify",
        "opennode",
        "sanity",
        "shopify",
        "shopline",
        "woocommerce",
    ];
    assert_eq!(names(shares), expected);
}

#[test]
fn conflicts_are_held_unless_later_content_is_news() {
    let delivers = |provider: &Provider| provider.odd().conflicts.act == OddAct::Deliver;
    let expected = [
        "adyen",
        "braintree",
        "cashfree",
        "figma",
        "lemon-squeezy",
        "mandrill",
        "meta",
        "paystack",
        "plivo",
        "recurly",
        "retell",
        "strava",
        "woocommerce",
        "xero",
    ];
    assert_eq!(names(delivers), expected);
    let odd = catalogue::find("stripe").unwrap().odd();
    assert_eq!((odd.twins.act, odd.conflicts.act), (OddAct::Hold, OddAct::Hold));
    assert!(odd.twins.why.starts_with("There are none"), "{}", odd.twins.why);
}

/// The second type of a body is known by its guard, and never passes for a repeat of the first.
#[test]
fn a_second_type_of_one_body_is_a_twin() {
    let now = Timestamp::from_second(1_760_000_000).unwrap();
    for name in names(|provider| provider.odd().types_share_body.is_some()) {
        let provider = catalogue::find(name).unwrap();
        let keys = Keys::of(provider).unwrap();
        let known = |id: &str, event_type: &str| {
            let event = SampleEvent { id, event_type, at: now, object: None };
            let mut draft = sample(provider, &event);
            // The body is that of the first, where the id is not in it.
            draft.body = sample(provider, &SampleEvent { id: "1", ..event }).body;
            let draft = sign_with(provider, &keys.signing(provider), draft, now).unwrap();
            let request = draft.request();
            let found = events(provider, &request).unwrap().remove(0);
            let guard = found.guard(provider, &request).expect(name);
            (found.event.id.to_string(), found.event.event_type.to_string(), guard)
        };
        let (first, second) = (known("1", "a"), known("2", "b"));
        assert_ne!((&first.0, &first.1), (&second.0, &second.1), "{name}");
        assert_ne!(first.0, second.0, "{name}");
        assert_eq!(first.2, second.2, "{name}");
    }
}
