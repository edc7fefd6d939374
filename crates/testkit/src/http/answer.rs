//! An HTTP/1.1 response, read from bytes as they come.

use std::io;

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names, in lower case, and values, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is not; the whole answer is in the message.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body {:?} of {self:?}", self.text()))
    }

    /// Whether the server keeps the connection open.
    pub fn keeps_alive(&self) -> bool {
        !self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The first final answer in `bytes` and its length, or none while it is incomplete. `ended`
/// says that no more bytes will come.
pub(super) fn parse(bytes: &[u8], ended: bool) -> io::Result<Option<(Answer, usize)>> {
    let mut start = 0;
    loop {
        let Some((mut answer, head)) = parse_head(&bytes[start..])? else {
            return unfinished(ended, bytes);
        };
        start += head;
        // An interim answer has no body, and the final one follows.
        if (100..200).contains(&answer.status) {
            continue;
        }
        let Some((body, length)) = parse_body(&answer, &bytes[start..], ended)? else {
            return unfinished(ended, bytes);
        };
        answer.body = body;
        return Ok(Some((answer, start + length)));
    }
}

fn unfinished<T>(ended: bool, bytes: &[u8]) -> io::Result<Option<T>> {
    if !ended {
        return Ok(None);
    }
    let seen = String::from_utf8_lossy(bytes).into_owned();
    let kind = io::ErrorKind::UnexpectedEof;
    Err(io::Error::new(kind, format!("the connection closed amid an answer: {seen:?}")))
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| malformed("the head"))?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok())
        .ok_or_else(|| malformed(text))?;
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| malformed(line))?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect::<io::Result<_>>()?;
    Ok(Some((Answer { status, headers, body: Vec::new() }, end + 4)))
}

fn parse_body(head: &Answer, bytes: &[u8], ended: bool) -> io::Result<Option<(Vec<u8>, usize)>> {
    if matches!(head.status, 204 | 304) {
        return Ok(Some((Vec::new(), 0)));
    }
    if head.header("transfer-encoding").is_some() {
        return parse_chunks(bytes);
    }
    let Some(length) = head.header("content-length") else {
        return Ok(ended.then(|| (bytes.to_vec(), bytes.len())));
    };
    let length: usize = length.parse().map_err(|_| malformed(length))?;
    Ok(bytes.get(..length).map(|body| (body.to_vec(), length)))
}

fn parse_chunks(bytes: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let (mut body, mut start) = (Vec::new(), 0);
    loop {
        let rest = &bytes[start..];
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else {
            return Ok(None);
        };
        let size = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|text| usize::from_str_radix(text.split(';').next()?.trim(), 16).ok())
            .ok_or_else(|| malformed("a chunk's size"))?;
        let Some(chunk) = rest.get(line + 2..line + 2 + size + 2) else {
            return Ok(None);
        };
        body.extend_from_slice(&chunk[..size]);
        start += line + 2 + size + 2;
        if size == 0 {
            return Ok(Some((body, start)));
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP/1.1 answer: {what:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cut of the bytes is either incomplete or the same answer.
    #[test]
    fn an_answer_is_the_same_however_its_bytes_arrive() {
        for (bytes, body) in [
            ("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok", "ok"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x\r\n!\r\n0\r\n\r\n",
                "ok!",
            ),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", ""),
        ] {
            let whole = bytes.as_bytes();
            for end in 0..whole.len() {
                assert_eq!(parse(&whole[..end], false).unwrap(), None, "{end} of {bytes:?}");
            }
            let followed = [whole, b"HTTP"].concat();
            let (answer, length) = parse(&followed, false).unwrap().unwrap();
            assert_eq!((answer.text().as_str(), length), (body, whole.len()));
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let bytes = b"HTTP/1.0 500 Oh\r\nA: b\r\n\r\nall";
        assert_eq!(parse(bytes, false).unwrap(), None);
        let (answer, _) = parse(bytes, true).unwrap().unwrap();
        assert_eq!(
            (answer.status, answer.header("a"), answer.text().as_str()),
            (500, Some("b"), "all")
        );
    }

    #[test]
    fn a_connection_that_closes_early_is_an_error() {
        let error = parse(b"HTTP/1.1 200 OK\r\nContent-Le", true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(parse(b"SSH-2.0\r\n\r\n", false).is_err());
    }
}
