//! The providers we know, one constant each.

use std::borrow::Cow;

use crate::provider::{
    Algorithm, Ed25519, Encoding, Field, Hmac, Identity, KeyEncoding, List, Part, Place, Provider,
    Scheme, Stamp, Text, TimeFormat, TypeRule, Unit, Version,
};

/// A constant slice of values that are no constants by themselves.
macro_rules! items {
    ($($item:expr),* $(,)?) => { const { &[$($item),*] } };
}

/// The same as a [`List`].
macro_rules! list {
    ($($item:expr),* $(,)?) => { std::borrow::Cow::Borrowed(items![$($item),*]) };
}

mod anthropic;
mod bitbucket;
mod brex;
mod clerk;
mod dodo_payments;
mod family;
pub(crate) mod generic;
mod github;
mod gitlab;
mod linear;
mod lithic;
mod liveblocks;
mod mailgun;
mod openai;
mod polar;
mod replicate;
mod resend;
mod shopify;
mod slack;
mod standard_webhooks;
mod stripe;
mod supabase_auth_hooks;
mod svix;
mod twilio;
mod whop;

/// Every provider, by name.
pub static ALL: &[&Provider] = &[
    &anthropic::ANTHROPIC,
    &bitbucket::BITBUCKET,
    &brex::BREX,
    &clerk::CLERK,
    &dodo_payments::DODO_PAYMENTS,
    &github::GITHUB,
    &gitlab::GITLAB,
    &generic::HMAC,
    &linear::LINEAR,
    &lithic::LITHIC,
    &liveblocks::LIVEBLOCKS,
    &mailgun::MAILGUN,
    &openai::OPENAI,
    &polar::POLAR,
    &replicate::REPLICATE,
    &resend::RESEND,
    &shopify::SHOPIFY,
    &slack::SLACK,
    &standard_webhooks::STANDARD_WEBHOOKS,
    &stripe::STRIPE,
    &supabase_auth_hooks::SUPABASE_AUTH_HOOKS,
    &svix::SVIX,
    &generic::TOKEN,
    &twilio::TWILIO,
    &whop::WHOP,
];

/// The provider of that name. `hmac` and `token` are found with their default
/// settings; [`custom`](crate::custom) makes others.
///
/// ```
/// use oncebox_verify::catalogue;
///
/// assert_eq!(catalogue::find("github").unwrap().title, "GitHub");
/// assert!(catalogue::find("Github").is_none());
/// assert_eq!(catalogue::nearest("Github"), Some("github"));
/// ```
pub fn find(name: &str) -> Option<&'static Provider> {
    ALL.iter().copied().find(|provider| provider.name == name)
}

/// The name most like `name`, for "did you mean", unless all are far away.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace(['_', ' '], "-");
    let distance = |provider: &&&Provider| edit_distance(&name, &provider.name);
    let best = ALL.iter().min_by_key(distance)?;
    let starts = ALL.iter().find(|provider| {
        name.len() > 2 && (provider.name.starts_with(&name) || name.starts_with(&*provider.name))
    });
    if distance(&best) <= 1 + name.len() / 4 {
        return Some(&best.name);
    }
    starts.map(|provider| provider.name.as_ref())
}

/// How many letters must be added, dropped or changed to make `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

// Short words for the entries below; each is what it says.

const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

const fn list<T: Clone>(items: &'static [T]) -> List<T> {
    Cow::Borrowed(items)
}

const fn json(pointer: &'static str) -> Field {
    Field::Json(text(pointer))
}

const fn header(name: &'static str) -> Field {
    Field::Header(text(name))
}

const fn form(name: &'static str) -> Field {
    Field::Form(text(name))
}

const fn id(field: Field) -> Identity {
    Identity::Field(field)
}

const fn kind(first: Field) -> TypeRule {
    TypeRule { text: text(""), first, then: None }
}

const fn kind_with(first: Field, then: Field) -> TypeRule {
    TypeRule { text: text(""), first, then: Some(then) }
}

const fn version(field: Field, unit: Unit) -> Version {
    Version { field, unit }
}

/// HMAC-SHA256 over the raw body alone, keyed with the text of the secret.
const fn body_hmac(name: &'static str, prefix: &'static str, encoding: Encoding) -> Scheme {
    Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Header(text(name)),
        prefix: text(prefix),
        separator: None,
        encoding,
        timestamp: None,
        signed: list![Part::Body],
        key: KeyEncoding::Text,
    })
}

/// Standard Webhooks with the headers of one family: `v1,` and base64 over
/// `{id}.{timestamp}.{body}`, several separated by spaces.
const fn standard(names: &'static StandardHeaders, key: KeyEncoding) -> Scheme {
    Scheme::Hmac(Hmac {
        algorithm: Algorithm::Sha256,
        signature: Place::Header(text(names.signature)),
        prefix: text("v1,"),
        separator: Some(' '),
        encoding: Encoding::Base64,
        timestamp: Some(Stamp {
            place: Place::Header(text(names.timestamp)),
            format: TimeFormat::Seconds,
            tolerance_secs: 300,
        }),
        signed: list(names.signed),
        key,
    })
}

/// The same signed with a private key: `v1a,` and base64 of an Ed25519 signature.
const fn standard_v1a(names: &'static StandardHeaders) -> Scheme {
    Scheme::Ed25519(Ed25519 {
        signature: Place::Header(text(names.signature)),
        prefix: text("v1a,"),
        separator: Some(' '),
        encoding: Encoding::Base64,
        timestamp: Some(Stamp {
            place: Place::Header(text(names.timestamp)),
            format: TimeFormat::Seconds,
            tolerance_secs: 300,
        }),
        signed: list(names.signed),
    })
}

/// The header names of one family of Standard Webhooks, and what they sign.
struct StandardHeaders {
    signature: &'static str,
    timestamp: &'static str,
    signed: &'static [Part],
}

const WEBHOOK: StandardHeaders = StandardHeaders {
    signature: "webhook-signature",
    timestamp: "webhook-timestamp",
    signed: &[
        Part::Header(text("webhook-id")),
        Part::Text(text(".")),
        Part::Timestamp,
        Part::Text(text(".")),
        Part::Body,
    ],
};

const SVIX_NAMES: StandardHeaders = StandardHeaders {
    signature: "svix-signature",
    timestamp: "svix-timestamp",
    signed: &[
        Part::Header(text("svix-id")),
        Part::Text(text(".")),
        Part::Timestamp,
        Part::Text(text(".")),
        Part::Body,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_sorted_and_kebab_case() {
        let names: Vec<&str> = ALL.iter().map(|provider| provider.name.as_ref()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        for name in names {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(plain), "{name} is not kebab-case");
        }
    }

    #[test]
    fn every_entry_tells_an_operator_what_to_know() {
        for provider in ALL {
            let name = &provider.name;
            assert!(!provider.title.is_empty(), "{name} has no title");
            assert!(provider.docs.starts_with("https://"), "{name} has no documentation");
            assert!(provider.retry.ends_with('.'), "{name} does not say how it retries");
            assert!(provider.find_secret.ends_with('.'), "{name} does not say where its secret is");
            assert!(!provider.sample_type.is_empty(), "{name} has no sample type");
            assert!(!provider.schemes.is_empty() && !provider.identity.is_empty(), "{name}");
        }
    }

    #[test]
    fn nearest_forgives_slips_but_does_not_guess() {
        assert_eq!(nearest("strip"), Some("stripe"));
        assert_eq!(nearest("StandardWebhooks"), Some("standard-webhooks"));
        assert_eq!(nearest("supabase"), Some("supabase-auth-hooks"));
        assert_eq!(nearest("zzzzzzzz"), None);
    }

    /// So that a request that came in under a signed id never comes in under another.
    #[test]
    fn no_unsigned_id_is_preferred_to_a_signed_one() {
        for provider in ALL {
            for scheme in provider.schemes.iter() {
                let others_only = |field: &Field| {
                    !scheme.covers(field) && provider.schemes.iter().any(|s| s.covers(field))
                };
                let signed = provider.identity.iter().filter_map(|identity| match identity {
                    // It is believed only beside the signature that covers it.
                    Identity::Field(field) if others_only(field) => None,
                    Identity::Field(field) => Some(scheme.covers(field)),
                    Identity::Joined(fields) => Some(fields.iter().all(|f| scheme.covers(f))),
                    Identity::Digest => Some(false),
                });
                let signed: Vec<bool> = signed.collect();
                assert!(signed.is_sorted_by(|a, b| a >= b), "{}: {signed:?}", provider.name);
            }
        }
    }

    #[test]
    fn twins_are_guarded_where_an_unsigned_id_meets_no_dated_body() {
        let guarded: Vec<&str> = ALL
            .iter()
            .filter(|provider| provider.guards_twins())
            .map(|provider| provider.name.as_ref())
            .collect();
        assert_eq!(
            guarded,
            ["bitbucket", "github", "gitlab", "mailgun", "shopify", "token", "twilio"]
        );
    }
}
