//! Every provider of the catalogue, played to one server: kept, known again, and refused once
//! changed.

use oncebox::clock::Clock as _;
use oncebox::store::ReceiptFilter;
use oncebox_drill::{Event, Simulator};
use oncebox_verify::{Draft, Identity, MadeUp, Provider, catalogue, made_up};

use crate::bed::{Bed, wire};

pub(crate) const URL: &str = "https://hooks.example.com";

/// A provider, and somebody who signs for it.
pub(crate) struct Played {
    pub(crate) provider: &'static Provider,
    pub(crate) simulator: Simulator,
    /// Its source, as it is configured.
    pub(crate) source: String,
}

/// Everybody who can be played.
pub(crate) fn everybody() -> Vec<Played> {
    let playable = catalogue::ALL.iter().filter_map(|provider| {
        let MadeUp { secret, settings } = made_up(provider, &[9; 32])?;
        let mut source = toml::Table::new();
        source.insert("provider".into(), provider.name.as_ref().into());
        source.insert("secrets".into(), vec![secret.expose().to_owned()].into());
        for (key, value) in &settings {
            source.insert(key.clone(), value.as_str().into());
        }
        if provider.signs_url() {
            source.insert("public_url".into(), format!("{URL}/in/{}", provider.name).into());
        }
        let simulator = Simulator::with_settings((*provider).clone(), secret, settings).unwrap();
        let source = format!("[sources.{}]\n{source}", provider.name);
        Some(Played { provider, simulator, source })
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
    let everybody = everybody();
    assert!(everybody.len() >= 250, "{} can be played", everybody.len());
    let sources: Vec<&str> = everybody.iter().map(|played| played.source.as_str()).collect();
    let store = format!("[store]\nmaster_secret = \"{}\"\n", "m".repeat(40));
    let limits = "[limits]\nfailed_signatures_per_minute = 10000\n";
    let bed = Bed::configured(&format!("{store}{limits}{}", sources.join("\n"))).await;
    let now = bed.clock.now();
    for played in &everybody {
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
