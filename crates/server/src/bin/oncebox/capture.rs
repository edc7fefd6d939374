//! A captured HTTP request as on the wire: request line, headers, blank line, body.
//!
//! Captures come out of proxies, log files and editors, so the head is read generously and the
//! body not at all: it is exactly the bytes after the blank line.

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use oncebox_verify::Request;

/// A request read from a capture.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// What was odd about the capture, for the person who made it.
    pub(crate) notices: Vec<String>,
    /// When it was received, where that was kept.
    pub(crate) received_at: Option<Timestamp>,
}

impl Capture {
    /// Takes a capture apart. `url` is the URL as the provider saw it, where it is known; without
    /// it the request line and the `Host` header are put together.
    pub(crate) fn parse(bytes: &[u8], url: Option<&str>) -> Result<Self, String> {
        let (first, mut rest) = take_line(bytes).ok_or("the capture is empty")?;
        let (method, target) = request_line(first)?;
        let mut headers = HeaderMap::new();
        loop {
            let (line, after) = take_line(rest).ok_or(
                "the capture ends within the headers: a blank line and the body are missing",
            )?;
            rest = after;
            if line.is_empty() {
                break;
            }
            let (name, value) = header(line)?;
            headers.append(name, value);
        }
        let url = match url {
            Some(url) => url.to_owned(),
            None => absolute_url(&target, &headers),
        };
        let (body, notices) = (rest.to_vec(), Vec::new());
        let mut capture = Self { method, url, headers, body, notices, received_at: None };
        capture.fit_to_content_length();
        Ok(capture)
    }

    /// The request as the receiver saw it.
    pub(crate) fn request(&self) -> Request<'_> {
        Request { method: &self.method, url: &self.url, headers: &self.headers, body: &self.body }
    }

    /// An editor likes to end a file with a line break that was never sent. The length header
    /// knows better; without one, nothing is guessed.
    fn fit_to_content_length(&mut self) {
        if self.headers.contains_key(http::header::TRANSFER_ENCODING) {
            self.notices.push(
                "the capture has a Transfer-Encoding header; the body is taken as it stands, so \
                 chunk sizes must not be part of it"
                    .to_owned(),
            );
            return;
        }
        let Some(length) = self.headers.get(http::header::CONTENT_LENGTH) else { return };
        let Some(length) = length.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok())
        else {
            self.notices
                .push("the Content-Length header is not a number; it is passed over".into());
            return;
        };
        let here = self.body.len();
        if here < length {
            self.notices.push(format!(
                "Content-Length says {length} bytes, but only {here} are in the capture: it was \
                 cut or changed, so a signature over the whole body cannot match"
            ));
            return;
        }
        let extra = self.body.split_off(length);
        match extra.as_slice() {
            b"" => {}
            b"\n" | b"\r\n" => self.notices.push(format!(
                "a trailing newline was added by the editor; the body is the first {length} bytes"
            )),
            _ => self.notices.push(format!(
                "Content-Length says {length} bytes, but {here} follow the headers; the body is \
                 the first {length}"
            )),
        }
    }
}

/// The next line without its line break, and what follows it.
fn take_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

fn request_line(line: &[u8]) -> Result<(String, String), String> {
    let expected = "the first line must be a request line, such as `POST /in/stripe HTTP/1.1`";
    let text = std::str::from_utf8(line).map_err(|_| expected)?;
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), version, None)
            if http::Method::from_bytes(method.as_bytes()).is_ok()
                && version.is_none_or(|version| version.starts_with("HTTP/")) =>
        {
            Ok((method.to_owned(), target.to_owned()))
        }
        _ => Err(expected.to_owned()),
    }
}

fn header(line: &[u8]) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || {
        format!(
            "`{}` is no header line; headers end with a blank line",
            crate::output::shorten(&crate::output::escape_bytes(line), 60)
        )
    };
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| wrong())?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).map_err(|_| wrong())?;
    Ok((name, value))
}

/// The URL a request line and a `Host` header speak of. The scheme is not on the wire; webhooks
/// come by https.
fn absolute_url(target: &str, headers: &HeaderMap) -> String {
    let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    match host {
        Some(host) if target.starts_with('/') => {
            let proto = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok());
            let scheme = if proto == Some("http") { "http" } else { "https" };
            format!("{scheme}://{host}{target}")
        }
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_line_breaks_are_read_and_the_body_is_left_alone() {
        for capture in [
            b"POST /in/a HTTP/1.1\r\nHost: b.c\r\nX-A:  1 \r\n\r\n{\r\n}\n".as_slice(),
            b"POST /in/a HTTP/1.1\nHost: b.c\nX-A: 1\n\n{\r\n}\n".as_slice(),
        ] {
            let capture = Capture::parse(capture, None).unwrap();
            assert_eq!(
                (capture.method.as_str(), capture.url.as_str()),
                ("POST", "https://b.c/in/a")
            );
            assert_eq!(capture.headers["x-a"], "1");
            assert_eq!(capture.body, b"{\r\n}\n");
            assert!(capture.notices.is_empty());
        }
    }

    #[test]
    fn the_length_header_knows_what_an_editor_added() {
        let read = |body: &str| {
            let text = format!("POST / HTTP/1.1\nContent-Length: 2\n\n{body}");
            let capture = Capture::parse(text.as_bytes(), None).unwrap();
            (String::from_utf8(capture.body).unwrap(), capture.notices.join(";"))
        };
        assert_eq!(read("{}"), ("{}".to_owned(), String::new()));
        let (body, notice) = read("{}\n");
        assert_eq!(body, "{}");
        assert!(notice.contains("a trailing newline was added by the editor"), "{notice}");
        let (body, notice) = read("{} and more");
        assert_eq!(body, "{}");
        assert!(notice.contains("11 follow the headers"), "{notice}");
        let (body, notice) = read("{");
        assert_eq!(body, "{");
        assert!(notice.contains("only 1 are in the capture"), "{notice}");
    }

    #[test]
    fn what_is_no_capture_is_told_apart() {
        let wrong = |text: &str| Capture::parse(text.as_bytes(), None).unwrap_err();
        assert!(wrong("").contains("empty"));
        assert!(wrong("{\"id\":1}\n").contains("request line"));
        assert!(wrong("POST / HTTP/1.1\nHost: a\n").contains("blank line"));
        assert!(wrong("POST / HTTP/1.1\n\x1b[2J\n\n").contains("\\u{1b}"));
    }
}
