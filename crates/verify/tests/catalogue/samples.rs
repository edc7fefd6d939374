//! Samples as each provider would send them: signed, they verify and are what was asked for.

use jiff::Timestamp;
use oncebox_verify::{
    Draft, Field, Identity, Provider, SampleEvent, Trust, Version, catalogue, events, sample,
    sign_with, verify,
};

use crate::keys::Keys;

const ID: &str = "evt_0001";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

/// Every entry that somebody can sign for.
fn entries() -> impl Iterator<Item = (&'static Provider, Keys)> {
    catalogue::ALL.iter().filter_map(|provider| Some((*provider, Keys::of(provider)?)))
}

fn draft(provider: &Provider) -> Draft {
    sample(provider, &SampleEvent { id: ID, event_type: "", at: now(), object: None })
}

fn signed(provider: &Provider, keys: &Keys) -> Draft {
    sign_with(provider, &keys.signing(provider), draft(provider), now())
        .unwrap_or_else(|error| panic!("{}: {error}", provider.name))
}

#[test]
fn nearly_every_entry_can_be_played() {
    let played = entries().count();
    assert!(catalogue::ALL.len() - played <= 3, "{played} of {}", catalogue::ALL.len());
}

#[test]
fn a_signed_sample_is_what_was_asked_for() {
    let mut wrong = Vec::new();
    for (provider, keys) in entries() {
        let name = &provider.name;
        let draft = signed(provider, &keys);
        let verified = verify(provider, &keys.checking(provider), &draft.request(), now());
        if let Err(rejection) = verified {
            wrong.push(format!("{name}: {rejection}"));
            continue;
        }
        let request = draft.request();
        let found = match events(provider, &request) {
            Ok(found) => found,
            Err(malformed) => {
                wrong.push(format!("{name}: {malformed}"));
                continue;
            }
        };
        let [found] = &found[..] else {
            wrong.push(format!("{name}: {} events", found.len()));
            continue;
        };
        let event = &found.event;
        if event.event_type != provider.sample_type {
            wrong.push(format!("{name}: type {} not {}", event.event_type, provider.sample_type));
        }
        // The id of Dropbox Sign is its signature, which nobody can choose.
        let chosen = event.trust != Trust::Digest && name != "dropbox-sign";
        if chosen && !event.id.contains(ID) {
            wrong.push(format!("{name}: id {}", event.id));
        }
        if !provider.object.is_empty() && event.object.is_none() {
            wrong.push(format!("{name}: no object"));
        }
        // An ordering value that is also the identity is the text that was asked for.
        let is_id = |version: &Version| identity_fields(provider).contains(&&version.field);
        if provider.version.iter().any(|v| !is_id(v)) && event.version.is_none() {
            wrong.push(format!("{name}: no version"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn identity_fields(provider: &Provider) -> Vec<&Field> {
    let fields = provider.identity.iter().map(|identity| match identity {
        Identity::Field(field) => std::slice::from_ref(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields,
        _ => &[],
    });
    fields.flatten().collect()
}

#[test]
fn another_key_is_refused_until_it_is_configured() {
    for (provider, keys) in entries() {
        let foreign = sign_with(provider, &keys.foreign(provider), draft(provider), now());
        let foreign = foreign.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
        let verdict = verify(provider, &keys.checking(provider), &foreign.request(), now());
        assert!(verdict.is_err(), "{}: another key", provider.name);
        let verdict = verify(provider, &keys.both(provider), &foreign.request(), now());
        let secret = verdict.map(|verified| verified.secret);
        assert_eq!(secret, Ok(1), "{}: the second key counts too", provider.name);
    }
}
