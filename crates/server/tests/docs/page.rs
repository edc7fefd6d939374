//! Pages and their parts.

use std::fs;
use std::path::{Path, PathBuf};

use oncebox_server::config::{Config, Environment};

/// One page of the documentation.
pub(crate) struct Page {
    /// Its path from the root of the repository.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A fenced block.
pub(crate) struct Block {
    pub(crate) language: String,
    /// The words after the language.
    pub(crate) tags: Vec<String>,
    pub(crate) text: String,
    /// The line of its first fence, from 1.
    pub(crate) line: usize,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page there is.
pub(crate) fn pages() -> Vec<Page> {
    let markdown = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name.ends_with(".md"));
        names.map(|name| Path::new(folder).join(name).display().to_string()).collect::<Vec<_>>()
    };
    let mut names = [markdown(""), markdown("docs")].concat();
    names.sort();
    assert!(names.len() >= 10, "found only {names:?}");
    names.iter().map(|name| page(name)).collect()
}

/// The page of that name.
pub(crate) fn page(name: &str) -> Page {
    let text = fs::read_to_string(root().join(name)).unwrap_or_else(|_| panic!("no {name}"));
    Page { name: name.to_owned(), text }
}

impl Page {
    /// Its fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (number, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), open.as_mut()) {
                (Some(info), None) => {
                    let mut words = info.split_whitespace().map(str::to_owned);
                    open = Some(Block {
                        language: words.next().unwrap_or_default(),
                        tags: words.collect(),
                        text: String::new(),
                        line: number + 1,
                    });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => block.text.push_str(&format!("{line}\n")),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name);
        blocks
    }

    /// Everything outside the blocks.
    pub(crate) fn prose(&self) -> String {
        let mut inside = false;
        let mut prose = String::new();
        for line in self.text.lines() {
            inside ^= line.starts_with("```");
            if !inside && !line.starts_with("```") {
                prose.push_str(line);
                prose.push('\n');
            }
        }
        prose
    }

    /// The rows of the tables below a heading, each a list of cells, heads and rulers left out.
    pub(crate) fn rows_below(&self, heading: &str) -> Vec<Vec<String>> {
        let at = format!("\n{heading}\n");
        let (_, below) =
            self.text.split_once(&at).unwrap_or_else(|| panic!("{}: no `{heading}`", self.name));
        let level = heading.bytes().take_while(|byte| *byte == b'#').count();
        let is_next = |line: &&str| {
            let marks = line.bytes().take_while(|byte| *byte == b'#').count();
            marks > 0 && marks <= level
        };
        let lines: Vec<&str> = below.lines().take_while(|line| !is_next(line)).collect();
        let is_row = |n: &usize| {
            let next = lines.get(n + 1).copied().unwrap_or_default();
            lines[*n].starts_with("| ") && !next.starts_with("|--")
        };
        let cells = |line: &str| {
            let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
            inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
        };
        (0..lines.len()).filter(is_row).map(|n| cells(lines[n])).collect()
    }
}

impl Block {
    pub(crate) fn has(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// The value of a tag such as `exit=4`.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.tags.iter().find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='))
    }
}

/// The `code` within a text.
pub(crate) fn spans(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let folder = root().join(&page.name).parent().unwrap().to_owned();
        let prose = page.prose();
        for link in prose.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            if target.starts_with("https://") {
                continue;
            }
            let file = target.split('#').next().unwrap();
            assert!(folder.join(file).exists(), "{}: {target} leads nowhere", page.name);
        }
    }
}

#[test]
fn configurations_can_be_read() {
    let mut read = 0;
    for page in pages() {
        for block in page.blocks() {
            if block.language != "toml" || block.has("fragment") {
                continue;
            }
            let name = format!("{} line {}", page.name, block.line);
            let parsed = Config::parse(&name, &block.text, Environment::default());
            parsed.unwrap_or_else(|error| panic!("{}", error.render(false)));
            read += 1;
        }
    }
    assert!(read >= 8, "only {read} configurations were found");
}
