//! Taking a configuration apart, key by key, so that every error is found in one go.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::generic::{HMAC_KEYS, TOKEN_KEYS};
use super::problem::{Problem, nearest};
use super::setting;
use super::tree::{Document, Entry, Node, Value};

/// Problems found so far.
pub(super) struct Findings<'a> {
    document: &'a Document,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self { document, problems: RefCell::default() }
    }

    /// Reports a problem with the value at `path`.
    pub(super) fn report(&self, path: &str, problem: Problem) {
        self.problems.borrow_mut().push(self.document.locate(path, problem));
    }

    /// Whether a table has this key, sound or not.
    pub(super) fn has_key(&self, table: &str, key: &str) -> bool {
        self.document.has(&format!("{table}.{key}"))
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(Problem::line_and_column);
        problems
    }
}

/// One table of the configuration, being read. Keys nobody asked for are errors.
pub(super) struct Section<'a> {
    path: String,
    entries: Option<&'a BTreeMap<String, Entry>>,
    asked: Vec<&'static str>,
    findings: &'a Findings<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn root(node: &'a Node, findings: &'a Findings<'a>) -> Self {
        Self::of(String::new(), Some(node), findings)
    }

    fn of(path: String, node: Option<&'a Node>, findings: &'a Findings<'a>) -> Self {
        let entries = match node.map(|node| &node.value) {
            Some(Value::Table(entries)) => Some(entries),
            Some(_) => {
                let problem = format!("`{path}` must be a table");
                let hint = format!("write [{path}] and its keys below it");
                findings.report(&path, Problem::error(problem, hint));
                None
            }
            None => None,
        };
        Self { path, entries, asked: Vec::new(), findings }
    }

    /// The path of a key of this section.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn report(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.findings.report(&self.path(key), Problem::error(message, hint));
    }

    fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        Some(&self.entries?.get(key)?.node)
    }

    /// Says that the key is known, for one that is read only if it is there.
    pub(super) fn expect(&mut self, key: &'static str) {
        self.asked.push(key);
    }

    /// Whether the key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// The value of a key. A wrong one is reported with what it must be; its own text is not
    /// repeated, for it may be a secret in the wrong place.
    pub(super) fn get<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        must_be: &str,
    ) -> Option<T> {
        let node = self.node(key)?;
        self.value(&self.path(key), node, must_be)
    }

    /// As [`Section::get`], with a default.
    pub(super) fn or<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        must_be: &str,
        default: T,
    ) -> T {
        self.get(key, must_be).unwrap_or(default)
    }

    /// A list. From the environment, one value alone is a list of one.
    pub(super) fn list<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        must_be: &str,
    ) -> Option<Vec<T>> {
        let path = self.path(key);
        let node = self.node(key)?;
        match &node.value {
            Value::Array(items) => {
                let item = |(number, node)| self.value(&format!("{path}[{number}]"), node, must_be);
                Some(items.iter().enumerate().filter_map(item).collect())
            }
            Value::Variable(..) => Some(self.value(&path, node, must_be).into_iter().collect()),
            Value::Leaf(_) | Value::Table(_) => {
                let problem = format!("`{path}` must be a list; each item is {must_be}");
                self.findings.report(&path, Problem::error(problem, "write it in [ ]"));
                None
            }
        }
    }

    fn value<T: DeserializeOwned>(&self, path: &str, node: &Node, must_be: &str) -> Option<T> {
        let read = match &node.value {
            // A variable that looks like a number may be meant as text.
            Value::Variable(value, text) => value
                .clone()
                .try_into()
                .or_else(|_| toml::Value::String(text.clone()).try_into())
                .ok(),
            _ => node.plain().try_into().ok(),
        };
        if read.is_none() {
            self.findings.report(path, Problem::error(format!("`{path}` must be {must_be}"), ""));
        }
        read
    }

    /// A table within this one.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'a> {
        let path = self.path(key);
        let node = self.node(key);
        Section::of(path, node, self.findings)
    }

    /// The tables within a table of names, such as `[sources.NAME]`.
    pub(super) fn named(&mut self, key: &'static str) -> Vec<(String, Section<'a>)> {
        let section = self.section(key);
        let Some(entries) = section.entries else { return Vec::new() };
        let part = |(name, entry): (&String, &'a Entry)| {
            let path = section.path(name);
            (name.clone(), Section::of(path, Some(&entry.node), self.findings))
        };
        entries.iter().map(part).collect()
    }

    /// The keys nobody has asked for, to be read by somebody else.
    pub(super) fn rest(&mut self) -> toml::Table {
        let Some(entries) = self.entries else { return toml::Table::new() };
        entries
            .iter()
            .filter(|(key, _)| !self.asked.contains(&key.as_str()))
            .map(|(key, entry)| (key.clone(), entry.node.plain()))
            .collect()
    }

    /// Whether the key has been asked for: it is one of this section's.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.asked.contains(&key)
    }

    /// Reports the keys nobody has asked for.
    pub(super) fn finish(&self) {
        let unknown: Vec<_> = self.rest_keys().collect();
        for key in unknown {
            self.report_unknown(key, &self.asked);
        }
    }

    /// As [`Section::finish`], where nobody can tell which provider was meant.
    pub(super) fn finish_without_provider(&self) {
        let is_theirs = |key: &str| is_generic(key) || setting::is_known(key);
        let unknown: Vec<_> = self.rest_keys().filter(|key| !is_theirs(key)).collect();
        for key in unknown {
            self.report_unknown(key, &self.asked);
        }
    }

    fn rest_keys(&self) -> impl Iterator<Item = &'a str> + use<'a, '_> {
        let keys = self.entries.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        keys.filter(|key| !self.knows(key))
    }

    /// Reports one unknown key and what it may have been meant to be.
    pub(super) fn report_unknown(&self, key: &str, known: &[&str]) {
        let path = self.path(key);
        let hint = match nearest(key, known.iter().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if is_generic(key) => "it belongs to `provider = \"hmac\"` or `\"token\"`".into(),
            None if setting::is_known(key) => "it belongs to another provider".into(),
            None => format!("known here: {}", known.join(", ")),
        };
        let problem = Problem::error(format!("unknown key `{path}`"), hint);
        self.findings.report(&format!("{path}:key"), problem);
    }
}

fn is_generic(key: &str) -> bool {
    HMAC_KEYS.contains(&key) || TOKEN_KEYS.contains(&key)
}
