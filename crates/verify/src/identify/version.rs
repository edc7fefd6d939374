//! Ordering values.

use jiff::Timestamp;

use crate::provider::{Unit, Version};

/// Reads an ordering value; none rather than a wrong one.
pub(super) fn number(rule: &Version, text: &str) -> Option<i64> {
    let written_as_time = || {
        // GitLab writes `2026-01-02 03:04:05 UTC`, WooCommerce no zone at all, and means UTC.
        let utc = || format!("{}Z", text.strip_suffix(" UTC").unwrap_or(text));
        let time: Option<Timestamp> = text.parse().ok().or_else(|| utc().parse().ok());
        Some(time?.as_millisecond())
    };
    match rule.unit {
        Unit::Seconds | Unit::Iso8601 => milliseconds(text).or_else(written_as_time),
        Unit::Milliseconds | Unit::Plain => text.parse().ok().or_else(written_as_time),
    }
}

/// Seconds with an optional fraction, in milliseconds, without passing through a float.
fn milliseconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) || whole.starts_with(['-', '+']) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let digits = fraction.bytes().chain(*b"000").take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    whole.checked_mul(1000)?.checked_add(thousandths)
}
