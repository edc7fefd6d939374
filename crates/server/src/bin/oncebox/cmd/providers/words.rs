//! Entries of the catalogue in words.

use oncebox_verify::{
    Claim, Field, Identity, Jws, JwsPayload, Odd, OddAct, OddRule, Part, Place, Provider, Scheme,
    Stamp, TimeFormat, TokenPlace, Unsaid, Version,
};

use oncebox_server::config::{EACH_BURST, EACH_RATE, Period};

use crate::output::span;

/// What proves a request, in a few words.
pub(super) fn in_short(scheme: &Scheme) -> String {
    let place = match scheme {
        Scheme::Signature(signature) => place_words(&signature.place),
        Scheme::Token(token) => match &token.place {
            TokenPlace::Header(name) => name.to_string(),
            TokenPlace::Query(name) => format!("the URL, ?{name}="),
            TokenPlace::Json(pointer) => format!("the body at {pointer}"),
            TokenPlace::Item(pointer) => format!("each item at {pointer}"),
        },
        Scheme::Jws(jws) => jws.header.as_deref().unwrap_or("the body").to_owned(),
        _ => scheme.header().unwrap_or("the body").to_owned(),
    };
    format!("{} in {place}", scheme.name())
}

/// The same with what it covers, and for how long it is believed.
pub(super) fn in_full(scheme: &Scheme) -> String {
    let covers = match scheme {
        Scheme::Signature(signature) => format!(" over {}", template(&signature.signed)),
        Scheme::Token(_) => ", a credential that covers nothing of the request".to_owned(),
        Scheme::Jws(jws) => jws_words(jws),
        scheme if scheme.signs_url() => " over the URL and the body".to_owned(),
        _ => " over parts of the body".to_owned(),
    };
    let window = match stamp(scheme) {
        Some(Stamp { format: TimeFormat::Nonce, .. }) => "; no time is signed".to_owned(),
        Some(Stamp { place, tolerance_secs: Some(secs), .. }) => {
            format!("; the time in {} may be {} off", place_words(place), span((*secs).into()))
        }
        Some(Stamp { tolerance_secs: None, .. }) => {
            "; a time is signed, but retries may keep the first, so its age is not judged"
                .to_owned()
        }
        None if scheme.signs_timestamp() => "; it expires by itself".to_owned(),
        None => "; no time is signed".to_owned(),
    };
    format!("{}{covers}{window}", in_short(scheme))
}

fn jws_words(jws: &Jws) -> String {
    match &jws.payload {
        JwsPayload::Detached(parts) => format!(" over {}", template(parts)),
        JwsPayload::TrueLayer => " over the method, the path, named headers and {body}".to_owned(),
        JwsPayload::Claims(_) if jws.header.is_none() => " that is the whole body".to_owned(),
        JwsPayload::Claims(claims) => {
            let covers_body = claims.iter().any(|claim| matches!(claim, Claim::BodyHash(..)));
            match covers_body {
                true => " over a hash of {body}".to_owned(),
                false => ", which covers nothing of the request".to_owned(),
            }
        }
    }
}

fn template(parts: &[Part]) -> String {
    let word = |part: &Part| match part {
        Part::Timestamp => "{timestamp}".to_owned(),
        Part::Body => "{body}".to_owned(),
        Part::BodyHash { algorithm, .. } => format!("{{{} of body}}", algorithm.name()),
        Part::BodyCrc32 => "{crc32 of body}".to_owned(),
        Part::Url => "{url}".to_owned(),
        Part::PathAndQuery => "{path}".to_owned(),
        Part::Method => "{method}".to_owned(),
        Part::Header(name) => format!("{{{name}}}"),
        Part::Query(name) => format!("{{?{name}}}"),
        Part::Form(name) => format!("{{form {name}}}"),
        Part::Json(pointer) | Part::JsonAs(pointer, _) | Part::JsonRaw(pointer) => {
            format!("{{{pointer}}}")
        }
        Part::Item(pointer) => format!("{{item {pointer}}}"),
        Part::Secret => "{secret}".to_owned(),
        Part::Setting(key) => format!("{{{key}}}"),
        Part::Text(text) => text.escape_debug().to_string(),
    };
    parts.iter().map(word).collect()
}

fn place_words(place: &Place) -> String {
    match place {
        Place::Header(header) | Place::Repeated(header) => header.to_string(),
        Place::AnyOf(headers) => headers.join(" or "),
        Place::Numbered(before) => format!("{before}1, {before}2 ..."),
        Place::Label { header, label, .. } => format!("{header} {label}="),
        Place::First { header, .. } | Place::Rest { header, .. } => header.to_string(),
        Place::Query(name) => format!("the URL, ?{name}="),
        Place::Form(name) => format!("form field {name}"),
        Place::Json(pointer) => format!("the body at {pointer}"),
        Place::Item(pointer) => format!("each item at {pointer}"),
    }
}

pub(super) fn stamp(scheme: &Scheme) -> Option<&Stamp> {
    scheme.signature().and_then(|signature| signature.timestamp.as_ref())
}

/// How far a time may be off.
pub(super) fn window_of(provider: &Provider) -> String {
    let Some(scheme) = provider.schemes.first() else { return "none".to_owned() };
    match stamp(scheme).and_then(|stamp| stamp.tolerance_secs) {
        Some(secs) => format!("±{}", span(secs.into())),
        None if scheme.signs_timestamp() => "expires".to_owned(),
        None => "none".to_owned(),
    }
}

/// How far the preferred identity can be trusted.
pub(super) fn trust_of(provider: &Provider) -> &'static str {
    provider.identity.first().map_or("none", |identity| trust(provider, identity))
}

/// How far an identity can be trusted when the strongest scheme of the provider is used.
pub(super) fn trust(provider: &Provider, identity: &Identity) -> &'static str {
    let signed = |field: &Field| provider.schemes.first().is_some_and(|best| best.covers(field));
    let all_signed = match identity {
        Identity::Field(field) => signed(field),
        Identity::Joined(fields) | Identity::JoinedDigest(fields) => fields.iter().all(signed),
        Identity::Digest => return "digest",
        Identity::Each => return "none",
    };
    if all_signed { "signed" } else { "transport" }
}

/// Where an identity comes from.
pub(super) fn identity_place(identity: &Identity) -> String {
    let joined =
        |fields: &[Field]| fields.iter().map(field_words).collect::<Vec<_>>().join(" with ");
    match identity {
        Identity::Field(field) => field_words(field),
        Identity::Joined(fields) => joined(fields),
        Identity::JoinedDigest(fields) => format!("{} with the digest", joined(fields)),
        Identity::Digest => "the digest of the body".to_owned(),
        Identity::Each => "nothing: every request is an event of its own".to_owned(),
    }
}

pub(super) fn identity_words(provider: &Provider, identity: &Identity) -> String {
    let place = identity_place(identity);
    match trust(provider, identity) {
        "digest" | "none" => place,
        "signed" => format!("{place} (signed)"),
        _ if provider.guards_twins() => {
            format!("{place} (not signed: a digest of what is signed guards it)")
        }
        _ => format!("{place} (not signed)"),
    }
}

pub(super) fn field_words(field: &Field) -> String {
    match field {
        Field::Json(pointer) => format!("{pointer} of the body"),
        Field::Item(pointer) => format!("{pointer} of the item"),
        Field::Outer(pointer) => format!("{pointer} of what holds the item"),
        Field::Within(outer, inner) => format!("{inner} of the JSON in {outer}"),
        Field::KeyBeside(others) => format!("the key beside {}", others.join(", ")),
        Field::Xml(path) => format!("element {path}"),
        Field::Header(name) => format!("header {name}"),
        Field::Form(name) => format!("form field {name}"),
        Field::Query(name) => format!("query parameter {name}"),
    }
}

/// What happens to arrivals that look odd, and why: a label and a sentence each.
pub(super) fn odd_words(provider: &Provider) -> Vec<(&'static str, String)> {
    let Odd { twins, types_share_body, conflicts } = provider.odd();
    let rule = |rule: &OddRule| match (rule.act, rule.why.strip_prefix("There are ")) {
        (OddAct::Hold, Some(none)) => none.to_owned(),
        (OddAct::Hold, None) => format!("held. {}", rule.why),
        (OddAct::Deliver, _) => format!("delivered and marked. {}", rule.why),
    };
    let mut words = vec![("twins", rule(&twins))];
    if let Some(why) = types_share_body {
        words.push(("types", format!("the first of each is delivered and marked. {why}")));
    }
    words.push(("conflicts", rule(&conflicts)));
    words
}

/// Which proofs a source may choose from, and what holds where it does not.
pub(super) fn choice_words(provider: &Provider) -> Option<String> {
    let choice = provider.choice?;
    let words: Vec<_> = choice.words().map(|word| format!("`{word}`")).collect();
    let strongest = choice.strongest();
    let unsaid = match choice.unsaid {
        Unsaid::Strongest => format!("without it `{strongest}` is required"),
        Unsaid::Learned => {
            format!("without it the first request proved by `{strongest}` makes that required")
        }
    };
    Some(format!("the proof that counts, one of {}; {unsaid}", words.join(", ")))
}

/// What is to be known of a provider whose requests may each be an event.
pub(super) fn rate_words(provider: &Provider) -> Option<String> {
    provider.takes_each().then(|| {
        format!(
            "a captured request is accepted as often as it is sent, so a source takes {EACH_RATE} \
             events a second, {EACH_BURST} at once, unless it sets `rate`"
        )
    })
}

/// How the provider retries, and for how long at most.
pub(super) fn retry_words(provider: &Provider) -> String {
    match provider.retry_hours {
        0 => provider.retry.to_string(),
        hours => format!(
            "{} Identities must be kept for {}.",
            provider.retry,
            Period::hours(hours.into())
        ),
    }
}

pub(super) fn handshake_words(provider: &Provider) -> String {
    let mut words = Vec::new();
    if provider.handshakes.iter().any(|handshake| handshake.signed) {
        words.push("signed questions are answered");
    }
    if provider.handshakes.iter().any(|handshake| !handshake.signed) {
        words.push("its questions are answered without a signature");
    }
    if provider.pairing.is_some() {
        words.push("it tells its secret itself: run `oncebox sources pair NAME` first");
    }
    words.join("; ")
}

pub(super) fn ordering(provider: &Provider) -> String {
    let words = |version: &Version| field_words(&version.field);
    let versions: Vec<_> = provider.version.iter().map(words).collect();
    let objects: Vec<_> = provider.object.iter().map(field_words).collect();
    match (objects.is_empty(), versions.is_empty()) {
        (true, _) => "none: the events name no object".to_owned(),
        (false, true) => format!("none; the object is {}", objects.join(", or ")),
        (false, false) => {
            format!("{} orders the events of {}", versions.join(", or "), objects.join(", or "))
        }
    }
}
