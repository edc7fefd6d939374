//! What the providers that send plain Standard Webhooks have in common.

use super::{SVIX_NAMES, WEBHOOK, header, id, list, standard, text};
use crate::provider::{
    Field, Guard, Identity, KeyEncoding, Provider, Sample, Scheme, TypeRule, Version,
};

/// Signed under `webhook-*` with a secret that is base64 after `whsec_`.
pub(super) const BY_WEBHOOK: &[Scheme] = &[standard(&WEBHOOK, KeyEncoding::Whsec)];

/// Delivered by Svix, which may use either set of names.
pub(super) const BY_SVIX: &[Scheme] =
    &[standard(&SVIX_NAMES, KeyEncoding::Whsec), standard(&WEBHOOK, KeyEncoding::Whsec)];

pub(super) const WEBHOOK_ID: &[Identity] = &[id(header("webhook-id"))];
pub(super) const SVIX_ID: &[Identity] = &[id(header("svix-id")), id(header("webhook-id"))];

/// What one of them has of its own.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) docs: &'static str,
    pub(super) schemes: &'static [Scheme],
    pub(super) identity: &'static [Identity],
    pub(super) event_type: &'static [TypeRule],
    pub(super) object: &'static [Field],
    pub(super) version: &'static [Version],
    pub(super) retry: &'static str,
    pub(super) find_secret: &'static str,
    pub(super) notes: &'static str,
    pub(super) sample_type: &'static str,
    pub(super) sample_body: &'static str,
    pub(super) sample_object: &'static str,
}

impl Member {
    pub(super) const fn provider(&self) -> Provider {
        Provider {
            name: text(self.name),
            title: text(self.title),
            docs: text(self.docs),
            schemes: list(self.schemes),
            identity: list(self.identity),
            event_type: list(self.event_type),
            object: list(self.object),
            version: list(self.version),
            volatile: list![],
            guard: Guard::Content,
            form_payload: None,
            handshake: None,
            answer: None,
            retry: text(self.retry),
            find_secret: text(self.find_secret),
            notes: text(self.notes),
            sample_type: text(self.sample_type),
            sample: Sample {
                headers: list![],
                body: text(self.sample_body),
                object: text(self.sample_object),
                form: false,
            },
        }
    }
}
