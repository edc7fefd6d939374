//! The pages of `docs/providers`, made from the catalogue.

use std::fs;
use std::path::Path;

use oncebox_verify::Provider;
use oncebox_verify::catalogue::{self, GROUPS, Group};

use super::setup::example;
use super::words::{
    choice_words, handshake_words, identity_words, in_full, in_short, odd_words, ordering,
    rate_words, retry_words, trust_of, window_of,
};
use crate::exit::Failure;
use crate::output::{count, notice};

const MADE: &str =
    "<!-- Made by `make provider-pages` from the catalogue; change that instead. -->";

/// Writes the index and one page for each group.
pub(super) fn write(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write into {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(folder.join("README.md"), index()).map_err(failed)?;
    for group in GROUPS {
        fs::write(folder.join(format!("{}.md", group.file())), page(group)).map_err(failed)?;
    }
    notice(format!("wrote {}", count(GROUPS.len() + 1, "page")));
    Ok(())
}

fn index() -> String {
    let providers = count(catalogue::ALL.len(), "provider");
    let mut text = format!(
        "{MADE}\n\n# Every provider\n\n{providers}, by name. The page of its group says how to set \
         one up; so does `oncebox providers NAME`. [How verification works](../providers.md) \
         explains the columns.\n\n| Provider | Name | Proof | Identity | Time window |\n\
         |---|---|---|---|---|\n"
    );
    for provider in catalogue::ALL.iter() {
        let name = match catalogue::group_of(provider) {
            Some(group) => format!("[`{0}`]({1}.md#{0})", provider.name, group.file()),
            None => format!("`{}`", provider.name),
        };
        let mark = if provider.experimental { " (experimental)" } else { "" };
        let proof = provider.schemes.first().map(in_short).unwrap_or_default();
        text.push_str(&format!(
            "| {name} | {}{mark} | {} | {} | {} |\n",
            cell(&provider.title),
            cell(&proof),
            trust_of(provider),
            window_of(provider),
        ));
    }
    text
}

fn page(group: &Group) -> String {
    let mut text = format!("{MADE}\n\n# {}\n\n[Every provider](README.md)\n", group.name);
    for provider in group.providers {
        text.push_str(&section(provider));
    }
    text
}

fn section(provider: &Provider) -> String {
    let mut text = format!("\n## {}\n\n", provider.name);
    let title = &provider.title;
    text.push_str(&format!("{title}: [documentation]({}).\n", provider.docs));
    if provider.experimental {
        text.push_str("Not all of this entry could be confirmed: try it before you rely on it.\n");
    }
    text.push_str(&format!("\nSecret: {}\n", provider.find_secret));
    text.push_str(&format!("\n```toml\n{}```\n\n", example(provider)));
    let mut line = |label: &str, words: &str| text.push_str(&format!("- {label}: {words}\n"));
    for setting in provider.settings.iter() {
        line(&format!("`{}`", setting.key), &setting.help);
    }
    for (number, scheme) in provider.schemes.iter().enumerate() {
        line(if number == 0 { "Proof" } else { "Or" }, &in_full(scheme));
    }
    if let Some(words) = choice_words(provider) {
        line("`scheme`", &words);
    }
    for (number, identity) in provider.identity.iter().enumerate() {
        line(if number == 0 { "Identity" } else { "Or" }, &identity_words(provider, identity));
    }
    if let Some(words) = rate_words(provider) {
        line("Rate", &words);
    }
    for (label, words) in odd_words(provider) {
        line(label_of(label), &words);
    }
    if !provider.batches.is_empty() {
        line("Batches", "one request may carry several events; each is a receipt.");
    }
    let handshake = handshake_words(provider);
    if !handshake.is_empty() {
        line("Handshake", &handshake);
    }
    line("Order", &ordering(provider));
    line("Retries", &retry_words(provider));
    if !provider.recovery.is_empty() {
        line("Missed events", &provider.recovery);
    }
    if !provider.notes.is_empty() {
        line("Note", &provider.notes);
    }
    text
}

/// A label as a line of a page begins.
fn label_of(label: &str) -> &str {
    match label {
        "twins" => "Twins",
        "types" => "Types that share a body",
        "conflicts" => "Conflicts",
        label => label,
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
