//! Every provider of the catalogue, played to one server: kept, known again, and refused once
//! changed.

use oncebox::clock::Clock as _;
use oncebox::store::ReceiptFilter;
use oncebox_drill::{Event, Simulator};
use oncebox_verify::{Draft, Identity, MadeUp, Provider, Settings, catalogue, made_up};

use crate::bed::{Bed, wire};

pub(crate) const URL: &str = "https://hooks.example.com";

/// A provider, and somebody who signs for it.
pub(crate) struct Played {
    pub(crate) provider: &'static Provider,
    pub(crate) simulator: Simulator,
    /// Its source, as it is configured.
    pub(crate) source: String,
    /// What that says beside its secret: everything that the entry knows, but for keys.
    pub(crate) settings: Settings,
}

/// What a source may say more of a provider, and the sample of it fits.
fn optional(provider: &Provider) -> Settings {
    let said = provider.settings.iter().filter_map(|setting| {
        let text = match setting.key.as_ref() {
            _ if setting.needed || setting.header.is_some() => return None,
            // A key, but for Braintree's, which names one.
            "public_key" | "certificates" if provider.name != "braintree" => return None,
            "jwk" | "jwks_url" | "signature_version" | "verify" | "issuer" => return None,
            "event_id" => "/id".to_owned(),
            "event_type" => "/type".to_owned(),
            "object_id" => "/data/object".to_owned(),
            "version" => "/data/version".to_owned(),
            "tolerance" => "600".to_owned(),
            "covered" => "@method @Target-URI".to_owned(),
            "base_url" => URL.to_owned(),
            key => format!("sample_{key}_of_ours"),
        };
        Some((setting.key.to_string(), text))
    });
    said.collect()
}

/// Everybody who can be played.
pub(crate) fn played_providers() -> Vec<Played> {
    let playable = catalogue::ALL.iter().filter_map(|provider| {
        let MadeUp { secret, mut settings } = made_up(provider, &[9; 32])?;
        settings.extend(optional(provider));
        let mut source = toml::Table::new();
        source.insert("provider".into(), provider.name.as_ref().into());
        source.insert("secrets".into(), vec![secret.expose().to_owned()].into());
        for (key, value) in &settings {
            source.insert(key.clone(), value.as_str().into());
        }
        if provider.signs_url() {
            source.insert("public_url".into(), format!("{URL}/in/{}", provider.name).into());
        }
        let simulator = Simulator::with_settings((*provider).clone(), secret, settings.clone());
        let simulator = simulator.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
        let source = format!("[sources.{}]\n{source}", provider.name);
        Some(Played { provider, simulator, source, settings })
    });
    playable.collect()
}

impl Played {
    pub(crate) fn url(&self) -> String {
        format!("{URL}/in/{}", self.provider.name)
    }

    /// Whether a repeat can be told from a new event.
    pub(crate) fn is_known_again(&self) -> bool {
        self.provider.identity.first() != Some(&Identity::Each)
    }
}

#[tokio::test]
async fn every_provider_is_kept_once_and_refused_once_changed() {
    let all = played_providers();
    assert!(all.len() >= 250, "{} can be played", all.len());
    let sources: Vec<&str> = all.iter().map(|played| played.source.as_str()).collect();
    let store = format!("[store]\nmaster_secret = \"{}\"\n", "m".repeat(40));
    let limits = "[limits]\nfailed_signatures_per_minute = 10000\n";
    let bed = Bed::configured(&format!("{store}{limits}{}", sources.join("\n"))).await;
    let now = bed.clock.now();
    for played in &all {
        let name = &played.provider.name;
        let draft = played.simulator.draft(&played.url(), &Event::new("evt_0001"), now).unwrap();
        let post = async |draft: &Draft| {
            let path = draft.url.strip_prefix(URL).unwrap();
            bed.raw(&wire(path, draft)).await.status
        };
        let tampered = played.simulator.tamper(draft.clone(), now);
        assert_eq!(post(&tampered).await, 401, "{name}: tampered");
        assert!((200..300).contains(&post(&draft).await), "{name}: kept");
        assert!((200..300).contains(&post(&draft).await), "{name}: sent again");
        let filter =
            ReceiptFilter { source: Some(name.to_string()), limit: 10, ..ReceiptFilter::default() };
        let kept = bed.server.inbox.store.receipts(&filter).await.unwrap();
        let expected = if played.is_known_again() { 1 } else { 2 };
        assert_eq!(kept.len(), expected, "{name}: receipts");
    }
}
