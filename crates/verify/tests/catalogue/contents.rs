//! What tells a repeat from a conflict, and a capture from a new event, for every entry.

use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    Draft, Guard, Provider, SampleEvent, Trust, catalogue, events, sample, sign_with,
};
use sha2::{Digest as _, Sha256};

use crate::keys::Keys;

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

/// Those whose signed time is that of the event. Attempts keep it, and only our signer does not.
const TIMED_ONCE: &[&str] = &["aws-ses", "dropbox-sign", "infisical"];

/// What the only event of a request is known by.
struct Known {
    id: String,
    trust: Trust,
    content: [u8; 32],
    guard: Option<[u8; 32]>,
}

fn known(provider: &Provider, draft: &Draft) -> Known {
    let request = draft.request();
    let found = events(provider, &request).unwrap_or_else(|m| panic!("{}: {m}", provider.name));
    let [found] = &found[..] else { panic!("{}: {} events", provider.name, found.len()) };
    Known {
        id: found.event.id.to_string(),
        trust: found.event.trust,
        content: found.content(provider, &request),
        guard: found.guard(provider, &request),
    }
}

/// Attempts of one event have one content and two events have two.
#[test]
fn attempts_of_one_event_have_one_content() {
    let mut wrong = Vec::new();
    for provider in catalogue::ALL.iter() {
        let Some(keys) = Keys::of(provider) else { continue };
        let make = |id: &str, secs: i64| {
            let event = SampleEvent { id, event_type: "", at: now(), object: None };
            let at = now() + SignedDuration::from_secs(secs);
            sign_with(provider, &keys.signing(provider), sample(provider, &event), at).unwrap()
        };
        let (first, again, other) = (make("1", 0), make("1", 9), make("2", 0));
        let name = &provider.name;
        let Known { id, trust, content, guard } = known(provider, &first);
        let once = TIMED_ONCE.contains(&name.as_ref());
        if content != known(provider, &again).content && !once {
            wrong.push(format!("{name}: another attempt has another content"));
        }
        // The id of Dropbox Sign is its signature, so its samples are all the same.
        let is_same = first.body == other.body;
        let other = known(provider, &other);
        if !is_same && (&id, content) == (&other.id, other.content) {
            wrong.push(format!("{name}: another event cannot be told from it"));
        }
        let raw: [u8; 32] = Sha256::digest(&first.body).into();
        let is_whole = provider.batches.is_empty() && provider.content_is_body();
        if is_whole && content != raw {
            wrong.push(format!("{name}: the content is said to be the body and is not"));
        }
        let needs_guard = trust != Trust::Signed || provider.guard == Guard::Signed;
        if (provider.guards_twins() && needs_guard) != guard.is_some() {
            wrong.push(format!("{name}: a guard that is not wanted, or none"));
        }
        if provider.guard == Guard::Content && guard.is_some_and(|guard| guard != content) {
            wrong.push(format!("{name}: the guard is not the content"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
