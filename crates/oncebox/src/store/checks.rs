//! What both stores refuse of an effect or a name before they look anything up. Each refusal says
//! what to do.

use super::StoreError;
use crate::effect::{EffectKey, EffectKind, EffectName, Message, OUTBOX, SERVICE};
use crate::limits;
use crate::receipt::ReceiptId;

/// The name of a source or a route. Names are parts of keys in the ledger, which are told apart by
/// slashes; only what carries messages has one.
pub(crate) fn name(name: &str) -> Result<(), StoreError> {
    let own = name.strip_prefix(OUTBOX).unwrap_or(name);
    let why = match own {
        "" => "is empty",
        _ if own.contains('/') => "has a slash",
        _ if own.contains(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    Err(refused(format!(
        "the name `{}` {why}; choose another, such as `billing`",
        name.escape_debug()
    )))
}

/// The name of a service, or nothing for the one without a name. It is a part of keys.
pub(crate) fn service(service: &str) -> Result<(), StoreError> {
    match service {
        "" => Ok(()),
        _ => name(service),
    }
}

/// A service that a route is said to be of, beside the one it was told before.
pub(crate) fn same_service(route: &str, known: &str, service: &str) -> Result<(), StoreError> {
    if known == service {
        return Ok(());
    }
    let written = |service: &str| match service {
        "" => "no `service`".to_owned(),
        _ => format!("`service = \"{service}\"`"),
    };
    Err(StoreError::Unfit {
        problem: format!(
            "route `{route}` has {}, and had {} when it was made: its effects are in the ledger \
             under that, and would happen again",
            written(service),
            written(known)
        ),
        hint: format!("Write it as it was, or make a new route with {}.", written(service)),
    })
}

/// The key an effect has in the ledger, and its kind. `route` is the name the delivery's route was
/// born with, `service` the service whose workers it has; empty if that has no name.
pub(crate) fn key(
    name: &EffectName,
    receipt: ReceiptId,
    route: &str,
    service: &str,
) -> Result<(String, EffectKind), StoreError> {
    match name {
        EffectName::Key(key) if key.as_str().starts_with(SERVICE) => Err(refused(format!(
            "the key `{key}` begins with `{SERVICE}`, as those of services do; leave it out: the \
             service of the route is put before the key"
        ))),
        EffectName::Key(key) if key.as_str().starts_with(OUTBOX) => Err(refused(format!(
            "the key `{key}` begins with `{OUTBOX}`, as those of messages do; choose another"
        ))),
        EffectName::Key(key) if key.is_like_a_step() => Err(refused(format!(
            "the key `{key}` begins with a UUID and `/`, as those of steps do; name the step if it \
             is one, or put a word before it, as in `order:{key}`"
        ))),
        EffectName::Key(key) => Ok((EffectKey::of_service(service, key), EffectKind::Once)),
        EffectName::Step(step) => {
            let key = EffectKey::of_step(receipt, route, step);
            fits(&key)?;
            Ok((key, EffectKind::Step))
        }
    }
}

/// The key a message has in the ledger. `route` is the name the route that carries it was born
/// with.
pub(crate) fn message_key(route: &str, message: &Message) -> Result<String, StoreError> {
    let key = EffectKey::of_message(route, &message.key);
    fits(&key)?;
    Ok(key)
}

fn fits(key: &str) -> Result<(), StoreError> {
    let (bytes, most) = (key.len(), limits::LEDGER_KEY_BYTES);
    match bytes > most {
        true => Err(refused(format!(
            "the key is {bytes} bytes long with the names before it, and {most} are allowed; choose \
             shorter ones"
        ))),
        false => Ok(()),
    }
}

/// A result as it may be recorded.
pub(crate) fn result(json: Option<&str>) -> Result<(), StoreError> {
    let Some(json) = json else { return Ok(()) };
    let (bytes, most) = (json.len(), limits::RESULT_BYTES);
    if bytes > most {
        return Err(refused(format!(
            "the result is {bytes} bytes long, and {most} are allowed; keep it elsewhere and \
             record where it is"
        )));
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
        return Err(refused(format!(
            "the result is not JSON: {error}; write text in quotes, or leave it out"
        )));
    }
    if has_nul(json) {
        return Err(refused("the result has a NUL character; leave it out".into()));
    }
    Ok(())
}

/// Whether a text in some JSON has a NUL, which is written as an escape.
pub(crate) fn has_nul(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        if rest[at..].starts_with("\\u0000") {
            return true;
        }
        rest = &rest[at + 2..];
    }
    false
}

/// The business thing whose watermark is moved.
pub(crate) fn object(object: &str) -> Result<(), StoreError> {
    let (bytes, most) = (object.len(), limits::NAME_BYTES);
    if object.is_empty() {
        return Err(refused("the object is empty; name the thing, such as `in_456`".into()));
    }
    if bytes > most {
        return Err(refused(format!(
            "the object is {bytes} bytes long, and {most} are allowed; hash what is long"
        )));
    }
    if object.chars().any(char::is_control) {
        return Err(refused("the object has a control character; names are plain text".into()));
    }
    Ok(())
}

/// The unit in which a version reads as a time since 1970; `None` if it reads as none.
fn unit(version: i64) -> Option<&'static str> {
    match version {
        100_000_000..10_000_000_000 => Some("seconds"),
        100_000_000_000..10_000_000_000_000 => Some("milliseconds"),
        100_000_000_000_000..10_000_000_000_000_000 => Some("microseconds"),
        100_000_000_000_000_000.. => Some("nanoseconds"),
        _ => None,
    }
}

/// A version that an object is moved to, beside one that is known of it. One of another unit would
/// be stale for ever, or make everything after it stale.
pub(crate) fn same_unit(object: &str, version: i64, known: Option<i64>) -> Result<(), StoreError> {
    let Some(known) = known else { return Ok(()) };
    match (unit(version), unit(known)) {
        (Some(given), Some(wanted)) if given != wanted => Err(refused(format!(
            "the version {version} reads as {given} since 1970, and that of {object}, {known}, as \
             {wanted}; give object_version as the claim returned it"
        ))),
        _ => Ok(()),
    }
}

/// Whether a watermark is of another unit than a version, which has that of the event itself.
pub(crate) fn is_of_wrong_unit(applied: Option<i64>, version: i64, own: Option<i64>) -> bool {
    let given = unit(version);
    let is_own = given.is_some() && own.and_then(unit) == given;
    is_own && applied.and_then(unit).is_some_and(|unit| Some(unit) != given)
}

/// A message as it may be written. Whether its destination exists is for the store to say.
pub(crate) fn message(message: &Message) -> Result<(), StoreError> {
    let destination = message.destination.as_str();
    if destination.is_empty() || destination.chars().any(char::is_control) {
        return Err(refused(
            "the destination must be the name of one, as in [destinations.mailer]".into(),
        ));
    }
    message_key(&format!("{OUTBOX}{destination}"), message)?;
    let (bytes, most) = (message.payload.len(), limits::MESSAGE_BYTES);
    if bytes > most {
        return Err(refused(format!(
            "the payload is {bytes} bytes long, and {most} are allowed; keep it elsewhere and \
             send where it is"
        )));
    }
    // It becomes a line of headers.
    let content_type = message.content_type.as_str();
    let is_plain = content_type.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if content_type.trim().is_empty() || content_type.len() > 255 || !is_plain {
        return Err(refused(
            "the content type must be 1 to 255 plain characters, such as `application/json`".into(),
        ));
    }
    Ok(())
}

fn refused(why: String) -> StoreError {
    StoreError::Data(why)
}

/// Says that something is registered under a name that it had before.
pub(crate) fn warn_of_former_name(kind: &str, name: &str, current: &str) {
    if name != current {
        tracing::warn!(
            kind,
            name,
            current,
            "this name was given up by a rename and still leads to the same {kind}; \
             write the new name in this node's configuration"
        );
    }
}

/// Whether a stored body is still what arrived.
pub(crate) fn is_intact(body: &[u8], digest: &[u8]) -> bool {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(body)[..] == *digest
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn named(key: &str) -> EffectKey {
        key.parse().unwrap()
    }

    fn to(destination: &str, content_type: &str, payload: usize) -> Message {
        Message {
            destination: destination.into(),
            key: named("k"),
            group: None,
            content_type: content_type.into(),
            payload: vec![b'x'; payload].into(),
        }
    }

    #[test]
    fn steps_are_named_after_their_delivery() {
        let receipt = ReceiptId::from_bytes([7; 16]);
        let step = |name: &str, route| key(&EffectName::Step(named(name)), receipt, route, "");
        let charge = step("charge", "billing").unwrap();
        assert_eq!(charge, (format!("{receipt}/billing/charge"), EffectKind::Step));
        let longest = "s".repeat(limits::KEY_BYTES);
        assert!(step(&longest, "billing").is_ok());
        assert!(step(&longest, &"r".repeat(475)).is_err());
    }

    fn once(name: &str) -> Result<(String, EffectKind), StoreError> {
        key(&EffectName::Key(named(name)), ReceiptId::from_bytes([7; 16]), "billing", "")
    }

    #[test]
    fn keys_of_services_are_theirs() {
        let name = EffectName::Key(named("refund:ch_1"));
        let of = |service| key(&name, ReceiptId::from_bytes([7; 16]), "billing", service);
        assert_eq!(of("").unwrap().0, "refund:ch_1");
        assert_eq!(of("shop").unwrap().0, "@shop/refund:ch_1");
        let refused = once("@shop/refund:ch_1").unwrap_err().to_string();
        assert!(refused.contains("leave it out"), "{refused}");
    }

    #[test]
    fn keys_of_steps_are_theirs() {
        let receipt = ReceiptId::from_bytes([7; 16]);
        let refused = once(&format!("{receipt}/billing/charge")).unwrap_err().to_string();
        assert!(refused.contains("put a word before it"), "{refused}");
        assert!(once(&format!("charge:{receipt}/billing")).is_ok());
    }

    #[test]
    fn keys_of_messages_are_theirs() {
        assert_eq!(once("outbox:a").unwrap(), ("outbox:a".into(), EffectKind::Once));
        assert!(once("outbox/mailer/a").is_err());
        let message = to("mailer", "text/plain", 1);
        assert_eq!(message_key("outbox/mailer", &message).unwrap(), "outbox/mailer/k");
        assert!(message_key(&"d".repeat(2000), &message).is_err());
    }

    #[test]
    fn results_and_payloads_are_small() {
        assert!(result(None).is_ok());
        assert!(result(Some(&"1".repeat(limits::RESULT_BYTES))).is_ok());
        assert!(result(Some(&"1".repeat(limits::RESULT_BYTES + 1))).is_err());
        assert!(result(Some(r#""\\u0000""#)).is_ok());
        for bad in ["", " ", "sent", "1 2", "\"a\0b\"", r#"["\n\u0000"]"#] {
            assert!(result(Some(bad)).is_err(), "{bad:?}");
        }
        assert!(message(&to("mailer", "text/plain", limits::MESSAGE_BYTES)).is_ok());
        assert!(message(&to("mailer", "text/plain", limits::MESSAGE_BYTES + 1)).is_err());
        assert!(message(&Message { payload: Bytes::new(), ..to("mailer", "a/b", 0) }).is_ok());
    }

    #[test]
    fn destinations_have_names() {
        for bad in ["", "a\0b", "a\n"] {
            assert!(message(&to(bad, "text/plain", 1)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_becomes_a_header_is_one_line() {
        for bad in ["", " ", "a\nb: c", "a\rb", "caf\u{e9}", &"x".repeat(256)] {
            assert!(message(&to("mailer", bad, 1)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_version_of_another_unit_is_refused() {
        let ms = 1_760_000_000_000;
        for (version, known) in
            [(ms / 1000, ms), (ms, ms / 1000), (ms * 1000, ms), (ms * 1_000_000, ms)]
        {
            let refused = same_unit("in_456", version, Some(known)).unwrap_err().to_string();
            assert!(refused.contains("since 1970"), "{refused}");
        }
        // Counters are not times, nor is what no event has.
        for (version, known) in [(1, ms), (ms, 1), (ms + 1, ms), (7, 9_000), (-1, ms)] {
            assert!(same_unit("in_456", version, Some(known)).is_ok(), "{version} {known}");
        }
        assert!(same_unit("in_456", ms, Some(i64::MIN)).is_ok());
        assert!(same_unit("in_456", ms, None).is_ok());
    }

    #[test]
    fn objects_are_plain_names() {
        assert!(object("in_456").is_ok());
        for bad in ["", "a\0b", "a\nb", &"o".repeat(limits::NAME_BYTES + 1)] {
            assert!(object(bad).is_err(), "{bad:?}");
        }
    }
}
