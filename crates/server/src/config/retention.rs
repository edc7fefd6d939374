//! `[retention]`: how long what was received and done is kept.

use std::collections::HashMap;

use jiff::SignedDuration;
use oncebox::limits;
use oncebox::retention::Keep;
use schemars::JsonSchema;
use serde::Serialize;

use super::reader::{Findings, Section};
use super::values::Period;
use super::{Config, PERIOD, Problem, carrier};

/// `[retention]`: how long what was received and done is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct RetentionConfig {
    /// Headers and bodies.
    pub payloads: Period,
    /// The memory of identities, by which a late repeat is recognised.
    pub identities: Period,
    /// The memory of effects, by which they happen once. Never shorter than that of identities.
    pub effects: Period,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            payloads: Period::days(30),
            identities: Period::days(35),
            effects: Period::days(u64::from(limits::EFFECT_DAYS.unsigned_abs())),
        }
    }
}

impl RetentionConfig {
    /// The rule for sources without one of their own.
    pub fn keep(&self) -> Keep {
        keep(self.payloads, self.identities)
    }

    /// How long effects are remembered.
    pub fn effects(&self) -> SignedDuration {
        signed(self.effects)
    }

    pub(super) fn read(mut section: Section<'_>) -> Self {
        let default = Self::default();
        let retention = Self {
            payloads: section.or("payloads", PERIOD, default.payloads),
            identities: section.or("identities", PERIOD, default.identities),
            effects: section.or("effects", PERIOD, default.effects),
        };
        if retention.identities < retention.payloads {
            let key = if section.has("identities") { "identities" } else { "payloads" };
            report_short_identities(&section, key, retention.payloads, retention.identities);
        }
        section.finish();
        retention
    }
}

/// What a source may say about retention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RetentionOverride {
    /// Headers and bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payloads: Option<Period>,
    /// The memory of identities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<Period>,
}

impl RetentionOverride {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a section says; where `own` is given, that is what it says if it says nothing.
    pub(super) fn read(
        mut section: Section<'_>,
        default: &RetentionConfig,
        own: Option<Self>,
    ) -> Self {
        let own = own.unwrap_or_default();
        let read = Self {
            payloads: section.get("payloads", PERIOD).or(own.payloads),
            identities: section.get("identities", PERIOD).or(own.identities),
        };
        let payloads = read.payloads.unwrap_or(default.payloads);
        let identities = read.identities.unwrap_or(default.identities);
        if !read.is_empty() && identities < payloads {
            let key = if section.has("identities") { "identities" } else { "payloads" };
            report_short_identities(&section, key, payloads, identities);
        }
        section.finish();
        read
    }
}

fn report_short_identities(section: &Section<'_>, key: &str, payloads: Period, identities: Period) {
    section.report(
        key,
        format!("identities would be kept for {identities}, payloads for {payloads}"),
        "identities must be kept at least as long as payloads: they recognise late repeats",
    );
}

impl Config {
    /// How long each source keeps what it received, and each destination what it was sent, by
    /// the names they have in the store.
    pub fn keeps(&self) -> HashMap<String, Keep> {
        let sources = self.sources.iter();
        let sources = sources.map(|(name, source)| (name.clone(), source.keep(&self.retention)));
        let destinations = self.destinations.iter();
        let destinations = destinations
            .map(|(name, destination)| (carrier(name), destination.keep(&self.retention)));
        sources.chain(destinations).collect()
    }

    /// Effects are remembered at least as long as identities: an event that is still recognised
    /// must not do again what it did. And as long as messages: one that is still kept must not be
    /// written again. Where nobody says how long, that is as long as it takes.
    pub(super) fn let_effects_outlast(&mut self, findings: &Findings<'_>) {
        let is_said = findings.has_key("retention", "effects");
        for (path, what, period) in self.outlasted() {
            let effects = self.retention.effects;
            if period <= effects {
                continue;
            }
            if !is_said {
                self.retention.effects = period;
                continue;
            }
            let message = format!("effects would be kept for {effects}, {what} for {period}");
            let hint = "effects must be kept at least as long as identities and messages: an event \
                        that comes again must not do again what it did";
            findings.report(&path, Problem::error(message, hint));
        }
    }

    /// A provider that retries for longer than its identities are remembered sends events that are
    /// taken for new.
    pub(super) fn check_horizons(&self, warnings: &mut Vec<Problem>) {
        for (name, source) in &self.sources {
            let horizon = Period::hours(source.entry.retry_hours.into());
            let identities = source.retention.identities.unwrap_or(self.retention.identities);
            if identities >= horizon {
                continue;
            }
            let message = format!(
                "source `{name}` remembers identities for {identities}, and {} may send an event \
                 again for {horizon}",
                source.entry.title
            );
            let hint = format!("keep `identities` for at least {horizon}, or a late retry is new");
            let path = match source.retention.identities {
                Some(_) => format!("sources.{name}.retention.identities"),
                None => "retention.identities".to_owned(),
            };
            warnings.push(self.document.locate(&path, Problem::warning(message, hint)));
        }
    }

    /// What effects must outlast: where it is said, what it is, and how long it is kept.
    fn outlasted(&self) -> Vec<(String, &'static str, Period)> {
        let of_all = ("retention.effects".to_owned(), "identities", self.retention.identities);
        let of_sources = self.sources.iter().filter_map(|(name, source)| {
            let path = format!("sources.{name}.retention.identities");
            Some((path, "identities", source.retention.identities?))
        });
        let of_destinations = self.destinations.iter().filter_map(|(name, destination)| {
            Some((format!("destinations.{name}.keep"), "messages", destination.keep?))
        });
        std::iter::once(of_all).chain(of_sources).chain(of_destinations).collect()
    }
}

pub(super) fn keep(payloads: Period, identities: Period) -> Keep {
    Keep { payloads: signed(payloads), identities: signed(identities) }
}

fn signed(period: Period) -> SignedDuration {
    SignedDuration::try_from(period.0).unwrap_or(SignedDuration::MAX)
}
