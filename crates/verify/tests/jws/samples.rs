//! Samples of every entry that sends tokens.

use jiff::Timestamp;
use oncebox_verify::{
    Keyring, SampleEvent, Secret, Settings, catalogue, generate_pair, identify, sample, sign_with,
    verify_with,
};

use crate::bed::{NOW, SHARED};

/// What `oncebox send` makes is what the provider would: it verifies, and has the id it was given.
#[test]
fn what_we_sign_for_an_entry_verifies() {
    let at = Timestamp::from_second(NOW).unwrap();
    let mut signed = 0;
    for provider in catalogue::ALL.iter() {
        let [oncebox_verify::Scheme::Jws(jws)] = provider.schemes.as_ref() else { continue };
        let has_hmac = jws.algorithms.iter().any(|algorithm| algorithm.is_hmac());
        let (private, public) = match has_hmac {
            true => (Secret::new(SHARED), Secret::new(SHARED)),
            false => {
                let pair = generate_pair(provider).unwrap_or_else(|| panic!("{}", provider.name));
                (pair.private, Secret::new(pair.public))
            }
        };
        let said: Settings = provider
            .settings
            .iter()
            .filter(|setting| setting.needed)
            .map(|setting| {
                (setting.key.to_string(), format!("https://example.com/{}", setting.key))
            })
            .collect();
        let signs = Keyring::with_settings(provider, vec![private], said.clone()).unwrap();
        let event = SampleEvent { id: "evt_1", event_type: "", at, object: None };
        let draft = sign_with(provider, &signs, sample(provider, &event), at);
        let draft = draft.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
        let checks = Keyring::with_settings(provider, vec![public], said).unwrap();
        let request = draft.request();
        let verdict = verify_with(provider, &checks, None, &request, at);
        assert!(verdict.is_ok(), "{}: {verdict:?}", provider.name);
        let event = identify(provider, &request);
        assert!(event.is_ok(), "{}: {event:?}", provider.name);
        signed += 1;
    }
    assert!(signed >= 14, "{signed}");
}
