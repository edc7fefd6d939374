//! Finding a field in a multipart body.

/// The longest boundary, with the dashes in front of it.
const BOUNDARY_BYTES_MAX: usize = 72;

/// The value of the one field of that name; none where there is none, or several, or where the
/// body is no multipart one.
///
/// The content type that should tell the boundary is not signed, so it is not asked: the first
/// line of the body is the boundary.
pub(crate) fn field<'a>(body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let end = find(body, b"\r\n")?;
    let (boundary, mut rest) = (&body[..end], &body[end + 2..]);
    if !boundary.starts_with(b"--") || !(3..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) {
        return None;
    }
    let delimiter = [b"\r\n", boundary].concat();
    let mut found = None;
    loop {
        let end = find(rest, &delimiter)?;
        let (part, after) = (&rest[..end], &rest[end + delimiter.len()..]);
        let head = find(part, b"\r\n\r\n")?;
        if is_named(&part[..head], name) && found.replace(&part[head + 4..]).is_some() {
            return None;
        }
        if after.starts_with(b"--") {
            return found;
        }
        rest = after.strip_prefix(b"\r\n")?;
    }
}

/// Whether the head of a part gives it that name.
fn is_named(head: &[u8], name: &str) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let disposition = lines.find(|(key, _)| key.eq_ignore_ascii_case("content-disposition"));
    disposition.is_some_and(|(_, value)| {
        let parameters = value.split(';').filter_map(|parameter| parameter.trim().split_once('='));
        let mut named = parameters.filter(|(key, _)| key.eq_ignore_ascii_case("name"));
        named.next().is_some_and(|(_, value)| value.trim_matches('"') == name)
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n1\r\n\
        --x\r\ncontent-disposition: form-data; name=\"json\"\r\nContent-Type: text/plain\r\n\r\n\
        {\"a\":\r\n1}\r\n--x--\r\n";

    #[test]
    fn a_field_is_found_by_its_name() {
        assert_eq!(field(BODY, "json"), Some(b"{\"a\":\r\n1}".as_slice()));
        assert_eq!(field(BODY, "other"), Some(b"1".as_slice()));
        assert_eq!(field(BODY, "Json"), None);
    }

    #[test]
    fn what_is_cut_off_or_there_twice_is_not_found() {
        for end in 0..BODY.len() - 4 {
            assert_eq!(field(&BODY[..end], "json"), None, "{end}");
        }
        let twice = String::from_utf8_lossy(BODY).replace("other", "json");
        assert_eq!(field(twice.as_bytes(), "json"), None);
        for other in [b"".as_slice(), b"{}", b"a=b", b"--", b"\r\n", b"--\r\n--\r\n"] {
            assert_eq!(field(other, "json"), None);
        }
    }
}
