//! A provider that signs what it is told to.

use std::time::Duration;

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use oncebox_verify::{
    BadSecret, CannotSign, Draft, Keyring, Provider, Rejection, SampleEvent, Secret, Settings,
    Verified, sample, sign_with, verify,
};

/// Makes requests as one provider would send them.
#[derive(Debug)]
pub struct Simulator {
    provider: Provider,
    keyring: Keyring,
}

/// The event to send. What is left out comes from the provider's sample.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The provider's id of the event.
    pub id: String,
    /// Its type.
    pub event_type: Option<String>,
    /// The business thing it is about.
    pub object: Option<String>,
    /// A whole body instead of the sample's; its own id, type and object count then.
    pub body: Option<Vec<u8>>,
    /// How long ago it was signed.
    pub age: Duration,
    /// When it happened; when it was signed, if that is not told.
    pub happened_at: Option<Timestamp>,
}

impl Event {
    /// The provider's sample under an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }
}

/// Why a request cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CannotDraft {
    /// The provider's scheme cannot sign it.
    #[error(transparent)]
    Sign(#[from] CannotSign),
    /// The age reaches back further than time does.
    #[error("the age reaches too far back")]
    Age,
}

impl Simulator {
    /// A provider that signs with `secret`.
    pub fn new(provider: Provider, secret: Secret) -> Result<Self, BadSecret> {
        Self::with_settings(provider, secret, Settings::new())
    }

    /// The same for a provider whose sources say more than a secret.
    pub fn with_settings(
        provider: Provider,
        secret: Secret,
        settings: Settings,
    ) -> Result<Self, BadSecret> {
        let keyring = Keyring::with_settings(&provider, vec![secret], settings)?;
        Ok(Self { provider, keyring })
    }

    /// The provider it plays.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// A signed request for `event`, as it would be sent to `url` at `now`.
    pub fn draft(&self, url: &str, event: &Event, now: Timestamp) -> Result<Draft, CannotDraft> {
        let age = SignedDuration::try_from(event.age).map_err(|_| CannotDraft::Age)?;
        let at = now.checked_sub(age).map_err(|_| CannotDraft::Age)?;
        let mut draft = sample(
            &self.provider,
            &SampleEvent {
                id: &event.id,
                event_type: event.event_type.as_deref().unwrap_or_default(),
                at: event.happened_at.unwrap_or(at),
                object: event.object.as_deref(),
            },
        );
        // Some providers say a part of the event in the query.
        draft.url = match draft.url.split_once('?') {
            Some((_, query)) if url.contains('?') => format!("{url}&{query}"),
            Some((_, query)) => format!("{url}?{query}"),
            None => url.to_owned(),
        };
        if let Some(body) = &event.body {
            draft.body.clone_from(body);
        }
        Ok(sign_with(&self.provider, &self.keyring, draft, at)?)
    }

    /// What a receiver with the same secret must come to if the request arrives at `now`.
    pub fn judge(&self, draft: &Draft, now: Timestamp) -> Result<Verified, Rejection> {
        verify(&self.provider, &self.keyring, &draft.request(), now)
    }

    /// Changes one character so that the request no longer verifies: in the body if the signature
    /// covers it, else in the credential.
    ///
    /// Some signatures cover only a part of the body and a token covers nothing of it, so the
    /// change is tried out before it is believed.
    pub fn tamper(&self, draft: Draft, now: Timestamp) -> Draft {
        let mut tampered = draft;
        for place in (0..tampered.body.len()).rev() {
            let kept = tampered.body[place];
            if !kept.is_ascii_alphanumeric() {
                continue;
            }
            tampered.body[place] = another(kept);
            if self.judge(&tampered, now).is_err() {
                return tampered;
            }
            tampered.body[place] = kept;
        }
        self.tamper_headers(tampered, now)
    }

    fn tamper_headers(&self, draft: Draft, now: Timestamp) -> Draft {
        let names: Vec<_> = draft.headers.keys().cloned().collect();
        for name in names {
            let mut tampered = draft.clone();
            let Some(value) = tampered.headers.get_mut(&name) else { continue };
            let mut bytes = value.as_bytes().to_vec();
            let Some(place) = bytes.iter().rposition(u8::is_ascii_alphanumeric) else { continue };
            bytes[place] = another(bytes[place]);
            let Ok(changed) = HeaderValue::from_bytes(&bytes) else { continue };
            *value = changed;
            if self.judge(&tampered, now).is_err() {
                return tampered;
            }
        }
        self.tamper_query(draft)
    }

    /// Where the credential is a part of the URL.
    fn tamper_query(&self, draft: Draft) -> Draft {
        let Some(start) = draft.url.find('?') else { return draft };
        let mut url = draft.url.clone().into_bytes();
        if let Some(place) = url.iter().rposition(u8::is_ascii_alphanumeric).filter(|p| *p > start)
        {
            url[place] = another(url[place]);
        }
        let url = String::from_utf8(url).unwrap_or_else(|_| draft.url.clone());
        Draft { url, ..draft }
    }
}

/// Another character of the same kind, so that JSON, hex and base64 stay what they are.
fn another(character: u8) -> u8 {
    match character {
        b'0' => b'1',
        b'1'..=b'9' => character - 1,
        b'a' | b'A' => character + 1,
        _ => character - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncebox_verify::{MadeUp, catalogue, made_up};

    fn now() -> Timestamp {
        Timestamp::from_second(1_760_000_000).unwrap()
    }

    /// Every provider that can be played, and a simulator of it.
    fn simulators() -> impl Iterator<Item = (&'static Provider, Simulator)> {
        catalogue::ALL.iter().filter_map(|provider| {
            let MadeUp { secret, settings } = made_up(provider, &[7; 32])?;
            let simulator = Simulator::with_settings((*provider).clone(), secret, settings);
            Some((*provider, simulator.unwrap_or_else(|bad| panic!("{}: {bad}", provider.name))))
        })
    }

    #[test]
    fn every_provider_is_played_and_every_tampering_is_found() {
        for (provider, simulator) in simulators() {
            let url = "https://example.com/in/a";
            let draft = simulator.draft(url, &Event::new("evt_1"), now()).unwrap();
            assert!(simulator.judge(&draft, now()).is_ok(), "{}", provider.name);
            let tampered = simulator.tamper(draft, now());
            assert!(simulator.judge(&tampered, now()).is_err(), "{}", provider.name);
        }
    }

    #[test]
    fn an_event_says_the_same_whenever_it_is_sent() {
        let stripe = catalogue::find("stripe").unwrap().clone();
        let simulator = Simulator::new(stripe, Secret::new("whsec_test")).unwrap();
        let later = now() + SignedDuration::from_secs(1);
        let event = Event { happened_at: Some(now()), ..Event::new("evt_1") };
        let first = simulator.draft("http://localhost/in/stripe", &event, now()).unwrap();
        let again = simulator.draft("http://localhost/in/stripe", &event, later).unwrap();
        assert_eq!(first.body, again.body);
        assert!(simulator.judge(&again, later).is_ok());
    }

    #[test]
    fn an_aged_event_is_too_old_only_where_the_time_is_signed() {
        for (provider, simulator) in simulators() {
            let event = Event { age: Duration::from_secs(86_400 * 400), ..Event::new("evt_1") };
            let draft = simulator.draft("https://example.com/in/a", &event, now()).unwrap();
            let judged = simulator.judge(&draft, now());
            // The first scheme is the one that is played.
            let signs_time = provider.schemes[0].signs_timestamp();
            assert_eq!(judged.is_err(), signs_time, "{}", provider.name);
        }
    }
}
