//! Atlassian's canonical request, whose hash is the claim `qsh`.

use std::collections::BTreeMap;

use crate::request::Request;

/// `METHOD&path&query`: the path below that of the base URL, the query sorted and without the
/// token itself.
pub(super) fn canonical(request: &Request<'_>, base_url: Option<&str>) -> String {
    let (path, query) = split(request.path_and_query());
    let base = base_url.map_or("", |url| split(path_of(url)).0).trim_end_matches('/');
    let below = path.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = below.unwrap_or(path).trim_end_matches('/');
    let path = if path.is_empty() { "/".to_owned() } else { path.replace('&', "%26") };

    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "jwt" {
            values.entry(encode(&name)).or_default().push(encode(&value));
        }
    }
    let query: Vec<String> = values
        .into_iter()
        .map(|(name, mut values)| {
            values.sort();
            format!("{name}={}", values.join(","))
        })
        .collect();
    format!("{}&{path}&{}", request.method.to_ascii_uppercase(), query.join("&"))
}

fn split(path_and_query: &str) -> (&str, &str) {
    path_and_query.split_once('?').unwrap_or((path_and_query, ""))
}

/// What follows the host of a URL.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |at| &rest[at..])
}

/// Percent-encoding as RFC 3986 has it: only letters, digits and `-._~` stay.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, url: &str, base_url: Option<&str>, expected: &str) {
        let headers = http::HeaderMap::new();
        let request = Request { method, url, headers: &headers, body: b"" };
        assert_eq!(canonical(&request, base_url), expected);
    }

    #[test]
    fn the_query_is_sorted_and_encoded_in_one_way() {
        check(
            "get",
            "/path/to/service?zee_last=param&repeated=parameter+2&first=param&repeated=parameter 1",
            None,
            "GET&/path/to/service&first=param&repeated=parameter%201,parameter%202&zee_last=param",
        );
        check("POST", "https://a.test/in/jira?jwt=abc&a=%2A~+b", None, "POST&/in/jira&a=%2A~%20b");
        check("POST", "/in/a&b/", None, "POST&/in/a%26b&");
        check("POST", "/", None, "POST&/&");
    }

    #[test]
    fn the_path_is_the_one_below_the_base_url() {
        let base = Some("https://a.test/app/");
        check("POST", "https://a.test/app/in/jira?a=1", base, "POST&/in/jira&a=1");
        check("POST", "https://a.test/app", base, "POST&/&");
        check("POST", "https://a.test/application", base, "POST&/application&");
        check("POST", "https://a.test/in/jira", Some("https://a.test"), "POST&/in/jira&");
    }
}
