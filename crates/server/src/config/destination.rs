//! `[destinations.NAME]`: where outbox messages go.

use oncebox::effect::OUTBOX;
use oncebox::retention::Keep;
use oncebox::route::RouteRules;
use schemars::JsonSchema;
use serde::Serialize;

use super::reader::Section;
use super::sending::{Sending, check_url};
use super::source::check_name;
use super::values::Period;
use super::{PERIOD, RetentionConfig, TEXT, keep};

/// One destination: what handlers send messages to, and how those get there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DestinationConfig {
    /// The URL messages are pushed to.
    pub url: String,
    /// How long the payload of a message is kept, where it differs from `[retention]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Period>,
    /// How messages are sent.
    #[serde(flatten)]
    pub sending: Sending,
}

impl DestinationConfig {
    /// What the store and the worker decide by. Messages without a group have nothing to wait for.
    pub fn rules(&self) -> RouteRules {
        self.sending.rules().for_outbox()
    }

    /// How long what was sent is kept.
    pub fn keep(&self, default: &RetentionConfig) -> Keep {
        keep(self.keep.unwrap_or(default.payloads), default.identities)
    }

    pub(super) fn read(name: &str, mut section: Section<'_>) -> Option<Self> {
        check_name(&section, name, "destination");
        let url: Option<String> = section.get("url", TEXT);
        let keep = section.get("keep", PERIOD);
        let sending = Sending::read(name, &mut section);
        match &url {
            Some(url) => check_url(&section, "url", url, "https://mailer.example.com/messages"),
            None if !section.has("url") => section.report(
                "",
                format!("destination `{name}` has no URL"),
                "write url = \"https://…\", where its messages are to be pushed",
            ),
            None => {}
        }
        sending.check(&section);
        section.finish();
        Some(Self { url: url?, keep, sending })
    }
}

/// The name of the source and the route that carry the messages of a destination.
pub fn carrier(destination: &str) -> String {
    format!("{OUTBOX}{destination}")
}
