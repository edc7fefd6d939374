//! The usual mistakes, each tried out. A try that makes the signature match is proof.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::json_text::{Space, ascii_only, respace};
use crate::catalogue;
use crate::provider::{
    Algorithm, Encoding, Field, Identity, KeyForm, Part, Place, Provider, Scheme, Signature, Stamp,
};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::secret::{Keyring, Secret};
use crate::special::twilio;
use crate::verify::{header, is_present, labelled, separated, verify};

/// A request that was refused, and what it was checked with.
pub(super) struct Trial<'t> {
    pub(super) provider: &'t Provider,
    pub(super) keyring: &'t Keyring,
    pub(super) request: &'t Request<'t>,
    pub(super) received_at: Timestamp,
}

impl Trial<'_> {
    /// Whether the proof holds with something changed, whatever the time.
    fn holds(&self, provider: &Provider, keyring: &Keyring, request: &Request<'_>) -> bool {
        match verify(provider, keyring, request, self.received_at) {
            Ok(_) => true,
            Err(rejection) => rejection.is_about_time(),
        }
    }

    fn holds_with_body(&self, body: &[u8]) -> bool {
        body != self.request.body
            && self.holds(self.provider, self.keyring, &Request { body, ..*self.request })
    }

    /// Whether the proof holds with other rules for its HMAC, and the same secrets.
    fn holds_with_rules(&self, change: impl Fn(&mut Signature)) -> bool {
        let mut provider = self.provider.clone();
        for scheme in provider.schemes.to_mut() {
            if let Scheme::Signature(hmac) = scheme {
                change(hmac);
            }
        }
        self.keyring.secrets().iter().any(|secret| {
            let keyring = Keyring::new(&provider, vec![secret.clone()]);
            keyring.is_ok_and(|keyring| self.holds(&provider, &keyring, self.request))
        })
    }

    /// The rules that decided about the request.
    fn hmac(&self) -> Option<&Signature> {
        let mut present = self.provider.schemes.iter();
        let decided = present.find(|scheme| is_present(scheme, self.request))?.signature()?;
        (!decided.algorithm.is_asymmetric()).then_some(decided)
    }
}

/// Advice about a rejection: proven mistakes first, then what the request looks like.
pub(super) fn find(trial: &Trial<'_>, rejection: &Rejection) -> Vec<String> {
    if rejection.is_about_time() {
        return about_time(trial, rejection);
    }
    let mut advice = Vec::new();
    if let Rejection::NoKnownScheme { .. } = rejection {
        advice.extend(other_kind(trial));
    }
    advice.extend(body_changed(trial));
    advice.extend(secret_misread(trial));
    advice.extend(written_otherwise(trial));
    advice.extend(template_differs(trial));
    advice.extend(url_differs(trial));
    advice.extend(other_provider(trial));
    if let Rejection::BadTimestamp { .. } = rejection {
        advice.extend(milliseconds(trial));
    }
    advice
}

fn about_time(trial: &Trial<'_>, rejection: &Rejection) -> Vec<String> {
    let mut advice: Vec<String> = milliseconds(trial).into_iter().collect();
    match rejection {
        _ if !advice.is_empty() => {}
        Rejection::TimestampTooOld { age_secs, .. } => advice.push(format!(
            "the signature is right and {age_secs} s old: an old capture must be checked as of \
             its own time, and if every request is late, our clock is ahead"
        )),
        Rejection::TimestampTooNew { ahead_secs, .. } => advice.push(format!(
            "the signature is right and {ahead_secs} s ahead: check time synchronisation, for our \
             clock seems to be behind"
        )),
        _ => {}
    }
    advice
}

/// A time with thirteen digits is in milliseconds, whatever the settings say.
fn milliseconds(trial: &Trial<'_>) -> Option<String> {
    let Stamp { place, .. } = trial.hmac()?.timestamp.as_ref()?;
    let text = match place {
        Place::Header(name) => header(trial.request.headers, name).ok()?,
        Place::Label { header: name, label, separators } => {
            labelled(header(trial.request.headers, name).ok()?, separators, label).next()?
        }
        _ => return None,
    };
    let is_milliseconds = text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_milliseconds.then(|| {
        "the timestamp is in milliseconds; this provider is set to seconds (timestamp_format)"
            .to_owned()
    })
}

fn body_changed(trial: &Trial<'_>) -> Option<String> {
    let body = trial.request.body;
    let longer = [body, b"\n"].concat();
    let trimmed = body.trim_ascii_end();
    let lf = replace(body, b"\r\n", b"\n");
    let crlf = replace(&lf, b"\n", b"\r\n");
    let unbroken: [(&[u8], &str); 5] = [
        (trimmed, "a line break or space was added at the end of the body"),
        (&longer, "a line break at the end of the body was removed"),
        (&lf, "the line breaks in the body were changed from LF to CRLF"),
        (&crlf, "the line breaks in the body were changed from CRLF to LF"),
        (body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body), "a byte order mark was added"),
    ];
    if let Some((_, what)) = unbroken.iter().find(|(body, _)| trial.holds_with_body(body)) {
        return Some(format!("{what} on the way: the signature matches without that"));
    }
    let text = std::str::from_utf8(body).ok()?;
    let compact = respace(text, Space::Compact);
    let spaced = respace(text, Space::Spaced);
    let rewritten = [
        (compact.clone(), "without spaces"),
        (spaced.clone(), "with a space after commas and colons"),
        (respace(text, Space::Indented(2)), "indented by two"),
        (respace(text, Space::Indented(4)), "indented by four"),
        (ascii_only(&compact), "without spaces and with \\u escapes"),
        (ascii_only(&spaced), "with spaces and with \\u escapes"),
        (compact.replace('/', "\\/"), "without spaces and with escaped slashes"),
        (compact.replace("\\/", "/"), "without escaped slashes"),
    ];
    let (_, how) = rewritten.iter().find(|(body, _)| trial.holds_with_body(body.as_bytes()))?;
    Some(format!(
        "the body was parsed and re-encoded before it reached you: the signature matches it \
         written {how}. Pass on the raw bytes"
    ))
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        match rest.strip_prefix(from) {
            Some(after) => {
                out.extend_from_slice(to);
                rest = after;
            }
            None => {
                out.push(first);
                rest = &rest[1..];
            }
        }
    }
    out
}

/// A signature of a kind that the provider makes and for which no key is set.
fn other_kind(trial: &Trial<'_>) -> Option<String> {
    let mut keyless = trial.provider.schemes.iter().enumerate();
    keyless.find_map(|(number, scheme)| {
        let signature = scheme.signature()?;
        let sent = header(trial.request.headers, scheme.header()?).ok()?;
        let found = separated(sent, signature.separator?, &signature.prefix);
        if found.is_empty() || !trial.keyring.keys(number).is_empty() {
            return None;
        }
        let needed = match signature.key {
            KeyForm::Whpk => "the public key, which starts with `whpk_`",
            _ => "the shared secret, which starts with `whsec_`",
        };
        Some(format!("the signature sent is `{}`: to check it, add {needed}", signature.prefix))
    })
}

fn secret_misread(trial: &Trial<'_>) -> Option<String> {
    for (number, secret) in trial.keyring.secrets().iter().enumerate() {
        let text = secret.expose();
        let unquoted = text.trim_matches(['"', '\'', '`']);
        let bare = text.strip_prefix("whsec_").unwrap_or(text);
        let variants = [
            (unquoted.to_owned(), "without the quotes around it"),
            (bare.to_owned(), "without its `whsec_`"),
            (format!("whsec_{text}"), "with `whsec_` in front"),
        ];
        for (variant, how) in variants {
            if variant == text {
                continue;
            }
            let keyring = Keyring::new(trial.provider, vec![Secret::new(variant)]);
            if keyring.is_ok_and(|keyring| trial.holds(trial.provider, &keyring, trial.request)) {
                return Some(format!("secret {} is right {how}", number + 1));
            }
        }
    }
    let readings = [
        (KeyForm::Text, "the secret is taken as text, not decoded"),
        (KeyForm::Whsec, "the secret is decoded as base64, after `whsec_` if it has one"),
        (KeyForm::Hex, "the secret is decoded as hex"),
    ];
    let (_, how) =
        readings.iter().find(|(key, _)| trial.holds_with_rules(|hmac| hmac.key = key.clone()))?;
    Some(format!("the signature matches if {how}: is this the right provider (secret_encoding)?"))
}

/// Another encoding, prefix or hash than the entry says.
fn written_otherwise(trial: &Trial<'_>) -> Option<String> {
    let hmac = trial.hmac()?;
    let scheme = Scheme::Signature(hmac.clone());
    let sent = scheme.header().and_then(|name| header(trial.request.headers, name).ok());
    let sent = sent.unwrap_or_default();
    // What stands before the signature, if it ends in `=` or `,` as all of them do.
    let before = sent.find(['=', ',']).map_or("", |end| &sent[..=end]);
    let encodings = [Encoding::HexAnyCase, Encoding::Base64, Encoding::Base64Url];
    let algorithms = [Algorithm::HmacSha256, Algorithm::HmacSha1, Algorithm::HmacSha512];
    for prefix in ["", before, &hmac.prefix] {
        for (encoding, algorithm) in
            encodings.iter().flat_map(|e| algorithms.iter().map(move |a| (*e, *a)))
        {
            let matches = trial.holds_with_rules(|hmac| {
                hmac.prefix = Cow::Owned(prefix.to_owned());
                (hmac.encoding, hmac.algorithm) = (encoding, algorithm);
            });
            if matches {
                let prefix = match prefix {
                    "" => "no prefix".to_owned(),
                    prefix => format!("the prefix `{}`", prefix.escape_debug()),
                };
                let encoding = match encoding {
                    Encoding::Base64 | Encoding::Base64OfHex | Encoding::Base64Percent => "base64",
                    Encoding::Base64Url => "base64url",
                    Encoding::Hex | Encoding::HexUpper | Encoding::HexAnyCase => "hex",
                };
                return Some(format!(
                    "the signature is right, but it is {} in {encoding} with {prefix}, which is \
                     not what this provider is set to",
                    algorithm.name()
                ));
            }
        }
    }
    None
}

fn template_differs(trial: &Trial<'_>) -> Option<String> {
    let stamped = trial.hmac()?.timestamp.is_some();
    let text = |text: &'static str| Part::Text(Cow::Borrowed(text));
    let mut templates = vec![("{body}", vec![Part::Body])];
    if stamped {
        for (name, between) in [("{timestamp}.{body}", "."), ("{timestamp}:{body}", ":")] {
            templates.push((name, vec![Part::Timestamp, text(between), Part::Body]));
        }
        templates.push(("{timestamp}{body}", vec![Part::Timestamp, Part::Body]));
        templates.push(("{body}{timestamp}", vec![Part::Body, Part::Timestamp]));
        let slack = vec![text("v0:"), Part::Timestamp, text(":"), Part::Body];
        templates.push(("v0:{timestamp}:{body}", slack));
    } else {
        templates.push(("{url}{body}", vec![Part::Url, Part::Body]));
    }
    let matches =
        |parts: &Vec<Part>| trial.holds_with_rules(|hmac| hmac.signed = Cow::Owned(parts.clone()));
    let (name, _) = templates.iter().find(|(_, parts)| matches(parts))?;
    Some(format!(
        "the signature matches if `{name}` is what is signed: is this the right provider?"
    ))
}

fn url_differs(trial: &Trial<'_>) -> Option<String> {
    if !trial.provider.signs_url() || !is_present_any(trial) {
        return None;
    }
    let url = trial.request.url;
    if !url.contains("://") {
        return Some(
            "the URL is signed: give the full public URL that the provider calls".to_owned(),
        );
    }
    let (path, query) = url.split_once('?').map_or((url, ""), |(path, query)| (path, query));
    let with_query = |path: &str| match query {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let slash = match path.strip_suffix('/') {
        Some(bare) => with_query(bare),
        None => with_query(&format!("{path}/")),
    };
    let scheme = match url.strip_prefix("http://") {
        Some(rest) => format!("https://{rest}"),
        None => url.replacen("https://", "http://", 1),
    };
    let variants = [
        (slash, "by the slash at its end"),
        (scheme.clone(), "by http and https"),
        (twilio::other_port(&scheme).unwrap_or_default(), "by http and https, and the port"),
        (twilio::other_port(url).unwrap_or_default(), "by the port"),
        (path.to_owned(), "by its query"),
    ];
    let (_, how) = variants.iter().find(|(url, _)| {
        trial.holds(trial.provider, trial.keyring, &Request { url, ..*trial.request })
    })?;
    Some(format!("the URL that was signed differs from yours {how}: set the public URL exactly"))
}

fn is_present_any(trial: &Trial<'_>) -> bool {
    trial.provider.schemes.iter().any(|scheme| is_present(scheme, trial.request))
}

/// How many providers are named for one request.
const NAMED_MAX: usize = 3;

/// Signs of another provider: its headers, perhaps even a signature that is right.
fn other_provider(trial: &Trial<'_>) -> Option<String> {
    // Specifications, and those whose header others took over.
    const SPECIFICATIONS: [&str; 2] = ["standard-webhooks", "svix"];
    const MODELS: [&str; 2] = ["github", "meta"];
    let is_specification = |other: &Provider| SPECIFICATIONS.contains(&other.name.as_ref());
    let is_model = |other: &Provider| MODELS.contains(&other.name.as_ref());
    let is_other = |other: &&Provider| {
        other.name != trial.provider.name && !["hmac", "token"].contains(&other.name.as_ref())
    };
    let mut others: Vec<&'static Provider> =
        catalogue::ALL.iter().copied().filter(is_other).collect();
    // Many share a header for the signature, so whoever reads more of the headers comes first;
    // among equals those that the others follow.
    let shared = |other: &&Provider| Reverse(headers_in(other, trial.request).len());
    others.sort_by_cached_key(|other| (shared(other), !is_specification(other), !is_model(other)));

    let secrets = || trial.keyring.secrets().to_vec();
    let holds = |other: &&&Provider| {
        let keyring = Keyring::new(other, secrets());
        keyring.is_ok_and(|keyring| trial.holds(other, &keyring, trial.request))
    };
    if let Some(other) = others.iter().find(holds) {
        return Some(format!("this verifies as `{}`: set the source to that", other.name));
    }
    let ours: Vec<_> = trial.provider.schemes.iter().filter_map(Scheme::header).collect();
    let proof = |other: &'static Provider| {
        let mut proofs = other.schemes.iter().filter_map(Scheme::header);
        proofs.find(|name| {
            trial.request.headers.contains_key(*name)
                && !ours.iter().any(|ours| ours.eq_ignore_ascii_case(name))
        })
    };
    let first = others.iter().position(|other| proof(other).is_some())?;
    let others = &others[first..];
    let header = proof(others[0])?;
    let equals = others.iter().take_while(|other| shared(other) == shared(&others[0]));
    let limit = if is_specification(others[0]) { 1 } else { NAMED_MAX };
    let names = equals.filter(|other| proof(other).is_some()).take(limit);
    let names: Vec<&str> = names.map(|other| other.name.as_ref()).collect();
    Some(format!("this looks like {}: found `{header}`", names.join(" or ")))
}

/// The headers of a request that an entry reads.
fn headers_in<'p>(provider: &'p Provider, request: &Request<'_>) -> BTreeSet<&'p str> {
    let mut names = BTreeSet::new();
    for scheme in provider.schemes.iter() {
        names.extend(scheme.header());
        let Some(signature) = scheme.signature() else { continue };
        if let Some(Stamp { place: Place::Header(name), .. }) = &signature.timestamp {
            names.insert(name.as_ref());
        }
        names.extend(signature.signed.iter().filter_map(|part| match part {
            Part::Header(name) => Some(name.as_ref()),
            _ => None,
        }));
    }
    let types = provider.event_type.iter().map(|rule| &rule.first);
    let ids = provider.identity.iter().filter_map(|identity| match identity {
        Identity::Field(field) => Some(field),
        _ => None,
    });
    names.extend(types.chain(ids).filter_map(|field| match field {
        Field::Header(name) => Some(name.as_ref()),
        _ => None,
    }));
    names.retain(|name| request.headers.contains_key(*name));
    names
}
