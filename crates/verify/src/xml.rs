//! XML payloads: read with limits, without entities of their own, by the names of elements.

use std::borrow::Cow;

use roxmltree::{Document, Node, ParsingOptions};

use crate::batch::ITEMS_MAX;
use crate::look::DEPTH_MAX;
use crate::malformed::Malformed;
use crate::payload::Seen;

/// The largest payload that is read.
const BYTES_MAX: usize = 4 << 20;

/// The longest tag with its attributes, which are compared with each other.
const TAG_BYTES_MAX: usize = 16 << 10;

const NODES_MAX: u32 = 500_000;

/// Reads a document. Types declared in it are refused: entities are how small documents grow, and
/// how they reach for files.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, Malformed> {
    check_size(text)?;
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| Malformed::NotXml {
        why: match error {
            roxmltree::Error::DtdDetected => "it declares a type",
            roxmltree::Error::NodesLimitReached => "it has too many elements",
            _ => "it is not well-formed",
        },
    })
}

/// Bounds what the parser may be asked to do. What only looks like a tag, inside a comment or
/// text marked as such, counts too; no provider comes near.
fn check_size(text: &str) -> Result<(), Malformed> {
    if text.len() > BYTES_MAX {
        return Err(Malformed::NotXml { why: "it is too large" });
    }
    let mut depth = 0_usize;
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or((tag, ""));
        match tag.as_bytes().first() {
            Some(b'!' | b'?') => continue,
            Some(b'/') => depth = depth.saturating_sub(1),
            _ if tag.len() > TAG_BYTES_MAX => {
                return Err(Malformed::NotXml { why: "a tag is too long" });
            }
            _ if tag.ends_with('/') => {}
            _ => depth += 1,
        }
        if depth > DEPTH_MAX {
            return Err(Malformed::TooDeep { limit: DEPTH_MAX });
        }
    }
    Ok(())
}

/// What the element on a path below `node` says: names without prefixes, `*` for any.
pub(crate) fn seen(node: Node<'_, '_>, path: &str) -> Result<Option<Seen<'static>>, Malformed> {
    let Some(element) = one(node, path)? else { return Ok(None) };
    let mut texts = element.children();
    Ok(Some(match (texts.next(), texts.next()) {
        (None, _) => Seen::Null,
        (Some(text), None) if text.is_text() => {
            Seen::Text(Cow::Owned(text.text().unwrap_or_default().to_owned()))
        }
        _ => Seen::Other,
    }))
}

/// The one element on a path. Readers disagree about which of two counts, so there is only one;
/// where any name does, it is the first that has the rest of the path.
fn one<'a, 'i>(node: Node<'a, 'i>, path: &str) -> Result<Option<Node<'a, 'i>>, Malformed> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (name, rest) = path.split_once('/').unwrap_or((path, ""));
    let mut named = named(node, name);
    let Some(first) = named.next() else { return Ok(None) };
    if name == "*" && !rest.is_empty() {
        for element in std::iter::once(first).chain(named) {
            if let Some(found) = one(element, rest)? {
                return Ok(Some(found));
            }
        }
        return Ok(None);
    }
    if named.next().is_some() {
        return Err(Malformed::DuplicateKey { key: name.to_owned() });
    }
    if rest.is_empty() { Ok(Some(first)) } else { one(first, rest) }
}

fn named<'a, 'i>(node: Node<'a, 'i>, name: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    let fits = move |child: &Node<'_, '_>| name == "*" || child.tag_name().name() == name;
    node.children().filter(Node::is_element).filter(fits)
}

/// The elements at a path, of which the last name may be there often; none if what should hold
/// them is not there.
pub(crate) fn elements<'a, 'i>(
    root: Node<'a, 'i>,
    path: &str,
) -> Result<Option<Vec<Node<'a, 'i>>>, Malformed> {
    let (holder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let holder = if holder.is_empty() { Some(root) } else { one(root, holder)? };
    let Some(holder) = holder else { return Ok(None) };
    let elements: Vec<_> = named(holder, name).take(ITEMS_MAX + 1).collect();
    if elements.len() > ITEMS_MAX {
        return Err(Malformed::TooManyEvents { limit: ITEMS_MAX });
    }
    Ok(Some(elements))
}

/// Writes the text of the element on a path; adds that as the last one where only what should
/// hold it is there. Of several that a batch may have, the first is meant.
pub(crate) fn put(xml: &mut String, path: &str, text: &str) {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    let Ok(document) = parse(xml) else { return };
    let mut at = document.root();
    let mut names = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let (range, inside) = match (named(at, name).next(), is_last) {
            (Some(next), false) => {
                at = next;
                continue;
            }
            (Some(element), true) => {
                let tag = &xml[element.range()];
                let name = tag.trim_start_matches('<').split([' ', '>', '/', '\n']).next();
                let name = name.unwrap_or_default();
                let open = tag.find('>').map_or("", |end| tag[..end].trim_end_matches('/'));
                (element.range(), format!("{open}>{escaped}</{name}>"))
            }
            (None, true) => {
                let end = xml[..at.range().end].rfind("</").unwrap_or_default();
                (end..end, format!("<{name}>{escaped}</{name}>"))
            }
            (None, false) => return,
        };
        xml.replace_range(range, &inside);
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(xml: &str, path: &str) -> Result<Option<String>, Malformed> {
        let document = parse(xml)?;
        Ok(match seen(document.root(), path)? {
            Some(Seen::Text(text)) => Some(text.into_owned()),
            Some(Seen::Null) => Some(String::new()),
            Some(Seen::Other) => Some("?".to_owned()),
            None => None,
        })
    }

    #[test]
    fn a_path_leads_through_names_whatever_their_prefix() {
        let xml = r#"<s:a xmlns:s="urn:s"><b x="1">one</b><s:c>two &amp; 3</s:c><d/></s:a>"#;
        assert_eq!(read(xml, "a/b"), Ok(Some("one".to_owned())));
        assert_eq!(read(xml, "/a/c"), Ok(Some("two & 3".to_owned())));
        assert_eq!(read(xml, "a/d"), Ok(Some(String::new())));
        assert_eq!(read(xml, "a"), Ok(Some("?".to_owned())));
        assert_eq!(read(xml, "a/e"), Ok(None));
        assert_eq!(read(xml, "b"), Ok(None));
        let subject = "<n><s><t><x/></t><u><id>7</id></u></s></n>";
        assert_eq!(read(subject, "n/s/*/id"), Ok(Some("7".to_owned())));
    }

    /// `<id>a<!-- -->b</id>` is `a` to one reader and `ab` to another.
    #[test]
    fn what_readers_disagree_about_is_no_text() {
        assert_eq!(read("<a><id>x<!-- -->y</id></a>", "a/id"), Ok(Some("?".to_owned())));
        assert_eq!(
            read("<a><id>x</id><id>y</id></a>", "a/id").unwrap_err().code(),
            "duplicate_key"
        );
        assert_eq!(read("<a><b/><b/></a>", "a/b/c").unwrap_err().code(), "duplicate_key");
    }

    #[test]
    fn hostile_documents_are_refused() {
        let laughs = "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>";
        let file = "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>";
        let deep = "<a>".repeat(200) + &"</a>".repeat(200);
        let wide = format!("<a>{}</a>", "<b/>".repeat(500_001));
        let attributes: String = (0..5000).map(|n| format!("a{n}='' ")).collect();
        let long = format!("<a {attributes}/>");
        let large = format!("<a>{}</a>", " ".repeat(BYTES_MAX));
        for xml in
            [laughs, file, &wide, &long, &large, "", "<a>", "<a></b>", "a", "<a/><b/>", "&x;"]
        {
            assert_eq!(read(xml, "a").unwrap_err().code(), "not_xml", "{xml:.40}");
        }
        assert_eq!(read(&deep, "a").unwrap_err().code(), "too_deep");
    }
}
