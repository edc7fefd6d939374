//! The providers we know: a folder for each group, a file for each provider.

use std::sync::LazyLock;

use crate::provider::Provider;

/// A constant slice of values that are no constants by themselves.
macro_rules! items {
    ($($item:expr),* $(,)?) => { const { &[$($item),*] } };
}

/// The same as a [`List`](crate::provider::List).
macro_rules! list {
    ($($item:expr),* $(,)?) => { std::borrow::Cow::Borrowed(items![$($item),*]) };
}

/// The providers of one group: a file each, named like the provider.
macro_rules! group {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*
        pub(super) static ALL: &[&crate::Provider] = &[$(&$name::ENTRY),*];
    };
}

pub(crate) mod generic;
mod words;

/// One folder of the catalogue, and what it holds.
pub struct Group {
    /// Its name for people.
    pub name: &'static str,
    /// Its providers, by name.
    pub providers: &'static [&'static Provider],
    folder: &'static str,
}

impl Group {
    /// Its name as that of a file.
    pub fn file(&self) -> &'static str {
        self.folder
    }

    /// Whether somebody who writes `word` means it.
    pub fn is_called(&self, word: &str) -> bool {
        self.folder == word || self.name.to_lowercase().contains(word)
    }
}

/// The group of a provider; none for the generic ones.
pub fn group_of(provider: &Provider) -> Option<&'static Group> {
    let has = |group: &&Group| group.providers.iter().any(|known| known.name == provider.name);
    GROUPS.iter().find(has)
}

macro_rules! groups {
    ($($name:ident $title:literal),* $(,)?) => {
        $(mod $name;)*

        /// Every group, by name.
        pub static GROUPS: &[Group] = &[$(Group {
            name: $title,
            providers: $name::ALL,
            folder: stringify!($name),
        }),*];
    };
}

groups! {
    ai "AI and speech",
    banking "Banking and crypto",
    commerce "Shops and shipping",
    content "Content, files and documents",
    crm "Sales, marketing and support",
    developer "Code and deployment",
    devices "Devices and cars",
    email "E-mail",
    hiring "Hiring and people",
    identity "Identity and trust",
    messaging "Messaging and calls",
    payments "Payments and billing",
    platform "Cloud and events",
    social "Social and video",
    standards "Standards",
    work "Work and calendars",
}

/// Every provider, by name.
pub static ALL: LazyLock<Vec<&'static Provider>> = LazyLock::new(|| {
    let generic = [&generic::HMAC, &generic::TOKEN];
    let grouped = GROUPS.iter().flat_map(|group| group.providers);
    let mut all: Vec<&'static Provider> = grouped.copied().chain(generic).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
});

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Field, Identity};

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
        for provider in ALL.iter() {
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
        for provider in ALL.iter() {
            for scheme in provider.schemes.iter() {
                let others_only = |field: &Field| {
                    !scheme.covers(field) && provider.schemes.iter().any(|s| s.covers(field))
                };
                let signed = provider.identity.iter().filter_map(|identity| match identity {
                    // It is believed only beside the signature that covers it.
                    Identity::Field(field) if others_only(field) => None,
                    Identity::Field(field) => Some(scheme.covers(field)),
                    Identity::Joined(fields) | Identity::JoinedDigest(fields) => {
                        Some(fields.iter().all(|f| scheme.covers(f)))
                    }
                    Identity::Digest | Identity::Each => Some(false),
                });
                let signed: Vec<bool> = signed.collect();
                assert!(signed.is_sorted_by(|a, b| a >= b), "{}: {signed:?}", provider.name);
            }
        }
    }

    #[test]
    fn twins_are_guarded_where_an_unsigned_id_meets_no_dated_body() {
        let guarded = |name: &str| find(name).unwrap().guards_twins();
        let unsigned = ["bitbucket", "github", "gitlab", "jira", "mailgun", "shopify", "twilio"];
        let tokens = ["azure-devops", "cloudevents", "figma", "token"];
        for name in unsigned.iter().chain(&tokens) {
            assert!(guarded(name), "{name}");
        }
        let signed = ["clerk", "linear", "notion", "stripe", "twitch", "zendesk"];
        let digests = ["asana", "elevenlabs", "huggingface", "sentry"];
        for name in signed.iter().chain(&digests) {
            assert!(!guarded(name), "{name}");
        }
    }
}
