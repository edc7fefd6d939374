//! Event types with `*` for any text.

/// Whether a pattern takes a text: `*` stands for any text, the empty one and dots included.
/// Letters are compared as they are, since providers' types differ by case.
///
/// ```
/// use oncebox::pattern::matches;
///
/// assert!(matches("invoice.*", "invoice.paid"));
/// assert!(!matches("invoice.*", "Invoice.paid"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // Taking each middle part at its first place leaves the most for those after it.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let yes = [
            ("*", ""),
            ("*", "a.b"),
            ("a", "a"),
            ("a*", "a"),
            ("a.*", "a.b.c"),
            ("*.paid", "invoice.paid"),
            ("a*b*c", "a-b-b-c"),
            ("a**c", "abc"),
            ("ab*ba", "abba"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern, text), "{pattern} takes {text}");
        }
        let no = [("a", "ab"), ("a.*", "a"), ("*.paid", "paid."), ("aba*aba", "aba"), ("", "a")];
        for (pattern, text) in no {
            assert!(!matches(pattern, text), "{pattern} does not take {text}");
        }
    }
}
