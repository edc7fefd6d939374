//! An entry of the catalogue as one JSON object.

use oncebox_verify::{Identity, Odd, OddRule, Provider, Scheme, Setting, catalogue};
use serde_json::{Value, json};

use super::setup::example;
use super::words::{field_words, identity_place, stamp, trust};

/// What happens to twins and conflicts, and why; whether one body comes under several types.
fn odd(provider: &Provider) -> Value {
    let Odd { twins, types_share_body, conflicts } = provider.odd();
    let rule = |rule: &OddRule| json!({ "act": rule.act.name(), "why": rule.why });
    json!({
        "twins": rule(&twins),
        "types_share_body": types_share_body.is_some(),
        "types_share_body_why": types_share_body,
        "conflicts": rule(&conflicts),
    })
}

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
        "scheme_words": provider.choice.map(|choice| choice.words().collect::<Vec<_>>()),
        "settings": provider.settings.iter().map(setting).collect::<Vec<_>>(),
        "identity": provider.identity.iter().map(identity).collect::<Vec<_>>(),
        "object_id": provider.object.iter().map(field_words).collect::<Vec<_>>(),
        "version": provider.version.iter().map(|v| field_words(&v.field)).collect::<Vec<_>>(),
        "odd": odd(provider),
        "batches": !provider.batches.is_empty(),
        "handshake": !provider.handshakes.is_empty() || provider.pairing.is_some(),
        "retry": provider.retry,
        "retry_hours": (provider.retry_hours > 0).then_some(provider.retry_hours),
        "recovery": (!provider.recovery.is_empty()).then_some(&provider.recovery),
        "find_secret": provider.find_secret,
        "notes": provider.notes,
        "docs": provider.docs,
        "config": example(provider),
    })
}
