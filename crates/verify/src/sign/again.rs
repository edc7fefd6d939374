//! Signing an event afresh: as its provider would now, for a handler that checks the provider's
//! proof itself, however long after the event came in.
//!
//! Old proofs are removed, whatever scheme they are of, and new ones are made for those that were
//! there. All else of the request stays as it is, byte for byte.

use http::HeaderName;
use jiff::Timestamp;

use super::edit::remove_form_field;
use super::{CannotSign, Means, sign_by};
use crate::catalogue;
use crate::jwk::JwsKey;
use crate::mac::Key;
use crate::provider::{Part, Payload, Place, Provider, Scheme, Stamp, TokenPlace};
use crate::request::{Draft, Request};
use crate::secret::{BadSecret, Keyring};
use crate::special::{Special, braintree, mercadopago, twilio};
use crate::verify::is_present;

/// Why events of a source cannot be signed afresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotResign {
    /// The provider alone has what signs.
    #[error("it signs with a private key, which only the provider has")]
    PublicKey,
    /// A fresh time would be another body.
    #[error("the time that it signs is a part of the body")]
    TimedBody,
    /// The body is made of more than the event, and not to be had again.
    #[error("the body that the event was in cannot be rebuilt")]
    Envelope,
}

impl CannotResign {
    /// A stable name for logs and error messages. Never renamed.
    pub fn code(self) -> &'static str {
        match self {
            CannotResign::PublicKey => "public_key",
            CannotResign::TimedBody => "timed_body",
            CannotResign::Envelope => "envelope",
        }
    }

    /// What the operator should do.
    pub fn hint(self) -> &'static str {
        match self {
            CannotResign::PublicKey => {
                "use `sign = \"standard\"`: the provider's own proof travels along, and the \
                 handler can check it as long as it does not ask for its age"
            }
            CannotResign::TimedBody => {
                "use `sign = \"standard\"`: the body travels as it came, and the handler must \
                 check the signature of Oncebox instead of the age of the provider's"
            }
            CannotResign::Envelope => {
                "use `sign = \"standard\"`, and read the event alone from the body"
            }
        }
    }
}

/// Whether events of a source can be signed afresh with the first secret of a keyring.
///
/// ```
/// use oncebox_verify::{CannotResign, Keyring, Secret, can_resign, catalogue};
///
/// let secrets = || vec![Secret::new("a secret of ours")];
/// let github = catalogue::find("github").unwrap();
/// assert_eq!(can_resign(github, &Keyring::new(github, secrets())?), Ok(()));
/// let mailgun = catalogue::find("mailgun").unwrap();
/// let refused = can_resign(mailgun, &Keyring::new(mailgun, secrets())?);
/// assert_eq!(refused, Err(CannotResign::TimedBody));
/// # Ok::<(), oncebox_verify::BadSecret>(())
/// ```
pub fn can_resign(provider: &Provider, keyring: &Keyring) -> Result<(), CannotResign> {
    let is_lost = match provider.payload {
        Payload::Claims(_) => true,
        Payload::FormXml(_) => !provider.batches.is_empty(),
        Payload::Body
        | Payload::Any
        | Payload::FormJson(_)
        | Payload::Multipart(_)
        | Payload::Xml => false,
    };
    let every_way = keyring.for_every_way(provider);
    let keyring = every_way.as_ref().unwrap_or(keyring);
    let shared: Vec<&Scheme> = shared(provider, keyring).map(|(_, scheme)| scheme).collect();
    match shared.iter().any(|scheme| !is_timed_inside(scheme)) {
        _ if shared.is_empty() => Err(CannotResign::PublicKey),
        false => Err(CannotResign::TimedBody),
        true if is_lost => Err(CannotResign::Envelope),
        true => Ok(()),
    }
}

/// Whether a request that is signed afresh may show the secret to readers on its way: it is a
/// token, or a proof that says nothing of the request and works for another.
pub fn shows_secret(provider: &Provider, keyring: &Keyring) -> bool {
    let every_way = keyring.for_every_way(provider);
    let keyring = every_way.as_ref().unwrap_or(keyring);
    shared(provider, keyring).any(|(_, scheme)| scheme.covers_nothing())
}

/// The parameters of the query that signing afresh may add to a URL.
pub fn query_names(provider: &Provider) -> Vec<&str> {
    let proofs = provider.schemes.iter().filter_map(|scheme| match scheme {
        Scheme::Signature(signature) => match &signature.place {
            Place::Query(name) => Some(name.as_ref()),
            _ => None,
        },
        Scheme::Token(token) => match &token.place {
            TokenPlace::Query(name) => Some(name.as_ref()),
            _ => None,
        },
        Scheme::Special(Special::Twilio) => Some(twilio::BODY_HASH),
        Scheme::Jws(_) | Scheme::Special(_) => None,
    });
    proofs.chain(event_parameters(provider)).collect()
}

/// The parameters of the query that are a part of the event.
fn event_parameters(provider: &Provider) -> Vec<&str> {
    let mut names = provider.query_fields();
    for scheme in provider.schemes.iter() {
        let signed = scheme.signature().map_or(&[][..], |signature| &signature.signed);
        names.extend(signed.iter().filter_map(|part| match part {
            Part::Query(name) => Some(name.as_ref()),
            _ => None,
        }));
        if *scheme == Scheme::Special(Special::MercadoPago) {
            names.push(mercadopago::OBJECT);
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Signs a request afresh as the provider would at that time, with the first secret of the
/// keyring. The draft has the headers and the body of the request as it came, and the URL that it
/// goes to; `came_to` is the URL that it came to, whose parameters are a part of some events.
///
/// ```
/// use oncebox_verify::{Keyring, SampleEvent, Secret, catalogue, resign, sample, sign, verify};
///
/// let at = |text: &str| text.parse::<jiff::Timestamp>();
/// let (then, now) = (at("2026-01-02T03:04:05Z")?, at("2026-01-04T03:04:05Z")?);
/// let stripe = catalogue::find("stripe").unwrap();
/// let event = SampleEvent { id: "evt_1", event_type: "invoice.paid", at: then, object: None };
/// let came = sign(stripe, &Secret::new("whsec_of_the_source"), sample(stripe, &event), then)?;
///
/// let ours = Keyring::new(stripe, vec![Secret::new("whsec_of_the_route")])?;
/// assert!(verify(stripe, &ours, &came.request(), now).is_err());
/// let fresh = resign(stripe, &ours, came.clone(), "/in/stripe", now)?;
/// assert!(verify(stripe, &ours, &fresh.request(), now).is_ok());
/// assert_eq!(fresh.body, came.body);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resign(
    provider: &Provider,
    keyring: &Keyring,
    mut draft: Draft,
    came_to: &str,
    at: Timestamp,
) -> Result<Draft, CannotSign> {
    // A handler may check another proof than the source asks for.
    let every_way = keyring.for_every_way(provider);
    let keyring = every_way.as_ref().unwrap_or(keyring);
    let chosen = chosen(provider, keyring, &draft.request())?;
    for name in event_parameters(provider) {
        let headers = http::HeaderMap::new();
        let came = Request { method: "POST", url: came_to, headers: &headers, body: b"" };
        for value in came.query(name) {
            super::add_query(&mut draft, name, &value);
        }
    }
    remove_unread_proofs(provider, &mut draft);
    for scheme in provider.schemes.iter() {
        // The claims of an old token, and the names of keys, are read before they are replaced.
        let is_read = matches!(scheme, Scheme::Jws(_) | Scheme::Special(Special::Braintree));
        let is_replaced = is_read && chosen.iter().any(|(known, _)| std::ptr::eq(*known, scheme));
        if !is_replaced {
            remove_proof(scheme, &mut draft);
        }
    }
    for (scheme, means) in chosen {
        sign_by(provider, scheme, means, &mut draft, at)?;
    }
    Ok(draft)
}

/// The schemes whose secret is shared with the provider, as far as the keyring has keys for them.
/// A source that still waits for its secret may get one for any.
fn shared<'p>(
    provider: &'p Provider,
    keyring: &Keyring,
) -> impl Iterator<Item = (usize, &'p Scheme)> {
    let is_shared = move |(number, scheme): &(usize, &Scheme)| {
        let keys = keyring.keys(*number);
        let is_waiting = keyring.len() == 0 && provider.pairing.is_some();
        !scheme.takes_public_key() && (is_waiting || !keys.is_empty())
            || may_share(scheme) && has_shared_key(keys)
    };
    provider.schemes.iter().enumerate().filter(is_shared)
}

/// Whether an entry that takes key pairs takes shared secrets too.
fn may_share(scheme: &Scheme) -> bool {
    match scheme {
        Scheme::Jws(jws) => jws.algorithms.iter().any(|known| known.is_hmac()),
        Scheme::Special(special) => *special == Special::HttpMessage,
        Scheme::Signature(_) | Scheme::Token(_) => false,
    }
}

/// Whether one of the keys is a shared secret.
fn has_shared_key(keys: &[(usize, Key)]) -> bool {
    keys.iter().any(is_shared)
}

fn is_shared((_, key): &(usize, Key)) -> bool {
    key.jws().iter().any(JwsKey::is_shared)
}

/// What a scheme signs with: of a mixture of keys the first that is shared, for a public one signs
/// nothing.
fn means<'k>(keyring: &'k Keyring, number: usize, scheme: &Scheme) -> Option<Means<'k>> {
    let shared = keyring.keys(number).iter().find(|key| may_share(scheme) && is_shared(key));
    match shared {
        Some(key) => Some(Means::by(keyring, key)),
        None => Means::of(keyring, number),
    }
}

/// Whether the time that is signed is inside the body.
fn is_timed_inside(scheme: &Scheme) -> bool {
    let stamp = scheme.signature().and_then(|signature| signature.timestamp.as_ref());
    stamp.is_some_and(|Stamp { place, .. }| {
        matches!(place, Place::Json(_) | Place::Item(_) | Place::Form(_))
    })
}

/// What to sign by: the schemes whose proofs the request has, so that a handler finds the one that
/// it checks. Without any in a header, by the first that is elsewhere.
fn chosen<'a>(
    provider: &'a Provider,
    keyring: &'a Keyring,
    request: &Request<'_>,
) -> Result<Vec<(&'a Scheme, Means<'a>)>, CannotSign> {
    let all: Vec<(&Scheme, Means<'_>)> = shared(provider, keyring)
        .filter(|(_, scheme)| !is_timed_inside(scheme))
        .filter_map(|(number, scheme)| Some((scheme, means(keyring, number, scheme)?)))
        .collect();
    let mut chosen: Vec<(&Scheme, Means<'_>)> = Vec::new();
    let is_shown = |scheme: &Scheme| is_in_header(scheme) && is_present(scheme, request);
    for (scheme, means) in all.iter().copied().filter(|(scheme, _)| is_shown(scheme)) {
        let known = chosen.iter_mut().find(|(known, _)| known.header() == scheme.header());
        match known {
            // HubSpot has two hashes under one name, and says beside it which one it is.
            Some(known) if says_first_version(scheme, request) => *known = (scheme, means),
            Some(_) => {}
            None => chosen.push((scheme, means)),
        }
    }
    if chosen.is_empty() {
        let elsewhere = all.iter().find(|(scheme, _)| !is_in_header(scheme));
        chosen.extend(elsewhere.or(all.first()));
    }
    match chosen.is_empty() {
        // It still waits for its provider to tell one.
        true if keyring.len() == 0 => Err(BadSecret::None.into()),
        true => Err(BadSecret::Unfit { number: 0 }.into()),
        false => Ok(chosen),
    }
}

fn is_in_header(scheme: &Scheme) -> bool {
    let numbered = scheme.signature().is_some_and(|s| matches!(s.place, Place::Numbered(_)));
    numbered || scheme.header().is_some()
}

fn says_first_version(scheme: &Scheme, request: &Request<'_>) -> bool {
    let Some(header) = scheme.header() else { return false };
    request.headers.get(format!("{header}-version")).is_some_and(|version| version == "v1")
}

/// Takes out headers that other entries prove requests by and this one does not read: providers
/// send more proofs than one, and those would stay as they were made with another secret.
fn remove_unread_proofs(provider: &Provider, draft: &mut Draft) {
    let schemes = || catalogue::ALL.iter().flat_map(|entry| entry.schemes.iter());
    let is_proof = |name: &str| {
        let mut headers = schemes().filter_map(Scheme::header);
        headers.any(|header| header.eq_ignore_ascii_case(name))
    };
    let names = draft.headers.keys().map(HeaderName::as_str);
    let unread = names.filter(|name| !provider.reads_header(name) && is_proof(name));
    let unread: Vec<String> = unread.map(str::to_owned).collect();
    for name in unread {
        draft.headers.remove(name);
    }
}

/// Takes the old proof of a scheme out of the request. What is inside JSON is overwritten later.
fn remove_proof(scheme: &Scheme, draft: &mut Draft) {
    let mut places = Vec::new();
    if let Some(signature) = scheme.signature() {
        places.push(&signature.place);
        places.extend(signature.timestamp.as_ref().map(|stamp| &stamp.place));
    }
    let is_proof = |name: &HeaderName| {
        let is_header = scheme.header().is_some_and(|header| name == header);
        is_header || places.iter().any(|place| place.is_header(name.as_str()))
    };
    let old: Vec<HeaderName> =
        draft.headers.keys().filter(|name| is_proof(name)).cloned().collect();
    for name in old {
        draft.headers.remove(name);
    }
    match scheme {
        Scheme::Signature(signature) => {
            if let Place::Form(name) = &signature.place {
                remove_form_field(draft, name);
            }
        }
        Scheme::Special(Special::Braintree) => remove_form_field(draft, braintree::SIGNATURE),
        Scheme::Token(_) | Scheme::Jws(_) | Scheme::Special(_) => {}
    }
}
