//! The time that a request was signed at: where it ends, and whether it is near ours.

use std::borrow::Cow;

use jiff::Timestamp;

use super::places::json_text;
use crate::provider::{Place, Signature, Stamp, Text, TimeFormat};
use crate::rejection::Rejection;
use crate::request::Request;
use crate::time;

/// Refuses a time beside the body that could be cut elsewhere: without its zone it is still one.
pub(super) fn check_boundary(
    signature: &Signature,
    rule: &Stamp,
    text: Option<&str>,
) -> Result<(), Rejection> {
    let is_open = rule.format == TimeFormat::Iso8601 && signature.joins_time_and_body();
    match text {
        Some(text) if is_open && !time::says_zone(text) => {
            Err(Rejection::BadTimestamp { place: stamp_place(rule) })
        }
        _ => Ok(()),
    }
}

/// When it was signed; none where what stands for a time is none.
pub(super) fn check_time(
    rule: &Stamp,
    text: Option<&str>,
    request: &Request<'_>,
    received_at: Timestamp,
) -> Result<Option<Timestamp>, Rejection> {
    if rule.format == TimeFormat::Nonce {
        return Ok(None);
    }
    let place = || stamp_place(rule);
    let in_body;
    let text = match (&rule.place, text) {
        (_, Some(text)) => text,
        (Place::Json(pointer), None) => {
            in_body = json_text(request, pointer)?
                .ok_or_else(|| Rejection::MissingTimestamp { place: place() })?;
            in_body.as_ref()
        }
        (_, None) => return Err(Rejection::MissingTimestamp { place: place() }),
    };
    let signed_at =
        time::parse(text, rule.format).ok_or_else(|| Rejection::BadTimestamp { place: place() })?;
    if let Some(limit_secs) = rule.tolerance_secs {
        check_age(signed_at, received_at, limit_secs)?;
    }
    Ok(Some(signed_at))
}

/// Where a time is, for the operator.
fn stamp_place(rule: &Stamp) -> Text {
    match &rule.place {
        Place::Label { header, label, .. } => Cow::Owned(format!("{header} {label}=")),
        Place::First { header: name, .. }
        | Place::Header(name)
        | Place::Form(name)
        | Place::Json(name) => name.clone(),
        _ => Cow::Borrowed("the request"),
    }
}

/// How far ahead of our clock a time may be, however long it is accepted afterwards: clocks
/// differ by minutes, retries by hours.
const AHEAD_SECS_MAX: u32 = 300;

/// Whether a time is near enough to ours, in both directions.
pub(crate) fn check_age(
    signed_at: Timestamp,
    received_at: Timestamp,
    limit_secs: u32,
) -> Result<(), Rejection> {
    // Whole seconds, since that is what most providers send: 300.9 s is within 300.
    let age = received_at.as_second() - signed_at.as_second();
    if age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooOld { age_secs: age.unsigned_abs(), limit_secs });
    }
    let limit_secs = limit_secs.min(AHEAD_SECS_MAX);
    if -age > i64::from(limit_secs) {
        return Err(Rejection::TimestampTooNew { ahead_secs: age.unsigned_abs(), limit_secs });
    }
    Ok(())
}
