//! PEM: bytes in base64 between two lines that say what they are.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT};
use zeroize::Zeroizing;

/// The longest text that is read: a chain of certificates.
pub(crate) const PEM_BYTES_MAX: usize = 128 * 1024;

/// How many blocks of one text are read.
const BLOCKS_MAX: usize = 16;

/// One block.
pub(crate) struct Block<'a> {
    /// What it is, such as `PUBLIC KEY`.
    pub(crate) label: &'a str,
    pub(crate) der: Zeroizing<Vec<u8>>,
}

/// The blocks of a text, in their order; none if one of them cannot be read.
///
/// Line breaks may be missing, as eBay sends it, or written `\n`, as in many environment
/// variables.
pub(crate) fn blocks(text: &str) -> Option<Vec<Block<'_>>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, begun)) = rest.split_once("-----BEGIN ") {
        let (label, body) = begun.split_once("-----")?;
        let (body, end) = body.split_once("-----END ")?;
        rest = end.strip_prefix(label)?.strip_prefix("-----")?;
        let body = Zeroizing::new(body.replace("\\n", " ").split_whitespace().collect::<String>());
        let der = Zeroizing::new(STANDARD_PAD_INDIFFERENT.decode(body.as_bytes()).ok()?);
        if text.len() > PEM_BYTES_MAX || blocks.len() == BLOCKS_MAX {
            return None;
        }
        blocks.push(Block { label, der });
    }
    Some(blocks)
}

/// Whether a text says that it is PEM. Such a text is never a shared secret.
pub(crate) fn is_pem(text: &str) -> bool {
    text.contains("-----BEGIN ")
}

/// Bytes as a block.
pub(crate) fn print(label: &str, der: &[u8]) -> String {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        for len in [0, 1, 47, 48, 49, 200] {
            let der = vec![7; len];
            let text = print("PUBLIC KEY", &der);
            let [block] = &blocks(&text).unwrap()[..] else { panic!("one block") };
            assert_eq!((block.label, block.der.as_slice()), ("PUBLIC KEY", der.as_slice()));
        }
    }

    #[test]
    fn line_breaks_may_be_lost_or_spelled() {
        let text = print("A", &[7; 100]);
        for text in [text.replace('\n', ""), text.replace('\n', "\\n"), format!("x\n{text}y")] {
            assert_eq!(blocks(&text).unwrap()[0].der.as_slice(), [7; 100]);
        }
    }

    #[test]
    fn what_is_cut_or_mixed_up_is_refused() {
        let text = print("A", &[7; 100]);
        assert!(blocks(&text[..text.len() - 10]).is_none());
        assert!(blocks(&text.replace("END A", "END B")).is_none());
        assert!(blocks(&text.replace("Bw", "B!")).is_none());
        assert!(blocks(&text.repeat(BLOCKS_MAX + 1)).is_none());
        assert_eq!(blocks(&text.repeat(BLOCKS_MAX)).unwrap().len(), BLOCKS_MAX);
        assert!(blocks("no PEM").unwrap().is_empty());
    }
}
