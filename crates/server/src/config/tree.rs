//! The configuration as written: values with their places, from the file and the environment.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::dotenv;
use super::problem::{Place, Problem};
use super::secret::{StoreUrl, is_telling};

/// What environment variables that override the configuration begin with.
pub(super) const PREFIX: &str = "ONCEBOX__";

/// Environment variables, as found when the configuration was loaded, and the folder that its
/// relative paths start from.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
    unread: Vec<String>,
}

impl Environment {
    /// The variables of this process. One that is not Unicode cannot be named by `env:`.
    pub fn of_process() -> Self {
        let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(unicode).collect();
        Self { variables, ..Self::default() }
    }

    /// The variables of this process and of a file such as `.env`, where the process has no such
    /// variable. Those that override the configuration are left out. A file or a line that cannot
    /// be read is passed over: see [`Environment::unread`].
    pub fn beside_overrides(file: &Path) -> Self {
        let mut environment = Self::of_process();
        let name = file.display();
        match std::fs::read_to_string(file) {
            Ok(text) => {
                let read = dotenv::parse(&text);
                for (name, value) in read.found {
                    environment.variables.entry(name).or_insert(value);
                }
                let lines = read.unread.iter();
                environment.unread =
                    lines.map(|line| format!("{name} line {line} sets no variable")).collect();
            }
            // A folder of that name is something else.
            Err(_) if !file.exists() || file.is_dir() => {}
            Err(error) => environment.unread.push(format!("{name} cannot be read: {error}")),
        }
        environment.variables.retain(|name, _| !name.starts_with(PREFIX));
        environment
    }

    /// What of the file could not be read, in words that show nothing of it.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The same, with relative paths that start from the folder of a file.
    pub(super) fn beside(mut self, file: &str) -> Self {
        self.folder = Path::new(file).parent().map(Path::to_owned).unwrap_or_default();
        self
    }

    /// A path as the configuration writes it, from where this process is.
    pub(super) fn path(&self, written: impl AsRef<Path>) -> PathBuf {
        self.folder.join(written)
    }

    /// What a path that starts in the folder would be from where this process is. `None` if it
    /// starts elsewhere.
    pub(super) fn here(&self, path: &Path) -> Option<PathBuf> {
        let written = path.strip_prefix(&self.folder).ok()?;
        written.is_relative().then(|| written.to_owned())
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The variables that override the configuration.
    pub(super) fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        let ours = |(name, _): &(&String, &String)| name.starts_with(PREFIX);
        self.variables.iter().filter(ours).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { variables: variables.into(), ..Self::default() }
    }
}

/// Names only: the values are mostly none of our business, and some are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.variables.len())
    }
}

/// A value and where it was written.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Table(BTreeMap<String, Entry>),
    Array(Vec<Node>),
    Leaf(toml::Value),
    /// From the environment: what it says as TOML, and the text itself.
    Variable(toml::Value, String),
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Place,
    pub(super) node: Node,
}

impl Node {
    fn table() -> Self {
        Self { place: Place::File(0..0), value: Value::Table(BTreeMap::new()) }
    }

    /// The value without its places.
    pub(super) fn plain(&self) -> toml::Value {
        match &self.value {
            Value::Leaf(value) | Value::Variable(value, _) => value.clone(),
            Value::Array(items) => toml::Value::Array(items.iter().map(Node::plain).collect()),
            Value::Table(entries) => toml::Value::Table(
                entries.iter().map(|(key, entry)| (key.clone(), entry.node.plain())).collect(),
            ),
        }
    }
}

/// A parsed configuration: its tree, where everything is, and its text without secrets.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) file: String,
    pub(super) masked: String,
    places: HashMap<String, Place>,
}

impl Document {
    /// Where `path` was written, or the nearest table around it.
    pub(super) fn place(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(place.clone());
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Whether anything was written at exactly this path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// A problem with the value at `path`.
    pub(super) fn locate(&self, path: &str, problem: Problem) -> Problem {
        problem.at(self.place(path)).within(&self.file, &self.masked)
    }
}

/// Reads the file's text and lays the environment over it.
pub(super) fn parse(
    file: &str,
    text: &str,
    environment: &Environment,
) -> Result<(Node, Document), Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // Where the syntax is broken nobody can tell a secret from another text.
        let masked = mask_quoted(text);
        let problem = |error: &toml::de::Error| {
            let problem = Problem::error(error.message().to_owned(), "");
            problem.at(error.span().map(Place::File)).within(file, &masked)
        };
        return Err(errors.iter().map(problem).collect());
    }
    let span = table.span();
    let mut root = Node { place: Place::File(span), value: tree(table.into_inner()) };
    let mut problems = Vec::new();
    for (name, value) in environment.overrides() {
        if let Err(problem) = lay_over(&mut root, name, value) {
            problems.push(problem);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut document = Document { file: file.to_owned(), ..Document::default() };
    let mut secrets = Vec::new();
    note_places(&root, String::new(), &mut document.places, &mut secrets);
    document.masked = mask(text, &secrets);
    Ok((root, document))
}

fn tree(table: DeTable<'_>) -> Value {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let place = Place::File(key.span());
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        (key.into_owned(), Entry { key: place, node: node(value) })
    };
    Value::Table(table.into_iter().map(entry).collect())
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let place = Place::File(value.span());
    let value = match value.into_inner() {
        DeValue::Table(table) => tree(table),
        DeValue::Array(items) => Value::Array(items.into_iter().map(node).collect()),
        DeValue::String(text) => Value::Leaf(toml::Value::String(text.into_owned())),
        DeValue::Boolean(value) => Value::Leaf(toml::Value::Boolean(value)),
        DeValue::Datetime(time) => Value::Leaf(toml::Value::Datetime(time)),
        DeValue::Integer(number) => {
            let value = i64::from_str_radix(number.as_str(), number.radix());
            Value::Leaf(toml::Value::Integer(value.unwrap_or(i64::MAX)))
        }
        DeValue::Float(number) => {
            Value::Leaf(toml::Value::Float(number.as_str().parse().unwrap_or(f64::NAN)))
        }
    };
    Node { place, value }
}

/// Puts `ONCEBOX__SECTION__KEY` into the tree. Names of sources, routes and destinations have no
/// underscore, so one stands for their hyphen, which most shells do not allow in a variable.
fn lay_over(root: &mut Node, name: &str, text: &str) -> Result<(), Problem> {
    let place = Place::Variable(name.to_owned());
    let path = name[PREFIX.len()..].to_lowercase();
    let mut keys: Vec<String> = path.split("__").map(str::to_owned).collect();
    if let [section, key, ..] = keys.as_mut_slice()
        && matches!(section.as_str(), "sources" | "routes" | "destinations")
    {
        *key = key.replace('_', "-");
    }
    let odd = |what: &str| {
        Problem::error(
            format!("the environment variable {name} {what}"),
            format!("write {PREFIX}SECTION__KEY, such as {PREFIX}STORE__URL"),
        )
    };
    if keys.len() < 2 || keys.iter().any(String::is_empty) {
        return Err(odd("names no key"));
    }
    let last = keys.pop().expect("there are two keys at least");
    let mut node = root;
    for key in keys {
        let Value::Table(entries) = &mut node.value else {
            return Err(odd("goes below a value that is no table"));
        };
        let new =
            || Entry { key: place.clone(), node: Node { place: place.clone(), ..Node::table() } };
        node = &mut entries.entry(key).or_insert_with(new).node;
    }
    let Value::Table(entries) = &mut node.value else {
        return Err(odd("goes below a value that is no table"));
    };
    let value = variable(&place, text);
    entries.insert(last, Entry { key: place.clone(), node: Node { place, value } });
    Ok(())
}

/// What a variable says as TOML; text that is no TOML is itself.
fn variable(place: &Place, text: &str) -> Value {
    fn spread(place: &Place, value: toml::Value, text: Option<&str>) -> Node {
        let part = |value| spread(place, value, None);
        let value = match value {
            toml::Value::Table(table) => Value::Table(
                table
                    .into_iter()
                    .map(|(key, value)| (key, Entry { key: place.clone(), node: part(value) }))
                    .collect(),
            ),
            toml::Value::Array(items) => Value::Array(items.into_iter().map(part).collect()),
            leaf => match text {
                Some(text) => Value::Variable(leaf, text.to_owned()),
                None => Value::Leaf(leaf),
            },
        };
        Node { place: place.clone(), value }
    }
    let value = format!("value = {text}").parse::<toml::Table>().ok();
    let value = value.and_then(|mut table| table.remove("value"));
    spread(place, value.unwrap_or_else(|| toml::Value::String(text.to_owned())), Some(text)).value
}

/// Writes down where every value is, and which bytes of the file may be secrets.
fn note_places(
    node: &Node,
    path: String,
    places: &mut HashMap<String, Place>,
    secrets: &mut Vec<Range<usize>>,
) {
    match &node.value {
        Value::Table(entries) => {
            for (key, entry) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                places.insert(format!("{path}:key"), entry.key.clone());
                note_places(&entry.node, path, places, secrets);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                note_places(item, format!("{path}[{number}]"), places, secrets);
            }
        }
        Value::Leaf(toml::Value::String(text)) => {
            let reference = text.starts_with("env:") || text.starts_with("file:");
            if let Place::File(span) = &node.place {
                let address = StoreUrl::password(text).is_some() || text.contains("password=");
                if (is_telling(&path) && !reference) || address {
                    secrets.push(span.clone());
                }
            }
        }
        Value::Leaf(_) | Value::Variable(..) => {}
    }
    if !path.is_empty() {
        places.insert(path, node.place.clone());
    }
}

/// The text with secrets as asterisks, every other byte where it was.
fn mask(text: &str, secrets: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for span in secrets {
        // The quotes around a value may stay; what is inside may not.
        for byte in &mut bytes[span.clone()] {
            if !matches!(*byte, b'"' | b'\'' | b'\n') {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).expect("whole characters were replaced")
}

/// The text with everything between quotes as asterisks.
fn mask_quoted(text: &str) -> String {
    let mut quote = None;
    let mut masked = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match quote {
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            Some(open) if byte == open || byte == b'\n' => quote = None,
            Some(_) => {
                masked.push(b'*');
                continue;
            }
            None => {}
        }
        masked.push(byte);
    }
    String::from_utf8(masked).expect("whole characters were replaced")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_their_place() {
        assert_eq!(mask_quoted("a = \"bü\" # c\nb = 'd"), "a = \"***\" # c\nb = '*");
        assert_eq!(mask("s = \"bü\"", std::slice::from_ref(&(4..9))), "s = \"***\"");
    }
}
