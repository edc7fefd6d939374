//! An entry of the catalogue as one JSON object.

use oncebox_verify::{Identity, Provider, Scheme, Setting, catalogue};
use serde_json::{Value, json};

use super::setup::example;
use super::words::{field_words, identity_place, stamp, trust};

pub(super) fn of(provider: &Provider) -> Value {
    let scheme = |scheme: &Scheme| {
        json!({
            "scheme": scheme.name(),
            "header": scheme.header(),
            "signs_timestamp": scheme.signs_timestamp(),
            "tolerance_secs": stamp(scheme).and_then(|stamp| stamp.tolerance_secs),
        })
    };
    let identity = |identity: &Identity| json!({ "from": identity_place(identity), "trust": trust(provider, identity) });
    let setting = |setting: &Setting| json!({ "key": setting.key, "needed": setting.needed, "help": setting.help });
    json!({
        "provider": provider.name,
        "title": provider.title,
        "group": catalogue::group_of(provider).map(|group| group.name),
        "experimental": provider.experimental,
        "schemes": provider.schemes.iter().map(scheme).collect::<Vec<_>>(),
        "settings": provider.settings.iter().map(setting).collect::<Vec<_>>(),
        "identity": provider.identity.iter().map(identity).collect::<Vec<_>>(),
        "object_id": provider.object.iter().map(field_words).collect::<Vec<_>>(),
        "version": provider.version.iter().map(|v| field_words(&v.field)).collect::<Vec<_>>(),
        "batches": !provider.batches.is_empty(),
        "handshake": !provider.handshakes.is_empty() || provider.pairing.is_some(),
        "retry": provider.retry,
        "find_secret": provider.find_secret,
        "notes": provider.notes,
        "docs": provider.docs,
        "config": example(provider),
    })
}
